package metrics

import (
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

const perMS = float64(time.Millisecond)

// between adds b - a in ms, when both are defined.
func between(a, b opt.Of[time.Duration], add func(float64)) {
	x, ok := a.Get()
	y, ok2 := b.Get()
	if ok && ok2 {
		add(float64(y-x) / perMS)
	}
}

func sampleTTFT(r *bench.Record, _ *Context, add func(float64))        { between(r.Sent, r.First, add) }
func sampleTTFTFromDue(r *bench.Record, _ *Context, add func(float64)) { between(r.Due, r.First, add) }
func sampleFirstAnswer(r *bench.Record, _ *Context, add func(float64)) {
	between(r.Sent, r.FirstAnswer, add)
}
func sampleTTST(r *bench.Record, _ *Context, add func(float64))        { between(r.First, r.Second, add) }
func sampleE2EL(r *bench.Record, _ *Context, add func(float64))        { between(r.Sent, r.Last, add) }
func sampleE2ELFromDue(r *bench.Record, _ *Context, add func(float64)) { between(r.Due, r.Last, add) }
func sampleStreamEnd(r *bench.Record, _ *Context, add func(float64))   { between(r.Sent, r.End, add) }

func sampleDecode(r *bench.Record, _ *Context, add func(float64)) {
	if r.OutEvents >= 2 {
		between(r.First, r.Last, add)
	}
}

func gapLength(g gap, add func(float64)) { add(float64(g.length) / perMS) }

func gapOfTokens(g gap, add func(float64)) {
	for range g.tokens {
		add(float64(g.length) / perMS / float64(g.tokens))
	}
}

// ofGaps gives what each gap of a request gives.
func ofGaps(of func(gap, func(float64))) func(*bench.Record, *Context, func(float64)) {
	return func(r *bench.Record, _ *Context, add func(float64)) {
		gaps(r, func(g gap) { of(g, add) })
	}
}

// tpot returns the time per output token of a request, in ms; with several choices their mean.
func tpot(r *bench.Record) (float64, bool) {
	n, ok := r.OSL.Get()
	first, hasFirst := r.First.Get()
	last, hasLast := r.Last.Get()
	if !ok || n < 2 || !hasFirst || !hasLast {
		return 0, false
	}
	if len(r.EventChoice) == 0 || len(r.EventChoice) != len(r.Events) {
		return float64(last-first) / perMS / float64(n-1), true
	}
	// the tokens of a choice, when not told, are its share of the events
	type span struct {
		first, last time.Duration
		tokens      float64
	}
	spans := map[int]*span{}
	var order []*span // a sum in the order of a map would differ in its last digit from time to time
	for i, at := range r.Events {
		s := spans[r.EventChoice[i]]
		if s == nil {
			s = &span{first: at}
			spans[r.EventChoice[i]] = s
			order = append(order, s)
		}
		s.last = at
		if len(r.EventTokens) == len(r.Events) {
			s.tokens += float64(r.EventTokens[i])
		} else {
			s.tokens += float64(n) / float64(len(r.Events))
		}
	}
	sum, k := 0.0, 0
	for _, s := range order {
		if s.tokens > 1 {
			sum += float64(s.last-s.first) / perMS / (s.tokens - 1)
			k++
		}
	}
	if k == 0 {
		return 0, false
	}
	return sum / float64(k), true
}

func sampleTPOT(r *bench.Record, _ *Context, add func(float64)) {
	if v, ok := tpot(r); ok {
		add(v)
	}
}

func sampleUserRate(r *bench.Record, _ *Context, add func(float64)) {
	if v, ok := tpot(r); ok && v > 0 {
		add(1000 / v)
	}
}

func sampleTailTBT(r *bench.Record, _ *Context, add func(float64)) {
	var all []float64
	gaps(r, func(g gap) { all = append(all, float64(g.length)/perMS) })
	if len(all) < 10 {
		return
	}
	slices.Sort(all)
	longest := all[len(all)-len(all)/10:]
	sum := 0.0
	for _, v := range longest {
		sum += v
	}
	add(sum / float64(len(longest)))
}

func sampleNTPOT(r *bench.Record, _ *Context, add func(float64)) {
	if n := r.OSL.Or(0); n > 0 {
		between(r.Sent, r.Last, func(ms float64) { add(ms / float64(n)) })
	}
}

func sampleE2ERate(r *bench.Record, _ *Context, add func(float64)) {
	if n := r.OSL.Or(0); n > 0 {
		between(r.Sent, r.Last, func(ms float64) {
			if ms > 0 {
				add(float64(n) / ms * 1000)
			}
		})
	}
}

func samplePrefillRate(r *bench.Record, _ *Context, add func(float64)) {
	if n := r.ISL.Or(0); n > 0 {
		between(r.Sent, r.First, func(ms float64) {
			if ms > 0 {
				add(float64(n) / ms * 1000)
			}
		})
	}
}

// sampleFluidity walks over the token deadlines.
func sampleFluidity(r *bench.Record, x *Context, add func(float64)) {
	first, hasFirst := x.limit("ttft")
	each, hasEach := x.limit("tpot")
	if !hasEach {
		each, hasEach = x.limit("itl")
	}
	if !hasFirst || !hasEach || len(r.Events) == 0 {
		return
	}
	deadline, met, all := first, 0, 0
	for i, at := range r.Events {
		n := 1
		if len(r.EventTokens) == len(r.Events) {
			n = r.EventTokens[i]
		}
		for range n {
			all++
			if at <= deadline {
				met++
				deadline += each
			} else {
				deadline = at + each
			}
		}
	}
	if all > 0 {
		add(float64(met) / float64(all))
	}
}

func sampleQueue(r *bench.Record, x *Context, add func(float64)) {
	if !x.Spec.Load.Open() {
		return
	}
	due, ok := r.Due.Get()
	if !ok {
		return
	}
	add(float64(r.Slot.Or(due)-due) / perMS)
}

func sampleLag(r *bench.Record, x *Context, add func(float64)) {
	if !x.Spec.Load.Paced() {
		return
	}
	due, ok := r.Due.Get()
	sent, ok2 := r.Sent.Get()
	if ok && ok2 {
		add(float64(r.Handed.Or(sent)-max(due, r.Slot.Or(due))) / perMS)
	}
}

func sampleConnect(r *bench.Record, _ *Context, add func(float64)) {
	if d, ok := r.Connect.Get(); ok {
		add(float64(d) / perMS)
	}
}

func sampleTLS(r *bench.Record, _ *Context, add func(float64)) {
	if d, ok := r.TLS.Get(); ok {
		add(float64(d) / perMS)
	}
}

func sampleCount(o opt.Of[int], add func(float64)) {
	if n, ok := o.Get(); ok {
		add(float64(n))
	}
}

func sampleISL(r *bench.Record, _ *Context, add func(float64))       { sampleCount(r.ISL, add) }
func sampleOSL(r *bench.Record, _ *Context, add func(float64))       { sampleCount(r.OSL, add) }
func sampleInputs(r *bench.Record, _ *Context, add func(float64))    { add(float64(r.Inputs)) }
func sampleCached(r *bench.Record, _ *Context, add func(float64))    { sampleCount(r.Cached, add) }
func sampleReasoning(r *bench.Record, _ *Context, add func(float64)) { sampleCount(r.Reasoning, add) }

func sampleDimensions(r *bench.Record, _ *Context, add func(float64)) {
	if r.Dimensions > 0 {
		add(float64(r.Dimensions))
	}
}
