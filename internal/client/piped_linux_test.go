package client

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Over TLS and HTTP/2, too, moments are those of packets: in order, from the send to the end.
func TestPipedWireStamps(t *testing.T) {
	if got := TestStamps(); got.Dated == 0 {
		t.Skip("no packets can be captured here")
	}
	const events, gap = 20, 3 * time.Millisecond
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range events {
			time.Sleep(gap)
			fmt.Fprintf(w, "data: %s\n\n", strings.Repeat("x", 100))
			w.(http.Flusher).Flush()
		}
	}))
	srv.EnableHTTP2 = true
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetHTTP2(true)
	srv.StartTLS()
	defer srv.Close()
	pool := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for _, h2 := range []bool{false, true} {
		target, err := ParseTarget(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		s := newSink()
		e := newPortable(Options{Epoch: time.Now(), Sink: s, Targets: []Target{target}, HTTP2: h2, Spin: DefaultSpin, Timeout: 20 * time.Second,
			TLS: &tls.Config{RootCAs: pool, ServerName: "example.com"}}, true)
		for i := range 8 {
			e.Submit(&Job{ID: i, Due: opt.Some(time.Duration(i) * ms), Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
		}
		s.await(8)
		r := e.Close()
		if r.Stamp != string(wire.StampWire) || r.WireExchanges != 8 || r.OtherExchanges != 0 {
			t.Errorf("h2 %v: %+v", h2, r)
		}
		for i := range 8 {
			tr := s.done[i]
			if tr.Fail != "" || tr.Stamp != wire.StampWire {
				t.Fatalf("h2 %v, %d: %q %q, stamp %s", h2, i, tr.Fail, tr.Cause, tr.Stamp)
			}
			sent, handed := tr.Sent.Or(-1), tr.Handed.Or(-1)
			if handed < 0 || sent < handed || tr.HeadAt.Or(0) < sent || tr.Ended.Or(0) < tr.HeadAt.Or(0) {
				t.Errorf("h2 %v, %d: handed %v, sent %v, head %v, ended %v", h2, i, handed, sent, tr.HeadAt, tr.Ended)
			}
			last := time.Duration(0)
			for _, m := range tr.Marks {
				if m.At < last {
					t.Errorf("h2 %v, %d: a mark at %v before %v", h2, i, m.At, last)
				}
				last = m.At
			}
		}
	}
}
