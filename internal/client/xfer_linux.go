package client

import (
	"fmt"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// xfer is one job on its way through an engine thread. It belongs to the thread from Submit to its end, then to the deliverer.
type xfer struct {
	block *block // the newest bytes, not yet handed on
	bytes int    // bytes of the response so far
	size  int    // bytes of the request
	wrote int    // of them, those that the kernel took
	until *wire.Until
	found bool   // the terminator was there
	stale bool   // the server may have closed its connection unnoticed
	req   []byte // the request, until its answer begins
	dating
	c *econn // its connection

	place         queuedXfer
	deadline      time.Duration
	before, after *xfer // in a list of deadlines
	in            *deadlines
}

func newXfer(e *Epoll, j *Job) *xfer {
	x := &xfer{dating: dating{job: j, tr: wire.Transcript{Target: j.Target, Framed: true}}}
	x.req = appendRequest(nil, e.o.Targets[j.Target], &j.Call, e.o.UserAgent, e.o.FreshEach)
	x.size = len(x.req)
	j.Call.Body = nil
	if len(j.Call.Until) > 0 {
		x.until = e.ends.until(j.Call.Until)
	}
	return x
}

// handed is when the last bytes so far were given to the kernel; in the future when none was.
func (x *xfer) handed() time.Duration { return x.tr.Handed.Or(x.tr.Sent.Or(never)) }

// feed takes what a read brought for a job, and returns whether its connection is to be read further.
func (l *loop) feed(c *econn, b []byte, at time.Duration) bool {
	x := c.x
	x.bytes += len(b)
	if x.wrote == x.size {
		x.req = nil
	}
	if x.bytes > l.o.MaxBody {
		l.finish(c, false, wire.FailMalformed, fmt.Sprintf("response above %d bytes", l.o.MaxBody))
		return false
	}
	c.readAt, c.hadHead, c.wasFound = at, c.http.HeadDone(), x.found
	c.behind = cap(b) - len(b)
	n, err := c.http.Feed(b, c.onBody)
	if !c.hadHead && c.http.HeadDone() {
		x.tr.HeadAt, x.headEnd = opt.Some(at), c.http.HeadEnd()
	}
	l.keep(x, b, at)
	if err != nil {
		l.finish(c, false, wire.FailMalformed, err.Error())
		return false
	}
	if c.http.Done() {
		if !x.tr.Ended.Defined() {
			x.tr.Ended, x.bodyEnd = opt.Some(at), x.bytes-(len(b)-n)
		}
		keep := n == len(b) && c.http.KeepAlive() && !l.o.FreshEach && x.wrote == x.size
		l.finish(c, keep, "", "")
		return keep
	}
	if l.o.Eager && x.block != nil {
		l.handOn(x, false)
	}
	if x.found && !c.wasFound {
		l.tails.add(x, l.clock.now()+afterUntil)
	}
	return true
}

// body gets a piece of a body out of the framer.
func (c *econn) body(p []byte) {
	x := c.x
	if x.until == nil || x.found || c.http.Coded() || !x.until.Found(p) {
		return
	}
	x.found = true
	x.tr.Ended, x.bodyEnd = opt.Some(c.readAt), x.bytes-(cap(p)-c.behind)+len(p)
}

// keep appends bytes to the job's block, with their mark, and hands full blocks on. What one read brought stays together where a block
// can hold it: an event that is not cut is decoded without a copy.
func (l *loop) keep(x *xfer, b []byte, at time.Duration) {
	done := x.bytes - len(b)
	for len(b) > 0 {
		if x.block != nil && len(b) > cap(x.block.raw)-len(x.block.raw) && len(b) <= cap(x.block.raw) {
			l.handOn(x, false)
		}
		if x.block == nil {
			x.block = l.blocks.get()
			x.block.x = &x.dating
		}
		k := copy(x.block.raw[len(x.block.raw):cap(x.block.raw)], b)
		x.block.raw = x.block.raw[:len(x.block.raw)+k]
		done += k
		x.block.marks = append(x.block.marks, wire.Mark{End: done, At: at})
		b = b[k:]
		if len(x.block.raw) == cap(x.block.raw) || len(x.block.marks) == cap(x.block.marks) {
			l.handOn(x, false)
		}
	}
}

// handOn gives the newest bytes of a job to the deliverer, or its end.
func (l *loop) handOn(x *xfer, end bool) {
	b := x.block
	x.block = nil
	if b == nil { // the end of a job without bytes
		b = l.blocks.get()
		b.x = &x.dating
	}
	l.blocks.out.Add(1)
	b.end, b.headEnd, b.by, b.at = end, x.headEnd, l.wall, l.now
	l.hand(b)
}

// finish ends a job. Its slot is free from the end of its response, or from now when that came before its time.
func (l *loop) finish(c *econn, keep bool, kind wire.Fail, cause string) {
	x := c.x
	c.x, x.c = nil, nil
	x.leave()
	l.busy--
	x.tr.Bytes, x.tr.Fail, x.tr.Cause = x.bytes, kind, cause
	freed := c.readAt
	if kind != "" || x.bytes == 0 || !c.http.Done() {
		freed = l.clock.now()
	}
	if !x.tr.Ended.Defined() {
		x.tr.Ended = opt.Some(freed)
	}
	if l.slots != nil {
		l.slots.put(freed)
		l.look()
	}
	l.handOn(x, true) // before the end of its connection, with which the deliverer forgets the packets
	if keep {
		putIn(&l.idle[c.target], c)
	} else {
		l.drop(c)
	}
}
