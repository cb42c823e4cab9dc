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
	wordSteady    = "steady"
	wordUp        = "drifting up"
	wordDown      = "drifting down"
	wordUnsettled = "not settled" // no drift, but no plateau either
	wordAtOnce    = "all at once" // no plateau was meant
	wordTooShort  = "too short"
)

// Bounds of the verdict on steadiness.
const (
	steadyMinRequests = 50   // below: too short to tell
	settledMin        = 100  // below, MSER-5 cannot tell whether a latency settles
	plateauShare      = 0.95 // of the target in flight, closed loop; and of the time that it has to be
	trendP            = 0.01
	trendChange       = 0.10 // a drift below a tenth of the median over the whole run is no news
	trendBatches      = 50   // means of batches are less correlated than single requests
)

// steady finds the plateau inside the window and says how the latency went over it. Without one it has no times and no rates, and the
// note says why.
func (x *Context) steady() bench.Steady {
	if _, ok := x.window(); !ok {
		return bench.Steady{Word: wordTooShort}
	}
	if l := x.Spec.Load; l.Shape == bench.Inf && l.Cap == 0 {
		return bench.Steady{Word: wordAtOnce, Note: "everything was sent at once"}
	}
	p := x.plateau()
	times, series := x.latencySeries()
	if x.places() == 0 && len(series) >= settledMin {
		if cut, ok := stats.MSER5(series); ok {
			p.from = max(p.from, times[cut])
		} else {
			p.note = "the latency does not settle in the first half of the run"
		}
	}
	var inside []float64
	for i, at := range times {
		if at >= p.from && at <= p.to {
			inside = append(inside, series[i])
		}
	}
	s := bench.Steady{Word: trendWord(inside), Note: p.note}
	if p.note != "" || p.to <= p.from {
		if s.Word == wordSteady {
			s.Word = wordUnsettled
		}
		return s
	}
	s.From, s.To = opt.Some((p.from - x.From).Seconds()), opt.Some((p.to - x.From).Seconds())
	span := (p.to - p.from).Seconds()
	ok, tokens, known := 0, 0.0, true
	for _, r := range x.Records {
		if r.Outcome != bench.OK {
			continue
		}
		if end := x.ended(r); end > p.from && end <= p.to {
			ok++
		}
		known = tokensAt(r, func(at time.Duration, n float64) {
			if at > p.from && at <= p.to {
				tokens += n
			}
		}) && known
	}
	s.RequestThroughput = opt.Some(float64(ok) / span)
	if known && x.outputKnown {
		s.OutputThroughput = opt.Some(tokens / span)
	}
	return s
}

// places is how many requests the load keeps in flight: the next one goes out when one ends. It is 0 for arrivals of their own.
func (x *Context) places() int {
	switch l := x.Spec.Load; l.Shape {
	case bench.Closed:
		if l.Gated() {
			return 0 // places are empty while somebody thinks, or come and go
		}
		return l.Concurrency
	case bench.Inf:
		return l.Cap
	}
	return 0
}

// plateau is a stretch of the window.
type plateau struct {
	from, to time.Duration
	note     string // why it is none, or empty

	// of a load that keeps places taken
	full  bool          // it was, at some time
	sent  int           // requests that went out in it
	taken time.Duration // time in flight in it, of all requests together
}

// plateau is the part of the window in which the places of a load are taken: from the first time that 95 % of them are to the last
// time that they were. Between, they have to be for 95 % of the time; else there is none. With arrivals of their own it is the time
// of the arrivals.
func (x *Context) plateau() plateau {
	p := plateau{from: x.From, to: x.From}
	if x.places() == 0 {
		p.to = x.lastSend()
		return p
	}
	want := int(math.Ceil(plateauShare * float64(x.places())))
	steps := x.steps()
	level := 0
	for _, s := range steps {
		before := level
		level += s.by
		if level >= want && !p.full {
			p.from, p.full = s.at, true
		}
		if before >= want && level < want {
			p.to = s.at
		}
	}
	if !p.full {
		p.to = x.lastSend() // until then the places could have been taken
	}
	level = 0
	fullFor := time.Duration(0)
	for i, s := range steps {
		level += s.by
		if s.by > 0 && s.at >= p.from && s.at <= p.to {
			p.sent++
		}
		if i+1 == len(steps) {
			break
		}
		part := min(p.to, steps[i+1].at) - max(p.from, s.at)
		if part <= 0 {
			continue
		}
		p.taken += time.Duration(level) * part
		if level >= want {
			fullFor += part
		}
	}
	switch all := p.to - p.from; {
	case !p.full:
		p.note = fmt.Sprintf("never %d of %d places were taken", want, x.places())
	case float64(fullFor) < plateauShare*float64(all):
		p.note = fmt.Sprintf("%d of %d places were taken for %s %% of the time only, and %s on average",
			want, x.places(), three(100*float64(fullFor)/float64(all)), three(float64(p.taken)/float64(all)))
	}
	return p
}

// lastSend is when the last request was sent.
func (x *Context) lastSend() time.Duration {
	last := x.From
	for _, r := range x.Records {
		last = max(last, r.Sent.Or(last))
	}
	return last
}

// lack is what a run without a plateau had too little of.
type lack uint8

const (
	lackNothing  lack = iota
	lackSettling      // the latency moved all the time
	lackRequests      // there were too few to fill the places
	lackClient        // it left places empty
	lackOther         // places were empty, and not through the client
)

// lack says in words why a run that was meant to have a plateau has none.
func (x *Context) lack(s *bench.Steady) (lack, string) {
	if s.Note == "" || s.Word == wordAtOnce {
		return lackNothing, ""
	}
	if x.places() == 0 {
		return lackSettling, s.Note
	}
	p := x.plateau()
	if !p.full && x.Counts.Sent < x.places() {
		return lackRequests, s.Note
	}
	if late, yes := x.clientLeftPlaces(p); yes {
		return lackClient, fmt.Sprintf("%s; the client took %s ms on average to fill a free one", s.Note, three(late))
	}
	return lackOther, s.Note
}

// latencySeries is the TTFT of the streams in the order of sending, or the end-to-end latency where there are none.
func (x *Context) latencySeries() (times []time.Duration, series []float64) {
	for _, streamed := range []bool{true, false} {
		for _, r := range x.Records {
			sent, _ := r.Sent.Get()
			add := func(v float64) { times, series = append(times, sent), append(series, v) }
			switch {
			case streamed && OfStreams.Has(r):
				sampleTTFT(r, x, add)
			case !streamed && OfOK.Has(r):
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
