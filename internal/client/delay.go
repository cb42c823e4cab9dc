package client

import (
	"math"
	"sync/atomic"
	"time"
)

// delays is a histogram of how late reads were against their kernel stamps: 8 buckets an octave, from 1 us to 18 minutes.
type delays struct{ count [8 * 30]atomic.Int64 }

const delayFloor = time.Microsecond

func (d *delays) add(v time.Duration) {
	i := 0
	if v > delayFloor {
		i = min(len(d.count)-1, int(math.Log2(float64(v)/float64(delayFloor))*8)+1)
	}
	d.count[i].Add(1)
}

// quantile returns the upper bound of the bucket that holds the q-quantile, 9 % above at most; 0 without any.
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
			return time.Duration(float64(delayFloor) * math.Exp2(float64(i)/8))
		}
	}
	panic("client: histogram sums differ")
}
