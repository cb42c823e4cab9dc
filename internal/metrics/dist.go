package metrics

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stats"
)

// Confidence of all printed intervals.
const confidence = 0.95

// independentShare is the least n_eff / n at which samples of one run are taken as independent. White noise is mostly above 0.9;
// at 0.8 an interval of independent samples is 11 % too narrow.
const independentShare = 0.8

// sections is the number of consecutive sections or batches of a series whose neighbours are correlated.
const sections = 10

// Samples needed until the p-th percentile has an upper bound at 99 % confidence: 1 - p^n >= 0.99.
func samplesNeeded(p float64) int {
	if p <= 0 || p >= 100 {
		return 1
	}
	return int(math.Ceil(math.Log(0.01) / math.Log(p/100)))
}

// leastTold samples tell anything of whether neighbours are correlated.
const leastTold = 4

// distribution describes samples in the order of time. noInterval says why no interval may be printed, or is empty.
func distribution(series []float64, percentiles []float64, noInterval string) *bench.Dist {
	mean, ok := stats.Mean(series)
	if !ok {
		return nil
	}
	sorted := slices.Clone(series)
	stats.Sort(sorted)
	d := &bench.Dist{N: len(series), Mean: mean, Min: sorted[0], Max: sorted[len(sorted)-1], CI: map[string][2]float64{}}
	if sd, ok := stats.SD(series); ok {
		d.SD = opt.Some(sd)
	}
	for _, p := range percentiles {
		if q, ok := stats.Quantile(sorted, p); ok {
			d.Quantiles = append(d.Quantiles, bench.Quantile{P: p, Value: q})
		}
	}
	neff := stats.EffectiveN(series)
	d.NEff = opt.Some(neff)
	independent := neff >= independentShare*float64(len(series))
	put := func(key string, ci stats.Interval, ok bool) {
		if ok && !math.IsInf(ci.Lo, 0) && !math.IsInf(ci.Hi, 0) {
			d.CI[key] = [2]float64{ci.Lo, ci.Hi}
		}
	}
	switch {
	case noInterval != "":
		d.CIMethod = "none: " + noInterval
	case len(series) == 1:
		d.CIMethod = "none: there is one sample"
	case len(series) < leastTold:
		d.CIMethod = "none: too few samples to tell whether neighbours are correlated"
	case independent:
		d.CIMethod = "t and exact binomial: neighbours are not correlated"
		ci, ok := stats.MeanCI(series, confidence)
		put("mean", ci, ok)
		for _, p := range percentiles {
			ci, _ := stats.QuantileInterval(sorted, p, confidence)
			put(bench.PercentileKey(p), ci, true)
		}
	default:
		d.CIMethod = fmt.Sprintf("%d consecutive sections: neighbours are correlated", sections)
		ci, ok := stats.BatchMeansCI(series, confidence, sections)
		put("mean", ci, ok)
		for p, ci := range stats.SectionedQuantileCIs(series, sorted, percentiles, confidence, sections) {
			put(bench.PercentileKey(p), ci, true)
		}
		if len(d.CI) == 0 {
			d.CIMethod = "none: neighbours are correlated, and the run is too short for sections"
			if lo, hi, ok := effectiveMeanCI(mean, d.SD.Or(0), neff); ok {
				d.CI["mean"] = [2]float64{lo, hi}
				d.CIMethod = fmt.Sprintf("t with %.0f effective samples: neighbours are correlated, and the run is too short for sections", neff)
			}
		}
	}
	return d
}

// leastEffective samples give an interval of the mean that is not too wide to say anything.
const leastEffective = 5

// effectiveMeanCI is the t-interval of a mean with the effective number of samples in place of their number.
func effectiveMeanCI(mean, sd, neff float64) (lo, hi float64, ok bool) {
	if neff < leastEffective {
		return 0, 0, false
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: neff - 1}.Quantile(1 - (1-confidence)/2)
	half := t * sd / math.Sqrt(neff)
	return mean - half, mean + half, true
}

// describe gives the distribution of a metric. noInterval says why no interval may be printed, or is empty.
func (x *Context) describe(d Def, noInterval string) *bench.Dist {
	dist := distribution(x.samples(d), x.percentiles(), noInterval)
	if dist == nil {
		return nil
	}
	// an interval that is put around a value does not know that a time is never below 0, nor a share above 1
	lo, hi := math.Inf(-1), math.Inf(1)
	if dist.Min >= 0 {
		lo = 0
	}
	if d.Unit == "share" {
		hi = 1
	}
	var below, above bool
	for key, ci := range dist.CI {
		below, above = below || ci[0] < lo, above || ci[1] > hi
		dist.CI[key] = [2]float64{max(lo, ci[0]), min(hi, ci[1])}
	}
	if below {
		dist.CIMethod += "; cut at 0"
	}
	if above {
		dist.CIMethod += "; cut at 1"
	}
	return dist
}

// samples collects the samples of a metric in the order of time: that of sending, or that of the events where it is made of gaps.
func (x *Context) samples(d Def) []float64 {
	each := func(add func(float64)) {
		for _, r := range x.Records {
			if d.Of.Has(r) {
				d.Sample(r, x, add)
			}
		}
	}
	if d.perGap == nil { // one of a request at most
		out := make([]float64, 0, len(x.Records))
		each(func(v float64) { out = append(out, v) })
		return out
	}
	n := 0 // a run may have tens of millions
	each(func(float64) { n++ })
	out := make([]float64, 0, n)
	if n > 0 {
		x.gapsInTime(func(g gap) { d.perGap(g, func(v float64) { out = append(out, v) }) })
	}
	return out
}
