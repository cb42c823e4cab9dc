package client

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// h2conn is one HTTP/2 connection (RFC 9113). Its goroutine reads all the time and owns the exchanges: it alone takes what comes for
// them and ends them, also those whose time is over, for which it is woken by a read deadline. The frames are those of
// golang.org/x/net/http2; each is dated by the moment of its last byte, however late it is decoded.
type h2conn struct {
	p      *Portable
	target int
	nc     net.Conn // what HTTP/2 goes over: in, or TLS over it
	in     dated    // what knows when bytes arrived
	fr     *http2.Framer
	src    h2source
	listed bool // among the pool's roomy ones; the pool's

	connect, tls opt.Of[time.Duration] // how long it took to open
	waited       bool                  // opened ahead of need, so that the server may have closed it unnoticed
	heard        time.Duration         // when the newest frame came; the reader's
	unacked      int                   // bytes of DATA that the server's window lacks; the reader's
	quiet        atomic.Bool           // nothing has come since the connection was idle

	mu       sync.Mutex
	streams  map[uint32]*h2stream
	next     uint32 // number of the next stream
	uses     int
	limit    uint32 // streams at once that the server takes
	retired  bool   // no stream is opened any more
	broken   bool   // nothing is written any more
	farewell string // what the server's GOAWAY said
	wakeAt   time.Time
	poked    bool // the reader is to look at once
	h2sender

	turn chan struct{} // of one, whose place is taken by whoever writes to nc; taken before mu
	bell chan struct{} // wakes the writer
	done chan struct{} // closed when the connection has ended
}

// h2source is what frames are read from. A read deadline does not show to the reader of frames, who would lose its place: what is
// over its time is ended, and the reading goes on.
type h2source struct {
	c   *h2conn
	up  bool  // deadlines are those of streams
	err error // of the read that failed
}

// errH2Over ends the reading of a connection that is of no more use.
var errH2Over = errors.New("the connection is not needed any more")

// Read implements io.Reader.
func (s *h2source) Read(b []byte) (int, error) {
	for {
		n, err := s.c.nc.Read(b)
		if n > 0 || err == nil {
			return n, nil // what came counts first; the next read meets the error again
		}
		if s.up && errors.Is(err, os.ErrDeadlineExceeded) {
			if s.c.expire(); !s.c.over() {
				continue
			}
			err = errH2Over
		}
		s.err = err
		return 0, err
	}
}

// read is the connection's goroutine.
func (c *h2conn) read() {
	c.p.wg.Go(c.writer)
	defer c.close()
	for !c.over() {
		f, err := c.fr.ReadFrame()
		if err == nil {
			err = c.frame(f, c.in.arrived().at)
		} else {
			err = c.unreadable(f, err)
		}
		if err != nil && !errors.Is(err, errH2Over) {
			c.broke(err)
			return
		}
	}
	c.leave()
}

// over tells that the connection takes no stream and has none.
func (c *h2conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retired && len(c.streams) == 0
}

// h2fault is a breach of the protocol by the server that ends the connection.
type h2fault struct {
	code http2.ErrCode
	text string
}

func (f *h2fault) Error() string { return f.text }

// broke ends the streams of a connection that ended, or that cannot be understood any more.
func (c *h2conn) broke(err error) {
	c.mu.Lock()
	c.retired = true
	live := c.sorted()
	c.mu.Unlock()
	for _, s := range live {
		s.gone = true
		switch {
		case s.job.ex.untilFound: // the terminator was there: nothing is missing
			c.end(s, failure{}, http2.ErrCodeCancel)
		case c.stale(s):
			c.again(s)
		default:
			c.end(s, c.failure(err, s.begun()), http2.ErrCodeCancel)
		}
	}
	if c.src.err == nil {
		c.complain(err)
	}
}

// stale tells whether a stream met a connection that the server had closed before, as conn.broke does: it had been idle, nothing at
// all has come since, and the end came as soon as it does then.
func (c *h2conn) stale(s *h2stream) bool {
	ex := s.job.ex
	return c.src.err != nil && c.quiet.Load() && s.repeatable() && c.p.clock.now()-time.Duration(ex.sent.Load()) < staleWithin(c.connect)
}

// again sends the request of a stream once more, on a fresh connection.
func (c *h2conn) again(s *h2stream) {
	c.remove(s, http2.ErrCodeCancel)
	c.p.h2.retry(s.job)
}

// failure says why a connection failed, for a stream of which something had come or not.
func (c *h2conn) failure(err error, begun bool) failure {
	var fault *h2fault
	text := func(s string) string {
		if c.farewell != "" {
			return s + " (" + c.farewell + ")"
		}
		return s
	}
	switch read := c.src.err; {
	case read == nil && errors.As(err, &fault):
		return failure{wire.FailMalformed, "broken HTTP/2: " + fault.text}
	case read == nil:
		return failure{wire.FailMalformed, "broken HTTP/2: " + c.words(err)}
	case ended(read) && begun:
		return failure{wire.FailReset, text(wire.ErrCut.Error())}
	case ended(read):
		return failure{wire.FailReset, text(wire.ErrNoResponse.Error())}
	default:
		return failure{wire.FailReset, text(readFailure(read))}
	}
}

// ended tells whether the server has closed the connection, which TLS calls unexpected where it did so without a word.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// sorted returns the live streams, oldest first. c.mu is held.
func (c *h2conn) sorted() []*h2stream {
	return slices.SortedFunc(maps.Values(c.streams), func(a, b *h2stream) int { return cmp.Compare(a.id, b.id) })
}

// retire makes the connection take no more streams. It ends with those that it has.
func (c *h2conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retireLocked()
}

// retireLocked is retire for who holds c.mu.
func (c *h2conn) retireLocked() {
	if c.retired = true; len(c.streams) == 0 {
		c.pokeLocked() // the reader is to see that it can end
	}
}

// poke makes the reader look for streams that are to be cut.
func (c *h2conn) poke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pokeLocked()
}

// pokeLocked is poke for who holds c.mu.
func (c *h2conn) pokeLocked() {
	if !c.poked {
		c.poked = true
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// wakeBy makes the reader look for streams whose time is over at a moment, or before. c.mu is held.
func (c *h2conn) wakeBy(at time.Time) {
	if !c.wakeAt.IsZero() && !at.Before(c.wakeAt) {
		return
	}
	c.wakeAt = at
	if !c.poked {
		c.nc.SetReadDeadline(at)
	}
}

// expire ends the streams that have been cut or whose time is over.
func (c *h2conn) expire() {
	now := time.Now()
	c.mu.Lock()
	c.poked, c.wakeAt = false, time.Time{}
	c.nc.SetReadDeadline(time.Time{})
	live := c.sorted()
	for _, s := range live {
		if s.deadline.After(now) {
			c.wakeBy(s.deadline)
		}
	}
	c.mu.Unlock()
	for _, s := range live {
		if s.job.ex.interrupted() || !s.deadline.IsZero() && !s.deadline.After(now) {
			c.expired(s)
		}
	}
}

// leave closes the connection from this side, with a word to the server where that needs no waiting.
func (c *h2conn) leave() {
	c.complain(&h2fault{code: http2.ErrCodeNo})
	c.nc.Close()
}

// leaveTime bounds how long that word may take.
const leaveTime = 10 * time.Millisecond

// complain tells the server why the connection ends.
func (c *h2conn) complain(err error) {
	late := time.NewTimer(leaveTime)
	defer late.Stop()
	select {
	case c.turn <- struct{}{}:
	case <-late.C:
		return
	}
	c.mu.Lock()
	c.fr.WriteGoAway(0, faultCode(err), nil)
	c.mu.Unlock()
	c.nc.SetWriteDeadline(time.Now().Add(leaveTime))
	c.drain()
	<-c.turn
}

// close is the end of the connection.
func (c *h2conn) close() {
	close(c.done)
	c.nc.Close()
	c.p.h2.gone(c)
}
