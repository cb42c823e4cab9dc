package client

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// A thread with work to do comes by at least every beat. When it is later than that by more than beatSlack it did not run: the process
// was stopped, or had no processor.
const (
	beat      = 10 * time.Millisecond
	beatSlack = 10 * time.Millisecond
)

// mostStalls bounds what is kept. Beyond it the newest stall swallows what follows.
const mostStalls = 1000

// stalls are the stretches in which threads did not run although they had work.
type stalls struct {
	mu    sync.Mutex
	spans []bench.Span
}

func (s *stalls) add(from, to time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spans); n == mostStalls {
		s.spans[n-1].To = max(s.spans[n-1].To, to)
		return
	}
	s.spans = append(s.spans, bench.Span{From: from, To: to})
}

// merged returns the stretches in order, those that overlap as one.
func (s *stalls) merged() []bench.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.spans, func(a, b bench.Span) int { return cmp.Compare(a.From, b.From) })
	var out []bench.Span
	for _, x := range s.spans {
		if n := len(out); n > 0 && x.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, x.To)
		} else {
			out = append(out, x)
		}
	}
	return out
}

// came tells that a thread comes by now, after last, and has had work since. It returns now.
func (s *stalls) came(last, now time.Duration, busy bool) time.Duration {
	if busy && now-last > beat+beatSlack {
		s.add(last+beat, now)
	}
	return now
}

// pulse watches whether goroutines of this process run, where there is no engine thread that would notice, until it is stopped.
func (n *counts) pulse(c *clock, busy func() bool) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		last := c.now()
		for {
			select {
			case <-tick.C:
			case <-quit:
				return
			}
			now := c.now()
			n.sched.add(max(0, now-last-beat))
			last = n.stalls.came(last, now, busy())
		}
	}()
	return func() { close(quit); <-ended }
}
