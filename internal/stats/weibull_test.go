package stats

import (
	"math"
	"testing"
)

// Values of 1 - exp(-(t/scale)^k), and the mean by integration.
func TestWeibullCDF(t *testing.T) {
	if got, want := WeibullCDF(1, 3)(0.5), ExponentialCDF(3)(0.5); math.Abs(got-want) > 1e-15 {
		t.Errorf("k = 1: %v, want %v", got, want)
	}
	for _, k := range []float64{0.5, 2, 5} {
		cdf := WeibullCDF(k, 4)
		mean, last := 0.0, 200.0
		if k > 1 {
			last = 3
		}
		for i, n := 0, 400_000; i < n; i++ {
			x := last * math.Pow((float64(i)+0.5)/float64(n), 3)
			dx := last * (math.Pow(float64(i+1)/float64(n), 3) - math.Pow(float64(i)/float64(n), 3))
			mean += (1 - cdf(x)) * dx
		}
		if math.Abs(mean-0.25) > 1e-5 {
			t.Errorf("k = %v: mean %v, want 0.25", k, mean)
		}
	}
	if !math.IsNaN(WeibullCDF(0, 1)(1)) || WeibullCDF(2, 1)(-1) != 0 {
		t.Error("no shape, or a time below 0")
	}
}
