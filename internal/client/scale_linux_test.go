package client

import (
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// openFiles is the number of open files of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	dir, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(dir)
}

// 1,000 connections to 8 servers, each used twice: all requests are answered, no server gets more than its part, and all files are
// closed at the end.
func TestManyConnections(t *testing.T) {
	const servers, each = 8, 125
	before := openFiles(t)
	var targets []Target
	var all []*httptest.Server
	for range servers {
		srv := httptest.NewServer(answer)
		all = append(all, srv)
		target, err := ParseTarget(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
	}
	s := newSink()
	e, err := NewEpoll(Options{Epoch: time.Now(), Targets: targets, Sink: s, Spin: DefaultSpin, Timeout: 60 * time.Second, Threads: 2})
	if err != nil {
		t.Skip(err)
	}
	for round := range 2 {
		for i := range servers * each {
			e.Submit(&Job{ID: round*servers*each + i, Target: i % servers, Due: opt.Some(e.Now() + 100*time.Millisecond), Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
		}
		s.await(servers * each)
	}
	r := e.Close()
	for id, tr := range s.done {
		if tr.Fail != "" || s.body(id) != answered || tr.Target != id%servers {
			t.Fatalf("%d: target %d, %q %q", id, tr.Target, tr.Fail, tr.Cause)
		}
	}
	if r.Connections < servers || r.Connections > 2*servers*each {
		t.Errorf("%d connections", r.Connections)
	}
	for _, srv := range all {
		srv.Close()
	}
	for deadline := time.Now().Add(5 * time.Second); openFiles(t) > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := openFiles(t); n > before {
		t.Errorf("%d files are open, %d were before", n, before)
	}
}

// Thousands of connections are opened ahead and stay idle; the run still ends at once, with all of them closed.
func TestIdleConnections(t *testing.T) {
	const n = 4000 // both ends are files of this process
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	opened, closed := make(chan struct{}, n), make(chan struct{}, n)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			opened <- struct{}{}
			go func() {
				nc.Read(make([]byte, 1)) // until it is closed
				nc.Close()
				closed <- struct{}{}
			}()
		}
	}()
	target, err := ParseTarget("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	e, err := NewEpoll(Options{Epoch: time.Now(), Targets: []Target{target}, Sink: newSink(), Spin: DefaultSpin})
	if err != nil {
		t.Skip(err)
	}
	e.Open(0, n)
	for i := range n {
		select {
		case <-opened:
		case <-time.After(20 * time.Second):
			e.Close()
			t.Skipf("%d connections of %d: this process may not open more files", i, n)
		}
	}
	if r := e.Close(); r.Connections != n {
		t.Errorf("%d connections, want %d", r.Connections, n)
	}
	for range n {
		<-closed
	}
	for deadline := time.Now().Add(5 * time.Second); openFiles(t) > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if got := openFiles(t); got > before {
		t.Errorf("%d files are open, %d were before", got, before)
	}
}

// A connection that ends with its answer takes nothing of the answer's packets with it.
func TestFreshConnectionsAreDatedByPackets(t *testing.T) {
	if got := TestStamps(); got.Dated == 0 {
		t.Skip("no packets can be captured here")
	}
	srv := httptest.NewServer(answer)
	defer srv.Close()
	target, err := ParseTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	s := newSink()
	e, err := NewEpoll(Options{Epoch: time.Now(), Targets: []Target{target}, Sink: s, Spin: DefaultSpin, Timeout: 20 * time.Second, Cap: 20, FreshEach: true})
	if err != nil {
		t.Skip(err)
	}
	for i := range n {
		e.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
	}
	s.await(n)
	r := e.Close()
	if r.Connections != n || r.WireExchanges != n || r.RingDropped != 0 {
		t.Errorf("%d connections, %d exchanges dated by packets and %d not, %d packets lost", r.Connections, r.WireExchanges, r.OtherExchanges, r.RingDropped)
	}
}
