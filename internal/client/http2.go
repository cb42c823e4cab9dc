package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// newTransport makes the HTTP/2 path to a target: over TLS, or with prior knowledge in plain text.
func (p *Portable) newTransport(t Target) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols:           protocols,
		DisableCompression:  true,
		DisableKeepAlives:   p.o.FreshEach,
		TLSClientConfig:     p.tlsConfig(t, "h2"),
		TLSHandshakeTimeout: p.o.ConnectTimeout,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			if p.o.ConnectTimeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, p.o.ConnectTimeout)
				defer cancel()
			}
			p.counts.connections.Add(1)
			return p.dialer()(ctx, network, t.Addr)
		},
	}
}

// roundTrip carries out one job over HTTP/2. All times are those of the calls here: one connection serves many streams, so that
// its newest stamp may be too new for a stream.
func (p *Portable) roundTrip(ex *exchange) {
	ex.tr.Framed, ex.tr.Stamp = false, wire.StampUser
	p.counts.stampless.Store(true)
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	ex.onCancel(cancel)
	t, call := p.o.Targets[ex.job.Target], &ex.job.Call
	var connectStart, tlsStart time.Duration
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:           func(i httptrace.GotConnInfo) { ex.tr.Reused = i.Reused },
		ConnectStart:      func(string, string) { connectStart = p.clock.now() },
		ConnectDone:       func(string, string, error) { ex.tr.Connect = opt.Some(p.clock.now() - connectStart) },
		TLSHandshakeStart: func() { tlsStart = p.clock.now(); ex.tr.Connect = opt.Some(tlsStart - connectStart) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { ex.tr.TLS = opt.Some(p.clock.now() - tlsStart) },
		WroteRequest:      func(httptrace.WroteRequestInfo) { ex.sent.Store(int64(p.clock.now())) },
	})
	req, err := http.NewRequestWithContext(ctx, call.Method, t.Join(call.Path), bytes.NewReader(call.Body))
	if err != nil {
		p.finish(ex, nil, wire.FailDropped, err.Error())
		return
	}
	req.GetBody = nil // without it net/http cannot send a call a second time by itself
	for _, f := range call.Header {
		req.Header.Add(f.Name, f.Value)
	}
	req.Header.Set("User-Agent", p.o.UserAgent)
	var timedOut atomic.Bool
	if p.o.Timeout > 0 {
		timer := time.AfterFunc(p.o.Timeout, func() { timedOut.Store(true); cancel() })
		defer timer.Stop()
	}
	fail := p.readStream(ex, req)
	if fail.kind != "" && timedOut.Load() && !ex.untilFound {
		fail = failure{wire.FailTimeout, "no complete response within " + p.o.Timeout.String()}
	}
	p.finish(ex, nil, fail.kind, fail.cause)
}

func (p *Portable) readStream(ex *exchange, req *http.Request) failure {
	resp, err := p.h2[ex.job.Target].RoundTrip(req)
	if err != nil {
		return h2Failure(err)
	}
	defer resp.Body.Close()
	ex.tr.HeadAt = opt.Some(p.clock.now())
	ex.tr.Status, ex.tr.Header = resp.StatusCode, resp.Header
	ex.plain = resp.Header.Get("Content-Encoding") == ""
	var last *time.Timer
	buf := make([]byte, readSize)
	for {
		n, err := resp.Body.Read(buf)
		at := p.clock.now()
		if n > 0 {
			p.counts.reads.Add(1)
			if err := ex.take(buf[:n], at); err != nil {
				return failure{wire.FailMalformed, err.Error()}
			}
			found := ex.untilFound
			if ex.search(buf[:n], at); ex.untilFound && !found {
				last = time.AfterFunc(afterUntil, func() { resp.Body.Close() })
				defer last.Stop()
			}
		}
		switch {
		case err == io.EOF:
			if !ex.tr.Ended.Defined() {
				ex.tr.Ended = opt.Some(at)
			}
			return failure{}
		case err != nil && ex.untilFound:
			return failure{}
		case err != nil:
			return failure{wire.FailReset, lastWords(err)}
		}
	}
}

func h2Failure(err error) failure {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &op) && op.Op == "dial":
		kind, cause := connectFailure(err)
		return failure{kind, cause}
	case errors.As(err, &cert):
		kind, cause := tlsFailure(cert.Err)
		return failure{kind, cause}
	default:
		return failure{wire.FailReset, lastWords(err)}
	}
}
