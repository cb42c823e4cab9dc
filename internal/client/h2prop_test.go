package client

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// h2plan is a job and what the server does with it.
type h2plan struct {
	due     time.Duration
	body    int
	interim int
	head    time.Duration // after the request
	pieces  []h2piece
	padding byte
	end     string // "data": with the last piece; "empty": a DATA of its own; "trailers"
}

type h2piece struct {
	wait time.Duration
	size int
}

// answer plays the plan.
func (j *h2plan) answer(p *h2peer, r *h2asked) {
	for range j.interim {
		p.head(r.id, false, ":status", "103", "link", "x")
	}
	time.Sleep(j.head)
	last := j.end == "data" && len(j.pieces) == 0
	p.write(func() {
		b := p.block(":status", "200", "x-some", strings.Repeat("z", r.n*10))
		p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: r.id, BlockFragment: b[:1], EndStream: last, PadLength: j.padding})
		p.fr.WriteContinuation(r.id, true, b[1:])
	})
	for i, piece := range j.pieces {
		time.Sleep(piece.wait)
		last = j.end == "data" && i == len(j.pieces)-1
		p.write(func() {
			p.fr.WriteDataPadded(r.id, last, bytes.Repeat([]byte{byte(r.n)}, piece.size), make([]byte, j.padding))
		})
	}
	switch j.end {
	case "empty":
		p.body(r.id, true, "")
	case "trailers":
		p.head(r.id, true, "grpc-status", "0")
	default:
		p.closed()
	}
}

// check compares what came back with the plan: each byte has the moment of its frame's end, whatever goes on in other streams.
func (j *h2plan) check(w *h2world, id int) error {
	tr := w.sink.done[id]
	at, n := j.due+j.head, 0
	head := at
	var want, got []wire.Mark
	for _, piece := range j.pieces {
		if at += piece.wait; piece.size > 0 {
			n += piece.size
			want = append(want, wire.Mark{End: n, At: at})
		}
	}
	if len(want) == 0 || want[len(want)-1].At != at {
		want = append(want, wire.Mark{End: n, At: at}) // the end
	}
	for _, p := range w.sink.parts[id] {
		got = append(got, p.Marks...)
	}
	got = slices.Compact(append(got, tr.Marks...))
	switch {
	case tr.Fail != "" || tr.Retried || tr.Status != 200:
		return fmt.Errorf("job %d: %+v", id, tr)
	case tr.Sent != opt.Some(j.due) || tr.HeadAt != opt.Some(head) || tr.Ended != opt.Some(at):
		return fmt.Errorf("job %d: sent %v, head %v, ended %v, want %v, %v, %v", id, tr.Sent, tr.HeadAt, tr.Ended, j.due, head, at)
	case !slices.Equal(got, want):
		return fmt.Errorf("job %d: marks\n%v, want\n%v", id, got, want)
	case tr.Bytes != n || len(w.sink.body(id)) != n:
		return fmt.Errorf("job %d: %d bytes, want %d", id, tr.Bytes, n)
	}
	return nil
}

// Whatever limits, windows, pads and pieces a server chooses: each request is sent when it is due and whole, and each byte dated exactly.
func TestH2AnyTraffic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		upTo := func(n int, label string) int { return rapid.IntRange(0, n).Draw(rt, label) }
		millis := func(n int, label string) time.Duration { return time.Duration(upTo(n, label)) * ms }
		var plans []h2plan
		for range 1 + upTo(11, "jobs") {
			j := h2plan{due: millis(30, "due"), body: upTo(100, "body") * upTo(300, "times"), interim: upTo(2, "interim"), head: millis(20, "head"),
				padding: byte(upTo(255, "padding")), end: rapid.SampledFrom([]string{"data", "empty", "trailers"}).Draw(rt, "end")}
			for range upTo(5, "pieces") {
				j.pieces = append(j.pieces, h2piece{millis(20, "wait"), upTo(10, "size") * upTo(1500, "times")})
			}
			plans = append(plans, j)
		}
		limit, window := 1+upTo(9, "limit"), 1+upTo(300, "window")*upTo(300, "times")
		o := Options{FreshEach: rapid.Bool().Draw(rt, "fresh"), Spare: upTo(2, "spare"), Timeout: time.Minute}
		var bad []error
		h2virtual(t, o, h2script{
			hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: uint32(limit)}, {ID: http2.SettingInitialWindowSize, Val: uint32(window)}},
			answer: func(p *h2peer, r *h2asked) {
				var id int
				fmt.Sscan(r.get("x-id"), &id)
				if len(r.body) != plans[id].body || bytes.IndexFunc(r.body, func(c rune) bool { return c != rune('a'+id) }) >= 0 {
					t.Errorf("job %d: the server got a body of %d bytes", id, len(r.body))
				}
				plans[id].answer(p, r)
			},
		}, func(w *h2world) {
			for id, j := range plans {
				w.engine.Submit(&Job{ID: id, Due: opt.Some(j.due), Call: wire.Call{Method: "POST", Path: "/", Body: bytes.Repeat([]byte{byte('a' + id)}, j.body),
					Header: []wire.Field{{Name: "X-Id", Value: fmt.Sprint(id)}}}})
			}
			w.sink.await(len(plans))
			for id := range plans {
				if err := plans[id].check(w, id); err != nil {
					bad = append(bad, err)
				}
			}
			w.settle()
			_, conns := w.peers.seen()
			for i := range conns {
				p := w.peers.peer(i + 1)
				if p.mu.Lock(); p.most > limit || o.FreshEach && p.most > 1 || len(p.resets) > 0 {
					bad = append(bad, fmt.Errorf("connection %d: %d streams of %d at once, resets %v", i, p.most, limit, p.resets))
				}
				p.mu.Unlock()
			}
		})
		if len(bad) > 0 {
			rt.Fatal(bad[0])
		}
	})
}

// A head is the same at every place, says what the call says, and needs no table.
func TestH2AnyHead(t *testing.T) {
	target, err := ParseTarget("http://srv:80/base")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		call := wire.Call{Method: rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "method"), Path: "/" + rapid.StringMatching(`[a-z/?=%0-9]{0,40}`).Draw(t, "path"),
			Body: make([]byte, rapid.IntRange(0, 3).Draw(t, "body"))}
		want := []string{":method: " + call.Method, ":scheme: http", ":authority: srv:80", ":path: /base" + call.Path, "user-agent: a"}
		for range rapid.IntRange(0, 8).Draw(t, "fields") {
			f := wire.Field{Name: rapid.StringMatching(`[A-Za-z][A-Za-z-]{0,20}`).Draw(t, "name"), Value: rapid.StringMatching(`[ -~]{0,60}`).Draw(t, "value")}
			call.Header = append(call.Header, f)
			if name := strings.ToLower(f.Name); !ofConnection(name, f.Value) {
				want = append(want, name+": "+f.Value)
			}
		}
		if len(call.Body) > 0 || call.Method == "POST" {
			want = append(want, fmt.Sprintf("content-length: %d", len(call.Body)))
		}
		block := h2HeadBlock(target, &call, "a")
		if !bytes.Equal(block, h2HeadBlock(target, &call, "a")) {
			t.Fatal("two heads of one call differ")
		}
		dec := hpack.NewDecoder(h2TableSize, nil)
		for _, size := range []uint32{h2TableSize, 0} {
			dec.SetAllowedMaxDynamicTableSize(size)
			fields, err := dec.DecodeFull(block)
			var got []string
			for _, f := range fields {
				got = append(got, f.Name+": "+f.Value)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%v: got  %q\nwant %q", err, got, want)
			}
		}
	})
}
