// Package wire holds what goes over a connection and what came back, and the pure framers that cut it into pieces.
//
// It knows no LLM, no socket and no clock: bytes and the offsets at which they arrived.
package wire

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/opt"
)

// Call is one request as it is to be sent.
type Call struct {
	Method string
	Path   string  // below the target's base path, with its query
	Header []Field // in this order; the client adds Host, Content-Length and Connection
	Body   []byte

	// Until are byte sequences that end the exchange when one appears in the body, such as "\ndata: [DONE]". After it the
	// body gets 500 ms to end. None of them may occur in the middle of an answer. A compressed body is not searched.
	Until []string
}

// Field is one header field.
type Field struct{ Name, Value string }

// Override returns header fields in which those of more stand in place of those of the same name.
func Override(header, more []Field) []Field {
	var out []Field
	for _, f := range header {
		if !HasField(more, f.Name) {
			out = append(out, f)
		}
	}
	return append(out, more...)
}

// HasField tells whether a field is among others, whatever the case of its name.
func HasField(header []Field, name string) bool {
	return slices.ContainsFunc(header, func(f Field) bool { return strings.EqualFold(f.Name, name) })
}

// Mark says that the raw bytes before offset End had arrived at At.
type Mark struct {
	End int           // raw offset inside the exchange
	At  time.Duration // since the run's epoch
}

// Stamp is the grade of a transcript's times, best first.
type Stamp string

// The grades of a stamp.
const (
	StampWire   Stamp = "wire"   // one stamp a TCP segment, from the packet ring
	StampSocket Stamp = "socket" // the kernel's stamp of the newest segment of a read
	StampUser   Stamp = "user"   // the return of the read
)

// Fail is why an exchange did not come to its own end. The empty Fail is a complete exchange.
type Fail string

// The ways in which an exchange can fail below the protocol of the engine.
const (
	FailDNS        Fail = "dns"        // the name has no address
	FailRefused    Fail = "refused"    // no address accepted the connection
	FailTLS        Fail = "tls"        // the handshake failed
	FailReset      Fail = "reset"      // the connection broke, or closed before the message was whole
	FailTimeout    Fail = "timeout"    // the connect or the request timeout
	FailMalformed  Fail = "malformed"  // not HTTP, or over a limit
	FailIncomplete Fail = "incomplete" // cut by the end of the run
	FailCancelled  Fail = "cancelled"  // cut because the workload said so
	FailDropped    Fail = "dropped"    // never sent
)

// Transcript is what came back for a call: raw bytes, when they arrived, and how it ended.
//
// Moments are offsets from the run's epoch; undefined when they did not happen.
type Transcript struct {
	Target int // index of the target that was used

	Slot   opt.Of[time.Duration] // a place under the concurrency cap was free (undefined without a cap)
	Sent   opt.Of[time.Duration] // last byte of the request handed to the kernel: its transmit stamp where there is one, else by the client's clock
	Handed opt.Of[time.Duration] // the same by the client's clock, when Sent is a transmit stamp
	HeadAt opt.Of[time.Duration] // the response's head was complete
	Ended  opt.Of[time.Duration] // end of the body, or the moment of the failure

	Connect opt.Of[time.Duration] // how long the TCP connect took, when this exchange opened the connection
	TLS     opt.Of[time.Duration] // how long the TLS handshake took, likewise
	Reused  bool                  // an earlier exchange had used the connection
	Retried bool                  // the reused connection was found closed, and the call went out again on a fresh one

	// Framed tells that Raw is HTTP/1.1 with its head and transfer coding; else Raw is the body alone, and Status and Header are set.
	Framed bool
	Status int
	Header http.Header
	Raw    []byte // the part of the stream not yet given to a Part; the whole of it when there were none
	Marks  []Mark // marks of Raw; their offsets count from the first byte of the exchange
	Bytes  int    // raw bytes received in all

	Release func() // gives Raw and Marks back for another use; nil or uncalled: they are the receiver's

	Stamp Stamp
	Fail  Fail
	Cause string // the words of the failure
}

// Part is a piece of a long stream, handed over before its end so that memory stays flat.
type Part struct {
	Raw    []byte
	Marks  []Mark // offsets count from the first byte of the exchange
	Framed bool   // as in Transcript, with Status and Header
	Status int
	Header http.Header

	Release func() // as in Transcript
}
