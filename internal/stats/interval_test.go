package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

func TestQuantileCIVectors(t *testing.T) {
	rows := readVectors(t).QuantileCI.Rows
	if len(rows) != 88 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		lo, hi, coverage := QuantileCI(r.N, r.Q, r.Confidence)
		if lo != r.Lo || hi != r.Hi || math.Abs(coverage-r.Coverage) > 1e-11 {
			t.Errorf("n %d q %v confidence %v: %d..%d %.12f, want %d..%d %.12f",
				r.N, r.Q, r.Confidence, lo, hi, coverage, r.Lo, r.Hi, r.Coverage)
		}
	}
}

// The largest sample is an upper 99 % bound from 459 samples on for p99, 44 for p90 and 7 for p50.
func TestQuantileCIFirstFiniteBound(t *testing.T) {
	for _, c := range []struct {
		q float64
		n int
	}{{0.99, 459}, {0.9, 44}, {0.5, 7}} {
		if _, hi, _ := QuantileCI(c.n, c.q, 0.98); hi != c.n {
			t.Errorf("q %v: bound of %d samples is order %d", c.q, c.n, hi)
		}
		if _, hi, _ := QuantileCI(c.n-1, c.q, 0.98); hi != c.n {
			t.Errorf("q %v: bound of %d samples is order %d, want infinity", c.q, c.n-1, hi)
		}
	}
}

func TestQuantileCIEdges(t *testing.T) {
	for _, c := range []struct {
		n             int
		q, confidence float64
		lo, hi        int
	}{
		{0, 0.5, 0.95, 0, 1}, {-3, 0.5, 0.95, 0, 1}, {10, 0, 0.95, 0, 11}, {10, 1, 0.95, 0, 11}, {10, math.NaN(), 0.95, 0, 11},
		{10, 0.5, 1, 0, 11}, {10, 0.5, 0, 0, 11}, {10, 0.5, math.NaN(), 0, 11}, {1, 0.5, 0.95, 0, 2},
	} {
		if lo, hi, coverage := QuantileCI(c.n, c.q, c.confidence); lo != c.lo || hi != c.hi || coverage != 1 {
			t.Errorf("QuantileCI(%d, %v, %v) = %d, %d, %v", c.n, c.q, c.confidence, lo, hi, coverage)
		}
	}
}

func TestQuantileCIProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, rapid.SampledFrom([]int{10, 1000, 1_000_000}).Draw(t, "size")).Draw(t, "n")
		q := rapid.Float64Range(0.001, 0.999).Draw(t, "q")
		confidence := rapid.Float64Range(0.5, 0.9999).Draw(t, "confidence")
		lo, hi, coverage := QuantileCI(n, q, confidence)
		if lo < 0 || lo >= hi || hi > n+1 {
			t.Fatalf("orders %d..%d", lo, hi)
		}
		if coverage < confidence-1e-9 || coverage > 1 {
			t.Fatalf("coverage %v of %v", coverage, confidence)
		}
		if at := q * float64(n); float64(lo) > at+1 || float64(hi) < at {
			t.Fatalf("%d..%d does not hold %v", lo, hi, at)
		}
	})
}

func TestQuantileInterval(t *testing.T) {
	sorted := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	if ci, coverage := QuantileInterval(sorted, 50, 0.95); ci != (Interval{2, 9}) || math.Abs(coverage-0.978515625) > 1e-12 {
		t.Errorf("p50: %v %v", ci, coverage)
	}
	if ci, _ := QuantileInterval(sorted, 99, 0.95); ci != (Interval{9, math.Inf(1)}) {
		t.Errorf("p99: %v", ci)
	}
	spoiled := append([]float64{math.NaN()}, sorted...)
	if ci, coverage := QuantileInterval(spoiled, 50, 0.95); !math.IsInf(ci.Lo, -1) || coverage != 1 {
		t.Errorf("with a not a number: %v %v", ci, coverage)
	}
	if ci, coverage := QuantileInterval(nil, 50, 0.95); ci != (Interval{math.Inf(-1), math.Inf(1)}) || coverage != 1 {
		t.Errorf("no samples: %v %v", ci, coverage)
	}
}

// covers counts in how many of the runs an interval holds the truth, and fails when that is more than 4 standard errors from
// want.
func covers(t *testing.T, what string, runs int, want, truth float64, interval func() Interval) {
	t.Helper()
	in := 0
	for range runs {
		if ci := interval(); ci.Lo <= truth && truth <= ci.Hi {
			in++
		}
	}
	got := float64(in) / float64(runs)
	if limit := 4 * math.Sqrt(want*(1-want)/float64(runs)); math.Abs(got-want) > limit {
		t.Errorf("%s covers in %.3f of %d runs, want %.3f +- %.3f", what, got, runs, want, limit)
	}
}

func TestIntervalsCover(t *testing.T) {
	s := rng.New(17, "coverage")
	exponential := func(n int) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = s.Exp()
		}
		return xs
	}
	covers(t, "exact binomial interval of p50", 1500, 0.959962808387, math.Ln2, func() Interval {
		ci, _ := QuantileInterval(slices.Sorted(slices.Values(exponential(200))), 50, 0.95)
		return ci
	})
	covers(t, "exact binomial interval of p90", 1500, 0.966883900898, math.Log(10), func() Interval {
		ci, _ := QuantileInterval(slices.Sorted(slices.Values(exponential(200))), 90, 0.95)
		return ci
	})
	covers(t, "t interval of the mean", 3000, 0.95, 0, func() Interval {
		return must[Interval](t, "interval")(MeanCI(ar1(s, 5, 0), 0.95))
	})
	covers(t, "sectioned interval of p90", 1000, 0.95, math.Log(10), func() Interval {
		return must[Interval](t, "interval")(SectionedQuantileCI(exponential(1000), 90, 0.95, 10))
	})
	covers(t, "batch means of a correlated series", 1000, 0.95, 0, func() Interval {
		return must[Interval](t, "interval")(BatchMeansCI(ar1(s, 2000, 0.8), 0.95, 10))
	})
}

// Sojourn times in an M/M/1 queue: the independent interval fails as the reference simulation says, and sections help as far as
// it says.
func TestCoverageInAQueue(t *testing.T) {
	const runs, referenceRuns = 100, 1000
	for _, rho := range []float64{0, 0.5, 0.8} {
		s := rng.New(29, "queue")
		type count struct {
			row      coverageRow
			iid, sec int
		}
		var counts []count
		for _, row := range readVectors(t).Coverage.Rows {
			if row.Rho == rho {
				counts = append(counts, count{row: row})
			}
		}
		if len(counts) != 2 {
			t.Fatalf("load %v: %d reference rows", rho, len(counts))
		}
		for range runs {
			series := sojourns(s, counts[0].row.N, rho)
			sorted := slices.Sorted(slices.Values(series))
			for i := range counts {
				c := &counts[i]
				truth := -math.Log(1-c.row.Q) / (1 - rho)
				if ci, _ := QuantileInterval(sorted, 100*c.row.Q, 0.95); ci.Lo <= truth && truth <= ci.Hi {
					c.iid++
				}
				if ci, ok := SectionedQuantileCI(series, 100*c.row.Q, 0.95, 10); ok && ci.Lo <= truth && truth <= ci.Hi {
					c.sec++
				}
			}
		}
		for _, c := range counts {
			for _, x := range []struct {
				name string
				in   int
				want float64
			}{{"binomial", c.iid, c.row.IID}, {"sectioned", c.sec, c.row.Sec10}} {
				got := float64(x.in) / runs
				limit := 4 * math.Sqrt(x.want*(1-x.want)*(1.0/runs+1.0/referenceRuns))
				if math.Abs(got-x.want) > limit {
					t.Errorf("load %v, q %v, %s: covers %.3f, want %.3f +- %.3f", rho, c.row.Q, x.name, got, x.want, limit)
				}
			}
		}
	}
}

// sojourns draws n response times of a stationary M/M/1 queue with service rate 1 (Lindley's recursion).
func sojourns(s *rng.Stream, n int, rho float64) []float64 {
	xs := make([]float64, n)
	wait := 0.0
	if rho > 0 && s.Float64() < rho {
		wait = s.Exp() / (1 - rho)
	}
	for i := range xs {
		xs[i] = wait + s.Exp()
		if rho > 0 {
			wait = max(0, xs[i]-s.Exp()/rho)
		}
	}
	return xs
}

func TestSamplesForMargin(t *testing.T) {
	for _, r := range readVectors(t).QueriesForMargin {
		relative(t, "n", must[float64](t, "n")(SamplesForMargin(r.P, r.Margin, 0.99)), r.N, 1e-12)
	}
	for _, c := range [][3]float64{
		{0, 0.1, 0.9}, {1, 0.1, 0.9}, {0.5, 0, 0.9}, {0.5, 0.1, 1}, {0.5, 1e-200, 0.9}, {math.NaN(), 0.1, 0.9},
	} {
		if n, ok := SamplesForMargin(c[0], c[1], c[2]); ok {
			t.Errorf("SamplesForMargin(%v) = %v", c, n)
		}
	}
}

const t4 = 2.7764451051977934 // 97.5 % quantile of Student's t with 4 degrees of freedom

func TestMeanCI(t *testing.T) {
	ci := must[Interval](t, "interval")(MeanCI([]float64{1, 2, 3, 4, 5}, 0.95))
	near(t, "low end", ci.Lo, 3-t4*math.Sqrt(0.5), 1e-12)
	near(t, "high end", ci.Hi, 3+t4*math.Sqrt(0.5), 1e-12)
	if ci := must[Interval](t, "interval")(MeanCI([]float64{0.1, 0.1, 0.1}, 0.95)); ci != (Interval{0.1, 0.1}) {
		t.Errorf("equal values: %v", ci)
	}
	for _, c := range []struct {
		xs         []float64
		confidence float64
	}{{nil, 0.95}, {[]float64{1}, 0.95}, {[]float64{1, 2}, 0}, {[]float64{1, 2}, 1}, {[]float64{1, math.NaN()}, 0.95}} {
		if ci, ok := MeanCI(c.xs, c.confidence); ok {
			t.Errorf("MeanCI(%v, %v) = %v", c.xs, c.confidence, ci)
		}
	}
}

// Five sections that hold 1, 2, 3, 4 and 5 only: both their medians and their means are 1..5.
func TestSections(t *testing.T) {
	var series []float64
	for i := 1; i <= 5; i++ {
		for range 10 {
			series = append(series, float64(i))
		}
	}
	before := slices.Clone(series)
	h := t4 * math.Sqrt(10.0/(5*4))
	for name, ci := range map[string]Interval{
		"median": must[Interval](t, "interval")(SectionedQuantileCI(series, 50, 0.95, 5)),
		"mean":   must[Interval](t, "interval")(BatchMeansCI(series, 0.95, 5)),
	} {
		near(t, name+" low", ci.Lo, 3-h, 1e-12)
		near(t, name+" high", ci.Hi, 3+h, 1e-12)
	}
	if !slices.Equal(series, before) {
		t.Error("the series was changed")
	}
}

// Several percentiles at once are those one by one, by the definition; one whose sections are too short is left out.
func TestSectionedQuantileCIs(t *testing.T) {
	series := ar1(rng.New(4, "sections"), 1003, 0.7)
	before, sorted := slices.Clone(series), slices.Sorted(slices.Values(series))
	got := SectionedQuantileCIs(series, sorted, []float64{50, 90, 99, math.NaN()}, 0.95, 7)
	if len(got) != 2 {
		t.Errorf("%v: 143 samples a section are enough for p50 and p90 alone", got)
	}
	t6 := 2.446911851144979
	for _, p := range []float64{50, 90} {
		q, _ := Quantile(sorted, p)
		sum := 0.0
		for i := range 7 {
			qi, _ := Quantile(slices.Sorted(slices.Values(section(series, i, 7))), p)
			sum += (qi - q) * (qi - q)
		}
		near(t, "low", got[p].Lo, q-t6*math.Sqrt(sum/42), 1e-9)
		near(t, "high", got[p].Hi, q+t6*math.Sqrt(sum/42), 1e-9)
	}
	if !slices.Equal(series, before) {
		t.Error("the series was changed")
	}
}

func TestSectionLimits(t *testing.T) {
	for p, want := range map[float64]int{50: 10, 10: 50, 90: 50, 95: 100, 99: 500, 99.9: 5000} {
		if got := must[int](t, "length")(SectionLength(p)); got != want {
			t.Errorf("p%v: %d, want %d", p, got, want)
		}
		series := ar1(rng.New(1, "sections"), 7*want, 0)
		if _, ok := SectionedQuantileCI(series, p, 0.95, 7); !ok {
			t.Errorf("p%v: %d samples are refused", p, len(series))
		}
		if _, ok := SectionedQuantileCI(series[1:], p, 0.95, 7); ok {
			t.Errorf("p%v: %d samples are accepted", p, len(series)-1)
		}
	}
	series := ar1(rng.New(1, "sections"), 1000, 0)
	for _, c := range []struct {
		p, confidence float64
		sections      int
	}{
		{0, 0.95, 10}, {100, 0.95, 10}, {math.NaN(), 0.95, 10}, {50, 1, 10},
		{50, 0.95, MinSections - 1}, {50, 0.95, 0}, {50, 0.95, -1},
	} {
		if ci, ok := SectionedQuantileCI(series, c.p, c.confidence, c.sections); ok {
			t.Errorf("%+v: %v", c, ci)
		}
	}
	if _, ok := BatchMeansCI(series[:50], 0.95, 5); !ok {
		t.Error("batch means: 50 samples are refused")
	}
	if _, ok := BatchMeansCI(series[:49], 0.95, 5); ok {
		t.Error("batch means: 49 samples are accepted")
	}
}

func TestBlockBootstrapDrawsBlocks(t *testing.T) {
	const n, block = 103, 20
	series := make([]float64, n)
	for i := range series {
		series[i] = float64(i)
	}
	starts := map[float64]bool{}
	statistic := func(xs []float64) float64 {
		if len(xs) != n {
			t.Fatalf("%d samples", len(xs))
		}
		for i, x := range xs {
			if i%block == 0 {
				starts[x] = true
			} else if x != xs[i-1]+1 {
				t.Fatalf("sample %d is %v after %v: not a block", i, x, xs[i-1])
			}
		}
		return xs[0]
	}
	must[Interval](t, "interval")(MovingBlockBootstrap(series, block, 2000, 0.95, rng.New(5, "bootstrap"), statistic))
	if len(starts) != n-block+1 {
		t.Errorf("%d different blocks, want %d", len(starts), n-block+1)
	}
}

func TestBlockBootstrap(t *testing.T) {
	average := func(xs []float64) float64 { return mean(xs) }
	boot := func(xs []float64, block int) Interval {
		return must[Interval](t, "interval")(MovingBlockBootstrap(xs, block, 1000, 0.95, rng.New(5, "bootstrap"), average))
	}
	independent := ar1(rng.New(6, "ar1"), 400, 0)
	ci, want := boot(independent, 1), must[Interval](t, "interval")(MeanCI(independent, 0.95))
	near(t, "width of independent samples", (ci.Hi-ci.Lo)/(want.Hi-want.Lo), 1, 0.1)
	if again := boot(independent, 1); again != ci {
		t.Errorf("the same seed gives %v and %v", ci, again)
	}
	correlated := ar1(rng.New(6, "ar1"), 10_000, 0.8)
	plain, blocks := boot(correlated, 1), boot(correlated, 100)
	// the standard error of an AR(1) mean is sqrt((1+phi)/(1-phi)) = 3 times that of independent samples
	near(t, "widening by blocks", (blocks.Hi-blocks.Lo)/(plain.Hi-plain.Lo), 3, 0.1)
}

func TestBlockBootstrapLimits(t *testing.T) {
	series := ar1(rng.New(1, "limits"), 100, 0)
	average := func(xs []float64) float64 { return mean(xs) }
	for _, c := range []struct {
		name         string
		series       []float64
		block, draws int
		confidence   float64
		statistic    func([]float64) float64
		ok           bool
	}{
		{"five blocks", series, 20, 2000, 0.95, average, true},
		{"less than five blocks", series[:99], 20, 2000, 0.95, average, false},
		{"no block", series, 0, 2000, 0.95, average, false},
		{"empty", nil, 1, 2000, 0.95, average, false},
		{"one draw beyond each end", series, 20, 41, 0.95, average, true},
		{"too few draws", series, 20, 39, 0.95, average, false},
		{"no draws", series, 20, 0, 0.95, average, false},
		{"confidence", series, 20, 2000, 1, average, false},
		{"confidence not a number", series, 20, 2000, math.NaN(), average, false},
		{"statistic not a number", series, 20, 2000, 0.95, func([]float64) float64 { return math.NaN() }, false},
	} {
		if ci, ok := MovingBlockBootstrap(c.series, c.block, c.draws, c.confidence, rand.NewPCG(1, 2), c.statistic); ok != c.ok {
			t.Errorf("%s: %v, %v", c.name, ci, ok)
		}
	}
}
