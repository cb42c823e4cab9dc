package tap

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// model is a receiver in its plainest form: it keeps, for each unit of the stream, when that and all before it were there.
type model struct {
	have  []bool
	first []int64 // 0 = not yet
	next  int
}

func newModel(n int) *model { return &model{have: make([]bool, n), first: make([]int64, n)} }

// deliver takes the units [start, end).
func (m *model) deliver(start, end int, at int64) {
	for i := max(0, start); i < end; i++ {
		m.have[i] = true
	}
	for m.next < len(m.have) && m.have[m.next] {
		m.first[m.next] = at
		m.next++
	}
}

// traffic plays a random stream over a network that loses, repeats, cuts anew and reorders, into a model and a flow side by side.
type traffic struct {
	t       *rapid.T
	rng     *rand.Rand // even odds; what rapid draws leans to small numbers
	model   *model
	flow    *rig
	unit    int64 // bytes a unit of the model; large ones make the sequence number wrap many times
	now     int64
	sent    int      // units sent so far
	flying  [][2]int // on the way
	window  int      // how far the sender goes ahead
	repeats bool     // also sends again what had arrived

	drops   float64 // share of packets that the capture loses
	dropped bool    // some were, and the table has not heard of it
	any     bool    // some were, ever
}

func newTraffic(t *rapid.T, drops float64) *traffic {
	n := rapid.IntRange(1, 150).Draw(t, "units")
	isn := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(1<<32-200, 1<<32-1), rapid.Just(uint32(0))).Draw(t, "isn")
	tr := &traffic{t: t, model: newModel(n), flow: newRig(isn), now: 1000, drops: drops}
	tr.rng = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	units := []int64{1, 2, 1448, 60 << 20}
	if drops > 0 {
		units[3] = 1 << 20 // what the capture loses in a row stays within a window
	}
	tr.unit = rapid.SampledFrom(units).Draw(t, "unit")
	tr.window = rapid.IntRange(1, 12).Draw(t, "window") // at 60 MiB a unit just within the reach of a window
	return tr
}

// between is a number from lo to hi.
func (tr *traffic) between(lo, hi int) int { return lo + tr.rng.IntN(hi-lo+1) }

// step does one thing that a network does.
func (tr *traffic) step() {
	tr.now += tr.rng.Int64N(4)
	switch tr.rng.IntN(12) {
	case 0: // lost on the way
		tr.send()
	case 1, 2: // takes a longer way
		if s, ok := tr.send(); ok {
			tr.flying = append(tr.flying, s)
		}
	case 3:
		tr.land()
	case 4: // something around what is missing, or what had arrived, once more
		if tr.sent == 0 {
			return
		}
		start := tr.between(max(0, tr.model.next-3), tr.sent-1)
		end := tr.between(start+1, min(tr.sent, start+5))
		if tr.repeats || !tr.arrived(start, end) {
			tr.arrive(start, end)
		}
	case 5: // keep-alive, which is sent when all has arrived
		if tr.repeats && tr.sent == tr.model.next && len(tr.flying) == 0 {
			end := int64(tr.sent) * tr.unit
			tr.capture(end-1, end-tr.rng.Int64N(2))
		}
	default:
		if s, ok := tr.send(); ok {
			tr.arrive(s[0], s[1])
		}
	}
}

// arrived tells whether one of the units has.
func (tr *traffic) arrived(start, end int) bool {
	for i := start; i < end; i++ {
		if tr.model.have[i] {
			return true
		}
	}
	return false
}

// send makes the next segment, if the window has room.
func (tr *traffic) send() (s [2]int, ok bool) {
	room := min(len(tr.model.have), tr.model.next+tr.window) - tr.sent
	if room <= 0 {
		return s, false
	}
	s = [2]int{tr.sent, tr.sent + tr.between(1, min(room, 4))}
	tr.sent = s[1]
	return s, true
}

// land lets one of those on the way arrive.
func (tr *traffic) land() {
	if len(tr.flying) == 0 {
		return
	}
	i := tr.rng.IntN(len(tr.flying))
	s := tr.flying[i]
	tr.flying = append(tr.flying[:i], tr.flying[i+1:]...)
	if s[0] > tr.model.next-4 && (tr.repeats || !tr.arrived(s[0], s[1])) { // packets do not live longer
		tr.arrive(s[0], s[1])
	}
}

// finish sends what is missing, in order, until all has arrived.
func (tr *traffic) finish() {
	for tr.model.next < len(tr.model.have) {
		tr.now++
		end := tr.model.next + 1
		for end < len(tr.model.have) && end < tr.model.next+4 && !tr.model.have[end] {
			end++
		}
		tr.sent = max(tr.sent, end)
		tr.arrive(tr.model.next, end)
	}
}

// arrive delivers a segment, and lets the capture see it or not.
func (tr *traffic) arrive(start, end int) {
	tr.model.deliver(start, end, tr.now)
	tr.capture(int64(start)*tr.unit, int64(end)*tr.unit)
}

func (tr *traffic) capture(start, end int64) {
	if tr.drops > 0 && tr.rng.Float64() < tr.drops {
		tr.dropped, tr.any = true, true
		return
	}
	tr.tell()
	tr.flow.seg(start, end, tr.now)
}

// tell reports a loss, as a Tap does before the packet behind it or when the ring is empty.
func (tr *traffic) tell() {
	if tr.dropped {
		tr.flow.count++
		tr.dropped = false
	}
}

// check compares every unit with the model, at its first and last byte, and the marks with both.
func (tr *traffic) check(all bool) (dated int) {
	f, t := tr.flow, tr.t
	marks := f.Marks(0, 1<<62, nil)
	k := 0
	for i := range tr.model.have {
		want := tr.model.first[i]
		for _, end := range []int64{int64(i)*tr.unit + 1, int64(i+1) * tr.unit} {
			at, ok := f.At(end)
			switch {
			case ok && at != want:
				t.Fatalf("At(%d) = %d, was there at %d", end, at, want)
			case ok:
				dated++
			case all && want != 0:
				t.Fatalf("At(%d) is not known, was there at %d", end, want)
			}
			if end > f.Next() {
				if ok {
					t.Fatalf("At(%d) = %d beyond %d", end, at, f.Next())
				}
				continue
			}
			for marks[k].End < end {
				k++
			}
			if marks[k].Dated() != ok || marks[k].At != at {
				t.Fatalf("mark %+v, At(%d) = %d %v", marks[k], end, at, ok)
			}
		}
	}
	var last Mark
	for _, m := range marks {
		if m.End <= last.End || m.Dated() && m.At < last.At {
			t.Fatalf("marks do not ascend: %+v", marks)
		}
		last.End = m.End
		if m.Dated() {
			last.At = m.At
		}
	}
	if f.Stats().Dropped+f.Stats().Astray+f.Stats().Shed > 0 {
		t.Fatalf("%+v", f.Stats())
	}
	return dated
}

// Reordering, loss, repetition and overlap at any place of the sequence numbers: every byte has exactly the time at which it and
// all before it were there.
func TestFlowAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTraffic(t, 0)
		tr.repeats = true
		for range 100 {
			tr.step()
			tr.check(true)
			if want := int64(tr.model.next) * tr.unit; tr.flow.Next() != want {
				t.Fatalf("Next %d, want %d", tr.flow.Next(), want)
			}
		}
		tr.finish()
		if got, want := tr.check(true), 2*len(tr.model.have); got != want {
			t.Fatalf("%d of %d are dated", got, want)
		}
	})
}

// The same with a reader that tells how far it has read: nothing changes while the capture loses nothing.
func TestFlowAssumeChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr := newTraffic(t, 0)
		tr.repeats = true
		for range 100 {
			tr.step()
			if tr.model.next > 0 {
				read := tr.between(0, tr.model.next)
				tr.flow.Assume(int64(read)*tr.unit, tr.now)
			}
			tr.check(true)
		}
		tr.finish()
		tr.check(true)
	})
}

// A capture that loses packets: no stamp is ever wrong, and the flow goes on. The reader is late, and reads now and then up to
// any place. The peer sends again only what had not arrived: what it repeats although it had is the one thing that a late reader
// cannot tell.
func TestFlowLossyCaptureLateReader(t *testing.T) {
	dated, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tr := newTraffic(t, rapid.SampledFrom([]float64{0.02, 0.1, 0.4}).Draw(t, "drops"))
		lossy(tr, func() {
			if tr.rng.IntN(6) == 0 && tr.model.next > 0 {
				tr.tell()
				tr.flow.Assume(int64(tr.between(1, tr.model.next))*tr.unit, tr.now)
			}
		})
		dated += tr.check(false)
		all += 2 * len(tr.model.have)
	})
	t.Logf("%d of %d offsets are dated", dated, all)
	if dated < all/4 {
		t.Errorf("%d of %d offsets are dated: too careful to be of use", dated, all)
	}
}

// The same with a reader that reads at once, and a peer that repeats whatever it likes.
func TestFlowLossyCapturePromptReader(t *testing.T) {
	dated, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tr := newTraffic(t, rapid.SampledFrom([]float64{0.02, 0.1, 0.4}).Draw(t, "drops"))
		tr.repeats = true
		read := 0
		lossy(tr, func() {
			if tr.model.next > read {
				read = tr.model.next
				tr.tell()
				tr.flow.Assume(int64(read)*tr.unit, tr.now)
			}
		})
		dated += tr.check(false)
		all += 2 * len(tr.model.have)
	})
	t.Logf("%d of %d offsets are dated", dated, all)
	if dated < all/2 {
		t.Errorf("%d of %d offsets are dated: too careful to be of use", dated, all)
	}
}

// lossy plays a stream over a lossy capture, checking all the time that no stamp is wrong, and afterwards that the flow still
// works.
func lossy(tr *traffic, reader func()) {
	for range 100 {
		tr.step()
		reader()
		tr.check(!tr.any)
	}
	for tr.model.next < len(tr.model.have) {
		tr.now += 2
		end := tr.model.next + 1
		for end < len(tr.model.have) && end < tr.model.next+4 && !tr.model.have[end] {
			end++
		}
		tr.sent = max(tr.sent, end)
		tr.arrive(tr.model.next, end)
		reader()
		tr.check(!tr.any)
	}
	n := int64(len(tr.model.have)) * tr.unit
	tr.tell()
	tr.flow.Assume(n, tr.now)
	if tr.flow.Next() != n {
		tr.t.Fatalf("Next %d, want %d", tr.flow.Next(), n)
	}
	// an undisturbed end is dated
	tr.flow.seg(n, n+2, tr.now+1)
	tr.flow.seg(n+2, n+3, tr.now+2)
	if at, ok := tr.flow.At(n + 2); !ok || at != tr.now+1 {
		tr.t.Fatalf("after the losses: %d %v", at, ok)
	}
	if at, ok := tr.flow.At(n + 3); !ok || at != tr.now+2 {
		tr.t.Fatalf("after the losses: %d %v", at, ok)
	}
}
