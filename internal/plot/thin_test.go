package plot

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestThin(t *testing.T) {
	th := NewThin(0, 10, 2)
	for _, p := range []Point{{0, 5}, {1, 9}, {2, 1}, {3, 4}, {4, 6}, {5, 7}, {6, 7}, {10, 7}, {math.NaN(), 1}, {1, math.Inf(1)}} {
		th.Add(p.X, p.Y)
	}
	if d := cmp.Diff([]Point{{0, 5}, {1, 9}, {2, 1}, {4, 6}, {5, 7}, {10, 7}}, th.Points()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Point{{1, 9}, {2, 1}, {5, 7}}, th.Extremes()); d != "" {
		t.Error(d)
	}
	if th.Added() != 8 {
		t.Errorf("%d added", th.Added())
	}
}

// Extremes survive, nothing is made up, and the bound holds.
func TestThinKeepsExtremes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ys := rapid.SliceOfN(rapid.Float64Range(-100, 100), 1, 500).Draw(t, "ys")
		columns := rapid.IntRange(1, 40).Draw(t, "columns")
		th := NewThin(0, float64(len(ys)), columns)
		for i, y := range ys {
			th.Add(float64(i), y)
		}
		points, few := th.Points(), th.Extremes()
		if len(points) > 4*columns || len(few) > 2*columns {
			t.Errorf("%d and %d points of %d columns", len(points), len(few), columns)
		}
		for _, ps := range [][]Point{points, few} {
			lo, hi := ps[0].Y, ps[0].Y
			for i, p := range ps {
				lo, hi = min(lo, p.Y), max(hi, p.Y)
				if ys[int(p.X)] != p.Y || i > 0 && p.X <= ps[i-1].X {
					t.Errorf("point %v after %v", p, ps[max(0, i-1)])
				}
			}
			if lo != slices.Min(ys) || hi != slices.Max(ys) {
				t.Errorf("extremes %v and %v became %v and %v", slices.Min(ys), slices.Max(ys), lo, hi)
			}
		}
		if points[0].X != 0 || points[len(points)-1].X != float64(len(ys)-1) {
			t.Error("an end is gone")
		}
	})
}

func TestHistogram(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		most   int
		log    bool
		want   []Bin
	}{
		{"round ends", []float64{1, 2, 2.5, 9}, 5, false, []Bin{{0, 2, 1}, {2, 4, 2}, {4, 6, 0}, {6, 8, 0}, {8, 10, 1}}},
		{"equal values", []float64{100, 100}, 5, false, []Bin{{95, 105, 2}}},
		{"decades", []float64{1, 5, 50, 99}, 2, true, []Bin{{1, 10, 2}, {10, 100, 2}}},
		{"log needs values above 0", []float64{0, 5, 10}, 3, true, []Bin{{0, 5, 1}, {5, 10, 1}, {10, 15, 1}}},
		{"NaN and infinity are left out", []float64{math.NaN(), math.Inf(-1), 1, 3, math.Inf(1)}, 4, false, []Bin{{1, 2, 1}, {2, 3, 0}, {3, 4, 1}}},
		{"none", nil, 5, false, nil},
		{"too few bins asked", []float64{1}, 1, false, nil},
	} {
		if d := cmp.Diff(c.want, Histogram(c.values, c.most, c.log)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Every value is in exactly one bin, and the bins lie side by side.
func TestHistogramCountsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0.001, 1e6), 1, 200).Draw(t, "values")
		slices.Sort(values)
		most := rapid.IntRange(2, 50).Draw(t, "most")
		bins := Histogram(values, most, rapid.Bool().Draw(t, "log"))
		sum := 0.0
		for i, b := range bins {
			sum += b.Y
			if !(b.From < b.To) || i > 0 && b.From != bins[i-1].To {
				t.Errorf("bins %v", bins)
			}
		}
		if int(sum) != len(values) || len(bins) > most {
			t.Errorf("%v values in %d bins, at most %d asked, of %d", sum, len(bins), most, len(values))
		}
		if bins[0].From > values[0]*(1+1e-9) || bins[len(bins)-1].To < values[len(values)-1]*(1-1e-9) {
			t.Errorf("bins from %v to %v for values from %v to %v", bins[0].From, bins[len(bins)-1].To, values[0], values[len(values)-1])
		}
	})
}

func TestECDF(t *testing.T) {
	if d := cmp.Diff([]Point{{1, 0}, {1, 0.25}, {2, 0.75}, {5, 1}}, ECDF([]float64{1, 2, 2, 5}, 10)); d != "" {
		t.Error(d)
	}
	if ECDF(nil, 10) != nil || ECDF([]float64{1}, 1) != nil {
		t.Error("points of nothing")
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 20), 1, 300).Draw(t, "values")
		for i := range values {
			values[i] = math.Round(values[i])
		}
		slices.Sort(values)
		most := rapid.IntRange(2, 60).Draw(t, "most")
		points := ECDF(values, most)
		if len(points) > most+1 || points[len(points)-1] != (Point{values[len(values)-1], 1}) || points[0] != (Point{values[0], 0}) {
			t.Errorf("%v", points)
		}
		for i, p := range points[1:] {
			upto := 0
			for _, v := range values {
				if v <= p.X {
					upto++
				}
			}
			if p.Y != float64(upto)/float64(len(values)) || p.X < points[i].X {
				t.Errorf("%v", points)
			}
		}
	})
}
