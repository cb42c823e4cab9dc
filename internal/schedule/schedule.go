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
	// Arrivals returns the due times in ascending order, from the begin of the phase on. They end only where the shape does: with a trace,
	// or a rate that falls to 0 for ever.
	Arrivals(r *rng.Stream) iter.Seq[time.Duration]
}

// Bounds of a law of arrivals: far outside of what is ever meant, and inside of what the arithmetic of offsets holds.
const (
	MinRate       = 1e-6 // requests/s: one in twelve days
	MaxRate       = 1e7  // a hundred times what one machine can send
	MinBurstiness = 1e-3 // nearly all requests in few bursts, and nothing between them
	MaxBurstiness = 1e6  // gaps equal to 0.1 %
	MinWeibull    = 0.1  // a coefficient of variation of 430
	MaxWeibull    = 100  // gaps equal to about 1 %
)

// Of returns the shape of an open-loop load with a rate.
func Of(l bench.Load) (Shape, error) {
	if l.Profile != "" {
		return varying(l)
	}
	switch {
	case !(l.Rate > 0):
		return nil, fault.Usagef("for as fast as possible use --request-rate inf", "the request rate must be above 0, not %v", l.Rate)
	case l.Rate < MinRate || l.Rate > MaxRate:
		return nil, fault.Usagef("for as fast as possible use --request-rate inf", "the request rate must be between %v and %.0f requests/s, not %v", MinRate, MaxRate, l.Rate)
	}
	return law(l, l.Rate)
}

// law returns the law of a load's gaps at a rate.
func law(l bench.Load, rate float64) (Shape, error) {
	switch l.Shape {
	case bench.Constant:
		return Constant{rate}, nil
	case bench.Poisson:
		return Poisson{rate}, nil
	case bench.Gamma:
		if !(l.Burstiness >= MinBurstiness && l.Burstiness <= MaxBurstiness) {
			return nil, fault.Usagef("1 is Poisson, below 1 is burstier, above 1 smoother, inf constant", "the burstiness must be inf, or between %v and %.0f, not %v",
				MinBurstiness, MaxBurstiness, l.Burstiness)
		}
		return Gamma{rate, l.Burstiness}, nil
	case bench.Weibull:
		if !(l.Burstiness >= MinWeibull && l.Burstiness <= MaxWeibull) {
			return nil, fault.Usagef("1 is Poisson, below 1 is burstier, above 1 smoother", "the burstiness of Weibull arrivals must be between %v and %v, not %v",
				MinWeibull, MaxWeibull, l.Burstiness)
		}
		return NewWeibull(rate, l.Burstiness), nil
	}
	return nil, fault.Usagef("constant, poisson, gamma and weibull have", "the shape %q has no arrivals of its own", l.Shape)
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
	return renewal(p.gaps(r))
}

func (p Poisson) gaps(r *rng.Stream) func() float64 {
	return func() float64 { return r.Exp() / p.Rate }
}

// Gamma is a process with gamma gaps of mean 1/Rate and coefficient of variation 1/sqrt(K): K = 1 is Poisson.
type Gamma struct{ Rate, K float64 }

// Name implements Shape.
func (Gamma) Name() bench.Shape { return bench.Gamma }

// Arrivals implements Shape.
func (g Gamma) Arrivals(r *rng.Stream) iter.Seq[time.Duration] {
	return renewal(g.gaps(r))
}

func (g Gamma) gaps(r *rng.Stream) func() float64 {
	return func() float64 { return r.Gamma(g.K) / g.K / g.Rate }
}

// Weibull is a process with Weibull gaps of shape K and mean 1/Rate: K = 1 is Poisson.
type Weibull struct{ Rate, K, scale float64 }

// NewWeibull returns the law of a rate.
func NewWeibull(rate, k float64) Weibull { return Weibull{rate, k, 1 / math.Gamma(1+1/k) / rate} }

// Name implements Shape.
func (Weibull) Name() bench.Shape { return bench.Weibull }

// Arrivals implements Shape.
func (w Weibull) Arrivals(r *rng.Stream) iter.Seq[time.Duration] { return renewal(w.gaps(r)) }

func (w Weibull) gaps(r *rng.Stream) func() float64 {
	return func() float64 { return float64(w.scale * rng.Exp(rng.Log(r.Exp())/w.K)) }
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
