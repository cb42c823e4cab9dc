package report

import "github.com/prony-bench/prony/internal/bench"

// phases shows each of several measured phases by itself.
func (b *builder) phases(m *Model) {
	if len(b.sum.Phases) == 0 {
		return
	}
	g := Grid{Heads: []string{"phase", "load", "ok", "failed"}}
	loads := map[string]string{}
	for _, p := range b.man.Spec.Phases {
		loads[p.Name] = loadWords(p.Load)
	}
	rows := make([][]string, len(b.sum.Phases))
	for i, p := range b.sum.Phases {
		rows[i] = []string{clean(p.Name), loads[p.Name], count(p.Requests.OK), count(p.Requests.Failed)}
	}
	column := func(name, key string, percentile float64) {
		var shown []float64
		for _, p := range b.sum.Phases {
			v, _ := p.Metrics.Dist(key).P(percentile)
			shown = append(shown, v)
		}
		unit, size := timeUnit(shown...)
		g.Heads = append(g.Heads, name+" "+unit)
		for i, p := range b.sum.Phases {
			cell := dash
			if v, ok := p.Metrics.Dist(key).P(percentile); ok {
				cell = number(v / size)
			}
			rows[i] = append(rows[i], cell)
		}
	}
	if b.stream() {
		column("TTFT p50", "ttft_ms", 50)
		column("TTFT p99", "ttft_ms", 99)
		column("TPOT p50", "tpot_ms", 50)
	}
	column("E2E p50", "e2el_ms", 50)
	column("E2E p99", "e2el_ms", 99)
	rate := func(name, key string) {
		g.Heads = append(g.Heads, name)
		for i, p := range b.sum.Phases {
			rows[i] = append(rows[i], scalarOf(p.Metrics, key))
		}
	}
	rate("req/s", "request_throughput")
	if b.generates() {
		rate("tok/s", "output_throughput")
	}
	g.Rows = rows
	m.Phases = g
}

// scalarOf writes a metric that is one number.
func scalarOf(m bench.Metrics, key string) string {
	if v, ok := m.Value(key); ok {
		return number(v)
	}
	return dash
}
