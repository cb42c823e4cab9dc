package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// maxExact is the size of both samples together up to which rank tests count all permutations: the count of 100 values takes some
// 20 million additions, and beyond it the normal approximation is good to 1 %.
const maxExact = 100

// RankTest is the result of a Mann-Whitney test.
type RankTest struct {
	U     float64 // pairs in which x is the larger, ties counted half
	P     float64 // two-sided
	Exact bool    // counted; otherwise by the normal approximation
}

// MannWhitney tests whether one of two independent samples tends to be larger, such as one number from each run of two systems.
// Up to 100 values together P is exact, also with ties: the share of all ways to deal the pooled values into two samples that
// leave U as far from its mean or farther. Above, it is the normal approximation with corrections for ties and continuity. It
// is undefined when a sample is empty. Samples of 3 and 3 cannot reach P < 0.05: see MannWhitneyMinP.
func MannWhitney(x, y []float64) (t RankTest, ok bool) {
	if !usable(x, y) {
		return RankTest{}, false
	}
	r := newRankNull(x, y)
	return RankTest{U: float64(r.u2) / 2, P: r.twoSided(), Exact: r.counts != nil}, true
}

// MannWhitneyMinP returns the smallest two-sided P that samples of m and n values can give: 2 m! n! / (m+n)!, at most 1.
// It is undefined when a sample is empty.
func MannWhitneyMinP(m, n int) (p float64, ok bool) {
	if m < 1 || n < 1 {
		return 0, false
	}
	few, many := min(m, n), max(m, n)
	p = 2
	for i := 1; i <= few && p > 0; i++ {
		p *= float64(i) / float64(many+i)
	}
	return min(1, p), true
}

func usable(x, y []float64) bool { return len(x) > 0 && len(y) > 0 && finite(x) && finite(y) }

// rankNull is twice U of two samples together with the distribution that it has when all dealings of the pooled values are alike.
type rankNull struct {
	u2     int       // 2 U, a whole number also with ties
	mn     int       // its mean
	counts []float64 // number of dealings (up to a factor) that give 2 U = index; nil when too many to count
	sd2    float64   // standard deviation of 2 U, for the normal approximation
}

func newRankNull(x, y []float64) rankNull {
	ranks, ties := doubledRanks(slices.Concat(x, y))
	r := rankNull{mn: len(x) * len(y), u2: -len(x) * (len(x) + 1)}
	for _, k := range ranks[:len(x)] {
		r.u2 += k
	}
	total := float64(len(ranks))
	if len(ranks) > 1 {
		r.sd2 = math.Sqrt(float64(r.mn) / 3 * (total + 1 - ties/(total*(total-1))))
	}
	if len(ranks) <= maxExact {
		slices.Sort(ranks)
		r.counts = countU(ranks, len(x))
	}
	return r
}

// countU counts the dealings of sorted values, given as ranks, into a first sample of m and the rest, by twice their U. Groups
// of equal values are dealt one after the other: c of a group of t, when k of the values before it are in the first sample, add
// c * (2*(before-k) + t-c) to 2 U and can be chosen in binomial(t, c) ways.
func countU(ranks []int, m int) []float64 {
	n := len(ranks) - m
	byTaken := make([][]float64, m+1) // [values in the first sample][2 U]
	for k := range byTaken {
		byTaken[k] = make([]float64, 2*m*n+1)
	}
	byTaken[0][0] = 1
	for from := 0; from < len(ranks); {
		to := from + 1
		for to < len(ranks) && ranks[to] == ranks[from] {
			to++
		}
		t := to - from
		for k := min(m, to); k > 0; k-- { // downwards: smaller k still hold the counts without this group
			ways := 1.0
			for c := 1; c <= min(t, k); c++ {
				ways = ways * float64(t-c+1) / float64(c)
				before := from - (k - c) // of the second sample
				if before < 0 || before > n {
					continue
				}
				step := c * (2*before + t - c)
				for u, count := range byTaken[k-c][:max(0, 2*m*n+1-step)] {
					byTaken[k][u+step] += ways * count
				}
			}
		}
		from = to
	}
	return byTaken[m]
}

// share sums the part of the dealings whose 2 U fulfils the condition.
func (r *rankNull) share(in func(u2 int) bool) float64 {
	some, all := 0.0, 0.0
	for u2, count := range r.counts {
		all += count
		if in(u2) {
			some += count
		}
	}
	return some / all
}

func (r *rankNull) twoSided() float64 {
	far := max(r.u2-r.mn, r.mn-r.u2)
	if r.counts != nil {
		return r.share(func(u2 int) bool { return max(u2-r.mn, r.mn-u2) >= far })
	}
	if far == 0 || r.sd2 == 0 {
		return 1
	}
	return twoSided(r.z(far))
}

// z is a distance of 2 U from its mean in standard deviations, half a step of U nearer for continuity.
func (r *rankNull) z(distance int) float64 { return float64(distance-1) / r.sd2 }

// atLeast is the one-sided p value P(U >= observed).
func (r *rankNull) atLeast() float64 {
	if r.counts != nil {
		return r.share(func(u2 int) bool { return u2 >= r.u2 })
	}
	if r.sd2 == 0 {
		return 1
	}
	return distuv.UnitNormal.CDF(-r.z(r.u2 - r.mn))
}

// Shift is how far one sample lies above another.
type Shift struct {
	Shift      float64  // median of all differences y_j - x_i (Hodges and Lehmann)
	CI         Interval // infinite when the samples are too small for the confidence
	Confidence float64  // what CI really covers if there are no ties: at least what was asked (nearly so above 100 values)
	K          int      // CI is from the K-th smallest to the K-th largest difference; 0 when it is infinite
}

// HodgesLehmann estimates by how much sample y lies above sample x, with the interval that Mann-Whitney's test gives. For a
// ratio, give it logarithms. It is undefined when a sample is empty.
func HodgesLehmann(x, y []float64, confidence float64) (s Shift, ok bool) {
	if !usable(x, y) || !fraction(confidence) {
		return Shift{}, false
	}
	d := newDifferences(x, y)
	pairs := len(x) * len(y)
	s.Shift = (d.kth((pairs+1)/2) + d.kth(pairs/2+1)) / 2
	s.CI = Interval{math.Inf(-1), math.Inf(1)}
	s.K, s.Confidence = shiftOrder(len(x), len(y), confidence)
	if s.K > 0 {
		s.CI = Interval{d.kth(s.K), d.kth(pairs + 1 - s.K)}
	}
	return s, true
}

// shiftOrder returns the largest k with 2 P(U <= k-1) <= 1 - confidence for samples without ties, and 1 - 2 P(U <= k-1).
func shiftOrder(m, n int, confidence float64) (k int, covered float64) {
	tail := (1 - confidence) / 2
	if m+n > maxExact {
		mean, sd := float64(m)*float64(n)/2, math.Sqrt(float64(m)*float64(n)*float64(m+n+1)/12)
		k = int(mean + 0.5 + distuv.UnitNormal.Quantile(tail)*sd)
		if k < 1 {
			return 0, 1
		}
		return k, 1 - 2*distuv.UnitNormal.CDF((float64(k)-0.5-mean)/sd)
	}
	ranks := make([]int, m+n)
	for i := range ranks {
		ranks[i] = i
	}
	counts := countU(ranks, m)
	all, below := 0.0, 0.0
	for _, c := range counts {
		all += c
	}
	for u := 0; 2*u < len(counts); u++ { // without ties 2 U is even
		if next := below + counts[2*u]; next/all <= tail {
			below, k = next, u+1
			continue
		}
		break
	}
	return k, 1 - 2*below/all
}

// differences are all y_j - x_i of two samples, without storing them.
type differences struct {
	x, y []float64 // ascending
}

func newDifferences(x, y []float64) differences {
	return differences{slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y))}
}

// kth returns the k-th smallest difference (1-based). It halves the range of floating-point numbers, counting the differences
// up to the middle in one pass over both samples: 64 passes at most, whatever the number of pairs.
func (d differences) kth(k int) float64 {
	lo := ordinal(d.y[0] - d.x[len(d.x)-1])
	hi := ordinal(d.y[len(d.y)-1] - d.x[0])
	for lo < hi {
		mid := lo + (hi-lo)/2
		if d.upTo(fromOrdinal(mid)) >= k {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return fromOrdinal(lo) + 0 // -0 becomes 0
}

// upTo counts the differences <= limit.
func (d differences) upTo(limit float64) int {
	count, i := 0, 0
	for _, y := range d.y {
		for i < len(d.x) && y-d.x[i] > limit {
			i++
		}
		count += len(d.x) - i
	}
	return count
}

// ordinal numbers the floating-point numbers in ascending order; fromOrdinal is its inverse.
func ordinal(f float64) uint64 {
	b := math.Float64bits(f)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func fromOrdinal(o uint64) float64 {
	if o>>63 == 1 {
		return math.Float64frombits(o &^ (1 << 63))
	}
	return math.Float64frombits(^o)
}

// Holm returns the p values of several tests adjusted for their number (Holm 1979), in the order given: with alpha, all tests
// whose adjusted p is <= alpha may be called significant, and the chance that any of these is a false alarm is at most alpha. A
// p outside 0..1 makes the result undefined.
func Holm(ps []float64) (adjusted []float64, ok bool) {
	order := make([]int, len(ps))
	for i, p := range ps {
		if !(p >= 0 && p <= 1) {
			return nil, false
		}
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case ps[a] < ps[b]:
			return -1
		case ps[a] > ps[b]:
			return 1
		}
		return a - b
	})
	adjusted = make([]float64, len(ps))
	last := 0.0
	for i, at := range order {
		last = max(last, min(1, float64(len(ps)-i)*ps[at]))
		adjusted[at] = last
	}
	return adjusted, true
}

// Equivalent returns the p value of the claim that the shift of y against x is inside (-margin, margin): the larger of two
// one-sided Mann-Whitney tests, of y + margin lying above x and of y - margin lying below. A small p says "the same within the
// margin"; a large p of MannWhitney never does. For a margin of 5 %, give logarithms and log(1.05). It is undefined when a
// sample is empty or the margin is not above 0. Samples of 3 and 3 reach p = 0.05 at best.
func Equivalent(x, y []float64, margin float64) (p float64, ok bool) {
	if !usable(x, y) || !(margin > 0 && margin <= maxMagnitude) {
		return 0, false
	}
	up, down := make([]float64, len(y)), make([]float64, len(y))
	for i, v := range y {
		up[i], down[i] = v+margin, v-margin
	}
	above := newRankNull(up, x) // U counts pairs in which y + margin is the larger
	below := newRankNull(x, down)
	return max(above.atLeast(), below.atLeast()), true
}
