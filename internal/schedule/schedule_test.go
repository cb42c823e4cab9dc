package schedule

import (
	"hash/fnv"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

func draw(s Shape, seed uint64, n int) (out []time.Duration) {
	for t := range s.Arrivals(rng.New(seed, "schedule")) {
		if len(out) == n {
			break
		}
		out = append(out, t)
	}
	return out
}

// The arrivals of a seed never change.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		s    Shape
		want uint64
	}{
		{Constant{20}, goldenConstant}, {Poisson{20}, goldenPoisson}, {Gamma{20, 0.25}, goldenGamma},
	} {
		h := fnv.New64a()
		for _, d := range draw(c.s, 7, 10_000) {
			h.Write([]byte(d.String()))
		}
		if h.Sum64() != c.want {
			t.Errorf("%s: arrivals of seed 7 hash to %#x, want %#x", c.s.Name(), h.Sum64(), c.want)
		}
	}
}

func TestConstantDoesNotDrift(t *testing.T) {
	a := draw(Constant{3}, 1, 3_000_001)
	if a[0] != 0 || a[3] != time.Second || a[3_000_000] != 1_000_000*time.Second {
		t.Error(a[0], a[3], a[3_000_000])
	}
}

// Mean rate, coefficient of variation and independence of the gaps, within 5 standard errors on 10^5 draws.
func TestLaws(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		s  Shape
		cv float64
	}{{Poisson{50}, 1}, {Gamma{50, 0.25}, 2}, {Gamma{50, 4}, 0.5}} {
		a := draw(c.s, 3, n+1)
		mean := a[n].Seconds() / float64(n) // about
		var sum, sq, lag float64
		prev := math.NaN()
		for i := 1; i <= n; i++ {
			g := (a[i] - a[i-1]).Seconds() * 50
			sum += g
			sq += g * g
			if !math.IsNaN(prev) {
				lag += (g - 1) * (prev - 1)
			}
			prev = g
		}
		m := sum / n
		v := sq/n - m*m
		if math.Abs(m-1) > 5*c.cv/math.Sqrt(n) {
			t.Errorf("%s: mean gap %v (rate %v)", c.s.Name(), m, 1/mean)
		}
		if math.Abs(math.Sqrt(v)/m-c.cv) > 0.03*c.cv {
			t.Errorf("%s: coefficient of variation %v, want %v", c.s.Name(), math.Sqrt(v)/m, c.cv)
		}
		if r := lag / n / v; math.Abs(r) > 5/math.Sqrt(n) {
			t.Errorf("%s: lag-1 correlation %v", c.s.Name(), r)
		}
	}
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := bench.Load{Rate: rapid.Float64Range(0.001, 1e6).Draw(t, "rate"), Burstiness: rapid.Float64Range(0.05, 50).Draw(t, "k"),
			Shape: rapid.SampledFrom([]bench.Shape{bench.Constant, bench.Poisson, bench.Gamma}).Draw(t, "shape")}
		s, err := Of(l)
		if err != nil {
			t.Fatal(err)
		}
		seed := rapid.Uint64().Draw(t, "seed")
		a, b := draw(s, seed, 200), draw(s, seed, 200)
		for i := range a {
			if a[i] != b[i] || a[i] < 0 || i > 0 && a[i] < a[i-1] {
				t.Fatalf("%d: %v, %v", i, a[i], b[i])
			}
		}
	})
}

func TestRefused(t *testing.T) {
	for _, l := range []bench.Load{
		{Shape: bench.Poisson}, {Shape: bench.Poisson, Rate: -1}, {Shape: bench.Poisson, Rate: math.Inf(1)}, {Shape: bench.Poisson, Rate: math.NaN()},
		{Shape: bench.Gamma, Rate: 1}, {Shape: bench.Gamma, Rate: 1, Burstiness: -2}, {Shape: bench.Closed, Rate: 1}, {Shape: bench.Inf, Rate: 1},
	} {
		if s, err := Of(l); err == nil || fault.CodeOf(err) != fault.Usage {
			t.Errorf("%+v gives %v, %v", l, s, err)
		}
	}
}

func BenchmarkPoisson(b *testing.B) {
	b.ReportAllocs()
	n := 0
	for range (Poisson{100}).Arrivals(rng.New(1, "schedule")) {
		if n++; n > b.N {
			break
		}
	}
}

const (
	goldenConstant = 0x6169be06eee1a8e2
	goldenPoisson  = 0x7c1bd2e87f9e5054
	goldenGamma    = 0x109b7ea0dfde5bd7
)
