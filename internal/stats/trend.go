package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Sizes of MSER-5.
const (
	mserBatch   = 5  // samples a batch, the 5 of the name
	mserBatches = 20 // fewest batches: of steady white noise, 2 % of series of 100 samples end at the border, 9 % of 50
)

// MSER5 returns how many samples to cut from the begin of a series in time order so that what is left is steady (White 1997;
// Spratt 1998). The series is averaged in batches of 5; the cut is the one, up to half of the series, that makes the squared
// standard error of the mean of the rest smallest. ok is false when that is at the half, so that the run was too short to
// become steady, and below 100 samples. It is known to fail in queues whose load drifts slowly: look for a trend in the rest.
func MSER5(series []float64) (cut int, ok bool) {
	means := batchMeans(series)
	if len(means) < mserBatches || !finite(series) {
		return 0, false
	}
	values := mser(means)
	best := 0
	for d, v := range values {
		if v < values[best] {
			best = d
		}
	}
	return best * mserBatch, best < len(values)-1
}

// batchMeans averages full batches of 5; what is left over at the end is not looked at.
func batchMeans(series []float64) []float64 {
	means := make([]float64, 0, len(series)/mserBatch)
	for batch := range slices.Chunk(series, mserBatch) {
		if len(batch) == mserBatch {
			means = append(means, mean(batch))
		}
	}
	return means
}

// mser returns the criterion for each cut d = 0..k/2: sum over j >= d of (z_j - mean)^2 / (k-d)^2.
// It walks from the end, updating mean and sum (Welford), so that all cuts together cost one pass.
func mser(z []float64) []float64 {
	values := make([]float64, len(z)/2+1)
	m, sum := 0.0, 0.0
	for d := len(z) - 1; d >= 0; d-- {
		n := float64(len(z) - d)
		delta := z[d] - m
		m += delta / n
		sum += float64(delta * (z[d] - m))
		if d < len(values) {
			values[d] = sum / (n * n)
		}
	}
	return values
}

// MinTrend is the shortest series that is tested for a trend or step: below it the normal approximations do not hold.
const MinTrend = 8

// Trend is the result of a Mann-Kendall test.
type Trend struct {
	S   int     // pairs that rise minus pairs that fall
	Var float64 // variance of S if there is no trend
	Z   float64 // S in standard deviations, 1 nearer to 0 for continuity
	P   float64 // two-sided
}

// MannKendall tests whether a series in time order rises or falls. Its values are taken as independent: where neighbours are
// alike, chance runs look like a trend, and MannKendallHamedRao is the right test. Equal values have no trend (P is 1). It is
// undefined below MinTrend values. The cost is O(n log n).
func MannKendall(series []float64) (t Trend, ok bool) {
	if len(series) < MinTrend || !finite(series) {
		return Trend{}, false
	}
	t.S, t.Var = kendallS(series)
	t.judge()
	return t, true
}

// MannKendallHamedRao is MannKendall with the variance corrected for autocorrelation (Hamed and Rao 1998): the factor is
// 1 + 2/(n(n-1)(n-2)) * sum (n-k)(n-k-1)(n-k-2) r_k, r_k being the autocorrelations of the ranks of the series less its
// Theil-Sen line. The sum ends at the first lag whose r_k is within +-1.96/sqrt(n): the paper takes any later lag outside
// that band too, but those are mostly chance, and leaving them out gives fewer false alarms. The factor is not let fall below
// 1: a test that calls a steady run drifting is the worse error.
//
// The correction is not complete where memory is long for the series. Of AR(1) series of 100 values without a trend, P < 0.05
// has 8 % (20 % when neighbours correlate by 0.9), of 50 values 13 % (30 %); uncorrected it is 22 % (60 %). Means of batches
// are less correlated.
func MannKendallHamedRao(series []float64) (t Trend, ok bool) {
	if t, ok = MannKendall(series); !ok {
		return Trend{}, false
	}
	t.Var *= hamedRaoFactor(series)
	t.judge()
	return t, true
}

// judge fills Z and P from S and Var.
func (t *Trend) judge() {
	switch {
	case t.S > 0:
		t.Z = float64(t.S-1) / math.Sqrt(t.Var)
	case t.S < 0:
		t.Z = float64(t.S+1) / math.Sqrt(t.Var)
	default: // also when all values are equal and Var is 0
		t.Z = 0
	}
	t.P = twoSided(t.Z)
}

// kendallS returns S and its variance (n(n-1)(2n+5) - sum t(t-1)(2t+5)) / 18 for groups of t equal values.
func kendallS(series []float64) (s int, variance float64) {
	ranks, _ := doubledRanks(series)
	n := len(series)
	falling := inversions(ranks, make([]int, n)) // leaves ranks sorted
	tied, correction := 0, 0.0
	for from := 0; from < n; {
		to := from + 1
		for to < n && ranks[to] == ranks[from] {
			to++
		}
		k := to - from
		tied += k * (k - 1) / 2
		correction += kendallTerm(k)
		from = to
	}
	return n*(n-1)/2 - tied - 2*falling, (kendallTerm(n) - correction) / 18
}

func kendallTerm(k int) float64 {
	t := float64(k)
	return t * (t - 1) * (2*t + 5)
}

func hamedRaoFactor(series []float64) float64 {
	slope, _ := TheilSen(series)
	rest := make([]float64, len(series))
	for i, x := range series {
		rest[i] = x - float64(slope*float64(i))
	}
	ranks, _ := doubledRanks(rest)
	for i, r := range ranks {
		rest[i] = float64(r)
	}
	n := float64(len(rest))
	band := zQuantile(0.95) / math.Sqrt(n)
	sum := 0.0
	c := newCorrelogram(rest)
	for k := 1; c != nil && k < len(rest); k++ {
		r := c.at(k)
		if math.Abs(r) <= band {
			break
		}
		f := n - float64(k)
		sum += f * (f - 1) * (f - 2) * r
	}
	return max(1, 1+2/(n*(n-1)*(n-2))*sum)
}

// maxTheilSen bounds the points of a Theil-Sen line: 1,000 make half a million slopes, 4 MB.
const maxTheilSen = 1000

// TheilSen returns the median of the slopes of all pairs of a series in time order, in units a sample. Above 1,000 samples the
// pairs are those of the medians of at most 1,000 consecutive blocks, each placed in the middle of its block. It is undefined
// below 2 samples.
func TheilSen(series []float64) (slope float64, ok bool) {
	if len(series) < 2 || !finite(series) {
		return 0, false
	}
	points := min(len(series), maxTheilSen)
	at, y := make([]float64, points), make([]float64, points)
	for i := range points {
		from, to := i*len(series)/points, (i+1)*len(series)/points
		at[i] = float64(from+to-1) / 2
		y[i] = median(slices.Clone(series[from:to]))
	}
	slopes := make([]float64, 0, points*(points-1)/2)
	for j := range y {
		for i := range j {
			slopes = append(slopes, (y[j]-y[i])/(at[j]-at[i]))
		}
	}
	return median(slopes), true
}

// median sorts xs, which is not empty, and returns its median.
func median(xs []float64) float64 {
	slices.Sort(xs)
	m, _ := Quantile(xs, 50)
	return m
}

// Step is the result of a Pettitt test.
type Step struct {
	K    int     // largest |U_t|, U_t being the pairs across t that fall minus those that rise
	Last int     // 0-based index of the last sample before the step
	P    float64 // 2 exp(-6 K^2 / (n^3 + n^2)), at most 1; good below 0.5
}

// Pettitt tests whether the level of a series in time order changed once (Pettitt 1979). Its values are taken as independent.
// It is undefined below MinTrend values.
func Pettitt(series []float64) (s Step, ok bool) {
	if len(series) < MinTrend || !finite(series) {
		return Step{}, false
	}
	ranks, _ := doubledRanks(series)
	n := len(series)
	u := 0
	for t, r := range ranks[:n-1] {
		u += r - (n + 1)
		if k := max(u, -u); k > s.K {
			s.K, s.Last = k, t
		}
	}
	k, m := float64(s.K), float64(n)
	s.P = min(1, 2*math.Exp(-6*k*k/(m*m*m+m*m)))
	return s, true
}

// twoSided is the two-sided p value of a standard normal z.
func twoSided(z float64) float64 { return min(1, 2*distuv.UnitNormal.CDF(-math.Abs(z))) }
