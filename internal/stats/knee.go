package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Kneedle returns the index of the knee of a curve that rises and flattens, such as throughput over concurrency (Satopaa et al.
// 2011): both axes are scaled to 0..1, d = y - x, and the knee is the first local maximum of d from which d falls below
// d_max - sensitivity * mean(step of x) before it reaches another one. To look at doublings, give it logarithms of x.
// The knee is where the curve bends most, not where it peaks; on a Universal Scalability curve it lies well below the peak.
// ok is false when there is no knee, below 3 points, and unless x ascends, y varies and sensitivity is not negative.
func Kneedle(x, y []float64, sensitivity float64) (at int, ok bool) {
	if len(x) < 3 || len(y) != len(x) || !finite(x) || !finite(y) || !(sensitivity >= 0) {
		return 0, false
	}
	for i := range x[1:] {
		if x[i+1] <= x[i] {
			return 0, false
		}
	}
	last := len(x) - 1
	low, high := slices.Min(y), slices.Max(y)
	if low == high {
		return 0, false
	}
	d := make([]float64, len(x))
	for i := range d {
		d[i] = (y[i]-low)/(high-low) - (x[i]-x[0])/(x[last]-x[0])
	}
	step := 1 / float64(last) // the mean step of scaled x
	candidate, threshold := -1, 0.0
	for i := 1; i < last; i++ {
		if d[i] > d[i-1] && d[i] >= d[i+1] { // local maximum; of a flat one, its begin
			candidate, threshold = i, d[i]-sensitivity*step
		}
		if candidate >= 0 && d[i+1] < threshold {
			return candidate, true
		}
	}
	return 0, false
}

// minLevels is how many different loads a fit of three parameters needs to say anything about its own error.
const minLevels = 6

// USL is Gunther's Universal Scalability Law: throughput X(N) = Lambda N / (1 + Sigma (N-1) + Kappa N (N-1)).
type USL struct {
	Lambda float64 // throughput at N = 1, above 0
	Sigma  float64 // contention: share of the work that is serial, >= 0
	Kappa  float64 // coherence: cost of each pair, >= 0
	Max    float64 // largest N that it was fitted to
}

// At returns the throughput at concurrency n >= 1.
func (u USL) At(n float64) float64 {
	return u.Lambda * n / (1 + u.Sigma*(n-1) + u.Kappa*n*(n-1))
}

// peakReach is how far beyond the largest measured load a peak is believed, as a factor. Farther out the curve has not begun to
// bend.
const peakReach = 10

// Peak returns the concurrency of highest throughput, N* = sqrt((1-Sigma)/Kappa), at least 1. ok is false when the curve has no
// peak, or none within ten times the largest measured load; Saturation then bounds the throughput.
func (u USL) Peak() (n float64, ok bool) {
	if u.Sigma >= 1 {
		return 1, true
	}
	if !(u.Kappa > 0) {
		return 0, false
	}
	n = max(1, math.Sqrt((1-u.Sigma)/u.Kappa))
	return n, n <= peakReach*u.Max
}

// Saturation returns the throughput that a curve without a peak approaches, Lambda/Sigma. ok is false when it is not bounded.
func (u USL) Saturation() (x float64, ok bool) {
	if !(u.Sigma > 0) {
		return 0, false
	}
	x = u.Lambda / u.Sigma
	return x, !math.IsInf(x, 0)
}

// FitUSL fits the law to throughputs x at concurrencies n >= 1, by least squares of x, with Sigma and Kappa held at or above 0.
// Levels may repeat. It is undefined below 6 different levels and unless all x are above 0.
//
// N/X = 1/Lambda + Sigma/Lambda (N-1) + Kappa/Lambda N(N-1) is linear: weighted with X^2/N, the error of N/X counts as that of
// X, which gives the start. Gauss-Newton steps in these three coefficients follow, each the exact solution under the bounds.
func FitUSL(n, x []float64) (u USL, ok bool) {
	if len(n) != len(x) || !finite(n) || !finite(x) {
		return USL{}, false
	}
	levels := slices.Compact(slices.Sorted(slices.Values(n)))
	if len(levels) < minLevels || levels[0] < 1 || slices.Min(x) <= 0 {
		return USL{}, false
	}
	rows := make([][3]float64, len(n))
	for i, l := range n {
		rows[i] = [3]float64{1, l - 1, l * (l - 1)}
	}
	fitted := func(c [3]float64, i int) float64 { return n[i] / dot(c, rows[i]) }
	misfit := func(c [3]float64) float64 {
		sum := 0.0
		for i := range x {
			r := x[i] - fitted(c, i)
			sum += float64(r * r)
		}
		return sum
	}

	weights, target := make([]float64, len(n)), make([]float64, len(n))
	for i := range n {
		weights[i] = x[i] * x[i] / n[i]
		target[i] = x[i]
	}
	c, ok := boundedSquares(rows, weights, target)
	if !ok {
		return USL{}, false
	}
	best := misfit(c)
	for range maxFitSteps {
		for i := range n {
			f := fitted(c, i)
			weights[i] = f * f / n[i]
			target[i] = 2*f - x[i] // weight * row . c is f itself
		}
		next, ok := boundedSquares(rows, weights, target)
		if !ok {
			break
		}
		found, sum := shorten(c, next, best, misfit)
		if !(sum < best) {
			break
		}
		c, best = found, sum
	}
	u = USL{Lambda: 1 / c[0], Sigma: c[1] / c[0], Kappa: c[2] / c[0], Max: levels[len(levels)-1]}
	return u, finite([]float64{u.Lambda, u.Sigma, u.Kappa})
}

const (
	maxFitSteps = 100 // Gauss-Newton needs about 5; noise far from the law may need more
	maxHalvings = 30  // of one step, to a billionth
)

// shorten halves the step from c to next until the sum of squares falls below best.
func shorten(c, next [3]float64, best float64, misfit func([3]float64) float64) ([3]float64, float64) {
	for range maxHalvings {
		if s := misfit(next); s < best {
			return next, s
		}
		for j := range next {
			next[j] = c[j] + (next[j]-c[j])/2
		}
	}
	return c, best
}

func dot(a, b [3]float64) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

// boundedSquares returns the c that makes sum (weight * row . c - target)^2 smallest with c[0] > 0, c[1] >= 0 and c[2] >= 0.
// The problem is convex: the best of the four solutions with c[1] and c[2] free or 0 that fulfil the bounds is the answer.
func boundedSquares(rows [][3]float64, weights, target []float64) (best [3]float64, ok bool) {
	least := math.Inf(1)
	for _, free := range [][]int{{0, 1, 2}, {0, 1}, {0, 2}, {0}} {
		c, solved := leastSquares(rows, weights, target, free)
		if !solved || !(c[0] > 0 && c[1] >= 0 && c[2] >= 0) {
			continue
		}
		sum := 0.0
		for i, row := range rows {
			r := weights[i]*dot(c, row) - target[i]
			sum += float64(r * r)
		}
		if sum < least {
			best, least, ok = c, sum, true
		}
	}
	return best, ok
}

// leastSquares solves for the free coefficients; the others are 0. Columns are scaled to length 1: N(N-1) dwarfs 1.
func leastSquares(rows [][3]float64, weights, target []float64, free []int) (c [3]float64, ok bool) {
	a := mat.NewDense(len(rows), len(free), nil)
	scale := make([]float64, len(free))
	for j, f := range free {
		for i, row := range rows {
			v := weights[i] * row[f]
			a.Set(i, j, v)
			scale[j] = math.Hypot(scale[j], v)
		}
		if scale[j] == 0 {
			return c, false
		}
		for i := range rows {
			a.Set(i, j, a.At(i, j)/scale[j])
		}
	}
	var solution mat.VecDense
	if err := solution.SolveVec(a, mat.NewVecDense(len(target), target)); err != nil {
		return c, false // nearly singular: a smaller set of coefficients will do
	}
	for j, f := range free {
		c[f] = solution.AtVec(j) / scale[j]
	}
	return c, true
}
