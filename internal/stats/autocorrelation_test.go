package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

// ar1 draws a stationary series whose neighbours correlate by phi.
func ar1(s *rng.Stream, n int, phi float64) []float64 {
	xs := make([]float64, n)
	x := s.Normal() / math.Sqrt(1-phi*phi)
	for i := range xs {
		x = phi*x + s.Normal()
		xs[i] = x
	}
	return xs
}

// An AR(1) series is worth n (1-phi)/(1+phi) samples.
func TestEffectiveNOfAR1(t *testing.T) {
	const n = 100_000
	for _, c := range []struct{ phi, tolerance float64 }{{0, 0.03}, {0.3, 0.05}, {0.5, 0.05}, {0.9, 0.10}, {0.98, 0.20}} {
		got := EffectiveN(ar1(rng.New(3, "ar1"), n, c.phi))
		relative(t, "effective n", got, n*(1-c.phi)/(1+c.phi), c.tolerance)
	}
	if got := EffectiveN(ar1(rng.New(3, "ar1"), n, -0.5)); got != n {
		t.Errorf("a series that swings is worth %v of %v samples", got, n)
	}
}

// Beyond 2^20 samples, where groups stand for them, the value is that of the whole series.
func TestEffectiveNOfLongSeries(t *testing.T) {
	const n = 3<<20 + 1
	for _, c := range []struct{ phi, tolerance float64 }{{0, 0.01}, {0.5, 0.02}, {0.98, 0.10}, {0.999, 0.30}} {
		xs := ar1(rng.New(3, "ar1"), n, c.phi)
		relative(t, "effective n", EffectiveN(xs), n*(1-c.phi)/(1+c.phi), c.tolerance)
		if c.phi < 0.99 {
			relative(t, "groups of 3", effectiveOfGroups(xs[:mostCorrelated], 3), EffectiveN(xs[:mostCorrelated]), 0.05)
		}
	}
	swings := ar1(rng.New(3, "ar1"), n, -0.5)
	if got := EffectiveN(swings); got != n {
		t.Errorf("a series that swings is worth %v of %v samples", got, n)
	}
	for i := range swings {
		swings[i] = float64(i % 2)
	}
	if got := effectiveOfGroups(swings[:1000], 4); got != 1000 {
		t.Errorf("groups that are equal are worth %v", got)
	}
}

func TestEffectiveNEdges(t *testing.T) {
	ramp := make([]float64, 1000)
	for i := range ramp {
		ramp[i] = float64(i)
	}
	for _, c := range []struct {
		name     string
		series   []float64
		min, max float64
	}{
		{"empty", nil, 0, 0},
		{"one", []float64{5}, 1, 1},
		{"three", []float64{5, 6, 7}, 3, 3},
		{"equal", []float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 6, 6},
		{"not finite", []float64{1, 2, 3, math.NaN(), 5}, 0, 0},
		{"too small to square", []float64{0, 1e-200, 0, 1e-200, 0}, 5, 5},
		{"too small to square, rising", []float64{0, 1e-200, 2e-200, 3e-200, 4e-200, 5e-200, 6e-200, 7e-200}, 1, 4},
		{"ramp", ramp, 1, 5},
	} {
		if got := EffectiveN(c.series); got < c.min || got > c.max {
			t.Errorf("%s: %v, want %v..%v", c.name, got, c.min, c.max)
		}
	}
}

func TestEffectiveNProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := samples.Draw(t, "samples")
		if got := EffectiveN(xs); got < 1 || got > float64(len(xs)) {
			t.Fatalf("%v of %d", got, len(xs))
		}
	})
}

// Both ways to the autocorrelations, near lags by products and far ones by a Fourier transform, give the definition's.
func TestCorrelogramProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := samples.Draw(t, "samples")
		c := newCorrelogram(xs)
		if slices.Min(xs) == slices.Max(xs) {
			if c != nil {
				t.Fatal("equal values have a correlogram")
			}
			return
		}
		m := mean(xs)
		widest := max(slices.Max(xs)-m, m-slices.Min(xs))
		product := func(lag int) (sum float64) {
			for i := range xs[lag:] {
				sum += (xs[i] - m) / widest * ((xs[i+lag] - m) / widest)
			}
			return sum
		}
		all := c.transform()
		for k := range xs {
			want := product(k) / product(0)
			if math.Abs(c.at(k)-want) > 1e-12 || math.Abs(all[k]-want) > 1e-12 {
				t.Fatalf("lag %d: %v and %v, want %v", k, c.at(k), all[k], want)
			}
		}
	})
}

func BenchmarkEffectiveN(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
		phi  float64
	}{
		{"1e5/short memory", 100_000, 0.5},
		{"1e5/long memory", 100_000, 0.99},
		{"1e6/short memory", 1_000_000, 0.5},
		{"1e6/long memory", 1_000_000, 0.99},
	} {
		b.Run(c.name, func(b *testing.B) {
			xs := ar1(rng.New(1, "bench"), c.n, c.phi)
			b.ReportAllocs()
			for b.Loop() {
				EffectiveN(xs)
			}
		})
	}
}
