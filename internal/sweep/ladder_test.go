package sweep

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

func TestLadder(t *testing.T) {
	for s, want := range map[string]string{
		"1..256x2": "[1 2 4 8 16 32 64 128 256]", "10..100+10": "[10 20 30 40 50 60 70 80 90 100]", "1..10": "[1 2 4 8]", "8,1, 64": "[1 8 64]",
		"1..4x2,3,4": "[1 2 3 4]", "0.1..0.5+0.1": "[0.1 0.2 0.3 0.4 0.5]", "1..3x1.5": "[1 1.5 2.25]", "7": "[7]", "5..5": "[5]",
	} {
		if got, err := ParseLadder(s); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v, want %s", s, got, err, want)
		}
	}
	for _, s := range []string{"", "x", "0", "-1", "4..1", "1..8x1", "1..8x0.5", "1..8+0", "1..", "..4", "1..2e9", "1..1e6+1", "NaN", "Inf"} {
		if got, err := ParseLadder(s); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}

func TestSLOs(t *testing.T) {
	c, l, err := ParseSLO("ttft_p99<2000 and tpot_p99 < 50, e2el<=3000 and itl_p99_9<80 and ttft_mean<1")
	if want := "[{ttft p99 2000} {tpot p99 50} {itl p99_9 80} {ttft mean 1}]"; err != nil || fmt.Sprint(c) != want || len(l) != 1 || l[0] != (bench.Limit{Metric: "e2el", Max: 3 * time.Second}) {
		t.Errorf("%v %v %v", c, l, err)
	}
	for _, s := range []string{"", "ttft", "ttft<", "ttft<0", "ttft<-1", "ttft<x", "tfft<5", "ttft_p100<5", "ttft_max<5", "ttft<5 and ttft<6", "ttft>5", "ttft<1e12"} {
		if c, l, err := ParseSLO(s); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q: %v %v %v", s, c, l, err)
		}
	}
	if got := fmt.Sprint(Percentiles([]float64{50}, c)); got != "[50 99 99.9]" {
		t.Error(got)
	}
}

// One run decides far from the limit, several when they agree, and noise never.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		ms      []float64
		met     bool
		decided bool
	}{
		{[]float64{-1}, true, true}, {[]float64{1}, false, true}, {[]float64{-0.1}, true, false}, {[]float64{0.2}, false, false},
		{[]float64{-0.1, -0.11, -0.12}, true, true}, {[]float64{0.1, 0.12, 0.11}, false, true}, {[]float64{-0.5, 0.4, -0.2}, true, false}, {[]float64{0.2, 0.2}, false, true},
	} {
		if mean, decided := decide(c.ms); mean <= 0 != c.met || decided != c.decided {
			t.Errorf("%v: %v, %v", c.ms, mean, decided)
		}
	}
}

// Levels that no other beats in both rates, by descending rate of a user.
func TestFrontier(t *testing.T) {
	c := &bench.Curve{}
	for i, p := range [][2]float64{{100, 10}, {90, 30}, {95, 20}, {80, 25}, {70, 40}, {60, 40}} {
		c.Levels = append(c.Levels, bench.CurveLevel{Load: float64(i), Metrics: figuresOf(map[string]float64{"per_user_throughput.mean": p[0], "output_throughput": p[1]})})
	}
	if got := fmt.Sprint(frontier(c)); got != "[{0 100 10} {2 95 20} {1 90 30} {4 70 40}]" || c.Levels[3].Frontier || !c.Levels[4].Frontier {
		t.Error(got)
	}
}

func figuresOf(m map[string]float64) (out []bench.CurveMetric) {
	for key, v := range m {
		out = append(out, bench.CurveMetric{Key: key, Mean: defined(v, true)})
	}
	return out
}

// The search walks down from a load that its rounds do not confirm, and stays among loads of few digits.
func TestLoads(t *testing.T) {
	if got := between(bench.ByRate, 100, 200); got != 141.4 {
		t.Error(got)
	}
	if got := between(bench.ByConcurrency, 2, 3); got != 2 {
		t.Error(got)
	}
	s := &sweeper{Config: &Config{Plan: bench.SweepPlan{Axis: bench.ByConcurrency, Within: 0.03}}}
	if s.below(10) != 9 || s.below(1) != 1 || s.below(100) != 97 || s.half(1) != 1 || s.half(5) != 2 {
		t.Error(s.below(10), s.below(1), s.below(100), s.half(5))
	}
	if math.Abs(digits(123456, 4)-123500) > 1e-9 || digits(0.0123456, 4) != 0.01235 {
		t.Error(digits(123456, 4), digits(0.0123456, 4))
	}
}
