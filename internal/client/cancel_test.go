package client

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// cancelled is a job that is given up after so long.
func cancelled(id int, due, after time.Duration) *Job {
	return &Job{ID: id, Due: opt.Some(due), CancelAfter: after, Call: wire.Call{Method: "POST", Path: "/v1/x", Body: []byte(`{}`)}}
}

// A job is given up when it says, with what had come, whatever the order of those moments; others go on, and a timeout that is earlier rules.
func TestCancelAfter(t *testing.T) {
	for _, timeout := range []time.Duration{0, 3000 * ms} {
		every(t, Options{Timeout: timeout}, func(c net.Conn, _ *http.Request, _ int) bool {
			stream(c, 100*ms, 100*ms, 6)
			return true
		}, func(w *world) {
			w.engine.Submit(cancelled(0, 10*ms, 450*ms))
			w.engine.Submit(cancelled(1, 10*ms, 250*ms))
			w.engine.Submit(cancelled(2, 10*ms, 5000*ms))
			w.submit(3, 10*ms)
			w.sink.await(4)
			for id, end := range map[int]time.Duration{0: 460 * ms, 1: 260 * ms} {
				tr := w.sink.done[id]
				if tr.Fail != wire.FailCancelled || tr.Cause != "cancelled "+(end-10*ms).String()+" after it was sent" || tr.Bytes == 0 {
					w.t.Errorf("%d: %q %q, %d bytes", id, tr.Fail, tr.Cause, tr.Bytes)
				}
				w.at("cancelled", tr.Ended, end)
			}
			for _, id := range []int{2, 3} {
				if tr := w.sink.done[id]; tr.Fail != "" {
					w.t.Errorf("%d: %q %q", id, tr.Fail, tr.Cause)
				}
				w.at("end", w.sink.done[id].Ended, 610*ms)
			}
		})
	}
}

// With HTTP/2 the stream alone is reset.
func TestH2CancelAfter(t *testing.T) {
	h2every(t, Options{Timeout: 5 * time.Second}, h2script{answer: func(p *h2peer, r *h2asked) {
		p.stream(r.id, 200*ms, 200*ms, 4)
	}}, func(w *h2world) {
		w.engine.Submit(cancelled(0, 10*ms, 500*ms))
		w.submit(1, 10*ms)
		w.sink.await(2)
		if tr := w.sink.done[0]; tr.Fail != wire.FailCancelled || w.sink.body(0) != events(2) {
			w.t.Errorf("%q %q %q", tr.Fail, tr.Cause, w.sink.body(0))
		}
		w.at("cancelled", w.sink.done[0].Ended, 510*ms)
		w.good(1, events(4))
		w.until("the stream is taken back", w.saw(1, func(p *h2peer) bool { return len(p.resets) == 1 }))
	})
}

// An eager engine hands over every event as it comes.
func TestEager(t *testing.T) {
	every(t, Options{Eager: true}, func(c net.Conn, _ *http.Request, _ int) bool {
		stream(c, 20*ms, 20*ms, 10)
		return true
	}, func(w *world) {
		w.submit(0)
		w.sink.await(1)
		if n := len(w.sink.parts[0]); n < 10 {
			w.t.Errorf("%d parts of 10 events", n)
		}
	})
}
