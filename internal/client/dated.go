package client

import (
	"encoding/binary"
	"net"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/wire"
)

// moment is when bytes of a connection arrived.
type moment struct {
	at  time.Duration // since the epoch
	end int64         // offset behind the last of them in what the connection has brought
}

// dated is a connection that knows when what it brought arrived.
type dated interface {
	net.Conn
	// arrived returns the moment of the bytes that the last Read brought. It belongs to the reader.
	arrived() moment
	// sending tells that a request goes out now: nothing that arrives from here on can be older.
	sending(time.Duration)
	// stamped tells whether the moments are the kernel's stamps.
	stamped() bool
}

// counts are what a client counts. They may be written from any goroutine.
type counts struct {
	connections, stale, reads, unstamped, waits atomic.Int64
	delays                                      delays // from a kernel stamp to the read
	sched                                       delays // from when a thread wanted to run until it did
	stalls                                      stalls
	user, system                                atomic.Int64 // ns that engine threads used
	stampless                                   atomic.Bool  // some connection had no kernel stamps
}

// report puts the counts into the client's report. A client that has read nothing has had no stamps.
func (n *counts) report(c *clock) bench.ClientReport {
	stamp := wire.StampSocket
	if n.stampless.Load() || n.reads.Load() == 0 {
		stamp = wire.StampUser
	}
	steps, unrepaired := c.counts()
	return bench.ClientReport{Stamp: string(stamp), Connections: int(n.connections.Load()), StaleRetries: int(n.stale.Load()),
		Reads: int(n.reads.Load()), Unstamped: int(n.unstamped.Load()), ReadsHeldUp: int(n.waits.Load()),
		ReadDelayP99: int64(n.delays.quantile(0.99)), SchedDelayP99: int64(n.sched.quantile(0.99)), Stalls: n.stalls.merged(),
		EngineUser: time.Duration(n.user.Load()), EngineSystem: time.Duration(n.system.Load()), ClockSteps: steps, UnrepairedSteps: unrepaired}
}

// undated dates bytes by the return of the read.
type undated struct {
	net.Conn
	clock *clock
	n     *counts
	m     moment
}

func (u *undated) Read(p []byte) (int, error) {
	n, err := u.Conn.Read(p)
	u.m.at = u.clock.now()
	if n > 0 {
		u.m.end += int64(n)
		u.n.reads.Add(1)
	}
	return n, err
}

func (u *undated) arrived() moment       { return u.m }
func (u *undated) sending(time.Duration) {}
func (u *undated) stamped() bool         { return false }

// lookahead reads ahead of its reader, who takes what a protocol wants in small pieces, and still knows when each piece arrived.
// It goes no further than to the end of a TLS record when it is to respect records: then the moment of decrypted bytes, of which
// the reader cannot know the place among the encrypted ones, is that of the end of their record.
type lookahead struct {
	dated
	records bool
	buf     []byte // what has been read and not been taken
	store   []byte
	left    int // of the current record
	head    [recordHeader]byte
	headLen int
	m       moment
}

const recordHeader = 5 // of TLS: type, version, length

// newLookahead puts a lookahead over a connection. One that has been there for what came before it goes on.
func newLookahead(d dated, records bool) *lookahead {
	if l, ok := d.(*lookahead); ok {
		l.records = records
		return l
	}
	return &lookahead{dated: d, records: records, store: make([]byte, readSize)}
}

// Read implements net.Conn.
func (l *lookahead) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(l.buf) == 0 {
		n, err := l.dated.Read(l.store)
		l.m = l.dated.arrived()
		l.m.end -= int64(n)
		if n == 0 {
			return 0, err
		}
		l.buf = l.store[:n] // an error comes again with the next read
	}
	n := min(len(p), len(l.buf))
	if l.records {
		n = l.withinRecord(l.buf[:n])
	}
	copy(p, l.buf[:n])
	l.buf = l.buf[n:]
	l.m.end += int64(n)
	return n, nil
}

// withinRecord returns how many of the next bytes belong to the current record, and follows the records.
func (l *lookahead) withinRecord(b []byte) int {
	n := 0
	if l.left == 0 {
		n = copy(l.head[l.headLen:], b)
		l.headLen += n
		if l.headLen < recordHeader {
			return n
		}
		l.headLen = 0
		l.left = int(binary.BigEndian.Uint16(l.head[3:]))
	}
	k := min(l.left, len(b)-n)
	l.left -= k
	return n + k
}

func (l *lookahead) arrived() moment { return l.m }
