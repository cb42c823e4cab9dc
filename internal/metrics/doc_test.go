package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
)

//go:generate go test -run TestDoc . -update

var update = flag.Bool("update", false, "write docs/metrics.md")

const docFile = "../../docs/metrics.md"

// TestDoc holds docs/metrics.md against the metric table, the outcomes and the table of caveats.
func TestDoc(t *testing.T) {
	want := markdown()
	if *update {
		if err := os.WriteFile(docFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(docFile)
	if err != nil || string(have) != want {
		t.Errorf("docs/metrics.md is not that of the table: go generate ./internal/metrics (%v)", err)
	}
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// undefined says when a metric has no value, its scope included.
func undefined(d Def) string {
	var when []string
	if d.NotDefined != "" {
		when = append(when, d.NotDefined)
	}
	switch d.For {
	case Generating:
		when = append(when, "embeddings and rerank")
	case Listing:
		when = append(when, "text is generated")
	}
	return strings.Join(when, "; ")
}

func markdown() string {
	var b strings.Builder
	b.WriteString(`# Metrics

Generated from the metric table (internal/metrics): do not edit.

An **output event** is a stream event with generated content: non-empty text, reasoning, a tool call's name or a piece of its
arguments, a token id, or a token count grown over an earlier event's. Role-only, empty, usage-only, comment and progress events are
none. An event's **time** is the stamp of the read that brought its last byte.

Only requests that are ok and belong to the measured phase give latency samples. Those whose events came all at once give no TTFT,
ITL or TPOT: they tell of a proxy. Failed requests are counted, never averaged in. Percentiles are by linear interpolation at
p/100 * (n-1) of the sorted sample. The **window** goes from the first measured send to the last end of a measured request.

## The table

| key | unit | better | definition | not defined when | beware |
|---|---|---|---|---|---|
`)
	for _, d := range Table() {
		fmt.Fprintf(&b, "| `%s` %s | %s | %s | %s | %s | %s |\n", d.Key, cell(d.Name), d.Unit, d.Better, cell(d.Definition), cell(undefined(d)), cell(d.Beware))
	}
	b.WriteString(`
## Outcomes

Each request ends in exactly one. sent = ok + failed + excluded + incomplete + cancelled.

| outcome | counts as |
|---|---|
`)
	for _, o := range bench.Outcomes {
		sum := string(o)
		switch {
		case o.Failed():
			sum = "failed"
		case o.Excluded():
			sum = "excluded"
		case o == bench.Dropped:
			sum = "never sent"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", o, sum)
	}
	b.WriteString(`
## Intervals

95 % intervals of the mean and of percentiles. Where the samples of a run are independent (effective number of samples at least
` + fmt.Sprint(independentShare) + ` of their number, by their autocorrelation) the mean has a t-interval and a percentile the exact
binomial one; else both come from ` + fmt.Sprint(sections) + ` consecutive sections of the run, or, in a run too short for sections,
the mean has a t-interval with the effective number of samples. A run whose latency drifts gets none. How each was made is in the
summary (ci_method).

## Caveats and the verdict

The verdict is void if a void caveat holds, doubtful if a warning does, else valid. A cell marks one number; a note only says
something.

| code | severity | when | what to do |
|---|---|---|---|
`)
	for _, r := range rules() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.code, r.severity, cell(r.when), cell(r.remedy))
	}
	return b.String()
}
