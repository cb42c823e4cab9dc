// Package memnet is a network in memory: connections with buffers as sockets have them, for whole runs in virtual time.
//
// A loopback socket stalls a testing/synctest bubble, since a goroutine that waits in the kernel is not durably blocked. These
// connections wait on channels only. Writes never take time; a read returns what was written so far, as a socket does.
package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// ErrRefused is returned by Dial when nobody listens at the address.
var ErrRefused = errors.New("memnet: connection refused")

// Network is a set of listeners. The zero Network is ready.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*Listener
}

// Listen opens a listener at an address of any form, such as "server:80".
func (n *Network) Listen(addr string) (*Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[addr] != nil {
		return nil, errors.New("memnet: address in use: " + addr)
	}
	if n.listeners == nil {
		n.listeners = map[string]*Listener{}
	}
	l := &Listener{net: n, addr: Addr(addr), backlog: make(chan *Conn, 4096), closed: make(chan struct{})}
	n.listeners[addr] = l
	return l, nil
}

// Dial connects to a listener.
func (n *Network) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.listeners[addr]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: Addr(addr), Err: ErrRefused}
	}
	near, far := Pipe()
	near.remote, far.local = l.addr, l.addr
	select {
	case l.backlog <- far:
		return near, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "mem", Addr: l.addr, Err: ErrRefused}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Addr is an address in a Network.
type Addr string

// Network returns "mem".
func (Addr) Network() string { return "mem" }

func (a Addr) String() string { return string(a) }

// Listener accepts the connections that were dialled to its address.
type Listener struct {
	net     *Network
	addr    Addr
	backlog chan *Conn // as long as a listen queue gets
	closed  chan struct{}
	once    sync.Once
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends Accept. Connections that are open stay open; those in the backlog are closed.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, string(l.addr))
		l.net.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.backlog:
				c.Close()
			default:
				return
			}
		}
	})
	return nil
}

// Addr returns the address of the listener.
func (l *Listener) Addr() net.Addr { return l.addr }

// Pipe returns two ends of one connection.
func Pipe() (a, b *Conn) {
	ab, ba := newStream(), newStream()
	a = &Conn{in: ba, out: ab, local: "client", remote: "server", readBy: newDeadline()}
	b = &Conn{in: ab, out: ba, local: "server", remote: "client", readBy: newDeadline()}
	return a, b
}

// Conn is one end of a connection. Its buffer has no bound: what a test writes is what it holds.
type Conn struct {
	in, out       *stream
	local, remote Addr
	readBy        *deadline
}

// Read returns what has arrived, waiting for the first byte.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		// what is there is given out before a deadline is looked at, as by a socket
		n, wait, err := c.in.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		expired, changed := c.readBy.state()
		select {
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		default:
		}
		select {
		case <-wait:
		case <-expired:
		case <-changed:
		}
	}
}

// Write appends to the other end's buffer at once.
func (c *Conn) Write(p []byte) (int, error) { return c.out.put(p) }

// Close closes both directions: the peer reads what was written and then io.EOF; its writes fail.
func (c *Conn) Close() error {
	c.out.close(io.EOF)
	c.in.close(net.ErrClosed)
	return nil
}

// Reset breaks the connection: the peer loses what it has not read yet.
func (c *Conn) Reset() {
	c.out.reset()
	c.in.close(net.ErrClosed)
}

// CloseWrite closes the direction to the peer alone.
func (c *Conn) CloseWrite() error {
	c.out.close(io.EOF)
	return nil
}

// LocalAddr returns this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the read deadline; a write never waits.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline bounds a Read that waits, also one that waits already.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline has no effect: a write never waits.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// ErrReset is what a read or write meets after the peer's Reset.
var ErrReset = errors.New("memnet: connection reset by peer")

// stream is one direction of a connection.
type stream struct {
	mu     sync.Mutex
	buf    []byte
	err    error         // what a reader meets behind the buffer
	change chan struct{} // closed and replaced when buf or err changes
}

func newStream() *stream { return &stream{change: make(chan struct{})} }

func (s *stream) take(p []byte) (int, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.buf) == 0 {
		return 0, s.change, s.err
	}
	n := copy(p, s.buf)
	if s.buf = s.buf[n:]; len(s.buf) == 0 {
		s.buf = nil
	}
	return n, nil, nil
}

func (s *stream) put(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, ErrReset
	}
	s.buf = append(s.buf, p...)
	s.notify()
	return len(p), nil
}

func (s *stream) close(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.notify()
	}
}

func (s *stream) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.buf, s.err = nil, ErrReset
		s.notify()
	}
}

func (s *stream) notify() {
	close(s.change)
	s.change = make(chan struct{})
}

// deadline is a moment that can be moved while somebody waits for it.
type deadline struct {
	mu      sync.Mutex
	timer   *time.Timer
	expired chan struct{} // closed when the moment is reached
	changed chan struct{} // closed and replaced when the moment is moved
}

func newDeadline() *deadline {
	return &deadline{expired: make(chan struct{}), changed: make(chan struct{})}
}

func (d *deadline) state() (expired, changed <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.expired, d.changed
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.expired = make(chan struct{})
	close(d.changed)
	d.changed = make(chan struct{})
	if t.IsZero() {
		return
	}
	expired := d.expired
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { close(expired) })
	} else {
		close(expired)
	}
}
