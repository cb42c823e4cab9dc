package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// caseFile is a file of testdata/cases, of kind http.
type caseFile struct {
	Name, Kind, Endpoint, End string
	Request                   struct {
		Stream                bool
		MaxTokens             int `json:"max_tokens"`
		RequestedPromptTokens int `json:"requested_prompt_tokens"`
	}
	Status  int
	Headers map[string]string
	Events  []caseEvent
	Then    []struct {
		Status  int
		Headers map[string]string
		Events  []caseEvent
		End     string
	}
	Expect map[string]any
}

type caseEvent struct {
	After float64 `json:"after_ms"`
	Data  []byte  `json:"data_b64"`
}

// transcript builds what a client that reads each event at its time hands over. t = 0 is 1 s after the epoch.
func transcript(status int, headers map[string]string, events []caseEvent, end string, more ...int) (*wire.Transcript, []wire.Part) {
	const zero = time.Second
	tr := &wire.Transcript{Framed: true, Sent: opt.Some(zero), HeadAt: opt.Some(zero), Stamp: wire.StampSocket}
	put := func(b []byte, at time.Duration) {
		tr.Raw = append(tr.Raw, b...)
		tr.Bytes = len(tr.Raw)
		tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: at})
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nTransfer-Encoding: chunked\r\n", status, http.StatusText(status))
	for k, v := range headers {
		head += k + ": " + v + "\r\n"
	}
	put([]byte(head+"\r\n"), zero)
	at := zero
	for i, e := range events {
		at += time.Duration(e.After * 1e6)
		b := []byte(fmt.Sprintf("%x\r\n%s\r\n", len(e.Data), e.Data))
		if i == len(events)-1 && end == "clean" {
			b = append(b, "0\r\n\r\n"...)
		}
		put(b, at)
	}
	tr.Ended = opt.Some(at)
	switch end {
	case "cut":
		tr.Fail, tr.Cause = wire.FailReset, wire.ErrCut.Error()
	case "hang":
		tr.Fail, tr.Cause = wire.FailTimeout, "no complete response within 1s"
		tr.Ended = opt.Some(at + time.Second)
	}
	return tr, nil
}

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

func engine(name string) dialect.Dialect {
	for _, d := range Engines() {
		if d.Name() == name {
			return d
		}
	}
	panic("no engine " + name)
}

func endpoint(d dialect.Dialect, path string) dialect.Endpoint {
	for _, ep := range d.Endpoints() {
		if ep.Path == path {
			return ep
		}
	}
	panic("no endpoint at " + path)
}

func fold(path string, stream bool, osl, isl int, parts []wire.Part, tr *wire.Transcript) bench.Record {
	d := engine("openai")
	f := dialect.NewFold(d, endpoint(d, path), &bench.Request{OSL: osl, ISL: isl, Phase: bench.Measure}, &dialect.Options{Stream: stream, KeepText: true})
	for _, p := range parts {
		f.Feed(p)
	}
	return f.End(tr)
}

func readCase(t testing.TB, file string) (c caseFile) {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(file, err)
	}
	return c
}

func cases(t testing.TB) (out []caseFile) {
	files, err := filepath.Glob("../../../testdata/cases/c*.json")
	if err != nil || len(files) < 40 {
		t.Fatal("case files are missing", err)
	}
	for _, f := range files {
		if c := readCase(t, f); c.Kind == "http" && strings.HasPrefix(c.Endpoint, "/v1/c") {
			out = append(out, c)
		}
	}
	return out
}

func millis(o opt.Of[time.Duration], from time.Duration) any {
	if v, ok := o.Get(); ok {
		return float64(v-from) / 1e6
	}
	return nil
}

// words of the case files for what a record calls otherwise
var caseClass = map[bench.Outcome]string{bench.Throttled: "rate_limited", bench.Rejected: "http_4xx", bench.ServerError: "http_5xx",
	bench.StreamError: "stream_error", bench.TruncatedStream: "truncated_stream", bench.Reset: "connection", bench.Timeout: "timeout"}

// compare checks a record against what a case expects.
func compare(t testing.TB, name string, expect map[string]any, r bench.Record) {
	const zero = time.Second
	outcome := "ok"
	switch {
	case r.Outcome.Excluded():
		outcome = "excluded"
	case r.Outcome.Failed():
		outcome = "failed"
	}
	if r.Outcome == bench.OK && r.Has(bench.AllAtOnce) {
		outcome = "ok"
	}
	ok := outcome == "ok"
	var gaps []any
	for i := 1; i < len(r.Events); i++ {
		gaps = append(gaps, float64(r.Events[i]-r.Events[i-1])/1e6)
	}
	var tpot any
	if osl, has := r.OSL.Get(); has && osl > 1 && ok && r.First.Defined() {
		tpot = float64(r.Last.Or(0)-r.First.Or(0)) / 1e6 / float64(osl-1)
	}
	optional := func(o opt.Of[int]) any {
		if v, ok := o.Get(); ok {
			return float64(v)
		}
		return nil
	}
	osl := optional(r.OSL)
	if osl == nil {
		osl = 0.0
	}
	source := map[bench.Source]string{bench.FromUsage: "server_usage", bench.FromCount: "server_native"}[r.OSLSource]
	e2e := millis(r.Last, zero)
	got := map[string]any{
		"outcome": outcome, "error_class": caseClass[r.Outcome], "http_status": float64(r.Status), "retry_after_s": r.RetryAfter,
		"ttft_ms": millis(r.First, zero), "first_answer_ms": millis(r.FirstAnswer, zero), "e2e_ms": e2e, "stream_end_ms": millis(r.End, zero),
		"output_tokens": osl, "token_source": source, "prompt_tokens": optional(r.ISL), "chunk_gaps_ms": gaps, "tpot_ms": tpot,
		"text": r.Text, "reasoning_text": r.Thinking, "reasoning_tokens": optional(r.Reasoning), "cached_prompt_tokens": optional(r.Cached),
		"finish_reason": string(r.Finish), "partial_output_events": float64(r.OutEvents), "counts_as_success": ok,
		"server_prefill_ms": r.Server["server_prefill_ms"], "server_decode_ms": r.Server["server_decode_ms"],
		"requested_output_tokens": float64(r.OSLAsked), "requested_prompt_tokens": float64(r.ISLAsked),
	}
	for key, want := range expect {
		switch key {
		case "flags":
			for _, f := range want.([]any) {
				flag := f.(string)
				if flag == "empty_output" {
					if r.Outcome != bench.Empty {
						t.Errorf("%s: outcome %s, want empty", name, r.Outcome)
					}
					continue
				}
				if !r.Has(bench.Flag(flag)) {
					t.Errorf("%s: flag %s is not raised (%v)", name, flag, r.Flags)
				}
			}
			continue
		case "error_text_contains":
			if !strings.Contains(r.Error, want.(string)) {
				t.Errorf("%s: error %q", name, r.Error)
			}
			continue
		case "error_code":
			if !strings.Contains(r.Error, fmt.Sprint(want)) {
				t.Errorf("%s: error %q lacks the code", name, r.Error)
			}
			continue
		case "token_source_not":
			if source == want {
				t.Errorf("%s: token source %s", name, source)
			}
			continue
		case "mode", "alt", "excluded_from", "accept", "accept_instead", "if_fallback", "request_header_check", "requests_seen_by_server", "cached_share",
			"prompt_tokens_deviation", "request_tok_s", "server_decode_tok_s":
			continue // looked at elsewhere, or follows from the others
		}
		have, known := got[key]
		if !known {
			t.Errorf("%s: no check for %q", name, key)
			continue
		}
		if want == nil && (key == "e2e_ms" || key == "ttft_ms") && !ok {
			continue // no sample: a failed or empty request gives none
		}
		if w, isNum := want.(float64); isNum {
			if h, ok := have.(float64); !ok || math.Abs(h-w) > 1e-9*math.Max(1, w) {
				t.Errorf("%s: %s is %v, want %v", name, key, have, want)
			}
			continue
		}
		if g, ok := have.([]any); ok && len(g) == 0 && len(want.([]any)) == 0 {
			continue
		}
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %s is %v, want %v", name, key, have, want)
		}
	}
}

// Every http case of the OpenAI API gives exactly its numbers.
func TestCases(t *testing.T) {
	all := cases(t)
	if len(all) < 25 {
		t.Fatalf("only %d cases", len(all))
	}
	for _, c := range all {
		tr, _ := transcript(c.Status, c.Headers, c.Events, c.End)
		r := fold(c.Endpoint, c.Request.Stream, c.Request.MaxTokens, c.Request.RequestedPromptTokens, nil, tr)
		compare(t, c.Name, c.Expect, r)
		for i, then := range c.Then {
			tr, _ := transcript(then.Status, then.Headers, then.Events, then.End)
			r := fold(c.Endpoint, c.Request.Stream, 0, 0, nil, tr)
			compare(t, fmt.Sprint(c.Name, " then ", i), c.Expect["if_fallback"].(map[string]any), r)
		}
	}
}

// A transcript in parts gives the same record as in one piece.
func TestCasesInParts(t *testing.T) {
	all := cases(t)
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "case")]
		tr, _ := transcript(c.Status, c.Headers, c.Events, c.End)
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
	all := cases(t)
	rapid.Check(t, func(t *rapid.T) {
		c := all[rapid.IntRange(0, len(all)-1).Draw(t, "case")]
		tr, _ := transcript(c.Status, c.Headers, c.Events, c.End)
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
