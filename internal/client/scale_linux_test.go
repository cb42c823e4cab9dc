package client

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// noMoreFiles waits until no more files are open than there were before.
func noMoreFiles(t *testing.T, before int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); openFiles(t) > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := openFiles(t); n > before {
		t.Errorf("%d files are open, %d were before", n, before)
	}
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
	noMoreFiles(t, before)
}

// acceptEnv makes a child process of TestIdleConnections, with open files of its own.
const acceptEnv = "PRONY_TEST_ACCEPT"

// 10,000 connections are opened ahead and lie idle; requests go over them as over any other, and all are closed at the end.
func TestIdleConnections(t *testing.T) {
	const n = 10_000
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < n+100 {
		t.Skipf("this process may open %d files (%v)", limit.Cur, err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestIdleConnectionsServer$")
	cmd.Env = append(os.Environ(), acceptEnv+"="+strconv.Itoa(n))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	defer time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() }).Stop() // nobody waits for what it does not say
	says := bufio.NewScanner(out)
	says.Scan()
	target, err := ParseTarget(says.Text())
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	s := newSink()
	e, err := NewEpoll(Options{Epoch: time.Now(), Targets: []Target{target}, Sink: s, Spin: DefaultSpin, Timeout: 20 * time.Second})
	if err != nil {
		t.Skip(err)
	}
	for at := 1000; at <= n; at += 1000 { // the queue of the listening socket has 4,096 places at most
		e.Open(0, at)
		if says.Scan(); says.Text() != "opened "+strconv.Itoa(at) {
			e.Close()
			t.Fatalf("the server says %q in place of %d opened", says.Text(), at)
		}
	}
	for i := range 100 {
		e.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
	}
	s.await(100)
	if r := e.Close(); r.Connections != n {
		t.Errorf("%d connections, want %d", r.Connections, n)
	}
	for id, tr := range s.done {
		if tr.Fail != "" || s.body(id) != "ok" {
			t.Errorf("%d: %q %q", id, tr.Fail, tr.Cause)
		}
	}
	if says.Scan(); says.Text() != "closed" {
		t.Errorf("the server says %q in place of closed", says.Text())
	}
	noMoreFiles(t, before)
}

// TestIdleConnectionsServer is the server of TestIdleConnections. It says how many connections were opened, and when all are closed.
func TestIdleConnectionsServer(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(acceptEnv))
	if err != nil {
		t.Skip("the child of TestIdleConnections")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("http://" + ln.Addr().String())
	var all sync.WaitGroup
	for i := range n {
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if (i+1)%1000 == 0 {
			fmt.Println("opened", i+1)
		}
		all.Go(func() {
			defer nc.Close()
			request := make([]byte, 1<<10) // comes in one piece
			for {
				if _, err := nc.Read(request); err != nil {
					return
				}
				io.WriteString(nc, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
	}
	all.Wait()
	fmt.Println("closed")
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
