package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
)

// NewSweep makes the report of a sweep.
func NewSweep(c *bench.Curve, dir string) *Model {
	man := &bench.Manifest{Spec: c.Spec, Sheet: c.Sheet, Epoch: c.Begun, Prony: c.Prony, Command: c.Command}
	b := &builder{man: man, sum: &bench.Summary{Verdict: c.Verdict, Caveats: c.Caveats}, dir: dir, table: metrics.Table()}
	b.measure = measured(&man.Spec)
	m := &Model{Summary: b.sum, Dir: clean(dir), Files: []string{"report.html", "report.md", "sweep.json"}}
	b.head(m)
	b.notices(m)
	b.conditions(m)
	b.environment(m)
	b.command(m)
	s := &sweepBuilder{builder: b, c: c}
	m.TimeLimits = ""
	m.Load = s.loads()
	m.Facts = s.facts()
	m.Result = s.result()
	m.Parts = s.parts()
	s.define(m)
	return m
}

// sweepBuilder makes the parts of a sweep's report.
type sweepBuilder struct {
	*builder
	c *bench.Curve
}

// unit is the unit of the loads.
func (s *sweepBuilder) unit() string {
	if s.c.Plan.Axis == bench.ByRate {
		return "req/s"
	}
	return "in flight"
}

// head is the head of the column of loads.
func (s *sweepBuilder) head() string {
	if s.c.Plan.Axis == bench.ByRate {
		return "rate"
	}
	return s.unit()
}

// at writes a load with its unit.
func (s *sweepBuilder) at(load float64) string { return plot3(load) + " " + s.unit() }

// plot3 writes a load: as it was given, or with three digits when it was computed.
func plot3(v float64) string {
	if p := plain(v); len(p) <= 7 {
		return p
	}
	return number(v)
}

func (s *sweepBuilder) loads() string {
	p := s.c.Plan
	word := "concurrency "
	if p.Axis == bench.ByRate {
		word = "rate "
	}
	if p.Search {
		return "search of the " + strings.TrimSpace(word)
	}
	var all []string
	for _, l := range p.Loads {
		all = append(all, plain(l))
	}
	return word + shortened(all, 12)
}

func shortened(words []string, most int) string {
	if len(words) > most {
		words = append(slices.Clone(words[:most-2]), "...", words[len(words)-1])
	}
	return strings.Join(words, ", ")
}

func (s *sweepBuilder) facts() []string {
	runs, sent, failed := 0, 0, 0
	for _, l := range s.c.Levels {
		for _, r := range l.Runs {
			runs, sent, failed = runs+1, sent+r.Sent, failed+r.Failed
		}
	}
	out := []string{plural(len(s.c.Levels), "level", "levels") + ", " + plural(runs, "run", "runs")}
	if !s.c.Plan.Search {
		out = append(out, plural(s.c.Plan.Rounds, "round", "rounds")+" ("+clean(s.c.Plan.Order)+")")
	}
	requests := plural(sent, "request", "requests")
	if failed > 0 {
		requests += ", " + count(failed) + " failed"
	}
	out = append(out, requests)
	if s.c.State != bench.Complete {
		out = append(out, clean(joined(": ", string(s.c.State), s.c.Stopped)))
	}
	return out
}

// result is the sentence that answers: the capacity, and what it rests on.
func (s *sweepBuilder) result() string {
	c := s.c
	var parts []string
	if r := c.Search; r != nil {
		if load, ok := r.Load.Get(); ok {
			parts = append(parts, "the highest load that meets the SLO is "+s.at(load)+s.between(r)+", confirmed in "+count(r.Met)+" of "+count(r.Confirm)+" rounds")
		} else {
			parts = append(parts, "no load that was tried meets the SLO")
		}
	} else if s.judged() {
		if c.Best != nil {
			parts = append(parts, "the SLO is met up to "+s.at(c.Best.Load)+prefix(", with a goodput of ", withInterval(c.Best.Goodput, c.Best.Low, c.Best.High, " req/s")))
		} else {
			parts = append(parts, "no level meets the SLO")
		}
	}
	if c.Capacity != nil {
		parts = append(parts, "recommended capacity "+s.at(c.Capacity.Load)+prefix(", about ", s.throughput(c.Capacity)))
	}
	if c.Breaking != nil {
		parts = append(parts, "it breaks at "+s.at(c.Breaking.Load))
	}
	if len(parts) == 0 {
		return "No capacity can be told."
	}
	out := strings.Join(parts, "; ")
	return strings.ToUpper(out[:1]) + out[1:] + "."
}

// throughput of a capacity of a closed loop; that of an open one is its load.
func (s *sweepBuilder) throughput(c *bench.Capacity) string {
	if s.c.Plan.Axis == bench.ByRate {
		return ""
	}
	return prefixed(number, c.Throughput, " req/s")
}

// between is the interval of a search's answer.
func (s *sweepBuilder) between(r *bench.SearchResult) string {
	lo, ok := r.Low.Get()
	if !ok {
		return ""
	}
	hi, ok := r.High.Get()
	if !ok {
		return " or more"
	}
	return " (it lies in " + plot3(lo) + " .. " + plot3(hi) + ")"
}

// judged tells whether there is an SLO.
func (s *sweepBuilder) judged() bool { return len(s.c.Plan.SLO)+len(s.c.Spec.SLO) > 0 }

// withInterval writes a mean with its interval over rounds.
func withInterval(mean, lo, hi opt.Of[float64], unit string) string {
	v, ok := mean.Get()
	if !ok {
		return ""
	}
	out := number(v) + unit
	a, ok := lo.Get()
	b, ok2 := hi.Get()
	if ok && ok2 {
		out += " (95 % over rounds " + interval(a, b) + ")"
	}
	return out
}

func (s *sweepBuilder) parts() []Part {
	var points facts
	if slo := s.slo(); slo != "" {
		points.add("SLO", slo)
	}
	c := s.c
	if r := c.Search; r != nil {
		points.add("search", joined("; ", s.answer(r), clean(r.Ended)))
		points.add("effort", plural(r.Runs, "run", "runs")+" with "+plural(r.Requests, "request", "requests")+prefix("; a ladder of the same resolution and rounds sends ", worded(r.Ladder > 0, count(r.Ladder))))
	}
	if c.Capacity != nil {
		points.add("recommended", s.at(c.Capacity.Load)+": "+clean(c.Capacity.Why))
	}
	if p := c.Best; p != nil {
		points.add("SLO met up to", s.at(p.Load)+", "+clean(p.Why))
	}
	if p := c.Breaking; p != nil {
		points.add("breaks at", s.at(p.Load)+": "+clean(p.Why))
	}
	points.add("knee", s.knee())
	points.addIf(c.State == bench.Complete, "ladder ended", c.Stopped)
	answer := Part{ID: "answer", Name: "What it can take", Facts: points}
	levels := Part{ID: "levels", Name: "Levels", Grid: s.grid(), Figures: s.figures()}
	if s.c.Plan.Rounds > 1 || s.c.Plan.Search {
		levels.Texts = append(levels.Texts, "Means over rounds; ± is half of the 95 % t-interval over rounds. sweep.json has every metric so, and each run its own report.")
	}
	return []Part{answer, levels, s.frontier()}
}

func (s *sweepBuilder) answer(r *bench.SearchResult) string {
	if load, ok := r.Load.Get(); ok {
		return s.at(load) + s.between(r)
	}
	return "no load meets the SLO"
}

// slo writes the objectives.
func (s *sweepBuilder) slo() string {
	var out []string
	for _, c := range s.c.Plan.SLO {
		out = append(out, clean(c.Metric+" "+c.Stat)+" < "+plain(c.Max)+" ms")
	}
	var limits []string
	for _, l := range s.c.Spec.SLO {
		limits = append(limits, clean(l.Metric)+" <= "+limitWords(l.Max))
	}
	if len(limits) > 0 {
		out = append(out, strings.Join(limits, ", ")+" for "+percent(s.c.Plan.Share)+" of the requests")
	}
	return strings.Join(out, " and ")
}

// knee writes both knees, which are no capacities.
func (s *sweepBuilder) knee() string {
	k := s.c.Knee
	out := "Kneedle: none"
	if at, ok := k.Kneedle.Get(); ok {
		out = "Kneedle (" + clean(k.Axis) + ") " + s.at(at)
	}
	switch u := k.USL; {
	case u == nil:
		out += "; " + clean(k.Note)
	case u.Peak.Defined():
		out += "; USL peak at " + prefixed(number, u.Peak, " in flight")
	default:
		out += "; USL without a peak" + prefix(", approaching ", prefixed(number, u.Limit, " req/s"))
	}
	return out + " (where the curve bends, no capacity)"
}

// columnsOf are the figures of the table of levels.
func (s *sweepBuilder) columnsOf() []struct{ head, key string } {
	all := []struct{ head, key string }{
		{"req/s", "request_throughput"}, {"goodput/s", "goodput"}, {"good %", "goodput_ratio"}, {"tok/s", "output_throughput"}, {"tok/s/user", "per_user_throughput.mean"},
		{"TTFT p50 ms", "ttft_ms.p50"}, {"TTFT p99 ms", "ttft_ms.p99"}, {"TPOT mean ms", "tpot_ms.mean"}, {"E2E p99 ms", "e2el_ms.p99"},
	}
	return slices.DeleteFunc(all, func(x struct{ head, key string }) bool {
		return !slices.ContainsFunc(s.c.Levels, func(l bench.CurveLevel) bool { return l.Get(x.key) != nil })
	})
}

// grid is the table of levels.
func (s *sweepBuilder) grid() Grid {
	cols := s.columnsOf()
	g := Grid{Heads: []string{s.head()}}
	for _, c := range cols {
		g.Heads = append(g.Heads, c.head)
	}
	g.Heads = append(g.Heads, "")
	for i := range s.c.Levels {
		l := &s.c.Levels[i]
		row := []string{plot3(l.Load)}
		for _, c := range cols {
			row = append(row, cellOf(l.Get(c.key)))
		}
		g.Rows = append(g.Rows, append(row, s.mark(l)))
	}
	return g
}

// cellOf is a mean with half of its interval over rounds.
func cellOf(m *bench.CurveMetric) string {
	if m == nil {
		return dash
	}
	size := 1.0
	if m.Unit == "share" {
		size = 0.01
	}
	mean, ok := m.Mean.Get()
	if !ok {
		return dash
	}
	out := number(mean / size)
	lo, ok := m.Low.Get()
	hi, ok2 := m.High.Get()
	if ok && ok2 {
		out += " ±" + significant((hi-lo)/2/size, 2)
	}
	return out
}

// mark says what a level stands out for.
func (s *sweepBuilder) mark(l *bench.CurveLevel) string {
	var out []string
	if meets, ok := l.Meets.Get(); ok {
		word := "misses SLO"
		if meets {
			word = "meets SLO"
		}
		if !l.Sure {
			word += "?"
		}
		out = append(out, word)
	}
	for _, b := range l.Breaks {
		if b != "slo" {
			out = append(out, clean(b))
		}
	}
	return strings.Join(out, ", ")
}

// rateUnit is the unit of the frontier's rate.
func (s *sweepBuilder) rateUnit() string {
	if s.c.GPUs.Defined() {
		return "tok/s/GPU"
	}
	return "tok/s"
}

// frontier is what can be had: throughput against what a user sees.
func (s *sweepBuilder) frontier() Part {
	p := Part{ID: "frontier", Name: "Throughput against speed for a user"}
	if len(s.c.Frontier) == 0 {
		return p
	}
	p.Grid.Heads = []string{s.head(), "tok/s/user", s.rateUnit()}
	for _, f := range s.c.Frontier {
		if len(s.c.Frontier) == len(s.c.Levels) && !s.c.GPUs.Defined() {
			break // the table of levels has it all
		}
		p.Grid.Rows = append(p.Grid.Rows, []string{plot3(f.Load), number(f.PerUser), number(f.Rate)})
	}
	text := "Measured levels that no other beats in both rates; nothing is interpolated between them."
	if len(p.Grid.Rows) == 0 {
		text = "Frontier of " + s.rateUnit() + " against tok/s/user: no level beats another in both rates; nothing is interpolated between them."
	}
	if n, ok := s.c.GPUs.Get(); ok {
		text += fmt.Sprintf(" Rates are divided by %s.", plural(n, "GPU", "GPUs"))
	} else {
		text += " The number of GPUs is not known (--gpus N): the rate is the server's."
	}
	p.Texts = []string{text}
	p.Figures = s.frontierFigure()
	return p
}

// define lists what the shown figures mean.
func (s *sweepBuilder) define(m *Model) {
	for _, d := range s.table {
		for _, c := range s.columnsOf() {
			key, _, _ := strings.Cut(c.key, ".")
			if key == d.Key && !slices.ContainsFunc(m.Definitions, func(x Definition) bool { return x.Key == key }) {
				m.Definitions = append(m.Definitions, Definition{d.Key, d.Short, d.Name, d.Unit, d.Definition, d.NotDefined, d.Beware})
			}
		}
	}
}

// LevelLine says how a level went, in one line; again is for a run that was made before.
func LevelLine(c *bench.Curve, l *bench.CurveLevel, again bool) string {
	s := &sweepBuilder{c: c}
	r := l.Runs[len(l.Runs)-1]
	words := []string{s.at(l.Load) + ", round " + count(r.Round)}
	if v, ok := l.Mean("request_throughput"); ok {
		words = append(words, number(v)+" req/s")
	}
	if v, ok := l.Mean("output_throughput"); ok {
		words = append(words, number(v)+" tok/s")
	}
	if v, ok := l.Mean("ttft_ms.p99"); ok {
		words = append(words, "TTFT p99 "+millis(v))
	}
	if r.Worst != "" {
		words = append(words, clean(r.Worst))
	}
	if len(r.Saturated) > 0 {
		words = append(words, "saturated by the rule of the "+strings.Join(r.Saturated, " and the "))
	}
	if r.Verdict == bench.Void {
		words = append(words, "void: "+clean(strings.Join(r.Caveats, ", ")))
	}
	if again {
		words = append(words, "made before")
	}
	return strings.Join(words, " · ")
}
