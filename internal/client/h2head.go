package client

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/prony-bench/prony/internal/wire"
)

// h2HeadBlock writes the head of a call as an HPACK block (RFC 7541). The block stands for itself: it sets the size of the dynamic table
// to 0, and uses none. So a call has the same bytes on every connection and at every place, they can be made long before it is due,
// and whatever table size the server asks for is obeyed.
func h2HeadBlock(t Target, call *wire.Call, agent string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	field := func(name, value string) { e.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	field(":method", call.Method)
	field(":scheme", t.URL.Scheme)
	field(":authority", t.URL.Host)
	field(":path", t.path(call.Path))
	if agent != "" && !wire.HasField(call.Header, "User-Agent") {
		field("user-agent", agent)
	}
	for _, f := range call.Header {
		if name := strings.ToLower(f.Name); !ofConnection(name, f.Value) {
			field(name, f.Value)
		}
	}
	if len(call.Body) > 0 || call.Method == "POST" {
		field("content-length", strconv.Itoa(len(call.Body)))
	}
	return b.Bytes()
}

// ofConnection tells whether a field speaks of an HTTP/1.1 connection, and so has no place in HTTP/2 (RFC 9113, 8.2.2), or is one that
// the client writes itself.
func ofConnection(name, value string) bool {
	switch name {
	case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host", "content-length":
		return true
	case "te":
		return !strings.EqualFold(value, "trailers")
	}
	return false
}

// h2Status reads the status of a response's head; ok is false when it has none, or one that is no number of three digits.
func h2Status(fields []hpack.HeaderField) (status int, ok bool) {
	for _, f := range fields {
		if f.Name == ":status" && len(f.Value) == 3 {
			n, err := strconv.Atoi(f.Value)
			return n, err == nil && n >= 100
		}
	}
	return 0, false
}

func h2Header(fields []hpack.HeaderField) http.Header {
	h := http.Header{}
	for _, f := range fields {
		if !f.IsPseudo() {
			h.Add(f.Name, f.Value)
		}
	}
	return h
}

// h2DecodeHead bounds what is decoded of a head, in the sizes of RFC 9113 (6.5.2). A head above wire.MaxHead ends its stream alone, as
// decoding goes on; one above this bound ends the connection.
const h2DecodeHead = 2 * wire.MaxHead

var h2LongHead = fmt.Sprintf("response head above %d bytes", wire.MaxHead)

// h2TooLong tells whether a head is above its bound.
func h2TooLong(f *http2.MetaHeadersFrame) bool {
	size := 0
	for _, field := range f.Fields {
		size += int(field.Size())
	}
	return f.Truncated || size > wire.MaxHead
}

// h2HeadFault says why the reader of frames gave a head up, which it does not say itself.
func h2HeadFault(f *http2.MetaHeadersFrame, err http2.ConnectionError) string {
	switch {
	case h2TooLong(f):
		return h2LongHead
	case http2.ErrCode(err) == http2.ErrCodeCompression:
		return fmt.Sprintf("a head that cannot be decoded, or has a string above %d bytes", h2DecodeHead)
	}
	return "an invalid field in a head"
}
