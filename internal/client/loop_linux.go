package client

import (
	"container/heap"
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// loop is one engine thread. All but tell and the fields that it uses belong to the thread.
type loop struct {
	o     *Options
	count *counts
	hand  func(*block) // hands bytes on, and ends
	addrs []sockaddr
	ep    int // epoll set
	bell  int // eventfd that wakes the thread
	ended chan struct{}
	inbox atomic.Pointer[command] // newest first

	clock    *clock
	now      time.Duration // newest reading of the clock
	wall     int64         // the wall clock with the newest read
	ringed   bool          // packets are captured
	piped    bool          // its connections are pipes
	queue    xferQueue
	slots    *slots        // nil without a cap
	next     time.Duration // when the first job of the queue may go out; never without one or without a slot
	busy     int           // jobs under way
	pace     pace
	came     time.Duration // when the thread was last about to wait
	working  bool          // there was work when the thread was last about to wait
	stopping bool

	conns   []*econn // by number; nil = free
	vacant  []int32  // free numbers
	gen     int32    // of the newest connection
	idle    [][]*econn
	opening [][]*econn // connections being opened ahead of need, per target
	dials   []*econn   // being opened, in the order of their deadlines
	broken  []*econn   // whose write failed: to be read to their end

	answers deadlines // of answers: the request timeout
	cancels deadlines // of jobs that are to be given up
	tails   deadlines // of bodies whose terminator was there

	blocks blockPool
	buf    []byte
	iov    unix.Iovec
	hdr    unix.Msghdr
	ctl    [256]byte
	evs    []unix.EpollEvent
}

// command is something for an engine thread to do.
type command struct {
	next   *command
	kind   commandKind
	x      *xfer
	target int
	n      int
	pipe   *pipe
}

type commandKind uint8

const (
	cmdSubmit commandKind = iota
	cmdOpen
	cmdDrain
	cmdCut
	cmdStop
	cmdDial
	cmdResume
	cmdHangUp
)

// Sizes of an engine thread. A read takes what the socket has, up to the buffer; a wait returns up to epollBatch sockets.
const (
	readBuffer = 64 << 10
	epollBatch = 256
	// longestWait bounds a wait in the kernel while nothing is due.
	longestWait = time.Second
	// dueHorizon: between reads the clock is looked at for a due send only when one is so near. 256 reads take about a millisecond.
	dueHorizon = 2 * time.Millisecond
)

const never = time.Duration(1<<63 - 1)

// newLoop makes a loop with its part of the cap. hand gets what it has read of jobs; it must not wait.
func newLoop(o *Options, addrs []sockaddr, limit int, clock *clock, count *counts, hand func(*block)) (*loop, error) {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(ep)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l := &loop{o: o, count: count, hand: hand, addrs: addrs, ep: ep, bell: bell, ended: make(chan struct{}), clock: clock, next: never,
		idle: make([][]*econn, len(addrs)), opening: make([][]*econn, len(addrs)), buf: make([]byte, readBuffer), evs: make([]unix.EpollEvent, epollBatch)}
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}); err != nil {
		l.free()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	if n, err := unix.EpollWait(ep, l.evs, 0); err != nil || n != 0 || l.poll(0) < 0 {
		l.free()
		return nil, fmt.Errorf("epoll_pwait2 is not to be had (Linux 5.11 has it): %v", err)
	}
	l.iov.Base = &l.buf[0]
	l.iov.SetLen(len(l.buf))
	l.hdr.Iov, l.hdr.Iovlen, l.hdr.Control = &l.iov, 1, &l.ctl[0]
	if limit > 0 {
		l.slots = newSlots(limit, l.clock.now())
	}
	return l, nil
}

// tell hands the thread a command. It may be called from any goroutine; commands of one goroutine are obeyed in order.
func (l *loop) tell(c *command) {
	for {
		newest := l.inbox.Load()
		c.next = newest
		if l.inbox.CompareAndSwap(newest, c) {
			if newest == nil {
				unix.Write(l.bell, one)
			}
			return
		}
	}
}

var one = []byte{1, 0, 0, 0, 0, 0, 0, 0} // for an eventfd: whatever the byte order, it is not 0

// run is the thread.
func (l *loop) run() {
	runtime.LockOSThread() // not unlocked: the thread ends with the goroutine, and its settings with it
	prepareThread()
	raisePriority()
	defer close(l.ended)
	defer l.free()
	defer l.count.spend()
	for {
		l.now = l.clock.now()
		l.expire()
		l.sendDue()
		if l.stopping {
			return
		}
		l.holdBack()
		l.came = l.count.stalls.came(l.came, l.now, l.working)
		l.working = l.busy > 0 || l.piped && len(l.conns) > len(l.vacant)
		n := l.wait()
		for k := range n {
			ev := &l.evs[k]
			if ev.Fd < 0 {
				l.obey()
				continue
			}
			if l.next != never && l.next < l.now+dueHorizon {
				l.now = l.clock.now()
				l.sendDue()
			}
			if c := l.conns[ev.Fd]; c != nil && c.gen == ev.Pad { // else it was closed earlier in this batch
				l.handle(c, ev.Events)
			}
		}
		for len(l.broken) > 0 {
			c := l.broken[len(l.broken)-1]
			l.broken = l.broken[:len(l.broken)-1]
			if l.conns[c.number] == c {
				l.read(c, unix.EPOLLHUP)
			}
		}
	}
}

// wait waits for sockets until a due time is near, and polls for the rest of the time: it is neither lost nor overslept.
func (l *loop) wait() int {
	l.pause()
	n := l.poll(0)
	if n == 0 {
		wait := min(longestWait, l.nextDeadline()-l.now+time.Microsecond)
		if l.working {
			wait = min(wait, beat)
		}
		if l.next != never {
			wait = min(wait, l.next-l.o.Spin-l.clock.now())
		}
		if wait <= 0 {
			return 0 // the caller looks at the clock and comes back
		}
		asked := l.now + wait
		if n, l.now = l.poll(wait), l.clock.now(); n == 0 && l.now >= asked {
			l.count.sched.add(l.now - asked)
		}
		return max(0, n)
	}
	l.now = l.clock.now()
	return max(0, n)
}

// poll asks the kernel for ready sockets; negative when it was interrupted. The thread keeps its place in the Go scheduler meanwhile,
// so that it need not win it back when something arrives: whoever stops the world signals the thread, which ends the wait.
func (l *loop) poll(wait time.Duration) int {
	ts := unix.NsecToTimespec(int64(wait))
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.ep), uintptr(unsafe.Pointer(&l.evs[0])), uintptr(len(l.evs)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno == syscall.EINTR {
		return 0
	}
	if errno != 0 {
		return -1
	}
	return int(n)
}

// obey works on the inbox.
func (l *loop) obey() {
	var b [8]byte
	unix.Read(l.bell, b[:]) // the counter back to 0, before the inbox is emptied: whoever fills it then rings again
	var first *command
	for c := l.inbox.Swap(nil); c != nil; {
		first, c, c.next = c, c.next, first // oldest first
	}
	for c := first; c != nil; c = c.next {
		switch c.kind {
		case cmdSubmit:
			l.queue.add(c.x)
		case cmdOpen:
			for len(l.idle[c.target])+len(l.opening[c.target]) < c.n {
				l.openAhead(c.target)
			}
		case cmdDrain:
			l.drain()
		case cmdCut:
			l.drain()
			l.cut()
		case cmdStop:
			l.stopping = true
		case cmdDial:
			l.dialPipe(c.pipe)
		case cmdResume:
			l.resume(c.pipe)
		case cmdHangUp:
			l.hangUp(c.pipe)
		}
	}
	l.look()
}

// look sets when the first job may go out.
func (l *loop) look() {
	l.next = never
	if l.queue.Len() > 0 && (l.slots == nil || l.slots.n > 0) {
		l.next = l.queue.items[0].due
	}
}

// sendDue sends what is due and has a slot.
func (l *loop) sendDue() {
	for l.next <= l.now {
		x := l.queue.take()
		if l.slots != nil {
			x.tr.Slot = opt.Some(max(l.slots.take(), x.job.Due.Or(noDue)))
		}
		l.busy++
		l.start(x)
		l.look()
		if l.next != never {
			l.now = l.clock.now()
		}
	}
}

// start sends a job on an idle connection, or on a new one.
func (l *loop) start(x *xfer) {
	target := x.job.Target
	if n := len(l.idle[target]); n > 0 {
		c := l.idle[target][n-1]
		takeOut(&l.idle[target], c)
		l.begin(c, x)
	} else if ahead := l.opening[target]; len(ahead) > 0 {
		c := ahead[0]
		takeOut(&l.opening[target], c)
		c.ahead, c.x, x.c = false, x, c
	} else {
		l.dial(target, x)
	}
	if len(l.idle[target])+len(l.opening[target]) < l.o.Spare {
		l.openAhead(target)
	}
}

func (l *loop) drain() {
	for l.queue.Len() > 0 {
		x := l.queue.take()
		x.tr.Fail, x.tr.Cause = wire.FailDropped, NeverSent
		l.handOn(x, true)
	}
}

// cut ends what is under way.
func (l *loop) cut() {
	for _, c := range l.conns {
		if c != nil && c.x != nil {
			l.finish(c, false, wire.FailIncomplete, "cut by the end of the run")
		}
	}
}

// nextDeadline is the earliest moment at which something expires.
func (l *loop) nextDeadline() time.Duration {
	at := never
	if x := l.answers.first; x != nil {
		at = min(at, x.deadline)
	}
	if x := l.cancels.first; x != nil {
		at = min(at, x.deadline)
	}
	if x := l.tails.first; x != nil {
		at = min(at, x.deadline)
	}
	if len(l.dials) > 0 {
		at = min(at, l.dials[0].deadline)
	}
	if at == never {
		at = l.now + longestWait
	}
	return at
}

// expire ends what is over its time.
func (l *loop) expire() {
	for x := l.tails.first; x != nil && x.deadline <= l.now; x = l.tails.first {
		l.finish(x.c, false, "", "") // the terminator was there: nothing is missing
	}
	for x := l.cancels.first; x != nil && x.deadline <= l.now; x = l.cancels.first {
		l.finish(x.c, false, wire.FailCancelled, cancelledCause(x.job.CancelAfter))
	}
	for x := l.answers.first; x != nil && x.deadline <= l.now; x = l.answers.first {
		l.finish(x.c, false, wire.FailTimeout, "no complete response within "+l.o.Timeout.String())
	}
	for len(l.dials) > 0 && (!l.dials[0].connecting || l.dials[0].deadline <= l.now) {
		c := l.dials[0]
		l.dials = l.dials[1:]
		if c.connecting {
			l.dialFailed(c, wire.FailTimeout, "no connection within the connect timeout")
		}
	}
}

// free closes everything.
func (l *loop) free() {
	for _, c := range l.conns {
		if c != nil {
			unix.Close(c.fd)
		}
	}
	unix.Close(l.bell)
	unix.Close(l.ep)
}

// deadlines is a list of jobs in the order of their ends. Mostly they have one and the same time to live, so that this is the order of
// their begins.
type deadlines struct{ first, last *xfer }

func (d *deadlines) add(x *xfer, at time.Duration) {
	x.leave()
	before := d.last
	for before != nil && before.deadline > at {
		before = before.before
	}
	x.deadline, x.in, x.before, x.after = at, d, before, d.first
	if before != nil {
		x.after = before.after
		before.after = x
	} else {
		d.first = x
	}
	if x.after != nil {
		x.after.before = x
	} else {
		d.last = x
	}
}

// leave takes a job out of the list that it is in.
func (x *xfer) leave() {
	d := x.in
	if d == nil {
		return
	}
	if x.before != nil {
		x.before.after = x.after
	} else {
		d.first = x.after
	}
	if x.after != nil {
		x.after.before = x.before
	} else {
		d.last = x.before
	}
	x.in, x.before, x.after = nil, nil, nil
}

// xferQueue is what jobQueue is for the portable engine.
type xferQueue struct {
	items []queuedXfer
	seq   int
}

type queuedXfer struct {
	x   *xfer
	due time.Duration // minus infinity without one
	seq int
}

func (q *xferQueue) Len() int      { return len(q.items) }
func (q *xferQueue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *xferQueue) Push(x any)    { q.items = append(q.items, *x.(*queuedXfer)) }
func (q *xferQueue) Less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.due < b.due || a.due == b.due && a.seq < b.seq
}
func (q *xferQueue) Pop() any {
	n := len(q.items) - 1
	x := q.items[n].x
	q.items[n] = queuedXfer{}
	q.items = q.items[:n]
	return x
}

func (q *xferQueue) add(x *xfer) {
	q.seq++
	x.place = queuedXfer{x, x.job.Due.Or(noDue), q.seq}
	heap.Push(q, &x.place) // a pointer, since an interface of a struct would be allocated
}

func (q *xferQueue) take() *xfer { return heap.Pop(q).(*xfer) }
