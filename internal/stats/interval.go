package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat/distuv"
)

// QuantileCI returns the exact binomial confidence interval of the q-quantile of n independent samples, as 1-based orders: the
// interval is from the lo-th to the hi-th smallest sample, where 0 means minus infinity and n+1 plus infinity. The tails are
// equal: with a = 1 - confidence and B ~ Binomial(n, q), lo is the largest with P(B < lo) <= a/2 and hi the smallest with
// P(B >= hi) <= a/2. coverage is the probability that the interval covers, P(lo <= B < hi), never below what was asked.
// Where an argument makes no sense (n < 1, q or confidence not inside 0..1) the interval is the whole line.
func QuantileCI(n int, q, confidence float64) (lo, hi int, coverage float64) {
	if n < 1 || !fraction(q) || !fraction(confidence) {
		return 0, max(n, 0) + 1, 1
	}
	tail := (1 - confidence) / 2
	b := distuv.Binomial{N: float64(n), P: q}
	below := func(k int) float64 { return b.CDF(float64(k - 1)) } // P(B < k)
	// P(B >= k) by the complement's distribution, which keeps its digits where 1 - CDF would lose them
	c := distuv.Binomial{N: float64(n), P: 1 - q}
	above := func(k int) float64 { return c.CDF(float64(n - k)) }

	lo = sort.Search(n+1, func(k int) bool { return below(k) > tail }) - 1
	hi = sort.Search(n+1, func(k int) bool { return above(k) <= tail })
	return lo, hi, max(0, 1-below(lo)-above(hi))
}

// QuantileInterval is QuantileCI in values of the ascending sample, for the p-th percentile. Where an argument makes no sense
// it is the whole line.
func QuantileInterval(sorted []float64, p, confidence float64) (ci Interval, coverage float64) {
	ci = Interval{math.Inf(-1), math.Inf(1)}
	if len(sorted) > 0 && math.IsNaN(sorted[0]) { // NaN sorts to the front
		return ci, 1
	}
	lo, hi, coverage := QuantileCI(len(sorted), p/100, confidence)
	if lo > 0 {
		ci.Lo = sorted[lo-1]
	}
	if hi <= len(sorted) {
		ci.Hi = sorted[hi-1]
	}
	return ci, coverage
}

// SamplesForMargin returns how many independent samples are needed so that the share of samples below the q-quantile is known to
// within +- margin (a fraction): z^2 q(1-q) / margin^2. It is not rounded. MLPerf uses confidence 0.99 and a margin of (1-q)/20.
func SamplesForMargin(q, margin, confidence float64) (n float64, ok bool) {
	if !fraction(q) || !fraction(confidence) || !(margin > 0) {
		return 0, false
	}
	z := zQuantile(confidence)
	n = z * z * q * (1 - q) / (margin * margin)
	return n, !math.IsInf(n, 0)
}

// MeanCI returns the t-interval of the mean of independent samples, such as one number from each of several runs.
// It is undefined below 2 samples.
func MeanCI(xs []float64, confidence float64) (ci Interval, ok bool) {
	sd, ok := SD(xs)
	if !ok || !fraction(confidence) {
		return Interval{}, false
	}
	return tInterval(mean(xs), sd/math.Sqrt(float64(len(xs))), len(xs)-1, confidence), true
}

// Limits of section sizes. Smaller ones have a bias that the interval does not know of.
const (
	MinSections      = 5  // the t quantile of fewer makes intervals too wide to be of use
	minSectionValues = 10 // samples a section
	minSectionTail   = 5  // samples a section that are expected beyond the quantile, on its thinner side
)

// SectionLength returns how many samples a section needs for an interval of the p-th percentile: 5 of them are expected on the
// thinner side of the percentile, and it has at least 10. For p50 this is 10, for p90 50, for p99 500.
func SectionLength(p float64) (n int, ok bool) {
	if !(p > 0 && p < 100) {
		return 0, false
	}
	// the small slack keeps 5 / (1 - 0.99) from becoming 501
	return max(minSectionValues, int(math.Ceil(minSectionTail*100/min(p, 100-p)-1e-6))), true
}

// SectionedQuantileCI returns an interval of the p-th percentile of a series in time order whose neighbours may be correlated.
// The series is cut into consecutive sections (10 to 20 are usual) with quantiles Q_i; with Q the quantile of the whole, the
// interval is Q +- t * sqrt(sum (Q_i - Q)^2 / (b(b-1))), t with b-1 degrees of freedom. It covers as it says only if the
// sections are longer than the correlation reaches: of 10 sections of 1,000 requests through an M/M/1 queue at a load of 0.8 it
// covers p90 in 93 %, p99 in 74 % of runs. It is undefined below MinSections sections or when the sections are shorter than
// SectionLength.
func SectionedQuantileCI(series []float64, p, confidence float64, sections int) (ci Interval, ok bool) {
	ci, ok = SectionedQuantileCIs(series, slices.Sorted(slices.Values(series)), []float64{p}, confidence, sections)[p]
	return ci, ok
}

// SectionedQuantileCIs is SectionedQuantileCI for several percentiles, by percentile; those without an interval are left out. sorted
// is the series in ascending order. Each section is sorted once, so that memory for one of them is all that is needed.
func SectionedQuantileCIs(series, sorted, percentiles []float64, confidence float64, sections int) map[float64]Interval {
	cis := map[float64]Interval{}
	var able []float64
	for _, p := range percentiles {
		if least, ok := SectionLength(p); ok && sectionable(series, confidence, sections, least) {
			able = append(able, p)
		}
	}
	if len(able) == 0 {
		return cis
	}
	whole, sums := make([]float64, len(able)), make([]float64, len(able)) // quantiles of the whole, and sums of (Q_i - Q)^2
	for k, p := range able {
		whole[k], _ = Quantile(sorted, p)
	}
	scratch := make([]float64, len(series)/sections+1)
	for i := range sections {
		part := scratch[:copy(scratch, section(series, i, sections))]
		Sort(part)
		for k, p := range able {
			qi, _ := Quantile(part, p)
			sums[k] += float64((qi - whole[k]) * (qi - whole[k]))
		}
	}
	b := float64(sections)
	for k, p := range able {
		cis[p] = tInterval(whole[k], math.Sqrt(sums[k]/(b*(b-1))), sections-1, confidence)
	}
	return cis
}

// BatchMeansCI returns an interval of the mean of a series in time order whose neighbours may be correlated, from the means of
// consecutive batches (10 to 20 are usual). The batches must be longer than the correlation reaches.
// It is undefined below MinSections batches or below 10 samples a batch.
func BatchMeansCI(series []float64, confidence float64, batches int) (ci Interval, ok bool) {
	if !sectionable(series, confidence, batches, minSectionValues) {
		return Interval{}, false
	}
	m := mean(series)
	sum := 0.0
	for i := range batches {
		d := mean(section(series, i, batches)) - m
		sum += float64(d * d)
	}
	b := float64(batches)
	return tInterval(m, math.Sqrt(sum/(b*(b-1))), batches-1, confidence), true
}

func sectionable(series []float64, confidence float64, sections, least int) bool {
	return fraction(confidence) && sections >= MinSections && len(series)/sections >= least && finite(series)
}

// section returns the i-th of b consecutive parts of the series; their lengths differ by one at most.
func section(series []float64, i, b int) []float64 {
	return series[i*len(series)/b : (i+1)*len(series)/b]
}

// MinBlocks is how many blocks a series must hold for a block bootstrap; draws from fewer are too much alike.
const MinBlocks = 5

// MovingBlockBootstrap returns the percentile interval of a statistic of a series in time order (Künsch 1989): each draw puts
// blocks of consecutive samples, begun at random places, one after the other up to the series' length, and computes the
// statistic of it. The block should be longer than the correlation reaches; 2,000 draws or more are usual. Blocks of 1 are the
// plain bootstrap of independent samples. The statistic gets a slice of its own to work in, which the next draw overwrites.
// src may be an rng.Stream; the same stream gives the same interval.
// It is undefined below MinBlocks blocks, with too few draws to have one beyond each end, or where the statistic is NaN.
func MovingBlockBootstrap(series []float64, block, draws int, confidence float64, src rand.Source,
	statistic func([]float64) float64) (ci Interval, ok bool) {
	tail := (1 - confidence) / 2
	if !fraction(confidence) || block < 1 || len(series)/block < MinBlocks || float64(draws)*tail < 1 || !finite(series) {
		return Interval{}, false
	}
	random := rand.New(src)
	drawn := make([]float64, len(series))
	results := make([]float64, draws)
	for d := range results {
		for done := 0; done < len(drawn); {
			from := random.IntN(len(series) - block + 1)
			done += copy(drawn[done:], series[from:from+block])
		}
		results[d] = statistic(drawn)
		if math.IsNaN(results[d]) {
			return Interval{}, false
		}
	}
	slices.Sort(results)
	lo, okLo := Quantile(results, 100*tail)
	hi, okHi := Quantile(results, 100*(1-tail))
	return Interval{lo, hi}, okLo && okHi
}

// zQuantile is the two-sided quantile of the standard normal distribution.
func zQuantile(confidence float64) float64 { return distuv.UnitNormal.Quantile(1 - (1-confidence)/2) }

func tInterval(centre, standardError float64, degrees int, confidence float64) Interval {
	t := distuv.StudentsT{Sigma: 1, Nu: float64(degrees)}.Quantile(1 - (1-confidence)/2)
	h := float64(t * standardError)
	return Interval{centre - h, centre + h}
}
