package client

import (
	"math"
	"sync/atomic"
	"time"
)

// delays is a histogram of how late reads were against their kernel stamps: 8 buckets an octave, from 1 us to 18 minutes.
type delays struct{ count [8 * 30]atomic.Int64 }

const delayFloor = time.Microsecond

// octave returns the bucket of a positive number: its exponent and the first three bits behind its leading one.
func octave(v time.Duration) int { return int(math.Float64bits(float64(v)) >> 49) }

func (d *delays) add(v time.Duration) {
	i := 0
	if v > delayFloor {
		i = min(len(d.count)-1, octave(v)-octave(delayFloor)+1)
	}
	d.count[i].Add(1)
}

// quantile returns the upper bound of the bucket that holds the q-quantile, an eighth above at most; 0 without any.
func (d *delays) quantile(q float64) time.Duration {
	total := int64(0)
	for i := range d.count {
		total += d.count[i].Load()
	}
	if total == 0 {
		return 0
	}
	want, seen := int64(math.Ceil(q*float64(total))), int64(0)
	for i := range d.count {
		if seen += d.count[i].Load(); seen >= want {
			return max(delayFloor, time.Duration(math.Float64frombits(uint64(octave(delayFloor)+i)<<49)))
		}
	}
	panic("client: histogram sums differ")
}
