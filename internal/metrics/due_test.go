package metrics

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// A run in which nothing was due is void, and says that: no request failed.
func TestNoneDue(t *testing.T) {
	const s = time.Second
	open := bench.Load{Shape: bench.Poisson, Rate: 0.01, Burstiness: 1}
	refused := bench.Record{Phase: bench.Measure, Outcome: bench.Rejected}
	for _, c := range []struct {
		name    string
		load    bench.Load
		stop    bench.Stop
		state   bench.State
		records []bench.Record
		want    string
	}{
		{"no arrival", open, bench.Stop{Duration: s}, bench.Complete, nil, "none_due"},
		{"no arrival after a warm-up", open, bench.Stop{Duration: s}, bench.Complete, []bench.Record{{Phase: bench.Warmup, Outcome: bench.OK}}, "none_due"},
		{"one that failed", open, bench.Stop{Duration: s}, bench.Complete, []bench.Record{refused}, "no_success"},
		{"interrupted", open, bench.Stop{Duration: s}, bench.Interrupted, nil, "no_success"},
		{"a number of requests", open, bench.Stop{Requests: 5}, bench.Complete, nil, "no_success"},
		{"a closed loop", bench.Load{Shape: bench.Closed, Concurrency: 1}, bench.Stop{Duration: s}, bench.Complete, nil, "no_success"},
	} {
		m := &bench.Manifest{State: c.state, Planned: c.stop.Requests}
		m.Spec.Phases = []bench.Phase{{Name: bench.Measure, Load: c.load, Stop: c.stop}}
		sum := Summarize(m, c.records)
		got := ""
		for _, x := range sum.Caveats {
			if x.Code == "none_due" || x.Code == "no_success" {
				got += x.Code
			}
		}
		if got != c.want || sum.Verdict != bench.Void {
			t.Errorf("%s: %s, caveats %+v", c.name, sum.Verdict, sum.Caveats)
		}
	}
}
