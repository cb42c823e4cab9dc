package stats

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

// Reference: SciPy 1.17, kstwo.isf, which is exact.
func TestKolmogorovSmirnovP(t *testing.T) {
	for _, c := range []struct{ n, d, p, tolerance float64 }{
		{100, 0.05556096098527018, 0.9, 1e-4},
		{100, 0.08114721899006636, 0.5, 1e-3},
		{100, 0.12066340877827493, 0.1, 1e-3},
		{100, 0.16080868092856113, 0.01, 0.01},
		{100, 0.1926841642763391, 0.001, 0.03},
		{1000, 0.017898959454988025, 0.9, 1e-5},
		{1000, 0.026005301564520387, 0.5, 1e-4},
		{1000, 0.03853304260042531, 0.1, 1e-4},
		{1000, 0.05129418752666127, 0.01, 1e-3},
		{1000, 0.061462224771709525, 0.001, 3e-3},
		{100000, 0.0018045453524106908, 0.9, 1e-6},
		{100000, 0.0026153524979369023, 0.5, 1e-6},
		{100000, 0.0038684783412446275, 0.1, 1e-6},
		{100000, 0.005145321961471824, 0.01, 1e-4},
		{100000, 0.006163094369856496, 0.001, 1e-4},
		{1000000, 0.0005710067111591131, 0.9, 1e-7},
		{1000000, 0.000827406945417954, 0.5, 1e-7},
		{1000000, 0.001223681147500202, 0.1, 1e-7},
		{1000000, 0.0016274566551782183, 0.01, 1e-5},
		{1000000, 0.0019493073374210882, 0.001, 1e-5},
	} {
		relative(t, "p", ksP(c.n, c.d), c.p, c.tolerance)
	}
}

// The two series of the limit law meet, it falls from 1 to 0, and its quantiles are the known ones.
func TestKolmogorov(t *testing.T) {
	near(t, "at the change of series", kolmogorov(1), kolmogorov(math.Nextafter(1, 0)), 1e-14)
	near(t, "5 % point", kolmogorov(1.3580986393225505), 0.05, 1e-14)
	last := 1.0
	for x := -0.1; x < 40; x += 0.01 {
		p := kolmogorov(x)
		if !(p >= 0 && p <= last) {
			t.Fatalf("at %v: %v after %v", x, p, last)
		}
		last = p
	}
	if kolmogorov(0.02) != 1 || last != 0 {
		t.Errorf("ends %v, %v", kolmogorov(0.02), last)
	}
}

func TestKolmogorovSmirnovDistance(t *testing.T) {
	uniform := func(x float64) float64 { return min(1, max(0, x)) }
	for _, c := range []struct {
		xs []float64
		d  float64
	}{
		{[]float64{0.5}, 0.5},
		{[]float64{0.9, 0.7, 0.8}, 0.7},
		{[]float64{0.1, 0.2, 0.3, 0.4}, 0.6},
		{[]float64{0.125, 0.375, 0.625, 0.875}, 0.125},
		{[]float64{-1, 2}, 0.5},
	} {
		before := slices.Clone(c.xs)
		d, p, ok := KolmogorovSmirnov(c.xs, uniform)
		if !ok || math.Abs(d-c.d) > 1e-15 || !(p >= 0 && p <= 1) || !slices.Equal(c.xs, before) {
			t.Errorf("%v: %v, %v, %v, want %v", c.xs, d, p, ok, c.d)
		}
	}
	for name, c := range map[string]struct {
		xs  []float64
		cdf func(float64) float64
	}{
		"no samples":         {nil, uniform},
		"not finite":         {[]float64{math.Inf(1)}, uniform},
		"law is no number":   {[]float64{1}, func(float64) float64 { return math.NaN() }},
		"law is above 1":     {[]float64{1}, func(float64) float64 { return 1.1 }},
		"law is negative":    {[]float64{1}, func(float64) float64 { return -0.1 }},
		"rate that is none":  {[]float64{1}, ExponentialCDF(math.NaN())},
		"rate that is below": {[]float64{1}, ExponentialCDF(-1)},
		"shape 0":            {[]float64{1}, GammaCDF(0, 1)},
		"rate 0":             {[]float64{1}, ExponentialCDF(0)},
		"rate infinite":      {[]float64{1}, ExponentialCDF(math.Inf(1))},
		"gamma of rate 0":    {[]float64{1}, GammaCDF(1, 0)},
		"shape no number":    {[]float64{1}, GammaCDF(math.NaN(), 1)},
	} {
		if d, p, ok := KolmogorovSmirnov(c.xs, c.cdf); ok {
			t.Errorf("%s: %v, %v", name, d, p)
		}
	}
}

// gaps draws n gaps of shape k at a rate.
func gaps(s *rng.Stream, n int, k, rate float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = s.Gamma(k) / (k * rate)
	}
	return xs
}

// Under the null p is uniform: the p values of 1,000 samples pass the same test, and 5 % of them are below 0.05.
func TestKolmogorovSmirnovIsUniformUnderTheNull(t *testing.T) {
	const runs = 1000
	for _, c := range []struct {
		name string
		n    int
		k    float64
		cdf  func(float64) float64
	}{
		{"exponential", 100, 1, ExponentialCDF(20)},
		{"smooth gamma", 300, 4, GammaCDF(4, 20)},
		{"bursty gamma", 300, 0.25, GammaCDF(0.25, 20)},
	} {
		s := rng.New(53, c.name)
		ps, low := make([]float64, runs), 0
		for i := range ps {
			var ok bool
			if _, ps[i], ok = KolmogorovSmirnov(gaps(s, c.n, c.k, 20), c.cdf); !ok {
				t.Fatal("not defined")
			}
			if ps[i] < 0.05 {
				low++
			}
		}
		if d, p, _ := KolmogorovSmirnov(ps, func(x float64) float64 { return x }); p < 0.001 {
			t.Errorf("%s: the p values are not uniform: d %v, p %v", c.name, d, p)
		}
		if low < 22 || low > 78 { // 50 +- 4 standard deviations
			t.Errorf("%s: %d of %d are below 0.05", c.name, low, runs)
		}
	}
}

func TestKolmogorovSmirnovFindsAnotherLaw(t *testing.T) {
	s := rng.New(59, "other law")
	constant := slices.Repeat([]float64{0.05}, 100)
	for name, c := range map[string]struct {
		xs  []float64
		cdf func(float64) float64
	}{
		"rate 5 % too high":           {gaps(s, 10_000, 1, 21), ExponentialCDF(20)},
		"constant for Poisson":        {constant, ExponentialCDF(20)},
		"gamma for Poisson":           {gaps(s, 2000, 1.5, 20), ExponentialCDF(20)},
		"Poisson for gamma":           {gaps(s, 2000, 1, 20), GammaCDF(0.5, 20)},
		"Poisson, sleeps of 1 ms min": {clamped(gaps(s, 10_000, 1, 200), 0.001), ExponentialCDF(200)},
	} {
		if d, p, ok := KolmogorovSmirnov(c.xs, c.cdf); !ok || p >= 0.001 {
			t.Errorf("%s passes: d %v, p %v", name, d, p)
		}
	}
}

func clamped(xs []float64, least float64) []float64 {
	for i := range xs {
		xs[i] = max(xs[i], least)
	}
	return xs
}

// Reference: SciPy 1.17, gamma.cdf.
func TestArrivalLaws(t *testing.T) {
	relative(t, "gamma 0.25", GammaCDF(0.25, 10)(0.05), 0.6401572060830844, 1e-13)
	relative(t, "gamma 4", GammaCDF(4, 10)(0.05), 0.14287653950145296, 1e-13)
	relative(t, "exponential", ExponentialCDF(2)(0.3), 0.45118836390597344, 1e-14)
	relative(t, "exponential near 0", ExponentialCDF(2)(1e-20), 2e-20, 1e-14)
	for name, cdf := range map[string]func(float64) float64{"gamma": GammaCDF(0.5, 3), "exponential": ExponentialCDF(3)} {
		if cdf(-1) != 0 || cdf(0) != 0 || cdf(1e9) != 1 {
			t.Errorf("%s: ends %v %v %v", name, cdf(-1), cdf(0), cdf(1e9))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.01, 1000).Draw(t, "rate")
		x := rapid.Float64Range(0, 10).Draw(t, "t")
		if a, b := ExponentialCDF(rate)(x), GammaCDF(1, rate)(x); math.Abs(a-b) > 1e-13 {
			t.Fatalf("exponential %v, gamma of shape 1 %v", a, b)
		}
	})
}

func TestLag1(t *testing.T) {
	for _, c := range []struct {
		gaps []float64
		r    float64
	}{
		{[]float64{1, 2, 3, 4, 5}, 0.4},
		{[]float64{1, -1, 1, -1}, -0.75},
		{[]float64{2, 2, 5}, -1.0 / 6},
	} {
		near(t, "lag-1 correlation", must[float64](t, "r")(Lag1(c.gaps)), c.r, 1e-15)
	}
	for _, gaps := range [][]float64{nil, {1, 2}, {1, 1, 1}, {0.1, 0.1, 0.1, 0.1}, {1, 2, math.NaN()}} {
		if r, ok := Lag1(gaps); ok {
			t.Errorf("Lag1(%v) = %v", gaps, r)
		}
	}
	if limit, ok := Lag1Limit(2); ok {
		t.Errorf("limit of 2 gaps: %v", limit)
	}

	s := rng.New(61, "lag1")
	limit := must[float64](t, "limit")(Lag1Limit(1000))
	near(t, "limit", limit, 3.3/math.Sqrt(1000), 1e-15)
	out := 0
	for range 2000 {
		if r := must[float64](t, "r")(Lag1(gaps(s, 1000, 1, 1))); math.Abs(r) >= limit {
			out++
		}
	}
	if out > 8 { // 2 expected
		t.Errorf("%d of 2000 independent sequences are outside the limit", out)
	}
	near(t, "r of an AR(1) series", must[float64](t, "r")(Lag1(ar1(s, 100_000, 0.5))), 0.5, 0.02)
}

func arrivals(gaps []float64) []float64 {
	times := make([]float64, len(gaps)+1)
	for i, g := range gaps {
		times[i+1] = times[i] + g
	}
	return times
}

func TestDispersionIndex(t *testing.T) {
	// Ends, which are not counted, at 0 and 10; the ten bins hold 4, 6, 5, 5, ... : the squares sum to 2, the mean is 5.
	times := []float64{0}
	for bin, n := range []int{4, 6, 5, 5, 5, 5, 5, 5, 5, 5} {
		for i := range n {
			times = append(times, float64(bin)+0.1*float64(i+1))
		}
	}
	times = append(times, 10)
	d := must[Dispersion](t, "dispersion")(DispersionIndex(times, 10))
	near(t, "index", d.Index, 2.0/9/5, 1e-15)
	// Reference: SciPy 1.17, chi2.ppf with 9 degrees of freedom at 0.0005 and 0.9995, over 9
	near(t, "low", d.Low, 0.10796660543976003, 1e-12)
	near(t, "high", d.High, 3.2962009003996022, 1e-12)

	for name, c := range map[string]struct {
		times []float64
		bins  int
	}{
		"no times":            {nil, 10},
		"too few a bin":       {times[:len(times)-1], 10},
		"too few bins":        {times, 9},
		"no bins":             {times, 0},
		"negative bins":       {times, -1},
		"all equal":           {make([]float64, 100), 10},
		"descending":          {append(slices.Clone(times), 9), 10},
		"with a not a number": {append(slices.Clone(times), math.NaN()), 10},
	} {
		if d, ok := DispersionIndex(c.times, c.bins); ok {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestDispersionBins(t *testing.T) {
	for n, want := range map[int]int{0: 10, 80: 10, 87: 10, 88: 11, 101: 12, 10_000: 1250} {
		if got := DispersionBins(n); got != want {
			t.Errorf("%d arrivals: %d bins, want %d", n, got, want)
		}
	}
}

func TestDispersionTellsProcessesApart(t *testing.T) {
	s := rng.New(67, "dispersion")
	for _, n := range []int{100, 1000} {
		const runs = 2000
		out, sum := 0, 0.0
		for range runs {
			d := must[Dispersion](t, "dispersion")(DispersionIndex(arrivals(gaps(s, n, 1, 20)), DispersionBins(n)))
			sum += d.Index
			if d.Index < d.Low || d.Index > d.High {
				out++
			}
		}
		if out > 9 { // 2 expected
			t.Errorf("%d of %d Poisson processes of %d gaps are outside the band", out, runs, n)
		}
		free := float64(DispersionBins(n) - 1)
		near(t, "mean index of Poisson processes", sum/runs, 1, 4*math.Sqrt(2/free/runs))
	}
	for name, c := range map[string]struct {
		gaps         []float64
		above, below bool
	}{
		"constant": {slices.Repeat([]float64{0.05}, 1000), false, true},
		"smooth":   {gaps(s, 1000, 4, 20), false, true},
		"bursty":   {gaps(s, 1000, 0.25, 20), true, false},
	} {
		d := must[Dispersion](t, name)(DispersionIndex(arrivals(c.gaps), DispersionBins(len(c.gaps))))
		if d.Index > d.High != c.above || d.Index < d.Low != c.below {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
