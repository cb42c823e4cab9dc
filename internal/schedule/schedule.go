// Package schedule says when requests are due.
//
// A shape is a pure sequence of offsets from the begin of a phase: no goroutine, no clock. The same seed gives the same offsets on
// every machine (package rng).
package schedule

import (
	"iter"
	"math"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Shape is a law of arrivals.
type Shape interface {
	Name() bench.Shape
	// Arrivals returns the due times in ascending order, from the begin of the phase on, without end.
	Arrivals(r *rng.Stream) iter.Seq[time.Duration]
}

// Bounds of a law of arrivals: far outside of what is ever meant, and inside of what the arithmetic of offsets holds.
const (
	MinRate       = 1e-6 // requests/s: one in twelve days
	MaxRate       = 1e7  // a hundred times what one machine can send
	MinBurstiness = 1e-3 // nearly all requests in few bursts, and nothing between them
	MaxBurstiness = 1e6  // gaps equal to 0.1 %
)

// Of returns the shape of an open-loop load with a rate.
func Of(l bench.Load) (Shape, error) {
	switch {
	case !(l.Rate > 0):
		return nil, fault.Usagef("for as fast as possible use --request-rate inf", "the request rate must be above 0, not %v", l.Rate)
	case l.Rate < MinRate || l.Rate > MaxRate:
		return nil, fault.Usagef("for as fast as possible use --request-rate inf", "the request rate must be between %v and %.0f requests/s, not %v", MinRate, MaxRate, l.Rate)
	}
	switch l.Shape {
	case bench.Constant:
		return Constant{l.Rate}, nil
	case bench.Poisson:
		return Poisson{l.Rate}, nil
	case bench.Gamma:
		if !(l.Burstiness >= MinBurstiness && l.Burstiness <= MaxBurstiness) {
			return nil, fault.Usagef("1 is Poisson, below 1 is burstier, above 1 smoother, inf constant", "the burstiness must be inf, or between %v and %.0f, not %v",
				MinBurstiness, MaxBurstiness, l.Burstiness)
		}
		return Gamma{l.Rate, l.Burstiness}, nil
	}
	return nil, fault.Usagef("constant, poisson and gamma have", "the shape %q has no arrivals of its own", l.Shape)
}

// Constant is one request every 1/Rate seconds, the first at once. Times are computed from their number, so that nothing drifts.
type Constant struct{ Rate float64 }

// Name implements Shape.
func (Constant) Name() bench.Shape { return bench.Constant }

// Arrivals implements Shape.
func (c Constant) Arrivals(*rng.Stream) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for i := 0; yield(seconds(float64(i) / c.Rate)); i++ {
		}
	}
}

// Poisson is a process with exponential gaps of mean 1/Rate; the first request comes after a gap.
type Poisson struct{ Rate float64 }

// Name implements Shape.
func (Poisson) Name() bench.Shape { return bench.Poisson }

// Arrivals implements Shape.
func (p Poisson) Arrivals(r *rng.Stream) iter.Seq[time.Duration] {
	return renewal(func() float64 { return r.Exp() / p.Rate })
}

// Gamma is a process with gamma gaps of mean 1/Rate and coefficient of variation 1/sqrt(K): K = 1 is Poisson.
type Gamma struct{ Rate, K float64 }

// Name implements Shape.
func (Gamma) Name() bench.Shape { return bench.Gamma }

// Arrivals implements Shape.
func (g Gamma) Arrivals(r *rng.Stream) iter.Seq[time.Duration] {
	return renewal(func() float64 { return r.Gamma(g.K) / g.K / g.Rate })
}

// renewal sums gaps, in seconds.
func renewal(gap func() float64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for t := gap(); yield(seconds(t)); t += gap() {
		}
	}
}

// seconds rounds to whole nanoseconds; what does not fit (292 years) is the largest.
func seconds(s float64) time.Duration {
	ns := math.Round(s * 1e9)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
