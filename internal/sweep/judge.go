package sweep

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/stats"
)

// The reasons for which a level is broken.
const (
	Errors     = "errors"
	SLO        = "slo"
	Saturation = "saturation"
)

// StopRules are the words of --stop-on.
var StopRules = []string{Errors, SLO, Saturation}

// Metrics that a condition may be about.
var conditionMetrics = []string{"ttft", "tpot", "itl", "e2el"}

const sloHint = `such as "ttft_p99<2000 and tpot_p99<50", in ms; ttft<500 limits each request, ttft_mean and ttft_p99 a figure of the run`

// longestLimit bounds a limit, in ms.
const longestLimit = 1e9

// ParseSLO reads objectives: conditions on means and percentiles, and limits that a share of the requests has to meet.
func ParseSLO(s string) (conditions []bench.Condition, limits []bench.Limit, err error) {
	seen := map[string]bool{}
	for _, part := range strings.FieldsFunc(strings.ReplaceAll(s, " and ", ","), func(r rune) bool { return r == ',' || r == ';' }) {
		part = strings.TrimSpace(part)
		left, right, ok := strings.Cut(part, "<")
		ms, perr := strconv.ParseFloat(strings.TrimSpace(strings.TrimPrefix(right, "=")), 64)
		if !ok || perr != nil || !(ms > 0 && ms <= longestLimit) {
			return nil, nil, fault.Usagef(sloHint, "%q is no objective", part)
		}
		left = strings.TrimSpace(left)
		metric, stat, figure := strings.Cut(left, "_")
		if !slices.Contains(conditionMetrics, metric) {
			return nil, nil, fault.Usagef("it is one of: "+strings.Join(conditionMetrics, ", "), "%q is no metric%s", metric, catalog.DidYouMean(metric, conditionMetrics))
		}
		if seen[left] {
			return nil, nil, fault.Usagef("give one limit for each", "%q is limited twice", left)
		}
		seen[left] = true
		if !figure {
			limits = append(limits, bench.Limit{Metric: metric, Max: time.Duration(math.Round(ms * 1e6))})
			continue
		}
		if _, ok := percentileOf(stat); !ok && stat != "mean" {
			return nil, nil, fault.Usagef(sloHint, "%q is neither mean nor a percentile such as p99", stat)
		}
		conditions = append(conditions, bench.Condition{Metric: metric, Stat: stat, Max: ms})
	}
	if len(seen) == 0 {
		return nil, nil, fault.Usagef(sloHint, "%q holds no objective", s)
	}
	return conditions, limits, nil
}

// percentileOf reads p99 and p99_9.
func percentileOf(stat string) (float64, bool) {
	digits, ok := strings.CutPrefix(stat, "p")
	p, err := strconv.ParseFloat(strings.ReplaceAll(digits, "_", "."), 64)
	return p, ok && err == nil && p > 0 && p < 100
}

// Percentiles adds those that conditions need to those of a spec.
func Percentiles(have []float64, conditions []bench.Condition) []float64 {
	if len(have) == 0 {
		have = metrics.DefaultPercentiles
	}
	out := slices.Clone(have)
	for _, c := range conditions {
		if p, ok := percentileOf(c.Stat); ok && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// hasSLO tells whether loads can be judged.
func (s *sweeper) hasSLO() bool { return len(s.Plan.SLO)+len(s.Spec.SLO) > 0 }

// judge makes an outcome of a finished run.
func (s *sweeper) judge(res *run.Result, round int, name string) *outcome {
	sum := res.Summary
	o := &outcome{sum: sum, CurveRun: bench.CurveRun{Round: round, Dir: name, Seed: res.Manifest.Spec.Seed, Verdict: sum.Verdict, Sent: sum.Requests.Sent,
		Failed: sum.Requests.Failed, Window: sum.Window, Saturated: []string{}, Caveats: []string{}}}
	for _, c := range sum.Caveats {
		if c.Severity == bench.SeverityVoid || c.Severity == bench.SeverityWarn {
			o.Caveats = append(o.Caveats, c.Code)
		}
	}
	if s.Plan.Axis == bench.ByRate {
		o.Saturated = saturated(res.Records)
	}
	if s.hasSLO() {
		o.Margin, o.Worst = s.margin(sum)
		if len(o.Saturated) > 0 && o.Margin.Or(1) <= saturatedMargin {
			o.Margin, o.Worst = opt.Some(saturatedMargin), "requests pile up: a longer run would not meet the SLO"
		}
	}
	return o
}

// saturatedMargin is the margin of a run in which requests pile up, whatever its figures: they only grow with its length. It is too
// small to decide alone, since the tests err at times near the capacity.
const saturatedMargin = 0.2

// mostMargin bounds the margins: how far off a hopeless level is says nothing.
const mostMargin = 5.0

// margin is the logarithm of the worst ratio of a figure to its limit, and that figure. It is undefined where a figure is.
func (s *sweeper) margin(sum *bench.Summary) (opt.Of[float64], string) {
	worst, words := math.Inf(-1), ""
	add := func(v float64, text string) {
		if v = min(max(v, -mostMargin), mostMargin); v > worst {
			worst, words = v, text
		}
	}
	for _, c := range s.Plan.SLO {
		v, ok := figure(sum, c)
		if !ok {
			return opt.Of[float64]{}, c.Metric + " " + c.Stat + " is not defined"
		}
		add(math.Log(v/c.Max), fmt.Sprintf("%s %s %s ms of %s ms", c.Metric, c.Stat, metrics.Three(v), loadText(c.Max)))
	}
	key, word := "success_rate", "succeeded"
	if len(s.Spec.SLO) > 0 {
		key, word = "goodput_ratio", "were good"
	}
	share, ok := sum.Metrics.Value(key)
	if !ok {
		return opt.Of[float64]{}, "no request ended"
	}
	missed := (1 - share) / max(1-s.Plan.Share, 1e-6)
	if missed > 0 {
		add(math.Log(missed), fmt.Sprintf("%s %% of the requests %s", metrics.Three(100*share), word))
	} else {
		add(-mostMargin, "all requests "+word)
	}
	return opt.Some(worst), words
}

// figure is the value that a condition limits. In an open loop the user waits from due on.
func figure(sum *bench.Summary, c bench.Condition) (float64, bool) {
	key := c.Metric + "_ms"
	if (c.Metric == "ttft" || c.Metric == "e2el") && sum.Load.Shape != bench.Closed {
		if d := sum.Metrics.Dist(c.Metric + "_from_due_ms"); d != nil {
			key = c.Metric + "_from_due_ms"
		}
	}
	d := sum.Metrics.Dist(key)
	if d == nil {
		return 0, false
	}
	if c.Stat == "mean" {
		return d.Mean, true
	}
	p, _ := percentileOf(c.Stat)
	return d.P(p)
}

// Bounds of the tests for saturation.
const (
	trendParts  = 20   // parts of the time of the arrivals whose means are a series
	trendP      = 0.01 // two-sided, of each series
	trendGrowth = 0.5  // climb over the arrivals, as a share of the median
	peakShare   = 0.9  // the most in flight falls in the last tenth of the arrivals,
	peakFactor  = 1.7  // is so many times the median (a steady climb from nothing: 2),
	peakTTFT    = 1.5  // and the latency of the last third is so many times that of the first
	leastTrend  = 100  // requests; fewer tell nothing
)

// saturated tells by which rules the requests of an open loop pile up: "slope" when the number in flight and the time to the first token
// both climb by the trend test of Mann and Kendall; "peak" when most requests are in flight at the end of the arrivals.
func saturated(records []bench.Record) []string {
	out := []string{}
	type request struct{ sent, end, first float64 }
	var rs []request
	for i := range records {
		r := &records[i]
		sent, ok := r.Sent.Get()
		if r.Phase == bench.Warmup || !ok {
			continue
		}
		from := r.Due.Or(sent)
		first := r.First.Or(r.Last.Or(r.End.Or(sent)))
		rs = append(rs, request{sent.Seconds(), r.End.Or(r.Last.Or(sent)).Seconds(), (first - from).Seconds()})
	}
	if len(rs) < leastTrend {
		return out
	}
	slices.SortFunc(rs, func(a, b request) int {
		switch {
		case a.sent < b.sent:
			return -1
		case a.sent > b.sent:
			return 1
		}
		return 0
	})
	begin, last := rs[0].sent, rs[len(rs)-1].sent
	if last <= begin {
		return out
	}
	flying, waits := make([]float64, trendParts), make([]float64, trendParts)
	counts := make([]float64, trendParts)
	part := (last - begin) / trendParts
	for _, r := range rs {
		k := min(int((r.sent-begin)/part), trendParts-1)
		waits[k] += r.first
		counts[k]++
		for i := k; i < trendParts && begin+float64(i)*part < r.end; i++ {
			lo, hi := begin+float64(i)*part, begin+float64(i+1)*part
			flying[i] += max(0, min(hi, r.end)-max(lo, r.sent)) / part
		}
	}
	for i := range waits {
		if counts[i] > 0 {
			waits[i] /= counts[i]
		} else if i > 0 {
			waits[i] = waits[i-1]
		}
	}
	if climbs(flying) && climbs(waits) {
		out = append(out, "slope")
	}
	peak := 0
	for i, v := range flying {
		if v > flying[peak] {
			peak = i
		}
	}
	third := trendParts / 3
	early, _ := stats.Mean(waits[:third])
	late, _ := stats.Mean(waits[trendParts-third:])
	middle := median(flying)
	if float64(peak+1) > peakShare*trendParts && flying[peak] >= peakFactor*middle && late >= peakTTFT*early {
		out = append(out, "peak")
	}
	return out
}

func climbs(series []float64) bool {
	t, ok := stats.MannKendallHamedRao(series)
	slope, ok2 := stats.TheilSen(series)
	return ok && ok2 && t.P < trendP && slope*float64(len(series)-1) > trendGrowth*median(series)
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	v, _ := stats.Quantile(sorted, 50)
	return v
}
