package stats

import (
	"math"
	"math/bits"

	"gonum.org/v1/gonum/dsp/fourier"
)

// minCorrelated is the shortest series from which an autocorrelation is estimated: two pairs of lags.
const minCorrelated = 4

// EffectiveN returns how many independent samples are worth as much, for the mean, as the series (in time order):
// n / (1 + 2 * sum of its autocorrelations), between 1 and n. It is n for equal values and below 4 samples, and 0 for a series
// that is empty or not finite.
//
// The sum is cut by Geyer's initial monotone sequence (1992): the autocorrelations are added in pairs of lags (0 and 1,
// 2 and 3, ...), each pair at most as large as the one before, up to the first pair that is not positive. All lags
// may be looked at; the cost is O(n log n). Of more than 2^20 samples the means of at most 2^20 consecutive groups are looked at, which
// bounds the memory: their variance and autocorrelation tell as much of the mean of the whole. A series much shorter than its correlation reaches looks better than it is: 100 samples of an AR(1)
// series with a correlation of 0.9 are worth 5, and are mostly taken for 5 to 20. For a quantile, ask it of the
// series of 0 and 1 that tells which samples lie above.
func EffectiveN(series []float64) float64 {
	if !finite(series) {
		return 0
	}
	n := float64(len(series))
	if len(series) < minCorrelated {
		return n
	}
	if len(series) > mostCorrelated {
		return effectiveOfGroups(series, (len(series)-1)/mostCorrelated+1)
	}
	c := newCorrelogram(series)
	if c == nil {
		return n
	}
	return n / min(c.time(), n)
}

// mostCorrelated bounds a series that is looked at sample by sample: the Fourier transform of 2^20 samples takes 90 MB.
const mostCorrelated = 1 << 20

// effectiveOfGroups is EffectiveN by the means of consecutive groups of so many samples; what is left over at the end is not looked at.
// With s the variance of the samples and g that of the m means, whose autocorrelation time is T, the variance of the mean of all
// is gT/m, and n_eff = s / (gT/m).
func effectiveOfGroups(series []float64, size int) float64 {
	means := make([]float64, len(series)/size)
	for i := range means {
		means[i] = mean(series[i*size : (i+1)*size])
	}
	n := float64(len(series))
	c := newCorrelogram(means)
	if c == nil {
		return n // the groups are equal: nothing is left of any correlation
	}
	ofSamples := squares(series, mean(series)) / n
	ofMeans := squares(means, mean(means)) / float64(len(means))
	return min(max(ofSamples/ofMeans*float64(len(means))/c.time(), 1), n)
}

// time returns the autocorrelation time, 1 + 2 * the sum of the autocorrelations, cut as EffectiveN says and at least 1: that a
// series swings is not held in its favour.
func (c *correlogram) time() float64 {
	tau, last := -1.0, 2.0 // 1 + 2*sum of lags 1.. = -1 + 2*sum of pairs; a pair is at most 2
	for k := 0; k+1 < len(c.deviations); k += 2 {
		pair := min(c.at(k)+c.at(k+1), last)
		if pair <= 0 {
			break
		}
		tau += 2 * pair
		last = pair
	}
	return max(tau, 1)
}

// correlogram holds the autocorrelations of a series: at lag k, sum (x_i - mean)(x_(i+k) - mean) / sum (x_i - mean)^2.
type correlogram struct {
	deviations []float64 // from the mean, in units of the widest, so that squares neither vanish nor overflow
	squares    float64
	all        []float64 // of all lags, once a far one was asked
}

// newCorrelogram returns nil when the values of the finite series are all equal.
func newCorrelogram(series []float64) *correlogram {
	m := mean(series)
	widest := 0.0
	for _, x := range series {
		widest = max(widest, math.Abs(x-m))
	}
	if widest == 0 {
		return nil
	}
	c := &correlogram{deviations: make([]float64, len(series))}
	for i, x := range series {
		c.deviations[i] = (x - m) / widest
	}
	c.squares = c.product(0)
	return c
}

// nearLags are summed one by one: most series have forgotten within fewer, which costs a tenth of the Fourier transform.
const nearLags = 32

// at returns the autocorrelation at a lag below the length of the series.
func (c *correlogram) at(lag int) float64 {
	if lag < nearLags {
		return c.product(lag) / c.squares
	}
	if c.all == nil {
		c.all = c.transform()
	}
	return c.all[lag]
}

func (c *correlogram) product(lag int) float64 {
	sum := 0.0
	for i, d := range c.deviations[lag:] {
		sum += float64(d * c.deviations[i])
	}
	return sum
}

// transform multiplies in the frequency domain, padded to twice the length so that the ends do not wrap.
func (c *correlogram) transform() []float64 {
	n := len(c.deviations)
	padded := make([]float64, 1<<bits.Len(uint(2*n-1)))
	copy(padded, c.deviations)
	fft := fourier.NewFFT(len(padded))
	spectrum := fft.Coefficients(nil, padded)
	for i, f := range spectrum {
		spectrum[i] = complex(real(f)*real(f)+imag(f)*imag(f), 0)
	}
	all := fft.Sequence(padded, spectrum)[:n]
	for k := n - 1; k >= 0; k-- { // lag 0, the divisor, comes last
		all[k] /= all[0]
	}
	return all
}
