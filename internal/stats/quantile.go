package stats

import (
	"math"
	"slices"
)

// Quantile returns the p-th percentile of an ascending sample: linear interpolation at the 0-based position p/100 * (n-1).
// It is undefined for an empty sample and for p outside 0..100. It is never outside the sample and never falls when p rises.
func Quantile(sorted []float64, p float64) (v float64, ok bool) {
	if len(sorted) == 0 || math.IsNaN(sorted[0]) || !(p >= 0 && p <= 100) { // NaN sorts to the front
		return 0, false
	}
	at := float64(p*float64(len(sorted)-1)) / 100 // the product first: whole positions come out whole
	i := int(at)
	if i >= len(sorted)-1 {
		return sorted[len(sorted)-1], true
	}
	lo, hi := sorted[i], sorted[i+1]
	if frac := at - float64(i); frac > 0 {
		lo = min(lo+float64(frac*(hi-lo)), hi) // rounding may pass hi by one unit
	}
	return lo, !math.IsNaN(lo) // between minus and plus infinity
}

// Mean returns the arithmetic mean, by a compensated sum. It is never outside the sample. It is undefined for an empty sample.
func Mean(xs []float64) (v float64, ok bool) {
	if len(xs) == 0 || !finite(xs) {
		return 0, false
	}
	return mean(xs), true
}

// SD returns the standard deviation of the sample (divisor n-1), exactly 0 for equal values. It is undefined below 2 samples.
func SD(xs []float64) (v float64, ok bool) {
	if len(xs) < 2 || !finite(xs) {
		return 0, false
	}
	return math.Sqrt(squares(xs, mean(xs)) / float64(len(xs)-1)), true
}

// mean is Neumaier's sum over n; the caller has checked the sample. Clamping makes the mean of equal values that value.
func mean(xs []float64) float64 {
	sum, lost := 0.0, 0.0
	for _, x := range xs {
		t := sum + x
		if math.Abs(sum) >= math.Abs(x) {
			lost += (sum - t) + x
		} else {
			lost += (x - t) + sum
		}
		sum = t
	}
	return min(max((sum+lost)/float64(len(xs)), slices.Min(xs)), slices.Max(xs))
}

// squares is the sum of the squared deviations from the mean m, corrected for the rounding of m (Chan, Golub and LeVeque 1983).
func squares(xs []float64, m float64) float64 {
	sum, drift := 0.0, 0.0
	for _, x := range xs {
		d := x - m
		sum += float64(d * d)
		drift += d
	}
	return max(0, sum-float64(drift*drift)/float64(len(xs)))
}
