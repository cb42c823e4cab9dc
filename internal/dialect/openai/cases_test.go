package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/casetest"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// inParts cuts a transcript at marks into parts and a rest.
func inParts(tr *wire.Transcript, cuts []int) (parts []wire.Part, rest *wire.Transcript) {
	last := *tr
	from, off := 0, 0
	for _, k := range cuts {
		if k <= from || k >= len(tr.Marks) {
			continue
		}
		end := tr.Marks[k-1].End
		parts = append(parts, wire.Part{Framed: true, Raw: tr.Raw[off:end], Marks: tr.Marks[from:k]})
		from, off = k, end
	}
	last.Raw, last.Marks = tr.Raw[off:], tr.Marks[from:]
	return parts, &last
}

// engine is an engine with OpenAI fronts, as the tests need it.
func engine(name string) dialect.Engine {
	usage := dialect.Abilities{Usage: true}
	forced := dialect.Abilities{Usage: true, IgnoreEOS: true, MinTokens: true}
	switch name {
	case "openai", "ollama":
		return dialect.NewEngine(name, ChatEndpoint(usage), CompletionsEndpoint(usage), ResponsesEndpoint(usage))
	case "vllm":
		return dialect.NewEngine(name, ChatEndpoint(forced), CompletionsEndpoint(forced))
	case "llamacpp":
		return dialect.NewEngine(name, ChatEndpoint(dialect.Abilities{Usage: true, IgnoreEOS: true}), CompletionsEndpoint(dialect.Abilities{Usage: true, IgnoreEOS: true}))
	}
	panic("no engine " + name)
}

func endpoint(d dialect.Engine, path string) dialect.Endpoint {
	for _, ep := range d.Endpoints() {
		if ep.Path == path {
			return ep
		}
	}
	panic("no endpoint at " + path)
}

func fold(path string, stream bool, osl, isl int, parts []wire.Part, tr *wire.Transcript) bench.Record {
	d := engine("openai")
	f := dialect.NewFold(endpoint(d, path), &bench.Request{OSL: osl, ISL: isl, Phase: bench.Measure}, &dialect.Options{Stream: stream, KeepText: true, Verify: true})
	for _, p := range parts {
		f.Feed(p)
	}
	return f.End(tr)
}

// Every http case of the OpenAI API gives exactly its numbers.
func TestCases(t *testing.T) {
	all := casetest.Read(t, "../../../testdata/cases")
	for _, c := range all {
		tr := c.Transcript()
		r := fold(c.Endpoint, c.Request.Stream, c.Request.MaxTokens, c.Request.RequestedPromptTokens, nil, tr)
		casetest.Compare(t, c.Name, c.Expect, r)
		for i, then := range c.Then {
			tr := then.Transcript()
			r := fold(c.Endpoint, c.Request.Stream, 0, 0, nil, tr)
			casetest.Compare(t, fmt.Sprint(c.Name, " then ", i), c.Expect["if_fallback"].(map[string]any), r)
		}
	}
}

// A transcript in parts gives the same record as in one piece.
func TestCasesInParts(t *testing.T) {
	all := casetest.Read(t, "../../../testdata/cases")
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "case")]
		tr := c.Transcript()
		whole := fold(c.Endpoint, c.Request.Stream, c.Request.MaxTokens, 0, nil, tr)
		cuts := rapid.SliceOfN(rapid.IntRange(1, 30), 0, 6).Draw(t, "cuts")
		slices.Sort(cuts)
		parts, rest := inParts(tr, cuts)
		cut := fold(c.Endpoint, c.Request.Stream, c.Request.MaxTokens, 0, parts, rest)
		a, _ := json.Marshal(whole)
		b, _ := json.Marshal(cut)
		if string(a) != string(b) {
			t.Fatalf("%s:\nwhole %s\nparts %s", c.Name, a, b)
		}
	})
}

// The same bytes in other reads give the same texts, counts and outcome; only times may differ.
func TestCasesAnySplit(t *testing.T) {
	all := casetest.Read(t, "../../../testdata/cases")
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "case")]
		tr := c.Transcript()
		whole := fold(c.Endpoint, c.Request.Stream, c.Request.MaxTokens, 0, nil, tr)
		other := *tr
		other.Marks = nil
		for off, at := 0, time.Second; off < len(tr.Raw); {
			off = min(len(tr.Raw), off+rapid.IntRange(1, 300).Draw(t, "read"))
			at += time.Duration(rapid.IntRange(0, 5_000_000).Draw(t, "gap"))
			other.Marks = append(other.Marks, wire.Mark{End: off, At: at})
		}
		split := fold(c.Endpoint, c.Request.Stream, c.Request.MaxTokens, 0, nil, &other)
		if whole.Outcome != split.Outcome || whole.Text != split.Text || whole.Thinking != split.Thinking || whole.OutEvents != split.OutEvents ||
			whole.OSL != split.OSL || whole.ISL != split.ISL || whole.Finish != split.Finish || whole.Error != split.Error {
			t.Fatalf("%s:\nwhole %+v\nsplit %+v", c.Name, whole, split)
		}
	})
}

// Of an answer in one piece the server's own times are kept too.
func TestTimesOfPlainBody(t *testing.T) {
	tr := timed([]byte(`{"choices":[{"index":0,"message":{"content":"a"},"finish_reason":"stop"}],"timings":{"cache_n":2,"prompt_n":3,"prompt_ms":1.5,"predicted_n":4,"predicted_ms":2.5}}`))
	tr.Header = map[string][]string{"Content-Type": {"application/json"}}
	r := fold("/v1/chat/completions", false, 0, 0, nil, tr)
	if r.Outcome != bench.OK || r.Server["server_prefill_ms"] != 1.5 || r.Server["server_decode_ms"] != 2.5 || len(r.Server) != 2 ||
		r.ISL.Or(0) != 5 || r.OSL.Or(0) != 4 || r.OSLSource != bench.FromCount {
		t.Errorf("%+v", r)
	}
}
