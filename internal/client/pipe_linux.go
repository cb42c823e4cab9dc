package client

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/wire"
)

// pipes are connections that one engine thread reads and dates for protocols that it does not frame: TLS, HTTP/2, the way through a
// proxy. Decoding them late does no harm: the moments belong to the bytes. Where packets are captured, what was decoded goes through a
// deliverer, which gives it the moments of its packets.
type pipes struct {
	l         *loop
	deliverer *deliverer // nil: no packets are captured
	noWire    error      // why
}

// newPipes starts the thread; nil where the system does not allow it. busy tells whether some job has not been handed on.
func newPipes(o *Options, c *clock, n *counts, busy func() bool) *pipes {
	l, err := newLoop(o, nil, 0, c, n, nil)
	if err != nil {
		return nil
	}
	p := &pipes{l: l}
	l.piped = true
	r, err := ringFor(o)
	if err == nil {
		if p.deliverer, err = newDeliverer(o.Sink, r, newClock(o.Epoch), busy, func() {}); err != nil {
			r.close()
		}
	}
	p.noWire = err
	if p.deliverer != nil {
		l.ringed, l.hand, p.deliverer.eager = true, p.deliverer.take, o.Eager
		go p.deliverer.run()
	}
	moreProcs(1)
	go l.run()
	return p
}

// close ends the thread and delivers what is left. All connections must have been closed.
func (p *pipes) close() {
	if p == nil {
		return
	}
	p.l.tell(&command{kind: cmdStop})
	<-p.l.ended
	moreProcs(-1)
	if p.deliverer != nil {
		p.deliverer.stop()
	}
}

// dial opens a connection to a target.
func (p *pipes) dial(ctx context.Context, t Target, number int) (dated, failure) {
	addr, err := sockaddrOf(t)
	if err != nil {
		return nil, failure{wire.FailDNS, err.Error()}
	}
	c := &pipe{l: p.l, addr: addr, target: number, state: make(chan failure, 1)}
	c.changed = sync.NewCond(&c.mu)
	p.l.tell(&command{kind: cmdDial, pipe: c})
	select {
	case fail := <-c.state:
		if fail.kind != "" {
			return nil, fail
		}
		return c, failure{}
	case <-ctx.Done():
		c.Close()
		kind, cause := connectFailure(ctx.Err())
		return nil, failure{kind, cause}
	}
}

// pipe is one such connection. What has been read and not been taken is bounded: beyond, the socket is left alone.
type pipe struct {
	l      *loop
	addr   sockaddr
	target int
	state  chan failure // the end of the connect
	conn   *econn       // the thread's
	fd     int          // set before the end of the connect
	kern   bool         // its stamps are the kernel's
	track  *track       // what the ring has to know of it; nil when no packets are captured
	out    atomic.Int64 // bytes written
	sent   atomic.Int64 // when the newest request went out

	mu      sync.Mutex
	changed *sync.Cond // there is something to read, or room to write, or an end
	data    []byte
	marks   []moment // where what each read brought ends
	err     error    // what follows the data
	held    bool     // the thread does not read on
	outs    int      // times that there was room again
	closed  bool
	read    deadline
	write   deadline
	m       moment
}

// mostPiped bounds the bytes that wait in a pipe.
const mostPiped = 1 << 20

// deadline of a reader or a writer.
type deadline struct {
	timer *time.Timer
	over  bool
}

// dialPipe starts to open a connection.
func (l *loop) dialPipe(p *pipe) {
	c := l.newConn(&p.addr, p.target)
	c.pipe, p.conn = p, c
	l.connect(c)
}

// opened takes the end of the connect, on the thread.
func (p *pipe) opened(c *econn, fail failure) {
	p.fd, p.kern = c.fd, p.l.stamped(&p.addr)
	if fail.kind != "" {
		p.conn = nil
	}
	p.state <- fail
}

// readPipe reads what the socket has, on the thread.
func (l *loop) readPipe(c *econn) {
	p := c.pipe
	for {
		p.mu.Lock()
		p.held = len(p.data) >= mostPiped
		leave := p.held || p.err != nil // behind an error the kernel tells of an end in order
		p.mu.Unlock()
		if leave {
			return
		}
		n, errno := l.recvmsg(c.fd, 0)
		var end error
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0:
			end = &net.OpError{Op: "read", Net: "tcp", Err: errno}
		case n == 0:
			end = io.EOF
		}
		if end != nil {
			p.mu.Lock()
			p.err = end
			p.changed.Broadcast()
			p.mu.Unlock()
			return
		}
		at := l.date(c)
		c.rx += int64(n)
		p.mu.Lock()
		p.data = append(p.data, l.buf[:n]...)
		p.marks = append(p.marks, moment{at, c.rx})
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// resume reads on, on the thread.
func (l *loop) resume(p *pipe) {
	if p.conn != nil && !p.conn.connecting {
		l.readPipe(p.conn)
	}
}

// hangUp closes the socket, on the thread.
func (l *loop) hangUp(p *pipe) {
	if c := p.conn; c != nil {
		p.conn = nil
		l.drop(c)
	}
}

// room tells a writer that there is room, on the thread.
func (p *pipe) room() {
	p.mu.Lock()
	p.outs++
	p.changed.Broadcast()
	p.mu.Unlock()
}

// Read implements net.Conn. It brings bytes of one read of the socket at most.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.data) == 0 && p.err == nil && !p.closed && !p.read.over {
		p.changed.Wait()
	}
	switch {
	case p.closed:
		return 0, net.ErrClosed
	case p.read.over:
		return 0, os.ErrDeadlineExceeded
	case len(p.data) == 0:
		return 0, p.err
	}
	first := p.marks[0]
	n := min(len(b), int(first.end-p.m.end))
	copy(b, p.data[:n])
	p.m = moment{first.at, p.m.end + int64(n)}
	if p.m.end == first.end {
		p.marks = p.marks[1:]
	}
	if p.data = p.data[n:]; len(p.data) == 0 {
		p.data, p.marks = nil, nil
	}
	if p.held && len(p.data) < mostPiped/2 {
		p.held = false
		p.l.tell(&command{kind: cmdResume, pipe: p})
	}
	return n, nil
}

// Write implements net.Conn.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	done := 0
	for done < len(b) {
		switch {
		case p.closed:
			return done, net.ErrClosed
		case p.write.over:
			return done, os.ErrDeadlineExceeded
		}
		outs := p.outs
		n, err := unix.SendmsgN(p.fd, b[done:], nil, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT) // under the lock, so that the socket is not closed meanwhile
		switch {
		case err == nil:
			done += n
			p.out.Add(int64(n))
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			for p.outs == outs && !p.closed && !p.write.over {
				p.changed.Wait()
			}
		default:
			return done, &net.OpError{Op: "write", Net: "tcp", Err: err}
		}
	}
	return done, nil
}

// Close implements net.Conn.
func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.read.set(p, time.Time{})
	p.write.set(p, time.Time{})
	p.changed.Broadcast()
	p.l.tell(&command{kind: cmdHangUp, pipe: p})
	return nil
}

// set sets a deadline; p.mu is held.
func (d *deadline) set(p *pipe, t time.Time) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.over = false
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.over = true
		p.changed.Broadcast()
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if d.timer == timer {
			d.over = true
			p.changed.Broadcast()
		}
	})
	d.timer = timer
}

// SetDeadline implements net.Conn.
func (p *pipe) SetDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read.set(p, t)
	p.write.set(p, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (p *pipe) SetReadDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read.set(p, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (p *pipe) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.write.set(p, t)
	return nil
}

// LocalAddr implements net.Conn.
func (p *pipe) LocalAddr() net.Addr { return pipeAddr{} }

// RemoteAddr implements net.Conn.
func (p *pipe) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipe) arrived() moment         { return p.m }
func (p *pipe) sending(t time.Duration) { p.sent.Store(int64(t)) }
func (p *pipe) stamped() bool           { return p.kern }

// pipeAddr stands for an address that nobody asks for.
type pipeAddr struct{}

func (pipeAddr) Network() string { return "tcp" }
func (pipeAddr) String() string  { return "pipe" }
