package plot

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func labels(s scale) (out []string) {
	for _, t := range s.ticks {
		out = append(out, s.label(t))
	}
	return out
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		name    string
		axis    Axis
		lo, hi  float64
		most    int
		rounded bool
		want    []string
	}{
		{"from 0", Axis{}, 60, 194, 5, true, []string{"0", "50", "100", "150", "200"}},
		{"tenths", Axis{}, 0, 0.47, 6, true, []string{"0.0", "0.1", "0.2", "0.3", "0.4", "0.5"}},
		{"fifths", Axis{}, 0, 0.9, 6, false, []string{"0.0", "0.2", "0.4", "0.6", "0.8"}},
		{"thousands", Axis{}, 0, 12_000, 7, true, []string{"0", "2,000", "4,000", "6,000", "8,000", "10,000", "12,000"}},
		{"millions", Axis{}, 0, 2.2e6, 6, true, []string{"0.0", "0.5 M", "1.0 M", "1.5 M", "2.0 M", "2.5 M"}},
		{"given ends", Axis{From: 11.4, To: 12.3}, 0, 0, 5, false, []string{"11.4", "11.6", "11.8", "12.0", "12.2"}},
		{"below 0", Axis{}, -3, 7, 6, true, []string{"-4", "-2", "0", "2", "4", "6", "8"}},
		{"whole", Axis{Whole: true}, 0, 2, 10, true, []string{"0", "1", "2"}},
		{"all 0", Axis{}, 0, 0, 3, true, []string{"0.0", "0.5", "1.0"}},
		{"tiny", Axis{}, 0, 0.00042, 5, true, []string{"0.0000", "0.0001", "0.0002", "0.0003", "0.0004", "0.0005"}},
		{"log", Axis{Log: true}, 12, 4100, 10, true, []string{"10", "20", "50", "100", "200", "500", "1,000", "2,000", "5,000"}},
		{"log, wide", Axis{Log: true}, 0.02, 41_000, 8, true, []string{"0.1", "1", "10", "100", "1,000", "10,000"}},
		{"log of one value", Axis{Log: true}, 100, 100, 8, true, []string{"100", "200"}},
		{"log with 0 is linear", Axis{Log: true}, 0, 10, 6, true, []string{"0", "2", "4", "6", "8", "10"}},
	} {
		s := newScale(c.axis, c.lo, c.hi, c.most, c.rounded)
		if d := cmp.Diff(c.want, labels(s)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// Linear ticks rise by one step of 1, 2 or 5 times a power of ten, lie on the axis, and are no more than asked.
func TestLinearTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(-1e9, 1e9).Draw(t, "lo")
		hi := lo + math.Abs(lo)*1e-5 + math.Pow(10, rapid.Float64Range(-5, 12).Draw(t, "span"))
		most := rapid.IntRange(1, 20).Draw(t, "most")
		ticks, step := linearTicks(lo, hi, most)
		if len(ticks) > most {
			t.Fatalf("%d ticks", len(ticks))
		}
		mantissa := step / math.Pow(10, math.Floor(math.Log10(step)+1e-9))
		if m := math.Round(mantissa); math.Abs(mantissa-m) > 1e-9 || m != 1 && m != 2 && m != 5 {
			t.Errorf("a step of %v", step)
		}
		for i, v := range ticks {
			if v < lo-step*1e-6 || v > hi+step*1e-6 || i > 0 && math.Abs(v-ticks[i-1]-step) > step*1e-6 {
				t.Errorf("ticks %v from %v to %v by %v", ticks, lo, hi, step)
			}
		}
	})
}

// Every value of the data has a place between the ends of the axis, and greater values never lie before smaller ones.
func TestScaleKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 2, 20).Draw(t, "values")
		if rapid.Bool().Draw(t, "positive") {
			for i, v := range values {
				values[i] = math.Abs(v) + 1e-9
			}
		}
		slices.Sort(values)
		s := newScale(Axis{Log: rapid.Bool().Draw(t, "log")}, values[0], values[len(values)-1], rapid.IntRange(2, 12).Draw(t, "most"), rapid.Bool().Draw(t, "rounded")).place(10, 510)
		last := 10.0
		for _, v := range values {
			at := s.at(v)
			if !(at >= last-1e-9 && at <= 510+1e-9) {
				t.Fatalf("%v lies at %v after %v", v, at, last)
			}
			last = at
		}
	})
}

func Test125(t *testing.T) {
	for _, c := range []struct{ v, floor, ceil float64 }{{1, 1, 1}, {3, 2, 5}, {60, 50, 100}, {0.3, 0.2, 0.5}, {999, 500, 1000}, {1e-7, 1e-7, 1e-7}, {2e9, 2e9, 2e9}} {
		if f, c2 := floor125(c.v), ceil125(c.v); f != c.floor || c2 != c.ceil {
			t.Errorf("%v lies between %v and %v, want %v and %v", c.v, f, c2, c.floor, c.ceil)
		}
	}
}

func TestThousands(t *testing.T) {
	for in, want := range map[string]string{"1": "1", "123": "123", "1234": "1,234", "-1234567.89": "-1,234,567.89", "0.1234": "0.1234", "-123": "-123"} {
		if got := Thousands(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
}
