package run

import (
	"iter"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/schedule"
)

// Planned is a request as a run would send it.
type Planned struct {
	bench.Request
	Due opt.Of[time.Duration] // from the begin of the phase, where the schedule says so
}

// Sequence gives the requests of the measured phase in their order, without sending them. Of a load that goes on for a duration and has
// no schedule it gives most of them.
func (p *Plan) Sequence(most int) iter.Seq2[Planned, error] {
	return func(yield func(Planned, error) bool) {
		ph := p.Spec.Phases[len(p.Spec.Phases)-1]
		seq, err := p.open(ph)
		if err != nil {
			yield(Planned{}, err)
			return
		}
		next, stop := iter.Pull2(seq)
		defer stop()
		n := 0
		give := func(due opt.Of[time.Duration]) bool {
			q, err, ok := next()
			if err == nil && !ok {
				err = fault.New(fault.Internal, "the data set ended", "")
			}
			q.ID, q.Phase = n, ph.Name
			n++
			return yield(Planned{q, due}, err) && err == nil
		}
		limit := ph.Stop.Requests
		if !ph.Load.Paced() {
			if limit == 0 {
				limit = most
			}
			for n < limit && give(opt.Of[time.Duration]{}) {
			}
			return
		}
		own := ph.Load.Shape == bench.Trace && ph.Load.Times == ""
		for at, err := range p.moments(ph, func() {
			if own {
				next() // a request of the trace outside of its window
			}
		}) {
			if err != nil {
				yield(Planned{}, err)
				return
			}
			if limit > 0 && n >= limit || ph.Stop.Duration > 0 && at >= ph.Stop.Duration || !give(opt.Some(at)) {
				return
			}
		}
	}
}

// moments are the arrivals of a phase; after is called for each moment of a trace that is behind its window.
func (p *Plan) moments(ph bench.Phase, after func()) iter.Seq2[time.Duration, error] {
	if ph.Load.Shape != bench.Trace {
		return p.arrivals(ph)
	}
	return func(yield func(time.Duration, error) bool) {
		replay, last := schedule.ReplayOf(ph.Load, nil), time.Duration(0)
		for t, err := range p.timestamps(ph) {
			at, inside := replay.At(t)
			if err == nil && !inside {
				if t >= ph.Load.From { // those before it are not opened
					after()
				}
				continue
			}
			if last = max(last, at); !yield(last, err) {
				return
			}
		}
	}
}
