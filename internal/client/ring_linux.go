package client

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/tap"
	"github.com/prony-bench/prony/internal/wire"
)

// ring dates what connections brought by the packets that carried it. It belongs to the deliverer.
type ring struct {
	taps  []*tapped
	of    []*tapped // by target
	clock *clock
	mono  time.Duration // a pair of the clocks, renewed with each read
	wall  int64
	marks []tap.Mark // for reuse
}

// tapped is the capture of one interface.
type tapped struct {
	tap   *tap.Tap
	table *tap.Table
	err   error // why it gives nothing any more
}

// track is what the ring has to know of a connection. The engine thread sets it when the connection is open.
type track struct {
	key      tap.Key
	from, to int64 // wall clock before and after the connect
	target   int
	conn     *tap.Conn // the ring's
	sought   bool
}

// ringTimeout is after how long the kernel hands over packets: it is what the end of a request waits for.
const ringTimeout = 2 * time.Millisecond

// openRing captures the packets from and to some targets. The error says why there are no wire stamps.
func openRing(targets []Target, c *clock) (*ring, error) {
	r := &ring{clock: c}
	remotes := map[int][]netip.AddrPort{}
	var order []int
	places := make([]int, len(targets))
	for i, t := range targets {
		if t.Socket != "" {
			return nil, errors.New("a unix socket has no packets")
		}
		ap, err := netip.ParseAddrPort(t.Addr)
		if err != nil {
			return nil, err
		}
		_, index, err := tap.InterfaceFor(ap)
		if err != nil {
			return nil, err
		}
		if remotes[index] == nil {
			order = append(order, index)
		}
		if !slices.Contains(remotes[index], ap) {
			remotes[index] = append(remotes[index], ap)
		}
		places[i] = slices.Index(order, index)
	}
	for _, index := range order {
		t, err := tap.Open(tap.Options{Interface: index, Remotes: remotes[index], BlockTimeout: ringTimeout})
		if err != nil {
			r.close()
			return nil, err
		}
		r.taps = append(r.taps, &tapped{tap: t, table: tap.NewTable(0)})
	}
	for _, p := range places {
		r.of = append(r.of, r.taps[p])
	}
	return r, nil
}

func (r *ring) close() {
	if r == nil {
		return
	}
	for _, t := range r.taps {
		t.tap.Close()
	}
}

// read takes the packets that are there, waiting for the first for some time.
func (r *ring) read(wait time.Duration) {
	for _, t := range r.taps {
		if t.err == nil {
			_, t.err = t.tap.Read(wait, t.table.Add)
		}
		wait = 0 // the others have had that time too
	}
	r.mono, r.wall = r.clock.pair()
}

// seen tells whether all packets until a wall-clock time have been read, as far as they can be.
func (r *ring) seen(target int, until int64) bool {
	t := r.of[target]
	return t.err != nil || t.tap.SeenUntil() >= until
}

// find returns the ring's connection of a track, nil when it saw it not begin.
func (r *ring) find(k *track) *tap.Conn {
	if !k.sought {
		k.sought = r.seen(k.target, k.to)
		k.conn = r.of[k.target].table.Find(k.key, k.from-int64(time.Millisecond), k.to+int64(time.Millisecond))
	}
	return k.conn
}

// forget tells that a connection is closed.
func (r *ring) forget(k *track) {
	if c := r.find(k); c != nil {
		r.of[k.target].table.Forget(c)
	}
}

// at returns when the bytes of a mark were there, if it has a stamp that can be placed.
func (r *ring) at(m tap.Mark) (time.Duration, bool) {
	if !m.Dated() {
		return 0, false
	}
	return r.clock.at(r.mono, r.wall, m.At, 0)
}

// date replaces the marks of a piece of an answer by those of its packets, in dst. base is the offset in the connection of the first
// byte of the exchange, start the one in the exchange of the piece, by the wall clock after the read. Bytes that the ring knows
// nothing of keep the marks of their reads, or get the time of what came behind them when that is earlier: they were there by then.
// all is false when there were such.
func (r *ring) date(c *tap.Conn, base int64, start int, marks []wire.Mark, by int64, dst []wire.Mark) (out []wire.Mark, all bool) {
	if c == nil || len(marks) == 0 {
		return append(dst, marks...), false
	}
	end := marks[len(marks)-1].End
	c.In.Assume(base+int64(end), by)
	r.marks = c.In.Marks(base+int64(start), base+int64(end), r.marks[:0])
	all = true
	known := start
	for i, m := range r.marks {
		to := int(m.End - base)
		if at, ok := r.at(m); ok {
			dst = append(dst, wire.Mark{End: to, At: at})
		} else {
			all = false
			dst = appendReads(dst, marks, known, to, r.nextDated(i+1))
		}
		known = to
	}
	if known < end {
		all = false
		dst = appendReads(dst, marks, known, end, never)
	}
	return dst, all
}

// datePiped replaces the moments of marks by those of the packets that completed what they date, where those are known. all is false
// when some are not.
func (r *ring) datePiped(c *tap.Conn, b *block) (out []wire.Mark, all bool) {
	if c == nil || len(b.marks) == 0 {
		return b.marks, false
	}
	last := b.piped.offs[len(b.piped.offs)-1]
	c.In.Assume(last, b.by)
	all = true
	newest := time.Duration(0)
	for i := range b.marks {
		m := &b.marks[i]
		at, ok := c.In.At(b.piped.offs[i])
		if ok {
			var moment time.Duration
			if moment, ok = r.at(tap.Mark{End: b.piped.offs[i], At: at}); ok {
				m.At = moment
			}
		}
		all = all && ok
		newest = max(newest, m.At)
		m.At = newest
	}
	if !b.x.shared {
		b.x.dated = int(last)
	}
	return b.marks, all
}

// nextDated returns when the first dated bytes from the i-th mark on were there.
func (r *ring) nextDated(i int) time.Duration {
	for ; i < len(r.marks); i++ {
		if at, ok := r.at(r.marks[i]); ok {
			return at
		}
	}
	return never
}

// appendReads appends the marks of reads for the bytes between two offsets, none later than a moment.
func appendReads(dst, marks []wire.Mark, from, to int, most time.Duration) []wire.Mark {
	for _, m := range marks {
		if m.End <= from {
			continue
		}
		dst = append(dst, wire.Mark{End: min(m.End, to), At: min(m.At, most)})
		if m.End >= to {
			break
		}
	}
	return dst
}

// whatHappened says what the ring could not do; empty when nothing.
func (r *ring) whatHappened() (dropped int64, words string) {
	for _, t := range r.taps {
		dropped += t.tap.Stats().Dropped
		if t.err != nil && words == "" {
			words = fmt.Sprintf("the capture ended: %v", t.err)
		}
	}
	return dropped, words
}
