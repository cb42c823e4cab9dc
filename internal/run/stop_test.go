package run

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/sim"
	"github.com/prony-bench/prony/internal/store"
)

// warmUp puts a phase before the measured one.
func (w *world) warmUp(stop bench.Stop) {
	load := w.spec.Phases[0].Load
	stop.Grace = 30 * time.Second
	w.spec.Phases = []bench.Phase{{Name: bench.Warmup, Load: load, Stop: stop}, w.spec.Phases[0]}
}

// An open loop measures for its duration: what was due is planned, what is in flight has its grace, nothing else is recorded.
func TestDuration(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		p := &w.spec.Phases[0]
		p.Load = bench.Load{Shape: bench.Constant, Rate: 10}
		p.Stop = bench.Stop{Duration: 5 * time.Second, Grace: time.Second}
		res := w.do()
		c := res.Summary.Requests
		if c.Planned != 50 || c.Sent != 50 || c.OK != 50 || res.Manifest.State != bench.Complete || res.Summary.Verdict != bench.Valid {
			w.t.Errorf("%+v, %s, %s %+v", c, res.Manifest.State, res.Summary.Verdict, res.Summary.Caveats)
		}
		w1, _ := res.Summary.Window.Get()
		if want := (4900*ms + 100*ms + 7*20*ms).Seconds(); w1 != want {
			w.t.Errorf("window %v, want %v", w1, want)
		}
	})
	// a closed loop: sends until the end of the duration, and the last ones get their grace
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		p := &w.spec.Phases[0]
		p.Load = bench.Load{Shape: bench.Closed, Concurrency: 2}
		p.Stop = bench.Stop{Duration: time.Second, Grace: time.Second}
		res := w.do()
		if c := res.Summary.Requests; c.OK != 10 || c.Dropped != 0 || c.Incomplete != 0 || c.Planned != 10 {
			w.t.Errorf("%+v", c)
		}
	})
	// no grace: what is in flight is incomplete, neither good nor failed
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		p := &w.spec.Phases[0]
		p.Load = bench.Load{Shape: bench.Constant, Rate: 10}
		p.Stop = bench.Stop{Duration: 950 * ms}
		res := w.do()
		c := res.Summary.Requests
		if c.Sent != 10 || c.OK != 8 || c.Incomplete != 2 || c.Failed != 0 {
			w.t.Errorf("%+v", c)
		}
		for _, r := range res.Records {
			if r.Outcome == bench.Incomplete && r.End.Or(0)-res.Manifest.MeasureFrom.Or(0) != 950*ms+startDelay+openTime {
				w.t.Errorf("cut at %v", r.End)
			}
		}
	})
}

// Under a cap too small for the rate, requests that were due and never sent are dropped, and the load is said to be missed.
func TestDurationUnderCap(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		p := &w.spec.Phases[0]
		p.Load = bench.Load{Shape: bench.Constant, Rate: 10, Cap: 1}
		p.Stop = bench.Stop{Duration: 2 * time.Second, Grace: time.Second}
		res := w.do()
		c := res.Summary.Requests
		if c.Planned != 20 || c.Sent != 9 || c.OK != 9 || c.Dropped != 11 {
			w.t.Errorf("%+v", c)
		}
		if !has(res.Summary, "offered_load_not_reached") || has(res.Summary, "late_load") || res.Summary.Verdict != bench.Doubtful {
			w.t.Errorf("%s %+v", res.Summary.Verdict, res.Summary.Caveats)
		}
		q := res.Summary.Metrics.Dist("queue_ms") // request i waits until i*240 ms, and was due at i*100
		if q.Min != 0 || q.Max != 8*140 {
			w.t.Errorf("queue %+v", q)
		}
	})
}

func has(s *bench.Summary, code string) bool {
	return slices.ContainsFunc(s.Caveats, func(c bench.Caveat) bool { return c.Code == code })
}

// Warm-up requests have prompts of their own and count in nothing.
func TestWarmup(t *testing.T) {
	for _, stop := range []bench.Stop{{Requests: 5}, {Duration: 1300 * ms}} {
		virtual(t, exact(100*ms, 20*ms), func(w *world) {
			w.warmUp(stop)
			w.spec.Keep.Transcripts = true
			res := w.do()
			c := res.Summary.Requests
			if c.Warmup < 5 || c.Sent != 10 || c.OK != 10 || res.Summary.Verdict != bench.Valid {
				w.t.Errorf("%+v %+v", c, res.Summary.Caveats)
			}
			ids := map[int]bool{}
			for _, r := range res.Records {
				if ids[r.ID] {
					w.t.Errorf("id %d twice", r.ID)
				}
				ids[r.ID] = true
			}
		})
	}
}

// The first interrupt drains, the second ends at once; either way what is complete is reported and marked.
func TestInterrupt(t *testing.T) {
	for _, kill := range []bool{false, true} {
		virtual(t, exact(100*ms, 100*ms), func(w *world) {
			w.spec.Phases[0].Load.Concurrency = 2
			w.spec.Phases[0].Stop.Requests = 100
			interrupt, killed := make(chan struct{}), make(chan struct{})
			w.ctl = Control{Interrupt: interrupt, Kill: killed}
			begun := time.Now()
			go func() {
				time.Sleep(2 * time.Second)
				close(interrupt)
				if kill {
					time.Sleep(100 * ms)
					close(killed)
				}
			}()
			res := w.do()
			c := res.Summary.Requests
			wantOK, wantCut := 6, 0
			if kill {
				wantOK, wantCut = 4, 2
			}
			if c.OK != wantOK || c.Incomplete != wantCut || c.Dropped != 0 || res.ExitCode() != fault.Interrupted || res.Summary.Verdict != bench.Void || !has(res.Summary, "cut_short") {
				w.t.Errorf("kill %v: %+v exit %d %s", kill, c, res.ExitCode(), res.Summary.Verdict)
			}
			if d := time.Since(begun); kill && d > 2200*ms {
				w.t.Errorf("ended after %v", d)
			}
			if _, err := res.Dir.Summary(); err != nil {
				w.t.Error(err)
			}
		})
	}
}

// A run of nothing but refusals stops early, with the server's words and a hint; the records are kept.
func TestUnusable(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*world)
		words  string
		hint   string
	}{
		{"unknown model", func(w *world) {
			w.spec.Target.Model = "nope"
			w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		}, "does not exist", "--model"},
		{"wrong path", func(w *world) {
			w.spec.Target.Endpoint = "/v9/chat/completions"
			w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		}, "404", "--endpoint"},
		{"too long", func(w *world) { w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "999999"} }, "400", "--isl"},
	} {
		virtual(t, exact(100*ms, 20*ms), func(w *world) {
			c.change(w)
			w.spec.Phases[0].Stop.Requests = 50
			w.spec.Phases[0].Load = bench.Load{Shape: bench.Constant, Rate: 100} // so that time passes between the refusals
			res := w.do()
			if res.Unusable == nil || res.ExitCode() != fault.Target || !strings.Contains(res.Unusable.Error(), c.words) || !strings.Contains(fault.HintOf(res.Unusable), c.hint) {
				w.t.Errorf("%s: %v, hint %q", c.name, res.Unusable, fault.HintOf(res.Unusable))
			}
			if n := len(res.Records); n < unusableAfter || n > 40 {
				w.t.Errorf("%s: %d records", c.name, n)
			}
		})
	}
	virtual(t, sim.Config{Mode: sim.ModeExact, APIKey: "secret", TTFT: sim.Fixed(ms), ITL: sim.Fixed(ms)}, func(w *world) {
		_, err := Prepare(context.Background(), w.spec, w.deps, false)
		if fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), "--api-key") {
			w.t.Errorf("%v, hint %q", err, fault.HintOf(err))
		}
	})
	virtual(t, sim.Config{Mode: sim.ModeExact, Faults: []sim.Fault{{Kind: sim.FaultHTML, Share: 1}}}, func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		res := w.do()
		if res.Unusable == nil || !strings.Contains(res.Unusable.Error(), "HTML page") {
			w.t.Errorf("%v", res.Unusable)
		}
	})
}

// 5xx from the start is the server's failure, not a wrong target: the run goes on and is void.
func TestAllServerErrors(t *testing.T) {
	faults, err := sim.ParseFaults("503:1")
	if err != nil {
		t.Fatal(err)
	}
	virtual(t, sim.Config{Mode: sim.ModeExact, Faults: faults}, func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		res := w.do()
		if res.Unusable != nil || res.ExitCode() != fault.Void || res.Summary.Requests.Failed != 10 || !has(res.Summary, "no_success") {
			w.t.Errorf("%v %d %+v", res.Unusable, res.ExitCode(), res.Summary.Requests)
		}
		for _, m := range res.Summary.Metrics {
			if m.Dist != nil && m.Key != "connect_ms" && m.Key != "queue_ms" {
				w.t.Errorf("%s has samples", m.Key)
			}
		}
		b, err := os.ReadFile(filepath.Join(w.dir, store.SummaryFile))
		if err != nil || !json.Valid(b) || strings.Contains(string(b), "NaN") {
			w.t.Error("the summary is no strict JSON", err)
		}
	})
}

func TestMaxErrorRate(t *testing.T) {
	faults, _ := sim.ParseFaults("500:0.5")
	virtual(t, sim.Config{Mode: sim.ModeExact, TTFT: sim.Fixed(ms), ITL: sim.Fixed(ms), Faults: faults}, func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "4"}
		w.spec.Phases[0].Stop.Requests = 500
		w.spec.MaxErrorRate = 0.2
		res := w.do()
		if n := len(res.Records); n < errorRateAfter || n > 60 || res.Manifest.State != bench.Stopped || !strings.Contains(res.Manifest.Stopped, "--max-error-rate") || res.ExitCode() != fault.Void {
			w.t.Errorf("%d records, %s %q, exit %d", n, res.Manifest.State, res.Manifest.Stopped, res.ExitCode())
		}
	})
}

// Every fault of the simulated engine gives its outcome, and only those requests fail that it struck.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		fault   string
		outcome bench.Outcome
		flag    bench.Flag
	}{
		{"429@3s:every2", bench.Throttled, ""}, {"500:every2", bench.ServerError, ""}, {"502@text:every2", bench.ServerError, ""},
		{"html:every2", bench.Malformed, ""}, {"empty:every2", bench.Empty, ""}, {"stall@3:every2", bench.Timeout, ""}, {"cut@3:every2", bench.Reset, ""},
		{"reset@3:every2", bench.Reset, ""}, {"malformed@3:every2", bench.Malformed, ""}, {"error@3:every2", bench.StreamError, ""},
		{"drip@1us:every2", bench.OK, ""}, {"at-once:every2", bench.OK, bench.AllAtOnce}, {"no-usage:every2", bench.OK, bench.TokenCountEstimated},
		{"gzip:every2", bench.OK, ""}, {"close:every2", bench.OK, ""}, {"http1.0:every2", bench.OK, ""},
	} {
		faults, err := sim.ParseFaults(c.fault)
		if err != nil {
			t.Fatal(err)
		}
		virtual(t, sim.Config{Mode: sim.ModeExact, TTFT: sim.Fixed(100 * ms), ITL: sim.Fixed(20 * ms), Faults: faults}, func(w *world) {
			w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "8"}
			w.spec.Client.Timeout = 3 * time.Second
			res := w.do()
			struck := 0
			for _, r := range res.Records {
				odd := r.Outcome == c.outcome && (c.outcome != bench.OK || c.flag != "" && r.Has(c.flag))
				if odd {
					struck++
				} else if r.Outcome != bench.OK || r.First.Or(0)-r.Sent.Or(0) != 100*ms && c.fault[:4] != "drip" {
					w.t.Errorf("%s: %+v", c.fault, r)
				}
				if r.Outcome == bench.Throttled && r.RetryAfter != 3 {
					w.t.Errorf("retry after %v", r.RetryAfter)
				}
			}
			if want := 5; c.outcome != bench.OK && struck != want || c.flag != "" && struck != want {
				w.t.Errorf("%s: struck %d of 10: %+v", c.fault, struck, res.Summary.Requests)
			}
			if len(res.Records) != 10 {
				w.t.Errorf("%s: %d records", c.fault, len(res.Records))
			}
		})
	}
}

// Idle connections that the server closes unannounced are no failures (cases/README.md, check 5).
func TestStaleConnections(t *testing.T) {
	faults, _ := sim.ParseFaults("idle-close@100ms:1")
	virtual(t, sim.Config{Mode: sim.ModeExact, TTFT: sim.Fixed(10 * ms), ITL: sim.Fixed(ms), Faults: faults}, func(w *world) {
		w.spec.Phases[0].Load = bench.Load{Shape: bench.Constant, Rate: 2}
		res := w.do()
		if c := res.Summary.Requests; c.OK != 10 {
			w.t.Errorf("%+v %+v", c, res.Summary.Errors)
		}
	})
}

// Two runs with default options do not send the same prompts (check 9); with a seed they send the same bytes.
func TestSeeds(t *testing.T) {
	var bodies [3][]string
	for i, seed := range []uint64{1, 1, 2} {
		virtual(t, exact(ms, ms), func(w *world) {
			w.spec.Seed = seed
			plan, err := Prepare(context.Background(), w.spec, w.deps, false)
			if err != nil {
				w.t.Fatal(err)
			}
			p, err := plan.Preview(20)
			if err != nil {
				w.t.Fatal(err)
			}
			for _, c := range p.First {
				bodies[i] = append(bodies[i], string(c.Body))
			}
		})
	}
	if fmt.Sprint(bodies[0]) != fmt.Sprint(bodies[1]) {
		t.Error("one seed, different bytes")
	}
	for _, b := range bodies[2] {
		if slices.Contains(bodies[0], b) {
			t.Error("two seeds share a prompt")
		}
	}
}

// Kept transcripts fold to the same records again.
func TestRefold(t *testing.T) {
	faults, _ := sim.ParseFaults("cut@3:every4,429:every5,at-once:every3")
	virtual(t, sim.Config{Mode: sim.ModeExact, TTFT: sim.Fixed(100 * ms), ITL: sim.Fixed(20 * ms), Faults: faults}, func(w *world) {
		w.spec.Workload = bench.Workload{Dataset: "text", Prompt: "hi", OSL: "40"}
		w.spec.Keep = bench.Keep{Events: true, Text: true, Transcripts: true}
		w.spec.Phases[0].Load = bench.Load{Shape: bench.Poisson, Rate: 20}
		w.spec.Phases[0].Stop.Requests = 40
		res := w.do()
		d, _ := w.deps.Engines.Get(res.Manifest.Spec.Target.Engine)
		again, err := Refold(res.Dir, res.Manifest, d.Endpoints()[0], nil)
		if err != nil {
			w.t.Fatal(err)
		}
		text := func(rs []bench.Record) (out []string) {
			for _, r := range rs {
				b, _ := json.Marshal(r)
				out = append(out, string(b))
			}
			slices.Sort(out)
			return out
		}
		a, b := text(res.Records), text(again)
		if len(a) != len(b) {
			w.t.Fatalf("%d and %d records", len(a), len(b))
		}
		for i := range a {
			if a[i] != b[i] {
				w.t.Fatalf("%s\n%s", a[i], b[i])
			}
		}
	})
}

// Without streaming there is an end-to-end latency and a count, and nothing inside.
func TestNoStream(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Target.Stream = false
		res := w.do()
		m := res.Summary.Metrics
		if d := m.Dist("e2el_ms"); res.Summary.Requests.OK != 10 || d == nil || d.Min != 240 || d.Max != 240 {
			w.t.Errorf("%+v %+v %+v", res.Summary.Requests, d, res.Summary.Errors)
		}
		for _, key := range []string{"ttft_ms", "itl_ms", "tpot_ms", "first_answer_ms"} {
			if m.Dist(key) != nil {
				w.t.Errorf("%s has samples", key)
			}
		}
		if v, _ := m.Value("output_throughput"); v < 30 {
			w.t.Errorf("output throughput %v", v)
		}
	})
}

// Without events in the journal ITL is not defined, and what does not need them stays as it is.
func TestEventsNone(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Keep.Events = false
		res := w.do()
		m := res.Summary.Metrics
		if m.Dist("itl_ms") != nil || m.Dist("tpot_ms").Mean != 20 || m.Dist("ttft_ms").Mean != 100 || res.Records[0].OutEvents != 8 {
			w.t.Errorf("%+v", m.Dist("itl_ms"))
		}
		if _, ok := m.Value("peak_output_rate"); ok {
			w.t.Error("a peak rate without times")
		}
	})
}

// An existing run directory is never written into.
func TestExistingDirectory(t *testing.T) {
	virtual(t, exact(ms, ms), func(w *world) {
		os.MkdirAll(w.dir, 0o777)
		os.WriteFile(filepath.Join(w.dir, "x"), nil, 0o600)
		plan, err := Prepare(context.Background(), w.spec, w.deps, false)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := Execute(context.Background(), plan, w.dir, Control{}); fault.CodeOf(err) != fault.Usage {
			w.t.Error(err)
		}
	})
}

// Rate inf sends everything at once; under a cap a request is due when it can be sent, so that nothing waits in its numbers.
func TestInf(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Phases[0].Load = bench.Load{Shape: bench.Inf}
		w.spec.Phases[0].Stop.Requests = 50
		res := w.do()
		if f := res.Summary.Load.InFlight; f.Peak != 50 || res.Summary.Metrics.Dist("lag_ms") != nil || res.Summary.Load.Attained.Defined() {
			w.t.Errorf("%+v", res.Summary.Load)
		}
	})
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Phases[0].Load = bench.Load{Shape: bench.Inf, Cap: 5}
		w.spec.Phases[0].Stop.Requests = 50
		res := w.do()
		if f := res.Summary.Load.InFlight; f.Peak != 5 || f.Mean.Or(0) != 5 {
			w.t.Errorf("%+v", f)
		}
		if d := res.Summary.Metrics.Dist("ttft_from_due_ms"); d == nil || d.Max != 100 {
			w.t.Errorf("%+v", d)
		}
	})
}

// Several targets are used round robin, and each is described by itself.
func TestTargets(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Target.URLs = []string{"http://sim:80", "http://sim:80/v1"}
		w.spec.Phases[0].Load.Concurrency = 2
		res := w.do()
		if len(res.Summary.Targets) != 2 || res.Summary.Targets[0].OK != 5 || res.Summary.Targets[1].OK != 5 || res.Summary.Targets[1].TTFT.Mean != 100 {
			w.t.Errorf("%+v", res.Summary.Targets)
		}
	})
}

// Progress is reported while the run goes on, and at its end.
func TestProgress(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		var seen []Progress
		w.ctl.Progress = func(p Progress) { seen = append(seen, p) }
		w.do()
		if len(seen) < 4 || seen[len(seen)-1].Done != 10 || seen[len(seen)-1].InFlight != 0 {
			w.t.Fatalf("%+v", seen)
		}
		if p := seen[2]; p.InFlight != 1 || p.TTFT50 < 98 || p.TTFT50 > 102 || p.Planned != 10 {
			w.t.Errorf("%+v", p)
		}
	})
}

// An interrupt in the grace after a duration is one all the same, and a second ends the run at once.
func TestInterruptInGrace(t *testing.T) {
	virtual(t, exact(100*ms, time.Second), func(w *world) {
		p := &w.spec.Phases[0]
		p.Load = bench.Load{Shape: bench.Constant, Rate: 10}
		p.Stop = bench.Stop{Duration: time.Second, Grace: time.Hour}
		interrupt, killed := make(chan struct{}), make(chan struct{})
		w.ctl = Control{Interrupt: interrupt, Kill: killed}
		begun := time.Now()
		go func() {
			time.Sleep(2 * time.Second)
			close(interrupt)
			time.Sleep(time.Second)
			close(killed)
		}()
		res := w.do()
		if c := res.Summary.Requests; res.Manifest.State != bench.Interrupted || res.ExitCode() != fault.Interrupted || c.Incomplete != 10 || time.Since(begun) != 3*time.Second {
			w.t.Errorf("%s after %v: %+v", res.Manifest.State, time.Since(begun), c)
		}
	})
}

// With rate inf every request is ready before the phase begins, so that none is late.
func TestInfIsReady(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		p := &w.spec.Phases[0]
		p.Load = bench.Load{Shape: bench.Inf, Cap: 50}
		p.Stop = bench.Stop{Requests: 300, Grace: time.Second}
		res := w.do()
		for _, r := range res.Records {
			if d := r.Sent.Or(0) - r.Slot.Or(0); d != 0 {
				w.t.Fatalf("request %d sent %v after its slot was free", r.ID, d)
			}
		}
	})
}
