package client

import (
	"context"
	"slices"
	"sync"

	"github.com/prony-bench/prony/internal/wire"
)

// h2pool gives jobs to HTTP/2 connections. A job goes to a connection that has a place for one more stream. Where none has, it waits
// for one that frees, or for a connection that is being opened, and opens one itself when those are too few.
//
// A connection counts as open when the server's SETTINGS are there: then its number of places is known, and no stream is refused for
// having come too early.
type h2pool struct {
	p *Portable

	mu      sync.Mutex // taken before that of a connection
	targets []h2target
	conns   map[*h2conn]struct{} // all that are open
	closed  bool
}

// h2target is what the pool knows of a target.
type h2target struct {
	waiting []*h2job  // for a place, oldest first
	roomy   []*h2conn // had a place when last looked at
	opening int       // connections being opened
	coming  int       // their places, without those of the jobs that open them
	places  int       // of a connection, by the newest that was opened
	known   bool      // one was opened
	ahead   int       // places to have ahead of need, for when places is known
}

// h2job is an exchange and where it is on its way.
type h2job struct {
	ex     *exchange
	c      *h2conn // it is a stream of this connection, or was the last time
	cancel func()  // a connection is being opened for it; this ends that
}

// manyPlaces stands for the places of a connection that has no limit, or whose limit is not known yet.
const manyPlaces = 1 << 20

func newH2Pool(p *Portable) *h2pool {
	l := &h2pool{p: p, targets: make([]h2target, len(p.o.Targets)), conns: map[*h2conn]struct{}{}}
	for i := range l.targets {
		l.targets[i].places = manyPlaces
		if p.o.FreshEach {
			l.targets[i].places, l.targets[i].known = 1, true
		}
	}
	return l
}

// start sends a job as soon as it has a place.
func (l *h2pool) start(ex *exchange) {
	ex.tr.Framed = false
	j, target := &h2job{ex: ex}, ex.job.Target
	l.mu.Lock()
	t := &l.targets[target]
	t.waiting = append(t.waiting, j)
	l.mu.Unlock()
	ex.onCancel(func() { l.cut(j) })
	l.balance(target, nil)
	if spare := l.p.o.Spare; spare > 0 {
		l.mu.Lock()
		if !l.closed && t.free()+t.coming-len(t.waiting) < spare {
			l.dial(target, nil)
		}
		l.mu.Unlock()
	}
}

// open opens connections ahead of need, until there are n places.
func (l *h2pool) open(target, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.targets[target].ahead = n
	l.openAhead(target)
}

// openAhead opens what is missing of the places ahead of need, as far as their number is known. l.mu is held.
func (l *h2pool) openAhead(target int) {
	t := &l.targets[target]
	for missing := t.ahead - t.free() - t.coming; missing > 0 && !l.closed; missing -= t.places {
		l.dial(target, nil)
	}
	if t.known {
		t.ahead = 0
	}
}

// balance gives places to the jobs that wait, and opens connections for those that no place is coming for. c, if any, may have a
// place again.
func (l *h2pool) balance(target int, c *h2conn) {
	var begun []*h2job
	var conns []*h2conn // theirs
	l.mu.Lock()
	t := &l.targets[target]
	if c != nil && !c.listed && c.room() > 0 {
		c.listed = true
		t.roomy = append(t.roomy, c)
	}
	for len(t.waiting) > 0 && len(t.roomy) > 0 {
		c := t.roomy[0] // the first of them, so that the others may rest
		if !c.begin(t.waiting[0]) {
			t.dropRoomy(c)
			continue
		}
		begun, conns = append(begun, t.takeWaiting()), append(conns, c)
	}
	for len(t.waiting) > t.coming {
		l.dial(target, t.takeWaiting())
	}
	l.mu.Unlock()
	for i, j := range begun {
		conns[i].push()
		l.settle(j)
	}
}

// dial opens a connection, for a job that is to go first on it, or ahead of need (nil). l.mu is held.
func (l *h2pool) dial(target int, j *h2job) {
	t := &l.targets[target]
	places := t.places
	ctx, cancel := context.WithCancel(l.p.ctx)
	if j != nil {
		j.c, j.cancel = nil, cancel
		places--
	}
	t.opening++
	t.coming += places
	l.p.wg.Go(func() {
		if j != nil {
			l.settle(j)
		}
		c, fail := l.p.connectHTTP2(ctx, target)
		cancel()
		l.opened(target, places, j, c, fail)
		if c != nil {
			c.read()
		}
	})
}

// opened takes the end of a dial that was to bring so many places: a connection, or why there is none. A dial ahead of need may fail
// unseen, since the job that needs the connection tries again. The failure for a job is also that of those that waited for places
// of its connection, unless others are under way.
func (l *h2pool) opened(target, places int, j *h2job, c *h2conn, fail failure) {
	var failed []*h2job
	l.mu.Lock()
	t := &l.targets[target]
	t.opening--
	t.coming -= places
	if c != nil {
		l.conns[c] = struct{}{}
		if l.closed {
			c.nc.Close()
		}
		c.waited = j == nil
		first := !t.known
		t.places, t.known = max(1, c.room()), true
		switch {
		case j != nil && !c.begin(j):
			c.retire()
			fail = failure{wire.FailRefused, "the server lets no stream be opened"}
		case c.room() > 0:
			c.listed = true
			t.roomy = append(t.roomy, c)
		}
		if first {
			l.openAhead(target)
		}
	}
	if fail.kind != "" && j != nil {
		failed = append(failed, j)
		if t.opening == 0 && fail.kind != wire.FailIncomplete {
			failed, t.waiting = append(failed, t.waiting...), nil
		}
	}
	l.mu.Unlock()
	if c != nil && j != nil {
		c.push()
		l.settle(j)
	}
	l.balance(target, nil)
	for _, j := range failed {
		l.p.finish(j.ex, nil, fail.kind, fail.cause)
	}
}

// retry sends a job once more, on a fresh connection.
func (l *h2pool) retry(j *h2job) {
	l.p.counts.stale.Add(1)
	j.ex.tr.Retried = true
	l.mu.Lock()
	l.dial(j.ex.job.Target, j)
	l.mu.Unlock()
}

// cut ends a job wherever it is.
func (l *h2pool) cut(j *h2job) {
	l.mu.Lock()
	c, cancel := j.c, j.cancel
	waited := false
	if t := &l.targets[j.ex.job.Target]; c == nil && cancel == nil {
		if i := slices.Index(t.waiting, j); i >= 0 {
			t.waiting = slices.Delete(t.waiting, i, i+1)
			waited = true
		}
	}
	l.mu.Unlock()
	switch {
	case c != nil:
		c.poke()
	case cancel != nil:
		cancel()
	case waited:
		l.p.finish(j.ex, nil, wire.FailIncomplete, "cut while waiting for a connection")
	}
}

// settle makes sure that a job that was to be cut while it changed places is cut in the new one.
func (l *h2pool) settle(j *h2job) {
	if j.ex.interrupted() {
		l.cut(j)
	}
}

// gone takes out a connection that has ended.
func (l *h2pool) gone(c *h2conn) {
	l.mu.Lock()
	delete(l.conns, c)
	if c.listed {
		l.targets[c.target].dropRoomy(c)
	}
	l.mu.Unlock()
}

// close closes all connections. No job may be under way.
func (l *h2pool) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	var open []*h2conn
	for c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		l.p.wg.Go(c.leave)
	}
}

// free returns the number of places that are free.
func (t *h2target) free() int {
	n := 0
	for _, c := range t.roomy {
		n += c.room()
	}
	return n
}

func (t *h2target) takeWaiting() *h2job {
	j := t.waiting[0]
	t.waiting[0] = nil
	t.waiting = t.waiting[1:]
	return j
}

func (t *h2target) dropRoomy(c *h2conn) {
	c.listed = false
	if i := slices.Index(t.roomy, c); i >= 0 {
		t.roomy = slices.Delete(t.roomy, i, i+1)
	}
}
