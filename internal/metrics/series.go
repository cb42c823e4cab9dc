package metrics

import (
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stats"
)

// maxSeries bounds the per-second series: a day.
const maxSeries = 24 * 3600

// series describes the window second by second.
func (x *Context) series() []bench.Second {
	w, ok := x.window()
	if !ok {
		return []bench.Second{}
	}
	n := min(int(w)+1, maxSeries)
	out := make([]bench.Second, n)
	ttft, itl := make([][]float64, n), make([][]float64, n)
	index := func(at time.Duration) (int, bool) {
		i := int((at - x.From) / time.Second)
		return i, at >= x.From && i < n
	}
	for _, r := range x.Records {
		sent, has := r.Sent.Get()
		if !has {
			continue
		}
		if i, ok := index(sent); ok {
			out[i].Sent++
			if r.Outcome == bench.OK && !r.Has(bench.AllAtOnce) {
				sampleTTFT(r, x, func(v float64) { ttft[i] = append(ttft[i], v) })
			}
		}
		if i, ok := index(x.ended(r)); ok {
			if r.Outcome == bench.OK {
				out[i].Ended++
			} else if r.Outcome.Failed() {
				out[i].Failed++
			}
		}
		if r.Outcome == bench.OK && !r.Has(bench.AllAtOnce) {
			gaps(r, func(gap time.Duration, later int) {
				if i, ok := index(sent + r.Events[later]); ok {
					itl[i] = append(itl[i], float64(gap)/perMS)
				}
			})
		}
	}
	tokens, known := x.buckets()
	for i := range out {
		out[i].T = float64(i)
		if known && i < len(tokens) {
			out[i].Tokens = opt.Some(tokens[i])
		}
		out[i].TTFT, out[i].TTFTP99 = quantileOf(ttft[i], 50), quantileOf(ttft[i], 99)
		out[i].ITL = quantileOf(itl[i], 50)
	}
	x.meanInFlight(out)
	return out
}

func quantileOf(xs []float64, p float64) opt.Of[float64] {
	slices.Sort(xs)
	if v, ok := stats.Quantile(xs, p); ok {
		return opt.Some(v)
	}
	return opt.Of[float64]{}
}

// meanInFlight fills in the mean number in flight of each second; the last one may be shorter.
func (x *Context) meanInFlight(out []bench.Second) {
	steps := x.steps()
	level := 0
	for k, s := range steps {
		level += s.by
		if k+1 == len(steps) || level == 0 {
			continue
		}
		for from, to := s.at, steps[k+1].at; from < to; {
			i := int((from - x.From) / time.Second)
			if i >= len(out) {
				break
			}
			end := min(to, x.From+time.Duration(i+1)*time.Second)
			out[i].InFlight += float64(level) * (end - from).Seconds()
			from = end
		}
	}
	if n := len(out); n > 0 && n < maxSeries {
		if rest := (x.To - x.From - time.Duration(n-1)*time.Second).Seconds(); rest > 0 {
			out[n-1].InFlight /= rest
		}
	}
}
