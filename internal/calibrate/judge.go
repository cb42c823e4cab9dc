package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/stats"
)

// What a level must keep to pass.
const (
	mostTTFT      = 1e6   // ns, of the magnitude at p99
	mostLag       = 1e6   // ns, at p99
	mostITL       = 0.001 // of the mean gap, at the mean
	leastAttained = 0.99  // of the offered rate
)

// mostLateWrites is the share of late writes above which the server was at its limit.
const mostLateWrites = 0.05

// judge holds what a run reports against the truth.
func judge(l Level, res *run.Result, t *truth) bench.CalibrationLevel {
	m, sum := res.Manifest, res.Summary
	out := bench.CalibrationLevel{Streams: l.Streams, Rate: l.Rate, Requests: sum.Requests.Sent, OK: sum.Requests.OK,
		Attained: sum.Load.Attained, LateWrites: t.late}
	var ttft, events, gaps []float64
	truly := 0.0 // sum of the true gaps
	for i := range res.Records {
		r := &res.Records[i]
		if r.Outcome != bench.OK {
			continue
		}
		out.Events += r.OutEvents
		s := t.of[idOf(r)]
		if s == nil {
			continue
		}
		writes, first := s.writes(), r.First
		sent, ok := r.Sent.Get()
		if len(writes) == 0 || len(writes) != len(r.Events) || !first.Defined() || !ok {
			continue
		}
		out.Joined++
		if s.Stamp != "socket" {
			out.UserArrivals++
		}
		ttft = append(ttft, float64(first.Or(0)-sent)-float64(writes[0]-s.Arrival))
		began := m.Epoch.UnixNano() + int64(sent)
		for k, at := range writes {
			events = append(events, float64(began+int64(r.Events[k])-at))
			if k > 0 {
				gap := float64(at - writes[k-1])
				gaps = append(gaps, float64(r.Events[k]-r.Events[k-1])-gap)
				truly += gap
			}
		}
	}
	if w, ok := sum.Window.Get(); ok && w > 0 {
		out.RequestRate, out.EventRate = float64(sum.Requests.OK)/w, float64(out.Events)/w
	}
	if mean, ok := stats.Mean(gaps); ok && truly > 0 {
		out.ITLRelative = mean * float64(len(gaps)) / truly
	}
	out.TTFT, out.Event, out.ITL = errorOf(ttft), errorOf(events), errorOf(gaps)
	out.Lag50, out.Lag99 = lagOf(sum, 50), lagOf(sum, 99)
	out.Why = whyNot(&out, sum, m)
	out.Passed = out.Why == ""
	out.ServerLimited = t.late > mostLateWrites
	return out
}

// lagOf is a percentile of the client's lag, in ns.
func lagOf(s *bench.Summary, p float64) int64 {
	v, _ := s.Metrics.Dist("lag_ms").P(p)
	return int64(math.Round(v * 1e6))
}

// errorOf describes errors by their mean and the percentiles of their magnitude. It keeps the magnitudes in their place.
func errorOf(errors []float64) (e bench.ErrorOf) {
	mean, ok := stats.Mean(errors)
	if !ok {
		return e
	}
	for i, v := range errors {
		errors[i] = math.Abs(v)
	}
	stats.Sort(errors)
	p50, _ := stats.Quantile(errors, 50)
	p99, _ := stats.Quantile(errors, 99)
	return bench.ErrorOf{Mean: int64(math.Round(mean)), P50: int64(math.Round(p50)), P99: int64(math.Round(p99))}
}

// whyNot says why a level did not pass; empty when it did.
func whyNot(l *bench.CalibrationLevel, s *bench.Summary, m *bench.Manifest) string {
	switch {
	case m.State != bench.Complete:
		return "the run was " + string(m.State)
	case s.Requests.OK < s.Requests.Sent || s.Requests.Sent == 0:
		return fmt.Sprintf("%d of %d requests are not ok", s.Requests.Sent-s.Requests.OK, s.Requests.Sent)
	case l.Joined < s.Requests.OK:
		return fmt.Sprintf("%d of %d requests have no truth", s.Requests.OK-l.Joined, s.Requests.OK)
	case l.TTFT.P99 > mostTTFT:
		return fmt.Sprintf("TTFT is off by %.2g ms at p99", float64(l.TTFT.P99)/1e6)
	case l.Streams > 0 && math.Abs(l.ITLRelative) > mostITL: // short answers have one gap, whose end shares a read with what ends the answer
		return fmt.Sprintf("ITL is off by %.2g %%", 100*l.ITLRelative)
	case l.Lag99 > mostLag:
		return fmt.Sprintf("requests were sent %.2g ms late at p99", float64(l.Lag99)/1e6)
	case l.Attained.Or(1) < leastAttained:
		return fmt.Sprintf("%.1f %% of the rate was sent", 100*l.Attained.Or(1))
	}
	for _, c := range s.Caveats {
		if c.Severity == bench.SeverityVoid {
			return c.Text
		}
	}
	return ""
}

// ceilingOf is the highest load that passed: events/s above all of streams, requests/s above all of rates. It is exact where the next
// load of that kind failed while the server was not at its limit: then the client was. A lower load that failed tells of a disturbance,
// not of the client's limit.
func ceilingOf(levels []bench.CalibrationLevel) bench.Ceiling {
	events, eventsExact := highest(levels, true, func(l *bench.CalibrationLevel) float64 { return l.EventRate })
	requests, requestsExact := highest(levels, false, func(l *bench.CalibrationLevel) float64 { return l.RequestRate })
	return bench.Ceiling{EventRate: events, EventsBound: !eventsExact, RequestRate: requests, RequestsBound: !requestsExact}
}

// highest is the highest rate of all levels that passed, and whether the levels of one kind show that it is the client's ceiling.
func highest(levels []bench.CalibrationLevel, streams bool, rate func(*bench.CalibrationLevel) float64) (top float64, exact bool) {
	for i := range levels {
		if l := &levels[i]; l.Passed {
			top = max(top, rate(l))
		}
	}
	own := slices.DeleteFunc(slices.Clone(levels), func(l bench.CalibrationLevel) bool { return (l.Streams > 0) != streams })
	slices.SortStableFunc(own, func(a, b bench.CalibrationLevel) int {
		return cmp.Or(cmp.Compare(a.Streams, b.Streams), cmp.Compare(a.Rate, b.Rate))
	})
	for i := len(own) - 1; i >= 0; i-- {
		if own[i].Passed {
			return top, i+1 < len(own) && !own[i+1].ServerLimited && rate(&own[i]) == top
		}
	}
	return top, false
}
