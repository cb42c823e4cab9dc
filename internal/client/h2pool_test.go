package client

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/wire"
)

// A connection takes as many streams as the server wants, and others are opened for more; a place that frees is used again.
func TestH2Places(t *testing.T) {
	slow := func(p *h2peer, r *h2asked) {
		time.Sleep(40 * ms)
		p.ok(r.id, "x")
	}
	for _, c := range []struct{ limit, jobs, conns int }{{1, 5, 5}, {2, 7, 4}, {3, 9, 3}, {100, 50, 1}} {
		h2every(t, Options{}, h2script{hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: uint32(c.limit)}}, answer: slow}, func(w *h2world) {
			for round := range 2 {
				for i := range c.jobs {
					w.submit(round*c.jobs + i)
				}
				w.sink.await(c.jobs)
			}
			for i := range 2 * c.jobs {
				if w.good(i, "x"); i >= c.jobs && !w.sink.done[i].Reused {
					w.t.Errorf("job %d on a fresh connection", i)
				}
			}
			_, conns := w.peers.seen()
			if conns != c.conns {
				w.t.Errorf("limit %d, %d jobs: %d connections, want %d", c.limit, c.jobs, conns, c.conns)
			}
			for i := range conns {
				if p := w.peers.peer(i + 1); p.most > c.limit {
					w.t.Errorf("limit %d: %d streams", c.limit, p.most)
				}
			}
		})
	}
	// under a cap the places of one connection suffice
	h2every(t, Options{Cap: 3}, h2script{hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 3}}, answer: slow}, func(w *h2world) {
		for i := range 12 {
			w.submit(i)
		}
		w.sink.await(12)
		for i := range 12 {
			w.at("slot", w.sink.done[i].Slot, time.Duration(i/3)*40*ms)
			w.at("sent", w.sink.done[i].Sent, time.Duration(i/3)*40*ms)
		}
		if _, conns := w.peers.seen(); conns != 1 {
			w.t.Errorf("%d connections", conns)
		}
	})
}

// A server that lets no stream be opened refuses each job, and keeps no connection; one that lets more later gets them.
func TestH2NoPlaces(t *testing.T) {
	h2virtual(t, Options{}, h2script{hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 0}}}, func(w *h2world) {
		for i := range 3 {
			w.submit(i)
		}
		w.sink.await(3)
		for i := range 3 {
			if tr := w.sink.done[i]; tr.Fail != wire.FailRefused || tr.Sent.Defined() {
				t.Errorf("%+v", tr)
			}
		}
		synctest.Wait()
		if n := len(w.engine.(*Portable).h2.conns); n != 0 {
			t.Errorf("%d connections are kept", n)
		}
	})
	h2virtual(t, Options{}, h2script{hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1}}, answer: func(p *h2peer, r *h2asked) {
		if r.n == 1 {
			p.write(func() { p.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 5}) })
		}
		time.Sleep(100 * ms)
		p.ok(r.id, "x")
	}}, func(w *h2world) {
		w.submit(0)
		synctest.Wait()
		for i := range 4 {
			w.submit(i + 1)
		}
		w.sink.await(5)
		if _, conns := w.peers.seen(); conns != 1 {
			t.Errorf("%d connections", conns)
		}
		if p := w.peers.peer(1); p.acks != 2 {
			t.Errorf("%d of 2 SETTINGS are acknowledged", p.acks)
		}
	})
}

// With a fresh connection for each job none is used twice.
func TestH2FreshEach(t *testing.T) {
	h2every(t, Options{FreshEach: true, Spare: 2}, h2script{answer: func(p *h2peer, r *h2asked) { p.ok(r.id, "x") }}, func(w *h2world) {
		w.engine.Open(0, 2)
		w.settle()
		for i := range 6 {
			w.submit(i)
			w.sink.await(1)
			if w.good(i, "x"); w.sink.done[i].Reused {
				w.t.Errorf("job %d on a used connection", i)
			}
		}
		w.settle()
		asked, conns := w.peers.seen()
		if asked != 6 || conns < 6 || conns > 8 || w.exact && conns != 8 {
			w.t.Errorf("%d requests on %d connections", asked, conns)
		}
		for i := range conns {
			if p := w.peers.peer(i + 1); p.most > 1 {
				w.t.Errorf("%d streams", p.most)
			}
		}
	})
}

// Connections opened ahead of need are found open.
func TestH2Open(t *testing.T) {
	slow := func(p *h2peer, r *h2asked) { time.Sleep(time.Second); p.ok(r.id, "x") }
	for limit, conns := range map[uint32]int{1: 5, 2: 3, 100: 1} {
		h2virtual(t, Options{}, h2script{hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: limit}}, answer: slow}, func(w *h2world) {
			w.engine.Open(0, 5)
			synctest.Wait()
			if _, n := w.peers.seen(); n != conns {
				t.Errorf("limit %d: %d connections, want %d", limit, n, conns)
			}
			for i := range 5 {
				w.submit(i)
			}
			w.sink.await(5)
			for i := range 5 {
				if w.good(i, "x"); w.sink.done[i].Connect.Defined() {
					t.Errorf("job %d had to wait for its connection", i)
				}
			}
			if _, n := w.peers.seen(); n != conns {
				t.Errorf("limit %d: %d connections, want %d", limit, n, conns)
			}
		})
	}
	h2virtual(t, Options{Spare: 2}, h2script{hello: []http2.Setting{{ID: http2.SettingMaxConcurrentStreams, Val: 1}}, answer: slow}, func(w *h2world) {
		w.engine.Open(0, 2)
		synctest.Wait()
		for i := range 6 {
			w.submit(i, time.Duration(i+1)*20*ms)
		}
		w.sink.await(6)
		for i := range 6 {
			if w.good(i, "x"); w.sink.done[i].Connect.Defined() {
				t.Errorf("job %d had to wait for its connection", i)
			}
		}
	})
	// a failure ahead of need is nobody's; the job's own try shows it
	h2virtual(t, Options{Dial: func(context.Context, string, string) (net.Conn, error) { return nil, memnet.ErrRefused }}, h2script{}, func(w *h2world) {
		w.engine.Open(0, 5)
		synctest.Wait()
		if tr := w.call(0, wire.Call{}); tr.Fail != wire.FailRefused || tr.Sent.Defined() {
			t.Errorf("%+v", tr)
		}
	})
}
