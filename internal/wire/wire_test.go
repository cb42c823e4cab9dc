package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// feedHTTP gives raw to a framer in the given pieces and returns the body.
func feedHTTP(h *HTTP1, pieces [][]byte) (body []byte, err error) {
	for _, p := range pieces {
		if _, err := h.Feed(p, func(b []byte) { body = append(body, b...) }); err != nil {
			return body, err
		}
	}
	return body, nil
}

func TestHTTP1(t *testing.T) {
	for _, c := range []struct {
		name, raw, body string
		status          int
		keep, done      bool
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, true, true},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "hello!", 200, true, true},
		{"trailers", "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n", "a", 200, true, true},
		{"capital digits", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n", "0123456789", 200, true, true},
		{"many digits", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n00000000001\r\na\r\n0000001\r\nb\r\n00000001\r\nc\r\n00000000\r\n\r\n", "abc", 200, true, true},
		{"bare line feeds in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n2 \r\nbc\r\n0\n\n", "abc", 200, true, true},
		{"line ends in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", 200, true, true},
		{"trailer like a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n5\r\nhello\r\n\r\n", "a", 200, true, true},
		{"interim", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 200, true, true},
		{"close", "HTTP/1.1 500 Oops\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", "x", 500, false, true},
		{"until close", "HTTP/1.1 200 OK\r\n\r\nabc", "abc", 200, false, false},
		{"http/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "x", 200, false, true},
		{"http/1.0 kept", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", "x", 200, true, true},
		{"bare line feeds", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx", "x", 200, true, true},
		{"no body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "", 204, true, true},
		{"both", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a", 200, true, true},
		{"same length twice", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "x", 200, true, true},
		{"cut", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "hel", 200, false, false},
	} {
		var h HTTP1
		body, err := feedHTTP(&h, [][]byte{[]byte(c.raw)})
		if err != nil || string(body) != c.body || h.Status() != c.status || h.KeepAlive() != c.keep || h.Done() != c.done {
			t.Errorf("%s: body %q status %d keep %v done %v err %v", c.name, body, h.Status(), h.KeepAlive(), h.Done(), err)
		}
		// the same one byte at a time
		h.Reset()
		var bytewise [][]byte
		for i := range c.raw {
			bytewise = append(bytewise, []byte{c.raw[i]})
		}
		if body, err := feedHTTP(&h, bytewise); err != nil || string(body) != c.body || h.Done() != c.done {
			t.Errorf("%s, bytewise: body %q done %v err %v", c.name, body, h.Done(), err)
		}
	}
}

func TestHTTP1Bad(t *testing.T) {
	for _, raw := range []string{
		"SSH-2.0-OpenSSH\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 abc\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naXY0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\rY0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", MaxHead) + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("y", 2*maxChunkLine),
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", maxTrailer/5),
	} {
		var h HTTP1
		if _, err := feedHTTP(&h, [][]byte{[]byte(raw)}); err == nil {
			t.Errorf("no error for %s", Excerpt([]byte(raw)))
		}
	}
}

func TestHTTP1Close(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want error
	}{
		{"", ErrNoResponse},
		{"HT", ErrCut},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na", ErrCut},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", ErrCut},
		{"HTTP/1.1 200 OK\r\n\r\nabc", nil},
		{"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", nil},
	} {
		var h HTTP1
		h.Feed([]byte(c.raw), nil)
		if err := h.Close(); !errors.Is(err, c.want) {
			t.Errorf("%q: %v, want %v", c.raw, err, c.want)
		}
	}
}

func TestHTTP1LeavesNextResponse(t *testing.T) {
	var h HTTP1
	raw := "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 ..."
	if n, err := h.Feed([]byte(raw), nil); err != nil || raw[n:] != "HTTP/1.1 ..." {
		t.Errorf("consumed %d, %v", n, err)
	}
}

// events frames a body given in pieces and writes each event as text.
func events(f Framer, pieces ...[]byte) (out []string, err error) {
	emit := func(e Event) {
		s := fmt.Sprintf("%s|%s|%s", e.Name, e.Data, e.Comment)
		if e.Data == nil {
			s += "(no data)"
		}
		out = append(out, s)
	}
	for _, p := range pieces {
		if err := f.Feed(p, emit); err != nil {
			return out, err
		}
	}
	return out, f.Close(emit)
}

func TestSSE(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"plain", "data: a\n\ndata: b\n\n", []string{"|a|", "|b|"}},
		{"no blank after colon", "data:a\n\ndata:  b\n\n", []string{"|a|", "| b|"}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a|", "|b|"}},
		{"cr", "data: a\r\rdata: b\r\r", []string{"|a|", "|b|"}},
		{"cr in the middle of a line", "data: a\n\ndata: b\rdata: c\n\ndata: d\n\r\ndata: e\n\n", []string{"|a|", "|b\nc|", "|d|", "|e|"}},
		{"what came before an event is not lost", ":\n\ndata: a\n\nevent: x\ndata: b\n\n:c\ndata: d\n\ndata: e\ndata: f\n\n", []string{"|a|", "x|b|", "|d|c", "|e\nf|"}},
		{"byte order mark in the middle", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a|"}},
		{"comments", ": hi\n\n:\n\ndata: a\n\n", []string{"|a|"}},
		{"multi-line", "data: a\ndata: b\n\n", []string{"|a\nb|"}},
		{"name", "event: ping\ndata: {}\n\n", []string{"ping|{}|"}},
		{"name and comment, no data", "event: error\n: broken\n\n", []string{"error||broken(no data)"}},
		{"empty data", "data\n\ndata:\n\n", []string{"||", "||"}},
		{"other fields", "id: 7\nretry: 5\ndata: a\nfoo: bar\n\n", []string{"|a|"}},
		{"no last line end", "data: a\n\ndata: [DONE]", []string{"|a|", "|[DONE]|"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a|"}},
		{"blank lines only", "\n\n\n", nil},
	} {
		got, err := events(&SSE{}, []byte(c.body))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q %v, want %q", c.name, got, err, c.want)
		}
	}
}

func TestEventBound(t *testing.T) {
	for _, n := range []int{100, 101} {
		// at the limit, and one byte above it
		_, err := events(&SSE{Max: 100}, []byte("data:"+strings.Repeat("x", n-5)+"\n"))
		_, err2 := events(&Lines{Max: 100}, bytes.Repeat([]byte("x"), n))
		if (err != nil) != (n > 100) || (err2 != nil) != (n > 100) {
			t.Errorf("%d bytes: %v, %v", n, err, err2)
		}
	}
	for _, n := range []int{100, 101} {
		// the same of a whole event behind another
		got, err := events(&SSE{Max: 100}, []byte("data: a\n\ndata: "+strings.Repeat("x", n-6)+"\n\n"))
		if (err != nil) != (n > 100) || len(got) != 102-n {
			t.Errorf("%d bytes: %v, %v", n, got, err)
		}
	}
	if _, err := events(&SSE{Max: 100}, bytes.Repeat([]byte("data: 0123456789\n"), 20)); err == nil {
		t.Error("many lines of one event pass the bound")
	}
}

func TestLines(t *testing.T) {
	got, err := events(&Lines{}, []byte("{\"a\":1}\r\n\n{\"b\":2}\n{\"c\""), []byte(":3}"))
	if want := []string{`|{"a":1}|`, `|{"b":2}|`, `|{"c":3}|`}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q %v", got, err)
	}
}

// split cuts b at random places.
func split(t *rapid.T, b []byte) (out [][]byte) {
	for len(b) > 0 {
		n := rapid.IntRange(1, min(len(b), 40)).Draw(t, "cut")
		out, b = append(out, b[:n]), b[n:]
	}
	return out
}

// Any split of the bytes gives the same events and the same body.
func TestAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"data: ", "data:", "event: e", ": c", "x", "é", "\n", "\r", "\r\n", "\n\n", "\r\n\r\n", "{\"a\":1}", " ", ":", "[DONE]"}), 0, 60).Draw(t, "parts")
		body := []byte(strings.Join(parts, ""))
		for _, f := range []func() Framer{func() Framer { return &SSE{} }, func() Framer { return &Lines{} }} {
			whole, _ := events(f(), body)
			cut, _ := events(f(), split(t, body)...)
			if fmt.Sprint(whole) != fmt.Sprint(cut) {
				t.Fatalf("%q whole, %q cut, of %q", whole, cut, body)
			}
		}
		var raw bytes.Buffer
		raw.WriteString("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, c := range split(t, body) {
			fmt.Fprintf(&raw, "%x\r\n%s\r\n", len(c), c)
		}
		raw.WriteString("0\r\n\r\n")
		var h HTTP1
		got, err := feedHTTP(&h, split(t, raw.Bytes()))
		if err != nil || !bytes.Equal(got, body) || !h.Done() {
			t.Fatalf("body %q err %v, want %q", got, err, body)
		}
	})
}

// Each split of a stream into two pieces gives the same.
func TestEverySplit(t *testing.T) {
	body := "data: a\n\n:c\n\ndata: b\r\n\r\nfoo\ndata: {\"data: x\":1}\n\nevent: e\ndata: c\n\ndata: d\ndata: e\n\n"
	whole, _ := events(&SSE{}, []byte(body))
	for i := range len(body) + 1 {
		if cut, err := events(&SSE{}, []byte(body[:i]), []byte(body[i:])); err != nil || fmt.Sprint(cut) != fmt.Sprint(whole) {
			t.Errorf("cut at %d: %q %v, want %q", i, cut, err, whole)
		}
	}
	raw := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	want := ""
	for _, n := range []int{1, 17, 2, 0x101, 16} {
		want += strings.Repeat("5\r\n", n)[:n]
		raw += fmt.Sprintf("%x\r\n%s\r\n", n, strings.Repeat("5\r\n", n)[:n])
	}
	raw += "0\r\n\r\n"
	for i := range len(raw) + 1 {
		var h HTTP1
		if got, err := feedHTTP(&h, [][]byte{[]byte(raw[:i]), []byte(raw[i:])}); err != nil || string(got) != want || !h.Done() {
			t.Errorf("cut at %d: %q %v", i, got, err)
		}
	}
}

func TestUntilAcrossPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"\n", "data: ", "[DONE]", "data: [DO", "\ndata: [DONE]", "x"}), 1, 20).Draw(t, "parts"), ""))
		seqs := []string{"\ndata: [DONE]", "\ndata:[DONE]"}
		u := NewUntil(seqs)
		found, end := false, 0
		for _, p := range split(t, body) {
			end += len(p)
			if found = u.Found(p); found {
				break
			}
		}
		want := bytes.Contains(body, []byte(seqs[0])) || bytes.Contains(body, []byte(seqs[1]))
		if found != want {
			t.Fatalf("found %v, want %v, in %q", found, want, body)
		}
	})
}

// A compressed body gives each piece the time of the read that completed it.
func TestCompressedBody(t *testing.T) {
	for _, coding := range []string{"gzip", "deflate", "raw deflate"} {
		var buf bytes.Buffer
		var w interface {
			io.WriteCloser
			Flush() error
		}
		switch coding {
		case "gzip":
			w = gzip.NewWriter(&buf)
		case "deflate":
			w = zlib.NewWriter(&buf)
		default:
			w, _ = flate.NewWriter(&buf, 6)
		}
		var marks []Mark
		for i := range 4 {
			fmt.Fprintf(w, "event %d;", i)
			w.Flush()
			if i == 3 {
				w.Close()
			}
			marks = append(marks, Mark{End: buf.Len(), At: time.Duration(i+1) * 100})
		}
		b := NewBody(false, 200, http.Header{"Content-Encoding": {strings.TrimPrefix(coding, "raw ")}})
		got := map[time.Duration]string{}
		emit := func(p Piece) error { got[p.At] += string(p.Bytes); return nil }
		if err := b.Feed(buf.Bytes(), marks, emit); err != nil {
			t.Fatal(coding, err)
		}
		if err := b.Close(emit); err != nil {
			t.Fatal(coding, err)
		}
		for i := range 4 {
			if want := fmt.Sprintf("event %d;", i); got[time.Duration(i+1)*100] != want {
				t.Errorf("%s: at %d came %q, want %q", coding, i, got[time.Duration(i+1)*100], want)
			}
		}
	}
}

func TestCompressedBodyFaults(t *testing.T) {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	w.Write(bytes.Repeat([]byte("x"), 1000))
	w.Close()
	feed := func(raw []byte, coding string, most int) error {
		b := NewBody(false, 200, http.Header{"Content-Encoding": {coding}})
		b.MaxInflated = most
		none := func(Piece) error { return nil }
		if err := b.Feed(raw, []Mark{{End: len(raw)}}, none); err != nil {
			return err
		}
		return b.Close(none)
	}
	for _, c := range []struct {
		err  error
		part string
	}{
		{feed(buf.Bytes()[:buf.Len()-12], "gzip", 0), ErrCut.Error()},
		{feed([]byte("not gzip at all"), "gzip", 0), "content encoding gzip"},
		{feed(buf.Bytes(), "br", 0), `"br" is not supported`},
		{feed(buf.Bytes(), "gzip", 999), "above 999 bytes"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.part) {
			t.Errorf("error %v, want %q", c.err, c.part)
		}
	}
	if err := feed(buf.Bytes(), "gzip", 1000); err != nil {
		t.Error(err)
	}
}

// Parts of a transcript give the same pieces, with the same times, as the whole.
func TestBodyInParts(t *testing.T) {
	raw := []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n")
	var marks []Mark
	for i := 7; i < len(raw); i += 7 {
		marks = append(marks, Mark{End: i, At: time.Duration(i)})
	}
	marks = append(marks, Mark{End: len(raw), At: time.Duration(len(raw))})
	collect := func(cuts ...int) (out string) {
		b := NewBody(true, 0, nil)
		emit := func(p Piece) error { out += fmt.Sprintf("%s@%d/%d ", p.Bytes, p.At, p.Read); return nil }
		from, off := 0, 0
		for _, k := range append(cuts, len(marks)) {
			end := marks[k-1].End
			if err := b.Feed(raw[off:end], marks[from:k], emit); err != nil {
				t.Fatal(err)
			}
			from, off = k, end
		}
		if b.Header().Get("content-type") != "text/event-stream" || b.Status() != 200 {
			t.Error("head lost")
		}
		return out
	}
	if whole, parts := collect(), collect(2, 5, 11); whole != parts {
		t.Errorf("whole %q, parts %q", whole, parts)
	}
}

// The first error of who takes the pieces ends the feeding and is told; later bytes are taken again.
func TestBodyTellsOfErrors(t *testing.T) {
	for _, framed := range []bool{true, false} {
		raw := []byte("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
		marks := []Mark{{End: len(raw)}}
		if !framed {
			raw, marks = nil, nil
		}
		for range 3 {
			raw = append(raw, 'x')
			marks = append(marks, Mark{End: len(raw)})
		}
		refused, seen := errors.New("refused"), 0
		b := NewBody(framed, 200, nil)
		err := b.Feed(raw, marks, func(Piece) error {
			if seen++; seen == 2 {
				return refused
			}
			return nil
		})
		if err != refused || seen != 2 {
			t.Errorf("framed %v: %v after %d pieces", framed, err, seen)
		}
		if err := b.Feed([]byte("x"), []Mark{{End: len(raw)}}, func(Piece) error { seen++; return nil }); err != nil || seen != 3 {
			t.Errorf("framed %v: %v, %d pieces", framed, err, seen)
		}
	}
}

// Once a stream runs, framing allocates nothing.
func TestFramingAllocatesNothing(t *testing.T) {
	raw := []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
	b := NewBody(true, 0, nil)
	events := 0
	var s SSE
	count := func(Event) { events++ }
	frame := func(p Piece) error { return s.Feed(p.Bytes, count) }
	feed := func(p []byte, reads int) {
		start := b.offset
		marks := make([]Mark, reads)
		for i := range marks {
			marks[i] = Mark{End: start + len(p)*(i+1)/reads}
		}
		if err := b.Feed(p, marks, frame); err != nil {
			t.Fatal(err)
		}
	}
	feed(raw, 1)
	for _, reads := range []int{1, 2, 7} {
		chunks := bytes.Repeat([]byte("d\r\ndata: {...}\n\n\r\n"), 4)
		feed(chunks, reads)
		events = 0
		if n := testing.AllocsPerRun(50, func() { feed(chunks, reads) }); n > 1 || events != 51*4 { // the marks
			t.Errorf("%d reads: %.1f allocations, %d events", reads, n, events)
		}
	}
}

func FuzzHTTP1(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), uint8(3))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 200 OK\n\nabc"), uint8(1))
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		var whole, cut HTTP1
		a, errA := feedHTTP(&whole, [][]byte{raw})
		var pieces [][]byte
		for rest, n := raw, int(step%16)+1; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			pieces = append(pieces, rest[:min(n, len(rest))])
		}
		b, errB := feedHTTP(&cut, pieces)
		if (errA == nil) != (errB == nil) {
			t.Fatalf("errors differ: %v, %v", errA, errB)
		}
		if errA == nil && (!bytes.Equal(a, b) || whole.Done() != cut.Done() || whole.Status() != cut.Status()) {
			t.Fatalf("whole %q, cut %q", a, b)
		}
	})
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\n: c\n\nevent: x\ndata: b\n\ndata: [DONE]"), uint8(2))
	f.Fuzz(func(t *testing.T, body []byte, step uint8) {
		for _, mk := range []func() Framer{func() Framer { return &SSE{Max: 64} }, func() Framer { return &Lines{Max: 64} }} {
			whole, errA := events(mk(), body)
			var pieces [][]byte
			for rest, n := body, int(step%16)+1; len(rest) > 0; rest = rest[min(n, len(rest)):] {
				pieces = append(pieces, rest[:min(n, len(rest))])
			}
			cut, errB := events(mk(), pieces...)
			if (errA == nil) != (errB == nil) {
				t.Fatalf("errors differ: %v, %v", errA, errB)
			}
			if errA == nil && fmt.Sprint(whole) != fmt.Sprint(cut) {
				t.Fatalf("whole %q, cut %q", whole, cut)
			}
		}
	})
}

func BenchmarkSSE(b *testing.B) {
	chunk := []byte("data: {\"id\":\"chatcmpl-7f3a9c1e5b2d4860\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"llama-3-8b\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n")
	var s SSE
	b.ReportAllocs()
	for b.Loop() {
		s.Feed(chunk, func(Event) {})
	}
}
