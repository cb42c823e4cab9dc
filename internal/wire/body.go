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
	"time"
)

// Piece is a run of body bytes that arrived together.
type Piece struct {
	Bytes []byte        // valid only while it is being handled
	At    time.Duration // when its last byte arrived
	Read  int           // number of the read that brought it, from 0; pieces of one read came together
}

// Body turns a transcript, part by part, into its status, header and the pieces of its body with their times. Chunked coding is
// taken off as it comes. A compressed body is held and decoded at its end, each piece dated by the read that completed it.
type Body struct {
	MaxInflated int // bound of a decompressed body; 0 = 1 GiB

	http    HTTP1
	framed  bool
	status  int
	header  http.Header
	offset  int // raw bytes handled
	reads   int
	coding  string
	packed  []byte // compressed bytes
	packMap []Mark // marks on packed
	decided bool

	// while feeding
	emit   func(Piece) error
	at     time.Duration // of the mark that is handled
	read   int           // its number
	give   func([]byte)  // b.got, made once
	failed error
}

const maxInflated = 1 << 30

// NewBody returns a reader of the body of a transcript; framed as in Transcript.Framed. For an unframed one give status and header.
func NewBody(framed bool, status int, header http.Header) *Body {
	return &Body{framed: framed, status: status, header: header}
}

// Feed takes the next raw bytes with their marks and gives the body's pieces to emit.
func (b *Body) Feed(raw []byte, marks []Mark, emit func(Piece) error) error {
	if b.give == nil {
		b.give = b.got
	}
	b.emit, b.failed = emit, nil
	start := b.offset
	for _, m := range marks {
		chunk := raw[b.offset-start : m.End-start]
		b.at, b.read = m.At, b.reads
		b.reads++
		if b.framed {
			if _, err := b.http.Feed(chunk, b.give); err != nil {
				return err
			}
		} else if len(chunk) > 0 {
			b.got(chunk)
		}
		b.offset = m.End
		if b.failed != nil {
			return b.failed
		}
	}
	return nil
}

// got takes bytes of the body that the current mark brought.
func (b *Body) got(p []byte) {
	if b.failed != nil {
		return
	}
	if !b.decided {
		b.decided = true
		b.coding = strings.ToLower(strings.TrimSpace(b.Field("Content-Encoding")))
	}
	switch b.coding {
	case "", "identity":
		b.failed = b.emit(Piece{p, b.at, b.read})
	case "gzip", "x-gzip", "deflate":
		b.packed = append(b.packed, p...)
		b.packMap = append(b.packMap, Mark{End: len(b.packed), At: b.at})
	default:
		b.failed = fmt.Errorf("content encoding %q is not supported", b.coding)
	}
}

// Close gives out what a compressed body still holds.
func (b *Body) Close(emit func(Piece) error) error {
	if len(b.packed) == 0 {
		return nil
	}
	defer func() { b.packed, b.packMap = nil, nil }()
	in := &packedReader{b: b.packed}
	var r io.Reader
	var err error
	if b.coding == "deflate" {
		// by the standard a zlib stream, by habit often a bare one
		if len(b.packed) > 1 && b.packed[0]&0x0f == 8 && (int(b.packed[0])<<8|int(b.packed[1]))%31 == 0 {
			r, err = zlib.NewReader(in)
		} else {
			r = flate.NewReader(in)
		}
	} else {
		r, err = gzip.NewReader(in)
	}
	if err != nil {
		return fmt.Errorf("content encoding %s: %w", b.coding, err)
	}
	most := b.MaxInflated
	if most == 0 {
		most = maxInflated
	}
	buf := make([]byte, 32<<10)
	for mark, total := 0, 0; ; {
		n, err := r.Read(buf)
		for mark < len(b.packMap)-1 && b.packMap[mark].End < in.off {
			mark++
		}
		if total += n; total > most {
			return fmt.Errorf("body above %d bytes once decompressed", most)
		}
		if n > 0 {
			if err := emit(Piece{buf[:n], b.packMap[mark].At, mark}); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return ErrCut // what could be decoded has been given out
		case err != nil:
			return fmt.Errorf("content encoding %s: %w", b.coding, err)
		}
	}
}

// packedReader hands out single bytes, so that a decompressor takes no more than it needs for what it returns.
type packedReader struct {
	b   []byte
	off int
}

var _ io.ByteReader = (*packedReader)(nil)

func (p *packedReader) ReadByte() (byte, error) {
	if p.off >= len(p.b) {
		return 0, io.EOF
	}
	p.off++
	return p.b[p.off-1], nil
}

func (p *packedReader) Read(d []byte) (int, error) {
	if p.off >= len(p.b) {
		return 0, io.EOF
	}
	n := copy(d, p.b[p.off:])
	p.off += n
	return n, nil
}

// Status returns the response's status, or 0 when no head came.
func (b *Body) Status() int {
	if b.framed {
		return b.http.Status()
	}
	return b.status
}

// Header returns the response's header; never nil.
func (b *Body) Header() http.Header {
	switch {
	case b.framed && b.http.HeadDone():
		return b.http.Header()
	case b.header == nil:
		return http.Header{}
	}
	return b.header
}

// Field returns the first header field of a name in its canonical form, or "".
func (b *Body) Field(name string) string {
	if b.framed {
		return b.http.Field(name)
	}
	return b.header.Get(name)
}

// Sequences are what is searched for in a stream of body pieces.
type Sequences struct {
	seqs [][]byte
	core []byte // what all of them end with: one search tells that none is there
	most int    // length of the longest
}

// NewSequences returns those of the given sequences that are not empty.
func NewSequences(seqs []string) *Sequences {
	u := &Sequences{}
	for _, s := range seqs {
		if s == "" {
			continue
		}
		u.seqs = append(u.seqs, []byte(s))
		u.most = max(u.most, len(s))
		if len(u.seqs) == 1 {
			u.core = u.seqs[0]
		}
		u.core = commonSuffix(u.core, u.seqs[len(u.seqs)-1])
	}
	return u
}

// Until returns a search for the first of the sequences.
func (s *Sequences) Until() *Until {
	u := &Until{Sequences: s}
	if u.tail = u.store[:0]; 2*s.most > len(u.store) {
		u.tail = make([]byte, 0, 2*s.most)
	}
	return u
}

// Until searches a stream of body pieces for the first of several sequences, also across pieces. It must not be copied.
type Until struct {
	*Sequences
	tail  []byte // the last bytes before the next piece
	store [32]byte
}

// NewUntil returns a search for the given sequences.
func NewUntil(seqs []string) *Until { return NewSequences(seqs).Until() }

func commonSuffix(a, b []byte) []byte {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// Found tells whether a sequence has ended inside the piece.
func (u *Until) Found(piece []byte) bool {
	if u.most == 0 {
		return false
	}
	// across the border first, then inside the piece: nothing is copied but the border
	if n := len(u.tail); n > 0 {
		border := append(u.tail, piece[:min(len(piece), u.most-1)]...)
		if u.in(border) {
			return true
		}
		u.tail = border[:n]
	}
	if u.in(piece) {
		return true
	}
	keep := u.most - 1
	if len(piece) >= keep {
		u.tail = append(u.tail[:0], piece[len(piece)-keep:]...)
	} else {
		u.tail = append(u.tail, piece...)
		if d := len(u.tail) - keep; d > 0 {
			u.tail = append(u.tail[:0], u.tail[d:]...)
		}
	}
	return false
}

func (u *Sequences) in(b []byte) bool {
	if len(b) < len(u.core) || len(u.core) > 0 && !bytes.Contains(b, u.core) {
		return false
	}
	for _, s := range u.seqs {
		if bytes.Contains(b, s) {
			return true
		}
	}
	return false
}
