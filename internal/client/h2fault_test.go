package client

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/wire"
)

// What goes wrong on a stream ends this stream, and what goes wrong on a connection all of its streams; each fault is named, and none
// is tried again. The other stream of the connection has had the half of its answer.
func TestH2Faults(t *testing.T) {
	stream, conn := true, false
	for _, c := range []struct {
		name  string
		alone bool // the other stream goes on
		kind  wire.Fail
		text  string
		fault func(p *h2peer, id uint32)
	}{
		{"reset", stream, wire.FailReset, "reset by the server (INTERNAL_ERROR)", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteRSTStream(id, http2.ErrCodeInternal) })
		}},
		{"refused", stream, wire.FailReset, "(REFUSED_STREAM)", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteRSTStream(id, http2.ErrCodeRefusedStream) })
		}},
		{"reset in the body", stream, wire.FailReset, "(CANCEL)", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.body(id, false, "some")
			p.write(func() { p.fr.WriteRSTStream(id, http2.ErrCodeCancel) })
		}},
		{"no head", stream, wire.FailMalformed, "a body before its head", func(p *h2peer, id uint32) { p.body(id, true, "x") }},
		{"no status", stream, wire.FailMalformed, "without a status", func(p *h2peer, id uint32) { p.head(id, true, "a", "b") }},
		{"bad status", stream, wire.FailMalformed, "without a status", func(p *h2peer, id uint32) { p.head(id, true, ":status", "2x0") }},
		{"status 99", stream, wire.FailMalformed, "without a status", func(p *h2peer, id uint32) { p.head(id, true, ":status", "099") }},
		{"switching", stream, wire.FailMalformed, "status 101", func(p *h2peer, id uint32) { p.head(id, false, ":status", "101") }},
		{"interim end", stream, wire.FailMalformed, "status 103", func(p *h2peer, id uint32) { p.head(id, true, ":status", "103") }},
		{"request head", stream, wire.FailMalformed, "pseudo", func(p *h2peer, id uint32) { p.head(id, true, ":status", "200", ":path", "/") }},
		{"upper case", stream, wire.FailMalformed, "invalid header field name", func(p *h2peer, id uint32) { p.head(id, true, ":status", "200", "Upper", "x") }},
		{"second head", stream, wire.FailMalformed, "a second head", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.head(id, false, ":status", "200")
		}},
		{"trailers without end", stream, wire.FailMalformed, "a second head", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.head(id, false, "a", "b")
		}},
		{"short body", stream, wire.FailMalformed, "a body of 3 bytes where Content-Length has 4", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200", "content-length", "4")
			p.body(id, true, "abc")
		}},
		{"long body", stream, wire.FailMalformed, "a body of 5 bytes where Content-Length has 4", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200", "content-length", "4")
			p.body(id, true, "abcde")
		}},
		{"no body", stream, wire.FailMalformed, "a body of 0 bytes where Content-Length has 4", func(p *h2peer, id uint32) {
			p.head(id, true, ":status", "200", "content-length", "4")
		}},
		{"bad length", stream, wire.FailMalformed, "bad Content-Length", func(p *h2peer, id uint32) { p.head(id, false, ":status", "200", "content-length", "-4") }},
		{"large body", stream, wire.FailMalformed, "above 1000 bytes", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.body(id, false, strings.Repeat("x", 1001))
		}},
		{"large head", stream, wire.FailMalformed, "head above 1048576 bytes", func(p *h2peer, id uint32) {
			p.write(func() { longHead(p, id, wire.MaxHead/(1<<10)+1, strings.Repeat("|", 1<<10-33)) })
		}},
		{"quite large head", stream, wire.FailMalformed, "head above 1048576 bytes", func(p *h2peer, id uint32) {
			p.write(func() { longHead(p, id, wire.MaxHead/(1<<10)+1000, strings.Repeat("|", 1<<10-33)) })
		}},
		{"no more window", stream, wire.FailMalformed, "stream error", func(p *h2peer, id uint32) { p.grant(id, 0) }},
		{"too much window", stream, wire.FailMalformed, "above 2^31-1", func(p *h2peer, id uint32) { p.grant(id, 1<<31-1) }},

		{"endless head", conn, wire.FailMalformed, "head above 1048576 bytes", func(p *h2peer, id uint32) {
			p.write(func() { longHead(p, id, 8*wire.MaxHead/(1<<10), strings.Repeat("|", 1<<10-33)) })
		}},
		{"large field", conn, wire.FailMalformed, "a string above 2097152 bytes", func(p *h2peer, id uint32) {
			p.write(func() { longHead(p, id, 3<<7, "") })
		}},
		{"bad field in a long head", conn, wire.FailMalformed, "an invalid field", func(p *h2peer, id uint32) {
			p.write(func() { longHead(p, id, 3, "\x01") })
		}},
		{"no more window at all", conn, wire.FailMalformed, "PROTOCOL_ERROR", func(p *h2peer, id uint32) { p.grant(0, 0) }},
		{"too much window at all", conn, wire.FailMalformed, "above 2^31-1", func(p *h2peer, id uint32) { p.grant(0, 1<<31-1) }},
		{"too much initial window", conn, wire.FailMalformed, "above 2^31-1", func(p *h2peer, id uint32) {
			p.grant(id, 1000)
			p.write(func() { p.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1<<31 - 1}) })
		}},
		{"a setting", conn, wire.FailMalformed, "MAX_FRAME_SIZE = 5", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 5}) })
		}},
		{"push", conn, wire.FailMalformed, "a push", func(p *h2peer, id uint32) {
			p.write(func() {
				p.fr.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, BlockFragment: p.block(":method", "GET"), EndHeaders: true})
			})
		}},
		{"a stream of nobody", conn, wire.FailMalformed, "was not opened", func(p *h2peer, id uint32) { p.body(99, true, "x") }},
		{"a head of nobody", conn, wire.FailMalformed, "was not opened", func(p *h2peer, id uint32) { p.head(99, true, ":status", "200") }},
		{"a stream of the server", conn, wire.FailMalformed, "was not opened", func(p *h2peer, id uint32) { p.head(2, true, ":status", "200") }},
		{"a reset of nobody", conn, wire.FailMalformed, "was not opened", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteRSTStream(99, http2.ErrCodeNo) })
		}},
		{"a window of nobody", conn, wire.FailMalformed, "was not opened", func(p *h2peer, id uint32) { p.grant(99, 5) }},
		{"data of no stream", conn, wire.FailMalformed, "stream ID 0", func(p *h2peer, id uint32) { p.body(0, false, "x") }},
		{"large frame", conn, wire.FailMalformed, "frame too large", func(p *h2peer, id uint32) { p.body(id, false, strings.Repeat("x", h2FrameSize+1)) }},
		{"padding that is not there", conn, wire.FailMalformed, "EOF", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, id, nil) })
		}},
		{"too much padding", conn, wire.FailMalformed, "pad size", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, id, []byte{9, 1, 2}) })
		}},
		{"head in pieces of two streams", conn, wire.FailMalformed, "expected CONTINUATION", func(p *h2peer, id uint32) {
			p.write(func() {
				p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(":status", "200")})
			})
			p.body(id, false, "x")
		}},
		{"no HPACK", conn, wire.FailMalformed, "a head that cannot be decoded", func(p *h2peer, id uint32) {
			p.write(func() {
				p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0xff, 0xff, 0xff}, EndHeaders: true})
			})
		}},
		{"garbage", conn, wire.FailMalformed, "broken HTTP/2", func(p *h2peer, id uint32) { p.nc.Write(bytes.Repeat([]byte("garbage "), 3000)) }},
		{"HTTP/1.1", conn, wire.FailMalformed, "answers in HTTP/1.1", func(p *h2peer, id uint32) { ok(p.nc, "hello") }},
		{"closed", conn, wire.FailReset, "without a response", func(p *h2peer, id uint32) { p.nc.Close() }},
		{"closed in the body", conn, wire.FailReset, "in the middle", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.nc.Close()
		}},
		{"cut in the middle of a frame", conn, wire.FailReset, "in the middle", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.nc.Write([]byte{0, 0, 9, 0, 0, 0, 0, 0, byte(id), 'a', 'b'})
			p.nc.Close()
		}},
		{"cut in the middle of a frame's head", conn, wire.FailReset, "in the middle", func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.nc.Write([]byte{0, 0, 9, 0})
			p.nc.Close()
		}},
		{"reset connection", conn, wire.FailReset, "reset by the server", func(p *h2peer, id uint32) { reset(p.nc) }},
		{"going away and closing", conn, wire.FailReset, "the server went away: ENHANCE_YOUR_CALM \"slowly\"", func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteGoAway(100, http2.ErrCodeEnhanceYourCalm, []byte("slowly")) })
			p.nc.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h2every(t, Options{MaxBody: 1000, PartSize: 1, Timeout: 10 * time.Second}, h2script{answer: func(p *h2peer, r *h2asked) {
				switch r.get("x-job") {
				case "other":
					p.head(r.id, false, ":status", "200")
					p.body(r.id, false, "half")
					<-p.srv.gate
					p.body(r.id, true, " whole")
				case "bad":
					c.fault(p, r.id)
				default:
					p.ok(r.id, "fine")
				}
			}}, func(w *h2world) {
				job := func(name string) wire.Call {
					return wire.Call{Method: "POST", Path: "/", Header: []wire.Field{{Name: "X-Job", Value: name}}}
				}
				w.engine.Submit(&Job{ID: 0, Call: job("other")})
				w.until("half", w.come(0, 4))
				w.engine.Submit(&Job{ID: 1, Call: job("bad")})
				w.sink.await(1)
				if !c.alone {
					w.sink.await(1)
				}
				tr := w.sink.ended(1)
				if tr == nil || tr.Fail != c.kind || !strings.Contains(tr.Cause, c.text) {
					w.t.Fatalf("%+v, want %q %q", tr, c.kind, c.text)
				}
				w.peers.release()
				if c.alone {
					w.sink.await(1)
					w.good(0, "half whole")
				} else if other := w.sink.done[0]; other.Fail != c.kind || w.sink.body(0) != "half" {
					w.t.Errorf("the other: %q %q %q", other.Fail, other.Cause, w.sink.body(0))
				}
				after := w.call(2, job("after"))
				w.good(2, "fine")
				if after.Reused != c.alone || tr.Retried || after.Retried {
					w.t.Errorf("afterwards: %+v", after)
				}
				if asked, _ := w.peers.seen(); asked != 3 {
					w.t.Errorf("%d requests", asked)
				}
				if c.kind == wire.FailMalformed && !c.alone && w.exact {
					w.until("a word to the server", w.saw(1, func(p *h2peer) bool { return len(p.goaway) == 1 && p.goaway[0] != http2.ErrCodeNo }))
				}
			})
		})
	}
}

// longHead writes a head in so many frames with a field each; or, without a value, with one field of so many times 8 KiB. p.mu is held.
func longHead(p *h2peer, id uint32, n int, value string) {
	field, part := p.block("x", value), []byte(nil)
	if value == "" {
		field = p.block("x", strings.Repeat("|", n<<13))
	}
	p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(":status", "200")})
	for i := range n {
		if part = field; value == "" {
			part, field = field[:min(8<<10, len(field))], field[min(8<<10, len(field)):]
		}
		if p.fr.WriteContinuation(id, i == n-1, part) != nil {
			return
		}
	}
}
