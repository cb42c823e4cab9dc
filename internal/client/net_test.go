package client

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// real runs jobs against a server on a socket.
func real(t *testing.T, url string, o Options, jobs int) (*sink, *Portable) {
	t.Helper()
	target, err := ParseTarget(url)
	if err != nil {
		t.Fatal(err)
	}
	s := newSink()
	o.Epoch, o.Sink, o.Targets, o.Spin = time.Now(), s, []Target{target}, DefaultSpin
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second
	}
	e := NewPortable(o)
	for i := range jobs {
		e.Submit(&Job{ID: i, Due: opt.Some(time.Duration(i) * ms), Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
	}
	s.await(jobs)
	return s, e
}

var answer = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("X-Proto", r.Proto)
	for i := range 3 {
		io.WriteString(w, "data: "+strconv.Itoa(i)+"\n\n")
		w.(http.Flusher).Flush()
		time.Sleep(ms)
	}
})

const answered = "data: 0\n\ndata: 1\n\ndata: 2\n\n"

func TestSocketStamps(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("kernel stamps exist on Linux only")
	}
	srv := httptest.NewServer(answer)
	defer srv.Close()
	s, e := real(t, srv.URL, Options{}, 50)
	r := e.Close()
	for i := range 50 {
		tr := s.done[i]
		if tr.Fail != "" || s.body(i) != answered || tr.Stamp != wire.StampSocket {
			t.Fatalf("%d: %q %q %q", i, tr.Fail, tr.Cause, tr.Stamp)
		}
		sent, _ := tr.Sent.Get()
		prev := sent
		for _, m := range tr.Marks {
			if m.At < prev {
				t.Errorf("%d: a mark at %v before %v", i, m.At, prev)
			}
			prev = m.At
		}
		if ended := tr.Ended.Or(0); ended < prev {
			t.Errorf("%d: ended at %v, last mark %v", i, ended, prev)
		}
	}
	if r.Stamp != "socket" || r.Reads < 100 || r.Unstamped > r.Reads/2 {
		t.Errorf("%+v", r)
	}
}

func TestTLSAndHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(answer)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	pool := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for _, h2 := range []bool{false, true} {
		s, e := real(t, srv.URL, Options{HTTP2: h2, TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}}, 20)
		e.Close()
		for i := range 20 {
			tr := s.done[i]
			if tr.Fail != "" || s.body(i) != answered || !tr.Sent.Defined() || !tr.HeadAt.Defined() {
				t.Fatalf("h2 %v, %d: %q %q body %q", h2, i, tr.Fail, tr.Cause, s.body(i))
			}
			if runtime.GOOS == "linux" && tr.Stamp != wire.StampSocket {
				t.Errorf("h2 %v: stamp %s", h2, tr.Stamp)
			}
			proto := tr.Header.Get("X-Proto")
			if tr.Framed {
				b := wire.NewBody(true, 0, nil)
				b.Feed(tr.Raw, tr.Marks, func(wire.Piece) error { return nil })
				proto = b.Header().Get("X-Proto")
			}
			if want := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[h2]; proto != want {
				t.Errorf("protocol %s, want %s", proto, want)
			}
		}
	}
	s, e := real(t, srv.URL, Options{}, 1)
	e.Close()
	if tr := s.done[0]; tr.Fail != wire.FailTLS || !strings.Contains(tr.Cause, "unknown authority") {
		t.Errorf("%q %q", tr.Fail, tr.Cause)
	}
	plain := httptest.NewServer(answer)
	defer plain.Close()
	s, e = real(t, strings.Replace(plain.URL, "http", "https", 1), Options{}, 1)
	e.Close()
	if tr := s.done[0]; tr.Fail != wire.FailTLS || !strings.Contains(tr.Cause, "does not speak TLS") {
		t.Errorf("%q %q", tr.Fail, tr.Cause)
	}
}

func TestHTTP2Plain(t *testing.T) {
	srv := httptest.NewUnstartedServer(answer)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Start()
	defer srv.Close()
	s, e := real(t, srv.URL, Options{HTTP2: true, Cap: 2}, 10)
	e.Close()
	for i := range 10 {
		if tr := s.done[i]; tr.Fail != "" || s.body(i) != answered || tr.Header.Get("X-Proto") != "HTTP/2.0" || !tr.Slot.Defined() {
			t.Fatalf("%d: %q %q %v", i, tr.Fail, tr.Cause, tr.Header)
		}
	}
}

// An HTTP/2 exchange meets the timeout and the cut as an HTTP/1.1 one does, also in the middle of what TLS reads; its connection goes on.
func TestHTTP2Ends(t *testing.T) {
	gate := make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: 0\n\n")
		if w.(http.Flusher).Flush(); r.URL.Path == "/x" {
			<-gate
		}
	})
	defer close(gate)
	for _, secure := range []bool{false, true} {
		srv := httptest.NewUnstartedServer(handler)
		srv.EnableHTTP2 = true
		o := Options{HTTP2: true, Timeout: 100 * ms, ConnectTimeout: 10 * time.Second}
		if secure {
			srv.StartTLS()
			o.TLS = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
		} else {
			srv.Config.Protocols = new(http.Protocols)
			srv.Config.Protocols.SetUnencryptedHTTP2(true)
			srv.Start()
		}
		t.Cleanup(srv.Close) // once the gate is open
		s, e := real(t, srv.URL, o, 3)
		for i := range 3 {
			if tr := s.done[i]; tr.Fail != wire.FailTimeout || s.body(i) != "data: 0\n\n" || tr.Reused != (i > 0) {
				t.Errorf("TLS %v: %q %q %q", secure, tr.Fail, tr.Cause, s.body(i))
			}
		}
		e.Submit(&Job{ID: 3, Call: wire.Call{Method: "POST", Path: "/y"}})
		s.await(1)
		if tr := s.done[3]; tr.Fail != "" || !tr.Reused || s.body(3) != "data: 0\n\n" {
			t.Errorf("TLS %v, afterwards: %+v", secure, tr)
		}
		before := e.counts.reads.Load()
		e.Submit(&Job{ID: 4, Call: wire.Call{Method: "POST", Path: "/x"}})
		for e.counts.reads.Load() == before {
			time.Sleep(ms)
		}
		e.Cut()
		s.await(1)
		if tr := s.done[4]; tr.Fail != wire.FailIncomplete {
			t.Errorf("TLS %v: %q %q", secure, tr.Fail, tr.Cause)
		}
		if r := e.Close(); r.Connections != 1 {
			t.Errorf("TLS %v: %+v", secure, r)
		}
	}
}

// A name that resolves to both families is tried on both, and what answers is used (check 6).
func TestResolveBothFamilies(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Skip("no ", host, " here: ", err)
		}
		srv := &httptest.Server{Listener: ln, Config: &http.Server{Handler: answer}}
		srv.Start()
		t.Cleanup(srv.Close)
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		target, err := ParseTarget("http://localhost:" + port)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := target.Resolve(context.Background(), time.Second); err != nil {
			t.Fatal(err)
		}
		if target.Addr != net.JoinHostPort(host, port) {
			t.Errorf("listening on %s, connected to %s", host, target.Addr)
		}
	}
}

func TestResolveFailures(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	target, _ := ParseTarget("http://" + addr)
	_, _, err = target.Resolve(context.Background(), time.Second)
	if fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), "refused") || fault.HintOf(err) == "" {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
	target, _ = ParseTarget("http://no-such-host.invalid")
	if _, _, err = target.Resolve(context.Background(), time.Second); fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), "no address") {
		t.Error(err)
	}
}

// The dispatcher of a real engine sends close to the due time; the figure is logged, not judged.
func TestLateness(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer srv.Close()
	s, e := real(t, srv.URL, Options{Spare: 4}, 200)
	e.Close()
	var worst, sum time.Duration
	for i := range 200 {
		sent, ok := s.done[i].Sent.Get()
		if !ok || sent < time.Duration(i)*ms {
			t.Fatalf("%d: sent at %v, before it was due", i, sent)
		}
		late := sent - time.Duration(i)*ms
		worst, sum = max(worst, late), sum+late
	}
	t.Logf("lateness of 200 sends at 1,000/s: mean %v, worst %v", sum/200, worst)
}
