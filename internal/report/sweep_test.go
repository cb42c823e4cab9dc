package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// curve is a sweep of rates over a server that holds some 90 req/s.
func curve() *bench.Curve {
	c := &bench.Curve{Schema: bench.CurveSchema, Prony: "test", Begun: time.Date(2026, 11, 29, 15, 20, 1, 0, time.UTC), State: bench.Complete, Verdict: bench.Valid,
		Command: []string{"prony", "sweep", "--url", "http://127.0.0.1:8000", "--request-rate", "10..160x2", "--goodput", "ttft:500"},
		Spec: bench.Spec{Label: "qwen3 on one H100", Seed: 7, SeedGiven: true, Target: bench.Target{URLs: []string{"http://127.0.0.1:8000"}, Engine: "vllm", Endpoint: "chat", Model: "qwen3-8b", Stream: true},
			Workload: bench.Workload{Dataset: "random", ISL: "512", OSL: "128"}, SLO: []bench.Limit{{Metric: "ttft", Max: 500 * time.Millisecond}},
			Phases: []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Poisson, Burstiness: 1, Rate: 10}, Stop: bench.Stop{Requests: 1000}}}},
		Plan: bench.SweepPlan{Axis: bench.ByRate, Loads: []float64{10, 20, 40, 80, 160}, Rounds: 3, Order: "all levels in each round", Share: 0.99, Reserve: 0.2},
		Knee: bench.Knee{Kneedle: opt.Some(80.0), Axis: "log2", Note: "the USL needs 6 levels with at least one request in flight; there are 5"},
		GPUs: opt.Some(2)}
	for i, load := range c.Plan.Loads {
		l := bench.CurveLevel{Load: load, Meets: opt.Some(load <= 80), Sure: true, Frontier: load <= 80}
		for r := range 3 {
			l.Runs = append(l.Runs, bench.CurveRun{Round: r + 1, Dir: "q10-r1", Verdict: bench.Valid, Sent: 1000})
		}
		x := min(load, 92.0)
		good := x
		if load > 92 {
			good, l.Breaks, l.Why = 9, []string{"slo", "saturation"}, []string{"the SLO is missed: 9.8 % of the requests were good", "requests pile up (slope test)"}
		}
		add := func(key, unit string, v, half float64) {
			l.Metrics = append(l.Metrics, bench.CurveMetric{Key: key, Unit: unit, Mean: opt.Some(v), Low: opt.Some(v - half), High: opt.Some(v + half)})
		}
		add("request_throughput", "req/s", x, 0.02*x)
		add("goodput", "req/s", good, 0.03*good)
		add("goodput_ratio", "share", good/load, 0.002)
		add("output_throughput", "tok/s", 128*x, 128*0.02*x)
		add("per_user_throughput.mean", "tok/s", 90/math.Pow(1.3, float64(i)), 1)
		add("ttft_ms.p50", "ms", 30*math.Pow(1.6, float64(i)), 4)
		add("ttft_ms.p99", "ms", 60*math.Pow(2.2, float64(i)), 20)
		add("tpot_ms.mean", "ms", 11*math.Pow(1.3, float64(i)), 0.3)
		c.Levels = append(c.Levels, l)
		if load <= 80 {
			c.Frontier = append(c.Frontier, bench.FrontierStep{Load: load, PerUser: 90 / math.Pow(1.3, float64(i)), Rate: 64 * x})
		}
	}
	point := func(load, x float64, why string) *bench.CurvePoint {
		return &bench.CurvePoint{Load: load, Throughput: opt.Some(x), Goodput: opt.Some(x), Low: opt.Some(0.97 * x), High: opt.Some(1.03 * x), Why: why}
	}
	c.Best, c.Breaking = point(80, 80, "met in each of 3 rounds; 99.7 % of the requests were good"), point(160, 92, "requests pile up (slope test)")
	c.Capacity = &bench.Capacity{Load: 64, Throughput: opt.Some(64.0), From: 80, Reserve: 0.2, Why: "the highest load that meets the SLO, less a reserve of 20.0 %"}
	return c
}

// The screen and the Markdown of a sweep, as golden files; the page has its figures.
func TestSweep(t *testing.T) {
	m := NewSweep(curve(), "runs/2026-11-29T15-20-01Z-sweep")
	golden(t, "sweep.txt", render(t, Text{Width: 100}, m))
	golden(t, "sweep.md", render(t, Markdown{}, m))
	page := render(t, HTML{}, m)
	for _, want := range []string{"recommended capacity 64 req/s", "Throughput follows the rate up to 80 req/s, and reaches 92.0 at most", ">SLO<", ">capacity<", ">knee, SLO met<", ">breaks<", "tok/s/GPU", "can be had"} {
		if !strings.Contains(page, want) && !strings.Contains(page, strings.ReplaceAll(want, "knee, SLO met", "SLO met, knee")) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, "<svg"); n != 2*4 {
		t.Errorf("%d drawings", n)
	}
	for _, s := range []string{"NaN", "Inf", `id="metrics"`, `id="tokens"`} {
		if strings.Contains(page, s) {
			t.Errorf("the page has %s", s)
		}
	}
}

// What a sweep has nothing of is left out, and nothing fails.
func TestSweepOfNothing(t *testing.T) {
	for _, c := range []*bench.Curve{{State: bench.Stopped, Verdict: bench.Void, Stopped: "no"}, {Levels: []bench.CurveLevel{{Load: 1, Runs: []bench.CurveRun{{Round: 1}}}}, Search: &bench.SearchResult{}, Plan: bench.SweepPlan{Search: true}}} {
		m := NewSweep(c, "d")
		for _, r := range []Renderer{Text{}, HTML{}, Markdown{}} {
			if out := render(t, r, m); out == "" || strings.Contains(out, "NaN") {
				t.Errorf("%s: %s", r.Name(), out)
			}
		}
	}
	if got := NewSweep(&bench.Curve{Search: &bench.SearchResult{}}, "d").Result; got != "No load that was tried meets the SLO." {
		t.Error(got)
	}
}
