package run

import (
	"iter"
	"math"
	"os"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/schedule"
	"github.com/prony-bench/prony/internal/workload"
)

// open returns the requests of a phase.
func (p *Plan) open(ph bench.Phase) (iter.Seq2[bench.Request, error], error) {
	c := p.config(ph.Name)
	if ph.Workload != nil {
		c.Spec = *ph.Workload
	}
	d, err := p.datasetOf(ph)
	if err != nil {
		return nil, err
	}
	early, err := p.early(ph)
	if err != nil {
		return nil, err
	}
	if _, passes := d.(workload.Trace); passes {
		c.Skip, early = early, 0
	}
	seq, err := d.Open(c)
	if err != nil || early == 0 {
		return seq, err
	}
	return func(yield func(bench.Request, error) bool) {
		n := 0
		for q, err := range seq {
			if n++; n <= early && err == nil {
				continue
			}
			if !yield(q, err) {
				return
			}
		}
	}, nil
}

// early is how many requests of a phase's trace are before its window.
func (p *Plan) early(ph bench.Phase) (int, error) {
	n := 0
	if ph.Load.Shape != bench.Trace || ph.Load.Times != "" || ph.Load.From <= 0 {
		return n, nil
	}
	for t, err := range p.timestamps(ph) {
		if err != nil {
			return 0, err
		}
		if t >= ph.Load.From {
			break
		}
		n++
	}
	return n, nil
}

// datasetOf is the data set of a phase.
func (p *Plan) datasetOf(ph bench.Phase) (workload.Dataset, error) {
	if ph.Workload == nil || ph.Workload.Dataset == p.Spec.Workload.Dataset {
		return p.dataset, nil
	}
	d, err := p.deps.Datasets.Get(ph.Workload.Dataset)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "--dataset", "see `prony help datasets`")
	}
	return d, nil
}

// timestamps are the moments of a trace: those of a file, or of the phase's data set.
func (p *Plan) timestamps(ph bench.Phase) iter.Seq2[time.Duration, error] {
	fail := func(err error) iter.Seq2[time.Duration, error] {
		return func(yield func(time.Duration, error) bool) { yield(0, err) }
	}
	if path := ph.Load.Times; path != "" {
		return func(yield func(time.Duration, error) bool) {
			f, err := os.Open(path)
			if err != nil {
				yield(0, fault.Wrap(fault.Usage, err, "--timestamps", "a file with the moment of each request, one a line"))
				return
			}
			defer f.Close()
			for t, err := range schedule.ReadTimes(f) {
				if err != nil {
					err = fault.Wrap(fault.Usage, err, "--timestamps "+path, "one moment a line, in seconds or with a unit")
				}
				if !yield(t, err) || err != nil {
					return
				}
			}
		}
	}
	d, err := p.datasetOf(ph)
	if err != nil {
		return fail(err)
	}
	timed, ok := d.(workload.Timed)
	if !ok {
		return fail(fault.Usagef("give --timestamps FILE, or a data set that is a trace", "the data set %s does not say when its requests were made", d.Name()))
	}
	c := p.config(ph.Name)
	if ph.Workload != nil {
		c.Spec = *ph.Workload
	}
	times, err := timed.Times(c)
	if err != nil {
		return fail(err)
	}
	return func(yield func(time.Duration, error) bool) {
		for t := range times {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// checkLoads refuses loads that cannot be, before anybody is asked.
func (p *Plan) checkLoads() error {
	for _, ph := range p.Spec.Phases {
		l := ph.Load
		switch {
		case l.Shape == bench.Trace:
			any := false
			replay := schedule.ReplayOf(l, nil)
			for t, err := range p.timestamps(ph) {
				if err != nil {
					return err
				}
				if _, any = replay.At(t); any {
					break
				}
			}
			if !any {
				return fault.New(fault.Usage, "no request of the trace lies between --trace-from and --trace-to", "both are moments of the trace, counted from its first request")
			}
		case l.Paced():
			if _, err := schedule.Of(l); err != nil {
				return err
			}
		case l.Gated():
			if _, err := newGate(l); err != nil {
				return err
			}
		}
		if ph.Workload != nil {
			if _, err := p.open(ph); err != nil {
				return err
			}
		}
		if l.Open() && l.Cap != p.clientCap() {
			return fault.New(fault.Usage, "open loops of one run have one --max-concurrency", "give each phase the same, or run them apart")
		}
		if n := p.clientCap(); !l.Open() && n > 0 && n < l.Concurrency {
			return fault.Usagef("raise --max-concurrency, or run them apart", "a closed loop of %d beside an open loop with --max-concurrency %d", l.Concurrency, n)
		}
		if l.Shape == bench.Prefill && !p.Spec.Target.Stream {
			return fault.New(fault.Usage, "--prefill-concurrency needs to see the first token", "leave --no-stream out")
		}
	}
	return nil
}

// clientCap is how many requests the client lets be in flight; 0 = any number. Loads that it does not suit have their places given out by
// the run (gate).
func (p *Plan) clientCap() int {
	limit, any := 0, false
	for _, ph := range p.Spec.Phases {
		switch l := ph.Load; {
		case l.Gated():
			return p.openCap()
		case any && l.InFlightLimit() != limit:
			return p.openCap()
		default:
			limit, any = l.InFlightLimit(), true
		}
	}
	return limit
}

// openCap is the cap of the open loops.
func (p *Plan) openCap() int {
	for _, ph := range p.Spec.Phases {
		if ph.Load.Open() {
			return ph.Load.Cap
		}
	}
	return 0
}

// gated tells whether the phase's places are given out by the run.
func (p *phaseRun) gated() bool {
	l := p.ph.Load
	return l.Gated() || l.Shape == bench.Closed && p.r.plan.clientCap() != l.Concurrency
}

// arrivals are the due times of a phase with a schedule, as they would be.
func (p *Plan) arrivals(ph bench.Phase) iter.Seq2[time.Duration, error] {
	return func(yield func(time.Duration, error) bool) {
		if ph.Load.Shape == bench.Trace {
			replay, last := schedule.ReplayOf(ph.Load, nil), time.Duration(0)
			for t, err := range p.timestamps(ph) {
				at, inside := replay.At(t)
				if last = max(last, at); (inside || err != nil) && !yield(last, err) {
					return
				}
			}
			return
		}
		shape, err := schedule.Of(ph.Load)
		if err != nil {
			yield(0, err)
			return
		}
		for at := range shape.Arrivals(rng.New(p.Spec.Seed, streamName("schedule", ph.Name))) {
			if !yield(at, nil) {
				return
			}
		}
	}
}

// expected is how many requests a phase with a schedule is expected to have in its duration.
func (p *Plan) expected(ph bench.Phase) float64 {
	l, d := ph.Load, ph.Stop.Duration
	switch {
	case l.Shape == bench.Trace:
		n := 0.0
		for at, err := range p.arrivals(ph) {
			if err != nil || d > 0 && at >= d {
				break
			}
			n++
		}
		return n
	case l.Profile != "":
		level, err := profile.Parse(l.Profile)
		if err != nil {
			return 0
		}
		return level.Area(d)
	}
	return l.Rate * d.Seconds()
}

// expectedTime is how long so many requests of a schedule are expected to take, in seconds.
func (p *Plan) expectedTime(ph bench.Phase, requests float64) float64 {
	switch l := ph.Load; {
	case l.Shape == bench.Trace:
		last, n := time.Duration(0), 0.0
		for at := range p.arrivals(ph) {
			if n++; n > requests {
				break
			}
			last = at
		}
		return last.Seconds()
	case l.Profile != "":
		if level, err := profile.Parse(l.Profile); err == nil {
			if s := level.When(requests); !math.IsInf(s, 1) {
				return s
			}
		}
		return 0
	default:
		return requests / l.Rate
	}
}
