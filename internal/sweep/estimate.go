package sweep

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
)

// Estimate is how long a sweep takes. What it sends is known for a ladder; a search ends when it knows enough.
type Estimate struct {
	Runs     [2]int           `json:"runs"`     // least and most
	Requests [2]int           `json:"requests"` // the same; 0 where a duration decides
	Time     [2]time.Duration `json:"time_ns"`  // if the server answers all requests as fast as a lone one, and if it answers one at a time
	Alone    time.Duration    `json:"alone_ns"` // how long a lone request takes
}

// aloneRequests are sent one after the other to find out how long a lone request takes.
const aloneRequests = 3

// doublingsMost is how many doublings a search is taken to need at most.
const doublingsMost = 10

// EstimateOf sends three requests, and says how long a sweep takes.
func EstimateOf(ctx context.Context, c *Config) (Estimate, error) {
	var e Estimate
	dir, err := os.MkdirTemp("", "prony-estimate-")
	if err != nil {
		return e, fault.Wrap(fault.Internal, err, "estimate", "it needs a place for temporary files (TMPDIR)")
	}
	defer os.RemoveAll(dir)
	spec := c.Spec
	spec.Phases = []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}, Stop: bench.Stop{Requests: aloneRequests}}}
	plan, err := run.Prepare(ctx, spec, c.Deps, false)
	if err != nil {
		return e, err
	}
	res, err := run.Execute(ctx, plan, filepath.Join(dir, "run"), run.Control{Interrupt: c.Interrupt, Kill: c.Kill})
	switch {
	case err != nil:
		return e, err
	case res.Manifest.State == bench.Interrupted:
		return e, fault.New(fault.Interrupted, "interrupted", "")
	case res.Unusable != nil:
		return e, res.Unusable
	}
	alone := res.Summary.Metrics.Dist("e2el_ms")
	if alone == nil {
		return e, fault.New(fault.Void, "no request succeeded, so that nothing can be estimated", "try `prony probe`")
	}
	e.Alone = time.Duration(alone.Mean * float64(time.Millisecond))
	e.add(c)
	return e, nil
}

// add sums the runs up.
func (e *Estimate) add(c *Config) {
	p := &c.Plan
	once := func(load float64, least, most int) {
		lo, hi, n := e.level(c, load)
		e.Runs[0], e.Runs[1] = e.Runs[0]+least, e.Runs[1]+most
		e.Requests[0], e.Requests[1] = e.Requests[0]+least*n, e.Requests[1]+most*n
		e.Time[0] += time.Duration(least) * (lo + p.Cooldown)
		e.Time[1] += time.Duration(most) * (hi + p.Cooldown)
	}
	if !p.Search {
		for _, l := range p.Loads {
			once(l, p.Rounds, p.Rounds)
		}
		return
	}
	// doubling up to a load that is not known, then steps between two loads, each of one run or of three near the answer
	load := p.Loads[0]
	for i := range doublingsMost {
		once(load, count(i < 2), 1)
		load *= 2
	}
	steps := int(math.Ceil(math.Log2(math.Ln2 / math.Log1p(p.Within))))
	once(load, steps+p.Rounds, steps*probeRounds+2*p.Rounds)
}

// level is how long one run of a level takes, at least and at most, and how many requests it sends where that is known.
func (e *Estimate) level(c *Config, load float64) (lo, hi time.Duration, requests int) {
	spec := SpecOf(c.Spec, &c.Plan, load, 1)
	for _, ph := range slices.Backward(spec.Phases) {
		n := ph.Stop.Requests
		requests += n
		switch {
		case ph.Stop.Duration > 0:
			lo += ph.Stop.Duration
			hi += ph.Stop.Duration + ph.Stop.Grace
		case ph.Load.Shape == bench.Closed:
			lo += time.Duration(math.Ceil(float64(n)/float64(ph.Load.Concurrency))) * e.Alone
			hi += time.Duration(n) * e.Alone
		default:
			span := time.Duration(float64(n) / load * float64(time.Second))
			lo += span + e.Alone
			hi += max(span, time.Duration(n)*e.Alone)
		}
	}
	return lo, hi, requests
}
