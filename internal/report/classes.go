package report

import "github.com/prony-bench/prony/internal/bench"

// classes shows the requests of each class by itself, and first turns apart from later ones.
func (b *builder) classes(m *Model) {
	all := b.sum.Classes
	if len(all) == 0 {
		return
	}
	g := Grid{Heads: []string{"requests", "ok", "failed"}}
	g.Rows = make([][]string, len(all))
	for i, c := range all {
		name := clean(c.Name)
		switch {
		case c.Of == "turn":
			name += " turn"
		case name == "":
			name = "no class"
		}
		g.Rows[i] = []string{name, count(c.OK), count(c.Failed)}
	}
	column := func(name string, of func(bench.ClassResult) *bench.Dist, percentile float64, time bool) {
		var shown []float64
		for _, c := range all {
			v, _ := of(c).P(percentile)
			shown = append(shown, v)
		}
		unit, size := "", 1.0
		if time {
			unit, size = timeUnit(shown...)
			name += " " + unit
		}
		g.Heads = append(g.Heads, name)
		for i, c := range all {
			cell := dash
			if v, ok := of(c).P(percentile); ok {
				cell = number(v / size)
			}
			g.Rows[i] = append(g.Rows[i], cell)
		}
	}
	column("in p50", func(c bench.ClassResult) *bench.Dist { return c.ISL }, 50, false)
	if b.generates() {
		column("out p50", func(c bench.ClassResult) *bench.Dist { return c.OSL }, 50, false)
	}
	if b.stream() {
		column("TTFT p50", func(c bench.ClassResult) *bench.Dist { return c.TTFT }, 50, true)
		column("TTFT p99", func(c bench.ClassResult) *bench.Dist { return c.TTFT }, 99, true)
		column("TPOT p50", func(c bench.ClassResult) *bench.Dist { return c.TPOT }, 50, true)
	}
	column("E2E p50", func(c bench.ClassResult) *bench.Dist { return c.E2EL }, 50, true)
	column("E2E p99", func(c bench.ClassResult) *bench.Dist { return c.E2EL }, 99, true)
	m.Classes = g
}
