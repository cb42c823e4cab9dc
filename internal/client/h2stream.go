package client

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// h2stream is one exchange on a connection.
type h2stream struct {
	job *h2job
	id  uint32

	// guarded by the connection's mu
	body   []byte // what has not been put out yet
	window int64  // what the server takes of it
	end    int    // where what was put out ends, in all that was
	sent   bool   // the whole request has been put out

	// the reader's, from the begin on
	since    time.Duration // when it began
	deadline time.Time     // of the answer; zero: none
	interim  bool          // an interim head came
	headed   bool          // the head came
	length   int           // of the body, as the head has it; -1: unknown
	got      int           // of the body
	unacked  int           // bytes of DATA that the server's window lacks
	over     bool          // the server has ended its side
	gone     bool          // the server knows the stream no more, or never did
}

// begun tells whether anything of an answer has come.
func (s *h2stream) begun() bool { return s.interim || s.headed }

// repeatable tells whether the request may be sent once more, should the connection turn out to have been given up before: nothing of
// an answer has come, and it is the first time.
func (s *h2stream) repeatable() bool {
	ex := s.job.ex
	return ex.mayBeStale && !s.begun() && !ex.tr.Retried && !ex.interrupted()
}

// room returns how many streams may be opened.
func (c *h2conn) room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.places()
}

// places is room for who holds c.mu.
func (c *h2conn) places() int {
	switch {
	case c.retired || c.next > h2LastStream:
		return 0
	case c.p.o.FreshEach:
		return max(0, 1-c.uses)
	}
	return max(0, int(min(c.limit, manyPlaces))-len(c.streams))
}

// begin takes a job, if there is a place for it, whose alone the stream is from here to its end. What is put out goes out with push.
func (c *h2conn) begin(j *h2job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.out.b) > h2MostQueued {
		c.retireLocked() // the server has stopped reading; what is under way goes on
	}
	if c.places() == 0 {
		return false
	}
	ex := j.ex
	s := &h2stream{job: j, id: c.next, body: ex.job.Call.Body, window: c.initial, since: c.p.clock.now(), deadline: deadlineOf(ex), length: -1}
	ex.tr.Reused = c.uses > 0
	ex.mayBeStale = c.uses > 0 || c.waited
	if !ex.mayBeStale {
		ex.tr.Connect, ex.tr.TLS = c.connect, c.tls
	}
	ex.piped.over(c.in, true)
	ex.tr.Stamp = wire.StampUser
	if c.in.stamped() {
		ex.tr.Stamp = wire.StampSocket
	}
	c.uses++
	if c.next += 2; c.p.o.FreshEach {
		c.retired = true
	}
	if len(c.streams) == 0 {
		c.quiet.Store(true)
	}
	c.streams[s.id] = s
	c.putHead(s, ex.raw)
	if !s.deadline.IsZero() {
		c.wakeBy(s.deadline)
	}
	j.c, j.cancel = c, nil
	return true
}

func headersFrame(id uint32, block []byte, endStream, endHeaders bool) http2.HeadersFrameParam {
	return http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndStream: endStream, EndHeaders: endHeaders}
}

// headers takes a head, an interim one, or trailers.
func (c *h2conn) headers(f *http2.MetaHeadersFrame, at time.Duration) error {
	c.mu.Lock()
	s, err := c.stream(f.StreamID)
	if s != nil {
		c.proved = max(c.proved, s.end)
	}
	c.mu.Unlock()
	if s == nil {
		return err
	}
	s.over = f.StreamEnded()
	status, ok := h2Status(f.PseudoFields())
	switch {
	case h2TooLong(f):
		c.reject(s, h2LongHead)
	case s.headed && (len(f.PseudoFields()) > 0 || !s.over):
		c.reject(s, "a second head")
	case s.headed:
		c.complete(s, at)
	case !ok:
		c.reject(s, "a head without a status")
	case status < 200 && (s.over || status == http.StatusSwitchingProtocols):
		c.reject(s, fmt.Sprintf("the status %d, which ends nothing here", status))
	case status < 200:
		s.interim = true // the real head follows
	default:
		c.head(s, status, f, at)
	}
	return nil
}

// head takes the head of an answer.
func (c *h2conn) head(s *h2stream, status int, f *http2.MetaHeadersFrame, at time.Duration) {
	ex := s.job.ex
	s.headed = true
	ex.tr.Status, ex.tr.Header, ex.tr.HeadAt = status, h2Header(f.RegularFields()), opt.Some(at)
	ex.piped.headed()
	coding := ex.tr.Header.Get("Content-Encoding")
	ex.plain = coding == "" || strings.EqualFold(coding, "identity")
	bodiless := status == http.StatusNoContent || status == http.StatusNotModified || ex.job.Call.Method == http.MethodHead
	if v := ex.tr.Header.Get("Content-Length"); v != "" && !bodiless {
		n, err := strconv.ParseUint(v, 10, 62)
		if err != nil {
			c.reject(s, fmt.Sprintf("bad Content-Length %s", wire.Excerpt([]byte(v))))
			return
		}
		s.length = int(n)
	}
	if s.over {
		c.complete(s, at)
	}
}

// data takes a piece of a body.
func (c *h2conn) data(f *http2.DataFrame, at time.Duration) error {
	c.mu.Lock()
	s, err := c.stream(f.StreamID)
	c.replenish(s, int(f.Length), f.StreamEnded())
	c.mu.Unlock()
	if s == nil {
		return err
	}
	s.over = f.StreamEnded()
	if !s.headed {
		c.reject(s, "a body before its head")
		return nil
	}
	ex, b := s.job.ex, f.Data()
	if len(b) > 0 {
		s.got += len(b)
		if err := ex.take(b, at); err != nil {
			c.end(s, failure{wire.FailMalformed, err.Error()}, http2.ErrCodeCancel)
			return nil
		}
		found := ex.untilFound
		if ex.search(b, at); ex.untilFound && !found {
			c.mu.Lock()
			s.deadline = time.Now().Add(afterUntil)
			c.wakeBy(s.deadline)
			c.mu.Unlock()
		}
	}
	if s.over {
		c.complete(s, at)
	}
	return nil
}

// replenish gives the server back what it has used of its windows, once that is half of them. s is nil for a stream that has ended.
// c.mu is held.
func (c *h2conn) replenish(s *h2stream, n int, ended bool) {
	if c.unacked += n; c.unacked >= h2ConnWindow/2 {
		c.fr.WriteWindowUpdate(0, uint32(c.unacked))
		c.unacked = 0
		c.ring()
	}
	if s == nil || ended {
		return
	}
	if s.unacked += n; s.unacked >= h2StreamWindow/2 {
		c.fr.WriteWindowUpdate(s.id, uint32(s.unacked))
		s.unacked = 0
		c.ring()
	}
}

// complete ends a stream whose answer is whole.
func (c *h2conn) complete(s *h2stream, at time.Duration) {
	if s.length >= 0 && s.got != s.length {
		c.reject(s, fmt.Sprintf("a body of %d bytes where Content-Length has %d", s.got, s.length))
		return
	}
	tr := s.job.ex.tr
	s.job.ex.whole = true
	if !tr.Ended.Defined() {
		tr.Ended = opt.Some(at)
		s.job.ex.piped.ended()
	}
	if n := len(tr.Marks); n == 0 || tr.Marks[n-1].At != at {
		tr.Marks = append(tr.Marks, wire.Mark{End: tr.Bytes, At: at}) // what ended it had no bytes of the body, but is when the slot is free
		s.job.ex.piped.came()
	}
	c.end(s, failure{}, http2.ErrCodeCancel)
}

// reject ends a stream that is malformed.
func (c *h2conn) reject(s *h2stream, why string) {
	c.end(s, failure{wire.FailMalformed, "broken HTTP/2: " + why}, http2.ErrCodeProtocol)
}

// expired ends a stream that was cut, or whose time is over. A connection on which nothing at all has come in that time is not
// trusted with another.
func (c *h2conn) expired(s *h2stream) {
	_, fail := s.job.ex.limit()
	switch ex := s.job.ex; {
	case ex.untilFound: // the terminator was there: nothing is missing
		fail = failure{}
	case ex.interrupted():
		fail.kind = wire.FailIncomplete // the words are the exchange's
	case fail.kind == wire.FailTimeout && c.heard <= s.since:
		c.retire()
	}
	c.end(s, fail, http2.ErrCodeCancel)
}

// end ends a stream and its job. The code is for the server, if it has to be told.
func (c *h2conn) end(s *h2stream, fail failure, code http2.ErrCode) {
	c.remove(s, code)
	c.p.h2.balance(c.target, c)
	c.p.finish(s.job.ex, nil, fail.kind, fail.cause)
}

// remove takes a stream out, and tells the server unless it knows.
func (c *h2conn) remove(s *h2stream, code http2.ErrCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s.id)
	c.forget(s)
	if told := s.gone || s.over && s.sent || c.broken; !told {
		c.fr.WriteRSTStream(s.id, code)
		c.ring()
	}
}
