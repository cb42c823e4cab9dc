package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

// loadAxis is the axis of the loads: logarithmic where they grow by factors.
func (s *sweepBuilder) loadAxis() plot.Axis {
	a := plot.Axis{Label: "in flight", Whole: true}
	if s.c.Plan.Axis == bench.ByRate {
		a = plot.Axis{Label: "rate", Unit: "req/s"}
	}
	n := len(s.c.Levels)
	a.Log = n > 2 && s.c.Levels[n-1].Load >= 8*s.c.Levels[0].Load
	return a
}

// curveOf is a figure over the loads, with its interval over rounds as a band.
func (s *sweepBuilder) curveOf(key, name string, color plot.Color, size float64) []plot.Series {
	line := plot.Series{Name: name, Form: plot.Line, Color: color}
	dots := plot.Series{Form: plot.Dots, Color: color}
	band := plot.Series{Form: plot.Band, Color: color}
	for i := range s.c.Levels {
		l := &s.c.Levels[i]
		m := l.Get(key)
		if m == nil {
			continue
		}
		v, ok := m.Mean.Get()
		if !ok {
			continue
		}
		p := plot.Point{X: l.Load, Y: v / size}
		line.Points, dots.Points = append(line.Points, p), append(dots.Points, p)
		lo, ok := m.Low.Get()
		hi, ok2 := m.High.Get()
		if ok && ok2 {
			band.Low = append(band.Low, plot.Point{X: l.Load, Y: max(0, lo/size)})
			band.Points = append(band.Points, plot.Point{X: l.Load, Y: hi / size})
		}
	}
	if len(line.Points) == 0 {
		return nil
	}
	out := []plot.Series{line, dots}
	if len(band.Points) > 1 {
		out = append([]plot.Series{band}, out...)
	}
	return out
}

// marks are the loads that stand out, as rules across a figure of loads. Those that fall together share one.
func (s *sweepBuilder) marks() []plot.Rule {
	var out []plot.Rule
	add := func(at float64, label string) {
		for i := range out {
			if out[i].At == at {
				out[i].Label += ", " + label
				return
			}
		}
		out = append(out, plot.Rule{At: at, Label: label})
	}
	c := s.c
	if c.Capacity != nil {
		add(c.Capacity.Load, "capacity")
	}
	if c.Search != nil && c.Search.Load.Defined() {
		add(c.Search.Load.Or(0), "answer")
	} else if c.Best != nil {
		add(c.Best.Load, "SLO met")
	}
	if at, ok := c.Knee.Kneedle.Get(); ok {
		add(at, "knee")
	}
	if c.Breaking != nil {
		add(c.Breaking.Load, "breaks")
	}
	slices.SortFunc(out, func(a, b plot.Rule) int { return cmp.Compare(a.At, b.At) })
	return out
}

// figures show the curve.
func (s *sweepBuilder) figures() []Figure {
	if len(s.c.Levels) < 2 {
		return nil
	}
	var out []Figure
	note := "the band is the 95 % interval over rounds"
	if len(s.c.Levels[0].Runs) < 2 {
		note = ""
	}
	rates := slices.Concat(s.curveOf("request_throughput", "throughput", plot.Accent, 1), s.curveOf("goodput", "goodput", plot.Warm, 1))
	if len(rates) > 0 {
		out = append(out, Figure{Name: "throughput", Title: s.throughputFinding(), Note: note,
			Plot: &plot.Chart{Title: s.throughputFinding(), Alt: "requests per second over the load", X: s.loadAxis(), Y: plot.Axis{Label: "requests", Unit: "req/s"}, Height: 200,
				Series: rates, Rules: s.marks()}})
	}
	for _, f := range []struct{ name, key, word, metric string }{
		{"ttft", "ttft_ms", "TTFT", "ttft"}, {"tpot", "tpot_ms", "TPOT", "tpot"}, {"e2e", "e2el_ms", "E2E", "e2el"},
	} {
		if fig, ok := s.latencyFigure(f.name, f.key, f.word, f.metric); ok {
			fig.Note = note
			out = append(out, fig)
		}
	}
	return append(out, s.tradeFigures()...)
}

// limit is the objective of a metric, in ms: of its p99, or of each request.
func (s *sweepBuilder) limit(metric string) (float64, bool) {
	for _, c := range s.c.Plan.SLO {
		if c.Metric == metric {
			return c.Max, true
		}
	}
	for _, l := range s.c.Spec.SLO {
		if l.Metric == metric {
			return float64(l.Max) / float64(time.Millisecond), true
		}
	}
	return 0, false
}

// latencyFigure shows a latency over the loads.
func (s *sweepBuilder) latencyFigure(name, key, word, metric string) (Figure, bool) {
	unit, size := s.unitOf(key + ".p99")
	series := slices.Concat(s.curveOf(key+".p50", "p50", plot.Tint, size), s.curveOf(key+".p99", "p99", plot.Accent, size))
	if len(series) == 0 {
		return Figure{}, false
	}
	rules := s.marks()
	if at, ok := s.limit(metric); ok {
		rules = append(rules, plot.Rule{At: at / size, Flat: true, Label: "SLO"})
	}
	title := s.growth(key+".p99", word+" p99")
	return Figure{Name: name, Title: title, Plot: &plot.Chart{Title: title, Alt: word + " over the load", X: s.loadAxis(), Y: plot.Axis{Label: word, Unit: unit, Log: s.wide(key + ".p99")},
		Height: 160, Series: series, Rules: rules}}, true
}

// unitOf is the unit in which a latency of all levels reads best.
func (s *sweepBuilder) unitOf(key string) (string, float64) {
	var all []float64
	for i := range s.c.Levels {
		if v, ok := s.c.Levels[i].Mean(key); ok {
			all = append(all, v)
		}
	}
	return timeUnit(all...)
}

// wide tells whether the values of a figure span so much that a linear axis would hide the low ones.
func (s *sweepBuilder) wide(key string) bool {
	lo, hi := math.Inf(1), 0.0
	for i := range s.c.Levels {
		if v, ok := s.c.Levels[i].Mean(key); ok {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	return hi > 30*lo
}

// throughputFinding states the highest throughput and where it is reached to 95 %; of rates, up to which one the server follows.
func (s *sweepBuilder) throughputFinding() string {
	top := 0.0
	for i := range s.c.Levels {
		v, _ := s.c.Levels[i].Mean("request_throughput")
		top = max(top, v)
	}
	if s.c.Plan.Axis == bench.ByRate {
		return s.keepsUp(top)
	}
	for i := range s.c.Levels {
		l := &s.c.Levels[i]
		if v, ok := l.Mean("request_throughput"); ok && v >= reached*top {
			if i == len(s.c.Levels)-1 {
				return "Throughput still grows at " + s.at(l.Load) + ": " + number(v) + " req/s"
			}
			return "Throughput reaches " + percentWhole(reached) + " of its " + number(top) + " req/s at " + s.at(l.Load)
		}
	}
	return "Throughput over the load"
}

// keepsUp states up to which rate 95 % of the requests are served as they come.
func (s *sweepBuilder) keepsUp(top float64) string {
	n := 0
	for i := range s.c.Levels {
		l := &s.c.Levels[i]
		if v, ok := l.Mean("request_throughput"); !ok || v < reached*l.Load {
			break
		}
		n = i + 1
	}
	switch n {
	case 0:
		return "The server follows no rate; it gives at most " + number(top) + " req/s"
	case len(s.c.Levels):
		return "Throughput follows the rate up to " + s.at(s.c.Levels[n-1].Load)
	}
	return "Throughput follows the rate up to " + s.at(s.c.Levels[n-1].Load) + ", and reaches " + number(top) + " at most"
}

// reached is the share of the highest throughput at which the curve counts as flat.
const reached = 0.95

// growth states by how much a latency grows over the levels.
func (s *sweepBuilder) growth(key, word string) string {
	var first, last *bench.CurveLevel
	for i := range s.c.Levels {
		if _, ok := s.c.Levels[i].Mean(key); ok {
			if last = &s.c.Levels[i]; first == nil {
				first = last
			}
		}
	}
	a, _ := first.Mean(key)
	b, _ := last.Mean(key)
	if first == last || a <= 0 {
		return word + " over the load"
	}
	span := " from " + plot3(first.Load) + " to " + s.at(last.Load) + ": " + millis(a) + " to " + millis(b)
	if ratio := b / a; ratio < peakWorthTells && ratio > 1/peakWorthTells {
		return word + " stays" + span
	} else {
		return word + " " + changeWords(ratio) + span
	}
}

// tradeFigures show throughput against P99: what a level gives, and what it costs.
func (s *sweepBuilder) tradeFigures() []Figure {
	var out []Figure
	for _, f := range []struct{ name, key, word, metric string }{{"throughput-ttft", "ttft_ms.p99", "TTFT p99", "ttft"}, {"throughput-e2e", "e2el_ms.p99", "E2E p99", "e2el"}} {
		unit, size := s.unitOf(f.key)
		line := plot.Series{Form: plot.Line, Color: plot.Tint}
		dots := plot.Series{Name: "levels", Form: plot.Dots, Color: plot.Accent}
		series := []plot.Series{}
		for i := range s.c.Levels {
			l := &s.c.Levels[i]
			x, y := l.Get("request_throughput"), l.Get(f.key)
			if x == nil || y == nil || !x.Mean.Defined() || !y.Mean.Defined() {
				continue
			}
			at := plot.Point{X: x.Mean.Or(0), Y: y.Mean.Or(0) / size}
			line.Points, dots.Points = append(line.Points, at), append(dots.Points, at)
			if x.Low.Defined() && y.Low.Defined() { // a cross of both intervals
				series = append(series,
					plot.Series{Form: plot.Line, Color: plot.Quiet, Points: []plot.Point{{X: max(0, x.Low.Or(0)), Y: at.Y}, {X: x.High.Or(0), Y: at.Y}}},
					plot.Series{Form: plot.Line, Color: plot.Quiet, Points: []plot.Point{{X: at.X, Y: max(0, y.Low.Or(0)/size)}, {X: at.X, Y: y.High.Or(0) / size}}})
			}
		}
		if len(dots.Points) < 2 {
			continue
		}
		chart := &plot.Chart{Alt: f.word + " against throughput, a point for each level", X: plot.Axis{Label: "throughput", Unit: "req/s"},
			Y: plot.Axis{Label: f.word, Unit: unit, Log: s.wide(f.key) && len(series) == 0}, Height: 200, Series: append(series, line, dots), Rules: s.throughputMarks()}
		if at, ok := s.limit(f.metric); ok {
			chart.Rules = append(chart.Rules, plot.Rule{At: at / size, Flat: true, Label: "SLO"})
		}
		chart.Title = s.tradeFinding(f.key, f.word)
		out = append(out, Figure{Name: f.name, Title: chart.Title, Note: "a point for each level, joined in the order of the loads", Plot: chart})
	}
	return out
}

// throughputMarks are the levels that stand out, at their throughput.
func (s *sweepBuilder) throughputMarks() []plot.Rule {
	var out []plot.Rule
	for _, r := range s.marks() {
		for i := range s.c.Levels {
			if v, ok := s.c.Levels[i].Mean("request_throughput"); ok && s.c.Levels[i].Load == r.At {
				out = append(out, plot.Rule{At: v, Label: r.Label})
			}
		}
	}
	if c := s.c.Capacity; c != nil && !slices.ContainsFunc(s.c.Levels, func(l bench.CurveLevel) bool { return l.Load == c.Load }) && c.Throughput.Defined() {
		out = append(out, plot.Rule{At: c.Throughput.Or(0), Label: "capacity"})
	}
	slices.SortFunc(out, func(a, b plot.Rule) int { return cmp.Compare(a.At, b.At) })
	return out
}

// tradeFinding states what the last doubling of throughput costs: the latency at the highest throughput against that at half of it.
func (s *sweepBuilder) tradeFinding(key, word string) string {
	top := -1
	rate := func(i int) float64 { v, _ := s.c.Levels[i].Mean("request_throughput"); return v }
	for i := range s.c.Levels {
		if top < 0 || rate(i) > rate(top) {
			top = i
		}
	}
	for i := top; i >= 0; i-- {
		a, ok := s.c.Levels[i].Mean(key)
		b, ok2 := s.c.Levels[top].Mean(key)
		if i < top && ok && ok2 && a > 0 && rate(i) <= rate(top)/2 {
			return "From " + number(rate(i)) + " to " + number(rate(top)) + " req/s, " + word + " " + changeWords(b/a)
		}
	}
	return word + " against throughput"
}

// frontierFigure is a step function of measured points: between two of them nothing is known to be had.
func (s *sweepBuilder) frontierFigure() []Figure {
	f := s.c.Frontier
	if len(f) < 2 {
		return nil
	}
	steps := plot.Series{Name: "can be had", Form: plot.Line, Color: plot.Accent}
	dots := plot.Series{Form: plot.Dots, Color: plot.Accent}
	other := plot.Series{Name: "beaten in both", Form: plot.Dots, Color: plot.Quiet}
	for i := len(f) - 1; i >= 0; i-- { // a user sees more from here on, and the server gives less
		dots.Points = append(dots.Points, plot.Point{X: f[i].PerUser, Y: f[i].Rate})
		if n := len(steps.Points); n > 0 {
			steps.Points = append(steps.Points, plot.Point{X: steps.Points[n-1].X, Y: f[i].Rate})
		}
		steps.Points = append(steps.Points, plot.Point{X: f[i].PerUser, Y: f[i].Rate})
	}
	gpus := float64(s.c.GPUs.Or(1))
	for i := range s.c.Levels {
		l := &s.c.Levels[i]
		user, ok := l.Mean("per_user_throughput.mean")
		rate, ok2 := l.Mean("output_throughput")
		if !l.Frontier && ok && ok2 {
			other.Points = append(other.Points, plot.Point{X: user, Y: rate / gpus})
		}
	}
	series := []plot.Series{steps, dots}
	if len(other.Points) > 0 {
		series = append(series, other)
	}
	title := "From " + number(f[0].Rate) + " " + s.rateUnit() + " at " + number(f[0].PerUser) + " tok/s a user to " + number(f[len(f)-1].Rate) + " at " + number(f[len(f)-1].PerUser)
	return []Figure{{Name: "frontier", Title: title, Note: "each step is a measured level", Plot: &plot.Chart{Title: title, Alt: "output rate against the rate that a user sees",
		X: plot.Axis{Label: "a user sees", Unit: "tok/s"}, Y: plot.Axis{Label: "server", Unit: s.rateUnit()}, Height: 200, Series: series}}}
}
