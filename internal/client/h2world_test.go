package client

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/wire"
)

// h2world is a world with an HTTP/2 server.
type h2world struct {
	*world
	peers *h2server
}

// h2virtual runs a test in virtual time.
func h2virtual(t *testing.T, o Options, script h2script, test func(w *h2world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, err := n.Listen("srv:80")
		if err != nil {
			t.Fatal(err)
		}
		w := &h2world{&world{t: t, exact: true, sink: newSink(), epoch: time.Now()}, newH2Server(ln, script)}
		target, err := ParseTarget("http://srv:80/base")
		if err != nil {
			t.Fatal(err)
		}
		o.Epoch, o.Sink, o.HTTP2, o.Targets = w.epoch, w.sink, true, []Target{target}
		if o.Dial == nil {
			o.Dial = n.Dial
		} else {
			dial := o.Dial
			o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				return dial(context.WithValue(ctx, dialKey{}, n.Dial), network, addr)
			}
		}
		w.engine = NewPortable(o)
		defer w.close()
		test(w)
	})
}

// dialKey is where a Dial of a test finds that of the network in memory.
type dialKey struct{}

func dialMem(ctx context.Context, addr string) (net.Conn, error) {
	return ctx.Value(dialKey{}).(func(context.Context, string, string) (net.Conn, error))(ctx, "tcp", addr)
}

// h2every runs a test in virtual time, and on sockets with and without an engine thread.
func h2every(t *testing.T, o Options, script h2script, test func(w *h2world)) {
	t.Helper()
	t.Run("virtual", func(t *testing.T) { h2virtual(t, o, script, test) })
	for name, threaded := range map[string]bool{"portable": false, "pipes": true} {
		t.Run(name, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			w := &h2world{&world{t: t, sink: newSink(), epoch: time.Now()}, newH2Server(ln, script)}
			target, err := ParseTarget("http://" + ln.Addr().String() + "/base")
			if err != nil {
				t.Fatal(err)
			}
			o.Epoch, o.Sink, o.HTTP2, o.Targets, o.Spin = w.epoch, w.sink, true, []Target{target}, DefaultSpin
			w.engine = newPortable(o, threaded)
			defer w.close()
			test(w)
		})
	}
}

// close ends both sides, also after a test that gave up.
func (w *h2world) close() {
	w.peers.release()
	w.engine.Close()
	w.peers.close()
}

// call submits a job and waits for it.
func (w *h2world) call(id int, c wire.Call) *wire.Transcript {
	w.t.Helper()
	if c.Method == "" {
		c.Method = "POST"
	}
	if c.Path == "" {
		c.Path = "/v1/x"
	}
	w.engine.Submit(&Job{ID: id, Call: c})
	w.sink.await(1)
	return w.sink.done[id]
}

// good checks that a job has ended well, with a body.
func (w *h2world) good(id int, body string) {
	w.t.Helper()
	tr := w.sink.done[id]
	if tr == nil {
		w.t.Fatalf("job %d has not ended", id)
	}
	if tr.Fail != "" || w.sink.body(id) != body {
		w.t.Errorf("job %d: %q %q, body %.80q, want %.80q", id, tr.Fail, tr.Cause, w.sink.body(id), body)
	}
}

// until waits until something holds.
func (w *h2world) until(what string, holds func() bool) {
	w.t.Helper()
	for range 2000 {
		if w.settleBriefly(); holds() {
			return
		}
	}
	w.t.Fatal("never: ", what)
}

func (w *h2world) settleBriefly() {
	if w.exact {
		synctest.Wait()
		return
	}
	time.Sleep(ms)
}

// saw looks at what a peer saw.
func (w *h2world) saw(n int, holds func(p *h2peer) bool) func() bool {
	return func() bool {
		if _, conns := w.peers.seen(); conns < n {
			return false
		}
		p := w.peers.peer(n)
		p.mu.Lock()
		defer p.mu.Unlock()
		return holds(p)
	}
}

// come tells whether so many bytes of an answer have come, with parts of a byte.
func (w *h2world) come(id, n int) func() bool {
	return func() bool {
		w.sink.mu.Lock()
		defer w.sink.mu.Unlock()
		got := 0
		for _, p := range w.sink.parts[id] {
			got += len(p.Raw)
		}
		return got >= n
	}
}

// ended returns the end of a job, nil before.
func (s *sink) ended(id int) *wire.Transcript {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[id]
}
