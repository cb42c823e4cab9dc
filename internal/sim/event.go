package sim

import (
	"bytes"
	"compress/gzip"
	"strconv"
	"time"
)

// event is what one write of an answer carries, before the framing of HTTP.
type event struct {
	due    time.Duration // offset from the server's start
	tokens int           // output tokens in it
	body   []byte
	cuts   []int  // ends of the HTTP chunks inside body
	head   []byte // header fields beside those of the framing, of a whole body
	then   then
}

// then is what follows an event.
type then uint8

const (
	goOn  then = iota
	clean      // the body's end; the connection may be used again
	cut        // the connection closes
	reset      // the same by a TCP reset
	hang       // nothing, for ever
)

// clear empties the event but keeps its memory.
func (e *event) clear() { *e = event{body: e.body[:0], cuts: e.cuts[:0], head: e.head[:0]} }

// cut ends a chunk here.
func (e *event) cut() { e.cuts = append(e.cuts, len(e.body)) }

// source gives the events of an answer one after the other.
type source interface {
	// next fills an empty event. It returns false when the next one is not known yet; the reply is kicked when it is.
	next(*event) bool
}

// framing turns events into the bytes on the connection.
type framing struct {
	head    []byte // goes in front of the first write, without its blank line; nil when it has gone out
	chunked bool
	length  bool // the first event is the whole body: the head is completed with its length
	gz      *gzip.Writer
	packed  bytes.Buffer
}

// compress switches gzip on.
func (f *framing) compress() { f.gz = gzip.NewWriter(&f.packed) }

// append appends an event's bytes.
func (f *framing) append(out []byte, e *event) []byte {
	end := e.then == clean
	if f.gz != nil && f.length {
		f.pack(e.body, end)
		e.body, e.cuts = append(e.body[:0], f.packed.Bytes()...), e.cuts[:0]
		e.cut()
	}
	if f.head != nil {
		out = append(out, f.head...)
		out = append(out, e.head...)
		if f.length {
			out = append(out, "content-length: "...)
			out = strconv.AppendInt(out, int64(len(e.body)), 10)
			out = append(out, "\r\n"...)
		}
		out = append(out, "\r\n"...)
		f.head = nil
	}
	from := 0
	for _, to := range e.cuts {
		part := e.body[from:to]
		if f.gz != nil && !f.length {
			f.pack(part, false)
			part = f.packed.Bytes()
		}
		out = f.chunk(out, part)
		from = to
	}
	if end && f.gz != nil && !f.length {
		f.pack(nil, true)
		out = f.chunk(out, f.packed.Bytes())
	}
	if end && f.chunked {
		out = append(out, "0\r\n\r\n"...)
	}
	return out
}

// pack compresses into packed, up to a point from which everything so far can be read.
func (f *framing) pack(part []byte, end bool) {
	f.packed.Reset()
	f.gz.Write(part) // a bytes.Buffer never fails
	if end {
		f.gz.Close()
	} else {
		f.gz.Flush()
	}
}

func (f *framing) chunk(out, part []byte) []byte {
	if len(part) == 0 {
		return out // an empty chunk would be the end
	}
	if !f.chunked {
		return append(out, part...)
	}
	out = strconv.AppendInt(out, int64(len(part)), 16)
	out = append(out, "\r\n"...)
	out = append(out, part...)
	return append(out, "\r\n"...)
}
