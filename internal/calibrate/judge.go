package calibrate

import (
	"fmt"
	"math"
	"slices"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/stats"
)

// What a level must keep to pass.
const (
	mostTTFT      = 1e6   // ns, at p99
	mostITL       = 0.001 // of the mean gap, at the mean
	leastAttained = 0.99  // of the offered rate
)

// mostLateWrites is the share of late writes above which the server was at its limit.
const mostLateWrites = 0.05

// judge holds what a run reports against the truth.
func judge(l Level, res *run.Result, t *truth) bench.CalibrationLevel {
	m, sum := res.Manifest, res.Summary
	out := bench.CalibrationLevel{Streams: l.Streams, Rate: l.Rate, Requests: sum.Requests.Sent, Attained: sum.Load.Attained, LateWrites: t.late}
	var ttft, gaps, sizes []float64
	truly := 0.0 // sum of the true gaps
	for i := range res.Records {
		r := &res.Records[i]
		if r.Outcome != bench.OK {
			continue
		}
		out.Events += r.OutEvents
		s := t.of[fmt.Sprintf("%s-%d", requestID, r.ID)]
		if s == nil {
			continue
		}
		writes, first, sent := s.writes(), r.First, r.Sent
		if len(writes) != len(r.Events) || !first.Defined() || !sent.Defined() {
			continue
		}
		out.Joined++
		ttft = append(ttft, float64(first.Or(0)-sent.Or(0))-float64(writes[0]-s.Arrival))
		for k := 1; k < len(writes); k++ {
			gap := float64(writes[k] - writes[k-1])
			e := float64(r.Events[k]-r.Events[k-1]) - gap
			gaps, sizes = append(gaps, e), append(sizes, math.Abs(e))
			truly += gap
		}
	}
	if w, ok := sum.Window.Get(); ok && w > 0 {
		out.RequestRate, out.EventRate = float64(sum.Requests.OK)/w, float64(out.Events)/w
	}
	out.TTFT = errorOf(ttft, ttft)
	out.ITL = errorOf(gaps, sizes)
	if truly > 0 {
		mean, _ := stats.Mean(gaps)
		out.ITLRelative = mean * float64(len(gaps)) / truly
	}
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

// errorOf describes errors: their mean, and percentiles of others that stand for them.
func errorOf(errors, of []float64) (e bench.ErrorOf) {
	mean, ok := stats.Mean(errors)
	if !ok {
		return e
	}
	sorted := slices.Sorted(slices.Values(of))
	p50, _ := stats.Quantile(sorted, 50)
	p99, _ := stats.Quantile(sorted, 99)
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
	case l.TTFT.P99 > mostTTFT || l.TTFT.Mean < -mostTTFT:
		return fmt.Sprintf("TTFT is off by %.2g ms at p99", float64(l.TTFT.P99)/1e6)
	case l.Streams > 0 && math.Abs(l.ITLRelative) > mostITL: // short answers have one gap, whose end shares a read with what ends the answer
		return fmt.Sprintf("ITL is off by %.2g %%", 100*l.ITLRelative)
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

// ceilingOf is the highest load that passed. It is exact where a higher one failed while the server was not at its limit: then the
// client was.
func ceilingOf(levels []bench.CalibrationLevel) bench.Ceiling {
	c := bench.Ceiling{RequestsBound: true, EventsBound: true}
	for _, l := range levels {
		if l.Passed {
			c.RequestRate, c.EventRate = max(c.RequestRate, l.RequestRate), max(c.EventRate, l.EventRate)
		}
	}
	for _, l := range levels {
		if l.Passed || l.ServerLimited {
			continue
		}
		if l.Streams > 0 {
			c.EventsBound = false
		} else {
			c.RequestsBound = false
		}
	}
	return c
}
