package stats

import (
	"math"
	"slices"
)

// Between these lengths a radix sort is faster than comparing (6,000 values: 56 us in place of 263; 400,000: 4 ms in place of 30); above, its second array would be
// too much memory.
const (
	radixLeast = 1 << 11
	radixMost  = 1 << 22
)

// Sort puts values in ascending order, -0 before 0. None may be NaN.
func Sort(xs []float64) {
	if len(xs) < radixLeast || len(xs) > radixMost {
		slices.Sort(xs)
		return
	}
	const bits, digits = 11, 6 // 6 digits of 11 bits hold 64 bits
	var counts [digits][1 << bits]int32
	for _, x := range xs {
		key := ordered(x)
		for d := range digits {
			counts[d][key>>(d*bits)&(1<<bits-1)]++
		}
	}
	from, to := xs, make([]float64, len(xs))
	for d := range digits {
		c := &counts[d]
		if int(c[ordered(xs[0])>>(d*bits)&(1<<bits-1)]) == len(xs) {
			continue // all have this digit
		}
		place := int32(0)
		for i, n := range c {
			c[i] = place
			place += n
		}
		for _, x := range from {
			digit := ordered(x) >> (d * bits) & (1<<bits - 1)
			to[c[digit]] = x
			c[digit]++
		}
		from, to = to, from
	}
	if &from[0] != &xs[0] {
		copy(xs, from)
	}
}

// ordered maps a float to an integer of the same order.
func ordered(x float64) uint64 {
	b := math.Float64bits(x)
	return b ^ (uint64(int64(b)>>63) | 1<<63) // negative ones: all bits; the others: the sign
}
