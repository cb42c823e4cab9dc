package client

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/wire"
)

// Bodies go out as the server's windows open, in turn, and are sent when their last byte is.
func TestH2TinyWindows(t *testing.T) {
	body := []byte(strings.Repeat("0123456789", 10))
	h2virtual(t, Options{Timeout: time.Minute}, h2script{
		hello: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 7}},
		answer: func(p *h2peer, r *h2asked) {
			if !bytes.Equal(r.body, body) || r.frames < 15 {
				t.Errorf("stream %d: %q in %d frames", r.id, r.body, r.frames)
			}
			p.ok(r.id, "ok")
		},
		data: func(p *h2peer, r *h2asked, n int) {
			p.srv.wg.Go(func() {
				time.Sleep(10 * ms)
				p.grant(r.id, n)
			})
		},
	}, func(w *h2world) {
		for i := range 3 {
			w.engine.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/", Body: body}})
		}
		w.sink.await(3)
		for i := range 3 {
			w.good(i, "ok")
			w.at("sent", w.sink.done[i].Sent, 140*ms) // 7 bytes at once, and 7 more each 10 ms
		}
	})
}

// The connection's window holds back what the windows of the streams would let go, a growing initial window lets it go, and an
// answer that comes before is taken.
func TestH2ConnectionWindow(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 200_000)
	h2virtual(t, Options{Timeout: time.Minute}, h2script{
		hello: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 1 << 20}},
		data: func(p *h2peer, r *h2asked, n int) {
			if len(r.body) == 65535 {
				p.srv.wg.Go(func() { time.Sleep(time.Second); p.grant(0, 200_000) })
			}
		},
		answer: func(p *h2peer, r *h2asked) { p.ok(r.id, fmt.Sprint(len(r.body))) },
	}, func(w *h2world) {
		w.at("sent", w.call(0, wire.Call{Body: big}).Sent, time.Second)
		w.good(0, "200000")
	})
	h2virtual(t, Options{Timeout: time.Minute}, h2script{
		hello: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}},
		opened: func(p *h2peer, r *h2asked) {
			p.srv.wg.Go(func() {
				time.Sleep(time.Second)
				p.write(func() { p.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10}) })
				time.Sleep(time.Second)
				p.write(func() { p.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}) }) // below 0
				time.Sleep(time.Second)
				p.grant(r.id, 10)
			})
		},
		data:   func(*h2peer, *h2asked, int) {},
		answer: func(p *h2peer, r *h2asked) { p.ok(r.id, string(r.body)) },
	}, func(w *h2world) {
		w.at("sent", w.call(0, wire.Call{Body: []byte("0123456789abcde")}).Sent, 3*time.Second)
		w.good(0, "0123456789abcde")
	})
	h2virtual(t, Options{}, h2script{
		hello:  []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 100}},
		opened: func(p *h2peer, r *h2asked) { p.ok(r.id, "enough") },
		data:   func(*h2peer, *h2asked, int) {},
	}, func(w *h2world) {
		for i := range 2 {
			tr := w.call(i, wire.Call{Body: big})
			if w.good(i, "enough"); tr.Sent.Defined() || tr.Reused != (i > 0) {
				t.Errorf("%+v", tr)
			}
		}
		synctest.Wait()
		if p := w.peers.peer(1); p.resets[1] != http2.ErrCodeCancel || p.resets[3] != http2.ErrCodeCancel {
			t.Errorf("the rest of the body is not taken back: %v", p.resets)
		}
	})
}

// A large body comes to a server of the network.
func TestH2LargeRequest(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	h2every(t, Options{Timeout: time.Minute}, h2script{answer: func(p *h2peer, r *h2asked) {
		if !bytes.Equal(r.body, body) {
			t.Errorf("stream %d: %d bytes", r.id, len(r.body))
		}
		p.ok(r.id, "got it")
	}}, func(w *h2world) {
		for i := range 2 {
			for k := range 3 {
				w.engine.Submit(&Job{ID: i*3 + k, Call: wire.Call{Method: "POST", Path: "/", Body: body}})
			}
			w.sink.await(3)
		}
		for i := range 6 {
			w.good(i, "got it")
		}
		if _, conns := w.peers.seen(); conns != 1 {
			w.t.Errorf("%d connections", conns)
		}
	})
}

// A long answer never meets a closed window, and comes in parts.
func TestH2Windows(t *testing.T) {
	const pieces, piece = 3000, 16 << 10
	data := strings.Repeat("y", piece)
	h2virtual(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) {
		p.head(r.id, false, ":status", "200")
		for i := range pieces {
			p.body(r.id, i == pieces-1, data)
			if i%100 == 0 {
				time.Sleep(ms)
			}
			p.mu.Lock()
			left, all := h2StreamWindow+p.granted[r.id]-(i+1)*piece, h2DefaultWindow+p.granted[0]-(i+1)*piece
			p.mu.Unlock()
			if left < h2StreamWindow/4 || all < h2ConnWindow/4 {
				t.Fatalf("after %d pieces the windows are %d and %d", i+1, left, all)
			}
		}
	}}, func(w *h2world) {
		w.call(0, wire.Call{})
		if tr := w.sink.done[0]; tr.Fail != "" || tr.Bytes != pieces*piece || len(tr.Raw) > defaultPartSize || len(w.sink.parts[0]) != pieces {
			t.Errorf("%q %q: %d bytes in %d parts", tr.Fail, tr.Cause, tr.Bytes, len(w.sink.parts[0]))
		}
		w.sink.parts[0] = nil
	})
}
