package client

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Every send and every arrival is exact with Go's own server: 300 streams in an open loop, over few connections.
func TestH2ExactTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, err := n.Listen("srv:80")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			for i := range 10 {
				time.Sleep(map[bool]time.Duration{true: 100 * ms, false: 20 * ms}[i == 0])
				fmt.Fprint(w, event(i))
				w.(http.Flusher).Flush()
			}
		})}
		srv.Protocols.SetUnencryptedHTTP2(true)
		go srv.Serve(ln)
		s := newSink()
		target, _ := ParseTarget("http://srv:80")
		e := NewPortable(Options{Epoch: time.Now(), Sink: s, Targets: []Target{target}, HTTP2: true, Dial: n.Dial, Timeout: time.Minute})
		for i := range 300 {
			e.Submit(&Job{ID: i, Due: opt.Some(time.Duration(i)*7*ms + time.Duration(i)), Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
		}
		s.await(300)
		for i := range 300 {
			tr, due := s.done[i], time.Duration(i)*7*ms+time.Duration(i)
			var want []time.Duration
			for k := range 10 {
				want = append(want, due+100*ms+time.Duration(k)*20*ms)
			}
			var got []time.Duration
			for _, m := range tr.Marks {
				got = append(got, m.At)
			}
			if tr.Fail != "" || s.body(i) != events(10) || tr.Sent != opt.Some(due) || tr.HeadAt != opt.Some(due) || tr.Ended != opt.Some(due+280*ms) || !slices.Equal(got, want) {
				t.Fatalf("%d: %q %q sent %v head %v ended %v marks %v", i, tr.Fail, tr.Cause, tr.Sent, tr.HeadAt, tr.Ended, got)
			}
			if tr.Reused != (i > 0) || tr.Connect.Defined() != (i == 0) || tr.TLS.Defined() || tr.Framed || tr.Status != 200 {
				t.Errorf("%d: %+v", i, tr)
			}
		}
		if r := e.Close(); r.Connections != 1 || r.StaleRetries != 0 {
			t.Errorf("%+v", r)
		}
		srv.Close()
	})
}

// What is on the wire: the fields in their order, the body, and the same bytes at every place.
func TestH2RequestOnTheWire(t *testing.T) {
	var got []*h2asked
	h2virtual(t, Options{UserAgent: "prony/test"}, h2script{answer: func(p *h2peer, r *h2asked) {
		got = append(got, r)
		p.ok(r.id, "")
	}}, func(w *h2world) {
		call := wire.Call{Method: "POST", Path: "/v1/x?a=b", Body: []byte("hello"), Header: []wire.Field{{Name: "Content-Type", Value: "application/json"},
			{Name: "X-A", Value: "b"}, {Name: "Connection", Value: "close"}, {Name: "Host", Value: "other"}, {Name: "TE", Value: "gzip"},
			{Name: "Transfer-Encoding", Value: "chunked"}, {Name: "Keep-Alive", Value: "5"}, {Name: "x-a", Value: "c"}}}
		for i := range 2 {
			w.call(i, call)
		}
		w.call(2, wire.Call{Method: "GET", Path: "/"})
		var fields []string
		for _, f := range got[0].fields {
			fields = append(fields, f.Name+"="+f.Value)
		}
		want := ":method=POST :scheme=http :authority=srv:80 :path=/base/v1/x?a=b user-agent=prony/test content-type=application/json x-a=b x-a=c content-length=5"
		if s := strings.Join(fields, " "); s != want || string(got[0].body) != "hello" || got[0].frames != 1 {
			t.Errorf("got  %s\nwant %s", s, want)
		}
		if !bytes.Equal(got[0].block, got[1].block) {
			t.Errorf("%x\n%x", got[0].block, got[1].block)
		}
		if len(got[2].fields) != 5 || got[2].get(":path") != "/base/" || got[2].get("content-length") != "" || len(got[2].body) != 0 {
			t.Errorf("%v", got[2].fields)
		}
	})
}

// The bytes of a head: after the table size of 0, indexed fields and literals without indexing, with the codes of RFC 7541, C.4.1.
func TestH2HeadBlock(t *testing.T) {
	target, err := ParseTarget("http://www.example.com")
	if err != nil {
		t.Fatal(err)
	}
	const want = "20" + "82" + "86" + "018cf1e3c2e5f23a6ba0ab90f4ff" + "84"
	if got := hex.EncodeToString(h2HeadBlock(target, &wire.Call{Method: "GET", Path: "/"}, "")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A head that does not fit into a frame goes on in others.
func TestH2LongHead(t *testing.T) {
	long := strings.Repeat("long ", 10_000)
	var got string
	h2virtual(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) { got = r.get("x-long"); p.ok(r.id, "ok") }}, func(w *h2world) {
		w.call(0, wire.Call{Header: []wire.Field{{Name: "X-Long", Value: long}}, Body: []byte("b")})
		if w.good(0, "ok"); got != long {
			t.Errorf("a head of %d bytes", len(got))
		}
	})
}

// Odd but legal answers.
func TestH2LegalOddities(t *testing.T) {
	for name, answer := range map[string]func(p *h2peer, id uint32){
		"interim heads": func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "100")
			p.head(id, false, ":status", "103", "link", "x")
			p.ok(id, "ok")
		},
		"trailers": func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200")
			p.body(id, false, "ok")
			p.head(id, true, "grpc-status", "0")
		},
		"continuation": func(p *h2peer, id uint32) {
			p.write(func() {
				b := p.block(":status", "200", "x-long", strings.Repeat("z", 20_000))
				p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:1]})
				p.fr.WriteContinuation(id, false, nil)
				p.fr.WriteContinuation(id, false, b[1:5_000])
				p.fr.WriteContinuation(id, true, b[5_000:])
			})
			p.body(id, true, "ok")
		},
		"padding": func(p *h2peer, id uint32) {
			p.write(func() {
				p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(":status", "200"), EndHeaders: true, PadLength: 255})
				p.fr.WriteDataPadded(id, false, []byte("o"), make([]byte, 255))
				p.fr.WriteDataPadded(id, false, nil, make([]byte, 100))
				p.fr.WriteDataPadded(id, true, []byte("k"), make([]byte, 1))
			})
		},
		"empty frames and others": func(p *h2peer, id uint32) {
			p.write(func() { p.fr.WriteRawFrame(0xbe, 0x7f, 0, []byte("unknown")) })
			p.head(id, false, ":status", "200")
			p.body(id, false, "")
			p.write(func() {
				p.fr.WritePriority(id, http2.PriorityParam{StreamDep: 0, Weight: 3})
				p.fr.WriteRawFrame(0xbe, 0x7f, id, nil)
				p.fr.WritePing(false, [8]byte{1})
				p.fr.WritePing(true, [8]byte{2})
				p.fr.WriteSettingsAck()
				p.fr.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0}, http2.Setting{ID: 0xabcd, Val: 1}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20})
			})
			p.body(id, false, "ok")
			p.body(id, true, "")
		},
		"reset after the end": func(p *h2peer, id uint32) {
			p.ok(id, "ok")
			p.write(func() { p.fr.WriteRSTStream(id, http2.ErrCodeNo) })
			p.grant(id, 5)
		},
		"identity": func(p *h2peer, id uint32) {
			p.head(id, false, ":status", "200", "content-encoding", "identity")
			p.body(id, true, "ok")
		},
	} {
		h2every(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) { answer(p, r.id) }}, func(w *h2world) {
			for i := range 2 {
				tr := w.call(i, wire.Call{Body: []byte("b")})
				if w.good(i, "ok"); tr.Reused != (i == 1) || tr.Status != 200 || !tr.HeadAt.Defined() {
					w.t.Errorf("%s: %+v", name, tr)
				}
			}
		})
	}
	for status, method := range map[string]string{"204": "POST", "304": "GET", "200": "HEAD"} {
		h2virtual(t, Options{}, h2script{answer: func(p *h2peer, r *h2asked) {
			time.Sleep(10 * ms)
			p.head(r.id, true, ":status", status, "content-length", "7")
		}}, func(w *h2world) {
			tr := w.call(0, wire.Call{Method: method})
			if w.good(0, ""); len(tr.Marks) != 1 || tr.Marks[0] != (wire.Mark{End: 0, At: 10 * ms}) {
				t.Errorf("%s: %v", status, tr.Marks)
			}
			w.at("end", tr.Ended, 10*ms)
		})
	}
}

// The slot is free when the stream has ended, also where its end brought no bytes.
func TestH2SlotAtTheEnd(t *testing.T) {
	h2virtual(t, Options{Cap: 1}, h2script{answer: func(p *h2peer, r *h2asked) {
		p.head(r.id, false, ":status", "200")
		p.body(r.id, false, "x")
		time.Sleep(30 * ms)
		p.body(r.id, true, "")
	}}, func(w *h2world) {
		w.submit(0)
		w.submit(1)
		w.sink.await(2)
		w.at("end", w.sink.done[0].Ended, 30*ms)
		w.at("slot", w.sink.done[1].Slot, 30*ms)
		w.good(0, "x")
		w.good(1, "x")
	})
}

// A terminator ends the answer; its stream has 500 ms to end.
func TestH2Until(t *testing.T) {
	h2virtual(t, Options{Timeout: time.Minute}, h2script{answer: func(p *h2peer, r *h2asked) {
		p.head(r.id, false, ":status", "200")
		time.Sleep(100 * ms)
		p.body(r.id, false, "data: 1\n\ndata: [DO")
		time.Sleep(100 * ms)
		p.body(r.id, false, "NE]\n\n")
		switch r.n {
		case 2:
			time.Sleep(200 * ms)
			p.body(r.id, true, "")
		case 3:
			time.Sleep(100 * ms)
			p.write(func() { p.fr.WriteRSTStream(r.id, http2.ErrCodeInternal) })
		case 4:
			time.Sleep(100 * ms)
			p.nc.Close()
		}
	}}, func(w *h2world) {
		for i, want := range []time.Duration{700 * ms, 400 * ms, 300 * ms, 300 * ms} {
			start := w.engine.Now()
			tr := w.call(i, wire.Call{Until: []string{"\ndata: [DONE]"}})
			w.good(i, "data: 1\n\ndata: [DONE]\n\n")
			w.at("end", tr.Ended, start+200*ms)
			if took := w.engine.Now() - start; took != want {
				t.Errorf("job %d took %v, want %v", i, took, want)
			}
		}
		if p := w.peers.peer(1); len(p.resets) != 1 || p.resets[1] != http2.ErrCodeCancel {
			t.Errorf("resets %v", p.resets)
		}
	})
}
