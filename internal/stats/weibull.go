package stats

import "math"

// WeibullCDF returns the distribution of Weibull gaps with shape k at a mean of rate arrivals a unit of time; k = 1 is the Poisson
// process. Unless both are above 0 and finite it is NaN everywhere, which KolmogorovSmirnov calls undefined.
func WeibullCDF(k, rate float64) func(t float64) float64 {
	if !positive(k) || !positive(rate) {
		return noLaw
	}
	scale := 1 / math.Gamma(1+1/k) / rate
	return func(t float64) float64 { return -math.Expm1(-math.Pow(max(t, 0)/scale, k)) }
}
