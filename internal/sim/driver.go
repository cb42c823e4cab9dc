package sim

import (
	"sync"
	"time"
)

// driver runs the scheduler's steps in time. A step's outputs are known at its beginning and given out at once, with the time at
// which they are due, so that a late timer here delays no token; it only has to be back before the step after has passed.
type driver struct {
	s    *Server
	wake chan struct{} // work for an idle driver; one place

	mu    sync.Mutex
	sched *scheduler
}

func newDriver(s *Server, p engineParams) *driver {
	return &driver{s: s, wake: make(chan struct{}, 1), sched: newScheduler(p, s.cfg.Seed)}
}

func (d *driver) add(q *sequence) {
	d.mu.Lock()
	d.sched.add(q)
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// abort takes a sequence out; nothing when it has ended.
func (d *driver) abort(q *sequence) {
	d.mu.Lock()
	d.sched.abort(q)
	d.mu.Unlock()
}

func (d *driver) stats() schedulerStats {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.sched.stats
	st.acceptedAt = append([]int64(nil), st.acceptedAt...)
	if d.sched.idle() {
		st.running, st.waiting, st.blocks = 0, 0, 0
	} else {
		// those that arrived during the step
		st.waiting = max(st.waiting, len(d.sched.waiting))
	}
	return st
}

func (d *driver) blocks() int { return d.sched.blocks }

// run performs steps until the server stops. Steps follow each other in the scheduler's own time: the next begins when the one
// before has ended, or when the first request arrives at an idle engine.
func (d *driver) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	at := time.Duration(0)
	for {
		d.mu.Lock()
		if len(d.sched.running) == 0 && len(d.sched.waiting) > 0 {
			at = max(at, d.sched.waiting[0].arrival)
		}
		outputs, duration, ok := d.sched.step(at)
		tokens := 0
		if ok {
			for _, p := range d.sched.batch {
				tokens += p.tokens
			}
		}
		d.mu.Unlock()
		if !ok {
			select {
			case <-d.wake:
				continue
			case <-d.s.stop:
				return
			}
		}
		d.s.met.iteration.observe(float64(tokens), 1)
		at += duration
		for _, o := range outputs {
			o.seq.times.push(engineTokens{at, o.tokens, o.seq.cached})
			o.seq.reply.kick()
		}
		timer.Reset(at - d.s.now())
		select {
		case <-timer.C:
		case <-d.s.stop:
			return
		}
	}
}
