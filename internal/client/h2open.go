package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

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
	raw, fail := p.open(ctx, target)
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
		turn: make(chan struct{}, 1), bell: make(chan struct{}, 1), done: make(chan struct{})}
	c.window, c.initial = h2DefaultWindow, h2DefaultWindow
	c.src.c = c
	c.fr = http2.NewFramer(&c.out, &c.src)
	c.fr.SetReuseFrames()
	c.fr.SetMaxReadFrameSize(h2FrameSize)
	c.fr.ReadMetaHeaders = hpack.NewDecoder(h2TableSize, nil)
	c.fr.MaxHeaderListSize = h2DecodeHead
	return c
}

// greet says what the client has to say first, and takes the server's SETTINGS. What cannot be written shows in the read, and what the
// server has said tells more.
func (c *h2conn) greet(ctx context.Context) failure {
	stop := context.AfterFunc(ctx, func() { c.nc.SetDeadline(time.Unix(1, 0)) })
	c.writePreface()
	lost := c.flush()
	f, err := c.fr.ReadFrame()
	if settings, ok := f.(*http2.SettingsFrame); err == nil && ok && !settings.IsAck() {
		err = c.settings(settings)
	} else if err == nil {
		err = &h2fault{http2.ErrCodeProtocol, "the server's first frame is not SETTINGS"}
	}
	if err == nil {
		lost = cmp.Or(c.flush(), lost)
	}
	switch {
	case !stop():
		kind, cause := connectFailure(ctx.Err())
		return failure{kind, cause}
	case hungUp(c.src.err), err == nil && lost != nil:
		return failure{wire.FailReset, "connection closed by the server before the first request"}
	case err != nil:
		return c.failure(err, false)
	}
	c.src.up = true
	return failure{}
}

// hungUp tells whether the server has closed the connection. Whether that comes as an end or as a reset says nothing here: it is a
// reset wherever the server had not read what the client says first, and both may be seen.
func hungUp(err error) bool {
	return ended(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, memnet.ErrReset)
}
