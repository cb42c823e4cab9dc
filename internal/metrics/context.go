package metrics

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// Context is what metrics are computed from: the conditions and the measured records, with what many of them need.
type Context struct {
	Manifest *bench.Manifest
	Spec     Conditions
	Records  []*bench.Record // of the measured phase, by the time of sending; those never sent last

	Counts bench.Counts
	Start  time.Duration // of the measured phase: what its due times are counted from
	From   time.Duration // begin of the window: the first send
	To     time.Duration // its end: the last end of any request
	Sent   bool          // there is a window

	good int // requests that meet every limit
	goodTokens,
	okTokens, okInput, okInputs, received int
	inputKnown  bool // every ok request tells its input length
	outputKnown bool

	began   opt.Of[time.Duration] // when the first request could go out, once it was asked
	changes []step                // of the number in flight, once they were asked
}

// Conditions are the parts of a spec that decide how records are read.
type Conditions struct {
	bench.Spec
	Load bench.Load // of the measured phase; of several their common one
	Stop bench.Stop
}

// NewContext sorts the records and counts what many metrics need. Several measured phases are seen together.
func NewContext(m *bench.Manifest, records []bench.Record) *Context {
	measured := m.Spec.Measured()
	x := newContext(m, records, func(phase string) bool { return phase != bench.Warmup })
	for _, p := range measured[:min(1, len(measured))] {
		x.Spec.Load, x.Spec.Stop = p.Load, p.Stop
	}
	if len(measured) > 1 {
		x.Spec.Load = bench.Load{Shape: bench.Phases}
	}
	x.Counts.Planned = m.Planned
	return x
}

// ofPhase is the context of one of several measured phases.
func (x *Context) ofPhase(p bench.Phase) *Context {
	var own []bench.Record
	for _, r := range x.Records {
		if r.Phase == p.Name {
			own = append(own, *r)
		}
	}
	y := newContext(x.Manifest, own, func(phase string) bool { return phase == p.Name })
	y.Spec.Load, y.Spec.Stop = p.Load, p.Stop
	for _, ran := range x.Manifest.Ran {
		if ran.Name == p.Name {
			y.Counts.Planned = ran.Planned
		}
	}
	return y
}

func newContext(m *bench.Manifest, records []bench.Record, in func(phase string) bool) *Context {
	x := &Context{Manifest: m, Spec: Conditions{Spec: m.Spec}}
	for _, ran := range slices.Backward(m.Ran) {
		if in(ran.Name) {
			x.Start = ran.Start
		}
	}
	x.Counts = bench.Counts{ByOutcome: map[bench.Outcome]int{}}
	for i := range records {
		r := &records[i]
		if !in(r.Phase) {
			x.Counts.Warmup++
			continue
		}
		x.Records = append(x.Records, r)
	}
	sort.SliceStable(x.Records, func(i, j int) bool {
		a, aok := x.Records[i].Sent.Get()
		b, bok := x.Records[j].Sent.Get()
		if aok != bok {
			return aok
		}
		return a < b
	})
	x.count()
	return x
}

func (x *Context) count() {
	c := &x.Counts
	x.inputKnown, x.outputKnown = true, x.Spec.Target.Task == bench.Generate
	for _, r := range x.Records {
		c.ByOutcome[r.Outcome]++
		switch {
		case r.Outcome == bench.OK:
			c.OK++
		case r.Outcome.Excluded():
			c.Excluded++
		case r.Outcome.Failed():
			c.Failed++
		case r.Outcome == bench.Incomplete:
			c.Incomplete++
		case r.Outcome == bench.Cancelled:
			c.Cancelled++
		case r.Outcome == bench.Dropped:
			c.Dropped++
		default:
			panic("metrics: unknown outcome " + string(r.Outcome))
		}
		if sent, ok := r.Sent.Get(); ok && !x.Sent {
			x.From, x.To, x.Sent = sent, sent, true
		}
		x.To = max(x.To, r.End.Or(r.Last.Or(r.Sent.Or(x.To)))) // of those that could not be sent, too
		tokens, told := r.OSL.Get()
		if !told {
			tokens = r.OutEvents
		}
		x.received += tokens
		if r.Outcome != bench.OK {
			continue
		}
		x.okTokens += tokens
		x.outputKnown = x.outputKnown && told
		isl, told := r.ISL.Get()
		x.okInput += isl
		x.okInputs += r.Inputs
		x.inputKnown = x.inputKnown && told
		if x.isGood(r) {
			x.good++
			x.goodTokens += tokens
		}
	}
	c.Sent = c.OK + c.Failed + c.Excluded + c.Incomplete + c.Cancelled
}

// window returns the length of the window in seconds.
func (x *Context) window() (float64, bool) {
	w := (x.To - x.From).Seconds()
	return w, x.Sent && w > 0
}

// limit returns the service level objective of a metric.
func (x *Context) limit(metric string) (time.Duration, bool) {
	for _, l := range x.Spec.SLO {
		if l.Metric == metric {
			return l.Max, true
		}
	}
	return 0, false
}

// isGood tells whether an ok request meets every limit. In an open loop ttft and e2el are judged from due.
func (x *Context) isGood(r *bench.Record) bool {
	if len(x.Spec.SLO) == 0 {
		return false
	}
	from := r.Sent
	if x.Spec.Load.Open() && r.Due.Defined() {
		from = r.Due
	}
	for _, l := range x.Spec.SLO {
		limit := float64(l.Max) / perMS
		miss := false
		judge := func(ms float64) { miss = ms > limit }
		switch l.Metric {
		case "ttft":
			if miss = true; r.First.Defined() {
				between(from, r.First, judge)
			}
		case "e2el":
			if miss = true; r.Last.Defined() {
				between(from, r.Last, judge)
			}
		case "tpot":
			if v, ok := tpot(r); ok {
				judge(v)
			}
		case "itl":
			gaps(r, func(g gap) { miss = miss || g.length > l.Max })
		}
		if miss {
			return false
		}
	}
	return true
}

// perWindow divides by the window.
func (x *Context) perWindow(n float64) (float64, bool) {
	w, ok := x.window()
	if !ok {
		return 0, false
	}
	return n / w, true
}

func requestThroughput(x *Context) (float64, bool) { return x.perWindow(float64(x.Counts.OK)) }

func inputsThroughput(x *Context) (float64, bool) { return x.perWindow(float64(x.okInputs)) }

func inputThroughput(x *Context) (float64, bool) {
	if !x.inputKnown || x.Counts.OK == 0 {
		return 0, false
	}
	return x.perWindow(float64(x.okInput))
}

func outputThroughput(x *Context) (float64, bool) {
	if !x.outputKnown {
		return 0, false
	}
	return x.perWindow(float64(x.okTokens))
}

func totalThroughput(x *Context) (float64, bool) {
	if !x.inputKnown || !x.outputKnown || x.Counts.OK == 0 {
		return 0, false
	}
	return x.perWindow(float64(x.okTokens + x.okInput))
}

func receivedThroughput(x *Context) (float64, bool) { return x.perWindow(float64(x.received)) }

func goodput(x *Context) (float64, bool) {
	if len(x.Spec.SLO) == 0 {
		return 0, false
	}
	return x.perWindow(float64(x.good))
}

func goodputRatio(x *Context) (float64, bool) {
	n := x.Counts.Sent - x.Counts.Incomplete
	if len(x.Spec.SLO) == 0 || n <= 0 {
		return 0, false
	}
	return float64(x.good) / float64(n), true
}

func tokenGoodput(x *Context) (float64, bool) {
	if len(x.Spec.SLO) == 0 {
		return 0, false
	}
	return x.perWindow(float64(x.goodTokens))
}

func successRate(x *Context) (float64, bool) {
	n := x.Counts.Sent - x.Counts.Incomplete
	if n <= 0 {
		return 0, false
	}
	return float64(x.Counts.OK) / float64(n), true
}

func meanConcurrency(x *Context) (float64, bool) {
	f := x.inFlight()
	return f.Mean.Get()
}

// inFlight follows the number of requests in flight over the window. By Little's identity its time integral is the sum of the
// requests' times in it, which is asserted.
func (x *Context) inFlight() bench.InFlight {
	w, ok := x.window()
	if !ok {
		return bench.InFlight{}
	}
	steps := x.steps()
	level, peak, area := 0, 0, time.Duration(0)
	for i, s := range steps {
		level += s.by
		peak = max(peak, level)
		if i+1 < len(steps) {
			area += time.Duration(level) * (steps[i+1].at - s.at)
		}
	}
	overlap := time.Duration(0)
	for _, r := range x.Records {
		if sent, ok := r.Sent.Get(); ok {
			overlap += x.ended(r) - sent
		}
	}
	if area != overlap {
		panic("metrics: Little's identity does not hold: in-flight area " + area.String() + ", sum of overlaps " + overlap.String())
	}
	return bench.InFlight{Mean: opt.Some(area.Seconds() / w), Peak: peak}
}

type step struct {
	at time.Duration
	by int
}

// steps are the changes of the number in flight, in order; at one moment those that end come first.
func (x *Context) steps() []step {
	if x.changes != nil {
		return x.changes
	}
	for _, r := range x.Records {
		if sent, ok := r.Sent.Get(); ok {
			x.changes = append(x.changes, step{sent, 1}, step{x.ended(r), -1})
		}
	}
	slices.SortFunc(x.changes, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	return x.changes
}

// ended is when a request that was sent left the flight.
func (x *Context) ended(r *bench.Record) time.Duration {
	sent, _ := r.Sent.Get()
	return max(sent, r.End.Or(r.Last.Or(sent)))
}

// tokensAt gives the tokens of a record at the times at which they came, as far as the times are known.
func tokensAt(r *bench.Record, give func(at time.Duration, tokens float64)) (known bool) {
	sent, ok := r.Sent.Get()
	if !ok {
		return true
	}
	osl, told := r.OSL.Get()
	if !told {
		osl = r.OutEvents
	}
	switch {
	case osl == 0:
		return true
	case len(r.EventTokens) == len(r.Events) && len(r.Events) > 0:
		for i, at := range r.Events {
			give(sent+at, float64(r.EventTokens[i]))
		}
		return true
	case len(r.Events) > 0:
		for _, at := range r.Events {
			give(sent+at, float64(osl)/float64(len(r.Events)))
		}
		return true
	case r.OutEvents == 0 && r.Last.Defined(): // not streamed: all of them at the end
		last, _ := r.Last.Get()
		give(last, float64(osl))
		return true
	}
	return r.Outcome != bench.OK
}

// buckets counts tokens in seconds from the begin of the window; ok is false when some times were not kept.
func (x *Context) buckets() (out []float64, ok bool) {
	w, ok := x.window()
	if !ok {
		return nil, false
	}
	out = make([]float64, int(w)+1)
	for _, r := range x.Records {
		if !tokensAt(r, func(at time.Duration, n float64) {
			if i := int((at - x.From) / time.Second); i >= 0 && i < len(out) {
				out[i] += n
			}
		}) {
			ok = false
		}
	}
	return out, ok
}

func peakOutputRate(x *Context) (float64, bool) {
	b, ok := x.buckets()
	if w, _ := x.window(); !ok || w < 1 {
		return 0, false // the tokens of less than a second are no rate
	}
	return slices.Max(b), true
}
