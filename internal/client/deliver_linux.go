package client

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/tap"
	"github.com/prony-bench/prony/internal/wire"
)

// deliverer hands what the engine threads have read to the sink, dated by its packets where they are captured. It has a thread of its
// own, so that nothing it waits for holds up an engine thread.
type deliverer struct {
	sink  Sink
	ring  *ring // nil: no packets are captured
	clock *clock
	busy  func() bool // some job has not been delivered
	done  func()      // one more has been

	eager   bool                             // no piece is to lie
	compare func(reads, packets []wire.Mark) // nil, but in the self-test

	inbox   blockStack
	bell    int    // eventfd
	waiting *block // for the ring, oldest first
	newest  *block
	quit    chan struct{}
	ended   chan struct{}

	fromRing, fromReads int64 // exchanges by the grade of their moments
}

const (
	// deliverEvery is how long a piece of an answer may lie; ends are handed on at once.
	deliverEvery = 10 * time.Millisecond
	// idleEvery is how often an idle deliverer empties the ring: other programs may talk to the same server.
	idleEvery = 100 * time.Millisecond
	// ringPatience is how long a piece waits for its packets. They are late only where the machine is.
	ringPatience = 500 * time.Millisecond
)

func newDeliverer(sink Sink, r *ring, c *clock, busy func() bool, done func()) (*deliverer, error) {
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &deliverer{sink: sink, ring: r, clock: c, busy: busy, done: done, bell: bell, quit: make(chan struct{}), ended: make(chan struct{})}, nil
}

// take takes a piece of an answer, or its end, from an engine thread.
func (d *deliverer) take(b *block) {
	now := b.end || d.eager
	if d.inbox.push(b); now {
		d.wake()
	}
}

func (d *deliverer) wake() { unix.Write(d.bell, one) }

// run is the deliverer's thread.
func (d *deliverer) run() {
	runtime.LockOSThread()
	defer close(d.ended)
	for {
		d.collect()
		if d.ring != nil {
			d.ring.read(0)
		}
		d.deliverAll()
		select {
		case <-d.quit:
			if d.waiting == nil && d.inbox.empty() {
				return
			}
		default:
		}
		d.wait()
	}
}

// collect appends what has come to what waits.
func (d *deliverer) collect() {
	for b := oldestFirst(d.inbox.takeAll()); b != nil; b = b.next {
		if d.waiting == nil {
			d.waiting = b
		} else {
			d.newest.next = b
		}
		d.newest = b
	}
	if d.newest != nil {
		d.newest.next = nil
	}
}

// deliverAll hands on what need not wait for the ring.
func (d *deliverer) deliverAll() {
	for d.waiting != nil {
		b := d.waiting
		if d.mustWait(b) {
			return
		}
		if d.waiting = b.next; d.waiting == nil {
			d.newest = nil
		}
		b.next = nil
		d.deliver(b)
	}
}

// mustWait tells whether the ring may still bring packets of a piece.
func (d *deliverer) mustWait(b *block) bool {
	return d.ring != nil && b.x != nil && b.x.track != nil && !d.ring.seen(b.x.track.target, b.by) && d.clock.now() < b.at+ringPatience
}

// wait waits for an end, for the ring, or for some milliseconds.
func (d *deliverer) wait() {
	if d.waiting != nil {
		d.ring.read(2 * ringTimeout)
		return
	}
	var timeout *unix.Timespec
	switch {
	case d.busy():
		ts := unix.NsecToTimespec(int64(deliverEvery))
		timeout = &ts
	case d.ring != nil:
		ts := unix.NsecToTimespec(int64(idleEvery))
		timeout = &ts
	}
	fds := []unix.PollFd{{Fd: int32(d.bell), Events: unix.POLLIN}}
	if n, err := unix.Ppoll(fds, timeout, nil); n > 0 && err == nil {
		var b [8]byte
		unix.Read(d.bell, b[:])
	}
}

// deliver gives one piece or end to the sink.
func (d *deliverer) deliver(b *block) {
	x := b.x
	if x == nil {
		d.ring.forget(b.track)
		b.free()
		return
	}
	marks := b.marks
	if d.ring != nil && x.track != nil {
		if marks = d.ring.redate(b); d.compare != nil {
			d.compare(b.marks, marks)
		}
	}
	if !b.end {
		part := wire.Part{Framed: true}
		if b.piped != nil {
			part = b.piped.as
		}
		part.Raw, part.Marks, part.Release = b.raw, marks, b.free
		d.sink.Part(x.job, part)
		return
	}
	x.tr.Raw, x.tr.Marks, x.tr.Release = b.raw, marks, b.free
	switch {
	case x.tr.Stamp == wire.StampWire:
		d.fromRing++
	case x.tr.Sent.Defined():
		d.fromReads++
	}
	d.sink.Done(x.job, &x.tr)
	d.done()
}

// redate gives a piece of an answer the moments of its packets, and its end those of the exchange.
func (r *ring) redate(b *block) []wire.Mark {
	x := b.x
	c := r.find(x.track)
	var marks []wire.Mark
	all := false
	if b.piped != nil {
		marks, all = r.datePiped(c, b)
	} else {
		marks, all = r.date(c, x.base, x.dated, b.marks, b.by, b.wire[:0])
		b.wire = marks
		if n := len(b.marks); n > 0 {
			x.dated = b.marks[n-1].End
		}
	}
	x.doubt = x.doubt || !all && len(b.marks) > 0
	if c == nil {
		return marks
	}
	if !x.headAt.Defined() {
		x.headAt = r.moment(c, x, b.headEnd)
	}
	if b.end {
		r.redateEnd(x, c)
	}
	if !x.shared {
		c.In.Trim(x.base + int64(x.dated))
	}
	return marks
}

// redateEnd sets the moments of an exchange that has ended.
func (r *ring) redateEnd(x *dating, c *tap.Conn) {
	sent, handed := false, x.tr.Sent.Or(0)
	if at, ok := c.Out.At(x.reqEnd); ok && x.reqEnd > 0 && x.tr.Sent.Defined() {
		if at, ok := r.at(tap.Mark{End: x.reqEnd, At: at}); ok && at >= handed-stampSlop {
			x.tr.Sent, x.tr.Handed, sent = opt.Some(max(at, handed)), opt.Some(handed), true
		}
	}
	if x.headAt.Defined() {
		x.tr.HeadAt = x.headAt
	}
	if at := r.moment(c, x, x.bodyEnd); at.Defined() {
		x.tr.Ended = at
	}
	if _, at, ok := c.In.End(); ok && x.closes {
		if at, ok := r.at(tap.Mark{At: at}); ok {
			x.tr.Ended = opt.Some(at)
		}
	}
	if sent && !x.doubt {
		x.tr.Stamp = wire.StampWire
	}
	if !x.shared {
		c.Out.Trim(x.reqEnd)
	}
}

// moment returns when the first bytes of an exchange were there.
func (r *ring) moment(c *tap.Conn, x *dating, end int) (m opt.Of[time.Duration]) {
	if end == 0 {
		return m
	}
	if at, ok := c.In.At(x.base + int64(end)); ok {
		if at, ok := r.at(tap.Mark{At: at}); ok {
			m = opt.Some(at)
		}
	}
	return m
}

// report tells of the capture; noWire is why there is none. The deliverer, which may be nil then, must have ended.
func (d *deliverer) report(r *bench.ClientReport, noWire error) {
	if d == nil || d.ring == nil {
		if noWire != nil {
			r.NoWire = noWire.Error()
		}
		return
	}
	r.RingDropped, r.RingTrouble = d.ring.whatHappened()
	r.WireExchanges, r.OtherExchanges = int(d.fromRing), int(d.fromReads)
	if d.fromRing > 0 {
		r.Stamp = string(wire.StampWire)
	}
}

// stop ends the deliverer. Nothing may be under way.
func (d *deliverer) stop() {
	close(d.quit)
	d.wake()
	<-d.ended
	unix.Close(d.bell)
	if d.ring != nil {
		d.ring.close()
	}
}
