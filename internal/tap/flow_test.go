package tap

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rig is a flow with its capture's counter of losses.
type rig struct {
	Flow
	count uint32
}

func newRig(isn uint32) *rig {
	r := &rig{}
	r.begin(isn, 1000, &r.count, maxMarks)
	return r
}

// seg takes bytes [start, end) at a stamp.
func (r *rig) seg(start, end, at int64) {
	r.add(r.isn+uint32(start), int(end-start), at)
}

// dated checks the stamps of offsets, given in pairs (end, stamp); a stamp of 0 means that there is none.
func (r *rig) dated(t *testing.T, pairs ...int64) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		at, ok := r.At(pairs[i])
		if want := pairs[i+1]; ok != (want != 0) || ok && at != want {
			t.Errorf("At(%d) = %d %v, want %d", pairs[i], at, ok, want)
		}
	}
}

func (r *rig) marked(t *testing.T, from, to int64, want ...Mark) {
	t.Helper()
	if d := cmp.Diff(want, r.Marks(from, to, nil)); d != "" {
		t.Errorf("Marks(%d, %d): %s", from, to, d)
	}
}

func TestFlowInOrder(t *testing.T) {
	r := newRig(0xfffffffa) // wraps at offset 6
	r.dated(t, 0, 0, 1, 0)
	r.seg(0, 5, 1001)
	r.seg(5, 10, 1002)
	r.seg(10, 11, 1002)
	r.seg(11, 20, 1005)
	r.dated(t, -1, 0, 0, 0, 1, 1001, 5, 1001, 6, 1002, 11, 1002, 12, 1005, 20, 1005, 21, 0)
	r.marked(t, 0, 20, Mark{5, 1001}, Mark{11, 1002}, Mark{20, 1005})
	r.marked(t, 0, 12, Mark{5, 1001}, Mark{11, 1002}, Mark{12, 1005})
	r.marked(t, 5, 11, Mark{11, 1002})
	r.marked(t, 6, 10, Mark{10, 1002})
	r.marked(t, 20, 99)
	r.marked(t, 12, 99, Mark{20, 1005})
	if at, ok := r.Begun(); at != 1000 || !ok || r.Next() != 20 {
		t.Error(at, ok, r.Next())
	}
}

// What is behind a hole counts when the hole is filled, with the stamp of the filling; what had been there keeps its own.
func TestFlowReordered(t *testing.T) {
	r := newRig(100)
	r.seg(0, 10, 1001)
	r.seg(20, 30, 1002)
	r.seg(40, 50, 1003)
	r.seg(15, 45, 1004) // overlaps both, and fills what is between them
	r.dated(t, 10, 1001, 11, 0, 30, 0, 50, 0)
	if r.Next() != 10 {
		t.Error(r.Next())
	}
	r.seg(5, 15, 1010)
	r.seg(20, 30, 1011) // once more
	r.dated(t, 10, 1001, 11, 1010, 15, 1010, 16, 1010, 50, 1010, 51, 0)
	r.marked(t, 0, 50, Mark{10, 1001}, Mark{50, 1010})
	if len(r.late) != 0 {
		t.Error("pieces are left:", r.late)
	}
}

// Processors that stamp side by side may put the filling in late with an early stamp: each byte has the latest stamp of those
// before it.
func TestFlowStampsOutOfOrder(t *testing.T) {
	r := newRig(100)
	r.seg(10, 20, 1005)
	r.seg(20, 30, 1007)
	r.seg(0, 10, 1002)
	r.seg(30, 40, 1006) // on the way it overtook the one before
	r.marked(t, 0, 40, Mark{10, 1002}, Mark{20, 1005}, Mark{40, 1007})
}

// A stamp that is a millisecond or more older says that the wall clock was set back.
func TestFlowClockSetBack(t *testing.T) {
	r := newRig(100)
	r.seg(0, 10, 10*clockStep)
	r.seg(10, 20, 9*clockStep+1)
	r.seg(20, 30, 9*clockStep)
	r.seg(30, 40, 9*clockStep+5)
	r.marked(t, 0, 40, Mark{20, 10 * clockStep}, Mark{30, 9 * clockStep}, Mark{40, 9*clockStep + 5})

	r.seg(50, 60, 9*clockStep+6)
	r.seg(40, 50, 5*clockStep) // what waited has a stamp of the other clock
	r.seg(60, 70, 5*clockStep+1)
	r.finish(r.isn+70, 5*clockStep+2)
	r.marked(t, 40, 70, Mark{60, 0}, Mark{70, 5*clockStep + 1})
	if end, at, ok := r.End(); end != 70 || at != 5*clockStep+2 || !ok {
		t.Error(end, at, ok)
	}
}

func TestFlowKeepAlive(t *testing.T) {
	r := newRig(0)
	r.seg(-1, 0, 1001) // before any data
	r.seg(0, 10, 1002)
	r.seg(9, 10, 1003)
	r.seg(9, 9, 1004)
	r.marked(t, 0, 10, Mark{10, 1002})
	if r.Next() != 10 || r.Stats() != (FlowStats{}) {
		t.Error(r.Next(), r.Stats())
	}
}

// A byte sent into a shut window may have been thrown away. What the sender does next tells.
func TestFlowZeroWindowProbe(t *testing.T) {
	r := newRig(0)
	r.seg(0, 10, 1001)
	r.window(false)
	r.seg(10, 11, 1002)
	r.dated(t, 11, 0)
	r.seg(10, 11, 1003)
	r.window(true)
	r.seg(10, 20, 1004) // sent again: the probes were not taken
	r.marked(t, 0, 20, Mark{10, 1001}, Mark{20, 1004})

	r.window(false)
	r.seg(20, 21, 1005)
	r.seg(21, 30, 1006) // it was taken
	r.marked(t, 20, 30, Mark{21, 1005}, Mark{30, 1006})
	if r.shut {
		t.Error("nine bytes into a shut window")
	}

	r.window(false)
	r.seg(30, 31, 1007)
	r.finish(r.isn+31, 1008) // it was taken
	r.dated(t, 31, 1007)
	if end, at, ok := r.End(); end != 31 || at != 1008 || !ok {
		t.Error(end, at, ok)
	}
}

func TestFlowEnd(t *testing.T) {
	r := newRig(0xffffffff)
	r.seg(0, 10, 1001)
	r.finish(r.isn+20, 1003) // the FIN overtook ten bytes
	if _, _, ok := r.End(); ok {
		t.Error("ended before all was there")
	}
	r.finish(r.isn+20, 1009)
	r.seg(10, 20, 1004)
	if end, at, ok := r.End(); end != 20 || at != 1004 || !ok {
		t.Error(end, at, ok)
	}
	r.seg(19, 20, 1011)
	r.finish(r.isn+20, 1012)
	if end, at, ok := r.End(); end != 20 || at != 1004 || !ok {
		t.Error("the FIN sent again:", end, at, ok)
	}
	if _, ok := r.Reset(); ok {
		t.Error("no RST yet")
	}
	r.reset(1013)
	r.reset(1014)
	if at, ok := r.Reset(); at != 1013 || !ok {
		t.Error(at, ok)
	}
}

// The capture has lost 10..20. What came behind it counts when the reader says that it was delivered.
func TestFlowAssume(t *testing.T) {
	r := newRig(0)
	r.seg(0, 10, 1001)
	r.count++
	r.seg(20, 30, 1003)
	r.seg(30, 40, 1004)
	r.dated(t, 30, 0)
	r.Assume(30, 1005)
	r.marked(t, 0, 40, Mark{10, 1001}, Mark{20, 0}, Mark{30, 1003}, Mark{40, 1004})
	r.dated(t, 10, 1001, 11, 0, 20, 0, 21, 1003, 40, 1004)
	r.seg(40, 50, 1006)
	r.seg(10, 20, 1007) // a second copy changes nothing
	r.Assume(50, 1008)
	r.marked(t, 10, 50, Mark{20, 0}, Mark{30, 1003}, Mark{40, 1004}, Mark{50, 1006})
	if s := r.Stats(); s != (FlowStats{Undated: 10}) {
		t.Error(s)
	}
}

// Where it is not certain that a hole's packet came first, what is behind it is not dated.
func TestFlowAssumeUncertain(t *testing.T) {
	r := newRig(0)
	r.seg(0, 10, 1001)
	r.seg(20, 30, 1003)
	r.Assume(30, 1005) // no loss is known of: it may have been a fragment, and the later one
	r.marked(t, 10, 30, Mark{30, 0})

	r.seg(40, 50, 1010)
	r.count++ // here what filled the hole may have been lost
	r.Assume(50, 1012)
	r.marked(t, 30, 50, Mark{50, 0})

	r.count++
	r.seg(60, 70, 1020)
	r.seg(50, 60, 1030) // it fills the hole; or it is a second copy, and the first came before 60..70
	r.marked(t, 50, 70, Mark{70, 0})

	r.seg(70, 80, 1040)
	r.seg(90, 99, 1041)
	r.seg(80, 90, 1042) // no loss in between: certain
	r.marked(t, 70, 99, Mark{80, 1040}, Mark{99, 1042})

	r.count++
	r.seg(100, 101, 1050) // one byte behind a hole after a loss: perhaps a keep-alive probe's
	r.seg(99, 100, 1051)  // the same, at the end of what is known
	r.seg(100, 110, 1052)
	r.marked(t, 99, 110, Mark{100, 0}, Mark{110, 1052})
}

// The end of the stream was lost: nothing comes behind it.
func TestFlowAssumeTail(t *testing.T) {
	r := newRig(0)
	r.seg(0, 10, 1001)
	r.count++
	r.Assume(25, 1005)
	r.dated(t, 10, 1001, 11, 0, 25, 0, 26, 0)
	if r.Next() != 25 {
		t.Error(r.Next())
	}
	r.seg(10, 25, 1100)
	r.seg(25, 30, 1200)
	r.marked(t, 0, 30, Mark{10, 1001}, Mark{25, 0}, Mark{30, 1200})
	r.Assume(20, 1300) // says nothing new
	r.marked(t, 0, 30, Mark{10, 1001}, Mark{25, 0}, Mark{30, 1200})
}

// A stamp younger than the read of its bytes is a second copy's.
func TestFlowAssumeRefutes(t *testing.T) {
	r := newRig(0)
	r.seg(0, 10, 1001)
	r.Assume(10, 1001)
	r.count++
	r.seg(10, 20, 1300) // came at 1003 for the first time, which the capture lost
	r.seg(20, 30, 1301)
	r.Assume(15, 1010)
	r.marked(t, 0, 30, Mark{10, 1001}, Mark{20, 0}, Mark{30, 1301})
	r.Assume(30, 1301)
	r.marked(t, 0, 30, Mark{10, 1001}, Mark{20, 0}, Mark{30, 1301})
	if s := r.Stats(); s.Undated != 10 {
		t.Error(s)
	}
}

// What one read has confirmed, a later one does not take away, though the wall clock was set back in between.
func TestFlowAssumeAfterClockSetBack(t *testing.T) {
	r := newRig(0)
	r.seg(0, 10, 10*clockStep)
	r.Assume(10, 10*clockStep+1)
	r.seg(10, 20, 3*clockStep)
	r.Assume(20, 3*clockStep-1) // refutes the second
	r.marked(t, 0, 20, Mark{10, 10 * clockStep}, Mark{20, 0})
}

// So much was lost that a sequence number may be anywhere: nothing is dated until the reader tells the place.
func TestFlowLongLoss(t *testing.T) {
	r := newRig(7)
	r.seg(0, 10, 1001)
	r.count++
	const far = int64(6) << 30
	r.seg(far, far+10, 1002)
	r.seg(3<<30, 3<<30+10, 1003)
	r.seg(10+maxAhead, 10+maxAhead+1, 1003)
	if s := r.Stats(); s.Astray != 3 || len(r.late) != 0 {
		t.Error(s, r.late)
	}
	r.Assume(far+20, 1004)
	r.seg(far+20, far+30, 1005)
	r.dated(t, 10, 1001, 11, 0, far+10, 0, far+20, 0, far+21, 1005, far+30, 1005)

	near := newRig(7)
	near.seg(maxAhead-1, maxAhead, 1001) // as far as a window lets a sender be
	if near.Stats().Astray != 0 || len(near.late) != 1 {
		t.Error(near.Stats(), near.late)
	}
}

func TestFlowTrim(t *testing.T) {
	r := newRig(0)
	for i := range int64(10) {
		r.seg(10*i, 10*i+10, 2000+i)
	}
	r.Trim(35)
	r.dated(t, 30, 0, 35, 0, 36, 2003, 41, 2004, 100, 2009)
	r.marked(t, 0, 50, Mark{35, 0}, Mark{40, 2003}, Mark{50, 2004})
	r.marked(t, 0, 20, Mark{20, 0})
	r.marked(t, 35, 40, Mark{40, 2003})
	r.Trim(20)
	r.dated(t, 36, 2003)
	r.Trim(1000)
	r.dated(t, 100, 0)
	r.seg(100, 110, 3000)
	r.dated(t, 101, 3000, 110, 3000)
	r.marked(t, 90, 110, Mark{100, 0}, Mark{110, 3000})
	if len(r.marks) != 1 {
		t.Error(r.marks)
	}
}

// Beyond a bound the oldest marks go, and the flow says so.
func TestFlowBoundOfMarks(t *testing.T) {
	r := newRig(0)
	r.limit = 100
	for i := range int64(100) {
		r.seg(10*i, 10*i+10, 2000+i)
	}
	r.dated(t, 1, 2000)
	if r.Stats().Shed != 0 {
		t.Error(r.Stats())
	}
	r.seg(1000, 1010, 3000)
	r.dated(t, 1, 0, 10, 0, 11, 2001, 1010, 3000)
	if r.Stats().Shed != 1 {
		t.Error(r.Stats())
	}
	for i := range int64(100_000) {
		r.seg(1010+i, 1010+i+1, 4000+i)
	}
	if cap(r.marks) > 300 || len(r.marks)-r.head != 100 {
		t.Errorf("%d marks in %d places", len(r.marks)-r.head, cap(r.marks))
	}
	r.dated(t, 1010+100_000, 4000+99_999, 1010+99_901, 4000+99_900, 1010+99_900, 0)
}

// Beyond a bound pieces behind a hole are dropped, as if the capture had lost them.
func TestFlowBoundOfPieces(t *testing.T) {
	fill := func(n int64) *rig {
		r := newRig(0)
		for i := range n {
			r.seg(10+20*i, 20+20*i, 2000+i)
		}
		return r
	}
	r := fill(maxLate)
	if r.Stats().Dropped != 0 || len(r.late) != maxLate {
		t.Error(r.Stats(), len(r.late))
	}
	for i := range int64(maxLate) {
		r.seg(20*i, 20*i+10, 10_000+i)
	}
	r.dated(t, 20, 10_000, 20*maxLate, 10_000+maxLate-1)

	r = fill(maxLate + 1)
	if r.Stats().Dropped != 1 || len(r.late) != maxLate {
		t.Error(r.Stats(), len(r.late))
	}
	for i := range int64(maxLate + 1) {
		r.seg(20*i, 20*i+10, 10_000+i)
	}
	last := int64(20 * (maxLate + 1))
	if r.Next() != last-10 {
		t.Error(r.Next())
	}
	r.Assume(last, 20_000)
	r.seg(last, last+10, 20_001)
	r.dated(t, last, 0, last+1, 20_001)
}

func TestFlowDoesNotAllocate(t *testing.T) {
	r := newRig(0)
	var at int64
	dst := make([]Mark, 0, 64)
	step := func() {
		for range 10 {
			at += 100
			r.seg(at, at+100, at)
			r.seg(at, at+100, at) // again
		}
		r.Assume(at+100, at)
		dst = r.Marks(at-900, at+100, dst[:0])
		r.Trim(at)
	}
	r.seg(0, 100, 1)
	step()
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
