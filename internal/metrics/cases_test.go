package metrics

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// recordsCase is a case file of kind records.
type recordsCase struct {
	Name    string
	Records []struct {
		ID      int
		Sent    float64  `json:"sent_ms"`
		First   *float64 `json:"first_token_ms"`
		Last    *float64 `json:"last_token_ms"`
		End     *float64 `json:"end_ms"`
		Output  int      `json:"output_tokens"`
		Prompt  *int     `json:"prompt_tokens"`
		Outcome string
		Phase   string
		Class   string `json:"error_class"`
		Chunks  []struct {
			T      float64 `json:"t_ms"`
			Tokens int
		}
	}
	SLO    map[string]float64
	Expect map[string]any
}

func readRecordsCase(t *testing.T, name string) (c recordsCase) {
	t.Helper()
	files, _ := filepath.Glob("../../testdata/cases/" + name + "-*.json")
	if len(files) != 1 {
		t.Fatal("no case", name)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func msOf(v *float64) opt.Of[time.Duration] {
	if v == nil {
		return opt.Of[time.Duration]{}
	}
	return opt.Some(time.Duration(math.Round(*v * 1e6)))
}

// build makes the manifest and the journal of a case: a closed loop.
func (c recordsCase) build() (*bench.Manifest, []bench.Record) {
	m := &bench.Manifest{Schema: bench.ManifestSchema, State: bench.Complete, Spec: bench.Spec{Phases: []bench.Phase{
		{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}, Stop: bench.Stop{Requests: 1}}}}}
	for key, v := range c.SLO {
		name := map[string]string{"ttft_ms": "ttft", "tpot_ms": "tpot", "e2e_ms": "e2el"}[key]
		m.Spec.SLO = append(m.Spec.SLO, bench.Limit{Metric: name, Max: time.Duration(v * 1e6)})
	}
	var out []bench.Record
	for _, r := range c.Records {
		rec := bench.Record{ID: r.ID, Phase: r.Phase, Sent: msOf(&r.Sent), First: msOf(r.First), Last: msOf(r.Last), End: msOf(r.End)}
		if rec.Phase == "" {
			rec.Phase = bench.Measure
		}
		if rec.Phase == bench.Measure {
			m.Planned++
		}
		switch r.Class {
		case "":
			rec.Outcome = bench.OK
			rec.OSL, rec.OSLSource = opt.Some(r.Output), bench.FromUsage
		case "connection":
			rec.Outcome = bench.Refused
		case "http_5xx":
			rec.Outcome = bench.ServerError
		case "timeout":
			rec.Outcome = bench.Timeout
		}
		if rec.Outcome != bench.OK {
			rec.Error = r.Class
		}
		if r.Prompt != nil {
			rec.ISL, rec.ISLSource = opt.Some(*r.Prompt), bench.FromUsage
		}
		for _, ch := range r.Chunks {
			at := time.Duration(ch.T*1e6) - time.Duration(r.Sent*1e6)
			rec.Events = append(rec.Events, at)
			rec.EventTokens = append(rec.EventTokens, ch.Tokens)
		}
		if n := len(r.Chunks); n > 0 {
			rec.First, rec.Last = msOf(&r.Chunks[0].T), msOf(&r.Chunks[n-1].T)
		}
		rec.OutEvents = max(len(rec.Events), map[bool]int{true: 1}[rec.First.Defined()])
		if !rec.End.Defined() {
			rec.End = rec.Last
		}
		out = append(out, rec)
	}
	m.Spec.Phases[0].Stop.Requests = m.Planned
	return m, out
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Every records case gives exactly its numbers.
func TestRecordsCases(t *testing.T) {
	for _, name := range []string{"c34", "c35", "c36", "c37", "c38"} {
		c := readRecordsCase(t, name)
		m, records := c.build()
		s := Summarize(m, records)
		value := func(key string) float64 {
			v, ok := s.Metrics.Value(key)
			if !ok {
				t.Errorf("%s: %s is not defined", name, key)
			}
			return v
		}
		check := func(key string, want any) {
			what := name + " " + key
			dists := map[string]string{"ttft_ms": "ttft_ms", "tpot_ms": "tpot_ms", "e2e_ms": "e2el_ms"}
			if d, ok := dists[key]; ok {
				dist := s.Metrics.Dist(d)
				if want == nil {
					if dist != nil {
						t.Errorf("%s is %+v, want null", what, dist)
					}
					return
				}
				for stat, v := range want.(map[string]any) {
					have := map[string]float64{"mean": dist.Mean, "min": dist.Min, "max": dist.Max}
					for _, q := range dist.Quantiles {
						have[q.Key()] = q.Value
					}
					near(t, what+" "+stat, have[stat], v.(float64))
				}
				return
			}
			switch key {
			case "issued":
				near(t, what, float64(s.Requests.Sent), want.(float64))
			case "ok":
				near(t, what, float64(s.Requests.OK), want.(float64))
			case "failed":
				near(t, what, float64(s.Requests.Failed), want.(float64))
			case "warmup_requests":
				near(t, what, float64(s.Requests.Warmup), want.(float64))
			case "success_rate":
				near(t, what, value("success_rate"), want.(float64))
			case "failed_by_class":
				for class, n := range want.(map[string]any) {
					o := map[string]bench.Outcome{"connection": bench.Refused, "http_5xx": bench.ServerError, "timeout": bench.Timeout}[class]
					near(t, what+" "+class, float64(s.Requests.ByOutcome[o]), n.(float64))
				}
			case "window_ms":
				w, _ := s.Window.Get()
				near(t, what, w*1000, want.(float64))
			case "request_rate_ok":
				near(t, what, value("request_throughput"), want.(float64))
			case "output_tok_s":
				near(t, what, value("output_throughput"), want.(float64))
			case "total_tok_s":
				near(t, what, value("total_throughput"), want.(float64))
			case "good":
				near(t, what, value("goodput_ratio")*float64(s.Requests.Sent), want.(float64))
			case "goodput_req_s":
				near(t, what, value("goodput"), want.(float64))
			case "goodput_share":
				near(t, what, value("goodput_ratio"), want.(float64))
			case "tpot_samples":
				near(t, what, float64(s.Metrics.Dist("tpot_ms").N), want.(float64))
			case "buckets_tok":
				for i, w := range want.([]any) {
					near(t, what, s.Series[i].Tokens.Or(-1), w.(float64))
				}
				if len(s.Series) != len(want.([]any)) {
					t.Errorf("%s: %d buckets", what, len(s.Series))
				}
			case "peak_tok_s":
				near(t, what, value("peak_output_rate"), want.(float64))
			case "invariant":
				if value("peak_output_rate") < value("output_throughput") {
					t.Errorf("%s: %s", what, want)
				}
			case "json_is_strict":
				b, err := json.Marshal(s)
				if err != nil || !json.Valid(b) {
					t.Errorf("%s: %v", what, err)
				}
			case "exit_code_not_zero":
				if s.Verdict != bench.Void {
					t.Errorf("%s: verdict %s", what, s.Verdict)
				}
			case "accept", "alt":
			default:
				t.Errorf("no check for %s", what)
			}
		}
		for key, want := range c.Expect {
			check(key, want)
		}
	}
}
