package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/memnet"
)

// lister is a server that embeds and ranks in 40 ms, and counts a token a word and two of its own a text.
type lister struct {
	tei     bool
	drops   int  // results that it leaves out
	refuses bool // it has no such path
	once    bool // it counts a query once, and not with each document
}

func (l lister) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/models" && !l.tei:
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		return
	case r.URL.Path == "/info" && l.tei:
		fmt.Fprint(w, `{"model_id":"m","version":"1.8","max_input_length":512,"model_type":{"embedding":{}}}`)
		return
	case l.refuses || r.Method != http.MethodPost || !strings.Contains("/v1/embeddings /v2/rerank /v1/rerank /embed /rerank", r.URL.Path):
		w.WriteHeader(404)
		fmt.Fprint(w, `{"detail":"Not Found"}`)
		return
	}
	var in struct {
		Input, Inputs, Documents, Texts []string
		Query                           string
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	tokens := 0
	var vectors, scores, data []string
	for i, text := range append(append(append(in.Input, in.Inputs...), in.Documents...), in.Texts...) {
		tokens += len(strings.Fields(text)) + 2
		if i == 0 || !l.once {
			tokens += len(strings.Fields(in.Query))
		}
		vectors = append(vectors, "[0.5,-1,0]")
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[0.5,-1,0]}`, i))
		scores = append(scores, fmt.Sprintf(`{"index":%d,"relevance_score":0.5,"score":0.5}`, i))
	}
	list := func(all []string) string { return "[" + strings.Join(all[:max(0, len(all)-l.drops)], ",") + "]" }
	time.Sleep(40 * time.Millisecond)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Compute-Tokens", fmt.Sprint(tokens))
	w.Header().Set("X-Queue-Time", "3")
	switch r.URL.Path {
	case "/v1/embeddings":
		fmt.Fprintf(w, `{"data":%s,"usage":{"prompt_tokens":%d,"total_tokens":%d}}`, list(data), tokens, tokens)
	case "/v1/rerank":
		fmt.Fprintf(w, `{"results":%s,"usage":{"total_tokens":%d}}`, list(scores), tokens)
	case "/v2/rerank":
		fmt.Fprintf(w, `{"results":%s,"meta":{"billed_units":{"search_units":1}}}`, list(scores))
	case "/embed":
		fmt.Fprint(w, list(vectors))
	case "/rerank":
		fmt.Fprint(w, list(scores))
	}
}

// inputs prepares and executes a run against a lister, whole in virtual time.
func inputs(t *testing.T, l lister, change func(*bench.Spec)) (res *Result, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, lerr := n.Listen("sim:80")
		if lerr != nil {
			t.Fatal(lerr)
		}
		srv := &http.Server{Handler: l}
		go srv.Serve(ln)
		defer srv.Close()
		spec := testSpec(bench.Load{Shape: bench.Closed, Concurrency: 1}, 20)
		spec.Target.Endpoint = "embeddings"
		spec.Workload.OSL = "128" // the default of the command line
		spec.Keep.Transcripts, spec.Client.Stamps = true, "user"
		change(&spec)
		var plan *Plan
		if plan, err = Prepare(context.Background(), spec, testDeps(&n), false); err != nil {
			return
		}
		res, err = Execute(context.Background(), plan, dir, Control{})
	})
	return res, err
}

// Texts of exact lengths go out, each answer is ok with its counts, and the kept bytes fold to the same.
func TestInputs(t *testing.T) {
	for _, c := range []struct {
		name, endpoint string
		tei, once      bool
		task           bench.Task
		batch          int
		tokens         int // -1 = not told
		source         bench.Source
	}{
		{"embeddings", "embeddings", false, false, bench.Embed, 4, 4 * 32, bench.FromUsage},
		{"rerank", "rerank", false, false, bench.Rerank, 3, 3 * 32, bench.FromUsage},
		{"rerank by embeddings", "rerank", false, true, bench.Rerank, 3, 16 + 3*32, bench.FromUsage},
		{"Cohere's rerank", "/v2/rerank", false, false, bench.Rerank, 3, -1, ""},
		{"TEI's embed, its default", "", true, false, bench.Embed, 2, 2 * 32, bench.FromCount},
		{"TEI's rerank", "rerank", true, false, bench.Rerank, 2, 2 * 32, bench.FromCount},
	} {
		res, err := inputs(t, lister{tei: c.tei, once: c.once}, func(s *bench.Spec) { s.Target.Endpoint, s.Workload.Batch = c.endpoint, c.batch })
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m := res.Manifest.Spec
		if res.Summary.Verdict != bench.Valid || len(res.Records) != 20 || m.Target.Task != c.task || m.Target.Stream || m.Workload.OSL != "" {
			t.Errorf("%s: %s %+v %+v", c.name, res.Summary.Verdict, m.Target, res.Summary.Caveats)
		}
		for _, r := range res.Records {
			sent, _ := r.Sent.Get()
			if r.Outcome != bench.OK || r.Inputs != c.batch || r.ISL.Or(-1) != c.tokens || r.ISLSource != c.source || r.ISLAsked != c.tokens && (c.tokens >= 0 || r.ISLAsked != 32*c.batch) ||
				r.First.Defined() || r.OSL.Defined() || r.Last.Or(0)-sent != 40*ms || len(r.Flags) > 0 {
				t.Fatalf("%s: %+v", c.name, r)
			}
			if want := map[bench.Task]int{bench.Embed: 3}[c.task]; r.Dimensions != want {
				t.Fatalf("%s: %d dimensions", c.name, r.Dimensions)
			}
			if c.tei && r.Server["server_queue_ms"] != 3 || c.endpoint == "/v2/rerank" && r.Server["server_search_units"] != 1 {
				t.Fatalf("%s: server %v", c.name, r.Server)
			}
		}
		if v, ok := res.Summary.Metrics.Value("inputs_throughput"); !ok || v != float64(c.batch)/0.04 {
			t.Errorf("%s: %v inputs/s", c.name, v)
		}
		if v, ok := res.Summary.Metrics.Value("input_throughput"); ok != (c.tokens >= 0) || ok && v != float64(c.tokens)/0.04 {
			t.Errorf("%s: %v input tokens/s", c.name, v)
		}
		for _, x := range res.Summary.Caveats {
			if x.Code != "too_short" && x.Code != "few_samples" && x.Code != "no_interval" && x.Code != "uncalibrated" && (x.Code != "estimated_prompts" || c.tokens >= 0) {
				t.Errorf("%s: caveat %s: %s", c.name, x.Code, x.Text)
			}
		}
		engine, err := testDeps(nil).Engines.Get(m.Target.Engine)
		if err != nil {
			t.Fatal(err)
		}
		ep, _ := engine.Endpoint(m.Target.Endpoint)
		again, err := Refold(res.Dir, res.Manifest, ep, nil)
		if err != nil || len(again) != 20 || again[0].Outcome != bench.OK || again[0].Inputs != c.batch || again[0].ISL != res.Records[0].ISL {
			t.Errorf("%s folded again: %v %+v", c.name, err, again[0])
		}
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	res, err := inputs(t, lister{drops: 1}, func(s *bench.Spec) { s.Workload.Batch = 3 })
	if err != nil || res.ExitCode() != fault.Target || !strings.Contains(fmt.Sprint(res.Unusable), "2 vectors came for 3 inputs") {
		t.Errorf("a vector too few: %v, %v", err, res.Unusable)
	}
	for _, c := range []struct {
		name   string
		l      lister
		change func(*bench.Spec)
		code   fault.Code
		words  string
		hint   string
	}{
		{"no such path", lister{refuses: true}, func(*bench.Spec) {}, fault.Target, "/v1/embeddings answers 404: Not Found", "a model for that task"},
		{"a limit of tokens", lister{}, func(s *bench.Spec) { s.SLO = []bench.Limit{{Metric: "ttft", Max: ms}} }, fault.Usage, "--goodput ttft", "e2el"},
		{"a batch of chats", lister{}, func(s *bench.Spec) { s.Target.Endpoint, s.Workload.Batch = "chat", 2 }, fault.Usage, "--batch", "embeddings"},
		{"a text to rank", lister{}, func(s *bench.Spec) {
			s.Target.Endpoint, s.Workload = "rerank", bench.Workload{Dataset: "text", Prompt: "a", OSL: "8"}
		}, fault.Usage, "no query", "jsonl"},
		{"a path of nobody", lister{}, func(s *bench.Spec) { s.Target.Endpoint = "/v1/images" }, fault.Usage, "/v1/images", "/embeddings, /rerank"},
	} {
		_, err := inputs(t, c.l, c.change)
		if fault.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.words) || !strings.Contains(fault.HintOf(err), c.hint) {
			t.Errorf("%s: %v (%s)", c.name, err, fault.HintOf(err))
		}
	}
}
