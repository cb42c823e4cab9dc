package metrics

import (
	"math"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/stats"
)

// loadResult compares the load that was asked for with the one that was sent.
func (x *Context) loadResult() bench.LoadResult {
	l := x.Spec.Load
	res := bench.LoadResult{Shape: l.Shape, Concurrency: l.Concurrency, Cap: l.Cap, InFlight: x.inFlight()}
	var due, sent []time.Duration
	for _, r := range x.Records {
		if d, ok := r.Due.Get(); ok {
			due = append(due, d)
		}
		if s, ok := r.Sent.Get(); ok {
			sent = append(sent, s)
		}
	}
	slices.Sort(due)
	slices.Sort(sent)
	res.Sent = rate(sent)
	if !l.Paced() {
		return res
	}
	res.Profile = l.Profile
	rateOver := x.rateOf(l)
	if l.Shape != bench.Trace {
		res.Asked = rateOver.mean(due)
	}
	res.Offered = rate(due)
	if o, ok := res.Offered.Get(); ok && o > 0 {
		if s, ok := res.Sent.Get(); ok {
			res.Attained = opt.Some(s / o)
		}
	}
	if l.Shape != bench.Trace { // whose due times are given, and follow no law
		res.Arrivals = arrivalTest(l, rateOver, due, sent)
	}
	return res
}

// rate is (n-1) / (last - first), in 1/s.
func rate(times []time.Duration) opt.Of[float64] {
	if len(times) < 2 || times[len(times)-1] <= times[0] {
		return opt.Of[float64]{}
	}
	return opt.Some(float64(len(times)-1) / (times[len(times)-1] - times[0]).Seconds())
}

// Bounds of the arrival test: a sound process passes each check in all but about 1 of 1,000 runs.
const (
	arrivalMinGaps  = 100
	arrivalMinP     = 0.001
	onTimeShare     = 0.99
	onTimeTolerance = 0.05
	onTimeFloor     = 0.001 // s
)

// arrivalTest tests due and send times against the asked law. It fails only where the due times pass and the send times do not:
// an unlucky draw of the schedule is no fault of the client.
func arrivalTest(l bench.Load, over rateOver, due, sent []time.Duration) *bench.ArrivalTest {
	if len(due)-1 < arrivalMinGaps || len(sent)-1 < arrivalMinGaps {
		return nil
	}
	t := &bench.ArrivalTest{Law: string(l.Shape), N: len(sent) - 1, Due: arrivalCheck(l, over, due), Sent: arrivalCheck(l, over, sent)}
	t.Passed = t.Sent.Passed || !t.Due.Passed
	return t
}

func arrivalCheck(l bench.Load, over rateOver, times []time.Duration) bench.ArrivalCheck {
	at := make([]float64, len(times))
	for i, t := range times {
		at[i] = over.clock(t)
	}
	gaps := make([]float64, len(at)-1)
	for i := range gaps {
		gaps[i] = at[i+1] - at[i]
	}
	c := bench.ArrivalCheck{Passed: true}
	if l.Shape == bench.Constant {
		near := 0
		for i, g := range gaps { // a gap of one arrival
			seconds := (times[i+1] - times[i]).Seconds()
			want := 1 / over.rate
			if over.varies && g > 0 {
				want = seconds / g
			}
			if math.Abs(seconds-want) <= max(onTimeFloor, onTimeTolerance*want) {
				near++
			}
		}
		share := float64(near) / float64(len(gaps))
		c.OnTime = opt.Some(share)
		c.Passed = share >= onTimeShare
		return c
	}
	cdf := stats.ExponentialCDF(over.rate)
	switch l.Shape {
	case bench.Gamma:
		cdf = stats.GammaCDF(l.Burstiness, over.rate)
	case bench.Weibull:
		cdf = stats.WeibullCDF(l.Burstiness, over.rate)
	}
	if _, p, ok := stats.KolmogorovSmirnov(gaps, cdf); ok {
		c.KSP = opt.Some(p)
		c.Passed = c.Passed && p >= arrivalMinP
	}
	if r, ok := stats.Lag1(gaps); ok {
		limit, _ := stats.Lag1Limit(len(gaps))
		c.Lag1, c.Lag1Limit = opt.Some(r), opt.Some(limit)
		c.Passed = c.Passed && math.Abs(r) < limit
	}
	if l.Shape == bench.Poisson {
		if d, ok := stats.DispersionIndex(at, stats.DispersionBins(len(at))); ok {
			c.Dispersion, c.DispLow, c.DispHigh = opt.Some(d.Index), opt.Some(d.Low), opt.Some(d.High)
			c.Passed = c.Passed && d.Index >= d.Low && d.Index <= d.High
		}
	}
	return c
}

// rateOver is the rate of a load over time. Where it varies, times are read on a clock that shows how many arrivals were expected by
// then: on it the rate is 1, and the arrivals follow the law that has been asked for (time rescaling).
type rateOver struct {
	rate   float64
	varies bool
	level  profile.Profile
	start  time.Duration // of the phase
}

func (x *Context) rateOf(l bench.Load) rateOver {
	p, err := profile.Parse(l.Profile)
	if l.Profile == "" || err != nil {
		return rateOver{rate: l.Rate}
	}
	return rateOver{rate: 1, varies: true, level: p, start: x.Start}
}

// clock reads a time.
func (o rateOver) clock(t time.Duration) float64 {
	if !o.varies {
		return t.Seconds()
	}
	return o.level.Area(max(0, t-o.start))
}

// mean is the rate that was asked for, on the average up to the last due time.
func (o rateOver) mean(due []time.Duration) opt.Of[float64] {
	if !o.varies {
		return opt.Some(o.rate)
	}
	if len(due) == 0 || due[len(due)-1] <= o.start {
		return opt.Of[float64]{}
	}
	last := due[len(due)-1]
	return opt.Some(o.clock(last) / (last - o.start).Seconds())
}
