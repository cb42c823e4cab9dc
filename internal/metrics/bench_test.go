package metrics

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/rng"
)

// noisy is a closed loop of 64 with 3,200 requests of 128 events each, whose steps vary.
func noisy() []bench.Record {
	s := rng.New(3, "noisy")
	records := closedLoop(64, 3200, 0)
	for i := range records {
		r := &records[i]
		*r = stream(i, r.Sent.Or(0), 50*msec, 10*msec, 128)
		for k := range r.Events {
			r.Events[k] += time.Duration(s.Float64() * float64(5*msec))
		}
	}
	return records
}

func BenchmarkSummarize(b *testing.B) {
	records := noisy()
	m := under(bench.Load{Shape: bench.Closed, Concurrency: 64}, bench.Stop{Requests: len(records)})
	for b.Loop() {
		Summarize(m, records)
	}
}
