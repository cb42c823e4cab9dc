package schedule

import (
	"iter"
	"math"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/rng"
)

// Varying is a law of arrivals whose rate goes with time. The arrivals are those of the law with rate 1, each moved to where so many are
// expected by the rate: Poisson arrivals stay Poisson (with that rate), and each other law keeps its burstiness at every rate.
type Varying struct {
	Law  Shape // with rate 1
	Rate profile.Profile
}

func varying(l bench.Load) (Shape, error) {
	p, err := profile.Parse(l.Profile)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "the rate "+short(l.Profile), profile.Forms)
	}
	unit, err := law(l, 1)
	if err != nil {
		return nil, err
	}
	return Varying{unit, p}, nil
}

// short cuts a long text for a message.
func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}

// Name implements Shape.
func (v Varying) Name() bench.Shape { return v.Law.Name() }

// Arrivals implements Shape.
func (v Varying) Arrivals(r *rng.Stream) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		gap := func() float64 { return 1 } // whole numbers: nothing drifts
		area := 0.0
		if law, ok := v.Law.(interface {
			gaps(*rng.Stream) func() float64
		}); ok {
			gap = law.gaps(r)
			area = gap()
		}
		for ; ; area += gap() {
			at := v.Rate.When(area)
			if math.IsInf(at, 1) || !yield(seconds(at)) {
				return
			}
		}
	}
}

// Split returns what worker i of n takes of a sequence: arrivals i, i+n, i+2n and so on. All workers together send exactly the sequence.
func Split(all iter.Seq[time.Duration], i, n int) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		k := 0
		for at := range all {
			if k%n == i && !yield(at) {
				return
			}
			k++
		}
	}
}
