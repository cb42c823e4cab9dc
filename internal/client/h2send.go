package client

import (
	"slices"
	"time"
)

// h2sender is the sending side of a connection, guarded by its mu: frames that are to go out, and the bodies that wait for the
// server's windows. Whoever has something to send puts frames out; one at a time writes them to the network. Who must not wait
// (the dispatcher, and the reader, on whom the server may wait in turn) leaves that to the connection's writer.
type h2sender struct {
	out       h2out
	lasts     []h2last // the ends of requests among what is out
	bodies    []*h2stream
	unsent    int   // bytes of those bodies
	window    int64 // what the server takes on the connection
	initial   int64 // what it takes on a new stream
	proved    int   // of the bytes put out, those that the server has read, as its answers show
	spare     []byte
	spareEnds []h2last
}

// h2out gathers frames.
type h2out struct {
	b     []byte
	total int // bytes ever put out
}

// Write implements io.Writer.
func (o *h2out) Write(p []byte) (int, error) {
	o.b = append(o.b, p...)
	o.total += len(p)
	return len(p), nil
}

// h2last says that the last byte of a request is out, before an offset.
type h2last struct {
	end int
	ex  *exchange
}

// Bounds of what is put out. A batch is copied from bodies no further than a write may take at once. Above h2MostQueued the server has
// stopped reading: the connection opens no stream, and a server that keeps asking for acknowledgements is in breach.
const (
	h2Batch      = largeRequest
	h2MostQueued = 1 << 20
)

// putHead puts out the head of a request, and its body in line. c.mu is held.
func (c *h2conn) putHead(s *h2stream, block []byte) {
	first := true
	for first || len(block) > 0 {
		part := block[:min(len(block), h2FrameSize)]
		block = block[len(part):]
		if first {
			c.fr.WriteHeaders(headersFrame(s.id, part, len(s.body) == 0, len(block) == 0))
		} else {
			c.fr.WriteContinuation(s.id, len(block) == 0, part)
		}
		first = false
	}
	s.end = c.out.total
	if len(s.body) == 0 {
		c.putLast(s)
		return
	}
	c.unsent += len(s.body)
	c.bodies = append(c.bodies, s)
}

func (c *h2conn) putLast(s *h2stream) {
	s.sent = true
	c.lasts = append(c.lasts, h2last{len(c.out.b), s.job.ex})
}

// putBodies puts out DATA, a frame of each body in turn, as far as the windows go and a batch holds. c.mu is held.
func (c *h2conn) putBodies() {
	held := 0 // bodies in a row that their windows hold back
	for len(c.bodies) > held && c.window > 0 && len(c.out.b) < h2Batch {
		s := c.bodies[0]
		c.bodies = c.bodies[1:]
		n := int(min(int64(min(len(s.body), h2FrameSize)), s.window, c.window))
		if n <= 0 {
			held++
			c.bodies = append(c.bodies, s)
			continue
		}
		held = 0
		c.fr.WriteData(s.id, n == len(s.body), s.body[:n])
		s.body = s.body[n:]
		s.window -= int64(n)
		c.window -= int64(n)
		c.unsent -= n
		s.end = c.out.total
		if len(s.body) > 0 {
			c.bodies = append(c.bodies, s)
		} else {
			c.putLast(s)
		}
	}
}

// forget takes a stream out of what is to be sent. c.mu is held.
func (c *h2conn) forget(s *h2stream) {
	c.lasts = slices.DeleteFunc(c.lasts, func(l h2last) bool { return l.ex == s.job.ex })
	if i := slices.Index(c.bodies, s); i >= 0 {
		c.bodies = slices.Delete(c.bodies, i, i+1)
		c.unsent -= len(s.body)
		s.body = nil
	}
}

// push sends what is out, without waiting: it writes itself where all that the server is not known to have read is no more than
// what sockets hold, and nobody else is writing.
func (c *h2conn) push() {
	c.mu.Lock()
	little := c.out.total+c.unsent-c.proved <= largeRequest
	c.mu.Unlock()
	if little {
		select {
		case c.turn <- struct{}{}:
			c.drain()
			<-c.turn
		default: // somebody else is writing
		}
	}
	c.mu.Lock()
	rest := len(c.out.b) > 0 || len(c.bodies) > 0
	c.mu.Unlock()
	if rest {
		c.ring()
	}
}

// ring wakes the writer.
func (c *h2conn) ring() {
	select {
	case c.bell <- struct{}{}:
	default: // it has been woken already
	}
}

// writer is the goroutine that writes what would make others wait.
func (c *h2conn) writer() {
	for {
		select {
		case <-c.bell:
		case <-c.done:
			return
		}
		c.turn <- struct{}{}
		for c.drain() {
		}
		<-c.turn
	}
}

// flush writes what is out, while the connection is not in use yet.
func (c *h2conn) flush() error {
	b := c.out.b
	c.out.b = nil
	_, err := c.nc.Write(b)
	return err
}

// drain writes one batch of what is out. It returns false when there was nothing, or nothing can be written any more; a failed write
// shows in the read. The caller has the turn.
func (c *h2conn) drain() bool {
	c.mu.Lock()
	c.putBodies()
	b, lasts := c.out.b, c.lasts
	c.out.b, c.lasts = c.spare[:0], c.spareEnds[:0]
	if c.broken {
		b = b[:0]
	}
	c.mu.Unlock()
	err := c.write(b, lasts)
	clear(lasts)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spare, c.spareEnds = b, lasts
	if cap(b) > h2MostQueued {
		c.spare = nil
	}
	if err != nil {
		c.broken = true
		c.retireLocked()
	}
	return len(b) > 0 && err == nil
}

// write writes frames in pieces, so that the moment of sending of a request is that of the piece with its last byte, as in HTTP/1.1.
func (c *h2conn) write(b []byte, lasts []h2last) error {
	for at := 0; at < len(b); {
		end := min(len(b), at+lastPiece)
		k := 0
		var ended []h2last
		for k < len(lasts) && lasts[k].end <= end {
			k++
		}
		if k > 0 {
			now := c.p.clock.now()
			for _, l := range lasts[:k] {
				l.ex.sent.Store(int64(now))
			}
			c.in.sending(now)
			ended, lasts = lasts[:k], lasts[k:]
		}
		if _, err := c.nc.Write(b[at:end]); err != nil {
			return err
		}
		for _, l := range ended {
			l.ex.piped.sent(c.in)
		}
		at = end
	}
	return nil
}

// deadlineOf returns when a request that begins now is over its time; zero: never.
func deadlineOf(ex *exchange) time.Time {
	limit, _ := ex.limit()
	if limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(limit)
}
