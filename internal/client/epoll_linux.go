package client

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/stamp"
	"github.com/prony-bench/prony/internal/wire"
)

// Epoll is the engine for Linux: a few locked threads, each with an epoll set and connections of its own, send what is due and stamp
// what arrives. Nothing on their path allocates, decodes or waits for a goroutine; what they have read is handed on by one goroutine
// behind them, the deliverer. It speaks HTTP/1.1 over plain TCP and unix sockets; all else is the portable engine's.
type Epoll struct {
	o         Options
	loops     []*loop
	deliverer *deliverer
	guard     *stamp.Guard
	noWire    error // why no packets are captured
	ends      ends

	mu      sync.Mutex
	settled *sync.Cond
	open    int // jobs submitted and not delivered
	closing bool

	closeOnce sync.Once

	counts counts
}

// NewEpoll starts the engine. The error says why this system or these options do not allow it.
func NewEpoll(o Options) (*Epoll, error) {
	if o.HTTP2 || o.Dial != nil {
		return nil, errors.New("the epoll engine speaks HTTP/1.1 over TCP and unix sockets")
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	addrs := make([]sockaddr, len(o.Targets))
	for i, t := range o.Targets {
		if t.URL.Scheme != "http" {
			return nil, fmt.Errorf("the epoll engine does not speak %s", t.URL.Scheme)
		}
		var err error
		if addrs[i], err = sockaddrOf(t); err != nil {
			return nil, err
		}
	}
	e := &Epoll{o: o}
	if o.Stamps != wire.StampUser {
		e.guard = stamp.OpenGuard()
	}
	e.settled = sync.NewCond(&e.mu)
	n := max(1, o.Threads)
	if o.Cap > 0 {
		n = min(n, o.Cap)
	}
	for i := range n {
		l, err := newLoop(&e.o, addrs, share(o.Cap, n, i), newClock(o.Epoch), &e.counts, func(b *block) { e.deliverer.take(b) })
		if err != nil {
			for _, l := range e.loops {
				l.free()
			}
			e.guard.Close()
			return nil, err
		}
		e.loops = append(e.loops, l)
	}
	r, why := ringFor(&e.o)
	for _, l := range e.loops {
		l.ringed = r != nil
	}
	e.noWire = why
	d, err := newDeliverer(o.Sink, r, newClock(o.Epoch), e.busy, e.delivered)
	if err != nil {
		for _, l := range e.loops {
			l.free()
		}
		r.close()
		e.guard.Close()
		return nil, err
	}
	e.deliverer, d.compare, d.eager = d, o.compare, o.Eager
	moreProcs(n)
	for _, l := range e.loops {
		go l.run()
	}
	go d.run()
	return e, nil
}

// ringFor captures the packets of the targets, or says why not.
func ringFor(o *Options) (*ring, error) {
	if s := o.Stamps; s != "" && s != wire.StampWire {
		return nil, fmt.Errorf("the stamps asked for are %s", s)
	}
	if o.NoWire != "" {
		return nil, errors.New(o.NoWire)
	}
	return openRing(o.Targets, newClock(o.Epoch))
}

// share is the i-th of n parts of a cap, which sum up to it; 0 without one.
func share(limit, n, i int) int {
	part := limit / n
	if i < limit%n {
		part++
	}
	return part
}

// Now implements Engine.
func (e *Epoll) Now() time.Duration { return time.Since(e.o.Epoch) }

// Submit implements Engine.
func (e *Epoll) Submit(j *Job) {
	x := newXfer(e, j)
	e.mu.Lock()
	e.open++
	first, closing := e.open == 1, e.closing
	e.mu.Unlock()
	if closing {
		x.tr.Fail, x.tr.Cause = wire.FailDropped, NeverSent
		e.o.Sink.Done(j, &x.tr)
		e.delivered()
		return
	}
	if first {
		e.deliverer.wake()
	}
	e.loops[uint(j.ID)%uint(len(e.loops))].tell(&command{kind: cmdSubmit, x: x})
}

// Open implements Engine.
func (e *Epoll) Open(target, n int) {
	for i, l := range e.loops {
		l.tell(&command{kind: cmdOpen, target: target, n: share(n, len(e.loops), i)})
	}
}

// Drain implements Engine.
func (e *Epoll) Drain() { e.tellAll(cmdDrain) }

// Cut implements Engine.
func (e *Epoll) Cut() { e.tellAll(cmdCut) }

func (e *Epoll) tellAll(kind commandKind) {
	for _, l := range e.loops {
		l.tell(&command{kind: kind})
	}
}

// Close implements Engine.
func (e *Epoll) Close() bench.ClientReport {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	e.closeOnce.Do(func() {
		e.Drain()
		e.mu.Lock()
		for e.open > 0 {
			e.settled.Wait()
		}
		e.mu.Unlock()
		e.tellAll(cmdStop)
		for _, l := range e.loops {
			<-l.ended
		}
		e.deliverer.stop()
		e.guard.Close()
		moreProcs(-len(e.loops))
	})
	return e.report()
}

// delivered counts a job off.
func (e *Epoll) delivered() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.open--; e.open == 0 {
		e.settled.Broadcast()
	}
}

// busy tells whether some job has not been delivered.
func (e *Epoll) busy() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open > 0
}

func (e *Epoll) report() bench.ClientReport {
	r := e.counts.report(e.loops[0].clock)
	r.Engine, r.Threads = "epoll", len(e.loops)
	e.deliverer.report(&r, e.noWire)
	for _, l := range e.loops[1:] {
		steps, unrepaired := l.clock.counts()
		r.ClockSteps = max(r.ClockSteps, steps)
		r.UnrepairedSteps += unrepaired
	}
	return r
}

var procs sync.Mutex

// moreProcs gives the Go scheduler places for n more threads that keep theirs while they wait in the kernel.
func moreProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}
