package client

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// conn is one HTTP/1.1 connection. Its goroutine reads all the time, also while it is idle, so that a server that closes it is noticed.
type conn struct {
	p      *Portable
	nc     net.Conn // what HTTP goes over: in, or TLS over it
	in     dated    // what knows when bytes arrived
	target int
	took   struct{ connect, tls opt.Of[time.Duration] } // for its first exchange
	uses   int
	waited bool                     // it has been idle, so that the server may have closed it unnoticed
	ex     atomic.Pointer[exchange] // nil while idle; changed under p.mu
}

// A read brings at most this much: a few events, or a page of a large answer.
const readSize = 16 << 10

// Requests above largeRequest may not fit into the socket's buffer, which begins at 16 KiB with room for headers, and are written by a goroutine of their own. The moment of
// sending is that of the last lastPiece bytes.
const (
	largeRequest = 4 << 10
	lastPiece    = 4 << 10
)

// staleWithin bounds how long after the sending a connection may turn out to have been closed already. The server answers a request
// on a closed connection with a reset after a round trip, which the connect took too; what ends later had been taken by the server.
func staleWithin(connect opt.Of[time.Duration]) time.Duration {
	return 20*time.Millisecond + 3*connect.Or(0)
}

// assign gives the connection a job, whose alone it is from here to the end of its response.
func (c *conn) assign(ex *exchange) {
	ex.tr.Reused = c.uses > 0
	if c.uses == 0 {
		ex.tr.Connect, ex.tr.TLS = c.took.connect, c.took.tls
	}
	ex.mayBeStale = c.uses > 0 || c.waited
	c.uses++
	ex.piped.over(c.in, false)
	ex.tr.Stamp = wire.StampUser
	if c.in.stamped() {
		ex.tr.Stamp = wire.StampSocket
	}
	if len(ex.raw) > largeRequest {
		ex.written = make(chan struct{})
	}
	c.ex.Store(ex)
}

// begin sends the job that was assigned. A failed write shows in the read.
func (c *conn) begin(ex *exchange) {
	if limit, _ := ex.limit(); limit > 0 {
		c.nc.SetDeadline(time.Now().Add(limit))
	}
	ex.onCancel(func() { c.nc.SetDeadline(time.Unix(1, 0)) })
	if ex.written == nil {
		ex.sending(c)
		if _, err := c.nc.Write(ex.raw); err == nil {
			ex.piped.sent(c.in)
		}
		return
	}
	c.p.wg.Go(func() {
		defer close(ex.written)
		cut := len(ex.raw) - lastPiece
		ex.unwritten = true
		if _, err := c.nc.Write(ex.raw[:cut]); err != nil {
			return
		}
		ex.sending(c)
		_, err := c.nc.Write(ex.raw[cut:])
		if ex.unwritten = err != nil; !ex.unwritten {
			ex.piped.sent(c.in)
		}
	})
}

// read is the connection's goroutine.
func (c *conn) read() {
	defer c.nc.Close()
	buf := make([]byte, readSize)
	for {
		n, at, err := c.once(buf)
		ex := c.ex.Load()
		if ex == nil && c.p.forget(c) {
			return // closed while idle, or bytes that nobody asked for: of no more use
		}
		if ex == nil {
			ex, err = c.ex.Load(), io.EOF // assigned meanwhile, but what was read is no answer to it
		}
		if err != nil {
			c.broke(ex, err)
			return
		}
		done, keep, fail := ex.feed(c, buf[:n], at)
		switch {
		case fail.kind != "":
			c.p.finish(ex, nil, fail.kind, fail.cause)
			return
		case done && !keep:
			c.p.finish(ex, nil, "", "")
			return
		case done:
			c.nc.SetDeadline(time.Time{}) // an idle connection has none
			c.p.finish(ex, c, "", "")
		}
	}
}

// once reads once.
func (c *conn) once(buf []byte) (n int, at time.Duration, err error) {
	n, err = c.nc.Read(buf)
	if n > 0 {
		return n, c.in.arrived().at, nil // what came counts first; the next read meets the error again
	}
	return 0, 0, err
}

// forget takes a connection out of the idle ones. It returns false when it has a job after all.
func (p *Portable) forget(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.ex.Load() != nil {
		return false
	}
	conns := p.idle[c.target]
	for i := range conns {
		if conns[i] == c {
			p.idle[c.target] = append(conns[:i], conns[i+1:]...)
			break
		}
	}
	return true
}

// feed takes what a read brought for the exchange.
func (ex *exchange) feed(c *conn, b []byte, at time.Duration) (done, keep bool, fail failure) {
	if err := ex.take(b, at); err != nil {
		return false, false, failure{wire.FailMalformed, err.Error()}
	}
	hadHead := ex.http.HeadDone()
	body := func(p []byte) {
		if !hadHead {
			ex.headDone(at)
			hadHead = true
		}
		ex.search(p, at)
	}
	found := ex.untilFound
	n, err := ex.http.Feed(b, body)
	if err != nil {
		return false, false, failure{wire.FailMalformed, err.Error()}
	}
	if !hadHead && ex.http.HeadDone() {
		ex.headDone(at)
	}
	if ex.http.Done() {
		if !ex.tr.Ended.Defined() {
			ex.tr.Ended = opt.Some(at)
			ex.piped.ended()
		}
		keep = n == len(b) && ex.http.KeepAlive() && !c.p.o.FreshEach && ex.writerDone(c)
		return true, keep, failure{}
	}
	if ex.untilFound && !found {
		c.nc.SetReadDeadline(time.Now().Add(afterUntil))
	}
	return false, false, failure{}
}

func (ex *exchange) headDone(at time.Duration) {
	ex.tr.HeadAt = opt.Some(at)
	ex.piped.headed()
	if ex.until != nil {
		coding := ex.http.Header().Get("Content-Encoding")
		ex.plain = coding == "" || strings.EqualFold(coding, "identity")
	}
}

// writerDone tells whether the whole request is out. A server that answers before is not to be trusted with another; one that has
// read the last byte just now may find the writer still on its way back.
func (ex *exchange) writerDone(c *conn) bool {
	if ex.written == nil {
		return true
	}
	if time.Duration(ex.sent.Load()) != notSent {
		c.nc.SetWriteDeadline(time.Now().Add(writerReturn))
		<-ex.written
	}
	select {
	case <-ex.written:
		return !ex.unwritten
	default:
		return false
	}
}

// writerReturn is how long the writer of a large request may take to return after the server's answer.
const writerReturn = 10 * time.Millisecond

// broke ends an exchange whose connection ended or whose time is over.
func (c *conn) broke(ex *exchange, err error) {
	p := c.p
	timedOut := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case ex.untilFound: // the terminator was there: nothing is missing
		p.finish(ex, nil, "", "")
	case timedOut:
		_, fail := ex.limit()
		p.finish(ex, nil, fail.kind, fail.cause)
	case ex.mayBeStale && ex.tr.Bytes == 0 && !ex.tr.Retried && !ex.interrupted() && p.clock.now()-time.Duration(ex.sent.Load()) < staleWithin(c.took.connect):
		p.counts.stale.Add(1)
		c.nc.Close()
		if ex.written != nil {
			<-ex.written // the writer fails on the closed connection
		}
		ex.tr.Retried = true
		p.wg.Go(func() { p.startFresh(ex) })
	case err == io.EOF:
		if cerr := ex.http.Close(); cerr != nil {
			p.finish(ex, nil, wire.FailReset, cerr.Error())
			return
		}
		if !ex.tr.Ended.Defined() {
			ex.tr.Ended = opt.Some(p.clock.now())
		}
		p.finish(ex, nil, "", "")
	default:
		p.finish(ex, nil, wire.FailReset, readFailure(err))
	}
}
