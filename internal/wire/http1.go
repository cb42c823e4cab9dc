package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// Limits of an HTTP/1 message. A head of 1 MiB is far above any server's; a chunk-size line has 16 digits and rarely an extension.
const (
	MaxHead      = 1 << 20
	maxChunkLine = 4 << 10
	maxTrailer   = 64 << 10
)

// ErrCut says that the connection closed before the message was whole.
var ErrCut = errors.New("connection closed in the middle of the response")

// ErrNoResponse says that the connection closed before any byte of a response.
var ErrNoResponse = errors.New("connection closed without a response")

// HTTP1 frames one HTTP/1 response. It looks only far enough to know where the head and the message end; it copies nothing but
// a head or a chunk line that arrives in several reads. The zero HTTP1 is ready for a response.
type HTTP1 struct {
	state     state1
	keepAlive bool
	coded     bool
	seen      bool
	remaining int64  // of the body or chunk
	line      []byte // the unfinished chunk or trailer line
	head      []byte // the head as far as it came
	current   int    // where its last line begins
	trailer   int
	status    int
	headEnd   int // bytes up to the end of the head, with the interim heads before it
}

type state1 uint8

const (
	inHead state1 = iota
	inLength
	inUntilClose
	inChunkSize
	inChunkData
	inChunkEnd
	inTrailer
	complete
)

// Feed takes the next bytes of the connection and gives the pieces of the body that they hold (slices of p) to body, which may be
// nil. It returns how many bytes belonged to this response; fewer than len(p) only when the response is complete.
func (h *HTTP1) Feed(p []byte, body func([]byte)) (int, error) {
	if len(p) > 0 {
		h.seen = true
	}
	n := 0
	for n < len(p) && h.state != complete {
		rest := p[n:]
		switch h.state {
		case inHead:
			k, done, err := h.takeHead(rest)
			n += k
			h.headEnd += k
			if err != nil {
				return n, err
			}
			if done {
				if err := h.startBody(); err != nil {
					return n, err
				}
			}
		case inUntilClose:
			if body != nil {
				body(rest)
			}
			n += len(rest)
		case inLength, inChunkData:
			k := int(min(int64(len(rest)), h.remaining))
			if body != nil {
				body(rest[:k])
			}
			n += k
			if h.remaining -= int64(k); h.remaining == 0 {
				if h.state == inLength {
					h.state = complete
				} else {
					h.state = inChunkEnd
				}
			}
		case inChunkSize, inChunkEnd, inTrailer:
			if data, k := h.wholeChunk(rest); k > 0 {
				if body != nil {
					body(data)
				}
				n += k
				continue
			}
			k := bytes.IndexByte(rest, '\n') + 1
			if k == 0 {
				h.line = append(h.line, rest...)
				n = len(p)
				if len(h.line) > maxChunkLine {
					return n, errors.New("chunk line without end")
				}
				continue
			}
			line := rest[:k]
			if len(h.line) > 0 {
				line = append(h.line, line...)
				h.line = h.line[:0]
			}
			n += k
			for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
				line = line[:len(line)-1]
			}
			if err := h.chunkLine(line); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// takeHead collects the head line by line, up to its blank line. Bare line feeds are taken for line ends too.
func (h *HTTP1) takeHead(p []byte) (n int, done bool, err error) {
	for n < len(p) {
		k := bytes.IndexByte(p[n:], '\n') + 1
		if k == 0 {
			k = len(p) - n
		}
		h.head = append(h.head, p[n:n+k]...)
		n += k
		if !plausibleStart(h.head) {
			return n, false, notHTTP(h.head)
		}
		if len(h.head) > MaxHead {
			return n, false, fmt.Errorf("response head above %d bytes", MaxHead)
		}
		if h.head[len(h.head)-1] != '\n' {
			return n, false, nil
		}
		if len(bytes.TrimRight(h.head[h.current:], "\r\n")) == 0 {
			return n, true, nil
		}
		h.current = len(h.head)
	}
	return n, false, nil
}

func plausibleStart(b []byte) bool {
	const magic = "HTTP/1."
	return string(b[:min(len(b), len(magic))]) == magic[:min(len(b), len(magic))]
}

func notHTTP(b []byte) error {
	return fmt.Errorf("not an HTTP/1 response: %s", Excerpt(b))
}

// startBody reads from the head how the body is framed.
func (h *HTTP1) startBody() error {
	line, rest, _ := bytes.Cut(h.head, []byte("\n"))
	status, minor, err := statusLine(line)
	if err != nil {
		return err
	}
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		h.head, h.current = h.head[:0], 0
		return nil // an interim response: the real head follows
	}
	h.status = status
	h.keepAlive = minor >= 1
	length, chunked := int64(-1), false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		value = bytes.TrimSpace(value)
		switch {
		case asciiEqual(name, "content-length"):
			v, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil || v < 0 || length >= 0 && length != v {
				return fmt.Errorf("bad Content-Length %q", value)
			}
			length = v
		case asciiEqual(name, "transfer-encoding"):
			if !asciiEqual(value, "chunked") {
				return fmt.Errorf("transfer coding %q is not supported", value)
			}
			chunked = true
		case asciiEqual(name, "content-encoding"):
			h.coded = len(value) > 0 && !asciiEqual(value, "identity")
		case asciiEqual(name, "connection"):
			switch {
			case hasToken(value, "close"):
				h.keepAlive = false
			case hasToken(value, "keep-alive"):
				h.keepAlive = true
			}
		}
	}
	switch {
	case status == http.StatusNoContent || status == http.StatusNotModified || status == http.StatusSwitchingProtocols:
		h.state = complete
	case chunked:
		h.state = inChunkSize
	case length > 0:
		h.state, h.remaining = inLength, length
	case length == 0:
		h.state = complete
	default:
		h.state, h.keepAlive = inUntilClose, false
	}
	return nil
}

func (h *HTTP1) chunkLine(line []byte) error {
	switch h.state {
	case inChunkEnd:
		if len(line) != 0 {
			return fmt.Errorf("chunk longer than its size: %s", Excerpt(line))
		}
		h.state = inChunkSize
	case inChunkSize:
		size, ok := chunkSize(line)
		if !ok {
			return fmt.Errorf("bad chunk size %s", Excerpt(line))
		}
		h.remaining = size
		h.state = inChunkData
		if size == 0 {
			h.state = inTrailer
		}
	case inTrailer:
		if h.trailer += len(line) + 2; h.trailer > maxTrailer {
			return fmt.Errorf("trailer above %d bytes", maxTrailer)
		}
		if len(line) == 0 {
			h.state = complete
		}
	}
	return nil
}

// wholeChunk returns the data of the chunk that p begins with, and the length of both with the lines around it. The length is 0
// where p does not hold all of it in the usual form: then it is to be taken line by line.
func (h *HTTP1) wholeChunk(p []byte) (data []byte, length int) {
	if h.state != inChunkSize || len(h.line) > 0 {
		return nil, 0
	}
	size, k := 0, 0
	for ; k < len(p) && k < usualDigits; k++ {
		digit, ok := hexDigit(p[k])
		if !ok {
			break
		}
		size = size<<4 | int(digit)
	}
	end := k + 2 + size
	if size == 0 || end+2 > len(p) || p[k] != '\r' || p[k+1] != '\n' || p[end] != '\r' || p[end+1] != '\n' {
		return nil, 0
	}
	return p[k+2 : end], end + 2
}

// usualDigits is how many digits of a chunk size cannot overflow an int of 32 bits.
const usualDigits = 7

func hexDigit(c byte) (v byte, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return (c | 0x20) - 'a' + 10, true
	}
	return 0, false
}

// chunkSize reads the size of a chunk from its line, which may hold an extension.
func chunkSize(line []byte) (size int64, ok bool) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	size, err := strconv.ParseInt(string(bytes.TrimSpace(digits)), 16, 64)
	return size, err == nil && size >= 0
}

// Close tells that the connection has ended. The error is nil when the response is whole.
func (h *HTTP1) Close() error {
	switch {
	case h.state == inUntilClose:
		h.state = complete
		return nil
	case h.state == complete:
		return nil
	case !h.seen:
		return ErrNoResponse
	default:
		return ErrCut
	}
}

// HeadDone tells whether the final response's head has been read.
func (h *HTTP1) HeadDone() bool { return h.state != inHead }

// HeadEnd returns how many bytes the head took, with the interim heads before it; once HeadDone.
func (h *HTTP1) HeadEnd() int { return h.headEnd }

// Done tells whether the response is whole.
func (h *HTTP1) Done() bool { return h.state == complete }

// KeepAlive tells whether the connection may carry another exchange once this one is done.
func (h *HTTP1) KeepAlive() bool { return h.keepAlive && h.state == complete }

// Coded tells whether the head names a content coding, so that the body is not to be searched.
func (h *HTTP1) Coded() bool { return h.coded }

// Status returns the status code, or 0 before HeadDone.
func (h *HTTP1) Status() int { return h.status }

// Header parses the header fields of the head that was read.
func (h *HTTP1) Header() http.Header {
	out := http.Header{}
	_, rest, _ := bytes.Cut(h.head, []byte("\n"))
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if name, value, ok := strings.Cut(string(line), ":"); ok && name != "" && !strings.ContainsAny(name, " \t") {
			out.Add(textproto.CanonicalMIMEHeaderKey(name), strings.TrimSpace(value))
		}
	}
	return out
}

// Field returns the value of the first field of a name, or "". It makes no map of the head, as Header does.
func (h *HTTP1) Field(name string) string {
	_, rest, _ := bytes.Cut(h.head, []byte("\n"))
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if key, value, ok := bytes.Cut(line, []byte(":")); ok && len(key) == len(name) && strings.EqualFold(string(key), name) {
			return string(bytes.TrimSpace(value))
		}
	}
	return ""
}

// Reset makes the framer ready for the next response on the same connection.
func (h *HTTP1) Reset() { *h = HTTP1{line: h.line[:0], head: h.head[:0]} }

func statusLine(line []byte) (status, minor int, err error) {
	// HTTP/1.1 200 OK
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' {
		return 0, 0, notHTTP(line)
	}
	status, err = strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 {
		return 0, 0, notHTTP(line)
	}
	return status, int(line[7] - '0'), nil
}

// asciiEqual compares a header name with a lower-case word, ignoring case.
func asciiEqual(b []byte, lower string) bool {
	return len(b) == len(lower) && strings.EqualFold(string(b), lower)
}

// hasToken tells whether a comma-separated list has a lower-case word, ignoring case.
func hasToken(list []byte, lower string) bool {
	for len(list) > 0 {
		var item []byte
		item, list, _ = bytes.Cut(list, []byte(","))
		if asciiEqual(bytes.TrimSpace(item), lower) {
			return true
		}
	}
	return false
}

// Excerpt quotes the first bytes of something that was not what it should be.
func Excerpt(b []byte) string {
	const most = 200
	if len(b) > most {
		return strconv.QuoteToGraphic(strings.ToValidUTF8(string(b[:most]), "?")) + "..."
	}
	return strconv.QuoteToGraphic(strings.ToValidUTF8(string(b), "?"))
}
