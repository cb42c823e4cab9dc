package stats

import (
	"cmp"
	"slices"
)

// doubledRanks returns twice the rank (1-based) of each value; equal values share the mean of their ranks, so twice it is whole.
// ties is the sum of t^3 - t over groups of t equal values.
func doubledRanks(xs []float64) (ranks []int, ties float64) {
	order := make([]int, len(xs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(xs[a], xs[b]) })
	ranks = make([]int, len(xs))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && xs[order[to]] == xs[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to
		}
		t := float64(to - from)
		ties += t*t*t - t
		from = to
	}
	return ranks, ties
}

// inversions counts the pairs i < j with ranks[i] > ranks[j], by merging. It sorts ranks; scratch has the same length.
func inversions(ranks, scratch []int) int {
	n := len(ranks)
	if n < 2 {
		return 0
	}
	left, right := ranks[:n/2], ranks[n/2:]
	count := inversions(left, scratch[:n/2]) + inversions(right, scratch[n/2:])
	i, j := 0, 0
	for k := range scratch {
		if j == len(right) || i < len(left) && left[i] <= right[j] {
			scratch[k] = left[i]
			i++
		} else {
			scratch[k] = right[j]
			j++
			count += len(left) - i
		}
	}
	copy(ranks, scratch)
	return count
}
