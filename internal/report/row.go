package report

import "github.com/prony-bench/prony/internal/bench"

// Row is the classic record of a run in one line.
type Row []Fact

// Heads are the names of the fields.
func (r Row) Heads() []string {
	var out []string
	for _, f := range r {
		out = append(out, f.Name)
	}
	return out
}

// Values are the texts of the fields.
func (r Row) Values() []string {
	var out []string
	for _, f := range r {
		out = append(out, f.Text)
	}
	return out
}

// row makes the record row.
func (b *builder) row(m *Model) Row {
	s, l := b.sum, b.measure.Load
	load := Fact{"concurrency", dash}
	switch {
	case l.Shape == bench.Closed && l.Profile == "":
		load.Text = count(l.Concurrency)
	case !l.Open() || l.Profile != "" || l.Shape == bench.Trace || l.Shape == bench.Phases:
		load = Fact{"load", loadWords(l)}
	case l.Paced():
		load = Fact{"rate", plain(l.Rate) + " req/s"}
	case l.Shape == bench.Inf:
		load = Fact{"rate", "inf"}
	}
	mean := func(key string) string {
		if d := s.Metrics.Dist(key); d != nil {
			if b.def(key).Unit == "ms" {
				return millis(d.Mean)
			}
			return number(d.Mean)
		}
		return dash
	}
	percentile := func(p float64) string {
		if v, ok := s.Metrics.Dist("e2el_ms").P(p); ok {
			return millis(v)
		}
		return dash
	}
	limit := prefixed(number, s.Tokens.OSLAskedMean, "")
	if limit == "" {
		limit = clean(b.man.Spec.Workload.OSL)
	}
	if limit == "" {
		limit = dash
	}
	success := dash
	if v, ok := s.Metrics.Value("success_rate"); ok {
		success = percent(v)
	}
	if !b.generates() {
		inputs := dash
		if d := s.Metrics.Dist("inputs"); d != nil {
			inputs = amount(d.Mean)
		}
		return Row{{"test id", b.testID()}, load, {"inputs", inputs}, {"input tokens", mean("isl")}, {"E2E mean", mean("e2el_ms")},
			{"E2E p50", percentile(50)}, {"E2E p99", percentile(99)}, {"success", success}, {"peak memory", dash}}
	}
	ttft, tpot := dash, dash
	if b.stream() {
		ttft, tpot = mean("ttft_ms"), mean("tpot_ms")
	}
	return Row{{"test id", b.testID()}, load, {"input tokens", mean("isl")}, {"output limit", limit}, {"TTFT mean", ttft}, {"TPOT mean", tpot},
		{"E2E p50", percentile(50)}, {"E2E p99", percentile(99)}, {"success", success}, {"peak memory", dash}}
}
