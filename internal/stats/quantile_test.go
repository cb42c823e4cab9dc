package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

func TestQuantile(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		sorted []float64
		p      float64
		want   float64
		ok     bool
	}{
		{[]float64{1, 2, 3, 4}, 50, 2.5, true},
		{[]float64{1, 2, 3, 4}, 25, 1.75, true},
		{[]float64{1, 2, 3, 4}, 0, 1, true},
		{[]float64{1, 2, 3, 4}, 100, 4, true},
		{[]float64{7}, 99, 7, true},
		{[]float64{-3, -3, 5}, 50, -3, true},
		{[]float64{0, 10}, 99.9, 9.99, true},
		{[]float64{1, 2, inf}, 50, 2, true},
		{nil, 50, 0, false},
		{[]float64{1, 2}, -0.1, 0, false},
		{[]float64{1, 2}, 100.1, 0, false},
		{[]float64{1, 2}, nan, 0, false},
		{[]float64{nan, 2}, 0, 0, false},
		{[]float64{nan, 2}, 100, 0, false},
		{[]float64{-inf, inf}, 50, 0, false},
	} {
		got, ok := Quantile(c.sorted, c.p)
		if ok != c.ok || ok && math.Abs(got-c.want) > 1e-14 {
			t.Errorf("Quantile(%v, %v) = %v, %v, want %v, %v", c.sorted, c.p, got, ok, c.want, c.ok)
		}
	}
}

// A whole position gives the sample itself: 29 % of 101 samples is the 30th, though 0.29 * 100 is below 29 in floating point.
func TestQuantileWholePositions(t *testing.T) {
	sorted := make([]float64, 101)
	for i := range sorted {
		sorted[i] = math.Sqrt(float64(i))
	}
	for p := range sorted {
		if got, _ := Quantile(sorted, float64(p)); got != sorted[p] {
			t.Errorf("p%d is %v, want %v", p, got, sorted[p])
		}
	}
}

var samples = slicesOf(rapid.Float64Range(-1e9, 1e9), 1, 2, 3, 4, 5, 10, 31, 200)

// slicesOf generates slices of the given lengths, each as often: left alone, rapid makes nearly all of them short.
func slicesOf(value *rapid.Generator[float64], lengths ...int) *rapid.Generator[[]float64] {
	return rapid.Custom(func(t *rapid.T) []float64 {
		n := rapid.SampledFrom(lengths).Draw(t, "n")
		return rapid.SliceOfN(value, n, n).Draw(t, "values")
	})
}

func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sorted := slices.Sorted(slices.Values(samples.Draw(t, "samples")))
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		r := rapid.Float64Range(p, 100).Draw(t, "r")
		a, okA := Quantile(sorted, p)
		b, okB := Quantile(sorted, r)
		if !okA || !okB {
			t.Fatal("not defined")
		}
		if a < sorted[0] || b > sorted[len(sorted)-1] {
			t.Fatalf("p%v = %v or p%v = %v is outside the sample", p, a, r, b)
		}
		if a > b {
			t.Fatalf("p%v = %v is above p%v = %v", p, a, r, b)
		}
		at := p / 100 * float64(len(sorted)-1)
		if lo, hi := sorted[int(at)], sorted[int(math.Ceil(at))]; a < lo-1e-5 || a > hi+1e-5 {
			t.Fatalf("p%v = %v is not between its neighbours %v and %v", p, a, lo, hi)
		}
	})
}

func TestMeanSD(t *testing.T) {
	for _, c := range []struct {
		xs       []float64
		mean, sd float64
	}{
		{[]float64{2, 4, 4, 4, 5, 5, 7, 9}, 5, math.Sqrt(32.0 / 7)},
		{[]float64{1e9 + 1, 1e9 + 2, 1e9 + 3}, 1e9 + 2, 1},
		{[]float64{1e15, 1, -1e15, 1}, 0.5, math.Sqrt((2e30 + 1) / 3)},
		{[]float64{0.1, 0.1, 0.1}, 0.1, 0},
	} {
		relative(t, "mean", must[float64](t, "mean")(Mean(c.xs)), c.mean, 1e-15)
		relative(t, "sd", must[float64](t, "sd")(SD(c.xs)), c.sd, 1e-15)
	}
	for _, xs := range [][]float64{nil, {math.NaN()}, {1, math.Inf(1)}, {1e141, 1}} {
		if v, ok := Mean(xs); ok {
			t.Errorf("Mean(%v) = %v", xs, v)
		}
		if v, ok := SD(xs); ok {
			t.Errorf("SD(%v) = %v", xs, v)
		}
	}
	if _, ok := SD([]float64{1}); ok {
		t.Error("SD of one sample is defined")
	}
}

// The sum of a million times is right to the last digits, where plain summing loses four of them.
func TestMeanIsCompensated(t *testing.T) {
	const n = 1_000_000
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = 1e6 + float64(i)*1e-6 // up to 1e6 + 1
	}
	relative(t, "mean", must[float64](t, "mean")(Mean(xs)), 1e6+(n-1)*1e-6/2, 2e-16)
	relative(t, "sd", must[float64](t, "sd")(SD(xs)), 1e-6*math.Sqrt(float64(n)*(n+1)/12), 1e-9)
}

func TestMeanSDProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := samples.Draw(t, "samples")
		m, ok := Mean(xs)
		if !ok || m < slices.Min(xs) || m > slices.Max(xs) {
			t.Fatalf("mean %v, %v is outside the sample", m, ok)
		}
		other := rapid.Permutation(xs).Draw(t, "other order")
		if n, _ := Mean(other); math.Abs(n-m) > 1e-6 {
			t.Fatalf("mean %v becomes %v in another order", m, n)
		}
		if len(xs) < 2 {
			return
		}
		s, _ := SD(xs)
		if r, _ := SD(other); math.Abs(r-s) > 1e-6*math.Max(1, s) {
			t.Fatalf("sd %v becomes %v in another order", s, r)
		}
		if spread := slices.Max(xs) - slices.Min(xs); s > spread {
			t.Fatalf("sd %v is above the range %v", s, spread)
		}
	})
}

func BenchmarkQuantile(b *testing.B) {
	s := rng.New(1, "quantile")
	xs := make([]float64, 100_000)
	for i := range xs {
		xs[i] = s.Exp()
	}
	sorted := slices.Sorted(slices.Values(xs))
	b.Run("sorted", func(b *testing.B) {
		for b.Loop() {
			Quantile(sorted, 99)
		}
	})
	b.Run("sort", func(b *testing.B) {
		for b.Loop() {
			Quantile(slices.Sorted(slices.Values(xs)), 99)
		}
	})
}
