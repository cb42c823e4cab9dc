package report

import (
	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

// targets fills in the share of each of several targets.
func (b *builder) targets(m *Model) {
	if len(b.sum.Targets) == 0 {
		return
	}
	g := Grid{Heads: []string{"target", "sent", "ok", "failed"}}
	type column struct {
		name string
		of   func(*bench.TargetResult) *bench.Dist
		p    float64
	}
	var columns []column
	if b.stream() {
		columns = append(columns, column{"TTFT p50", func(t *bench.TargetResult) *bench.Dist { return t.TTFT }, 50},
			column{"TTFT p99", func(t *bench.TargetResult) *bench.Dist { return t.TTFT }, 99},
			column{"TPOT p50", func(t *bench.TargetResult) *bench.Dist { return t.TPOT }, 50})
	}
	columns = append(columns, column{"E2E p50", func(t *bench.TargetResult) *bench.Dist { return t.E2EL }, 50},
		column{"E2E p99", func(t *bench.TargetResult) *bench.Dist { return t.E2EL }, 99})
	rows := make([][]string, len(b.sum.Targets))
	for i := range b.sum.Targets {
		t := &b.sum.Targets[i]
		rows[i] = []string{clean(t.URL), count(t.Sent), count(t.OK), count(t.Failed)}
	}
	for _, c := range columns {
		var shown []float64
		for i := range b.sum.Targets {
			v, _ := c.of(&b.sum.Targets[i]).P(c.p)
			shown = append(shown, v)
		}
		unit, size := timeUnit(shown...)
		g.Heads = append(g.Heads, c.name+" "+unit)
		for i := range b.sum.Targets {
			cell := dash
			if v, ok := c.of(&b.sum.Targets[i]).P(c.p); ok {
				cell = number(v / size)
			}
			rows[i] = append(rows[i], cell)
		}
	}
	g.Heads = append(g.Heads, "req/s")
	for i := range b.sum.Targets {
		rows[i] = append(rows[i], optional(b.sum.Targets[i].RequestThroughput))
	}
	if b.generates() {
		g.Heads = append(g.Heads, "tok/s")
		for i := range b.sum.Targets {
			rows[i] = append(rows[i], optional(b.sum.Targets[i].OutputThroughput))
		}
	}
	g.Rows = rows
	m.Targets = g
}

// comparison draws several targets beside each other.
func (b *builder) comparison(m *Model) {
	of, name := func(t *bench.TargetResult) *bench.Dist { return t.TTFT }, "TTFT"
	if !b.stream() {
		of, name = func(t *bench.TargetResult) *bench.Dist { return t.E2EL }, "E2E"
	}
	var all []float64
	for i := range b.sum.Targets {
		if d := of(&b.sum.Targets[i]); d != nil {
			all = append(all, d.Max)
		}
	}
	if len(all) < 2 {
		return
	}
	unit, size := unitOf(all)
	f := &plot.Percentiles{X: plot.Axis{Unit: unit}, Key: "tick: p50; bar: p50 to p90; line: least to p99"}
	var names []string
	var medians []float64
	for i := range b.sum.Targets {
		t := &b.sum.Targets[i]
		d := of(t)
		if d == nil {
			continue
		}
		at := func(p, otherwise float64) float64 {
			if v, ok := d.P(p); ok {
				return v / size
			}
			return otherwise / size
		}
		p50, p90, p99 := at(50, d.Mean), at(90, d.Mean), at(99, d.Max)
		f.Rows = append(f.Rows, plot.Spread{Name: clean(t.URL), Tip: clean(t.URL) + ": p50 " + millis(p50*size) + ", p99 " + millis(p99*size),
			Line: [2]float64{d.Min / size, p99}, Bar: [2]float64{p50, max(p50, p90)}, Tick: p50})
		names, medians = append(names, clean(t.URL)), append(medians, p50)
	}
	f.Title = compared(name+" p50", names, medians)
	f.Alt = name + " of each target in " + unit
	m.Comparison = append(m.Comparison, Figure{Name: "targets", Title: f.Title, Plot: f})
}
