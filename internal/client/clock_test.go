package client

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const hour = int64(time.Hour)

// A step of the wall clock changes no time: durations come from the monotonic clock (cases/README.md, check 7).
func TestClockStep(t *testing.T) {
	for _, step := range []int64{hour, -hour, int64(5 * time.Millisecond), -int64(2 * time.Second)} {
		offset := int64(1_700_000_000_000_000_000)
		// a stamp every 10 ms, read 30 us later; the wall clock steps in between, just before the read, or between reads
		wall := func(mono, stepAt time.Duration) int64 {
			if stepAt >= 0 && mono >= stepAt {
				return offset + step + int64(mono)
			}
			return offset + int64(mono)
		}
		for _, s := range []time.Duration{0, 495 * time.Millisecond, 700*time.Millisecond + 10*time.Microsecond} {
			c, stepAt := newClock(time.Unix(0, offset)), s
			if s == 0 {
				stepAt = -1
			}
			last, given := time.Duration(0), 0
			for i := range 200 {
				stamped := time.Duration(i) * 10 * time.Millisecond
				read := stamped + 30*time.Microsecond
				at, ok := c.at(read, wall(read, stepAt), wall(stamped, stepAt), last)
				if small := step > -int64(10*time.Millisecond) && step < int64(10*time.Millisecond); !ok && small && at == read {
					given++ // before or after the step: both would be plausible, so the read's own time is taken
				} else if at != stamped || !ok {
					t.Fatalf("step %v at %v: stamp of %v placed at %v (ok %v)", time.Duration(step), stepAt, stamped, at, ok)
				}
				last = at
			}
			want := 1
			if s == 0 {
				want = 0
			}
			if steps, bad := c.counts(); steps != want || bad != given || given > 1 {
				t.Errorf("step %v at %v: %d steps noticed, %d not repaired", time.Duration(step), s, steps, bad)
			}
		}
	}
}

// Several steps in any order, stamps of any age: a placed time is the true one, or the stamp is given up and the read's time taken.
func TestClockStepsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		offset := int64(1e18)
		c := newClock(time.Unix(0, offset))
		mono, last := time.Duration(0), time.Duration(0)
		for range rapid.IntRange(5, 60).Draw(t, "reads") {
			mono += time.Duration(rapid.Int64Range(1_000, int64(20*time.Millisecond)).Draw(t, "gap"))
			age := time.Duration(rapid.Int64Range(0, 900).Draw(t, "age"))
			stamped := mono - age
			stamp := offset + int64(stamped)
			if rapid.IntRange(0, 9).Draw(t, "step?") == 0 { // between the stamp and its read
				offset += rapid.SampledFrom([]int64{hour, -hour, int64(time.Second), -int64(time.Second)}).Draw(t, "step")
			}
			at, ok := c.at(mono, offset+int64(mono), stamp, last)
			if ok && at != stamped {
				t.Fatalf("placed at %v, true %v", at, stamped)
			}
			if !ok && at != mono {
				t.Fatalf("given up, but placed at %v in place of %v", at, mono)
			}
			last = at
		}
	})
}

// NTP slews the wall clock by up to 0.5 ms/s: no step.
func TestClockSlew(t *testing.T) {
	c := newClock(time.Unix(0, 1e18))
	for i := range 100 {
		mono := time.Duration(i+1) * 10 * time.Second
		wall := int64(1e18) + int64(mono) + int64(mono)/2000
		if at, ok := c.at(mono, wall, wall-50_000, 0); !ok || at != mono-50*time.Microsecond {
			t.Fatal(at, ok)
		}
	}
	if steps, _ := c.counts(); steps != 0 {
		t.Errorf("%d steps", steps)
	}
}

// A stamp from the future cannot be right.
func TestClockFutureStamp(t *testing.T) {
	c := newClock(time.Unix(0, 5e18).Add(-time.Second))
	if at, ok := c.at(time.Second, 5e18, 5e18+1_000_000, 0); ok || at != time.Second {
		t.Error(at, ok)
	}
}
