package client

import (
	"sync"
	"time"
)

// clock turns kernel stamps, which are wall-clock times, into offsets from the epoch, which are monotonic.
//
// Every read brings a pair (wall, monotonic) taken together, so that a stamp's age is the wall time since it, and a step of the
// wall clock between two reads changes nothing. Only a stamp that was taken before a step and read after it needs the offset of
// before; the plausible one of the two is taken.
type clock struct {
	epoch time.Time

	mu         sync.Mutex
	offset     int64         // wall - monotonic, ns
	before     int64         // the offset before the last step
	stepped    bool          // there was a step
	lastBefore time.Duration // last pair seen with the offset before
	firstAfter time.Duration // first pair seen with the present one
	last       time.Duration // last pair seen
	steps      int
	unrepaired int
}

// A wall clock that is slewed moves by at most 0.5 ms/s against the monotonic one; a larger jump between two pairs is a step.
const (
	stepSize  = int64(time.Millisecond)
	slewRate  = 1000                 // 1 part in so many
	stampSlop = 2 * time.Microsecond // a stamp may seem that much later than the read, by rounding
)

// newClock returns a clock that knows the pair of the epoch.
func newClock(epoch time.Time) *clock { return &clock{epoch: epoch, offset: epoch.UnixNano()} }

// now returns the time since the epoch.
func (c *clock) now() time.Duration { return time.Since(c.epoch) }

// pair reads both clocks together. The wall clock is read between two readings of the monotonic one, so that a thread which is
// stopped in between does not pass for a step; where even several tries are torn, the offset of the last good pair is kept.
func (c *clock) pair() (mono time.Duration, wall int64) {
	t := time.Now() // the wall clock, then the monotonic one
	mono, wall = t.Sub(c.epoch), t.UnixNano()
	c.mu.Lock()
	off := wall - int64(mono) - c.offset
	c.mu.Unlock()
	if -pairSlop <= off && off <= pairSlop {
		return mono, wall // as before: neither torn nor stepped
	}
	for range pairTries {
		a := time.Now()
		b := time.Now()
		if width := b.Sub(a); width <= pairWidth {
			return b.Sub(c.epoch), b.UnixNano() + int64(width/2)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	mono = time.Since(c.epoch)
	return mono, int64(mono) + c.offset
}

// A pair is good when it agrees with the one before to pairSlop, or its readings are within pairWidth.
const (
	pairSlop  = int64(2 * time.Microsecond)
	pairTries = 4
	pairWidth = 20 * time.Microsecond
)

// at returns when a stamp was taken, given the pair read just after it and a moment that it cannot precede (the sending of the
// request, the stamp before it). ok is false when the stamp cannot be placed; then the read's own time is returned.
func (c *clock) at(mono time.Duration, wall, stamp int64, notBefore time.Duration) (at time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.see(mono, wall)
	now := time.Duration(stamp - c.offset)
	nowOK := now <= mono+stampSlop
	if !c.stepped || now >= c.firstAfter && nowOK {
		if !nowOK {
			c.unrepaired++
			return mono, false
		}
		return min(now, mono), true
	}
	// the stamp may be from before the step
	nowOK = nowOK && now >= c.lastBefore && now >= notBefore-stampSlop
	then := time.Duration(stamp - c.before)
	thenOK := then <= c.firstAfter && then >= notBefore-stampSlop
	switch {
	case nowOK && !thenOK:
		return min(now, mono), true
	case thenOK && !nowOK:
		return then, true
	default: // both, after a small step, or neither
		c.unrepaired++
		return mono, false
	}
}

// see takes a pair and notices a step.
func (c *clock) see(mono time.Duration, wall int64) {
	offset := wall - int64(mono)
	d := offset - c.offset
	if d < 0 {
		d = -d
	}
	if d > stepSize+int64(max(0, mono-c.last))/slewRate {
		c.before, c.stepped = c.offset, true
		c.lastBefore, c.firstAfter = c.last, mono
		c.steps++
	}
	c.offset = offset
	c.last = max(c.last, mono)
}

func (c *clock) counts() (steps, unrepaired int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps, c.unrepaired
}
