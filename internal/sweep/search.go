package sweep

import (
	"fmt"
	"math"
	"slices"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stats"
)

// SearchOrder says in which order a search makes its runs.
const SearchOrder = "doubling, bisection, then rounds that confirm"

// Bounds of a search.
const (
	clearMargin     = 0.25 // one run whose worst figure is so far from its limit (28 %) decides
	probeRounds     = 3    // runs of a load that is nearer, at most
	probeConfidence = 0.9  // of the interval of their mean margin, which decides when it excludes 0
	noiseStop       = 2    // loads that their runs do not decide; nearer ones would not be decided either
	mostHalvings    = 10   // below the first load
	mostSteps       = 10   // down, when rounds do not confirm
	mostRate        = 1e6  // requests/s
	mostInFlight    = 1e5
)

// search looks for the highest load that meets the SLO.
func (s *sweeper) search() error {
	r := &bench.SearchResult{}
	s.curve.Search = r
	err := s.look(r)
	for load, runs := range s.runs {
		for _, o := range runs {
			r.Runs++
			r.Requests += o.Sent
		}
		s.bound(r, load)
	}
	r.Ladder = s.ladderRequests(r)
	return err
}

func (s *sweeper) look(r *bench.SearchResult) error {
	lo, hi, err := s.bracket(r)
	if err != nil || lo == 0 {
		return err
	}
	if hi > 0 {
		if lo, err = s.bisect(r, lo, hi); err != nil {
			return err
		}
	}
	for step := 0; ; step++ {
		met, err := s.confirm(lo)
		if err != nil {
			return err
		}
		r.Confirm, r.Met = s.Plan.Rounds, met
		if 2*met > s.Plan.Rounds {
			r.Load = opt.Some(lo)
			return nil
		}
		next := s.below(lo)
		if step == mostSteps || next >= lo {
			r.Ended += fmt.Sprintf("; %s was not confirmed, and nor was any of %d loads below it", LoadWords(s.Plan.Axis, lo), step)
			return nil
		}
		r.Ended += fmt.Sprintf("; %s met it in %d of %d rounds only", LoadWords(s.Plan.Axis, lo), met, s.Plan.Rounds)
		lo = next
	}
}

// bracket finds a load that meets the SLO, and by doubling one that does not; hi = 0 when the bound of the search meets it, lo = 0 when
// nothing does.
func (s *sweeper) bracket(r *bench.SearchResult) (lo, hi float64, err error) {
	load := s.Plan.Loads[0]
	most := mostRate
	if s.Plan.Axis == bench.ByConcurrency {
		most = mostInFlight
	}
	if n := len(s.Plan.Loads); n > 1 {
		most = s.Plan.Loads[n-1]
	}
	for halved := 0; ; {
		met, _, err := s.probe(load)
		switch {
		case err != nil:
			return 0, 0, err
		case met && hi > 0: // found below the first load
			return load, hi, nil
		case met && load >= most:
			r.Ended = "the bound of the search meets the SLO"
			return load, 0, nil
		case met:
			lo, load = load, min(most, 2*load)
		case lo > 0:
			return lo, load, nil
		default:
			hi = load
			if load = s.half(load); load == hi || halved == mostHalvings {
				r.Ended = fmt.Sprintf("the SLO is missed down to %s", LoadWords(s.Plan.Axis, hi))
				return 0, hi, nil
			}
			halved++
		}
	}
}

// half is half of a load, at least one in flight.
func (s *sweeper) half(load float64) float64 {
	if s.Plan.Axis == bench.ByConcurrency {
		return max(1, math.Floor(load/2))
	}
	return rounded(load / 2)
}

// bisect narrows the loads between which the SLO breaks, until they are told apart no more, and returns the lower one.
func (s *sweeper) bisect(r *bench.SearchResult, lo, hi float64) (met float64, err error) {
	undecided := 0
	for {
		mid := between(s.Plan.Axis, lo, hi)
		if hi/lo <= 1+s.Plan.Within || mid <= lo || mid >= hi {
			r.Ended = fmt.Sprintf("the resolution is reached: met at %s, missed at %s", LoadWords(s.Plan.Axis, lo), LoadWords(s.Plan.Axis, hi))
			return lo, nil
		}
		met, sure, err := s.probe(mid)
		if err != nil {
			return lo, err
		}
		if met {
			lo = mid
		} else {
			hi = mid
		}
		if !sure {
			if undecided++; undecided == noiseStop {
				r.Ended = fmt.Sprintf("the noise tells no more: %d rounds do not decide at %d loads, the last one %s", probeRounds, noiseStop, LoadWords(s.Plan.Axis, mid))
				return lo, nil
			}
		}
	}
}

// between is the geometric mean of two loads: a number of few digits, or a whole one.
func between(axis bench.LoadAxis, lo, hi float64) float64 {
	mid := math.Sqrt(lo * hi)
	if axis == bench.ByConcurrency {
		return math.Round(mid)
	}
	return digits(mid, 4)
}

// digits rounds to so many significant ones.
func digits(v float64, n int) float64 {
	return rounded(math.Round(v*math.Pow10(n-1-int(math.Floor(math.Log10(v))))) / math.Pow10(n-1-int(math.Floor(math.Log10(v)))))
}

// below is the next load to try when one is not confirmed.
func (s *sweeper) below(load float64) float64 {
	if s.Plan.Axis == bench.ByConcurrency {
		return max(1, min(load-1, math.Floor(load/(1+s.Plan.Within))))
	}
	return digits(load/(1+s.Plan.Within), 4)
}

// probe runs a load until it is decided whether it meets the SLO, or for probeRounds.
func (s *sweeper) probe(load float64) (met, sure bool, err error) {
	for round := 1; ; round++ {
		if _, err := s.next(load); err != nil {
			return false, false, err
		}
		ms := margins(s.runs[load])
		mean, decided := decide(ms)
		switch {
		case decided:
			return mean <= 0, true, nil
		case round == probeRounds:
			return median(ms) <= 0, false, nil
		}
	}
}

// next makes the next run of a load. One that is void through the client ends the search: it says nothing of the server.
func (s *sweeper) next(load float64) (*outcome, error) {
	o, err := s.do(load, len(s.runs[load])+1)
	if err == nil && clientsFault(o) {
		return o, s.end(bench.Stopped, fmt.Sprintf("at %s the run is void (%v): the search cannot go on", LoadWords(s.Plan.Axis, load), o.Caveats))
	}
	return o, err
}

// margins of runs. One without figures misses the SLO.
func margins(runs []*outcome) []float64 {
	var out []float64
	for _, o := range runs {
		out = append(out, o.Margin.Or(mostMargin))
	}
	return out
}

// decide tells whether the mean margin is surely on one side of 0.
func decide(ms []float64) (mean float64, decided bool) {
	mean, _ = stats.Mean(ms)
	if len(ms) == 1 {
		return mean, math.Abs(mean) > clearMargin
	}
	if sd, ok := stats.SD(ms); ok && sd == 0 {
		return mean, true
	}
	ci, ok := stats.MeanCI(ms, probeConfidence)
	return mean, ok && (ci.Lo > 0 || ci.Hi <= 0)
}

// confirm runs a load in independent rounds: those by which it was found do not count.
func (s *sweeper) confirm(load float64) (met int, err error) {
	for range s.Plan.Rounds {
		o, err := s.next(load)
		if err != nil {
			return met, err
		}
		if o.Margin.Or(mostMargin) <= 0 {
			met++
		}
	}
	return met, nil
}

// bound widens the interval of the answer by a load: up to Low all rounds met the SLO, at High and above none did.
func (s *sweeper) bound(r *bench.SearchResult, load float64) {
	answer, ok := r.Load.Get()
	if !ok {
		return
	}
	ms := margins(s.runs[load])
	switch {
	case load <= answer && slices.Max(ms) <= 0 && load > r.Low.Or(0):
		r.Low = opt.Some(load)
	case load > answer && slices.Min(ms) > 0 && load < r.High.Or(math.Inf(1)):
		r.High = opt.Some(load)
	}
}

// ladderRequests is what a ladder of the same resolution and rounds sends from the first load of the search to the one above its answer.
func (s *sweeper) ladderRequests(r *bench.SearchResult) int {
	answer, ok := r.Load.Get()
	if !ok {
		return 0
	}
	duration := 0.0
	for _, ph := range s.Spec.Phases {
		if ph.Name != bench.Warmup {
			duration = ph.Stop.Duration.Seconds()
		}
	}
	if duration > 0 && s.Plan.Axis == bench.ByConcurrency {
		return 0 // how many it sends is not known before
	}
	sum := 0.0
	step := func(v float64) float64 { return v * (1 + s.Plan.Within) }
	if s.Plan.Axis == bench.ByConcurrency {
		step = func(v float64) float64 { return max(v+1, math.Floor(v*(1+s.Plan.Within))) }
	}
	for load := min(s.Plan.Loads[0], answer); ; load = step(load) {
		if duration > 0 {
			sum += load * duration
		} else {
			sum += float64(RequestsAt(&s.Plan, load))
		}
		if load > answer {
			return int(sum) * s.Plan.Rounds
		}
	}
}
