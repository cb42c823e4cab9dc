package report

import (
	"math"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
)

// Table holds distributions: a line a metric.
type Table struct {
	Heads []string // mean and the percentiles
	Lines []Line
}

// Line is a distribution in the unit of its own that reads best.
type Line struct {
	Key, Short, Unit string
	Definition       string
	Cells            []Cell // parallel to the heads; a dash where not defined
	Interval         string // 95 % of the mean
	Method           string // how the interval was made, or why there is none
	N                string
	Min, Max         string
}

// Cell is a number; Doubtful marks one that a caveat is about.
type Cell struct {
	Text     string
	Doubtful bool
}

// defaultColumns are shown when no percentiles are asked for.
var defaultColumns = []float64{50, 90, 99}

// shownPercentiles are the asked ones, or the default.
func shownPercentiles(asked []float64) []float64 {
	p := slices.Clone(asked)
	slices.Sort(p)
	p = slices.Compact(p)
	if len(p) == 0 || slices.Equal(p, metrics.DefaultPercentiles) {
		return defaultColumns
	}
	return p
}

// always are the metrics that have a line even where they are not defined; the others have one when they tell something.
var (
	always         = []string{"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms"}
	onlyStreaming  = []string{"ttft_ms", "itl_ms", "tpot_ms"}
	sameUnlessFrom = 0.01 // a twin metric is shown first when its mean differs by more than this share
)

// tables fills in the metric tables and the rates.
func (b *builder) tables(m *Model) {
	heads := []string{"mean"}
	for _, p := range b.columns {
		heads = append(heads, percentileName(p))
	}
	m.Metrics.Heads, m.More.Heads = heads, heads
	for _, d := range b.table {
		if d.Sample == nil || !d.For.Has(b.man.Spec.Target.Task) {
			continue
		}
		dist := b.sum.Metrics.Dist(d.Key)
		switch {
		case b.first(d.Key, dist):
			m.Metrics.Lines = append(m.Metrics.Lines, b.line(d, dist))
		case dist != nil && (b.stream() || !slices.Contains(onlyStreaming, d.Key)):
			m.More.Lines = append(m.More.Lines, b.line(d, dist))
		}
	}
	b.rates(m)
	b.goodput(m)
}

// first tells whether a metric belongs to the first table.
func (b *builder) first(key string, d *bench.Dist) bool {
	if slices.Contains(always, key) {
		return b.stream() || !slices.Contains(onlyStreaming, key)
	}
	differs := func(from string) bool {
		base := b.sum.Metrics.Dist(from)
		return d != nil && base != nil && math.Abs(d.Mean-base.Mean) > sameUnlessFrom*base.Mean
	}
	switch key {
	case "ttft_from_due_ms":
		return b.stream() && differs("ttft_ms")
	case "e2el_from_due_ms":
		return differs("e2el_ms")
	case "first_answer_ms":
		return b.stream() && differs("ttft_ms")
	case "itl_token_ms":
		return b.stream() && differs("itl_ms")
	}
	return false
}

// line lays a distribution out.
func (b *builder) line(def metrics.Def, d *bench.Dist) Line {
	l := Line{Key: def.Key, Short: def.Short, Unit: def.Unit, Definition: def.Definition, N: "0", Interval: dash, Min: dash, Max: dash}
	if d == nil {
		for range len(b.columns) + 1 {
			l.Cells = append(l.Cells, Cell{Text: dash})
		}
		return l
	}
	size := 1.0
	switch def.Unit {
	case "ms":
		shown := []float64{d.Mean}
		for _, p := range b.columns {
			v, _ := d.P(p)
			shown = append(shown, v)
		}
		l.Unit, size = timeUnit(shown...)
	case "share":
		l.Unit, size = "%", 0.01
	}
	l.Cells = []Cell{{Text: number(d.Mean / size)}}
	for _, p := range b.columns {
		c := Cell{Text: dash}
		if v, ok := d.P(p); ok {
			c = Cell{Text: number(v / size), Doubtful: b.doubtful(def.Key + "." + bench.PercentileKey(p))}
		}
		l.Cells = append(l.Cells, c)
	}
	if ci, ok := d.CI["mean"]; ok {
		l.Interval = interval(ci[0]/size, ci[1]/size)
	}
	l.Method = d.CIMethod
	l.N = count(d.N)
	l.Min, l.Max = number(d.Min/size), number(d.Max/size)
	return l
}

// doubtful tells whether a caveat is about a cell.
func (b *builder) doubtful(cell string) bool {
	for _, c := range b.sum.Caveats {
		if c.Severity == bench.SeverityCell && c.Metric == cell {
			return true
		}
	}
	return false
}

// rates fills in the single values that are not about limits.
func (b *builder) rates(m *Model) {
	for _, d := range b.table {
		if d.Value == nil || strings.Contains(d.Key, "goodput") || !d.For.Has(b.man.Spec.Target.Task) {
			continue
		}
		r := b.rate(d)
		if d.Key == "request_throughput" {
			r.Note = b.meanLengths()
		}
		if d.Key == "received_throughput" && b.sum.Requests.OK == b.sum.Requests.Sent {
			continue // equal to the output throughput
		}
		m.Rates = append(m.Rates, r)
		if d.Key == "total_throughput" {
			if l := b.sum.Metrics.Dist("per_user_throughput"); l != nil {
				def := b.def("per_user_throughput")
				m.Rates = append(m.Rates, Rate{Key: def.Key, Name: def.Short, Value: number(l.Mean), Unit: def.Unit, Note: "mean over requests", Definition: def.Definition})
			}
		}
	}
	if from, to, ok := b.plateau(); ok && b.sum.Steady.RequestThroughput.Defined() {
		s := b.sum.Steady
		m.Rates = append(m.Rates, Rate{Key: "steady", Name: "plateau", Value: optional(s.RequestThroughput), Unit: "req/s",
			Note:       joined(", ", prefix("output ", prefixed(number, s.OutputThroughput, " tok/s")), "from "+seconds(from)+" to "+seconds(to), clean(s.Word)),
			Definition: plateauText})
	}
}

// plateauText says what the plateau is. It is no metric of the table.
const plateauText = "ok requests/s inside the plateau of the window: in a closed loop the time when it is full, in an open loop the time of the arrivals " +
	"after the start has settled"

// tooShort is the word for a run that is too short to have a plateau.
const tooShort = "too short"

// plateau is the steady part of the window, in s from its begin.
func (b *builder) plateau() (from, to float64, ok bool) {
	s := b.sum.Steady
	return s.From.Or(0), s.To.Or(0), s.From.Defined() && s.To.Defined() && s.Word != tooShort
}

func (b *builder) rate(d metrics.Def) Rate {
	r := Rate{Key: d.Key, Name: d.Short, Value: dash, Unit: d.Unit, Definition: d.Definition}
	if d.Unit == "share" {
		r.Unit = "%"
	}
	v, ok := b.sum.Metrics.Value(d.Key)
	if !ok {
		return r
	}
	if d.Unit == "share" {
		r.Value = strings.TrimSuffix(percent(v), " %")
		return r
	}
	r.Value = number(v)
	return r
}

// meanLengths are the mean lengths of the ok requests: requests/s say nothing without them.
func (b *builder) meanLengths() string {
	in, out := b.sum.Metrics.Dist("isl"), b.sum.Metrics.Dist("osl")
	if n := b.sum.Metrics.Dist("inputs"); n != nil {
		texts := "1 text"
		if n.Mean != 1 {
			texts = amount(n.Mean) + " texts"
		}
		if in != nil {
			texts += " of " + number(in.Mean) + " tokens together"
		}
		return texts + " each"
	}
	switch {
	case in != nil && out != nil:
		return number(in.Mean) + " input + " + number(out.Mean) + " output tokens each"
	case out != nil:
		return number(out.Mean) + " output tokens each"
	}
	return ""
}

// goodput fills in the values about limits.
func (b *builder) goodput(m *Model) {
	if len(b.man.Spec.SLO) == 0 {
		return
	}
	var limits []string
	for _, l := range b.man.Spec.SLO {
		limits = append(limits, clean(l.Metric)+" <= "+limitWords(l.Max))
	}
	m.Limits = strings.Join(limits, ", ")
	for _, key := range []string{"goodput", "goodput_ratio", "token_goodput"} {
		if d := b.def(key); d.For.Has(b.man.Spec.Target.Task) {
			m.Goodput = append(m.Goodput, b.rate(d))
		}
	}
}

// definitions lists what the shown metrics mean.
func (b *builder) definitions(m *Model) {
	shown := map[string]bool{}
	for _, t := range []Table{m.Metrics, m.More} {
		for _, l := range t.Lines {
			shown[l.Key] = true
		}
	}
	for _, r := range append(slices.Clone(m.Rates), m.Goodput...) {
		shown[r.Key] = true
	}
	for _, d := range b.table {
		if shown[d.Key] {
			m.Definitions = append(m.Definitions, Definition{d.Key, d.Short, d.Name, d.Unit, d.Definition, d.NotDefined, d.Beware})
		}
	}
	if shown["steady"] {
		m.Definitions = append(m.Definitions, Definition{Key: "steady", Short: "plateau", Name: "plateau", Unit: "req/s", Text: plateauText,
			NotDefined: "too short to tell"})
	}
}
