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
// may be looked at; the cost is O(n log n). A series much shorter than its correlation reaches looks better than it is: 100 samples of an AR(1)
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
	c := newCorrelogram(series)
	if c == nil {
		return n
	}
	tau, last := -1.0, 2.0 // 1 + 2*sum of lags 1.. = -1 + 2*sum of pairs; a pair is at most 2
	for k := 0; k+1 < len(series); k += 2 {
		pair := min(c.at(k)+c.at(k+1), last)
		if pair <= 0 {
			break
		}
		tau += 2 * pair
		last = pair
	}
	return n / min(max(tau, 1), n)
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
