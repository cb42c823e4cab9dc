package metrics

import (
	"math"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stats"
)

// Most of the client's own lateness: beyond the greater of the two it distorts the load and what is measured.
const (
	latenessFloorMS = 10.0
	latenessShare   = 0.05 // of the median TTFT
)

// The client may not run for stalledMost of the window; a hiccup below stalledFloor is one of any machine.
const (
	stalledMost  = 0.02
	stalledFloor = 100 * time.Millisecond
)

// latenessLimit is the bound of the client's lateness in ms.
func latenessLimit(s *bench.Summary) float64 {
	p50, _ := s.Metrics.Dist("ttft_ms").P(50)
	return math.Max(latenessFloorMS, latenessShare*p50)
}

// lateness gives by how many ms the client was late to send a request. Under a schedule that is its lag. Elsewhere it is the time from
// when the request could first go out, because its place was free or all were due at once, until it was handed to the kernel. The time
// that its connection took is not the client's. Neither is that of a first try on a connection that the server had closed, nor the turn
// of a request among those that all could go out at the begin, since they can only go one after the other: such requests give none.
func lateness(r *bench.Record, x *Context, add func(ms float64)) {
	if x.Spec.Load.Paced() {
		sampleLag(r, x, add)
		return
	}
	sent, ok := r.Sent.Get()
	could := r.Slot
	if !could.Defined() {
		could = r.Due
	}
	from, ok2 := could.Get()
	if !ok || !ok2 || from <= x.begin() || r.Has(bench.RetriedStaleConnection) {
		return
	}
	add(float64(max(0, r.Handed.Or(sent)-from-r.Connect.Or(0)-r.TLS.Or(0))) / perMS)
}

// begin is when the first request could go out.
func (x *Context) begin() time.Duration {
	if !x.began.Defined() {
		first := time.Duration(math.MaxInt64)
		for _, r := range x.Records {
			first = min(first, r.Slot.Or(r.Due.Or(first)))
		}
		x.began = opt.Some(first)
	}
	return x.began.Or(0)
}

// latenesses are those of all measured requests.
func (x *Context) latenesses() []float64 {
	return x.samples(Def{Of: OfSent, Sample: lateness})
}

// findClientLimited looks for what the client did to the load and to the stamps. Every shape of load is judged by one bound.
func findClientLimited(x *Context, s *bench.Summary, say func(metric, format string, args ...any)) {
	limit := latenessLimit(s)
	if late, ok := quantileOf(x.latenesses(), 99).Get(); ok && late > limit {
		switch l := x.Spec.Load; {
		case l.Paced():
			say("", "the client's lag p99 is %s ms, above %s ms", three(late), three(limit))
		case l.InFlightLimit() > 0:
			say("", "the client was late by %s ms at p99, above %s ms: so long a free place in flight waited for its request", three(late), three(limit))
		default:
			say("", "the client was late by %s ms at p99, above %s ms: so long it took to send what was due at once", three(late), three(limit))
		}
	}
	c := s.Client
	if w, ok := s.Window.Get(); ok && c.Stalled > int64(stalledFloor) && float64(c.Stalled)/1e9 > stalledMost*w {
		say("", "the client did not run for %s s of the %s s window (stopped, or without a processor)", three(float64(c.Stalled)/1e9), three(w))
	}
	if c.Stamp != "wire" && float64(c.ReadDelayP99)/perMS > limit {
		say("", "the client read its sockets %s ms late at p99, above %s ms", three(float64(c.ReadDelayP99)/perMS), three(limit))
	}
	if c.Stamp == "user" && float64(c.SchedDelayP99)/perMS > limit {
		say("", "the client got the processor %s ms late at p99, above %s ms: its stamps are those of its reads", three(float64(c.SchedDelayP99)/perMS), three(limit))
	}
}

// clientLeftPlaces tells whether places were empty over a stretch because of the client: its lateness makes up half of their empty time
// or more. Else they waited for connections, or nothing was there to be sent. mean is the lateness in ms.
func (x *Context) clientLeftPlaces(p plateau) (mean float64, yes bool) {
	mean, ok := stats.Mean(x.latenesses())
	empty := float64(time.Duration(x.places())*(p.to-p.from)-p.taken) / perMS
	return mean, ok && mean*float64(p.sent) >= empty/2
}

// within returns how much of some stretches, which do not overlap, lies between two moments.
func within(spans []bench.Span, from, to time.Duration) (sum time.Duration) {
	for _, s := range spans {
		sum += max(0, min(s.To, to)-max(s.From, from))
	}
	return sum
}
