package isolate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// A frame is its kind (1 byte), the length of what follows (4 bytes, little end first) and that. Numbers inside are varints, times are
// nanoseconds, texts and bytes have their length before them; options and report, of which there is one each, are JSON.
type kind byte

const (
	kindOptions kind = iota + 1 // to the engine: the first frame
	kindSubmit
	kindOpen
	kindDrain
	kindCut
	kindClose
	kindReady // from the engine: its first frame; not empty: why it does not start
	kindPart
	kindDone
	kindReport // its last one
)

const (
	headSize = 5
	// mostFrame bounds a frame: a request's body is the largest, and an answer comes in parts.
	mostFrame = 1 << 30
)

// begin appends the head of a frame, whose length finish sets.
func begin(b []byte, k kind) []byte { return append(b, byte(k), 0, 0, 0, 0) }

// finish sets the length of the frame that begins at from.
func finish(b []byte, from int) []byte {
	binary.LittleEndian.PutUint32(b[from+1:], uint32(len(b)-from-headSize))
	return b
}

// whole is a frame with what it carries.
func whole(k kind, payload []byte) []byte { return finish(append(begin(nil, k), payload...), 0) }

// frames reads frames. What it returns is valid until the next one.
type frames struct {
	r    *bufio.Reader
	held int    // bytes of r that belong to the frame returned last
	own  []byte // of a frame that is larger than the reader's buffer
}

const readBuffer = 256 << 10

func newFrames(r io.Reader) *frames { return &frames{r: bufio.NewReaderSize(r, readBuffer)} }

// next returns the next frame; io.EOF between two of them.
func (f *frames) next() (kind, []byte, error) {
	f.r.Discard(f.held)
	f.held, f.own = 0, nil
	head, err := f.r.Peek(headSize)
	if err != nil {
		if len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	k, n := kind(head[0]), int(binary.LittleEndian.Uint32(head[1:]))
	if n > mostFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes", n)
	}
	f.r.Discard(headSize)
	if n <= f.r.Size() {
		b, err := f.r.Peek(n)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		f.held = len(b)
		return k, b, err
	}
	f.own = make([]byte, n)
	if _, err = io.ReadFull(f.r, f.own); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return k, f.own, err
}

func putText(b []byte, s string) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func putBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

func putTime(b []byte, t opt.Of[time.Duration]) []byte {
	v, ok := t.Get()
	if b = putBool(b, ok); ok {
		b = binary.AppendVarint(b, int64(v))
	}
	return b
}

// putMarks writes how far each mark is from the one before.
func putMarks(b []byte, marks []wire.Mark) []byte {
	b = binary.AppendUvarint(b, uint64(len(marks)))
	var last wire.Mark
	for _, m := range marks {
		b = binary.AppendVarint(b, int64(m.End-last.End))
		b = binary.AppendVarint(b, int64(m.At-last.At))
		last = m
	}
	return b
}

func putHeader(b []byte, h http.Header) []byte {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	b = binary.AppendUvarint(b, uint64(n))
	for name, values := range h {
		for _, v := range values {
			b = putText(putText(b, name), v)
		}
	}
	return b
}

// parser takes a frame apart. After a fault everything is zero, and err says that there was one.
type parser struct {
	b   []byte
	err error
}

var errFrame = errors.New("a frame that makes no sense")

func (p *parser) fail() {
	p.b, p.err = nil, errFrame
}

func (p *parser) unsigned() uint64 {
	v, n := binary.Uvarint(p.b)
	if n <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[n:]
	return v
}

func (p *parser) signed() int64 {
	v, n := binary.Varint(p.b)
	if n <= 0 {
		p.fail()
		return 0
	}
	p.b = p.b[n:]
	return v
}

// count is a number of things of which each takes at least so many bytes.
func (p *parser) count(least int) int {
	n := p.unsigned()
	if n > uint64(len(p.b)/least) {
		p.fail()
		return 0
	}
	return int(n)
}

func (p *parser) truth() bool {
	if len(p.b) == 0 {
		p.fail()
		return false
	}
	v := p.b[0] != 0
	p.b = p.b[1:]
	return v
}

// bytes are part of the frame: they are valid as long as that is.
func (p *parser) bytes() []byte {
	n := p.count(1)
	v := p.b[:n]
	p.b = p.b[n:]
	return v
}

func (p *parser) text() string { return string(p.bytes()) }

func (p *parser) moment() opt.Of[time.Duration] {
	if !p.truth() {
		return opt.Of[time.Duration]{}
	}
	return opt.Some(time.Duration(p.signed()))
}

func (p *parser) marks(to []wire.Mark) []wire.Mark {
	var last wire.Mark
	for range p.count(2) {
		last.End += int(p.signed())
		last.At += time.Duration(p.signed())
		to = append(to, last)
	}
	return to
}

func (p *parser) header() http.Header {
	n := p.count(2)
	if n == 0 {
		return nil
	}
	h := http.Header{}
	for range n {
		name := p.text()
		h[name] = append(h[name], p.text())
	}
	return h
}

// putSubmit writes a job with a number of its own.
func putSubmit(b []byte, number uint64, j *client.Job) []byte {
	from := len(b)
	b = binary.AppendUvarint(begin(b, kindSubmit), number)
	b = binary.AppendVarint(b, int64(j.ID))
	b = binary.AppendUvarint(b, uint64(j.Target))
	b = putTime(b, j.Due)
	b = putText(putText(b, j.Call.Method), j.Call.Path)
	b = binary.AppendUvarint(b, uint64(len(j.Call.Header)))
	for _, f := range j.Call.Header {
		b = putText(putText(b, f.Name), f.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(j.Call.Until)))
	for _, u := range j.Call.Until {
		b = putText(b, u)
	}
	b = binary.AppendVarint(b, int64(j.CancelAfter))
	return finish(putBytes(b, j.Call.Body), from)
}

// submit reads a job; its number is its tag.
func (p *parser) submit() *client.Job {
	j := &client.Job{Tag: p.unsigned(), ID: int(p.signed()), Target: int(p.unsigned()), Due: p.moment()}
	j.Call.Method, j.Call.Path = p.text(), p.text()
	for range p.count(2) {
		j.Call.Header = append(j.Call.Header, wire.Field{Name: p.text(), Value: p.text()})
	}
	for range p.count(1) {
		j.Call.Until = append(j.Call.Until, p.text())
	}
	j.CancelAfter = time.Duration(p.signed())
	j.Call.Body = append([]byte(nil), p.bytes()...)
	return j
}

// putPart writes a piece of the answer to a job.
func putPart(b []byte, number uint64, part *wire.Part) []byte {
	from := len(b)
	b = binary.AppendUvarint(begin(b, kindPart), number)
	b = binary.AppendUvarint(putBool(b, part.Framed), uint64(part.Status))
	b = putHeader(b, part.Header)
	return finish(putMarks(putBytes(b, part.Raw), part.Marks), from)
}

func (p *parser) part() wire.Part {
	part := wire.Part{Framed: p.truth(), Status: int(p.unsigned()), Header: p.header()}
	part.Raw, part.Marks, part.Release = p.piece()
	return part
}

// putDone writes the end of a job.
func putDone(b []byte, number uint64, t *wire.Transcript) []byte {
	from := len(b)
	b = binary.AppendUvarint(begin(b, kindDone), number)
	b = binary.AppendUvarint(b, uint64(t.Target))
	for _, m := range []opt.Of[time.Duration]{t.Slot, t.Sent, t.Handed, t.HeadAt, t.Ended, t.Connect, t.TLS} {
		b = putTime(b, m)
	}
	for _, v := range []bool{t.Reused, t.Retried, t.Framed} {
		b = putBool(b, v)
	}
	b = binary.AppendUvarint(b, uint64(t.Status))
	b = putHeader(b, t.Header)
	b = binary.AppendUvarint(b, uint64(t.Bytes))
	b = putText(putText(putText(b, string(t.Stamp)), string(t.Fail)), t.Cause)
	return finish(putMarks(putBytes(b, t.Raw), t.Marks), from)
}

func (p *parser) done() *wire.Transcript {
	t := &wire.Transcript{Target: int(p.unsigned())}
	for _, m := range []*opt.Of[time.Duration]{&t.Slot, &t.Sent, &t.Handed, &t.HeadAt, &t.Ended, &t.Connect, &t.TLS} {
		*m = p.moment()
	}
	for _, v := range []*bool{&t.Reused, &t.Retried, &t.Framed} {
		*v = p.truth()
	}
	t.Status, t.Header, t.Bytes = int(p.unsigned()), p.header(), int(p.unsigned())
	t.Stamp, t.Fail, t.Cause = wire.Stamp(p.text()), wire.Fail(p.text()), p.text()
	t.Raw, t.Marks, t.Release = p.piece()
	return t
}

// piece holds bytes and marks on their way to the sink, which gives it back.
type piece struct {
	raw   []byte
	marks []wire.Mark
	free  func()
}

// pieces are those that came back. Large ones are left to the collector of the runtime.
var pieces sync.Pool

const largestKept = 64 << 10

// piece reads bytes and marks into memory of their own.
func (p *parser) piece() ([]byte, []wire.Mark, func()) {
	c, _ := pieces.Get().(*piece)
	if c == nil {
		c = &piece{}
		c.free = func() {
			if cap(c.raw) <= largestKept {
				pieces.Put(c)
			}
		}
	}
	c.raw = append(c.raw[:0], p.bytes()...)
	c.marks = p.marks(c.marks[:0])
	return c.raw, c.marks, c.free
}
