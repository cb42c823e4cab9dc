package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// ExponentialCDF returns the distribution of the gaps of a Poisson process: P(gap <= t) = 1 - exp(-rate t).
// Unless the rate is above 0 and finite it is NaN everywhere, which KolmogorovSmirnov calls undefined.
func ExponentialCDF(rate float64) func(t float64) float64 {
	if !positive(rate) {
		return noLaw
	}
	return func(t float64) float64 { return -math.Expm1(-rate * max(t, 0)) }
}

// GammaCDF returns the distribution of gamma gaps with shape k at a mean of rate arrivals a unit of time: mean gap 1/rate,
// coefficient of variation 1/sqrt(k). k is the burstiness of vLLM's benchmark; k = 1 is the Poisson process.
// Unless both are above 0 and finite it is NaN everywhere, which KolmogorovSmirnov calls undefined.
func GammaCDF(k, rate float64) func(t float64) float64 {
	if !positive(k) || !positive(rate) {
		return noLaw
	}
	law := distuv.Gamma{Alpha: k, Beta: k * rate}
	return func(t float64) float64 { return law.CDF(max(t, 0)) }
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }

func noLaw(float64) float64 { return math.NaN() }

// KolmogorovSmirnov tests whether independent samples follow a continuous distribution that is known beforehand (parameters
// taken from the same samples make p too large). d is the largest distance between the empirical distribution and cdf.
//
// p is Kolmogorov's limit law at sqrt(n) d + 1/(6 sqrt(n)) + (sqrt(n) d - 1)/(4n), Vrbik's correction (2018). Against the exact
// law at n = 100 it is right to 0.02 % at p = 0.1, 0.9 % at 0.01 and 3 % at 0.001, and better for larger n. It is undefined for
// no samples and when cdf gives anything outside 0..1.
func KolmogorovSmirnov(xs []float64, cdf func(float64) float64) (d, p float64, ok bool) {
	if len(xs) == 0 || !finite(xs) {
		return 0, 0, false
	}
	n := float64(len(xs))
	for i, x := range slices.Sorted(slices.Values(xs)) {
		f := cdf(x)
		if !(f >= 0 && f <= 1) {
			return 0, 0, false
		}
		d = max(d, float64(i+1)/n-f, f-float64(i)/n)
	}
	return d, ksP(n, d), true
}

// ksP is the p value of a distance d with n samples.
func ksP(n, d float64) float64 {
	root := math.Sqrt(n)
	return kolmogorov(root*d + 1/(6*root) + (root*d-1)/(4*n))
}

// kolmogorov returns the probability that Kolmogorov's limit variable is above t. Both series are exact; each is used where it
// converges with a few terms: at 1, four give 16 digits.
func kolmogorov(t float64) float64 {
	if t <= 0 {
		return 1
	}
	const terms = 6
	sum := 0.0
	if t < 1 {
		for k := 1; k <= terms; k++ {
			a := float64(2*k-1) * math.Pi / t
			sum += math.Exp(-a * a / 8)
		}
		return min(1, 1-math.Sqrt(2*math.Pi)/t*sum)
	}
	sign := 1.0
	for k := 1; k <= terms; k++ {
		a := float64(k) * t
		sum += sign * math.Exp(-2*a*a)
		sign = -sign
	}
	return min(1, max(0, 2*sum))
}

// Lag1 returns the autocorrelation of neighbouring gaps: sum (g_i - m)(g_(i+1) - m) / sum (g_i - m)^2.
// It is undefined below 3 gaps and for equal gaps.
func Lag1(gaps []float64) (r float64, ok bool) {
	if len(gaps) < 3 || !finite(gaps) {
		return 0, false
	}
	m := mean(gaps)
	sum, all := 0.0, squares(gaps, m)
	if !(all > 0) {
		return 0, false
	}
	for i := range gaps[1:] {
		sum += float64((gaps[i] - m) * (gaps[i+1] - m))
	}
	return sum / all, true
}

// Lag1Limit returns what |Lag1| of n independent gaps exceeds in 1 of 1,000 cases: 3.3/sqrt(n). It is undefined below 3 gaps.
func Lag1Limit(n int) (limit float64, ok bool) {
	if n < 3 {
		return 0, false
	}
	return 3.3 / math.Sqrt(float64(n)), true
}

// Bins of the dispersion test.
const (
	dispersionBins     = 10   // fewest: the variance of fewer counts says little
	dispersionExpected = 8    // arrivals a bin: fewer follow the chi-square law poorly, more hide bursts inside a bin
	dispersionTail     = 5e-4 // on each side: the band holds 99.9 % of Poisson processes
)

// DispersionBins returns the number of bins for n arrivals: 8 of them expected a bin, at least 10 bins.
func DispersionBins(n int) int { return max(dispersionBins, n/dispersionExpected) }

// Dispersion is the index of dispersion of counts: their variance over their mean. It is 1 for a Poisson process, above for
// bursts, below for even spacing.
type Dispersion struct {
	Index     float64
	Low, High float64 // band that holds 99.9 % of Poisson processes
}

// DispersionIndex counts arrivals, given by their ascending times, in equal bins between the first and the last. These two are
// not counted: in a Poisson process the others then lie anywhere between with equal probability, so that (bins-1) * Index is
// chi-square with bins-1 degrees of freedom; this gives the band.
// It is undefined for times that do not ascend or are all equal, below 10 bins, and with less than 5 arrivals expected a bin.
func DispersionIndex(times []float64, bins int) (d Dispersion, ok bool) {
	const fewest = 5 // a bin, the customary least for a chi-square test
	if bins < dispersionBins || bins > (len(times)-2)/fewest || !finite(times) || !slices.IsSorted(times) {
		return Dispersion{}, false
	}
	first, last := times[0], times[len(times)-1]
	if first == last {
		return Dispersion{}, false
	}
	counts := make([]float64, bins)
	for _, t := range times[1 : len(times)-1] {
		counts[min(bins-1, int((t-first)/(last-first)*float64(bins)))]++
	}
	m := float64(len(times)-2) / float64(bins)
	free := float64(bins - 1)
	law := distuv.ChiSquared{K: free}
	return Dispersion{
		Index: squares(counts, m) / free / m,
		Low:   law.Quantile(dispersionTail) / free,
		High:  law.Quantile(1-dispersionTail) / free,
	}, true
}
