package sim

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prony-bench/prony/internal/stamp"
)

// Bounds of a request. A head above 64 KiB is no LLM client's.
const (
	maxRequestHead = 64 << 10
	readBuffer     = 4 << 10
)

var errTooLarge = errors.New("request body too large")

// conn is one connection. Its goroutine reads requests; the answer to one is over before the next is begun.
type conn struct {
	s      *Server
	nc     net.Conn
	raw    syscall.RawConn // for the pacer; nil: plain timers
	stamps *stamp.Conn     // what is read from; nil: the kernel stamps no reads here
	in     headLimit
	br     *bufio.Reader
	minor  int  // of the request's HTTP/1 version
	close  bool // the request, or its version, asks for the connection to be closed

	mu    sync.Mutex
	idle  *time.Timer // closes the connection when it fires
	begun int         // requests whose first byte has come

	out []byte // memory of the latest answer, for the next one
	ev  event

	write rawWrite // the pacer's
}

// headLimit lets a bounded number of bytes through.
type headLimit struct {
	r    io.Reader
	left int64
}

func (l *headLimit) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("request head too large")
	}
	if int64(len(p)) > l.left {
		p = p[:l.left]
	}
	n, err := l.r.Read(p)
	l.left -= int64(n)
	return n, err
}

// request is one request, read whole.
type request struct {
	*http.Request
	body    []byte
	arrival time.Duration // of its last byte: the kernel's stamp, or when it had been read
	wall    time.Time     // the same on the wall clock
	stamped bool          // it is the kernel's stamp
	model   string        // that the path names
}

// serve reads requests until the connection closes.
func (c *conn) serve() {
	var under *reply // the latest answer, perhaps still under way
	defer func() {
		c.nc.Close()
		if under != nil {
			under.abort()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.idle != nil {
			c.idle.Stop()
		}
	}()
	wait := func() bool {
		if under == nil {
			return true
		}
		select {
		case <-under.done:
			return under.keep
		case <-c.s.stop:
			return false
		}
	}
	for {
		c.in.left = maxRequestHead + readBuffer
		if _, err := c.br.Peek(1); err != nil {
			return
		}
		c.stopIdle()
		req, err := c.read(wait)
		if err != nil {
			if wait() {
				c.refuse(err)
			}
			return
		}
		if !wait() {
			return
		}
		var keep bool
		if under, keep = c.s.handle(c, req); !keep {
			return
		}
	}
}

// read reads one request whole. before waits until the answer to the one before is over.
func (c *conn) read(before func() bool) (*request, error) {
	head, err := http.ReadRequest(c.br)
	if err != nil {
		return nil, err
	}
	c.minor, c.close = head.ProtoMinor, head.Close || !head.ProtoAtLeast(1, 0)
	c.in.left = 1 << 62
	if head.ContentLength > c.s.cfg.MaxBody {
		return nil, errTooLarge
	}
	if head.ProtoAtLeast(1, 1) && strings.EqualFold(head.Header.Get("Expect"), "100-continue") && head.ContentLength != 0 {
		if !before() {
			return nil, net.ErrClosed
		}
		if _, err := io.WriteString(c.nc, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return nil, err
		}
	}
	var body []byte
	if head.ContentLength >= 0 {
		body = make([]byte, head.ContentLength)
		_, err = io.ReadFull(head.Body, body)
	} else {
		body, err = io.ReadAll(io.LimitReader(head.Body, c.s.cfg.MaxBody+1))
		if err == nil && int64(len(body)) > c.s.cfg.MaxBody {
			err = errTooLarge
		}
	}
	if err != nil {
		return nil, err
	}
	req := &request{Request: head, body: body, wall: time.Now()}
	req.arrival = req.wall.Sub(c.s.start)
	if c.stamps != nil {
		age := time.Duration(req.wall.UnixNano() - c.stamps.Arrived())
		if req.stamped = 0 <= age && age < oldestStamp; req.stamped {
			req.arrival -= age
			req.wall = req.wall.Add(-age)
		}
	}
	return req, nil
}

// oldestStamp bounds the age of a stamp: an older one tells that the wall clock was stepped.
const oldestStamp = time.Second

// refuse answers what is no request, as uvicorn does.
func (c *conn) refuse(err error) {
	status := http.StatusBadRequest
	switch {
	case errors.Is(err, errTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return
	}
	c.close = true
	c.answer(status, "text/plain; charset=utf-8", []byte("Invalid HTTP request received."))
}

// field is a header field of an answer.
type field struct{ name, value string }

// head returns the head of an answer without its blank line.
func (c *conn) head(status int, keep bool, fields ...field) []byte {
	version := "HTTP/1.1 "
	if c.minor == 0 {
		version = "HTTP/1.0 "
	}
	b := append(make([]byte, 0, 512), version...)
	b = append(b, statusLine(status)...)
	b = append(b, "\r\ndate: "...)
	b = time.Now().UTC().AppendFormat(b, http.TimeFormat)
	b = append(b, "\r\nserver: prony-sim\r\n"...)
	for _, f := range fields {
		b = append(b, f.name...)
		b = append(b, ": "...)
		b = append(b, f.value...)
		b = append(b, "\r\n"...)
	}
	switch {
	case !keep:
		b = append(b, "connection: close\r\n"...)
	case c.minor == 0:
		b = append(b, "connection: keep-alive\r\n"...)
	}
	return b
}

func statusLine(status int) string {
	digits := [3]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)}
	return string(digits[:]) + " " + http.StatusText(status)
}

// answer writes a whole answer at once; false when the connection must not be used again.
func (c *conn) answer(status int, contentType string, body []byte, fields ...field) bool {
	if contentType != "" {
		fields = append(fields, field{"content-type", contentType})
	}
	f := framing{head: c.head(status, !c.close, fields...), length: true}
	e := event{body: body, then: clean}
	e.cut()
	_, err := c.nc.Write(f.append(nil, &e))
	return err == nil && !c.close
}

func (c *conn) answerJSON(status int, body []byte, fields ...field) bool {
	return c.answer(status, "application/json", body, fields...)
}

// closeIdleAfter closes the connection after the answer to its n-th request, unless another begins before. That may have happened
// already: a client that has the whole answer does not wait for the write that brought it to return.
func (c *conn) closeIdleAfter(d time.Duration, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun != n {
		return
	}
	c.idle = time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.begun == n {
			c.nc.Close()
		}
	})
}

// stopIdle ends the idle time: a request begins.
func (c *conn) stopIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
}

// reset closes the connection so that the peer's reads fail, where the connection knows how.
func (c *conn) reset() {
	switch nc := c.nc.(type) {
	case interface{ SetLinger(int) error }:
		nc.SetLinger(0) // when it fails the connection is gone already
	case interface{ Reset() }:
		nc.Reset()
	}
	c.nc.Close()
}
