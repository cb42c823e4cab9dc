package metrics

import (
	"fmt"
	"math"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stats"
)

// The words for how a run went.
const (
	wordSteady   = "steady"
	wordUp       = "drifting up"
	wordDown     = "drifting down"
	wordTooShort = "too short"
)

// Bounds of the verdict on steadiness.
const (
	steadyMinRequests = 50   // below: too short to tell
	plateauShare      = 0.95 // of the target in flight, closed loop
	trendP            = 0.01
	trendChange       = 0.10 // a drift below a tenth of the median over the whole run is no news
	trendBatches      = 50   // means of batches are less correlated than single requests
)

// steady finds the plateau inside the window and says how the latency went over it.
func (x *Context) steady() bench.Steady {
	if _, ok := x.window(); !ok {
		return bench.Steady{Word: wordTooShort}
	}
	from, to, note := x.plateau()
	times, series := x.latencySeries()
	if x.Spec.Load.Open() && len(series) >= steadyMinRequests {
		if cut, ok := stats.MSER5(series); ok && cut < len(times) {
			from = max(from, times[cut])
		} else if len(series) >= 100 {
			note = "the latency does not settle in the first half of the run"
		}
	}
	var inside []float64
	for i, at := range times {
		if at >= from && at <= to {
			inside = append(inside, series[i])
		}
	}
	s := bench.Steady{Word: trendWord(inside), Note: note}
	if to <= from {
		s.Word = wordTooShort
		return s
	}
	s.From, s.To = opt.Some((from - x.From).Seconds()), opt.Some((to - x.From).Seconds())
	span := (to - from).Seconds()
	ok, tokens, known := 0, 0.0, true
	for _, r := range x.Records {
		if end := x.ended(r); r.Outcome == bench.OK && end > from && end <= to {
			ok++
		}
		if r.Outcome == bench.OK {
			known = tokensAt(r, func(at time.Duration, n float64) {
				if at > from && at <= to {
					tokens += n
				}
			}) && known
		}
	}
	s.RequestThroughput = opt.Some(float64(ok) / span)
	if known && x.outputKnown {
		s.OutputThroughput = opt.Some(tokens / span)
	}
	return s
}

// plateau is the part of the window in which a closed loop is full: from the first time that 95 % of its target are in flight
// to the last time that they were. In an open loop it is the time of the arrivals.
func (x *Context) plateau() (from, to time.Duration, note string) {
	from, to = x.From, x.From
	for _, r := range x.Records {
		if s, ok := r.Sent.Get(); ok {
			to = max(to, s)
		}
	}
	if x.Spec.Load.Open() {
		return from, to, ""
	}
	want := int(math.Ceil(plateauShare * float64(x.Spec.Load.Concurrency)))
	level, full := 0, false
	for _, s := range x.steps() {
		before := level
		level += s.by
		if level >= want && !full {
			from, full = s.at, true
		}
		if before >= want && level < want {
			to = s.at
		}
	}
	if !full {
		return x.From, x.From, fmt.Sprintf("never %d requests in flight", want)
	}
	return from, to, ""
}

// latencySeries is TTFT of the ok requests in the order of sending, or end-to-end latency where nothing was streamed.
func (x *Context) latencySeries() (times []time.Duration, series []float64) {
	for _, streamed := range []bool{true, false} {
		for _, r := range x.Records {
			if r.Outcome != bench.OK {
				continue
			}
			sent, _ := r.Sent.Get()
			add := func(v float64) { times, series = append(times, sent), append(series, v) }
			if streamed {
				sampleTTFT(r, x, add)
			} else {
				sampleE2EL(r, x, add)
			}
		}
		if len(series) > 0 {
			return times, series
		}
	}
	return nil, nil
}

// trendWord says whether a series drifts.
func trendWord(series []float64) string {
	if len(series) < steadyMinRequests {
		return wordTooShort
	}
	batches := min(trendBatches, len(series)/5)
	means := make([]float64, batches)
	for b := range means {
		part := series[b*len(series)/batches : (b+1)*len(series)/batches]
		means[b], _ = stats.Mean(part)
	}
	t, ok := stats.MannKendallHamedRao(means)
	slope, ok2 := stats.TheilSen(means)
	middle, ok3 := stats.Mean(series)
	if !ok || !ok2 || !ok3 {
		return wordTooShort
	}
	change := slope * float64(batches-1)
	switch {
	case t.P >= trendP || math.Abs(change) < trendChange*middle:
		return wordSteady
	case change > 0:
		return wordUp
	default:
		return wordDown
	}
}
