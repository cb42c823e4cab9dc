package run

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/casetest"
	"github.com/prony-bench/prony/internal/sim"
)

const casesDir = "../../testdata/cases"

// script is a simulated engine that plays one file.
func script(t *testing.T, file string) sim.Config {
	t.Helper()
	scripts, err := sim.LoadScripts(file)
	if err != nil {
		t.Fatal(err)
	}
	return sim.Config{Mode: sim.ModeScript, Scripts: scripts}
}

// offline makes a plan without asking the server: a script answers to every request, also to a question.
func (w *world) offline() *Plan {
	w.t.Helper()
	w.spec.Target.Model = "m"
	plan, err := Prepare(context.Background(), w.spec, w.deps, true)
	if err != nil {
		w.t.Fatal(err)
	}
	return plan
}

func (w *world) execute(plan *Plan) *Result {
	w.t.Helper()
	res, err := Execute(context.Background(), plan, w.dir, w.ctl)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// Every http case of the OpenAI API, through client, dialect, journal and back, gives exactly its numbers.
func TestCases(t *testing.T) {
	for _, c := range casetest.Read(t, casesDir) {
		virtual(t, script(t, casesDir+"/"+c.Name+".json"), func(w *world) {
			w.spec.Target.Stream = c.Request.Stream
			w.spec.Target.Endpoint = map[string]string{"/v1/chat/completions": "chat", "/v1/completions": "completions"}[c.Endpoint]
			w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: strconv.Itoa(max(1, c.Request.MaxTokens))}
			if n := c.Request.RequestedPromptTokens; n > 0 {
				w.spec.Workload = bench.Workload{Dataset: "random", ISL: strconv.Itoa(n), OSL: "2"}
			}
			if c.Request.MaxTokens == 0 {
				w.spec.Workload.OSL = "10000" // not said; far from anything delivered
			}
			w.spec.Keep.Text = true
			w.spec.Phases[0].Stop.Requests = 1
			w.spec.Client.Timeout = time.Hour
			plan := w.offline()
			if c.Name == "c20-stream-options-refused" {
				w.spec.Phases[0].Stop.Requests = 1
			}
			res := w.execute(plan)
			if len(res.Records) != 1 {
				w.t.Fatalf("%s: %d records", c.Name, len(res.Records))
			}
			r := res.Records[0]
			if c.Request.MaxTokens == 0 {
				r.OSLAsked = 0
			}
			casetest.Compare(w.t, c.Name, c.Expect, r)
			if n, ok := c.Expect["requests_seen_by_server"]; ok && float64(len(w.srv.Truth())) != n {
				w.t.Errorf("%s: the server saw %d requests, want %v", c.Name, len(w.srv.Truth()), n)
			}
		})
	}
}

// c20: the server's own words end the run; without the field the same server answers, and the counts are estimates.
func TestStreamOptionsRefused(t *testing.T) {
	for _, c := range casetest.Read(t, casesDir) {
		if c.Name != "c20-stream-options-refused" {
			continue
		}
		virtual(t, script(t, casesDir+"/"+c.Name+".json"), func(w *world) {
			w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "10000"}
			w.spec.Target.Usage = false
			w.spec.Keep.Text = true
			w.spec.Phases[0].Stop.Requests = 2 // the first answer of the file is the refusal
			res := w.execute(w.offline())
			casetest.Compare(w.t, c.Name+" without usage", c.Expect["if_fallback"].(map[string]any), res.Records[1])
			if !has(res.Summary, "estimated_tokens") {
				w.t.Error("no caveat says that tokens are estimated")
			}
		})
	}
}

// c32: one of four requests never ends. The timeout cuts it, and the run ends and reports.
func TestOneNeverEnds(t *testing.T) {
	virtual(t, script(t, casesDir+"/c32-one-request-never-ends.json"), func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		w.spec.Phases[0].Load.Concurrency = 4
		w.spec.Phases[0].Stop.Requests = 4
		w.spec.Client.Timeout = 1500 * ms
		begun := time.Now()
		res := w.execute(w.offline())
		if d := time.Since(begun); d > 2500*ms {
			w.t.Errorf("the run took %v", d)
		}
		c := res.Summary.Requests
		m := res.Summary.Metrics
		ttft, tpot := m.Dist("ttft_ms"), m.Dist("tpot_ms")
		if c.Sent != 4 || c.OK != 3 || c.Failed != 1 || c.ByOutcome[bench.Timeout] != 1 || ttft.N != 3 || ttft.Min != 100 || ttft.Max != 100 || tpot.Min != 20 || tpot.Max != 20 ||
			m.Dist("osl").Mean*float64(c.OK) != 12 {
			w.t.Errorf("%+v ttft %+v tpot %+v", c, ttft, tpot)
		}
		if s, err := res.Dir.Summary(); err != nil || s.Requests.OK != 3 {
			w.t.Error("no summary on disk", err)
		}
	})
}

// c33: no silent retry.
func TestNoSilentRetry(t *testing.T) {
	virtual(t, script(t, casesDir+"/c33-no-silent-retry.json"), func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		w.spec.Phases[0].Stop.Requests = 5
		res := w.execute(w.offline())
		c := res.Summary.Requests
		if c.Sent != 5 || c.OK != 0 || c.Failed != 5 || c.ByOutcome[bench.ServerError] != 5 || res.Summary.Metrics.Dist("e2el_ms") != nil {
			w.t.Errorf("%+v", c)
		}
		if n := len(w.srv.Truth()); n != 5 {
			w.t.Errorf("the server saw %d requests", n)
		}
		if len(res.Summary.Errors) != 1 || !strings.Contains(res.Summary.Errors[0].Text, "overloaded") {
			w.t.Errorf("%+v", res.Summary.Errors)
		}
	})
}

// A stream that comes all at once gives no latency samples, and its tokens and end count (c19).
func TestAllAtOnceGivesNoSample(t *testing.T) {
	virtual(t, script(t, casesDir+"/c19-all-at-once.json"), func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "20"}
		w.spec.Phases[0].Stop.Requests = 5
		res := w.execute(w.offline())
		m := res.Summary.Metrics
		if m.Dist("ttft_ms") != nil || m.Dist("itl_ms") != nil || m.Dist("tpot_ms") != nil || m.Dist("e2el_ms").Mean != 600 || m.Dist("osl").Mean != 20 {
			w.t.Errorf("%+v", m)
		}
		if !has(res.Summary, "buffered_stream") || res.Summary.Verdict != bench.Doubtful {
			w.t.Errorf("%s %+v", res.Summary.Verdict, res.Summary.Caveats)
		}
	})
}
