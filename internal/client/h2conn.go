package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

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

	wmu  sync.Mutex    // held by whoever writes to nc; taken before mu
	bell chan struct{} // wakes the writer
	done chan struct{} // closed when the connection has ended
}

// Windows that the server has for what it sends, and how large a frame it may make. What comes is handed on at once, so that the
// windows bound nothing that is held here; they are as wide as not to hold up any server: 16 MiB a stream, filled up at the half,
// are 80 MB/s over a path of 100 ms. Frames stay small, since a frame is dated by its last byte.
const (
	h2StreamWindow  = 16 << 20
	h2ConnWindow    = 1 << 30
	h2DefaultWindow = 65535 // of a connection, and of a stream without a setting (RFC 9113, 6.9.2)
	h2FrameSize     = 16 << 10
	h2LastStream    = 1<<31 - 1
	h2TableSize     = 4096 // of HPACK, as long as nobody sets another
)

// writePreface puts out what the client says first: there is to be no push, and heads are bounded as those of HTTP/1.1 are.
func (c *h2conn) writePreface() {
	c.out.Write([]byte(http2.ClientPreface))
	c.fr.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: h2StreamWindow},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: wire.MaxHead})
	c.fr.WriteWindowUpdate(0, h2ConnWindow-h2DefaultWindow)
}

// connectHTTP2 opens a connection, up to the server's SETTINGS.
func (p *Portable) connectHTTP2(ctx context.Context, target int) (*h2conn, failure) {
	t := p.o.Targets[target]
	if limit := cmp.Or(p.o.ConnectTimeout, p.o.Timeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	start := p.clock.now()
	raw, fail := p.open(ctx, t)
	if raw == nil {
		return nil, fail
	}
	connected := p.clock.now()
	in := newLookahead(raw, t.URL.Scheme == "https")
	c := newH2Conn(p, target, in, in)
	c.connect = opt.Some(connected - start)
	if in.records {
		tc := tls.Client(in, p.tlsConfig(t, http2.NextProtoTLS))
		if err := tc.HandshakeContext(ctx); err != nil {
			raw.Close()
			kind, cause := tlsFailure(err)
			return nil, failure{kind, cause}
		}
		c.nc, c.tls = tc, opt.Some(p.clock.now()-connected)
		if tc.ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
			c.nc.Close()
			return nil, failure{wire.FailTLS, "the server does not offer HTTP/2 (ALPN)"}
		}
	}
	if fail := c.greet(ctx); fail.kind != "" {
		c.nc.Close()
		return nil, fail
	}
	return c, failure{}
}

func newH2Conn(p *Portable, target int, nc net.Conn, in dated) *h2conn {
	c := &h2conn{p: p, target: target, nc: nc, in: in, streams: map[uint32]*h2stream{}, next: 1, limit: manyPlaces,
		bell: make(chan struct{}, 1), done: make(chan struct{})}
	c.window, c.initial = h2DefaultWindow, h2DefaultWindow
	c.src.c = c
	c.fr = http2.NewFramer(&c.out, &c.src)
	c.fr.SetReuseFrames()
	c.fr.SetMaxReadFrameSize(h2FrameSize)
	c.fr.ReadMetaHeaders = hpack.NewDecoder(h2TableSize, nil)
	c.fr.MaxHeaderListSize = wire.MaxHead
	return c
}

// greet says what the client has to say first, and takes the server's SETTINGS.
func (c *h2conn) greet(ctx context.Context) failure {
	stop := context.AfterFunc(ctx, func() { c.nc.SetDeadline(time.Unix(1, 0)) })
	c.writePreface()
	f, err := http2.Frame(nil), c.flush()
	if err == nil {
		f, err = c.fr.ReadFrame()
	}
	if !stop() {
		kind, cause := connectFailure(ctx.Err())
		return failure{kind, cause}
	}
	settings, ok := f.(*http2.SettingsFrame)
	switch {
	case err == nil && (!ok || settings.IsAck()):
		err = &h2fault{http2.ErrCodeProtocol, "the server's first frame is not SETTINGS"}
	case err == nil:
		err = c.settings(settings)
	}
	if err == nil {
		err = c.flush()
	}
	if err != nil {
		return c.failure(err, false)
	}
	c.src.up = true
	return failure{}
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
		var one http2.StreamError
		switch {
		case err == nil:
			err = c.frame(f, c.in.arrived().at)
		case errors.As(err, &one) && c.src.err == nil:
			err = c.streamFault(one)
		}
		if err != nil {
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
	if c.retire(); c.src.err == nil {
		c.complain(err)
	}
	c.mu.Lock()
	c.broken = true
	live := c.sorted()
	c.mu.Unlock()
	for _, s := range live {
		fail := failure{}
		if !s.job.ex.untilFound { // else the terminator was there: nothing is missing
			fail = c.failure(err, s.begun())
		}
		c.end(s, fail, http2.ErrCodeCancel)
	}
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
	case errors.Is(read, io.EOF) && begun:
		return failure{wire.FailReset, text(wire.ErrCut.Error())}
	case errors.Is(read, io.EOF):
		return failure{wire.FailReset, text(wire.ErrNoResponse.Error())}
	default:
		return failure{wire.FailReset, text(readFailure(read))}
	}
}

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
	if !c.wmu.TryLock() {
		return
	}
	defer c.wmu.Unlock()
	c.mu.Lock()
	c.fr.WriteGoAway(0, faultCode(err), nil)
	c.mu.Unlock()
	c.nc.SetWriteDeadline(time.Now().Add(leaveTime))
	c.drain()
}

// close is the end of the connection.
func (c *h2conn) close() {
	close(c.done)
	c.nc.Close()
	c.p.h2.gone(c)
}
