package stats

import (
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

func TestMannWhitneyVectors(t *testing.T) {
	rows := readVectors(t).MannWhitney
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		got := must[RankTest](t, "test")(MannWhitney(r.X, r.Y))
		if got.U != r.U || !got.Exact {
			t.Errorf("%+v, want U %v", got, r.U)
		}
		for _, want := range []float64{r.Exact, r.MoreMath, r.ExactPermutation} {
			if want > 0 {
				relative(t, "exact p", got.P, want, 1e-13)
			}
		}
		null := newRankNull(r.X, r.Y)
		null.counts = nil
		relative(t, "normal p", null.twoSided(), r.Normal, 1e-12)
	}
}

func TestMannWhitneyMinPVectors(t *testing.T) {
	rows := readVectors(t).MinP
	if len(rows) != 10 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		relative(t, "smallest p", must[float64](t, "p")(MannWhitneyMinP(r.N, r.N)), r.P, 1e-13)
		x, y := make([]float64, r.N), make([]float64, r.N)
		for i := range x {
			x[i], y[i] = float64(i), float64(i+r.N)
		}
		relative(t, "p of samples apart", must[RankTest](t, "test")(MannWhitney(x, y)).P, r.P, 1e-13)
	}
	if p, ok := MannWhitneyMinP(0, 5); ok {
		t.Errorf("smallest p without a sample is %v", p)
	}
	if p, ok := MannWhitneyMinP(math.MaxInt32, 3); !ok || p <= 0 || p > 1e-26 {
		t.Errorf("smallest p of 3 and very many is %v, %v", p, ok)
	}
	if p, ok := MannWhitneyMinP(100_000, 100_000); !ok || p != 0 {
		t.Errorf("smallest p of huge samples is %v, %v", p, ok)
	}
}

func TestMannWhitney(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		u, p float64
	}{
		{[]float64{1, 2, 2, 3, 5}, []float64{2, 4, 4, 5, 6, 7, 7}, 5.5, 48.0 / 792}, // counted over all 792 dealings
		{[]float64{1, 2, 3}, []float64{4, 5, 6, 7}, 0, 2.0 / 35},
		{[]float64{3, 3, 3, 1}, []float64{3, 3, 2}, 6, 1},
		{[]float64{1, 1}, []float64{1, 1, 1}, 3, 1},
		{[]float64{5}, []float64{1}, 1, 1},
	} {
		if got := must[RankTest](t, "test")(MannWhitney(c.x, c.y)); got.U != c.u || math.Abs(got.P-c.p) > 1e-14 || !got.Exact {
			t.Errorf("MannWhitney(%v, %v) = %+v, want U %v, P %v", c.x, c.y, got, c.u, c.p)
		}
	}
	for _, c := range [][2][]float64{{nil, {1}}, {{1}, nil}, {{1}, {math.NaN()}}} {
		if got, ok := MannWhitney(c[0], c[1]); ok {
			t.Errorf("MannWhitney(%v) = %+v", c, got)
		}
	}
}

// Above 100 values the normal approximation serves; at the border the two agree. The first p is SciPy 1.17's.
func TestMannWhitneyLarge(t *testing.T) {
	x, y := make([]float64, 60), make([]float64, 70)
	for i := range x {
		x[i] = float64(i)
	}
	for i := range y {
		y[i] = float64(i)*1.1 + 3.5
	}
	got := must[RankTest](t, "test")(MannWhitney(x, y))
	if got.U != 1452.5 || got.Exact {
		t.Errorf("%+v", got)
	}
	relative(t, "p", got.P, 0.0025144593464654624, 1e-12)
	oneSided := newRankNull(y, x)
	relative(t, "one-sided p", oneSided.atLeast(), 0.0025144593464654624/2, 1e-12)

	exact := must[RankTest](t, "test")(MannWhitney(x[:50], y[:50]))
	if !exact.Exact {
		t.Error("100 values are not counted")
	}
	null := newRankNull(x[:50], y[:50])
	null.counts = nil
	relative(t, "p by the normal approximation", null.twoSided(), exact.P, 0.01)

	equal := slices.Repeat([]float64{0.1}, 80)
	if got := must[RankTest](t, "test")(MannWhitney(equal, equal)); got.P != 1 || got.U != 3200 || got.Exact {
		t.Errorf("equal values: %+v", got)
	}
	relative(t, "one-sided p of equal values", must[float64](t, "p")(Equivalent(equal, equal, 1e-30)), 1, 1e-15)
	if p := must[float64](t, "p")(Equivalent(equal, equal, 0.01)); p > 1e-12 {
		t.Errorf("equal values are equivalent with p %v", p)
	}
}

// drawSamples draws two small samples with many ties.
func drawSamples(t *rapid.T) (x, y []float64) {
	value := rapid.Map(rapid.IntRange(0, 12), func(i int) float64 { return float64(i) / 4 })
	sample := slicesOf(value, 1, 2, 3, 4, 5)
	return sample.Draw(t, "x"), sample.Draw(t, "y")
}

func pairsAbove(x, y []float64) (u float64) {
	for _, a := range x {
		for _, b := range y {
			switch {
			case a > b:
				u++
			case a == b:
				u += 0.5
			}
		}
	}
	return u
}

// P is the share of all dealings of the pooled values.
func TestMannWhitneyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawSamples(t)
		pool := slices.Concat(x, y)
		u := pairsAbove(x, y)
		middle := float64(len(x)*len(y)) / 2
		all, far, above := 0, 0, 0
		for mask := range 1 << len(pool) {
			if bits.OnesCount(uint(mask)) != len(x) {
				continue
			}
			var a, b []float64
			for i, v := range pool {
				if mask>>i&1 == 1 {
					a = append(a, v)
				} else {
					b = append(b, v)
				}
			}
			all++
			dealt := pairsAbove(a, b)
			if math.Abs(dealt-middle) >= math.Abs(u-middle) {
				far++
			}
			if dealt >= u {
				above++
			}
		}
		got, ok := MannWhitney(x, y)
		if !ok || got.U != u || math.Abs(got.P-float64(far)/float64(all)) > 1e-12 {
			t.Fatalf("%+v, want U %v, P %v", got, u, float64(far)/float64(all))
		}
		null := newRankNull(x, y)
		if p := null.atLeast(); math.Abs(p-float64(above)/float64(all)) > 1e-12 {
			t.Fatalf("one-sided p %v, want %v", p, float64(above)/float64(all))
		}
		back, _ := MannWhitney(y, x)
		if back.U != 2*middle-u || math.Abs(back.P-got.P) > 1e-12 {
			t.Fatalf("exchanged: %+v of %+v", back, got)
		}
		shuffled, _ := MannWhitney(rapid.Permutation(x).Draw(t, "x again"), rapid.Permutation(y).Draw(t, "y again"))
		if shuffled != got {
			t.Fatalf("in another order %+v, was %+v", shuffled, got)
		}
	})
}

func TestHodgesLehmannVector(t *testing.T) {
	v := readVectors(t).HodgesLehmann
	got := must[Shift](t, "shift")(HodgesLehmann(v.X, v.Y, 0.95))
	if got.Shift != v.Shift || got.CI != (Interval{v.CI[0], v.CI[1]}) || got.K != v.K {
		t.Errorf("%+v, want %+v", got, v)
	}
	near(t, "confidence", got.Confidence, v.Confidence, 1e-13)
}

func TestHodgesLehmannEdges(t *testing.T) {
	inf := math.Inf(1)
	got := must[Shift](t, "shift")(HodgesLehmann([]float64{1, 2, 3}, []float64{3, 4, 5}, 0.95))
	if got.Shift != 2 || got.CI != (Interval{-inf, inf}) || got.K != 0 || got.Confidence != 1 {
		t.Errorf("3 and 3 samples: %+v", got)
	}
	// 4 and 4: P(U = 0) = 1/70, so that the smallest and largest difference cover 1 - 2/70
	got = must[Shift](t, "shift")(HodgesLehmann([]float64{1, 2, 3, 4}, []float64{3, 4, 5, 6}, 0.95))
	if got.CI != (Interval{-1, 5}) || got.K != 1 || math.Abs(got.Confidence-(1-2.0/70)) > 1e-14 {
		t.Errorf("4 and 4 samples: %+v", got)
	}
	got = must[Shift](t, "shift")(HodgesLehmann([]float64{7, 7}, []float64{7, 7}, 0.5))
	if got.Shift != 0 || math.Signbit(got.Shift) {
		t.Errorf("equal samples: %+v", got)
	}
	for _, c := range []struct {
		x, y       []float64
		confidence float64
	}{
		{nil, []float64{1}, 0.95}, {[]float64{1}, nil, 0.95}, {[]float64{1}, []float64{1}, 1}, {[]float64{inf}, []float64{1}, 0.9},
	} {
		if got, ok := HodgesLehmann(c.x, c.y, c.confidence); ok {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestHodgesLehmannProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := slicesOf(rapid.Float64Range(-100, 100), 1, 2, 5, 8, 40)
		x, y := sample.Draw(t, "x"), sample.Draw(t, "y")
		beforeX, beforeY := slices.Clone(x), slices.Clone(y)
		var all []float64
		for _, a := range x {
			for _, b := range y {
				all = append(all, b-a)
			}
		}
		slices.Sort(all)
		d := newDifferences(x, y)
		for k, want := range all {
			if got := d.kth(k + 1); got != want {
				t.Fatalf("difference %d is %v, want %v", k+1, got, want)
			}
		}
		got, ok := HodgesLehmann(x, y, 0.9)
		want, _ := Quantile(all, 50)
		if !ok || math.Abs(got.Shift-want) > 1e-12*(1+math.Abs(want)) {
			t.Fatalf("shift %v, want %v", got.Shift, want)
		}
		if got.CI.Lo > got.Shift || got.CI.Hi < got.Shift || got.Confidence < 0.9-1e-12 {
			t.Fatalf("%+v", got)
		}
		again, _ := HodgesLehmann(rapid.Permutation(x).Draw(t, "x again"), rapid.Permutation(y).Draw(t, "y again"), 0.9)
		if again != got {
			t.Fatalf("in another order %+v, was %+v", again, got)
		}
		if !slices.Equal(x, beforeX) || !slices.Equal(y, beforeY) {
			t.Fatal("a sample was changed")
		}
	})
}

// The interval ends are those shifts at which the exact test begins to reject.
func TestHodgesLehmannInvertsTheTest(t *testing.T) {
	s := rng.New(41, "invert")
	x, y := ar1(s, 7, 0), ar1(s, 9, 0)
	got := must[Shift](t, "shift")(HodgesLehmann(x, y, 0.95))
	p := func(shift float64) float64 {
		moved := slices.Clone(y)
		for i := range moved {
			moved[i] -= shift
		}
		return must[RankTest](t, "test")(MannWhitney(x, moved)).P
	}
	const e = 1e-9
	for _, c := range []struct {
		shift float64
		in    bool
	}{{got.CI.Lo + e, true}, {got.CI.Lo - e, false}, {got.CI.Hi - e, true}, {got.CI.Hi + e, false}} {
		if v := p(c.shift); (v > 0.05) != c.in {
			t.Errorf("shift %v of %+v: p %v", c.shift, got, v)
		}
	}
}

func TestHodgesLehmannCovers(t *testing.T) {
	s := rng.New(43, "shift")
	covers(t, "shift of 8 and 8", 2000, 0.9501165501165502, -2, func() Interval {
		x, y := ar1(s, 8, 0), ar1(s, 8, 0)
		for i := range y {
			y[i] -= 2
		}
		return must[Shift](t, "shift")(HodgesLehmann(x, y, 0.95)).CI
	})
	// above 100 values k comes from the normal approximation
	covers(t, "shift of 60 and 60", 1000, 0.95, 0, func() Interval {
		return must[Shift](t, "shift")(HodgesLehmann(ar1(s, 60, 0), ar1(s, 60, 0), 0.95)).CI
	})
}

func TestHolm(t *testing.T) {
	for _, c := range []struct{ ps, want []float64 }{
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		{[]float64{0.5, 0.9}, []float64{1, 1}},
		{[]float64{0.2}, []float64{0.2}},
		{[]float64{0.04, 0.04}, []float64{0.08, 0.08}},
		{[]float64{0, 1}, []float64{0, 1}},
		{nil, nil},
	} {
		got := must[[]float64](t, "adjusted")(Holm(c.ps))
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
			t.Errorf("Holm(%v) = %v, want %v", c.ps, got, c.want)
		}
	}
	for _, ps := range [][]float64{{-0.1}, {0.5, 1.1}, {math.NaN()}} {
		if got, ok := Holm(ps); ok {
			t.Errorf("Holm(%v) = %v", ps, got)
		}
	}
}

func TestHolmProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := slicesOf(rapid.Float64Range(0, 1), 1, 2, 5, 30).Draw(t, "ps")
		before := slices.Clone(ps)
		got, ok := Holm(ps)
		if !ok || !slices.Equal(ps, before) {
			t.Fatal("undefined, or the input was changed")
		}
		for i := range ps {
			if got[i] < ps[i] || got[i] > min(1, float64(len(ps))*ps[i])+1e-15 {
				t.Fatalf("%v became %v", ps[i], got[i])
			}
			for j := range ps {
				if ps[i] < ps[j] && got[i] > got[j] {
					t.Fatal("the order changed")
				}
			}
		}
	})
}

func TestEquivalent(t *testing.T) {
	x := []float64{100, 101, 99, 100.5, 99.5}
	for _, c := range []struct {
		name   string
		y      []float64
		margin float64
		p      float64
	}{
		{"far inside", []float64{100.2, 100.8, 99.2, 100.4, 99.6}, 5, 1.0 / 252}, // C(10, 5)
		{"far above", []float64{110, 111, 109, 110.5, 109.5}, 5, 1},
		{"far below", []float64{90, 91, 89, 90.5, 89.5}, 5, 1},
	} {
		relative(t, c.name, must[float64](t, c.name)(Equivalent(x, c.y, c.margin)), c.p, 1e-13)
	}
	relative(t, "3 and 3", must[float64](t, "p")(Equivalent(x[:3], x[:3], 5)), 0.05, 1e-13)
	for _, margin := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if p, ok := Equivalent(x, x, margin); ok {
			t.Errorf("margin %v: %v", margin, p)
		}
	}
	if p, ok := Equivalent(nil, x, 1); ok {
		t.Errorf("no samples: %v", p)
	}
}

// With the true shift at the margin, equivalence is claimed in at most 5 % of cases; with none, and a margin of 3 standard
// deviations, mostly.
func TestEquivalentErrors(t *testing.T) {
	s := rng.New(47, "equivalent")
	claims := func(shift float64) (n int) {
		for range 2000 {
			x, y := ar1(s, 6, 0), ar1(s, 6, 0)
			for i := range y {
				y[i] += shift
			}
			if must[float64](t, "p")(Equivalent(x, y, 3)) <= 0.05 {
				n++
			}
		}
		return n
	}
	for _, shift := range []float64{3, -3} {
		if n := claims(shift); n > 130 || n < 40 { // 2000 * 0.0465 (the exact size of 6 and 6 at 0.05) is 93
			t.Errorf("%d of 2000 claims at a shift of %v", n, shift)
		}
	}
	if n := claims(0); n < 1900 {
		t.Errorf("%d of 2000 claims without a shift", n)
	}
}

func BenchmarkMannWhitney100(b *testing.B) {
	s := rng.New(1, "bench")
	x, y := ar1(s, 50, 0), ar1(s, 50, 0)
	b.ReportAllocs()
	for b.Loop() {
		MannWhitney(x, y)
	}
}
