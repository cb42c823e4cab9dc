package client

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prony-bench/prony/internal/wire"
)

// FuzzH2Server answers two requests with any bytes. Each job ends once, with a named failure or a whole answer, no goroutine stays, and
// how the bytes are cut into pieces makes no difference.
func FuzzH2Server(f *testing.F) {
	for _, seed := range h2seeds() {
		f.Add(seed, uint64(1))
	}
	f.Fuzz(func(t *testing.T, answer []byte, cuts uint64) {
		if len(answer) > 1<<16 {
			return
		}
		whole, pieces := h2answered(t, answer, 0), h2answered(t, answer, cuts|1)
		if !slices.Equal(whole, pieces) {
			t.Errorf("whole:\n%s\nin pieces:\n%s", strings.Join(whole, "\n"), strings.Join(pieces, "\n"))
		}
	})
}

// h2answered returns what two jobs come to, of which the second is sent on a used connection. Cuts choose pieces; 0: none.
func h2answered(t *testing.T, answer []byte, cuts uint64) (out []string) {
	play := func(p *h2peer, r *h2asked) {
		rest, pick := answer, rand.New(rand.NewPCG(cuts, 0))
		for cuts != 0 && len(rest) > 0 {
			n := 1 + pick.IntN(min(len(rest), 30))
			p.nc.Write(rest[:n])
			rest = rest[n:]
			time.Sleep(time.Microsecond)
		}
		p.nc.Write(rest)
		time.Sleep(time.Second)
		p.nc.Close()
	}
	h2virtual(t, Options{Timeout: 10 * time.Second, MaxBody: 1 << 14}, h2script{answer: func(p *h2peer, r *h2asked) {
		if r.id == 3 || p.n > 1 {
			play(p, r)
		}
	}}, func(w *h2world) {
		w.call2()
		for id := range 2 {
			tr := w.sink.done[id]
			out = append(out, fmt.Sprintf("%q %q %d %q retried %v", tr.Fail, tr.Cause, tr.Status, w.sink.body(id), tr.Retried))
			end, at := 0, time.Duration(0)
			for _, m := range tr.Marks {
				if m.End < end || m.At < at {
					t.Errorf("marks go back: %v", tr.Marks)
				}
				end, at = m.End, m.At
			}
			switch tr.Fail {
			case "":
				if tr.Status < 200 || tr.Status > 999 || !tr.HeadAt.Defined() || tr.Ended.Or(-1) < tr.HeadAt.Or(0) || end != tr.Bytes {
					t.Errorf("%+v", tr)
				}
			case wire.FailReset, wire.FailMalformed, wire.FailTimeout:
				if tr.Cause == "" {
					t.Error("no cause")
				}
			default:
				t.Errorf("%q %q", tr.Fail, tr.Cause)
			}
		}
	})
	return out
}

// call2 submits two jobs that are under way at once.
func (w *h2world) call2() {
	for id := range 2 {
		w.submit(id)
		w.settle()
	}
	w.sink.await(2)
}

// h2seeds are answers to the streams 1 and 3.
func h2seeds() (seeds [][]byte) {
	var b, block bytes.Buffer
	fr, enc := http2.NewFramer(&b, nil), hpack.NewEncoder(&block)
	fr.AllowIllegalWrites = true
	head := func(id uint32, end bool, fields ...string) {
		block.Reset()
		for i := 0; i < len(fields); i += 2 {
			enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
		}
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: end, EndHeaders: true})
	}
	seed := func(write func()) {
		b.Reset()
		enc = hpack.NewEncoder(&block)
		write()
		seeds = append(seeds, bytes.Clone(b.Bytes()))
	}
	whole := func(id uint32) {
		head(id, false, ":status", "200", "content-length", "5")
		fr.WriteData(id, false, []byte("he"))
		fr.WriteDataPadded(id, true, []byte("llo"), make([]byte, 7))
	}
	seed(func() { whole(1); whole(3) })
	seed(func() {
		head(1, false, ":status", "103")
		head(1, false, ":status", "200", "content-encoding", "gzip")
		fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5}, http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
		fr.WritePing(false, [8]byte{1})
		fr.WriteWindowUpdate(3, 7)
		fr.WriteRSTStream(3, http2.ErrCodeRefusedStream)
		head(1, true, "x", "y")
	})
	seed(func() { whole(1); fr.WriteGoAway(1, http2.ErrCodeNo, []byte("bye")) })
	seed(func() {
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0x88}})
		fr.WriteContinuation(3, true, nil)
		fr.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, BlockFragment: []byte{0x82}, EndHeaders: true})
	})
	seed(func() {
		head(1, false, ":status", "200", "Upper", "x")
		head(3, true, ":status", "0x0")
		b.Write(binary.BigEndian.AppendUint32(nil, 77))
	})
	seed(func() { b.WriteString("HTTP/1.1 400 Bad Request\r\n\r\n") })
	seed(func() {})
	return seeds
}
