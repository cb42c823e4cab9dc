package client

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

// vllmEvent is one chunk of a stream as vLLM writes it.
var vllmEvent = chunked(`data: {"id":"chatcmpl-7f3a9c1e5b2d4860","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}` + "\n\n")

func chunked(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// bench is an engine thread without its thread and its sockets: streams are fed by hand, blocks come back at once.
type feeder struct {
	l     *loop
	conns []*econn
	now   time.Duration
}

func newFeeder(streams int) *feeder {
	f := &feeder{}
	o := &Options{Epoch: time.Now(), MaxBody: 1 << 62}
	f.l = &loop{o: o, count: &counts{}, clock: newClock(o.Epoch), buf: make([]byte, readBuffer)}
	f.l.hand = func(b *block) {
		if b.free != nil {
			b.free()
		}
	}
	for i := range streams {
		c := &econn{number: int32(i)}
		c.onBody = c.body
		c.x = newXfer(&Epoll{o: Options{Targets: []Target{{URL: &url.URL{Scheme: "http", Host: "a"}}}}}, &Job{Call: wire.Call{Until: []string{"\ndata: [DONE]", "\ndata:[DONE]", "\rdata: [DONE]", "\rdata:[DONE]"}}})
		c.x.c = c
		f.conns = append(f.conns, c)
		f.feed(i, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	}
	return f
}

func (f *feeder) feed(stream int, bytes string) {
	n := copy(f.l.buf, bytes)
	f.now += time.Microsecond
	f.l.feed(f.conns[stream], f.l.buf[:n], f.now)
}

// What an engine thread does with a read, besides the system call and the stamp.
func BenchmarkFeed(b *testing.B) {
	for _, events := range []int{1, 4} {
		b.Run(fmt.Sprintf("%d-a-read", events), func(b *testing.B) {
			f := newFeeder(1000)
			text := strings.Repeat(vllmEvent, events)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f.feed(i%len(f.conns), text)
			}
		})
	}
}

// What it does to date a read.
func BenchmarkDate(b *testing.B) {
	n, c := &counts{}, newClock(time.Now())
	b.ReportAllocs()
	for b.Loop() {
		_, wall := c.pair()
		n.date(c, wall-1000, 0)
	}
}

// An engine thread allocates nothing while it reads, once every stream has its block.
func TestFeedDoesNotAllocate(t *testing.T) {
	f := newFeeder(100)
	run := func() {
		for i := range f.conns {
			for range 40 { // more than a block holds
				f.feed(i, vllmEvent)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations for 4,000 events", n)
	}
	c, n := newClock(time.Now()), &counts{}
	if a := testing.AllocsPerRun(100, func() { n.date(c, time.Now().UnixNano(), 0) }); a != 0 {
		t.Errorf("%v allocations to date a read", a)
	}
}
