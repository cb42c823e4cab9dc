package run

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// world is a run against a simulated engine, whole in virtual time.
type world struct {
	t    *testing.T
	deps Deps
	srv  *sim.Server
	spec bench.Spec
	ctl  Control
	dir  string
}

func testDeps(n *memnet.Network) Deps {
	return Deps{Engines: builtin.Engines(), Datasets: builtin.Datasets(),
		Dial: n.Dial, Version: "test", Command: []string{"prony", "test"}}
}

// testSpec is a run of so many requests with 8 tokens in and out.
func testSpec(load bench.Load, requests int) bench.Spec {
	zero := 0.0
	return bench.Spec{Seed: 7, SeedGiven: true, MaxErrorRate: 1,
		Target:   bench.Target{URLs: []string{"http://sim:80"}, Engine: "auto", Endpoint: "chat", Stream: true, Usage: true},
		Workload: bench.Workload{Dataset: "random", ISL: "32", OSL: "8"},
		Sampling: bench.Sampling{Temperature: &zero},
		Client:   bench.Client{Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Second, Connection: "reuse", HTTP: "1.1"},
		Keep:     bench.Keep{Events: true},
		Phases:   []bench.Phase{{Name: bench.Measure, Load: load, Stop: bench.Stop{Requests: requests, Grace: 30 * time.Second}}}}
}

// virtual runs test in a world with a simulated engine at sim:80.
func virtual(t *testing.T, cfg sim.Config, test func(w *world)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, err := n.Listen("sim:80")
		if err != nil {
			t.Fatal(err)
		}
		srv, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(ctx, ln) }()
		defer func() { cancel(); <-ended }()
		test(&world{t: t, deps: testDeps(&n), srv: srv, dir: dir, spec: testSpec(bench.Load{Shape: bench.Closed, Concurrency: 1}, 10)})
	})
}

// do prepares and executes.
func (w *world) do() *Result {
	w.t.Helper()
	plan, err := Prepare(context.Background(), w.spec, w.deps, false)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := Execute(context.Background(), plan, w.dir, w.ctl)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

func exact(ttft, itl time.Duration) sim.Config {
	return sim.Config{Mode: sim.ModeExact, TTFT: sim.Fixed(ttft), ITL: sim.Fixed(itl)}
}

// 1,000 requests of an open loop: every due time is met, every TTFT and gap is as scripted, to the nanosecond.
func TestThousandExact(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Phases[0].Load = bench.Load{Shape: bench.Poisson, Rate: 150, Burstiness: 1}
		w.spec.Phases[0].Stop.Requests = 1000
		w.spec.Workload.OSL = "50"
		begun := time.Now()
		res := w.do()
		w.t.Logf("%v of virtual time", time.Since(begun))
		if res.Summary.Verdict != bench.Valid || len(res.Records) != 1000 {
			w.t.Errorf("%s, %d records: %+v", res.Summary.Verdict, len(res.Records), res.Summary.Caveats)
		}
		for _, r := range res.Records {
			sent, _ := r.Sent.Get()
			due, _ := r.Due.Get()
			if r.Outcome != bench.OK || sent != due || r.First.Or(0)-sent != 100*ms || len(r.Events) != 50 || r.OSL.Or(0) != 50 || r.ISL.Or(0) != 32 {
				w.t.Fatalf("%+v", r)
			}
			for i, at := range r.Events {
				if at != 100*ms+time.Duration(i)*20*ms {
					w.t.Fatalf("request %d: event %d at %v", r.ID, i, at)
				}
			}
		}
		m := res.Summary.Metrics
		for key, want := range map[string]float64{"ttft_ms": 100, "itl_ms": 20, "tpot_ms": 20, "e2el_ms": 1080, "lag_ms": 0, "queue_ms": 0} {
			if d := m.Dist(key); d == nil || d.Min != want || d.Max != want || d.Mean != want {
				w.t.Errorf("%s: %+v, want %v", key, d, want)
			}
		}
		if a := res.Summary.Load.Arrivals; a == nil || !a.Passed || res.Summary.Load.Attained.Or(0) != 1 {
			w.t.Errorf("arrivals %+v, attained %v", a, res.Summary.Load.Attained)
		}
	})
}
