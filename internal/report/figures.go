package report

import (
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
)

// Bounds that several figures share.
const (
	thinColumns = 900  // pixel columns to which a stream of points is thinned: about the widest figure of a page
	logFrom     = 20.0 // an axis is logarithmic when its greatest value is above so many medians
	limitNear   = 2.0  // a limit is drawn when it is below so many times the greatest value
)

// figures draws the run. Without records only the summary of the targets can be drawn.
func (b *builder) figures(m *Model) {
	b.comparison(m)
	if b.ctx == nil || !b.ctx.Sent {
		return
	}
	w := (b.ctx.To - b.ctx.From).Seconds()
	if w > 0 {
		t := timeFigures{b: b, window: w, sends: b.lastSend()}
		if b.stream() {
			t.latency(m, "ttft_ms", "TTFT", "request", b.timed("ttft_ms"))
			t.latency(m, "itl_ms", "ITL", "gap", b.timedGaps())
		} else {
			t.latency(m, "e2el_ms", "E2E", "request", b.timed("e2el_ms"))
		}
		t.inFlight(m)
		t.throughput(m)
	}
	keys := []string{"e2el_ms"}
	if b.stream() {
		keys = []string{"ttft_ms", "tpot_ms", "e2el_ms"}
	}
	for _, key := range keys {
		b.histogram(m, key)
	}
	b.limited(m)
	b.waterfalls(m)
}

// series are samples with their times in s from the begin of the window.
type series struct{ times, values []float64 }

// samples gives the samples of a metric, with their requests.
func (b *builder) samples(key string, give func(r *bench.Record, v float64)) {
	d := b.def(key)
	if d.Sample == nil {
		return
	}
	for _, r := range b.ctx.Records {
		if r.Outcome != bench.OK || d.Of == metrics.OfStreams && r.Has(bench.AllAtOnce) {
			continue
		}
		d.Sample(r, b.ctx, func(v float64) { give(r, v) })
	}
}

// timed are the samples of a metric at the time of sending.
func (b *builder) timed(key string) (s series) {
	b.samples(key, func(r *bench.Record, v float64) {
		s.times = append(s.times, (r.Sent.Or(b.ctx.From) - b.ctx.From).Seconds())
		s.values = append(s.values, v)
	})
	return s
}

// timedGaps are the gaps between output events, at the time of the later one.
func (b *builder) timedGaps() (s series) {
	for _, r := range b.ctx.Records {
		if r.Outcome != bench.OK || r.Has(bench.AllAtOnce) {
			continue
		}
		sent := r.Sent.Or(b.ctx.From) - b.ctx.From
		before := map[int]time.Duration{} // by choice
		for i, at := range r.Events {
			choice := 0
			if len(r.EventChoice) == len(r.Events) {
				choice = r.EventChoice[i]
			}
			if last, ok := before[choice]; ok {
				s.times = append(s.times, (sent + at).Seconds())
				s.values = append(s.values, float64(at-last)/float64(time.Millisecond))
			}
			before[choice] = at
		}
	}
	return s
}

// limitOf is the limit of a metric in ms.
func (b *builder) limitOf(key string) (float64, bool) {
	for _, l := range b.man.Spec.SLO {
		if l.Metric+"_ms" == key {
			return float64(l.Max) / float64(time.Millisecond), true
		}
	}
	return 0, false
}

// sorted are the samples of a metric, ascending, in the unit that reads best.
func (b *builder) sorted(key string) (values []float64, unit string, size float64) {
	b.samples(key, func(_ *bench.Record, v float64) { values = append(values, v) })
	slices.Sort(values)
	unit, size = unitOf(values)
	return values, unit, size
}
