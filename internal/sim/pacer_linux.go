package sim

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pacer writes replies on time: one locked thread with a heap of due writes. It sleeps until shortly before the next write, then
// polls the clock; Go's own timers would be up to 1 ms late.
type pacer struct {
	start time.Time
	spin  time.Duration
	bell  int // eventfd that ends its sleep
	holdP bool

	mu      sync.Mutex
	inbox   []*reply
	pending atomic.Bool // the inbox is not empty
	asleep  atomic.Bool // a bell is needed
	ending  atomic.Bool
	ended   chan struct{}
	held    sync.WaitGroup // goroutines that finish what a full socket held up

	heap []dueReply // owned by the thread, as is taken
	next []*reply   // memory of the inbox, swapped
}

// dueReply is a reply with the time of its next write.
type dueReply struct {
	due time.Duration
	r   *reply
}

// holdingSleep is how long the thread sleeps at most while it keeps its P: coming back from a sleep without one can cost 10 ms on
// a busy process. Longer sleeps give it up, but for their last millisecond.
const holdingSleep = time.Millisecond

// newPacer starts a pacer; stop ends it.
func newPacer(start time.Time, spin time.Duration) (*pacer, error) {
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	p := &pacer{start: start, spin: spin, bell: bell, holdP: runtime.GOMAXPROCS(0) > 1, ended: make(chan struct{})}
	go p.run()
	return p, nil
}

// stop ends the thread and waits for all that it has started. Replies that are not over stay so.
func (p *pacer) stop() {
	p.ending.Store(true)
	p.ring()
	<-p.ended
	p.held.Wait()
	unix.Close(p.bell)
}

// adopt takes a connection over when it has a raw socket.
func (p *pacer) adopt(c *conn) {
	if sc, ok := c.nc.(syscall.Conn); ok {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
			c.write.init()
		}
	}
}

// push hands over a reply whose next write is ready.
func (p *pacer) push(r *reply) {
	p.mu.Lock()
	p.inbox = append(p.inbox, r)
	p.mu.Unlock()
	p.pending.Store(true)
	if p.asleep.Load() {
		p.ring()
	}
}

func (p *pacer) ring() {
	one := [8]byte{1}
	unix.Write(p.bell, one[:]) // it fails only when it has been rung 2^64 times
}

func (p *pacer) run() {
	defer close(p.ended)
	runtime.LockOSThread() // never unlocked: the thread ends with its settings
	unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	for !p.ending.Load() {
		p.take()
		now := time.Since(p.start)
		if len(p.heap) == 0 {
			p.sleep(-1)
			continue
		}
		if wait := p.heap[0].due - now; wait > p.spin {
			p.sleep(wait - p.spin)
			continue
		} else if wait > 0 {
			continue // poll
		}
		p.fire(p.pop())
	}
}

// take moves the inbox to the heap.
func (p *pacer) take() {
	if !p.pending.Load() {
		return
	}
	p.pending.Store(false)
	p.mu.Lock()
	p.inbox, p.next = p.next[:0], p.inbox
	p.mu.Unlock()
	for i, r := range p.next {
		p.insert(r)
		p.next[i] = nil
	}
}

// sleep sleeps for d, below 0 without end, or until the bell.
func (p *pacer) sleep(d time.Duration) {
	p.asleep.Store(true)
	defer p.asleep.Store(false)
	if p.pending.Load() || p.ending.Load() {
		return
	}
	fds := [1]unix.PollFd{{Fd: int32(p.bell), Events: unix.POLLIN}}
	switch {
	case d < 0:
		unix.Ppoll(fds[:], nil, nil)
	case d > holdingSleep || !p.holdP:
		if p.holdP {
			d -= holdingSleep
		}
		ts := unix.NsecToTimespec(int64(d))
		unix.Ppoll(fds[:], &ts, nil)
	default:
		// RawSyscall keeps the P; a stop of the world interrupts it by a signal
		ts := unix.NsecToTimespec(int64(d))
		unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	}
	if fds[0].Revents != 0 {
		var count [8]byte
		unix.Read(p.bell, count[:]) // non-blocking; it only resets the bell
	}
}

// fire writes the reply's next write, and makes the one after ready.
func (p *pacer) fire(r *reply) {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	data := r.note()
	n, err := r.c.write.now(r.c.raw, data)
	var state replyState
	switch {
	case err != nil:
		r.end(r.gone())
		state = isOver
	case n < len(data):
		r.heldUp()
		r.mu.Unlock()
		p.held.Go(func() { r.finishHeld(data[n:]) })
		return
	default:
		state = r.wrote()
	}
	r.mu.Unlock()
	switch state {
	case isReady:
		p.insert(r)
	case isOver:
		r.settle()
	}
}

// rawWrite writes to a socket without blocking and without allocating.
type rawWrite struct {
	data []byte
	n    int
	err  error
	call func(fd uintptr) bool
}

func (w *rawWrite) init() {
	w.call = func(fd uintptr) bool {
		// RawSyscall: nothing here waits, and giving up the P for it would cost more than the call
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&w.data[0])), uintptr(len(w.data)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			w.n, w.err = int(n), nil
		case unix.EAGAIN, unix.EINTR:
			w.n, w.err = 0, nil
		default:
			w.n, w.err = 0, errno
		}
		return true // whatever came of it: do not wait
	}
}

// now writes what the socket takes at once.
func (w *rawWrite) now(raw syscall.RawConn, data []byte) (n int, err error) {
	w.data = data
	err = raw.Write(w.call)
	w.data = nil
	if err != nil {
		return 0, err
	}
	return w.n, w.err
}

func (p *pacer) insert(r *reply) {
	p.heap = append(p.heap, dueReply{r.due, r})
	for i := len(p.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if p.heap[up].due <= p.heap[i].due {
			break
		}
		p.heap[up], p.heap[i] = p.heap[i], p.heap[up]
		i = up
	}
}

func (p *pacer) pop() *reply {
	top := p.heap[0].r
	last := len(p.heap) - 1
	p.heap[0] = p.heap[last]
	p.heap[last] = dueReply{}
	p.heap = p.heap[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && p.heap[down+1].due < p.heap[down].due {
			down++
		}
		if p.heap[i].due <= p.heap[down].due {
			break
		}
		p.heap[i], p.heap[down] = p.heap[down], p.heap[i]
		i = down
	}
	return top
}
