package metrics

import (
	"math"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// tokenReport says where the counts of ok requests come from and how they fit what was asked.
func (x *Context) tokenReport() bench.TokenReport {
	t := bench.TokenReport{ISLSource: map[bench.Source]int{}, OSLSource: map[bench.Source]int{}}
	var ok, limited, islAsked, oslAsked, deviations int
	var islSum, oslSum, dev, worst float64
	var cached, prompt int
	cachedTold := false
	for _, r := range x.Records {
		if r.Outcome != bench.OK {
			continue
		}
		ok++
		if r.ISLSource != "" {
			t.ISLSource[r.ISLSource]++
		}
		if r.OSLSource != "" {
			t.OSLSource[r.OSLSource]++
		}
		if r.Has(bench.LengthLimited) {
			limited++
		}
		if r.OSLAsked > 0 {
			oslAsked++
			oslSum += float64(r.OSLAsked)
		}
		isl, told := r.ISL.Get()
		if r.ISLAsked > 0 {
			islAsked++
			islSum += float64(r.ISLAsked)
			if told {
				d := math.Abs(float64(isl-r.ISLAsked)) / float64(r.ISLAsked)
				dev, worst = dev+d, max(worst, d)
				deviations++
			}
		}
		if c, has := r.Cached.Get(); has && told {
			cachedTold = true
			cached += c
		}
		prompt += isl
	}
	mean := func(sum float64, n int) opt.Of[float64] {
		if n == 0 {
			return opt.Of[float64]{}
		}
		return opt.Some(sum / float64(n))
	}
	t.ISLAskedMean, t.OSLAskedMean = mean(islSum, islAsked), mean(oslSum, oslAsked)
	t.ISLDeviation = mean(dev, deviations)
	if deviations > 0 {
		t.ISLWorst = opt.Some(worst)
	}
	if cachedTold && prompt > 0 {
		t.CachedShare = opt.Some(float64(cached) / float64(prompt))
	}
	t.LengthLimited = mean(float64(limited), ok)
	return t
}
