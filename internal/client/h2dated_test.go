package client

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/wire"
)

// piecewise is a connection that brings bytes in pieces, each of which arrived at its own moment: the n-th after n ms.
type piecewise struct {
	net.Conn
	pieces [][]byte
	m      moment
}

func (c *piecewise) Read(p []byte) (int, error) {
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	c.m.at += ms
	c.m.end += int64(n)
	c.pieces = c.pieces[1:]
	return n, nil
}

func (c *piecewise) arrived() moment       { return c.m }
func (c *piecewise) sending(time.Duration) {}
func (c *piecewise) stamped() bool         { return true }

// A frame is dated by its last byte, whether it is one of many in a read or lies in many reads.
func TestH2FramesAreDated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all bytes.Buffer
		var ends []int
		fr := http2.NewFramer(&all, nil)
		for range rapid.IntRange(1, 30).Draw(t, "frames") {
			fr.WriteData(1, false, make([]byte, rapid.IntRange(0, 60).Draw(t, "size")))
			ends = append(ends, all.Len())
		}
		in := &piecewise{}
		var cuts []int // where pieces end
		for at := 0; at < all.Len(); {
			n := min(rapid.IntRange(1, 200).Draw(t, "piece"), all.Len()-at)
			in.pieces = append(in.pieces, all.Bytes()[at:at+n])
			at += n
			cuts = append(cuts, at)
		}
		l := newLookahead(in, false)
		c := newH2Conn(&Portable{}, 0, l, l)
		for i, end := range ends {
			if _, err := c.fr.ReadFrame(); err != nil {
				t.Fatal(err)
			}
			want := 0
			for cuts[want] < end {
				want++
			}
			if got := c.in.arrived(); got.at != time.Duration(want+1)*ms || got.end != int64(end) {
				t.Fatalf("frame %d up to %d arrived at %v, up to %d, want %d ms", i, end, got.at, got.end, want+1)
			}
		}
	})
}

// heldSink keeps the reader of a connection from its work.
type heldSink struct {
	*sink
	hold time.Duration
}

func (s *heldSink) Part(j *Job, p wire.Part) {
	time.Sleep(s.hold)
	s.sink.Part(j, p)
}

// What comes while storage holds up the reader is dated by the engine thread, as it comes.
func TestH2DatedWhileHeld(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("engine threads exist on Linux only")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wrote [4]time.Time
	srv := newH2Server(ln, h2script{answer: func(p *h2peer, r *h2asked) {
		p.head(r.id, false, ":status", "200")
		for i := range wrote {
			time.Sleep(10 * ms)
			wrote[i] = time.Now()
			p.body(r.id, i == len(wrote)-1, "x")
		}
	}})
	target, _ := ParseTarget("http://" + ln.Addr().String())
	epoch, s := time.Now(), &heldSink{newSink(), 150 * ms}
	e := newPortable(Options{Epoch: epoch, Sink: s, Targets: []Target{target}, HTTP2: true, PartSize: 1}, true)
	e.Submit(&Job{Call: wire.Call{Method: "POST", Path: "/"}})
	s.await(1)
	e.Close()
	srv.close()
	var marks []wire.Mark
	for _, p := range s.parts[0] {
		marks = append(marks, p.Marks...)
	}
	if len(marks) != len(wrote) {
		t.Fatalf("%v", marks)
	}
	for i, m := range marks {
		if late := m.At - wrote[i].Sub(epoch); late > 100*ms {
			t.Errorf("piece %d is dated %v after it was sent", i, late)
		}
	}
}
