package client

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/wire"
)

// What the server says first decides whether it is a server of HTTP/2.
func TestH2Greeting(t *testing.T) {
	for name, c := range map[string]struct {
		first func(p *h2peer)
		kind  wire.Fail
		text  string
		took  time.Duration
	}{
		"HTTP/1.1":           {func(p *h2peer) { ok(p.nc, "x") }, wire.FailMalformed, "answers in HTTP/1.1", 0},
		"another frame":      {func(p *h2peer) { p.fr.WritePing(false, [8]byte{}) }, wire.FailMalformed, "not SETTINGS", 0},
		"an acknowledgement": {func(p *h2peer) { p.fr.WriteSettingsAck() }, wire.FailMalformed, "not SETTINGS", 0},
		"a bad setting": {func(p *h2peer) { p.fr.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 7}) },
			wire.FailMalformed, "ENABLE_PUSH = 7", 0},
		"closed": {func(p *h2peer) { p.nc.Close() }, wire.FailReset, "closed by the server before the first request", 0},
		"reset":  {func(p *h2peer) { p.nc.Read(make([]byte, 1)); reset(p.nc) }, wire.FailReset, "closed by the server before the first request", 0},
		"cut":    {func(p *h2peer) { p.nc.Write([]byte{0, 0, 6}); p.nc.Close() }, wire.FailReset, "closed by the server before the first request", 0},
		"closed afterwards": {func(p *h2peer) { p.fr.WriteSettings(); p.nc.Read(make([]byte, 1)); reset(p.nc) },
			wire.FailReset, "", 0}, // a write may be told of the reset, and the read of an end
		"silence": {func(p *h2peer) {}, wire.FailTimeout, "connect timeout", 300 * ms},
	} {
		h2every(t, Options{ConnectTimeout: 300 * ms}, h2script{first: c.first}, func(w *h2world) {
			for i := range 3 {
				w.submit(i)
			}
			w.sink.await(3)
			for i := range 3 {
				tr := w.sink.done[i]
				if tr.Fail != c.kind || !strings.Contains(tr.Cause, c.text) || tr.Sent.Defined() && name != "closed afterwards" {
					w.t.Errorf("%s: %q %q", name, tr.Fail, tr.Cause)
				}
				w.at(name, tr.Ended, c.took)
			}
		})
	}
}

// The timeout ends a stream alone, and tells the server; where nothing at all came, the connection is not used again.
func TestH2Timeouts(t *testing.T) {
	h2every(t, Options{Timeout: 200 * ms}, h2script{answer: func(p *h2peer, r *h2asked) {
		switch r.n {
		case 1:
			p.head(r.id, false, ":status", "200")
			p.body(r.id, false, "abc")
		case 2:
			p.stream(r.id, 50*ms, 50*ms, 3)
		case 4:
			p.ok(r.id, "x")
		}
	}}, func(w *h2world) {
		w.submit(0, 10*ms)
		w.submit(1, 100*ms)
		w.sink.await(2)
		tr := w.sink.done[0]
		if tr.Fail != wire.FailTimeout || w.sink.body(0) != "abc" || tr.Cause != "no complete response within 200ms" {
			w.t.Errorf("%q %q", tr.Fail, tr.Cause)
		}
		w.at("timeout", tr.Ended, 210*ms)
		w.at("end", w.sink.done[1].Ended, 250*ms)
		w.good(1, events(3))
		w.until("the stream is taken back", w.saw(1, func(p *h2peer) bool { return p.resets[1] == http2.ErrCodeCancel }))
		if tr := w.call(2, wire.Call{}); tr.Fail != wire.FailTimeout || !tr.Reused {
			w.t.Errorf("%+v", tr)
		}
		if tr := w.call(3, wire.Call{}); tr.Fail != "" || tr.Reused {
			w.t.Errorf("after silence: %+v", tr)
		}
	})
}

// Cut ends what is in flight, what waits for a connection and what waits for a place; the connection goes on.
func TestH2CutAndDrain(t *testing.T) {
	h2every(t, Options{Cap: 2}, h2script{answer: func(p *h2peer, r *h2asked) {
		if r.n <= 2 {
			p.stream(r.id, 100*ms, 100*ms, 3)
		} else {
			p.ok(r.id, "x")
		}
	}}, func(w *h2world) {
		for i := range 5 {
			w.submit(i)
		}
		time.Sleep(250 * ms)
		w.engine.Drain()
		w.sink.await(3)
		for i := 2; i < 5; i++ {
			if tr := w.sink.done[i]; tr.Fail != wire.FailDropped || tr.Sent.Defined() {
				w.t.Errorf("%d: %+v", i, tr)
			}
		}
		w.engine.Cut()
		w.sink.await(2)
		for i := range 2 {
			tr := w.sink.done[i]
			if tr.Fail != wire.FailIncomplete || w.sink.body(i) != events(2) || tr.Cause != "cut by the end of the run" {
				w.t.Errorf("%d: %q %q %q", i, tr.Fail, tr.Cause, w.sink.body(i))
			}
			w.at("cut", tr.Ended, 250*ms)
		}
		if tr := w.call(5, wire.Call{}); tr.Fail != "" || !tr.Reused {
			w.t.Errorf("after the cut: %+v", tr)
		}
		w.until("two streams are taken back", w.saw(1, func(p *h2peer) bool { return len(p.resets) == 2 }))
	})
	// while the server is silent, and while it lets no second stream be opened on the first connection and none at all on others
	h2virtual(t, Options{}, h2script{first: func(p *h2peer) {
		if p.n == 1 {
			p.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		}
	}}, func(w *h2world) {
		for i := range 3 {
			w.submit(i)
		}
		time.Sleep(100 * ms)
		w.engine.Cut()
		w.sink.await(3)
		for i := range 3 {
			if tr := w.sink.done[i]; tr.Fail != wire.FailIncomplete || tr.Sent.Defined() != (i == 0) {
				t.Errorf("%d: %+v", i, tr)
			}
			w.at("cut", w.sink.done[i].Ended, 100*ms)
		}
	})
	h2virtual(t, Options{}, h2script{first: func(*h2peer) {}}, func(w *h2world) {
		for i := range 3 {
			w.submit(i)
		}
		synctest.Wait()
		w.engine.Cut()
		w.sink.await(3)
		for i := range 3 {
			if tr := w.sink.done[i]; tr.Fail != wire.FailIncomplete || tr.Sent.Defined() {
				t.Errorf("%d: %+v", i, tr)
			}
		}
	})
}

// stuckConn takes some bytes and then no more.
type stuckConn struct {
	net.Conn
	once   sync.Once
	left   int
	closed chan struct{}
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if c.left -= len(b); c.left >= 0 {
		return c.Conn.Write(b)
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *stuckConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A server that reads no more holds up neither the other jobs nor the timeouts, and what it may make the client hold is bounded.
func TestH2StuckServer(t *testing.T) {
	stuck := func(ctx context.Context, _, addr string) (net.Conn, error) {
		nc, err := dialMem(ctx, addr)
		return &stuckConn{Conn: nc, left: 100_000, closed: make(chan struct{})}, err
	}
	big := bytes.Repeat([]byte("x"), 1<<20)
	h2virtual(t, Options{Dial: stuck, Timeout: time.Second}, h2script{hello: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 24}},
		answer: func(p *h2peer, r *h2asked) { p.ok(r.id, "x") }}, func(w *h2world) {
		w.engine.Submit(&Job{ID: 0, Call: wire.Call{Method: "POST", Path: "/", Body: big}})
		for i := range 5 {
			w.submit(i+1, time.Duration(i+1)*100*ms) // the first has filled the connection by then
		}
		w.sink.await(6)
		for i := range 6 {
			tr := w.sink.done[i]
			if tr.Fail != wire.FailTimeout || tr.Sent.Defined() {
				t.Errorf("%d: %q %q sent %v", i, tr.Fail, tr.Cause, tr.Sent)
			}
			w.at("timeout", tr.Ended, time.Second+time.Duration(i)*100*ms)
		}
		w.call(6, wire.Call{}) // on a fresh connection, since the other one heard nothing
		w.good(6, "x")
	})
	// a flood of questions
	h2virtual(t, Options{Dial: stuck}, h2script{answer: func(p *h2peer, r *h2asked) {
		for range 2 * h2MostQueued / 17 { // the size of a PING
			p.fr.WritePing(false, [8]byte{})
		}
	}}, func(w *h2world) {
		tr := w.call(0, wire.Call{})
		if tr.Fail != wire.FailMalformed || !strings.Contains(tr.Cause, "more acknowledgements than it takes") {
			t.Errorf("%q %q", tr.Fail, tr.Cause)
		}
	})
	// heads, without an end
	h2virtual(t, Options{Dial: stuck, Timeout: 10 * time.Second}, h2script{}, func(w *h2world) {
		long := []wire.Field{{Name: "x", Value: strings.Repeat("\x01", 60_000)}}
		for i := range 100 {
			w.engine.Submit(&Job{ID: i, Call: wire.Call{Method: "GET", Path: "/", Header: long}})
		}
		synctest.Wait()
		if _, conns := w.peers.seen(); conns < 4 || conns > 10 {
			t.Errorf("%d connections for 6 MB that nobody reads", conns)
		}
		for c := range w.engine.(*Portable).h2.conns {
			if n := len(c.out.b); n > h2MostQueued+70_000 {
				t.Errorf("%d bytes are held", n)
			}
		}
		w.engine.Cut()
		w.sink.await(100)
	})
}

// A server that goes on after the client has closed, or that gets no answer, leaves nothing behind.
func TestH2IdleClose(t *testing.T) {
	h2every(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) {
		p.ok(r.id, "x")
		if r.n == 1 {
			p.write(func() { p.fr.WriteGoAway(r.id, http2.ErrCodeNo, nil) })
		}
		if r.n == 2 {
			p.nc.Close()
		}
	}}, func(w *h2world) {
		for i := range 3 {
			tr := w.call(i, wire.Call{})
			if w.good(i, "x"); tr.Reused || tr.Retried {
				w.t.Errorf("%d: %+v", i, tr)
			}
			w.settle()
		}
		if n := len(w.engine.(*Portable).h2.conns); n != 1 {
			w.t.Errorf("%d connections are kept", n)
		}
		w.engine.Close()
		w.settle()
		p := w.peers.peer(3)
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.goaway) != 1 || p.goaway[0] != http2.ErrCodeNo {
			w.t.Errorf("at the end the server is told %v", p.goaway)
		}
	})
}
