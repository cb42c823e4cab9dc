package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// Each class has its own counts and latencies; first and later turns are told apart; many classes are bounded.
func TestClasses(t *testing.T) {
	record := func(i int, class string, turn int, ttft time.Duration, outcome bench.Outcome) bench.Record {
		at := time.Duration(i) * time.Second
		return bench.Record{ID: i, Phase: bench.Measure, Class: class, Turn: turn, Outcome: outcome, Sent: opt.Some(at), First: opt.Some(at + ttft), Last: opt.Some(at + 2*ttft),
			End: opt.Some(at + 2*ttft), OSL: opt.Some(2), OSLSource: bench.FromUsage, OutEvents: 2, Events: []time.Duration{ttft, 2 * ttft}}
	}
	m := &bench.Manifest{Spec: bench.Spec{Target: bench.Target{Stream: true, URLs: []string{"u"}}, Phases: []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}}}}}
	var records []bench.Record
	for i := range 30 {
		class, ttft := "short", 10*time.Millisecond
		if i%3 == 0 {
			class, ttft = "long", 50*time.Millisecond
		}
		outcome := bench.OK
		if i == 3 {
			outcome = bench.Timeout
		}
		records = append(records, record(i, class, i%2, ttft, outcome))
	}
	got := ""
	for _, c := range Summarize(m, records).Classes {
		got += fmt.Sprintf("%s %s %d %d %d %.0f; ", c.Of, c.Name, c.Sent, c.OK, c.Failed, c.E2EL.Max)
	}
	if want := "class short 20 20 0 20; class long 10 9 1 100; turn first 15 15 0 100; turn later 15 14 1 100; "; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for i := range records {
		records[i].Class, records[i].Turn = "", 0
	}
	if c := Summarize(m, records).Classes; c != nil {
		t.Errorf("%d classes where there are none", len(c))
	}
	for i := range 200 {
		records = append(records, record(100+i, fmt.Sprint(i), 0, time.Millisecond, bench.OK))
	}
	if c := Summarize(m, records).Classes; len(c) != mostClasses+1 || c[mostClasses].Name != otherClasses || c[mostClasses].Sent != 201-mostClasses {
		t.Errorf("%d classes", len(c))
	}
}

// A prefix cache that helps is a caveat only where nobody asked for it.
func TestWarmCacheOnPurpose(t *testing.T) {
	var records []bench.Record
	for i := range 20 {
		at := time.Duration(i) * time.Second
		records = append(records, bench.Record{ID: i, Phase: bench.Measure, Outcome: bench.OK, Sent: opt.Some(at), First: opt.Some(at + time.Millisecond), Last: opt.Some(at + time.Millisecond),
			End: opt.Some(at + time.Millisecond), ISL: opt.Some(100), ISLSource: bench.FromUsage, Cached: opt.Some(50), OSL: opt.Some(1), OSLSource: bench.FromUsage, OutEvents: 1})
	}
	for dataset, want := range map[string]bool{"random": true, "jsonl": true, "prefix": false, "mooncake": false, "azure": true} {
		m := &bench.Manifest{Spec: bench.Spec{Workload: bench.Workload{Dataset: dataset}, Target: bench.Target{Stream: true, URLs: []string{"u"}},
			Phases: []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}}}}}
		got := false
		for _, c := range Summarize(m, records).Caveats {
			got = got || c.Code == "warm_cache"
		}
		if got != want {
			t.Errorf("%s: a warm cache is told: %v", dataset, got)
		}
	}
}
