package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

func TestKneedleVectors(t *testing.T) {
	v := readVectors(t)
	if len(v.Kneedle) != 3 {
		t.Fatalf("%d rows", len(v.Kneedle))
	}
	logN := make([]float64, len(v.USL.N))
	for i, n := range v.USL.N {
		logN[i] = math.Log2(n)
	}
	for _, c := range []struct{ x, y, levels []float64 }{
		{v.Kneedle[0].X, v.Kneedle[0].Y, v.Kneedle[0].X},
		{v.USL.N, v.USL.ExactX, v.USL.N},
		{logN, v.USL.ExactX, v.USL.N},
	} {
		want := v.Kneedle[0]
		if len(c.x) == len(logN) {
			want = v.Kneedle[1]
			if c.x[0] == 0 {
				want = v.Kneedle[2]
			}
		}
		if at := must[int](t, want.Name)(Kneedle(c.x, c.y, want.S)); c.levels[at] != want.Knee {
			t.Errorf("%s: knee at %v, want %v", want.Name, c.levels[at], want.Knee)
		}
	}
}

func TestKneedleEdges(t *testing.T) {
	eighths := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		name        string
		x, y        []float64
		sensitivity float64
		at          int
		ok          bool
	}{
		{"corner", []float64{0, 1, 2, 3, 4, 5}, []float64{0, 10, 10, 10, 10, 10}, 1, 1, true},
		{"corner not reached by a high sensitivity", []float64{0, 1, 2, 3, 4, 5}, []float64{0, 10, 10, 10, 10, 10}, 5, 0, false},
		// d = 0, 0.3, 0.28, 0.4, 0.1, 0: the second maximum takes the first one's place
		{"second maximum", []float64{0, 1, 2, 3, 4, 5}, []float64{0, 50, 68, 100, 90, 100}, 1, 3, true},
		// d = 0, 3/8, 3/8, then falling by 1/16 to 0: the begin of the flat top counts, if the threshold 3/8 - sensitivity/8 is above 0
		{"flat top", eighths, []float64{0, 4, 5, 5.5, 6, 6.5, 7, 7.5, 8}, 1, 1, true},
		{"threshold just above the end", eighths, []float64{0, 4, 5, 5.5, 6, 6.5, 7, 7.5, 8}, 2.99, 1, true},
		{"threshold at the end", eighths, []float64{0, 4, 5, 5.5, 6, 6.5, 7, 7.5, 8}, 3, 0, false},
		{"line", []float64{0, 1, 2, 3}, []float64{0, 1, 2, 3}, 1, 0, false},
		{"convex", []float64{0, 1, 2, 3, 4}, []float64{0, 1, 4, 9, 16}, 1, 0, false},
		{"equal y", []float64{0, 1, 2}, []float64{1, 1, 1}, 1, 0, false},
		{"x repeats", []float64{0, 1, 1, 2}, []float64{0, 1, 2, 2}, 1, 0, false},
		{"two points", []float64{0, 1}, []float64{0, 1}, 1, 0, false},
		{"lengths differ", []float64{0, 1, 2}, []float64{0, 1}, 1, 0, false},
		{"not a number", []float64{0, 1, 2}, []float64{0, math.NaN(), 2}, 1, 0, false},
		{"negative sensitivity", []float64{0, 1, 2, 3}, []float64{0, 9, 10, 10}, -1, 0, false},
	} {
		if at, ok := Kneedle(c.x, c.y, c.sensitivity); ok != c.ok || at != c.at {
			t.Errorf("%s: %d, %v, want %d, %v", c.name, at, ok, c.at, c.ok)
		}
	}
}

// Units do not move the knee, and the knee of two straight lines is where they meet.
func TestKneedleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(6, 40).Draw(t, "n")
		corner := rapid.IntRange(1, n-4).Draw(t, "corner")
		flat := rapid.Float64Range(0, 0.2).Draw(t, "flat")
		ax, bx := rapid.Float64Range(0.01, 100).Draw(t, "ax"), rapid.Float64Range(-100, 100).Draw(t, "bx")
		ay, by := rapid.Float64Range(0.01, 100).Draw(t, "ay"), rapid.Float64Range(-100, 100).Draw(t, "by")
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = bx + ax*float64(i)
			y[i] = by + ay*(float64(min(i, corner))+flat*float64(max(0, i-corner)))
		}
		if at, ok := Kneedle(x, y, 1); !ok || at != corner {
			t.Fatalf("knee at %d, %v, want %d", at, ok, corner)
		}
	})
}

func TestUSLVectors(t *testing.T) {
	v := readVectors(t).USL
	exact := must[USL](t, "fit")(FitUSL(v.N, v.ExactX))
	// the reference throughputs are rounded to 9 decimals
	relative(t, "lambda", exact.Lambda, v.Params.Lambda, 1e-10)
	relative(t, "sigma", exact.Sigma, v.Params.Sigma, 1e-9)
	relative(t, "kappa", exact.Kappa, v.Params.Kappa, 1e-9)
	for i, n := range v.N {
		relative(t, "throughput", exact.At(n), v.ExactX[i], 1e-10)
	}
	peak := must[float64](t, "peak")(exact.Peak())
	relative(t, "peak", peak, v.NStar, 1e-9)
	relative(t, "throughput at the peak", exact.At(peak), v.XStar, 1e-10)

	noisy := must[USL](t, "fit")(FitUSL(v.N, v.NoisyX))
	relative(t, "noisy lambda", noisy.Lambda, v.Noisy.Lambda, 1e-7)
	relative(t, "noisy sigma", noisy.Sigma, v.Noisy.Sigma, 1e-6)
	relative(t, "noisy kappa", noisy.Kappa, v.Noisy.Kappa, 1e-6)
	relative(t, "noisy peak", must[float64](t, "peak")(noisy.Peak()), v.Noisy.NStar, 1e-7)
}

var levels = []float64{1, 2, 4, 8, 16, 32, 64, 128}

func curve(f func(n float64) float64) []float64 {
	x := make([]float64, len(levels))
	for i, n := range levels {
		x[i] = f(n)
	}
	return x
}

func TestUSLBounds(t *testing.T) {
	linear := must[USL](t, "fit")(FitUSL(levels, curve(func(n float64) float64 { return 3 * n })))
	relative(t, "lambda of a line", linear.Lambda, 3, 1e-12)
	if n, ok := linear.Peak(); ok {
		t.Errorf("a line peaks at %v: %+v", n, linear)
	}
	above := must[USL](t, "fit")(FitUSL(levels, curve(func(n float64) float64 { return math.Pow(n, 1.2) })))
	if above.Sigma != 0 || above.Kappa != 0 {
		t.Errorf("faster than a line: %+v", above)
	}
	if x, ok := above.Saturation(); ok {
		t.Errorf("faster than a line saturates at %v", x)
	}
	saturating := must[USL](t, "fit")(FitUSL(levels, curve(func(n float64) float64 { return 50 * n / (1 + 0.1*(n-1)) })))
	if n, ok := saturating.Peak(); ok {
		t.Errorf("a saturating curve peaks at %v: %+v", n, saturating)
	}
	relative(t, "saturation", must[float64](t, "saturation")(saturating.Saturation()), 500, 1e-6)
	falling := must[USL](t, "fit")(FitUSL(levels, curve(func(n float64) float64 { return 50 / n })))
	if n, ok := falling.Peak(); !ok || n != 1 {
		t.Errorf("a falling curve peaks at %v, %v: %+v", n, ok, falling)
	}
}

func TestUSLPeakReach(t *testing.T) {
	for _, c := range []struct {
		u  USL
		n  float64
		ok bool
	}{
		{USL{Lambda: 1, Sigma: 0, Kappa: 1e-4, Max: 10}, 100, true},
		{USL{Lambda: 1, Sigma: 0, Kappa: 1e-4, Max: 9}, 100, false},
		{USL{Lambda: 1, Sigma: 0.5, Kappa: 10, Max: 9}, 1, true},
		{USL{Lambda: 1, Sigma: 1, Kappa: 0, Max: 9}, 1, true},
	} {
		n, ok := c.u.Peak()
		if ok != c.ok || math.Abs(n-c.n) > 1e-9 {
			t.Errorf("%+v: %v, %v", c.u, n, ok)
		}
	}
}

func TestUSLUndefined(t *testing.T) {
	x := curve(func(n float64) float64 { return n / (1 + 0.1*(n-1)) })
	if _, ok := FitUSL(levels[:6], x[:6]); !ok {
		t.Error("six levels are refused")
	}
	with := func(xs []float64, i int, v float64) []float64 {
		xs = slices.Clone(xs)
		xs[i] = v
		return xs
	}
	for name, c := range map[string][2][]float64{
		"five levels":         {levels[:5], x[:5]},
		"five levels, rounds": {slices.Concat(levels[:5], levels[:5]), slices.Concat(x[:5], x[:5])},
		"lengths":             {levels, x[:7]},
		"level below 1":       {with(levels, 0, 0.5), x},
		"no throughput":       {levels, with(x, 3, 0)},
		"not a number":        {levels, with(x, 3, math.NaN())},
		"infinite level":      {with(levels, 3, math.Inf(1)), x},
	} {
		if u, ok := FitUSL(c[0], c[1]); ok {
			t.Errorf("%s: %+v", name, u)
		}
	}
}

func TestUSLProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := USL{
			Lambda: rapid.Float64Range(0.1, 1000).Draw(t, "lambda"),
			Sigma:  rapid.Float64Range(0, 0.9).Draw(t, "sigma"),
			Kappa:  rapid.Float64Range(0, 0.1).Draw(t, "kappa"),
		}
		x := curve(want.At)
		got, ok := FitUSL(levels, x)
		if !ok || got.Lambda < 0 || got.Sigma < 0 || got.Kappa < 0 {
			t.Fatalf("%+v, %v", got, ok)
		}
		off := max(math.Abs(got.Lambda/want.Lambda-1), math.Abs(got.Sigma-want.Sigma), math.Abs(got.Kappa-want.Kappa))
		if off > 1e-7 {
			t.Fatalf("%+v, want %+v", got, want)
		}

		// With noise, no small step inside the bounds makes the squares smaller.
		s := rng.New(rapid.Uint64().Draw(t, "seed"), "noise")
		for i := range x {
			x[i] *= math.Exp(0.05 * s.Normal())
		}
		got, ok = FitUSL(levels, x)
		if !ok {
			t.Fatal("not defined")
		}
		misfit := func(u USL) (sum float64) {
			for i, n := range levels {
				sum += (x[i] - u.At(n)) * (x[i] - u.At(n))
			}
			return sum
		}
		best := misfit(got)
		for _, step := range []float64{1e-3, -1e-3} {
			for _, u := range []USL{
				{Lambda: got.Lambda * (1 + step), Sigma: got.Sigma, Kappa: got.Kappa},
				{Lambda: got.Lambda, Sigma: max(0, got.Sigma+step), Kappa: got.Kappa},
				{Lambda: got.Lambda, Sigma: got.Sigma, Kappa: max(0, got.Kappa+step)},
			} {
				if m := misfit(u); m < best*(1-1e-9) {
					t.Fatalf("%+v has %v, %+v less: %v", got, best, u, m)
				}
			}
		}
	})
}
