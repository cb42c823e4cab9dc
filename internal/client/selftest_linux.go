package client

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// The stream of the self-test: so many events, so far apart.
const (
	testEvents = 20
	testGap    = 100 * time.Microsecond // at least: timers are late
	testLimit  = 2 * time.Second        // for all of it
)

// Wire and socket stamps of one event are some microseconds apart. Where their median is outside of these bounds one of the two is wrong.
const (
	wireLeast = -100 * time.Microsecond
	wireMost  = time.Millisecond
)

// TestStamps sends a stream from this process to itself, over the loopback interface, and compares the grades of its stamps. It takes
// some 30 ms. A report without events says that the test could not be made.
func TestStamps() *bench.StampTest {
	t := &bench.StampTest{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if ln, err = net.Listen("tcp", "[::1]:0"); err != nil {
			return t
		}
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		serveTest(ln)
	}()
	defer func() { ln.Close(); <-served }()
	c := &comparison{done: make(chan struct{})}
	addr := ln.Addr().String()
	o := Options{Epoch: time.Now(), Targets: []Target{{URL: &url.URL{Scheme: "http", Host: addr}, Addr: addr}}, Sink: c, Timeout: testLimit, Spin: DefaultSpin, compare: c.add}
	e, err := NewEpoll(o)
	if err != nil {
		return t
	}
	e.Submit(&Job{Call: wire.Call{Method: "GET", Path: "/"}})
	<-c.done
	r := e.Close()
	if c.fail != "" {
		return t
	}
	t.Events, t.Dated = testEvents, len(c.after)
	t.UserAfterSocket50, t.UserAfterSocket99 = opt.Some(int64(e.counts.delays.quantile(0.5))), opt.Some(r.ReadDelayP99)
	if r.NoWire != "" {
		return t
	}
	if t.Dated == 0 {
		t.Trouble = "no packet of the self-test was captured"
		return t
	}
	slices.Sort(c.after)
	mid := c.after[len(c.after)/2]
	t.SocketAfterWire50, t.SocketAfterWire99 = opt.Some(int64(mid)), opt.Some(int64(c.after[(len(c.after)-1)*99/100]))
	switch {
	case mid < wireLeast || mid > wireMost:
		t.Trouble = fmt.Sprintf("in the self-test the stamps of reads are %v behind those of packets", mid)
	case r.OtherExchanges > 0:
		t.Trouble = "the packets of the self-test were not all captured"
	}
	return t
}

// serveTest answers one request with the stream of the self-test.
func serveTest(ln net.Listener) {
	nc, err := ln.Accept()
	if err != nil {
		return
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(testLimit))
	in := bufio.NewReader(nc)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if strings.TrimSpace(line) == "" {
			break
		}
	}
	event := strings.Repeat("x", 200)
	fmt.Fprintf(nc, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", testEvents*len(event))
	for range testEvents {
		time.Sleep(testGap)
		if _, err := nc.Write([]byte(event)); err != nil {
			return
		}
	}
}

// comparison gathers by how much the stamps of reads are later than those of the packets.
type comparison struct {
	mu    sync.Mutex
	after []time.Duration
	fail  wire.Fail
	done  chan struct{}
}

// Part implements Sink.
func (*comparison) Part(*Job, wire.Part) {}

// Done implements Sink.
func (c *comparison) Done(_ *Job, tr *wire.Transcript) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = tr.Fail
	close(c.done)
}

// add compares the marks of the reads of a piece with those of its packets.
func (c *comparison) add(reads, packets []wire.Mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := 0
	for _, r := range reads {
		for k < len(packets) && packets[k].End < r.End {
			k++
		}
		if k < len(packets) {
			c.after = append(c.after, r.At-packets[k].At)
		}
	}
}
