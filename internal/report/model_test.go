package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
)

// withCaveats is a model of 200 requests whose caveats are these.
func withCaveats(percentiles []float64, cs ...bench.Caveat) *Model {
	g := usual(200)
	g.asked = percentiles
	man, records := g.build()
	sum := metrics.Summarize(man, records)
	sum.Caveats = cs
	return New(man, sum, nil, "runs/x")
}

func cell(metric, text string) bench.Caveat {
	return bench.Caveat{Code: "few_samples", Severity: bench.SeverityCell, Metric: metric, Text: text, Remedy: "--num-requests 500"}
}

func TestNoticesAreMergedAndOrdered(t *testing.T) {
	need := "p99 needs 459 independent samples; this run has 200"
	m := withCaveats(nil,
		bench.Caveat{Code: "too_short", Severity: bench.SeverityNote, Text: "too short"},
		cell("ttft_ms.p99", need), cell("tpot_ms.p99", need), cell("e2el_ms.p99", need), cell("e2el_ms.p99_9", "p99_9 needs 4603"),
		bench.Caveat{Code: "lengths_differ", Severity: bench.SeverityWarn, Metric: "isl", Text: "prompts differ", Remedy: "compare"},
		bench.Caveat{Code: "lengths_differ", Severity: bench.SeverityWarn, Metric: "osl", Text: "answers differ", Remedy: "compare"},
		bench.Caveat{Code: "no_interval", Severity: bench.SeverityCell, Metric: "ttft_ms", Text: "no interval", Remedy: "repeat"},
		bench.Caveat{Code: "no_interval", Severity: bench.SeverityCell, Metric: "itl_ms", Text: "no interval", Remedy: "repeat"},
		bench.Caveat{Code: "cut_short", Severity: bench.SeverityVoid, Text: "stopped"})
	want := []Notice{
		{bench.SeverityVoid, "cut_short", "stopped", ""},
		{bench.SeverityWarn, "lengths_differ", "prompts differ; answers differ", "compare"},
		{bench.SeverityCell, "few_samples", "TTFT, TPOT, E2E: " + need, "--num-requests 500"},
		{bench.SeverityCell, "no_interval", "TTFT, ITL: no interval", "repeat"},
		{bench.SeverityNote, "too_short", "too short", ""},
	}
	if d := cmp.Diff(want, m.Notices); d != "" {
		t.Error(d)
	}
	if m.Reason != "stopped" {
		t.Errorf("the reason is %q", m.Reason)
	}
	var marked []string
	for _, l := range m.Metrics.Lines {
		for i, c := range l.Cells {
			if c.Doubtful {
				marked = append(marked, l.Key+" "+m.Metrics.Heads[i])
			}
		}
	}
	if d := cmp.Diff([]string{"ttft_ms p99", "tpot_ms p99", "e2el_ms p99"}, marked); d != "" {
		t.Error(d)
	}
}

// Where the numbers differ each is told, and a percentile that is asked for is shown and judged.
func TestFewSamplesThatDiffer(t *testing.T) {
	m := withCaveats([]float64{50, 99.9}, cell("ttft_ms.p99_9", "p99_9 needs 4603; this run has 200"), cell("itl_ms.p99_9", "p99_9 needs 4603; this run has 25400"),
		cell("ttft_ms.p99", "not shown"))
	if len(m.Notices) != 1 {
		t.Fatalf("%+v", m.Notices)
	}
	n := func(key string) string {
		v, _ := m.Summary.Metrics.Dist(key).NEff.Get()
		return count(int(v))
	}
	if want := "too few independent samples (their number): p99.9 of TTFT (" + n("ttft_ms") + "), ITL (" + n("itl_ms") + ")"; m.Notices[0].Text != want {
		t.Errorf("%q, want %q", m.Notices[0].Text, want)
	}
	if d := cmp.Diff([]string{"mean", "p50", "p99.9"}, m.Metrics.Heads); d != "" {
		t.Error(d)
	}
}

func keys(t Table) (out []string) {
	for _, l := range t.Lines {
		out = append(out, l.Key)
	}
	return out
}

func TestShownMetrics(t *testing.T) {
	streams := usual(30).model()
	if d := cmp.Diff([]string{"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms"}, keys(streams.Metrics)); d != "" {
		t.Error(d)
	}
	g := usual(30)
	g.stream = false
	bodies := g.model()
	if d := cmp.Diff([]string{"e2el_ms"}, keys(bodies.Metrics)); d != "" {
		t.Error(d)
	}
	for _, k := range keys(bodies.More) {
		if slices.Contains(onlyStreaming, k) {
			t.Errorf("%s is shown without streaming", k)
		}
	}
	// A wait in front of the cap sets the times from due apart.
	man, records := usual(30).build()
	for i := range records {
		records[i].Due = opt.Some(max(0, records[i].Sent.Or(0)-50*time.Millisecond))
	}
	late := New(man, metrics.Summarize(man, records), records, "runs/x")
	if d := cmp.Diff([]string{"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms", "ttft_from_due_ms", "e2el_from_due_ms"}, keys(late.Metrics)); d != "" {
		t.Error(d)
	}
	// Without event times ITL keeps its line, with dashes.
	g = usual(30)
	g.events = false
	for _, l := range g.model().Metrics.Lines {
		if l.Key == "itl_ms" && (l.Cells[0].Text != dash || l.N != "0") {
			t.Errorf("%+v", l)
		}
	}
}

// A line is in s as soon as one of its shown numbers is 10 s or more, and its unit says so.
func TestUnitOfALine(t *testing.T) {
	for _, c := range []struct {
		p99  float64
		want []string
	}{
		{9_999, []string{"ms", "100", "80.0", "90.0", "10,000"}},
		{12_000, []string{"s", "0.100", "0.0800", "0.0900", "12.0"}},
	} {
		man, _ := usual(0).build()
		b := &builder{man: man, sum: &bench.Summary{}, columns: defaultColumns}
		d := &bench.Dist{N: 3, Mean: 100, Quantiles: []bench.Quantile{{P: 50, Value: 80}, {P: 90, Value: 90}, {P: 99, Value: c.p99}}}
		def, _ := metrics.Lookup("ttft_ms")
		l := b.line(def, d)
		got := []string{l.Unit}
		for _, x := range l.Cells {
			got = append(got, x.Text)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestRow(t *testing.T) {
	row := usual(200).model().Row
	if d := cmp.Diff([]string{"test id", "rate", "input tokens", "output limit", "TTFT mean", "TPOT mean", "E2E p50", "E2E p99", "success", "peak memory"}, row.Heads()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"2026-11-29T15-20-01Z-qwen3", "20 req/s", "519", "128", "77.2 ms", "11.7 ms", "1,560 ms", "1,650 ms", "100 %", "-"}, row.Values()); d != "" {
		t.Error(d)
	}
	closed := usual(20)
	closed.load = bench.Load{Shape: bench.Closed, Concurrency: 8}
	closed.stream = false
	got := closed.model().Row
	if got[1] != (Fact{"concurrency", "8"}) || got[4].Text != dash || got[5].Text != dash {
		t.Errorf("%+v", got)
	}
}

func TestLoadWords(t *testing.T) {
	for _, c := range []struct {
		load bench.Load
		want string
	}{
		{bench.Load{Shape: bench.Closed, Concurrency: 1600}, "closed loop of 1,600"},
		{bench.Load{Shape: bench.Poisson, Rate: 20}, "Poisson 20 req/s"},
		{bench.Load{Shape: bench.Gamma, Rate: 2.5, Burstiness: 0.5, Cap: 64}, "gamma(0.5) 2.5 req/s, at most 64 in flight"},
		{bench.Load{Shape: bench.Constant, Rate: 0.1}, "constant 0.1 req/s"},
		{bench.Load{Shape: bench.Inf, Cap: 8}, "all at once, at most 8 in flight"},
	} {
		if got := loadWords(c.load); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestCountWords(t *testing.T) {
	for _, c := range []struct {
		in   bench.Counts
		want string
	}{
		{bench.Counts{Planned: 200, Sent: 200, OK: 200}, "200 of 200 ok"},
		{bench.Counts{Planned: 200, Sent: 150, OK: 140, Failed: 8, Incomplete: 2}, "140 of 200 ok, 8 failed, 2 incomplete, 50 not sent"},
		{bench.Counts{Sent: 90, OK: 80, Excluded: 6, Cancelled: 4, Dropped: 10}, "80 of 100 ok, 6 without a sample, 4 cancelled, 10 not sent"},
		{bench.Counts{}, "0 of 0 ok"},
	} {
		if got := countWords(c.in); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestCommand(t *testing.T) {
	g := usual(1)
	man, records := g.build()
	man.Command = []string{"prony", "run", "--prompt", "it's $HOME", "--label", "", "--goodput", "ttft:200 tpot:15", "--isl=512"}
	m := New(man, metrics.Summarize(man, records), records, "runs/x")
	if want := `prony run --prompt 'it'\''s $HOME' --label '' --goodput 'ttft:200 tpot:15' --isl=512`; m.Command != want {
		t.Errorf("%s, want %s", m.Command, want)
	}
	if m.Same != "--seed 7" {
		t.Errorf("%q", m.Same)
	}
	man.Spec.SeedGiven = true
	if m := New(man, metrics.Summarize(man, records), records, "runs/x"); m.Same != "" {
		t.Errorf("%q although the command has a seed", m.Same)
	}
}

// Without records there is everything but the figures; with all kinds of runs the findings are as their rules say.
func TestFigures(t *testing.T) {
	g := usual(200)
	man, records := g.build()
	if m := New(man, metrics.Summarize(man, records), nil, "runs/x"); len(m.OverTime)+len(m.Shapes)+len(m.Waterfalls) != 0 || len(m.Metrics.Lines) == 0 {
		t.Error("figures without records")
	}
	titles := func(name string) string {
		m := scenes()[name].model()
		var out []string
		for _, fs := range [][]Figure{m.OverTime, m.Shapes, m.Limited, m.Waterfalls, m.Comparison} {
			for _, f := range fs {
				out = append(out, f.Title)
			}
		}
		return strings.Join(out, "\n")
	}
	for name, want := range map[string][]string{
		"overload":  {"TTFT climbs all the time", "Concurrency climbs all the time", "In the 20 slowest requests, waiting for the first token takes 90 % of the time", "4.0 % of the answered requests have TTFT from due within 200 ms"},
		"step":      {"ITL doubles after 17 s", "TTFT has a long tail"},
		"closed":    {"The closed loop of 8 is full from 0", "Output stays near"},
		"targets":   {"TTFT p50 of http://127.0.0.1:8001 is 1.6 x that of http://127.0.0.1:8002"},
		"none-ok":   {"All 20 requests"},
		"no-stream": {"E2E stays near", "The first 40 requests"},
		"one":       {"In the one request, decoding takes 95 % of the time"},
		"twenty":    {"At most 20 requests in flight", "TTFT of each request over time"},
	} {
		got := titles(name)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s has no figure %q but\n%s", name, w, got)
			}
		}
	}
	if got := titles("nothing"); got != "" {
		t.Errorf("no request gives the figures\n%s", got)
	}
}
