package metrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// DefaultPercentiles are shown when none are asked for.
var DefaultPercentiles = []float64{50, 75, 90, 95, 99, 99.9}

// Summarize computes the result of a run from its manifest and its records, of all phases and in any order.
func Summarize(m *bench.Manifest, records []bench.Record) *bench.Summary {
	x := NewContext(m, records)
	s := &bench.Summary{Schema: bench.SummarySchema, Requests: x.Counts, Client: m.Client, Flags: map[bench.Flag]int{}}
	if w, ok := x.window(); ok {
		s.Window = opt.Some(w)
	}
	s.Client.Stalls, s.Client.Stalled = nil, int64(within(m.Client.Stalls, x.From, x.To))
	if merged, all := x.mergedEvents(); all > 0 {
		s.Client.MergedShare = opt.Some(float64(merged) / float64(all))
	}
	s.Load = x.loadResult()
	s.Steady = x.steady()
	s.Tokens, s.Form = x.tokenReport(), x.formReport()
	s.Series = x.series()
	drift := driftReason(s.Steady.Word)
	s.Metrics = x.metrics(drift)
	s.Targets = x.targets(drift)
	s.Phases = x.phases()
	s.Classes = x.classes(drift)
	s.Limits = x.timeLimits()
	for _, r := range x.Records {
		for _, f := range r.Flags {
			s.Flags[f]++
		}
	}
	s.Errors, s.Others = x.errors()
	s.Tail = readTail(s)
	s.Caveats = caveats(x, s)
	s.Verdict = VerdictOf(s.Caveats)
	return s
}

func (x *Context) percentiles() []float64 {
	p := slices.Clone(x.Spec.Percentiles)
	if len(p) == 0 {
		p = slices.Clone(DefaultPercentiles)
	}
	slices.Sort(p)
	return slices.Compact(p)
}

// phases are the results of each of several measured phases.
func (x *Context) phases() []bench.PhaseResult {
	measured := x.Manifest.Spec.Measured()
	if len(measured) < 2 {
		return nil
	}
	var out []bench.PhaseResult
	for _, p := range measured {
		y := x.ofPhase(p)
		r := bench.PhaseResult{Name: p.Name, Requests: y.Counts, Load: y.loadResult(), Steady: y.steady()}
		if w, ok := y.window(); ok {
			r.Window = opt.Some(w)
		}
		r.Metrics = y.metrics(driftReason(r.Steady.Word))
		out = append(out, r)
	}
	return out
}

// driftReason says why a run that went so has no intervals, or is empty.
func driftReason(word string) string {
	if word == wordUp || word == wordDown {
		return "the latency is " + word + ", so that another run would differ"
	}
	return ""
}

// metrics computes the table.
func (x *Context) metrics(noInterval string) bench.Metrics {
	var out bench.Metrics
	for _, d := range Table() {
		m := bench.Metric{Key: d.Key}
		has := d.For.Has(x.Spec.Target.Task)
		if d.Sample == nil {
			m.Scalar = &bench.Scalar{Unit: d.Unit}
			if v, ok := d.Value(x); ok && has {
				m.Scalar.Value = opt.Some(v)
			}
		} else if has {
			m.Dist = x.describe(d, noInterval)
		}
		out = append(out, m)
	}
	return out
}

// targets describes each of several targets by itself. One whose own latency drifts has no intervals either.
func (x *Context) targets(noInterval string) []bench.TargetResult {
	urls := x.Spec.Target.URLs
	if len(urls) < 2 {
		return nil
	}
	out := make([]bench.TargetResult, len(urls))
	for i, u := range urls {
		part := &Context{Manifest: x.Manifest, Spec: x.Spec, Counts: bench.Counts{ByOutcome: map[bench.Outcome]int{}}}
		for _, r := range x.Records {
			if r.Target == i {
				part.Records = append(part.Records, r)
			}
		}
		part.count()
		t := &out[i]
		t.URL, t.Sent, t.OK, t.Failed = u, part.Counts.Sent, part.Counts.OK, part.Counts.Failed
		_, latency := part.latencySeries()
		reason := cmp.Or(noInterval, driftReason(trendWord(latency)))
		for _, d := range Table() {
			switch d.Key {
			case "ttft_ms":
				t.TTFT = part.describe(d, reason)
			case "tpot_ms":
				t.TPOT = part.describe(d, reason)
			case "e2el_ms":
				t.E2EL = part.describe(d, reason)
			}
		}
		// all rates over the window of the whole run
		if w, ok := x.window(); ok {
			t.RequestThroughput = opt.Some(float64(part.Counts.OK) / w)
			if part.outputKnown {
				t.OutputThroughput = opt.Some(float64(part.okTokens) / w)
			}
		}
	}
	return out
}

// timeLimits are the bounds of time that ruled the measured requests.
func (x *Context) timeLimits() bench.TimeLimits {
	bound := func(d time.Duration) opt.Of[float64] {
		if d == 0 {
			return opt.Of[float64]{}
		}
		return opt.Some(d.Seconds())
	}
	c := x.Spec.Client
	return bench.TimeLimits{Request: bound(c.Timeout), Connect: bound(c.ConnectTimeout), Grace: x.Spec.Stop.Grace.Seconds()}
}
