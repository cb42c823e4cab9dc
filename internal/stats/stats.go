// Package stats holds the statistics that results rest on: quantiles and their intervals, effective sample size, steady state and
// trend, comparison of runs, knees of load curves, and tests of arrival processes.
//
// The functions are pure and leave their inputs as they are. p is a percentile in per cent (99), q and confidence are fractions
// (0.99, 0.95). No result is NaN: where a value is not defined, ok is false and the value means nothing
// (a distribution that does not exist is the one exception).
// Samples that are NaN, infinite or beyond 1e140 make a result undefined.
//
// Everything that calls itself a confidence interval relies on independent samples unless it says otherwise. Latencies of one
// loaded run are not independent: at a load of 0.8 an M/M/1 queue's exact binomial 95 % interval of p99 covers in 16 % of runs.
// Ask EffectiveN, use sections, or better, repeat the run.
package stats

import "math"

// Interval is a range of plausible values. An end is infinite where the samples do not bound it.
type Interval struct {
	Lo, Hi float64
}

// maxMagnitude bounds samples: the sum of the squares of 10^20 of these is still a finite number.
const maxMagnitude = 1e140

// finite tells whether all numbers are fit to calculate with.
func finite(xs []float64) bool {
	for _, x := range xs {
		if !(math.Abs(x) <= maxMagnitude) { // false for NaN too
			return false
		}
	}
	return true
}

// fraction tells whether q lies strictly between 0 and 1.
func fraction(q float64) bool { return q > 0 && q < 1 }
