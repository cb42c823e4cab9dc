package report

import (
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
)

func TestPhasesTable(t *testing.T) {
	phase := func(name string, l bench.Load) bench.Phase { return bench.Phase{Name: name, Load: l} }
	man := &bench.Manifest{Spec: bench.Spec{Phases: []bench.Phase{phase(bench.Warmup, bench.Load{Shape: bench.Closed, Concurrency: 2}),
		phase("low", bench.Load{Shape: bench.Poisson, Rate: 5}), phase("high", bench.Load{Shape: bench.Users, Concurrency: 9})}}}
	sum := &bench.Summary{Phases: []bench.PhaseResult{{Name: "low", Requests: bench.Counts{OK: 3}}, {Name: "high", Requests: bench.Counts{OK: 4, Failed: 1}}}}
	b := &builder{man: man, sum: sum}
	var m Model
	b.phases(&m)
	if len(m.Phases.Rows) != 2 {
		t.Fatalf("%+v", m.Phases)
	}
	for i, want := range []string{"low Poisson 5 req/s 3 0", "high 9 users 4 1"} {
		if got := strings.Join(m.Phases.Rows[i][:4], " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
