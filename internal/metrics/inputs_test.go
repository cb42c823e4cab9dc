package metrics

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// Two requests of 4 texts in 2 s, and one that failed: 4 texts/s, 40 tokens/s. What belongs to generated text is not defined, and not 0.
func TestInputs(t *testing.T) {
	at := func(ms int) opt.Of[time.Duration] { return opt.Some(time.Duration(ms) * time.Millisecond) }
	m := &bench.Manifest{State: bench.Complete, Planned: 3, Spec: bench.Spec{Target: bench.Target{URLs: []string{"http://a"}, Task: bench.Embed},
		Workload: bench.Workload{Dataset: "random", ISL: "10", Batch: 4},
		SLO:      []bench.Limit{{Metric: "e2el", Max: time.Second}},
		Phases:   []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}, Stop: bench.Stop{Requests: 3}}}}}
	one := func(id, from, to int, o bench.Outcome) bench.Record {
		r := bench.Record{ID: id, Phase: bench.Measure, Outcome: o, Status: 200, Slot: at(from), Sent: at(from), End: at(to), Inputs: 4, ISLAsked: 40}
		if o == bench.OK {
			r.Last, r.Dimensions, r.ISL, r.ISLSource = at(to), 768, opt.Some(40), bench.FromUsage
		}
		return r
	}
	s := Summarize(m, []bench.Record{one(0, 0, 500, bench.OK), one(1, 500, 1000, bench.Malformed), one(2, 1000, 2000, bench.OK)})
	for key, want := range map[string]float64{"inputs_throughput": 4, "input_throughput": 40, "request_throughput": 1, "goodput": 1} {
		if v, ok := s.Metrics.Value(key); !ok || v != want {
			t.Errorf("%s is %v, want %v", key, v, want)
		}
	}
	for key, want := range map[string]float64{"e2el_ms": 750, "inputs": 4, "dimensions": 768, "isl": 40} {
		if d := s.Metrics.Dist(key); d == nil || d.Mean != want || d.N != 2 {
			t.Errorf("%s is %+v, want %v", key, d, want)
		}
	}
	for _, d := range Table() {
		if d.For != Generating {
			continue
		}
		if x := s.Metrics.Get(d.Key); x.Dist != nil || x.Scalar != nil && x.Scalar.Value.Defined() {
			t.Errorf("%s is defined: %+v %+v", d.Key, x.Dist, x.Scalar)
		}
	}
	for _, c := range s.Caveats {
		switch c.Code {
		case "length_not_forced", "estimated_tokens", "lengths_differ", "excluded", "no_success":
			t.Errorf("caveat %s: %s", c.Code, c.Text)
		}
	}
	if s.Series[0].Tokens.Defined() || s.Steady.OutputThroughput.Defined() || len(s.Tokens.OSLSource) > 0 {
		t.Errorf("output tokens: %+v, %+v, %+v", s.Series[0].Tokens, s.Steady.OutputThroughput, s.Tokens)
	}

	// the same journal of text that is generated has none of the metrics of inputs
	m.Spec.Target.Task = bench.Generate
	s = Summarize(m, []bench.Record{one(0, 0, 500, bench.OK)})
	if s.Metrics.Dist("inputs") != nil || s.Metrics.Dist("dimensions") != nil {
		t.Error("inputs where text is generated")
	}
	if _, ok := s.Metrics.Value("inputs_throughput"); ok {
		t.Error("inputs/s where text is generated")
	}
}
