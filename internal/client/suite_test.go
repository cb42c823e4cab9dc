package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

const ms = time.Millisecond

// sink keeps what comes back.
type sink struct {
	mu    sync.Mutex
	done  map[int]*wire.Transcript
	parts map[int][]wire.Part
	order []int
	wait  chan struct{} // gets a token for each Done
}

func newSink() *sink {
	return &sink{done: map[int]*wire.Transcript{}, parts: map[int][]wire.Part{}, wait: make(chan struct{}, 100_000)}
}

func (s *sink) Part(j *Job, p wire.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[j.ID] = append(s.parts[j.ID], p)
}

func (s *sink) Done(j *Job, t *wire.Transcript) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done[j.ID] != nil {
		panic("Done twice")
	}
	s.done[j.ID] = t
	s.order = append(s.order, j.ID)
	s.wait <- struct{}{}
}

func (s *sink) await(n int) {
	for range n {
		<-s.wait
	}
}

// body puts the parts and the rest of a job together.
func (s *sink) body(id int) string {
	var out strings.Builder
	t := s.done[id]
	b := wire.NewBody(t.Framed, t.Status, t.Header)
	emit := func(p wire.Piece) error { out.Write(p.Bytes); return nil }
	for _, p := range s.parts[id] {
		b.Feed(p.Raw, p.Marks, emit)
	}
	b.Feed(t.Raw, t.Marks, emit)
	b.Close(emit)
	return out.String()
}

// handler answers one request; it returns false to close the connection.
type handler func(c net.Conn, req *http.Request, n int) bool

// server is a scripted server.
type server struct {
	ln    net.Listener
	h     handler
	wg    sync.WaitGroup
	mu    sync.Mutex
	reqs  int
	conns int
}

func newServer(ln net.Listener, h handler) *server {
	s := &server{ln: ln, h: h}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns++
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(c) })
		}
	})
	return s
}

// close ends the server once its clients are gone.
func (s *server) close() {
	s.ln.Close()
	s.wg.Wait()
}

func (s *server) seen() (reqs, conns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reqs, s.conns
}

// hang waits until the client closes.
func hang(c net.Conn) { io.Copy(io.Discard, c) }

// reset breaks a connection.
func reset(c net.Conn) {
	if m, ok := c.(*memnet.Conn); ok {
		m.Reset()
		return
	}
	c.(*net.TCPConn).SetLinger(0)
	c.Close()
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body)
		s.mu.Lock()
		s.reqs++
		n := s.reqs
		s.mu.Unlock()
		if !s.h(c, req, n) {
			return
		}
	}
}

// stream answers with chunks, one after each wait.
func stream(c net.Conn, first, gap time.Duration, n int) {
	io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for i := range n {
		if i == 0 {
			time.Sleep(first)
		} else {
			time.Sleep(gap)
		}
		ev := fmt.Sprintf("data: %d\n\n", i)
		if _, err := fmt.Fprintf(c, "%x\r\n%s\r\n", len(ev), ev); err != nil {
			return
		}
	}
	io.WriteString(c, "0\r\n\r\n")
}

func ok(c net.Conn, body string) {
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// world is an engine with a scripted server: in virtual time, where every moment is exact, or on sockets.
type world struct {
	t      *testing.T
	exact  bool
	host   string
	far    time.Duration // a connect takes so long, in virtual time
	dial   func(context.Context, string, string) (net.Conn, error)
	server *server
	sink   *sink
	engine Engine
	epoch  time.Time
}

// engines are those that must behave alike on sockets.
var engines = map[string]func(Options) (Engine, error){
	"portable": func(o Options) (Engine, error) { return NewPortable(o), nil },
	"pipes":    func(o Options) (Engine, error) { return newPortable(o, true), nil },
	"epoll":    func(o Options) (Engine, error) { return NewEpoll(o) },
}

// every runs a test in virtual time, and on sockets with every engine.
func every(t *testing.T, o Options, h handler, test func(w *world)) {
	t.Helper()
	t.Run("virtual", func(t *testing.T) { virtual(t, o, h, test) })
	for name, start := range engines {
		t.Run(name, func(t *testing.T) { onSockets(t, start, o, h, test) })
	}
}

func virtual(t *testing.T, o Options, h handler, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, err := n.Listen("srv:80")
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, exact: true, host: "srv:80", sink: newSink(), epoch: time.Now(), dial: n.Dial}
		w.server = newServer(ln, h)
		target, err := ParseTarget("http://srv:80/base")
		if err != nil {
			t.Fatal(err)
		}
		o.Epoch, o.Sink = w.epoch, w.sink
		o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			time.Sleep(w.far)
			return n.Dial(ctx, network, addr)
		}
		o.Targets = append(o.Targets, target)
		w.engine = NewPortable(o)
		test(w)
		w.engine.Close()
		w.server.close()
	})
}

func onSockets(t *testing.T, start func(Options) (Engine, error), o Options, h handler, test func(w *world)) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, host: ln.Addr().String(), sink: newSink(), epoch: time.Now()}
	w.server = newServer(ln, h)
	target, err := ParseTarget("http://" + ln.Addr().String() + "/base")
	if err != nil {
		t.Fatal(err)
	}
	o.Epoch, o.Sink, o.Spin = w.epoch, w.sink, DefaultSpin
	o.Targets = append(o.Targets, target)
	if w.engine, err = start(o); err != nil {
		w.server.close()
		t.Skip(err)
	}
	test(w)
	w.engine.Close()
	w.server.close()
}

// settle waits until nothing moves any more.
func (w *world) settle() {
	if w.exact {
		synctest.Wait()
		return
	}
	time.Sleep(50 * ms)
}

// at compares a moment: exact in virtual time, not before on sockets.
func (w *world) at(what string, got opt.Of[time.Duration], want time.Duration) {
	w.t.Helper()
	if g, ok := got.Get(); !ok || g < want || w.exact && g != want {
		w.t.Errorf("%s: %v (defined %v), want %v", what, g, ok, want)
	}
}

func (w *world) submit(id int, due ...time.Duration) {
	j := &Job{ID: id, Call: wire.Call{Method: "POST", Path: "/v1/x", Body: []byte(`{}`)}}
	if len(due) > 0 {
		j.Due = opt.Some(due[0])
	}
	w.engine.Submit(j)
}

// Every send and every arrival is exact: 300 streams in an open loop.
func TestExactTimes(t *testing.T) {
	every(t, Options{}, func(c net.Conn, _ *http.Request, _ int) bool {
		stream(c, 100*ms, 20*ms, 10)
		return true
	}, func(w *world) {
		for i := range 300 {
			w.submit(i, time.Duration(i)*7*ms+time.Duration(i)) // odd nanoseconds
		}
		w.sink.await(300)
		for i := range 300 {
			tr := w.sink.done[i]
			due := time.Duration(i)*7*ms + time.Duration(i)
			w.at("sent", tr.Sent, due)
			w.at("head", tr.HeadAt, due)
			w.at("end", tr.Ended, due+280*ms)
			if tr.Fail != "" || tr.Slot.Defined() || w.exact && len(tr.Marks) < 11 {
				w.t.Fatalf("%d: fail %q, %d marks", i, tr.Fail, len(tr.Marks))
			}
			for k := range min(10, len(tr.Marks)-1) {
				if m := tr.Marks[k+1]; m.At < due+100*ms+time.Duration(k)*20*ms || w.exact && m.At != due+100*ms+time.Duration(k)*20*ms {
					w.t.Fatalf("%d: event %d at %v", i, k, m.At-due)
				}
			}
		}
		if _, conns := w.server.seen(); w.exact && conns > 60 {
			w.t.Errorf("%d connections for about 40 in flight", conns)
		}
	})
}

// A closed loop keeps N in flight, in order; a slot is free when the answer before it has ended.
func TestClosedLoop(t *testing.T) {
	var mu sync.Mutex
	inFlight, peak := 0, 0
	every(t, Options{Cap: 3}, func(c net.Conn, _ *http.Request, _ int) bool {
		mu.Lock()
		inFlight++
		peak = max(peak, inFlight)
		mu.Unlock()
		time.Sleep(50 * ms)
		mu.Lock()
		inFlight--
		mu.Unlock()
		ok(c, "x")
		return true
	}, func(w *world) {
		w.engine.Open(0, 3)
		w.settle()
		for i := range 10 {
			w.submit(i)
		}
		w.sink.await(10)
		for i := range 10 {
			want := time.Duration(i/3) * 50 * ms
			w.at("slot", w.sink.done[i].Slot, want)
			w.at("sent", w.sink.done[i].Sent, want)
			if !w.sink.done[i].Reused != (i < 3) {
				w.t.Errorf("request %d: reused %v", i, w.sink.done[i].Reused)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if _, conns := w.server.seen(); peak != 3 || conns != 3 {
			w.t.Errorf("peak %d, %d connections", peak, conns)
		}
	})
}

// Under a cap an open loop waits for a slot: slot - due is the queue, and nothing is sent before it is due.
func TestOpenLoopUnderCap(t *testing.T) {
	every(t, Options{Cap: 1}, func(c net.Conn, _ *http.Request, _ int) bool {
		time.Sleep(100 * ms)
		ok(c, "x")
		return true
	}, func(w *world) {
		dues := []time.Duration{0, 10 * ms, 20 * ms, 500 * ms}
		for i, d := range dues {
			w.submit(i, d)
		}
		w.sink.await(4)
		for i, want := range []time.Duration{0, 100 * ms, 200 * ms, 500 * ms} {
			w.at("slot", w.sink.done[i].Slot, want)
			w.at("sent", w.sink.done[i].Sent, want)
		}
	})
}

// Jobs go out by due time, those without one first, and an earlier one that comes late overtakes.
func TestOrder(t *testing.T) {
	every(t, Options{Cap: 1}, func(c net.Conn, _ *http.Request, _ int) bool {
		time.Sleep(ms)
		ok(c, "x")
		return true
	}, func(w *world) {
		w.submit(1, 230*ms)
		w.submit(2, 220*ms)
		w.settle()
		w.submit(3, 210*ms)
		w.submit(4)
		w.sink.await(4)
		if fmt.Sprint(w.sink.order) != "[4 3 2 1]" {
			w.t.Error(w.sink.order)
		}
	})
}

// A reused connection that the server closed meanwhile is replaced once; the time of sending is that of the second try.
func TestStaleConnection(t *testing.T) {
	every(t, Options{}, func(c net.Conn, _ *http.Request, n int) bool {
		ok(c, "x")
		return n != 1
	}, func(w *world) {
		w.submit(0)
		w.sink.await(1)
		w.settle() // the server closes; the reader of the idle connection notices
		w.submit(1)
		w.sink.await(1)
		if tr := w.sink.done[1]; tr.Fail != "" || tr.Retried || tr.Reused {
			w.t.Errorf("a noticed close needs no retry: %+v", tr)
		}
	})
	// closed only when the request arrives: the retry
	every(t, Options{}, func(c net.Conn, _ *http.Request, n int) bool {
		if n == 2 {
			return false
		}
		time.Sleep(5 * ms)
		ok(c, "x")
		return true
	}, func(w *world) {
		for i := range 2 {
			w.submit(i)
			w.sink.await(1)
		}
		tr := w.sink.done[1]
		if reqs, _ := w.server.seen(); tr.Fail != "" || !tr.Retried || tr.Reused || reqs != 3 {
			w.t.Errorf("%+v, %d requests", tr, reqs)
		}
		if r := w.engine.Close(); r.StaleRetries != 1 {
			w.t.Errorf("stale retries %d", r.StaleRetries)
		}
	})
}

// No other retry, ever.
func TestNoRetry(t *testing.T) {
	for _, c := range []struct {
		name string
		h    handler
		want wire.Fail
		text string
	}{
		{"fresh connection closed", func(net.Conn, *http.Request, int) bool { return false }, wire.FailReset, "without a response"},
		{"cut in the head", func(c net.Conn, _ *http.Request, _ int) bool { io.WriteString(c, "HTTP/1.1 2"); return false }, wire.FailReset, "in the middle"},
		{"reset", func(c net.Conn, _ *http.Request, _ int) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
			time.Sleep(ms)
			reset(c)
			return false
		}, wire.FailReset, "reset by the server"},
		{"closed twice", nil, wire.FailReset, "without a response"},
	} {
		first := 1
		h := c.h
		if h == nil { // a good first answer, then the reused and the fresh connection are closed
			first = 2
			h = func(c net.Conn, _ *http.Request, n int) bool {
				if n == 1 {
					ok(c, "x")
				}
				return n == 1
			}
		}
		every(t, Options{}, h, func(w *world) {
			for i := range first {
				w.submit(i)
				w.sink.await(1)
			}
			tr := w.sink.done[first-1]
			if tr.Fail != c.want || !strings.Contains(tr.Cause, c.text) {
				w.t.Errorf("%s: %q %q", c.name, tr.Fail, tr.Cause)
			}
			reqs, _ := w.server.seen()
			if want := map[bool]int{true: 1, false: 3}[first == 1]; reqs != want {
				w.t.Errorf("%s: %d requests at the server, want %d", c.name, reqs, want)
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	for name, h := range map[string]handler{
		"never answers": func(c net.Conn, _ *http.Request, _ int) bool { hang(c); return false },
		"never ends": func(c net.Conn, _ *http.Request, _ int) bool {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc")
			hang(c)
			return false
		},
		"drips": func(c net.Conn, _ *http.Request, _ int) bool {
			for _, b := range []byte("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabcdefghijklmnop") {
				if _, err := c.Write([]byte{b}); err != nil {
					return false
				}
				time.Sleep(100 * ms)
			}
			return false
		},
	} {
		every(t, Options{Timeout: 400 * ms}, h, func(w *world) {
			w.submit(0, 10*ms)
			w.sink.await(1)
			tr := w.sink.done[0]
			if tr.Fail != wire.FailTimeout {
				w.t.Errorf("%s: %q %q", name, tr.Fail, tr.Cause)
			}
			w.at(name, tr.Ended, 410*ms)
		})
	}
}

func TestConnectTimeoutAndRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSink()
		target, _ := ParseTarget("http://srv:80")
		e := NewPortable(Options{Epoch: time.Now(), Sink: s, Targets: []Target{target}, ConnectTimeout: time.Second,
			Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }})
		e.Submit(&Job{Call: wire.Call{Method: "GET", Path: "/"}})
		s.await(1)
		if tr := s.done[0]; tr.Fail != wire.FailTimeout || tr.Sent.Defined() || tr.Ended.Or(0) != time.Second {
			t.Errorf("%+v", tr)
		}
		e.Close()
	})
	every(t, Options{}, nil, func(w *world) {
		w.server.ln.Close()
		w.submit(0)
		w.sink.await(1)
		if tr := w.sink.done[0]; tr.Fail != wire.FailRefused || tr.Sent.Defined() {
			w.t.Errorf("%+v", tr)
		}
	})
}

// Cut ends what is in flight as incomplete, Drain drops what waits; the engine goes on afterwards.
func TestCutAndDrain(t *testing.T) {
	every(t, Options{Cap: 2}, func(c net.Conn, _ *http.Request, n int) bool {
		if n <= 2 {
			stream(c, 100*ms, 100*ms, 100)
		} else {
			ok(c, "x")
		}
		return true
	}, func(w *world) {
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
			if tr.Fail != wire.FailIncomplete || tr.Bytes == 0 {
				w.t.Errorf("%d: %+v", i, tr)
			}
			w.at("cut", tr.Ended, 250*ms)
		}
		w.submit(5)
		w.sink.await(1)
		if tr := w.sink.done[5]; tr.Fail != "" {
			w.t.Errorf("after the cut: %+v", tr)
		}
	})
}

func TestSubmitAfterClose(t *testing.T) {
	every(t, Options{}, func(c net.Conn, _ *http.Request, _ int) bool { ok(c, ""); return true }, func(w *world) {
		w.engine.Close()
		w.submit(0)
		w.sink.await(1)
		if w.sink.done[0].Fail != wire.FailDropped {
			w.t.Error(w.sink.done[0])
		}
	})
}

// A body that goes on after its terminator frees its slot after 500 ms, is complete, and ended at the terminator.
func TestUntil(t *testing.T) {
	every(t, Options{Timeout: time.Minute}, func(c net.Conn, _ *http.Request, n int) bool {
		io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, ev := range []string{"data: 1\n\n", "data: [DO", "NE]\n\n"} {
			time.Sleep(100 * ms)
			fmt.Fprintf(c, "%x\r\n%s\r\n", len(ev), ev)
		}
		if n == 1 {
			hang(c)
			return false
		}
		time.Sleep(200 * ms)
		io.WriteString(c, "0\r\n\r\n")
		return true
	}, func(w *world) {
		for i := range 2 {
			start := w.engine.Now()
			w.engine.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/", Until: []string{"\ndata: [DONE]"}}})
			w.sink.await(1)
			tr := w.sink.done[i]
			w.at("end", tr.Ended, start+300*ms)
			if tr.Fail != "" {
				w.t.Errorf("%+v", tr)
			}
			want := []time.Duration{800 * ms, 500 * ms}[i]
			if d := w.engine.Now() - start; d < want || w.exact && d != want {
				w.t.Errorf("request %d took %v", i, d)
			}
		}
		if w.exact {
			time.Sleep(time.Minute)
		}
		time.Sleep(600 * ms) // the deadline of the terminator must not hit the idle connection
		w.engine.Submit(&Job{ID: 2, Call: wire.Call{Method: "POST", Path: "/"}})
		w.sink.await(1)
		if !w.sink.done[2].Reused {
			w.t.Error("the idle connection is lost")
		}
	})
}

func TestLimits(t *testing.T) {
	every(t, Options{MaxBody: 1000}, func(c net.Conn, req *http.Request, n int) bool {
		switch n {
		case 1:
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n%s", strings.Repeat("x", 5000))
		case 2:
			io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("y", 900))
			time.Sleep(time.Second)
			io.WriteString(c, strings.Repeat("y", 900))
		case 3:
			io.WriteString(c, "SSH-2.0-x\r\n")
		case 4:
			ok(c, "fine")
		}
		return true
	}, func(w *world) {
		for i := range 4 {
			w.submit(i)
			w.sink.await(1)
		}
		for i, want := range []string{"above 1000 bytes", "above 1000 bytes", "not an HTTP/1 response", ""} {
			tr := w.sink.done[i]
			if (tr.Fail == wire.FailMalformed) != (want != "") || !strings.Contains(tr.Cause, want) {
				w.t.Errorf("%d: %q %q", i, tr.Fail, tr.Cause)
			}
		}
		if w.sink.body(3) != "fine" {
			w.t.Error(w.sink.body(3))
		}
	})
}

// What is on the wire: path, headers, body.
func TestRequestOnTheWire(t *testing.T) {
	var mu sync.Mutex
	var got []string
	every(t, Options{UserAgent: "prony/test", FreshEach: true}, func(c net.Conn, req *http.Request, _ int) bool {
		mu.Lock()
		got = append(got, fmt.Sprint(req.Method, " ", req.URL.Path, " ", req.Host, " ", req.Header, " ", req.ContentLength))
		mu.Unlock()
		ok(c, "")
		return true
	}, func(w *world) {
		w.engine.Submit(&Job{Call: wire.Call{Method: "POST", Path: "/v1/x", Header: []wire.Field{{Name: "X-A", Value: "b"}}, Body: []byte("hello")}})
		w.sink.await(1)
		w.submit(1)
		w.sink.await(1)
		mu.Lock()
		defer func() { got = nil; mu.Unlock() }()
		want := "POST /base/v1/x " + w.host + " map[Connection:[close] Content-Length:[5] User-Agent:[prony/test] X-A:[b]] 5"
		if got[0] != want {
			w.t.Errorf("got  %s\nwant %s", got[0], want)
		}
		if _, conns := w.server.seen(); conns != 2 || w.sink.done[1].Reused {
			w.t.Error("a connection was used twice")
		}
	})
}

// A long answer comes in parts, and parts and rest give the whole.
func TestParts(t *testing.T) {
	every(t, Options{PartSize: 1000}, func(c net.Conn, _ *http.Request, _ int) bool {
		stream(c, ms, ms, 1000)
		return true
	}, func(w *world) {
		w.submit(0)
		w.sink.await(1)
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&want, "data: %d\n\n", i)
		}
		if w.sink.body(0) != want.String() || len(w.sink.parts[0]) < 10 || len(w.sink.done[0].Raw) > 1000 {
			w.t.Errorf("%d parts, rest %d", len(w.sink.parts[0]), len(w.sink.done[0].Raw))
		}
	})
}

// Odd but legal responses.
func TestLegalOddities(t *testing.T) {
	for _, c := range []struct{ name, raw, body string }{
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok"},
		{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n", "ok"},
		{"no length", "HTTP/1.1 200 OK\r\n\r\nok", "ok"},
		{"http/1.0", "HTTP/1.0 200 OK\r\n\r\nok", "ok"},
		{"extra bytes", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", "ok"},
	} {
		for _, step := range []int{1, 3, 1000} {
			if c.name == "extra bytes" && step < 1000 {
				continue // a byte that comes after the next request looks like its answer
			}
			every(t, Options{}, func(conn net.Conn, _ *http.Request, n int) bool {
				for b := []byte(c.raw); len(b) > 0; {
					k := min(step, len(b))
					conn.Write(b[:k])
					b = b[k:]
					if step < 1000 {
						time.Sleep(ms)
					}
				}
				return c.name == "interim" || c.name == "trailers"
			}, func(w *world) {
				for i := range 2 {
					w.submit(i)
					w.sink.await(1)
					if tr := w.sink.done[i]; tr.Fail != "" || w.sink.body(i) != c.body {
						w.t.Errorf("%s in steps of %d: %q %q, body %q", c.name, step, tr.Fail, tr.Cause, w.sink.body(i))
					}
				}
			})
		}
	}
}

// A request that does not fit into the socket is sent when its last piece is, and an answer that comes before is taken.
func TestLargeRequest(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 5<<20)
	every(t, Options{}, func(c net.Conn, _ *http.Request, _ int) bool { ok(c, "got it"); return true }, func(w *world) {
		for i := range 2 {
			w.engine.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/", Body: body}})
			w.sink.await(1)
			if tr := w.sink.done[i]; tr.Fail != "" || w.sink.body(i) != "got it" || tr.Reused != (i == 1) {
				w.t.Errorf("%+v", tr)
			}
		}
	})
}

func TestSpare(t *testing.T) {
	every(t, Options{Spare: 2}, func(c net.Conn, _ *http.Request, _ int) bool {
		time.Sleep(time.Second)
		ok(c, "")
		return true
	}, func(w *world) {
		w.far = 15 * ms
		w.engine.Open(0, 2)
		time.Sleep(w.far)
		w.settle()
		start := w.engine.Now()
		for i := range 6 {
			w.submit(i, start+time.Duration(i+1)*20*ms)
		}
		w.sink.await(6)
		for i := range 6 {
			if sent := w.sink.done[i].Sent.Or(0); w.exact && sent != start+time.Duration(i+1)*20*ms {
				w.t.Errorf("request %d had to wait for its connection: sent at %v", i, sent)
			}
		}
	})
}

func TestParseTarget(t *testing.T) {
	for _, c := range []struct{ in, path, join, addr string }{
		{"localhost:8000", "/v1/chat/completions", "http://localhost:8000/v1/chat/completions", "localhost:8000"},
		{"http://h/", "/v1/x", "http://h/v1/x", "h:80"},
		{"https://h/v1", "/v1/x", "https://h/v1/x", "h:443"},
		{"https://h/v1/", "/metrics", "https://h/v1/metrics", "h:443"},
		{"http://[::1]:9/a b", "/x", "http://[::1]:9/a%20b/x", "[::1]:9"},
	} {
		tg, err := ParseTarget(c.in)
		if err != nil || tg.Join(c.path) != c.join || tg.Addr != c.addr {
			t.Errorf("%q: %q %q %v", c.in, tg.Join(c.path), tg.Addr, err)
		}
	}
	for base, want := range map[string]string{"https://h/v1/": "https://h/metrics", "http://h:1/a/v1": "http://h:1/a/metrics", "h:1": "http://h:1/metrics"} {
		if tg, err := ParseTarget(base); err != nil || tg.Root("/metrics") != want {
			t.Errorf("%q: %q %v", base, tg.Root("/metrics"), err)
		}
	}
	for _, bad := range []string{"", "ftp://h", "http://", "http://h:99999", "http://u:p@h", "http://h?x=1", "http://h:port", "http://:8000"} {
		if _, err := ParseTarget(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestSlotsPanicOnMisuse(t *testing.T) {
	s := newSlots(2, 5)
	a, b := s.take(), s.take()
	s.put(7)
	s.put(9)
	if a != 5 || b != 5 || s.take() != 7 || s.take() != 9 || s.n != 0 {
		t.Error("order of slots")
	}
	s.put(1)
	s.put(1)
	defer func() {
		if recover() == nil {
			t.Error("a slot too many")
		}
	}()
	s.put(1)
}

var _ Engine = (*Portable)(nil)
