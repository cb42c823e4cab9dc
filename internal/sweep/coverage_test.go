package sweep

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/sim"
)

// The printed 95 % intervals of 5 rounds at a load of 0.8 cover what a long run finds, in at least 90 of 100 cases.
func TestCoverage(t *testing.T) {
	sweeps, length := 4, 20_000
	if long() {
		sweeps, length = 20, 60_000
	}
	keys := []string{"ttft_ms.mean", "ttft_ms.p50", "tpot_ms.mean", "e2el_ms.mean", "e2el_ms.p90"}
	load := rounded(digits(0.8*capacity(testCost, 16), 4))
	one := func(seed uint64, rounds, requests int) (level bench.CurveLevel) {
		virtual(t, sim.EngineConfig{Cost: &testCost, MaxNumSeqs: 16}, func(w *world) {
			w.rates(load)
			w.Spec.Seed = seed
			w.Spec.Phases = []bench.Phase{
				{Name: bench.Warmup, Load: w.Spec.Phases[0].Load, Stop: bench.Stop{Requests: 100, Grace: time.Minute}}, w.Spec.Phases[0]}
			w.Plan.Rounds, w.Plan.Requests = rounds, requests
			level = w.do().Levels[0]
		})
		return level
	}
	truth := one(1_000_000, 1, length)
	covered, cases := map[string]int{}, 0
	all := 0
	for i := range sweeps {
		l := one(uint64(i), 5, 2000)
		for _, key := range keys {
			want, ok := truth.Mean(key)
			m := l.Get(key)
			if !ok || m == nil || !m.Low.Defined() {
				t.Fatalf("%s: %+v", key, m)
			}
			cases++
			hit := count(m.Low.Or(0) <= want && want <= m.High.Or(0))
			covered[key] += hit
			all += hit
		}
	}
	t.Logf("of %d sweeps at %v req/s: %v", sweeps, load, covered)
	if float64(all) < 0.9*float64(cases) {
		t.Errorf("%d of %d intervals cover: %v", all, cases, covered)
	}
}
