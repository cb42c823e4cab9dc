package sweep

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Lengths of the requests of the tests.
const (
	testISL = 32
	testOSL = 8
)

// testCost is an engine whose capacity is known: a request costs it testISL * 20 us + (testOSL-1) * 400 us, beside the base of each step.
var testCost = sim.Cost{Base: 500 * time.Microsecond, PerPrefill: 20_000, PerDecode: 400_000}

// capacity is the highest rate that the engine of testCost serves in the end, with so many sequences in a step. In a step of a full
// batch n/testOSL requests are prefilled, which gives their first token, and the others decode.
func capacity(c sim.Cost, n int) float64 {
	begin := float64(n) / testOSL
	step := float64(c.Base) + begin*testISL*c.PerPrefill + (float64(n)-begin)*c.PerDecode
	return begin / (step / 1e9)
}

// long tells whether the simulations may take minutes.
func long() bool { return os.Getenv("PRONY_LONG_TESTS") != "" }

// world is a sweep against a simulated engine, whole in virtual time.
type world struct {
	t *testing.T
	Config
}

func virtual(t *testing.T, engine sim.EngineConfig, test func(w *world)) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sweep")
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, err := n.Listen("sim:80")
		if err != nil {
			t.Fatal(err)
		}
		engine.NoPrefixCache = true
		srv, err := sim.New(sim.Config{Mode: sim.ModeEngine, Engine: engine, MaxModelLen: 1024})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(ctx, ln) }()
		defer func() { cancel(); <-ended }()
		zero := 0.0
		w := &world{t: t, Config: Config{Dir: dir,
			Deps: run.Deps{Engines: builtin.Engines(), Datasets: builtin.Datasets(), Dial: n.Dial, Version: "test", Command: []string{"prony", "test"}},
			Plan: bench.SweepPlan{Axis: bench.ByConcurrency, Rounds: 1, Order: Order, Cooldown: time.Second, StopOn: StopRules, Share: 0.99, Reserve: 0.2},
			Spec: bench.Spec{Seed: 7, SeedGiven: true, MaxErrorRate: 1,
				Target:   bench.Target{URLs: []string{"http://sim:80"}, Engine: "auto", Endpoint: "chat", Stream: true, Usage: true},
				Workload: bench.Workload{Dataset: "random", ISL: fmt.Sprint(testISL), OSL: fmt.Sprint(testOSL)},
				Sampling: bench.Sampling{Temperature: &zero},
				Client:   bench.Client{Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Second, Connection: "reuse", HTTP: "1.1"},
				Keep:     bench.Keep{Events: true},
				Phases:   []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}, Stop: bench.Stop{Requests: 100, Grace: 30 * time.Second}}}}}}
		test(w)
	})
}

// rates makes the sweep one of rates.
func (w *world) rates(loads ...float64) {
	w.Plan.Axis, w.Plan.Loads = bench.ByRate, loads
	w.Spec.Phases[0].Load = bench.Load{Shape: bench.Poisson, Burstiness: 1}
}

// do carries the sweep out.
func (w *world) do() *bench.Curve {
	w.t.Helper()
	curve, err := Start(&w.Config, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := Run(context.Background(), &w.Config, curve); err != nil {
		w.t.Fatal(err)
	}
	return curve
}

// A closed loop saturates: throughput grows no more, the ladder ends, and a capacity below that is recommended.
func TestCurveSaturates(t *testing.T) {
	virtual(t, sim.EngineConfig{Cost: &testCost, MaxNumSeqs: 16}, func(w *world) {
		w.Plan.Loads = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}
		w.Plan.Rounds, w.Plan.Requests = 2, 300
		c := w.do()
		for _, l := range c.Levels {
			x, _ := l.Mean("request_throughput")
			w.t.Logf("%4v in flight: %6.1f req/s  %v", l.Load, x, l.Why)
		}
		w.t.Log(c.Stopped)
		top := capacity(testCost, 16)
		last := c.Levels[len(c.Levels)-1]
		if x, _ := last.Mean("request_throughput"); math.Abs(x/top-1) > 0.05 {
			w.t.Errorf("%v req/s at the top, the engine can %v", x, top)
		}
		if last.Load != 64 || c.Breaking == nil || c.Breaking.Load != 32 || c.Capacity == nil || c.Capacity.From != 16 || c.Capacity.Load != 12 {
			w.t.Errorf("last level %v, breaking %+v, capacity %+v", last.Load, c.Breaking, c.Capacity)
		}
		if c.Knee.USL == nil || c.State != bench.Complete || len(c.Frontier) < 4 {
			w.t.Errorf("knee %+v, state %s, frontier %v", c.Knee, c.State, c.Frontier)
		}
	})
}

// Each run has prompts of its own, and the rounds go up and down.
func TestOrderAndSeeds(t *testing.T) {
	virtual(t, sim.EngineConfig{Cost: &testCost}, func(w *world) {
		w.Plan.Loads, w.Plan.Rounds, w.Plan.Requests = []float64{1, 2, 4}, 3, 10
		var order []string
		w.Each = func(_ *bench.Curve, l *bench.CurveLevel, again bool) {
			order = append(order, fmt.Sprintf("%v/%d", l.Load, l.Runs[len(l.Runs)-1].Round))
		}
		c := w.do()
		if want := "[1/1 2/1 4/1 4/2 2/2 1/2 1/3 2/3 4/3]"; fmt.Sprint(order) != want {
			w.t.Errorf("order %v, want %s", order, want)
		}
		seeds := map[uint64]bool{}
		for _, l := range c.Levels {
			for _, r := range l.Runs {
				seeds[r.Seed] = true
				if _, err := os.Stat(filepath.Join(w.Dir, r.Dir, "summary.json")); err != nil {
					w.t.Error(err)
				}
			}
		}
		if len(seeds) != 9 {
			w.t.Errorf("%d seeds of 9", len(seeds))
		}
	})
}

// Beyond the capacity requests pile up, and below it they do not.
func TestSaturationOfRates(t *testing.T) {
	top := capacity(testCost, 16)
	virtual(t, sim.EngineConfig{Cost: &testCost, MaxNumSeqs: 16}, func(w *world) {
		w.rates(0.5*top, 0.7*top, 0.85*top, 1.15*top, 1.4*top)
		w.Plan.Rounds, w.Plan.Requests = 5, 600
		c := w.do()
		for _, l := range c.Levels {
			fired := 0
			for _, r := range l.Runs {
				fired += count(len(r.Saturated) > 0)
			}
			w.t.Logf("%.2f of the capacity: saturated in %d of %d, %v", l.Load/top, fired, len(l.Runs), l.Why)
			if want := l.Load > top; (len(l.Breaks) > 0) != want || !want && fired > 1 {
				w.t.Errorf("%.2f of the capacity: breaks %v, %d of %d fired", l.Load/top, l.Breaks, fired, len(l.Runs))
			}
		}
		if c.Breaking == nil || math.Abs(c.Breaking.Load/top-1.15) > 1e-6 {
			w.t.Errorf("breaking %+v", c.Breaking)
		}
	})
}

// The search finds the capacity within 5 % in at least 9 of 10 seeds, with fewer requests than a ladder of its resolution.
func TestSearch(t *testing.T) {
	top := capacity(testCost, 16)
	near, seeds := 0, uint64(2)
	if long() {
		seeds = 10
	}
	for seed := range seeds {
		virtual(t, sim.EngineConfig{Cost: &testCost, MaxNumSeqs: 16}, func(w *world) {
			w.rates(64)
			w.Spec.Seed = seed
			w.Plan.Search, w.Plan.Within, w.Plan.Rounds, w.Plan.Requests = true, 0.03, 3, 2000
			w.Plan.SLO = []bench.Condition{{Metric: "ttft", Stat: "p99", Max: 400}}
			w.Spec.Percentiles = Percentiles(nil, w.Plan.SLO)
			c := w.do()
			r := c.Search
			load := r.Load.Or(0)
			w.t.Logf("seed %d: %v of %.1f (%.3f), %v .. %v, %d runs, %d requests (ladder %d): %s", seed, load, top, load/top, r.Low.Or(-1), r.High.Or(-1), r.Runs, r.Requests, r.Ladder, r.Ended)
			near += count(math.Abs(load/top-1) <= 0.05)
			if r.Requests >= r.Ladder || r.Low.Or(0) > load || r.High.Or(1e9) <= load {
				w.t.Errorf("%+v", r)
			}
		})
	}
	if near < int(seeds)-1 {
		t.Errorf("%d of %d answers are within 5 %% of %.1f req/s", near, seeds, top)
	}
}
