package client

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/stamp"
)

// stampedConn dates bytes by the kernel's receive stamps.
type stampedConn struct {
	*stamp.Conn
	clock *clock
	count *counts
	m     moment
	sent  atomic.Int64 // when the newest request went out
}

// withStamps asks the kernel for receive stamps on a connection. Where it refuses, the return of the read is taken.
func withStamps(nc net.Conn, c *clock, n *counts) dated {
	if tc, ok := nc.(*net.TCPConn); ok {
		if s, err := stamp.New(tc); err == nil {
			return &stampedConn{Conn: s, clock: c, count: n}
		}
	}
	return &undated{Conn: nc, clock: c, n: n}
}

// Read implements net.Conn.
func (s *stampedConn) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		s.m.at, _, _ = s.count.date(s.clock, s.Arrived(), max(s.m.at, time.Duration(s.sent.Load())))
		s.m.end += int64(n)
	}
	return n, err
}

func (s *stampedConn) arrived() moment         { return s.m }
func (s *stampedConn) sending(t time.Duration) { s.sent.Store(int64(t)) }
func (s *stampedConn) stamped() bool           { return true }

// date returns when a read arrived, from its stamp, or now when it has none (0) or it cannot be placed; and the clocks after the
// read. It counts the read.
func (n *counts) date(c *clock, stamp int64, notBefore time.Duration) (at, mono time.Duration, wall int64) {
	n.reads.Add(1)
	mono, wall = c.pair()
	if stamp != 0 {
		if at, ok := c.at(mono, wall, stamp, notBefore); ok {
			n.delays.add(mono - at)
			return at, mono, wall
		}
	}
	n.unstamped.Add(1)
	return mono, mono, wall
}
