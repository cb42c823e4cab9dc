package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/wire"
)

const msec = time.Millisecond

// at is a defined moment.
func at(d time.Duration) opt.Of[time.Duration] { return opt.Some(d) }

// under is a complete run of a load.
func under(l bench.Load, stop bench.Stop) *bench.Manifest {
	return &bench.Manifest{Schema: bench.ManifestSchema, State: bench.Complete, Planned: stop.Requests,
		Spec: bench.Spec{Target: bench.Target{URLs: []string{"http://a"}, Stream: true}, Phases: []bench.Phase{{Name: bench.Measure, Load: l, Stop: stop}}}}
}

// stream is an ok request of a number of events that come at an even pace.
func stream(id int, sent, ttft, itl time.Duration, events int) bench.Record {
	r := bench.Record{ID: id, Phase: bench.Measure, Outcome: bench.OK, Sent: at(sent), First: at(sent + ttft), OSL: opt.Some(events), OSLSource: bench.FromUsage, OutEvents: events,
		Stamp: wire.StampWire}
	for k := range events {
		r.Events = append(r.Events, ttft+time.Duration(k)*itl)
	}
	r.Last = at(sent + r.Events[events-1])
	r.End = r.Last
	return r
}

// caveatsOf returns the caveats of a code, as severity and text.
func caveatsOf(s *bench.Summary, code string) (out []string) {
	for _, c := range s.Caveats {
		if c.Code == code {
			out = append(out, string(c.Severity)+": "+c.Text)
		}
	}
	return out
}

// wants holds the caveats of a code against parts of their texts, in order.
func wants(t *testing.T, s *bench.Summary, code string, parts ...string) {
	t.Helper()
	got := caveatsOf(s, code)
	ok := len(got) == len(parts)
	for i := range parts {
		ok = ok && strings.Contains(got[i], parts[i])
	}
	if !ok {
		t.Errorf("%s: %q, want %q", code, got, parts)
	}
}

// The window lasts until the end of the last request, also of one that was refused and so never sent.
func TestWindowHoldsTheUnsent(t *testing.T) {
	m := under(bench.Load{Shape: bench.Closed, Concurrency: 1}, bench.Stop{Requests: 2})
	s := Summarize(m, []bench.Record{stream(0, time.Second, msec, msec, 2),
		{ID: 1, Phase: bench.Measure, Outcome: bench.Refused, End: at(5 * time.Second), Error: "refused"}})
	if w, _ := s.Window.Get(); w != 4 {
		t.Errorf("the window is %v s, want 4", w)
	}
}

// Streams that are decoded together share their slow steps. In the order of the events neighbouring gaps are alike; request by request
// they are not, and would pass as independent.
func TestGapsAreInTime(t *testing.T) {
	s := rng.New(1, "steps")
	var steps []time.Duration
	for now, k := time.Duration(0), 0; k < 200; k++ {
		now += 10*msec + time.Duration(s.Exp()*float64(5*msec))
		steps = append(steps, now)
	}
	var records []bench.Record
	for i := range 20 {
		r := stream(i, 0, msec, msec, len(steps))
		r.Sent, r.Events = at(time.Duration(i)), nil
		for _, now := range steps {
			r.Events = append(r.Events, now-time.Duration(i))
		}
		r.Last = at(steps[len(steps)-1])
		r.End = r.Last
		records = append(records, r)
	}
	m := under(bench.Load{Shape: bench.Closed, Concurrency: 20}, bench.Stop{Requests: 20})
	d := Summarize(m, records).Metrics.Dist("itl_ms")
	if n := d.NEff.Or(0); d.N != 20*199 || n > 2*199 {
		t.Errorf("%d gaps of 199 steps are worth %v", d.N, n)
	}
	x, last := NewContext(m, records), time.Duration(0)
	x.gapsInTime(func(g gap) {
		if g.at < last {
			t.Fatalf("a gap at %v after one at %v", g.at, last)
		}
		last = g.at
	})
}

// A step of the clock voids a run only where stamps could not be repaired.
func TestClockStep(t *testing.T) {
	for _, c := range []struct {
		steps, unrepaired int
		want              []string
	}{{0, 0, nil}, {2, 0, []string{"note: the wall clock was stepped 2 times"}}, {2, 7, []string{"void: 7 kernel stamps"}}} {
		m := under(bench.Load{Shape: bench.Closed, Concurrency: 1}, bench.Stop{Requests: 1})
		m.Client.ClockSteps, m.Client.UnrepairedSteps = c.steps, c.unrepaired
		wants(t, Summarize(m, []bench.Record{stream(0, 0, msec, msec, 2)}), "clock_step", c.want...)
	}
}

// closedLoop is a loop of so many places that takes so long to fill a free one.
func closedLoop(places, n int, late time.Duration) []bench.Record {
	var out []bench.Record
	free := make([]time.Duration, places)
	for i := range n {
		k := 0
		for j := range free {
			if free[j] < free[k] {
				k = j
			}
		}
		r := stream(i, free[k]+late, 50*msec, 10*msec, 6)
		r.Slot = at(free[k])
		free[k] = r.End.Or(0)
		out = append(out, r)
	}
	return out
}

// A client that leaves places free is told of in a closed loop and under a cap, not only where there are due times.
func TestLatenessOfEveryLoad(t *testing.T) {
	for _, l := range []bench.Load{{Shape: bench.Closed, Concurrency: 4}, {Shape: bench.Inf, Cap: 4}} {
		for late, want := range map[time.Duration][]string{9 * msec: nil, 30 * msec: {"void: the client was late by 30.0 ms at p99, above 10.0 ms: so long a free place"}} {
			s := Summarize(under(l, bench.Stop{Requests: 200}), closedLoop(4, 200, late))
			wants(t, s, "client_limited", want...)
			if s.Metrics.Dist("lag_ms") != nil {
				t.Errorf("%s has a lag", l.Shape)
			}
		}
	}
	paced := []bench.Record{}
	for i := range 200 {
		r := stream(i, time.Duration(i)*100*msec+30*msec, 50*msec, msec, 6)
		r.Due = at(time.Duration(i) * 100 * msec)
		paced = append(paced, r)
	}
	s := Summarize(under(bench.Load{Shape: bench.Constant, Rate: 10}, bench.Stop{Requests: 200}), paced)
	wants(t, s, "client_limited", "void: the client's lag p99 is 30.0 ms, above 10.0 ms")
	near(t, "lag", s.Metrics.Dist("lag_ms").Mean, 30)
}

// What the client says of itself is held against the same bound: scheduling delay only where reads are the stamps.
func TestClientReport(t *testing.T) {
	for _, c := range []struct {
		client bench.ClientReport
		want   []string
	}{
		{bench.ClientReport{Stamp: "user", SchedDelayP99: int64(2_770 * msec)}, []string{"void: the client got the processor 2,770 ms late at p99"}},
		{bench.ClientReport{Stamp: "socket", SchedDelayP99: int64(20 * msec)}, nil},
		{bench.ClientReport{Stamp: "socket", ReadDelayP99: int64(20 * msec)}, []string{"void: the client read its sockets 20.0 ms late"}},
		{bench.ClientReport{Stamp: "wire", ReadDelayP99: int64(20 * msec)}, nil},
		{bench.ClientReport{Stalls: []bench.Span{{From: time.Second, To: 4 * time.Second}}}, []string{"void: the client did not run for 3.00 s of the 5."}},
		{bench.ClientReport{Stalls: []bench.Span{{From: 10 * time.Second, To: 14 * time.Second}}}, nil}, // after the window
		{bench.ClientReport{Stalls: []bench.Span{{From: time.Second, To: time.Second + 90*msec}}}, nil},
	} {
		m := under(bench.Load{Shape: bench.Closed, Concurrency: 4}, bench.Stop{Requests: 200})
		m.Client = c.client
		wants(t, Summarize(m, closedLoop(4, 200, 0)), "client_limited", c.want...)
	}
}

// A plateau is full for 95 % of its time, or there is none and the rates are null.
func TestPlateau(t *testing.T) {
	run := func(late time.Duration) *bench.Summary {
		return Summarize(under(bench.Load{Shape: bench.Closed, Concurrency: 1}, bench.Stop{Requests: 200}), closedLoop(1, 200, late))
	}
	full := run(4 * msec) // 100 of each 104 ms
	if !full.Steady.RequestThroughput.Defined() || full.Steady.Note != "" {
		t.Errorf("%+v", full.Steady)
	}
	gaps := run(6 * msec) // 100 of each 106 ms
	if gaps.Steady.RequestThroughput.Defined() || gaps.Steady.From.Defined() || gaps.Steady.OutputThroughput.Defined() {
		t.Errorf("rates of no plateau: %+v", gaps.Steady)
	}
	wants(t, gaps, "no_plateau", "warn: there is no plateau: 1 of 1 places were taken for 94.")
	wants(t, full, "no_plateau")

	// open loop: the latency grows until the end
	var records []bench.Record
	for i := range 300 {
		r := stream(i, time.Duration(i)*50*msec, 50*msec+time.Duration(i)*20*msec, msec, 3)
		r.Due = r.Sent
		records = append(records, r)
	}
	s := Summarize(under(bench.Load{Shape: bench.Constant, Rate: 20}, bench.Stop{Requests: 300}), records)
	if s.Steady.RequestThroughput.Defined() {
		t.Errorf("%+v", s.Steady)
	}
	wants(t, s, "no_plateau", "the latency does not settle")
}

// Events that share a read are told of, unless the stamps are those of packets.
func TestMergedReads(t *testing.T) {
	for _, c := range []struct {
		stamp  wire.Stamp
		merged int
		want   []string
	}{{wire.StampSocket, 1, []string{"note: 10.0 % of the output events"}}, {wire.StampWire, 1, nil}, {wire.StampUser, 0, nil}} {
		r := stream(0, 0, msec, msec, 10)
		r.Stamp, r.Merged = c.stamp, c.merged
		wants(t, Summarize(under(bench.Load{Shape: bench.Closed, Concurrency: 1}, bench.Stop{Requests: 1}), []bench.Record{r}), "merged_reads", c.want...)
	}
}

// Send times that do not follow the law have the remedy of their cause.
func TestArrivalsDiffer(t *testing.T) {
	run := func(limit int) *bench.Summary {
		var records []bench.Record
		for i := range 300 {
			due := time.Duration(i) * 50 * msec
			sent := due.Truncate(500 * msec).Round(msec)
			r := stream(i, max(due, sent+490*msec), 5*msec, msec, 3) // ten at a time
			r.Due = at(due)
			if limit > 0 {
				r.Slot = r.Sent
			}
			records = append(records, r)
		}
		return Summarize(under(bench.Load{Shape: bench.Constant, Rate: 20, Cap: limit}, bench.Stop{Requests: 300}), records)
	}
	wants(t, run(0), "arrivals_differ", "although the schedule does")
	capped := run(3)
	wants(t, capped, "arrivals_differ", "requests waited for the cap")
	for _, c := range capped.Caveats {
		if c.Code == "arrivals_differ" && !strings.Contains(c.Remedy, "--max-concurrency") {
			t.Errorf("the remedy is %q", c.Remedy)
		}
	}
}

// A target whose own latency drifts has no interval, even where the run as a whole does not seem to.
func TestDriftingTargetHasNoInterval(t *testing.T) {
	m := under(bench.Load{Shape: bench.Closed, Concurrency: 2}, bench.Stop{Requests: 600})
	m.Spec.Target.URLs = []string{"http://a", "http://b", "http://c"}
	s := rng.New(5, "targets")
	var records []bench.Record
	for i := range 600 {
		noise := time.Duration(s.Float64() * float64(20*msec))
		ttft := 100*msec + noise
		switch i % 3 {
		case 1:
			ttft += time.Duration(i) * msec / 4
		case 2:
			ttft += time.Duration(600-i) * msec / 4
		}
		r := stream(i, time.Duration(i)*100*msec, ttft, msec, 3)
		r.Target = i % 3
		records = append(records, r)
	}
	sum := Summarize(m, records)
	if _, ok := sum.Targets[0].TTFT.CI["mean"]; !ok {
		t.Errorf("a steady target: %s", sum.Targets[0].TTFT.CIMethod)
	}
	for _, target := range sum.Targets[1:] {
		if len(target.TTFT.CI) > 0 || !strings.Contains(target.TTFT.CIMethod, "drifting") {
			t.Errorf("a drifting target: %v, %s", target.TTFT.CI, target.TTFT.CIMethod)
		}
	}
}

// An interval of times is not below 0, and says that it was cut. The remedy for few samples is in the flag of the run.
func TestIntervalsAndRemedies(t *testing.T) {
	var records []bench.Record
	for i, ttft := range []time.Duration{5, 400, 10, 300} {
		records = append(records, stream(i, time.Duration(i)*time.Second, ttft*msec, msec, 2))
	}
	for _, c := range []struct {
		stop bench.Stop
		want string
	}{{bench.Stop{Requests: 4}, "--num-requests "}, {bench.Stop{Duration: 4 * time.Second}, "--duration "}} {
		s := Summarize(under(bench.Load{Shape: bench.Closed, Concurrency: 1}, c.stop), records)
		d := s.Metrics.Dist("ttft_ms")
		if ci := d.CI["mean"]; ci[0] != 0 || !strings.HasSuffix(d.CIMethod, "; cut at 0") {
			t.Errorf("%v by %s", ci, d.CIMethod)
		}
		if d := s.Metrics.Dist("tpot_ms"); strings.Contains(d.CIMethod, "cut") {
			t.Errorf("%v by %s", d.CI, d.CIMethod)
		}
		for _, v := range s.Caveats {
			if v.Metric == "ttft_ms.p50" && !strings.HasPrefix(v.Remedy, c.want) {
				t.Errorf("%+v: %q", c.stop, v.Remedy)
			}
		}
	}
}

// More than 5 % of answers with fewer tokens than events are a warning; failed ones do not count.
func TestFewerTokensThanEvents(t *testing.T) {
	run := func(n, failed int) *bench.Summary {
		records := closedLoop(2, 100, 0)
		for i := range records[:n+failed] {
			records[i].Raise(bench.FewerTokensThanEvents)
			if i >= n {
				records[i].Outcome = bench.StreamError
			}
		}
		return Summarize(under(bench.Load{Shape: bench.Closed, Concurrency: 2}, bench.Stop{Requests: 100}), records)
	}
	wants(t, run(5, 0), "fewer_tokens_than_events")
	wants(t, run(1, 20), "fewer_tokens_than_events")
	wants(t, run(6, 0), "fewer_tokens_than_events", "warn: the server counts fewer tokens than it sent events in 6 of 100 answers")
}

func TestThree(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 2770: "2,770", 12_345: "12,300", 1_234_567: "1,230,000", 999.6: "1,000", 10: "10.0", 0.5: "0.500", 0.0123: "0.0123", -2770: "-2,770", 123: "123"} {
		if got := three(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

// anyRecord draws a record of which nothing is sure but that the reader of a journal would take it.
func anyRecord(t *rapid.T, id int) bench.Record {
	moment := rapid.Custom(func(t *rapid.T) opt.Of[time.Duration] {
		if rapid.IntRange(0, 2).Draw(t, "none") == 0 {
			return opt.Of[time.Duration]{}
		}
		return opt.Some(time.Duration(rapid.SampledFrom([]int64{-5e9, -1, 0, 1, 999, 1e6, 1e9, 2e9, 20e9, 400e9}).Draw(t, "at")))
	})
	tokens := rapid.Custom(func(t *rapid.T) opt.Of[int] {
		if n := rapid.IntRange(-1, 5).Draw(t, "n"); n >= 0 {
			return opt.Some(n)
		}
		return opt.Of[int]{}
	})
	m := func(name string) opt.Of[time.Duration] { return moment.Draw(t, name) }
	r := bench.Record{ID: id, Phase: rapid.SampledFrom([]string{bench.Measure, bench.Measure, bench.Warmup, ""}).Draw(t, "phase"), Target: rapid.IntRange(0, 3).Draw(t, "target"),
		Outcome: rapid.SampledFrom(append([]bench.Outcome{bench.OK, bench.OK, bench.OK, bench.OK}, bench.Outcomes...)).Draw(t, "outcome"),
		Error:   rapid.SampledFrom([]string{"", "port 4711", "-1-", "a_"}).Draw(t, "error"),
		Due:     m("due"), Slot: m("slot"), Sent: m("sent"), Handed: m("handed"), First: m("first"), Second: m("second"), FirstAnswer: m("answer"), Last: m("last"), End: m("end"),
		Connect: m("connect"), TLS: m("tls"), ISL: tokens.Draw(t, "isl"), ISLAsked: rapid.IntRange(0, 3).Draw(t, "asked"), OSL: tokens.Draw(t, "osl"), Cached: tokens.Draw(t, "cached"),
		OutEvents: rapid.IntRange(0, 12).Draw(t, "events"), Merged: rapid.IntRange(0, 12).Draw(t, "merged")}
	offsets := func(n int) []int {
		return rapid.SliceOfN(rapid.IntRange(0, 4), n, n).Draw(t, "of each")
	}
	n := rapid.IntRange(0, 14).Draw(t, "kept")
	for range n {
		r.Events = append(r.Events, time.Duration(rapid.Int64Range(-1e9, 4e9).Draw(t, "event")))
	}
	if rapid.Bool().Draw(t, "told") {
		r.EventTokens = offsets(rapid.SampledFrom([]int{n, n, 3}).Draw(t, "tokens"))
	}
	if rapid.Bool().Draw(t, "choices") {
		r.EventChoice = offsets(rapid.SampledFrom([]int{n, n, 2}).Draw(t, "choices"))
	}
	r.Flags = rapid.SliceOfN(rapid.SampledFrom([]bench.Flag{bench.AllAtOnce, bench.Clumped, bench.RetriedStaleConnection, "of a later version"}), 0, 2).Draw(t, "flags")
	return r
}

// Records of any kind give a summary without a panic, that is JSON, and the same whatever their order.
func TestSummarizeTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var records []bench.Record
		for i := range rapid.IntRange(0, 20).Draw(t, "records") {
			records = append(records, anyRecord(t, i))
		}
		load := rapid.SampledFrom([]bench.Load{{Shape: bench.Closed, Concurrency: 2}, {Shape: bench.Poisson, Rate: 3}, {Shape: bench.Constant, Rate: 1e-9}, {Shape: bench.Inf},
			{Shape: bench.Inf, Cap: 1}, {Shape: bench.Gamma, Rate: 1e9, Burstiness: 0.1, Cap: 1}, {}}).Draw(t, "load")
		m := under(load, bench.Stop{Requests: 20})
		m.Spec.Target.URLs = []string{"http://a", "http://b"}
		m.Spec.SLO = []bench.Limit{{Metric: "ttft", Max: time.Second}, {Metric: "tpot", Max: 1}, {Metric: "itl", Max: 1}, {Metric: "e2el"}, {Metric: "?"}}
		s := Summarize(m, records)
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		for _, x := range s.Metrics {
			if x.Dist == nil {
				continue
			}
			for _, v := range append([]float64{x.Dist.Mean, x.Dist.Min, x.Dist.Max}, x.Dist.SD.Or(0)) {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%s: %v", x.Key, v)
				}
			}
			if !slices.IsSortedFunc(x.Dist.Quantiles, func(a, b bench.Quantile) int { return int(math.Copysign(1, a.Value-b.Value)) }) && x.Dist.N > 0 {
				last := math.Inf(-1)
				for _, q := range x.Dist.Quantiles {
					if q.Value < last {
						t.Fatal(fmt.Sprintf("%s: percentiles fall: %v", x.Key, x.Dist.Quantiles))
					}
					last = q.Value
				}
			}
		}
	})
}

// What passes a proxy is told so: its time cannot be taken apart from the server's.
func TestThroughProxy(t *testing.T) {
	r := stream(0, 0, msec, msec, 10)
	m := under(bench.Load{Shape: bench.Closed, Concurrency: 1}, bench.Stop{Requests: 1})
	wants(t, Summarize(m, []bench.Record{r}), "through_proxy")
	m.Spec.Client.Proxy = "http://127.0.0.1:3128"
	wants(t, Summarize(m, []bench.Record{r}), "through_proxy", "note: the requests went through the proxy http://127.0.0.1:3128: its time is in every latency")
}
