package client

import (
	"sync/atomic"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/wire"
)

// piped is what an exchange over a pipe knows of its places in the connection, so that its moments can be those of packets. Offsets
// count the bytes of the connection, encrypted or not.
type piped struct {
	in     dated // what tells the moments
	pipe   *pipe // below it; nil: there is none, or no packets are captured
	offs   []int64
	head   int64 // behind the head
	end    int64 // behind the end, or the terminator
	reqEnd atomic.Pointer[written]
	dating dating
}

// written tells where in which connection a request has ended. A writer may still say so of a connection that has been replaced.
type written struct {
	pipe *pipe
	end  int64
}

// pipeOf returns the pipe below a connection, if packets are captured for it.
func pipeOf(c dated) *pipe {
	for l, ok := c.(*lookahead); ok; l, ok = c.(*lookahead) {
		c = l.dated
	}
	if p, ok := c.(*pipe); ok && p.track != nil {
		return p
	}
	return nil
}

// over tells which connection the exchange goes over, and whether others do at the same time.
func (x *piped) over(c dated, shared bool) {
	x.in, x.pipe, x.dating.shared = c, pipeOf(c), shared
}

// sent tells that the whole request has been written to a connection.
func (x *piped) sent(c dated) {
	if p := pipeOf(c); p != nil {
		x.reqEnd.Store(&written{p, p.out.Load()})
	}
}

// came notes where in the connection the newest mark was complete.
func (x *piped) came() {
	if x.pipe != nil {
		x.offs = append(x.offs, x.in.arrived().end)
	}
}

// headed notes where the head was complete.
func (x *piped) headed() {
	if x.pipe != nil {
		x.head = x.in.arrived().end
	}
}

// ended notes where the answer ended.
func (x *piped) ended() {
	if x.pipe != nil {
		x.end = x.in.arrived().end
	}
}

// hand gives a piece of an answer, or its end, to the deliverer. It returns false when the exchange goes past it.
func (p *pipes) hand(ex *exchange, end bool) bool {
	x := &ex.piped
	if p == nil || p.deliverer == nil || x.pipe == nil {
		return false
	}
	d, tr := &x.dating, ex.tr
	if d.job == nil {
		d.job, d.track = ex.job, x.pipe.track
	}
	if end {
		d.tr, d.bodyEnd = *tr, int(x.end)
		if w := x.reqEnd.Load(); w != nil && w.pipe == x.pipe {
			d.reqEnd = w.end
		}
	}
	_, wall := p.deliverer.clock.pair()
	p.deliverer.take(&block{x: d, raw: tr.Raw, marks: tr.Marks, end: end, headEnd: int(x.head), by: wall, at: ex.p.clock.now(),
		piped: &pipedPart{x.offs, wire.Part{Framed: tr.Framed, Status: tr.Status, Header: tr.Header}}})
	x.offs = nil
	return true
}

// report tells of the capture.
func (p *pipes) report(r *bench.ClientReport) {
	if p != nil {
		p.deliverer.report(r, p.noWire)
	}
}
