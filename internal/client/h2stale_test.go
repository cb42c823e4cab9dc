package client

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/wire"
)

// Streams above the last one that a leaving server has looked at are sent once more, on a fresh connection, when their connection had
// been used before; the others go on.
func TestH2GoAway(t *testing.T) {
	h2every(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) {
		if p.n == 1 && r.id == 5 {
			p.write(func() { p.fr.WriteGoAway(1, http2.ErrCodeNo, nil) })
			time.Sleep(100 * ms)
			p.ok(1, "first")
			return
		}
		if p.n > 1 {
			p.ok(r.id, fmt.Sprint("again ", string(r.body)))
		}
	}}, func(w *h2world) {
		for i := range 3 {
			w.engine.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/", Body: []byte(fmt.Sprint(i))}})
			w.settle()
		}
		w.sink.await(3)
		w.good(0, "first")
		w.good(1, "again 1")
		w.good(2, "again 2")
		for i := range 3 {
			if tr := w.sink.done[i]; tr.Retried != (i > 0) || i > 0 && tr.Reused && !w.sink.done[3-i].Reused == false {
				w.t.Errorf("%d: %+v", i, tr)
			}
		}
		w.call(3, wire.Call{Body: []byte("3")})
		w.good(3, "again 3")
		if r := w.engine.Close(); r.StaleRetries != 2 {
			w.t.Errorf("stale retries %d", r.StaleRetries)
		}
		if asked, conns := w.peers.seen(); asked != 6 || conns != 3 {
			w.t.Errorf("%d requests on %d connections", asked, conns)
		}
	})
	// no second time, none on a fresh connection, and none where something has come
	for name, c := range map[string]struct {
		answer func(p *h2peer, r *h2asked)
		asked  int
	}{
		"fresh": {func(p *h2peer, r *h2asked) {
			p.write(func() { p.fr.WriteGoAway(0, http2.ErrCodeNo, nil) })
		}, 2},
		"twice": {func(p *h2peer, r *h2asked) {
			if r.n == 1 {
				p.ok(r.id, "x")
				return
			}
			p.write(func() { p.fr.WriteGoAway(0, http2.ErrCodeNo, nil) })
		}, 3},
		"answered": {func(p *h2peer, r *h2asked) {
			if r.n == 1 {
				p.ok(r.id, "x")
				return
			}
			p.head(r.id, false, ":status", "103")
			p.write(func() { p.fr.WriteGoAway(0, http2.ErrCodeNo, nil) })
		}, 2},
	} {
		h2virtual(t, Options{}, h2script{answer: c.answer}, func(w *h2world) {
			w.call(0, wire.Call{})
			tr := w.call(1, wire.Call{})
			if tr.Fail != wire.FailReset || !strings.Contains(tr.Cause, "went away: NO_ERROR") || tr.Retried != (name == "twice") {
				t.Errorf("%s: %+v", name, tr)
			}
			if asked, _ := w.peers.seen(); asked != c.asked {
				t.Errorf("%s: %d requests, want %d", name, asked, c.asked)
			}
		})
	}
	// a server that only announces its leave
	h2virtual(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) {
		p.write(func() { p.fr.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil) })
		time.Sleep(100 * ms)
		p.write(func() { p.fr.WriteGoAway(r.id, http2.ErrCodeNo, nil) })
		time.Sleep(100 * ms)
		p.ok(r.id, "x")
	}}, func(w *h2world) {
		w.submit(0)
		synctest.Wait()
		w.submit(1)
		w.sink.await(2)
		for i := range 2 {
			if w.good(i, "x"); w.sink.done[i].Reused || w.sink.done[i].Retried {
				t.Errorf("%+v", w.sink.done[i])
			}
		}
	})
}

// A request that meets a connection that the server had closed while it was idle is sent once more, and no other one is.
func TestH2Stale(t *testing.T) {
	for name, c := range map[string]struct {
		bad            func(p *h2peer)
		again, retried bool // the bad comes again; the request is sent once more
		text           string
	}{
		"closed":    {func(p *h2peer) { p.nc.Close() }, false, true, ""},
		"reset":     {func(p *h2peer) { reset(p.nc) }, false, true, ""},
		"twice":     {func(p *h2peer) { p.nc.Close() }, true, true, "without a response"},
		"late":      {func(p *h2peer) { time.Sleep(100 * ms); p.nc.Close() }, false, false, "without a response"},
		"heard":     {func(p *h2peer) { p.fr.WritePing(false, [8]byte{}); p.nc.Close() }, false, false, "without a response"},
		"malformed": {func(p *h2peer) { p.grant(0, 0) }, false, false, "broken HTTP/2"},
	} {
		silent := func(*h2peer, *h2asked, int) {} // no window update tells that the request has been read
		h2virtual(t, Options{}, h2script{data: silent, answer: func(p *h2peer, r *h2asked) {
			if r.n == 2 || r.n > 2 && c.again {
				c.bad(p)
				return
			}
			p.ok(r.id, string(r.body))
		}}, func(w *h2world) {
			w.call(0, wire.Call{Body: []byte("first")})
			time.Sleep(time.Second)
			tr := w.call(1, wire.Call{Body: []byte("second")})
			if c.text == "" {
				w.good(1, "second")
			} else if tr.Fail == "" || !strings.Contains(tr.Cause, c.text) {
				t.Errorf("%s: %q %q", name, tr.Fail, tr.Cause)
			}
			asked, _ := w.peers.seen()
			if want := map[bool]int{true: 3, false: 2}[c.retried]; tr.Retried != c.retried || asked != want {
				t.Errorf("%s: retried %v, %d requests, want %v, %d", name, tr.Retried, asked, c.retried, want)
			}
			if n := w.engine.Close().StaleRetries; n != map[bool]int{true: 1}[c.retried] {
				t.Errorf("%s: %d stale retries", name, n)
			}
		})
	}
}
