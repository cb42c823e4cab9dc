package rng

import (
	"math"
	"testing"
)

// The arrivals of a seed are the same on every machine: these bits must never change.
func TestGoldenBits(t *testing.T) {
	s := New(7, "schedule")
	got := []float64{s.Float64(), s.Exp(), s.Normal(), s.Normal(), s.Gamma(0.25), s.Gamma(4), float64(s.IntN(1000))}
	want := []uint64{}
	for _, g := range got {
		want = append(want, math.Float64bits(g))
	}
	for i, w := range golden {
		if want[i] != w {
			t.Errorf("draw %d is %v (%#x), want %v", i, got[i], want[i], math.Float64frombits(w))
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	a, b, c := New(1, "workload"), New(1, "schedule"), New(2, "workload")
	x, y, z := a.Uint64(), b.Uint64(), c.Uint64()
	if x == y || x == z || y == z {
		t.Errorf("streams coincide: %x %x %x", x, y, z)
	}
}

func TestLogExp(t *testing.T) {
	for x := 1e-300; x < 1e300; x *= 1.37 {
		if got, want := Log(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Max(1, math.Abs(want)) {
			t.Fatalf("Log(%g) = %v, want %v", x, got, want)
		}
	}
	for x := -690.0; x < 690; x += 0.371 {
		if got, want := Exp(x), math.Exp(x); math.Abs(got/want-1) > 1e-15 {
			t.Fatalf("Exp(%g) = %v, want %v", x, got, want)
		}
	}
	if !math.IsInf(Log(0), -1) || !math.IsNaN(Log(-1)) || Exp(-1e9) != 0 || !math.IsInf(Exp(1e9), 1) {
		t.Error("edges of Log and Exp")
	}
}

// Mean and variance of each law, within 5 standard errors over 200,000 draws.
func TestMoments(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		name           string
		draw           func(*Stream) float64
		mean, variance float64
		kurt           float64 // fourth central moment, for the standard error of the variance
	}{
		{"uniform", (*Stream).Float64, 0.5, 1.0 / 12, 1.0 / 80},
		{"exp", (*Stream).Exp, 1, 1, 9},
		{"normal", (*Stream).Normal, 0, 1, 3},
		{"gamma 0.25", func(s *Stream) float64 { return s.Gamma(0.25) }, 0.25, 0.25, 3*0.0625 + 6*0.25},
		{"gamma 4", func(s *Stream) float64 { return s.Gamma(4) }, 4, 4, 3*16 + 6*4},
	} {
		s := New(11, c.name)
		var sum, sq float64
		for range n {
			x := c.draw(s) - c.mean
			sum += x
			sq += x * x
		}
		if se := math.Sqrt(c.variance / n); math.Abs(sum/n) > 5*se {
			t.Errorf("%s: mean off by %g (%.1f standard errors)", c.name, sum/n, sum/n/se)
		}
		if se := math.Sqrt((c.kurt - c.variance*c.variance) / n); math.Abs(sq/n-c.variance) > 5*se {
			t.Errorf("%s: variance %g, want %g", c.name, sq/n, c.variance)
		}
	}
}

func TestIntNUnbiased(t *testing.T) {
	s := New(3, "intn")
	var counts [7]int
	for range 70_000 {
		counts[s.IntN(7)]++
	}
	for i, c := range counts {
		if c < 9_500 || c > 10_500 {
			t.Errorf("value %d drawn %d times of 70,000", i, c)
		}
	}
}

var golden = []uint64{0x3fe26e53d772e17a, 0x4005c8d5a2089795, 0x3fc04849d4e53054, 0x3ff1717df03130be, 0x3fd53be86ba46f01, 0x4011e4e19bcb0a3a, 0x4070900000000000}
