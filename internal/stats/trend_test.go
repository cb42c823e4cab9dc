package stats

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/rng"
)

func TestMSER5Vector(t *testing.T) {
	v := readVectors(t).MSER5
	cut := must[int](t, "cut")(MSER5(v.Series))
	if cut != v.Drop || cut != v.DBatches*v.Batch {
		t.Errorf("cut %d, want %d", cut, v.Drop)
	}
	values := mser(batchMeans(v.Series))
	if len(values) != v.Batches/2+1 {
		t.Errorf("%d cuts looked at, want %d", len(values), v.Batches/2+1)
	}
	relative(t, "smallest value", values[v.DBatches], v.MinValue, 1e-12)
	relative(t, "value without a cut", values[0], v.AtZero, 1e-12)
	relative(t, "mean of the rest", mean(v.Series[cut:]), v.TruncatedMean, 1e-12)
}

func TestMSER5(t *testing.T) {
	make1 := func(n int, f func(i int) float64) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = f(i)
		}
		return xs
	}
	for _, c := range []struct {
		name   string
		series []float64
		cut    int
		ok     bool
	}{
		{"equal", make1(100, func(int) float64 { return 0.1 }), 0, true},
		{"99 samples", make1(99, func(int) float64 { return 0.1 }), 0, false},
		{"step at a quarter", make1(400, func(i int) float64 { return math.Floor(float64(i+300) / 400) }), 100, true},
		{"step in a batch", make1(400, func(i int) float64 { return math.Floor(float64(i+298) / 400) }), 105, true},
		{"ramp, then plateau", make1(1000, func(i int) float64 { return min(float64(i), 200) }), 200, true},
		{"ramp to the end", make1(1000, func(i int) float64 { return float64(i) }), 500, false},
		{"step beyond the half", make1(400, func(i int) float64 { return math.Floor(float64(i+180) / 400) }), 200, false},
		{"not a number", make1(400, func(int) float64 { return math.NaN() }), 0, false},
	} {
		if cut, ok := MSER5(c.series); ok != c.ok || cut != c.cut {
			t.Errorf("%s: %d, %v, want %d, %v", c.name, cut, ok, c.cut, c.ok)
		}
	}
}

func TestMSERProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := slicesOf(rapid.Float64Range(0, 1000), 1, 2, 20, 60).Draw(t, "means")
		for d, got := range mser(z) {
			rest := z[d:]
			want := squares(rest, mean(rest)) / float64(len(rest)*len(rest))
			if math.Abs(got-want) > 1e-9*math.Max(1, want) {
				t.Fatalf("cut %d: %v, want %v", d, got, want)
			}
		}
	})
}

func TestTrendVectors(t *testing.T) {
	rows := readVectors(t).Trend
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, r := range rows {
		mk := must[Trend](t, "trend")(MannKendall(r.Series))
		if mk.S != r.MannKendall.S {
			t.Errorf("S %d, want %d", mk.S, r.MannKendall.S)
		}
		near(t, "var", mk.Var, r.MannKendall.Var, 1e-12)
		near(t, "z", mk.Z, r.MannKendall.Z, 1e-12)
		relative(t, "p", mk.P, r.MannKendall.P, 1e-12)
		near(t, "slope", must[float64](t, "slope")(TheilSen(r.Series)), r.TheilSen, 1e-15)
		step := must[Step](t, "step")(Pettitt(r.Series))
		if step.K != r.Pettitt.K || step.Last != r.Pettitt.Last {
			t.Errorf("step %+v, want %+v", step, r.Pettitt)
		}
		relative(t, "p of the step", step.P, r.Pettitt.P, 1e-12)
	}
}

// Reference: pymannkendall 1.4.3, hamed_rao_modification_test with lag at the end of the run of significant autocorrelations.
func TestHamedRaoReference(t *testing.T) {
	for _, c := range []struct {
		series      []float64
		want        Trend
		uncorrected float64 // variance
		slope       float64
	}{
		{[]float64{
			-0.8019, -1.7955, -1.3117, -0.3486, 0.9489, 0.7051, -0.0996, -0.8105, 0.3004, 1.857, 1.433, -0.3235, -1.0984,
			0.999, 0.8643, -1.1476, -0.7022, -1.5106, -1.4576, -1.2806, -1.3957, -0.194, -0.0855, -0.5427, 0.186, 1.0475,
			-0.9046, -0.6855, -1.274, -0.8156, -1.6528, -0.841, -0.4085, -0.4114, -1.1528, -0.9419, -1.5064, -2.1051, -0.8803,
			-1.4755,
		}, Trend{-194, 12862.106707317073, -1.7017715341945108, 0.08879820464209942}, 7366.666666666667, -0.028131666666666666},
		{[]float64{
			1.1703, 1.5458, -0.9028, -0.3438, -1.3234, -0.8713, -0.5413, -2.3393, -1.84, -1.5098, -0.0578, -1.1819, -0.0463,
			-1.0854, -1.0421, -1.5179, 0.4412, 0.935, 3.1473, 2.909, 2.9483, 2.9745, 1.5485, 1.0899, 2.1923, 1.2201, 1.1279,
			0.8563, 1.2996, 0.6388, 0.3918, 0.6167, 0.6377, -0.3126, 0.786, -0.6363, -1.5315, -2.2366, -0.4776, -0.5709,
			-1.2437, -1.8766, -0.7595, -1.4505, -2.1484, -0.7479, -1.5752, -1.2771, -0.7497, -0.8161, -0.4684, 1.1709, 0.4657,
			-0.7673, -2.2049, -1.5762, -1.2806, -0.4533, -0.6006, -0.715, -1.0348, -1.0541, -0.3847, -0.4536, -0.0181, 2.0905,
			2.1475, 0.1351, 2.0391, 1.9892, 0.668, 1.5947, 1.3569, 0.5606, -0.0121, -0.7699, -0.2558, 1.1278, 0.7054, 1.1586,
			2.9337, 1.089, 1.2728, 0.8405, -0.2119, -0.9122, -0.3888, 0.4297, 0.0402, 0.3565, 1.2488, 1.4507, 2.1672, 2.2644,
			2.3621, 3.7721, 3.5586, 2.9185, 3.0539, 1.5226,
		}, Trend{1164, 647576.3273602871, 1.4452208968420006, 0.14839584855186772}, 112750.0, 0.018561678004535148},
		{[]float64{
			-0.3377, 0.6681, 0.914, 1.936, 0.8129, -1.1032, 1.546, 1.7573, -0.3038, 1.3123, 0.6213, -1.4954, -0.9425, -0.8039,
			1.3573, -0.1552, -0.2157, -0.257, -0.3698, -0.944, -0.0345, 1.193, 1.2372, -0.2906, -1.1181, -0.1743, -0.6163,
			-0.7107, -1.792, 1.4117, 1.6653, -0.1178, 1.0571, 1.9673, -1.3946, -0.8928, -0.5251, 0.6642, 0.3762, 0.1581,
			0.2489, 2.2029, 3.2971, 1.056, -0.2358, 2.8722, 0.4491, -0.1077, 0.2855, 0.8954, 1.6912, 1.3775, -0.0054, 0.8262,
			0.9084, 2.5743, 1.3547, -0.4491, -0.8727, 1.4591,
		}, Trend{248, 24583.333333333332, 1.5753482262339031, 0.11517608794844492}, 24583.333333333332, 0.013332034632034633},
	} {
		plain := must[Trend](t, "trend")(MannKendall(c.series))
		got := must[Trend](t, "trend")(MannKendallHamedRao(c.series))
		if got.S != c.want.S || plain.S != c.want.S {
			t.Errorf("S %d and %d, want %d", plain.S, got.S, c.want.S)
		}
		relative(t, "uncorrected variance", plain.Var, c.uncorrected, 1e-12)
		relative(t, "corrected variance", got.Var, c.want.Var, 1e-12)
		relative(t, "z", got.Z, c.want.Z, 1e-12)
		relative(t, "p", got.P, c.want.P, 1e-12)
		relative(t, "slope", must[float64](t, "slope")(TheilSen(c.series)), c.slope, 1e-12)
	}
}

// False alarms at P < 0.05 of series without a trend: the corrected test has few where the uncorrected one has many.
func TestHamedRaoFalseAlarms(t *testing.T) {
	const runs, n = 200, 100
	for _, c := range []struct{ phi, plainMin, correctedMax float64 }{{0, 0, 0.11}, {0.5, 0.12, 0.15}, {0.9, 0.50, 0.31}} {
		s := rng.New(31, "false alarms")
		plain, corrected := 0, 0
		for range runs {
			xs := ar1(s, n, c.phi)
			if must[Trend](t, "trend")(MannKendall(xs)).P < 0.05 {
				plain++
			}
			if must[Trend](t, "trend")(MannKendallHamedRao(xs)).P < 0.05 {
				corrected++
			}
		}
		if p, q := float64(plain)/runs, float64(corrected)/runs; p < c.plainMin || q > c.correctedMax {
			t.Errorf("correlation %v: %.3f uncorrected, %.3f corrected", c.phi, p, q)
		}
	}
	// and a real drift, of 3.5 standard deviations over the run, is still seen
	xs := ar1(rng.New(31, "drift"), n, 0.5)
	for i := range xs {
		xs[i] += 4 * float64(i) / n
	}
	if tr := must[Trend](t, "trend")(MannKendallHamedRao(xs)); tr.P > 0.001 || tr.S < 0 {
		t.Errorf("drift is not seen: %+v", tr)
	}
}

func TestTrendEdges(t *testing.T) {
	equal := slices.Repeat([]float64{0.1}, 20)
	for name, f := range map[string]func([]float64) (Trend, bool){"plain": MannKendall, "corrected": MannKendallHamedRao} {
		if tr := must[Trend](t, name)(f(equal)); tr != (Trend{P: 1}) {
			t.Errorf("%s: equal values: %+v", name, tr)
		}
		for _, xs := range [][]float64{nil, equal[:MinTrend-1], append(slices.Clone(equal), math.Inf(1))} {
			if tr, ok := f(xs); ok {
				t.Errorf("%s: %d values: %+v", name, len(xs), tr)
			}
		}
		ramp := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
		if tr := must[Trend](t, name)(f(ramp)); tr.S != 45 || tr.Var != 125 || tr.P > 1e-4 {
			t.Errorf("%s: ramp: %+v", name, tr)
		}
	}
	if step := must[Step](t, "step")(Pettitt(equal)); step.K != 0 || step.P != 1 {
		t.Errorf("step of equal values: %+v", step)
	}
	if step, ok := Pettitt(equal[:MinTrend-1]); ok {
		t.Errorf("step of %d values: %+v", MinTrend-1, step)
	}
	for _, xs := range [][]float64{nil, {1}, {1, math.NaN()}} {
		if slope, ok := TheilSen(xs); ok {
			t.Errorf("slope of %v: %v", xs, slope)
		}
	}
}

// Many ties, so that they are met often.
var coarse = slicesOf(rapid.Map(rapid.IntRange(0, 9), func(i int) float64 { return float64(i) }), MinTrend, MinTrend+1, 20, 60)

func TestTrendProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := coarse.Draw(t, "series")
		before := slices.Clone(xs)
		n := len(xs)
		s, biggest, last := 0, 0, 0
		for k := range n - 1 {
			u := 0
			for i, a := range xs {
				for _, b := range xs[i+1:] {
					if k == 0 {
						s += cmp.Compare(b, a)
					}
				}
				if i <= k {
					for _, b := range xs[k+1:] {
						u += cmp.Compare(a, b)
					}
				}
			}
			if u = max(u, -u); u > biggest {
				biggest, last = u, k
			}
		}
		mk, ok := MannKendall(xs)
		if !ok || mk.S != s {
			t.Fatalf("S %d, want %d", mk.S, s)
		}
		corrected, _ := MannKendallHamedRao(xs)
		if corrected.S != s || corrected.Var < mk.Var || corrected.P < mk.P {
			t.Fatalf("correction made %+v of %+v", corrected, mk)
		}
		if step, ok := Pettitt(xs); !ok || step.K != biggest || biggest > 0 && step.Last != last {
			t.Fatalf("step %+v, want %d after %d", step, biggest, last)
		}
		slices.Reverse(xs)
		if back, _ := MannKendall(xs); back.S != -s || back.Var != mk.Var || back.P != mk.P {
			t.Fatalf("reversed: %+v of %+v", back, mk)
		}
		slices.Reverse(xs)
		if !slices.Equal(xs, before) {
			t.Fatal("the series was changed")
		}
	})
}

func TestTheilSenProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := slicesOf(rapid.Float64Range(-1000, 1000), 2, 3, 4, 15, 40).Draw(t, "series")
		var slopes []float64
		for i, a := range xs {
			for j, b := range xs[i+1:] {
				slopes = append(slopes, (b-a)/float64(j+1))
			}
		}
		slices.Sort(slopes)
		want, _ := Quantile(slopes, 50)
		if got, ok := TheilSen(xs); !ok || math.Abs(got-want) > 1e-12*math.Max(1, math.Abs(want)) {
			t.Fatalf("slope %v, want %v", got, want)
		}
	})
}

// A line is found through noise and wild values, also where only block medians are compared.
func TestTheilSenLine(t *testing.T) {
	for _, n := range []int{maxTheilSen, maxTheilSen + 1, 12_345} {
		s := rng.New(37, "line")
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = 5 + 0.25*float64(i) + s.Normal()
			if i%10 == 0 {
				xs[i] = 1e6
			}
		}
		relative(t, "slope", must[float64](t, "slope")(TheilSen(xs)), 0.25, 0.002)
		for i := range xs {
			xs[i] = -0.5 * float64(i)
		}
		relative(t, "slope of a clean line", must[float64](t, "slope")(TheilSen(xs)), -0.5, 1e-12)
	}
}

func BenchmarkMannKendallHamedRao(b *testing.B) {
	xs := ar1(rng.New(1, "bench"), 100_000, 0.5)
	b.ReportAllocs()
	for b.Loop() {
		MannKendallHamedRao(xs)
	}
}
