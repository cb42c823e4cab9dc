package metrics

import (
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
	ttft := perSecond{of: x, done: func(i int, values []float64) {
		out[i].TTFT, out[i].TTFTP99 = quantileOf(values, 50), quantileOf(values, 99)
	}}
	itl := perSecond{of: x, done: func(i int, values []float64) { out[i].ITL = quantileOf(values, 50) }}
	for _, r := range x.Records {
		if sent, ok := r.Sent.Get(); ok {
			if i, ok := x.second(sent); ok {
				out[i].Sent++
			}
			if OfStreams.Has(r) {
				sampleTTFT(r, x, func(v float64) { ttft.add(sent, v) })
			}
		}
		if i, ok := x.second(r.End.Or(r.Last.Or(r.Sent.Or(-1)))); ok {
			switch {
			case r.Outcome == bench.OK:
				out[i].Ended++
			case r.Outcome.Failed():
				out[i].Failed++
			}
		}
	}
	ttft.close()
	x.gapsInTime(func(g gap) { itl.add(g.at, float64(g.length)/perMS) })
	itl.close()
	tokens, known := x.buckets()
	known = known && x.Spec.Target.Task == bench.Generate
	for i := range out {
		out[i].T = float64(i)
		if known && i < len(tokens) {
			out[i].Tokens = opt.Some(tokens[i])
		}
	}
	x.meanInFlight(out)
	return out
}

// second is the place of a moment in the series.
func (x *Context) second(at time.Duration) (i int, ok bool) {
	if at < x.From {
		return 0, false
	}
	i = int((at - x.From) / time.Second)
	return i, at <= x.To && i < maxSeries
}

// perSecond gathers the values of one second after the other, so that those of a long run are never held all at once.
type perSecond struct {
	of     *Context
	done   func(second int, values []float64)
	at     int
	values []float64
}

// add takes a value; those of an earlier second have to come before it.
func (p *perSecond) add(at time.Duration, v float64) {
	i, ok := p.of.second(at)
	if !ok {
		return
	}
	if i != p.at {
		p.close()
		p.at = i
	}
	p.values = append(p.values, v)
}

func (p *perSecond) close() {
	if len(p.values) > 0 {
		p.done(p.at, p.values)
	}
	p.values = p.values[:0]
}

func quantileOf(xs []float64, p float64) opt.Of[float64] {
	stats.Sort(xs)
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
