package tap

import "time"

// Mark says: the bytes of the stream before End were all there, in order, at At. A mark with At 0 says that the bytes between the
// mark before it and End have no stamp.
type Mark struct {
	End int64 // offset in the stream
	At  int64 // stamp, ns; 0 = none
}

// Dated tells whether the mark has a stamp.
func (m Mark) Dated() bool { return m.At != 0 }

// none is the stamp of what has none.
const none = 0

// Bounds of a flow. What would go beyond one loses its stamp, and FlowStats tells.
const (
	// maxMarks is how many marks a flow keeps when nobody trims it (1 MiB): 65,536 segments, 6 s of a very fast stream. The
	// oldest go.
	maxMarks = 1 << 16
	// maxMarksUnasked is the same for a connection that nobody has asked for yet, such as another program's to the same server.
	maxMarksUnasked = 1 << 10
	// maxLate is how many pieces behind a hole are kept (128 KiB); a window of 6 MiB, Linux's default limit, is 4,200 full
	// segments.
	maxLate = 4096
	// maxAhead is how far a segment may be from the farthest one seen: no window of TCP is larger (RFC 7323). What is farther is
	// of another connection, or so much was lost that its place is unknown; Assume finds the place again.
	maxAhead = 1 << 30
	// clockStep is the size from which a stamp that is older than the one before it means that the wall clock was set back.
	// Smaller differences come from processors that stamp side by side.
	clockStep = int64(time.Millisecond)
)

// Flow is one direction of a connection. It begins with the SYN of that direction; offset 0 is the first byte of payload. The
// zero Flow has not begun.
//
// A byte counts when it and all before it are there: behind a hole it waits until the hole is filled, as a reader must. What
// comes again (retransmissions, overlaps, keep-alive probes) changes nothing. Stamps never go back from mark to mark, unless the
// wall clock was set back by a millisecond or more.
//
// A packet that TCP delivered and the capture lost leaves a hole that is never filled. Only the reader knows of it: Assume tells
// the flow how far was read. Then the bytes in the hole have no stamp, and those behind it have theirs if it is certain to be
// right.
type Flow struct {
	begun   bool
	shut    bool // the receiver's window was 0 when last heard of
	probing bool // a byte was sent into a shut window; it is not known whether it was taken

	isn     uint32 // sequence number of offset 0
	opened  int64  // stamp of the SYN
	next    int64  // all bytes before are accounted for
	high    int64  // the farthest end seen or assumed
	newest  int64  // the newest stamp of a mark since the wall clock was set back
	arrived int64  // the newest stamp of a packet, likewise
	floor   int64  // bytes before are forgotten
	checked int64  // marks up to here have been compared with a read

	marks []Mark // those from head on are in use
	head  int
	limit int // of marks

	late []piece // what came behind a hole: ascending, apart

	// Losses of the capture are counted, so that a hole can be told from a loss on the way. lost counts for all flows of a table,
	// own is what this flow dropped or came to doubt; safe is their sum when the stream was last without a hole.
	lost *uint32
	own  uint32
	safe uint32

	probeAt       int64
	finished      bool // the FIN was seen
	finEnd, finAt int64
	resetAt       int64
	stats         FlowStats
}

// FlowStats tell what a flow could not do.
type FlowStats struct {
	Undated int64 // bytes that have no stamp
	Shed    int64 // marks forgotten because there were too many
	Dropped int64 // pieces behind a hole beyond the bound, treated as lost by the capture
	Astray  int64 // segments too far away to be of this stream
}

// begin starts the flow. seq is the sequence number behind that of the SYN.
func (f *Flow) begin(seq uint32, at int64, lost *uint32, limit int) {
	*f = Flow{begun: true, isn: seq, opened: at, lost: lost, limit: limit}
	f.safe = f.losses()
}

func (f *Flow) losses() uint32 { return *f.lost + f.own }

// Begun tells whether the flow's SYN was seen, and when.
func (f *Flow) Begun() (at int64, ok bool) { return f.opened, f.begun }

// Next is the offset before which every byte is accounted for, with a stamp or as one that will never have one.
func (f *Flow) Next() int64 { return f.next }

// Stats returns the counts.
func (f *Flow) Stats() FlowStats { return f.stats }

// End returns the offset at which the sender ended the stream with a FIN, and when all of it was there (0 = not known when). ok
// is false before.
func (f *Flow) End() (end, at int64, ok bool) {
	if !f.finished || f.next < f.finEnd {
		return 0, 0, false
	}
	return f.finEnd, f.finAt, true
}

// Reset returns when the sender broke the connection off with a RST.
func (f *Flow) Reset() (at int64, ok bool) { return f.resetAt, f.resetAt != none }

// offset returns where in the stream a sequence number is: the place nearest to the farthest byte seen.
func (f *Flow) offset(seq uint32) int64 {
	return f.high + int64(int32(seq-f.isn-uint32(f.high)))
}

// add takes n bytes that begin at a sequence number.
func (f *Flow) add(seq uint32, n int, at int64) {
	start := f.offset(seq)
	end := start + int64(n)
	if start < f.high-maxAhead || end > f.high+maxAhead {
		f.stats.Astray++
		return
	}
	f.watch(at)
	if f.probing {
		f.settle(start)
	}
	if end <= f.next {
		return // all of it was there; so are the fillers of keep-alive probes
	}
	losses := f.losses()
	switch {
	case n > 1:
		f.shut = false // nobody sends that much into a shut window
	case f.shut && start == f.next:
		f.probing, f.probeAt = true, at
		return
	case losses != f.safe && start > f.next:
		f.own++
		return // it may be the filler of a keep-alive probe, in the place of a byte that the capture lost
	case losses != f.safe:
		at = none // the same
	}
	f.high = max(f.high, end)
	switch {
	case start > f.next:
		f.hold(start, end, at, losses)
	case len(f.late) == 0:
		f.extend(end, at)
		f.safe = losses
	default:
		f.fill(end, at, losses)
	}
}

// settle decides whether the byte that was sent into a shut window was taken: the sender goes on behind it, or sends it again.
func (f *Flow) settle(start int64) {
	if start > f.next+1 {
		return // still open
	}
	f.probing = false
	if start == f.next+1 {
		f.high = max(f.high, start)
		f.fill(start, f.probeAt, f.losses())
	}
}

// window takes what the receiver says of its window.
func (f *Flow) window(open bool) { f.shut = !open }

// finish takes a FIN; seq is the sequence number behind the last byte.
func (f *Flow) finish(seq uint32, at int64) {
	end := f.offset(seq)
	if f.finished || end < f.next || end > f.high+maxAhead {
		return
	}
	f.watch(at)
	if f.probing {
		f.settle(end)
	}
	f.finished, f.finEnd, f.finAt = true, end, at
	if f.next == end {
		f.finAt = max(at, f.newest)
	}
	if f.losses() != f.safe {
		f.finAt = none // the first FIN may have been lost by the capture, and this be a second one
	}
}

// reset takes a RST. Its payload, if any, is a text for people and not part of the stream.
func (f *Flow) reset(at int64) {
	if f.resetAt == none {
		f.resetAt = at
	}
}

// watch notices that the wall clock was set back between two packets. What waits behind a hole cannot be compared with what comes
// then.
func (f *Flow) watch(at int64) {
	if at > f.arrived-clockStep {
		f.arrived = max(f.arrived, at)
		return
	}
	f.arrived, f.newest = at, none
	f.doubt()
}

// doubt makes what waits behind a hole uncertain.
func (f *Flow) doubt() {
	if len(f.late) > 0 {
		f.own++
	}
}

// extend accounts for the bytes up to end.
func (f *Flow) extend(end, at int64) {
	if end <= f.next {
		return
	}
	if at == none {
		f.stats.Undated += end - f.next
	} else {
		at = max(at, f.newest)
		f.newest = at
	}
	f.next = end
	f.push(Mark{end, at})
	if f.finished && f.finEnd == end {
		if at == none || f.finAt == none {
			f.finAt = none
		} else {
			f.finAt = max(at, f.finAt)
		}
	}
}

// push appends a mark; one with the stamp of the one before is joined to it.
func (f *Flow) push(m Mark) {
	if n := len(f.marks); n > f.head && f.marks[n-1].At == m.At {
		f.marks[n-1].End = m.End
		return
	}
	if len(f.marks)-f.head >= f.limit {
		f.floor = max(f.floor, f.marks[f.head].End)
		f.head++
		f.stats.Shed++
	}
	if len(f.marks) == cap(f.marks) && f.head > len(f.marks)/2 {
		n := copy(f.marks, f.marks[f.head:])
		f.marks, f.head = f.marks[:n], 0
	}
	f.marks = append(f.marks, m)
}

// find returns the index of the first mark that ends at or behind an offset, len(marks) if there is none.
func (f *Flow) find(end int64) int {
	lo, hi := f.head, len(f.marks)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); f.marks[mid].End < end {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// At returns when the bytes before end were all there. ok is false when that is not known: the last of them has not been seen yet
// (end > Next), was lost by the capture, or is forgotten.
func (f *Flow) At(end int64) (at int64, ok bool) {
	if end <= f.floor || end > f.next {
		return 0, false
	}
	m := f.marks[f.find(end)]
	return m.At, m.Dated()
}

// Marks appends to dst the marks that tell of the bytes from one offset up to another: all with from < End <= to, then, where to
// is within a segment that is there, a mark of that segment cut at to. Bytes without a stamp are under marks without one. If the
// last mark's End is below to, the rest has not been seen yet.
func (f *Flow) Marks(from, to int64, dst []Mark) []Mark {
	to = min(to, f.next)
	if to <= from {
		return dst
	}
	if from < f.floor {
		from = min(f.floor, to)
		dst = append(dst, Mark{from, none})
	}
	for i := f.find(from + 1); from < to; i++ {
		m := f.marks[i]
		m.End = min(m.End, to)
		dst = append(dst, m)
		from = m.End
	}
	return dst
}

// Trim forgets what is before an offset: At and Marks know only bytes behind it from then on.
func (f *Flow) Trim(before int64) {
	f.floor = max(f.floor, min(before, f.next))
	for f.head < len(f.marks) && f.marks[f.head].End <= f.floor {
		f.head++
	}
	if f.head == len(f.marks) {
		f.marks, f.head = f.marks[:0], 0
	}
}

// Assume tells the flow that a reader has got the bytes before read, and that the wall clock showed by when it had. It must not
// be called before all packets that were captured until then have been added (see Tap.SeenUntil), or their bytes will have no
// stamp.
//
// Holes before read are the capture's then; no packet will fill them. What is known to have come behind a hole keeps its stamp if
// the hole's packet must have come first: the capture reported losses, and all of them were before. Otherwise the hole's packet
// may have been the later one, and there is no stamp.
//
// A stamp younger than the read is none: it is of a packet that the peer sent again, after the capture had lost the first. (Where
// the reader is so late that even the second one came before it, that cannot be seen; it takes a full ring, and a peer that
// repeats what had arrived.)
func (f *Flow) Assume(read, by int64) {
	if !f.begun {
		return
	}
	if read > f.next {
		f.skip(read)
	}
	f.refute(read, by)
}

// skip accounts for the holes before an offset.
func (f *Flow) skip(read int64) {
	losses := f.losses()
	i := 0
	for ; i < len(f.late) && f.late[i].start <= max(read, f.next); i++ { // what follows a piece without a hole goes with it
		p := f.late[i]
		if losses == f.safe || losses != p.losses {
			p.at = none
		}
		f.extend(p.start, none)
		f.extend(p.end, p.at)
	}
	f.forget(i)
	f.extend(read, none)
	f.high = max(f.high, f.next)
	f.probing = false
	if len(f.late) == 0 {
		f.safe = losses
	}
}

// refute takes the stamps away that a read disproves.
func (f *Flow) refute(read, by int64) {
	if read <= f.checked || len(f.marks) == f.head {
		return
	}
	for i := min(f.find(read), len(f.marks)-1); i >= f.head && f.marks[i].End > f.checked; i-- {
		m := &f.marks[i]
		if !m.Dated() {
			continue
		}
		if m.At <= by {
			break
		}
		start := f.floor
		if i > f.head {
			start = f.marks[i-1].End
		}
		f.stats.Undated += m.End - start
		m.At = none
	}
	f.checked = read
}
