package plot

import (
	"math"
	"sort"
)

// Bin is one bar of a histogram: how much lies in [From, To).
type Bin struct {
	From, To float64
	Y        float64
}

// Histogram counts an ascending sample in at most so many bins (2 or more) of equal width, whose ends are round numbers. With log the widths
// are equal on a logarithmic axis; it needs values above 0 and is ignored otherwise. Every value is in exactly one bin.
func Histogram(sorted []float64, most int, log bool) []Bin {
	sorted = drawable(sorted)
	if len(sorted) == 0 || most < 2 {
		return nil
	}
	lo, hi := sorted[0], sorted[len(sorted)-1]
	var edges []float64
	switch {
	case log && lo > 0 && floor125(lo) < ceil125(hi):
		from, to := floor125(lo), ceil125(hi)
		for i := 0; i <= most; i++ {
			edges = append(edges, from*math.Pow(to/from, float64(i)/float64(most)))
		}
		edges[most] = to
	case hi-lo <= narrowest*math.Abs(hi):
		half := max(math.Abs(lo)*0.05, 0.5*math.Pow10(-3))
		edges = []float64{lo - half, lo + half}
	default:
		for n := most; ; n-- {
			_, step := linearTicks(lo, hi, n)
			first, last := math.Floor(lo/step), math.Floor(hi/step)+1
			if n == 1 || last-first <= float64(most) { // the ends may lie outside of the ticks
				edges = multiples(step, first*step, last*step)
				break
			}
		}
	}
	bins := make([]Bin, len(edges)-1)
	for i := range bins {
		bins[i] = Bin{From: edges[i], To: edges[i+1]}
	}
	for _, v := range sorted {
		i := sort.Search(len(bins), func(i int) bool { return bins[i].To > v })
		bins[min(i, len(bins)-1)].Y++
	}
	return bins
}

// ECDF returns the share of an ascending sample that is at or below each value, as the upper corners of its steps: at most so many,
// evenly spread over the sample, the smallest and the largest always among them.
func ECDF(sorted []float64, most int) []Point {
	sorted = drawable(sorted)
	n := len(sorted)
	if n == 0 || most < 2 {
		return nil
	}
	out := []Point{{sorted[0], 0}}
	for k := range min(n, most) {
		i := k
		if n > most {
			i = k * (n - 1) / (most - 1)
		}
		v := sorted[i]
		upto := sort.Search(n, func(i int) bool { return sorted[i] > v }) // equal values have one share
		p := Point{v, float64(upto) / float64(n)}
		if out[len(out)-1] != p {
			out = append(out, p)
		}
	}
	return out
}

// drawable cuts what cannot be drawn off both ends of an ascending sample (NaN sorts to the front).
func drawable(sorted []float64) []float64 {
	from := sort.Search(len(sorted), func(i int) bool { return sorted[i] >= -largest })
	to := sort.Search(len(sorted), func(i int) bool { return sorted[i] > largest })
	return sorted[min(from, to):to]
}
