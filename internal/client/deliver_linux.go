package client

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/wire"
)

// deliverer hands what the engine threads have read to the sink. It has a thread of its own, so that nothing it waits for holds up
// an engine thread.
type deliverer struct {
	e     *Epoll
	inbox blockStack
	bell  int // eventfd
	quit  chan struct{}
	ended chan struct{}
}

// deliverEvery is how long a piece of an answer may lie; ends are handed on at once.
const deliverEvery = 10 * time.Millisecond

func newDeliverer(e *Epoll) (*deliverer, error) {
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &deliverer{e: e, bell: bell, quit: make(chan struct{}), ended: make(chan struct{})}, nil
}

// take takes a piece of an answer, or its end, from an engine thread.
func (d *deliverer) take(b *block) {
	end := b.end
	if d.inbox.push(b); end {
		d.wake()
	}
}

func (d *deliverer) wake() { unix.Write(d.bell, one) }

// run is the deliverer's thread.
func (d *deliverer) run() {
	runtime.LockOSThread()
	defer close(d.ended)
	for {
		for b := oldestFirst(d.inbox.takeAll()); b != nil; {
			next := b.next
			d.deliver(b)
			b = next
		}
		select {
		case <-d.quit:
			return
		default:
		}
		d.wait()
	}
}

// wait waits for an end, or while something is under way for some milliseconds.
func (d *deliverer) wait() {
	var timeout *unix.Timespec
	if d.e.busy() {
		ts := unix.NsecToTimespec(int64(deliverEvery))
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
	if !b.end {
		d.e.o.Sink.Part(x.job, wire.Part{Raw: b.raw, Marks: b.marks, Framed: true, Release: b.free})
		return
	}
	x.tr.Raw, x.tr.Marks, x.tr.Release = b.raw, b.marks, b.free
	d.e.o.Sink.Done(x.job, &x.tr)
	d.e.delivered()
}

// stop ends the deliverer. Nothing may be under way.
func (d *deliverer) stop() {
	close(d.quit)
	d.wake()
	<-d.ended
	unix.Close(d.bell)
}
