package sweep

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stats"
)

// confidence of the intervals over rounds.
const confidence = 0.95

// Bounds of what breaks a level.
const (
	errorShare  = 0.05 // of the requests that fail, from which on a level is broken
	levelGain   = 0.05 // of throughput: a closed loop that gains less by more users is saturated,
	latencyRise = 0.5  // when its latency grows by half of what the load does
)

// conclude computes the curve from the runs so far.
func (s *sweeper) conclude() {
	c := s.curve
	var loads []float64
	for l := range s.runs {
		loads = append(loads, l)
	}
	slices.Sort(loads)
	c.Levels = []bench.CurveLevel{}
	for _, l := range loads {
		c.Levels = append(c.Levels, s.levelOf(l))
	}
	for i := range c.Levels {
		s.breaks(c.Levels[:i+1])
	}
	c.GPUs = s.gpus()
	c.Frontier = frontier(c)
	c.Knee = knee(c)
	c.Breaking = breaking(c)
	c.Best = s.best()
	c.Capacity = s.capacity()
	c.Caveats, c.Verdict = s.caveats()
}

// levelOf puts the rounds of a load together. Void runs give no figures.
func (s *sweeper) levelOf(load float64) bench.CurveLevel {
	l := bench.CurveLevel{Load: load, Breaks: []string{}}
	runs := slices.Clone(s.runs[load])
	sort.SliceStable(runs, func(i, j int) bool { return runs[i].Round < runs[j].Round })
	var sums []*bench.Summary
	met, judged := 0, 0
	for _, o := range runs {
		l.Runs = append(l.Runs, o.CurveRun)
		if o.Verdict == bench.Void {
			sums = append(sums, nil)
		} else {
			sums = append(sums, o.sum)
		}
		if m, ok := o.Margin.Get(); ok && !clientsFault(o) {
			if judged++; m <= 0 {
				met++
			}
		}
	}
	l.Metrics = figures(sums)
	if judged > 0 {
		l.Meets, l.Sure = opt.Some(2*met > judged), met == judged || met == 0
	}
	return l
}

// clientsFault tells whether a run is void through the client, so that it says nothing of the server.
func clientsFault(o *outcome) bool {
	return o.Verdict == bench.Void && !slices.Contains(o.Caveats, "mostly_failed") && !slices.Contains(o.Caveats, "no_success")
}

// figures are all metrics of a level; a nil summary is a void run.
func figures(sums []*bench.Summary) []bench.CurveMetric {
	out := []bench.CurveMetric{}
	add := func(key, unit string, value func(*bench.Summary) (float64, bool)) {
		m := bench.CurveMetric{Key: key, Unit: unit, Rounds: []opt.Of[float64]{}}
		var xs []float64
		for _, sum := range sums {
			var v opt.Of[float64]
			if sum != nil {
				v = defined(value(sum))
			}
			if x, ok := v.Get(); ok {
				xs = append(xs, x)
			}
			m.Rounds = append(m.Rounds, v)
		}
		if len(xs) == 0 {
			return
		}
		m.Mean = defined(stats.Mean(xs))
		if ci, ok := stats.MeanCI(xs, confidence); ok {
			m.Low, m.High = opt.Some(ci.Lo), opt.Some(ci.Hi)
		}
		out = append(out, m)
	}
	for _, d := range metrics.Table() {
		if d.Value != nil {
			add(d.Key, d.Unit, func(s *bench.Summary) (float64, bool) { return s.Metrics.Value(d.Key) })
			continue
		}
		add(d.Key+".mean", d.Unit, func(s *bench.Summary) (float64, bool) {
			if x := s.Metrics.Dist(d.Key); x != nil {
				return x.Mean, true
			}
			return 0, false
		})
		for _, p := range percentilesOf(sums, d.Key) {
			add(d.Key+"."+bench.PercentileKey(p), d.Unit, func(s *bench.Summary) (float64, bool) { return s.Metrics.Dist(d.Key).P(p) })
		}
	}
	return out
}

// percentilesOf are the percentiles of a metric that the first summary has.
func percentilesOf(sums []*bench.Summary, key string) (out []float64) {
	for _, s := range sums {
		if s == nil || s.Metrics.Dist(key) == nil {
			continue
		}
		for _, q := range s.Metrics.Dist(key).Quantiles {
			out = append(out, q.P)
		}
		return out
	}
	return nil
}

// breaks fills in why the last of ascending levels is broken.
func (s *sweeper) breaks(levels []bench.CurveLevel) {
	l := &levels[len(levels)-1]
	say := func(reason, why string) { l.Breaks, l.Why = append(l.Breaks, reason), append(l.Why, why) }
	sent, failed := 0, 0
	slope, peak := 0, 0
	for _, r := range l.Runs {
		sent, failed = sent+r.Sent, failed+r.Failed
		slope += count(slices.Contains(r.Saturated, "slope"))
		peak += count(slices.Contains(r.Saturated, "peak"))
	}
	if sent > 0 && float64(failed) > errorShare*float64(sent) {
		say(Errors, fmt.Sprintf("%s %% of the requests failed", metrics.Three(100*float64(failed)/float64(sent))))
	}
	if meets, ok := l.Meets.Get(); ok && !meets {
		say(SLO, "the SLO is missed: "+worstWords(l))
	}
	switch n := len(l.Runs); {
	case 2*max(slope, peak) > n:
		var rules []string
		if slope > 0 {
			rules = append(rules, fmt.Sprintf("slope test: in flight and TTFT climb, in %d of %d rounds", slope, n))
		}
		if peak > 0 {
			rules = append(rules, fmt.Sprintf("peak rule: most are in flight at the end, in %d of %d rounds", peak, n))
		}
		say(Saturation, "requests pile up ("+strings.Join(rules, "; ")+")")
	case s.Plan.Axis == bench.ByConcurrency && len(levels) > 1:
		if why := flat(levels); why != "" {
			say(Saturation, why)
		}
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// worstWords is the worst figure of the rounds that missed the SLO.
func worstWords(l *bench.CurveLevel) string {
	worst := -1
	for i, r := range l.Runs {
		if m, ok := r.Margin.Get(); ok && (worst < 0 || m > l.Runs[worst].Margin.Or(0)) {
			worst = i
		}
	}
	if worst < 0 {
		return "no figure"
	}
	return l.Runs[worst].Worst
}

// flat says that the last level of a closed loop buys no throughput, and only latency, or nothing.
func flat(levels []bench.CurveLevel) string {
	l := &levels[len(levels)-1]
	x, ok := l.Mean("request_throughput")
	if !ok {
		return ""
	}
	best := -1
	for i := range levels[:len(levels)-1] {
		if v, ok := levels[i].Mean("request_throughput"); ok && (best < 0 || v > first(levels[best].Mean("request_throughput"))) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	b := &levels[best]
	before := first(b.Mean("request_throughput"))
	more := l.Load/b.Load - 1
	was, now := first(b.Mean("e2el_ms.mean")), first(l.Mean("e2el_ms.mean"))
	// the gain that counts is that of a doubling: small steps gain little anywhere
	gain := (x/before - 1) * math.Ln2 / math.Log1p(more)
	if was <= 0 || gain >= levelGain || now/was-1 < latencyRise*more {
		return ""
	}
	return fmt.Sprintf("more users bring no more throughput: %s req/s, %s at %s; the latency is %s x that", metrics.Three(x), metrics.Three(before),
		LoadWords(bench.ByConcurrency, b.Load), metrics.Three(now/was))
}

func first(v float64, _ bool) float64 { return v }

// broken says why a ladder goes no further up: two neighbouring levels are broken for a reason that it stops on. One alone may be chance.
func (s *sweeper) broken(loads []float64) string {
	n := len(s.curve.Levels)
	if n < 2 || len(loads) < 2 {
		return ""
	}
	var words []string
	for _, l := range s.curve.Levels[n-2:] {
		why := ""
		for i, reason := range l.Breaks {
			if slices.Contains(s.Plan.StopOn, reason) {
				why = l.Why[i]
			}
		}
		if why == "" {
			return ""
		}
		words = append(words, "at "+LoadWords(s.Plan.Axis, l.Load)+" "+why)
	}
	return "broken for good: " + strings.Join(words, "; ")
}

// breaking is the lowest level from which on all measured ones are broken.
func breaking(c *bench.Curve) *bench.CurvePoint {
	at := -1
	for i := len(c.Levels) - 1; i >= 0 && len(c.Levels[i].Breaks) > 0; i-- {
		at = i
	}
	if at < 0 {
		return nil
	}
	return point(&c.Levels[at], strings.Join(c.Levels[at].Why, "; "))
}

// point is a level with its rates.
func point(l *bench.CurveLevel, why string) *bench.CurvePoint {
	p := &bench.CurvePoint{Load: l.Load, Why: why}
	if m := l.Get("request_throughput"); m != nil {
		p.Throughput, p.Low, p.High = m.Mean, m.Low, m.High
	}
	if m := l.Get("goodput"); m != nil {
		p.Goodput, p.Low, p.High = m.Mean, m.Low, m.High
	}
	return p
}

// best is the highest level that meets the SLO, with none below it that misses it in each round: one that misses it in some is noise.
func (s *sweeper) best() *bench.CurvePoint {
	at := -1
	for i, l := range s.curve.Levels {
		meets, ok := l.Meets.Get()
		if !ok || !meets && l.Sure {
			break
		}
		if meets {
			at = i
		}
	}
	if at < 0 {
		return nil
	}
	l := &s.curve.Levels[at]
	why := "met in most rounds, but not in all"
	if l.Sure {
		why = "met in each of " + plural(len(l.Runs), "round")
	}
	return point(l, why+"; "+middleWords(l))
}

// middleWords is the figure nearest to its limit, of the round in the middle.
func middleWords(l *bench.CurveLevel) string {
	runs := slices.DeleteFunc(slices.Clone(l.Runs), func(r bench.CurveRun) bool { return !r.Margin.Defined() })
	slices.SortStableFunc(runs, func(a, b bench.CurveRun) int { return cmp.Compare(a.Margin.Or(0), b.Margin.Or(0)) })
	if len(runs) == 0 {
		return "no figure"
	}
	return runs[(len(runs)-1)/2].Worst
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// capacity recommends a load: the highest that meets the SLO, or without one the highest that is not broken, less the reserve.
func (s *sweeper) capacity() *bench.Capacity {
	c := s.curve
	var from *bench.CurvePoint
	why := ""
	switch {
	case c.Search != nil && c.Search.Load.Defined():
		load, _ := c.Search.Load.Get()
		if l := s.level(load); l != nil {
			from, why = point(l, ""), "the search's answer"
		}
	case c.Search != nil:
	case s.hasSLO():
		from, why = c.Best, "the highest load that meets the SLO"
	case len(c.Levels) > 0:
		for i := range c.Levels {
			if len(c.Levels[i].Breaks) > 0 {
				break
			}
			from, why = point(&c.Levels[i], ""), "the highest load before saturation; no SLO was given, so that nothing is said of latency"
		}
	}
	if from == nil {
		return nil
	}
	out := &bench.Capacity{Load: rounded((1 - s.Plan.Reserve) * from.Load), From: from.Load, Reserve: s.Plan.Reserve,
		Why: fmt.Sprintf("%s, less a reserve of %s %%", why, metrics.Three(100*s.Plan.Reserve))}
	if s.Plan.Axis == bench.ByConcurrency {
		out.Load = max(1, math.Floor(out.Load))
	}
	out.Throughput = throughputAt(c, out.Load)
	return out
}

// throughputAt is the throughput at a load, on the line between the measured ones around it.
func throughputAt(c *bench.Curve, load float64) opt.Of[float64] {
	var before, beforeX float64
	for i := range c.Levels {
		l := &c.Levels[i]
		x, ok := l.Mean("request_throughput")
		switch {
		case !ok:
			continue
		case l.Load >= load:
			share := (load - before) / (l.Load - before)
			return opt.Some(beforeX + share*(x-beforeX))
		}
		before, beforeX = l.Load, x
	}
	return opt.Of[float64]{}
}

// gpus is the number of devices: as given, or as the engines tell.
func (s *sweeper) gpus() opt.Of[int] {
	if s.Plan.GPUs > 0 {
		return opt.Some(s.Plan.GPUs)
	}
	n := 0
	for _, e := range s.curve.Sheet.Engines {
		t, ok := e.Tensor.Get()
		if !ok {
			return opt.Of[int]{}
		}
		n += t * e.Pipeline.Or(1) * e.Data.Or(1)
	}
	if n == 0 {
		return opt.Of[int]{}
	}
	return opt.Some(n)
}

// frontier is the set of levels that no other beats in both rates, by descending rate of a user.
func frontier(c *bench.Curve) []bench.FrontierStep {
	var all []bench.FrontierStep
	gpus := float64(c.GPUs.Or(1))
	for i := range c.Levels {
		l := &c.Levels[i]
		l.Frontier = false
		user, ok := l.Mean("per_user_throughput.mean")
		rate, ok2 := l.Mean("output_throughput")
		if ok && ok2 {
			all = append(all, bench.FrontierStep{Load: l.Load, PerUser: user, Rate: rate / gpus})
		}
	}
	slices.SortFunc(all, func(a, b bench.FrontierStep) int {
		switch {
		case a.PerUser > b.PerUser || a.PerUser == b.PerUser && a.Rate > b.Rate:
			return -1
		case a == b:
			return 0
		}
		return 1
	})
	out := []bench.FrontierStep{}
	for _, f := range all {
		if len(out) == 0 || f.Rate > out[len(out)-1].Rate {
			out = append(out, f)
			for i := range c.Levels {
				c.Levels[i].Frontier = c.Levels[i].Frontier || c.Levels[i].Load == f.Load
			}
		}
	}
	return out
}

// kneeSensitivity is Kneedle's S, as its authors propose.
const kneeSensitivity = 1

// knee finds where the curve bends. The law's loads are the numbers in flight; those of an open loop are means.
func knee(c *bench.Curve) bench.Knee {
	k := bench.Knee{Axis: "linear"}
	var loads, x, flying, rates []float64
	for i := range c.Levels {
		l := &c.Levels[i]
		v, ok := l.Mean("request_throughput")
		if !ok {
			continue
		}
		loads, x = append(loads, l.Load), append(x, v)
		n, ok := l.Load, true
		if c.Plan.Axis == bench.ByRate {
			n, ok = l.Mean("concurrency")
		}
		if ok && n >= 1 {
			flying, rates = append(flying, n), append(rates, v)
		}
	}
	scaled := slices.Clone(loads)
	if geometric(loads) {
		k.Axis = "log2"
		for i := range scaled {
			scaled[i] = math.Log2(scaled[i])
		}
	}
	if at, ok := stats.Kneedle(scaled, x, kneeSensitivity); ok {
		k.Kneedle = opt.Some(loads[at])
	}
	if u, ok := stats.FitUSL(flying, rates); ok {
		k.USL = &bench.USLFit{Lambda: u.Lambda, Sigma: u.Sigma, Kappa: u.Kappa, Peak: defined(u.Peak()), Limit: defined(u.Saturation())}
	} else {
		k.Note = fmt.Sprintf("the USL needs 6 levels with at least one request in flight; there are %d", len(rates))
	}
	return k
}

// expected are the caveats that a level has because of what breaks it: they tell of the server, and cast no doubt on the curve.
var expected = map[string][]string{
	Saturation: {"drifting", "no_plateau"},
	SLO:        {"drifting", "no_plateau"},
	Errors:     {"failures", "mostly_failed", "no_success"},
}

// caveats gathers what bears on the curve, and its verdict: void without a usable run, doubtful when a run is, by more than what its level shows.
func (s *sweeper) caveats() ([]bench.Caveat, bench.Verdict) {
	out := []bench.Caveat{}
	usable, doubtful := 0, false
	runs := map[string][]string{} // by code
	var order []string
	for i := range s.curve.Levels {
		l := &s.curve.Levels[i]
		for _, r := range l.Runs {
			usable += count(r.Verdict != bench.Void)
			for _, code := range r.Caveats {
				if slices.ContainsFunc(l.Breaks, func(why string) bool { return slices.Contains(expected[why], code) }) {
					continue // it is what the level shows
				}
				doubtful = true
				if runs[code] == nil {
					order = append(order, code)
				}
				runs[code] = append(runs[code], r.Dir)
			}
		}
	}
	for _, code := range order {
		dirs := runs[code]
		shown := strings.Join(dirs[:min(4, len(dirs))], ", ")
		if len(dirs) > 4 {
			shown += ", ..."
		}
		out = append(out, bench.Caveat{Code: code, Severity: bench.SeverityWarn, Text: fmt.Sprintf("%s in %s: %s", strings.ReplaceAll(code, "_", " "), plural(len(dirs), "run"), shown),
			Remedy: "their own reports say more"})
	}
	if s.Plan.Rounds < 2 && !s.Plan.Search {
		out = append(out, bench.Caveat{Code: "no_interval", Severity: bench.SeverityNote, Text: "one round has no intervals", Remedy: "--rounds 5"})
	}
	switch {
	case usable == 0:
		return out, bench.Void
	case doubtful:
		return out, bench.Doubtful
	}
	return out, bench.Valid
}
