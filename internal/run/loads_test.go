package run

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// sends are the records by the time of their sending, counted from the begin of their phase.
func sends(res *Result) ([]bench.Record, []time.Duration) {
	out := slices.Clone(res.Records)
	slices.SortFunc(out, func(a, b bench.Record) int {
		return cmp.Or(cmp.Compare(a.Sent.Or(0), b.Sent.Or(0)), cmp.Compare(a.ID, b.ID))
	})
	start := map[string]time.Duration{}
	for _, r := range res.Manifest.Ran {
		start[r.Name] = r.Start
	}
	var at []time.Duration
	for _, r := range out {
		at = append(at, r.Sent.Or(-1)-start[r.Phase])
	}
	return out, at
}

func (w *world) load(l bench.Load, s bench.Stop) {
	s.Grace = 30 * time.Second
	w.spec.Phases[0].Load, w.spec.Phases[0].Stop = l, s
}

// A rate from 0 to 50 requests/s in 10 s: the n-th request is sent at sqrt(2 n 10 / 50) s, to the nanosecond.
func TestRampOfRate(t *testing.T) {
	virtual(t, exact(100*ms, 10*ms), func(w *world) {
		w.load(bench.Load{Shape: bench.Constant, Rate: 50, Profile: "linear:0,50,10s"}, bench.Stop{Duration: 10 * time.Second})
		res := w.do()
		recs, at := sends(res)
		if len(at) != 250 || res.Manifest.Planned != 250 {
			t.Fatalf("%d requests, %d planned", len(at), res.Manifest.Planned)
		}
		for n, r := range recs {
			if r.Sent != r.Due || r.Outcome != bench.OK {
				t.Fatalf("%d: %+v", n, r)
			}
		}
		if at[0] != 0 || at[1] != 632455532 || at[40] != 4*time.Second || at[160] != 8*time.Second {
			t.Error(at[0], at[1], at[40], at[160])
		}
		l := res.Summary.Load
		if l.Arrivals == nil || !l.Arrivals.Passed || l.Arrivals.Sent.OnTime.Or(0) != 1 || l.Attained.Or(0) != 1 || l.Asked.Or(0) < 24.9 || l.Asked.Or(0) > 25 {
			t.Errorf("%+v %+v", l, l.Arrivals)
		}
	})
}

// Poisson arrivals of a rate that goes up and down pass the test on the clock of expected arrivals.
func TestArrivalsOfSine(t *testing.T) {
	virtual(t, exact(10*ms, ms), func(w *world) {
		w.load(bench.Load{Shape: bench.Poisson, Burstiness: 1, Rate: 40, Profile: "sine:20,20,20s"}, bench.Stop{Requests: 1000})
		l := w.do().Summary.Load
		if l.Arrivals == nil || !l.Arrivals.Passed || !l.Arrivals.Due.Passed || l.Arrivals.N != 999 {
			t.Errorf("%+v", l.Arrivals)
		}
	})
}

// A closed loop whose places grow from 1 to 4, one a second, with answers of 170 ms: each place sends when it opens, and then one
// request after the other.
func TestRampOfConcurrency(t *testing.T) {
	virtual(t, exact(100*ms, 10*ms), func(w *world) {
		w.load(bench.Load{Shape: bench.Closed, Concurrency: 4, Profile: "steps:1,2,4/1s"}, bench.Stop{Duration: 3 * time.Second})
		res := w.do()
		_, at := sends(res)
		var want []time.Duration
		for _, from := range []time.Duration{0, time.Second, 2 * time.Second, 2 * time.Second} {
			for d := from; d < 3*time.Second; d += 170 * ms {
				want = append(want, d)
			}
		}
		slices.Sort(want)
		if !slices.Equal(at, want) {
			t.Errorf("sent at\n%v, want\n%v", at, want)
		}
		if p := res.Summary.Load.InFlight.Peak; p != 4 {
			t.Errorf("%d in flight", p)
		}
	})
}

// Places are given up when the level falls: what runs may end, and nothing follows it.
func TestConcurrencyFalls(t *testing.T) {
	virtual(t, exact(100*ms, 10*ms), func(w *world) {
		w.load(bench.Load{Shape: bench.Closed, Concurrency: 3, Profile: "bursts:3,1s,1,1s"}, bench.Stop{Duration: 4 * time.Second})
		_, at := sends(w.do())
		per := map[int]int{}
		for _, d := range at {
			per[int(d/time.Second)]++
		}
		// 6 begins a second and place, less the time that a place's last answer reaches into the next second
		if per[0] != 18 || per[1] != 6 || per[2] < 16 || per[2] > 18 || per[3] < 5 || per[3] > 6 {
			t.Errorf("%v begins a second", per)
		}
	})
}

// Two places that think 330 ms after each answer of 170 ms send every 500 ms.
func TestThinkTime(t *testing.T) {
	virtual(t, exact(100*ms, 10*ms), func(w *world) {
		w.load(bench.Load{Shape: bench.Closed, Concurrency: 2, Think: "330ms"}, bench.Stop{Requests: 20})
		res := w.do()
		_, at := sends(res)
		for i, d := range at {
			if want := time.Duration(i/2) * 500 * ms; d != want {
				t.Fatalf("request %d at %v, want %v", i, d, want)
			}
		}
		if v := res.Summary.Verdict; v != bench.Valid || len(at) != 20 {
			t.Errorf("%s, %d requests: %+v", v, len(at), res.Summary.Caveats)
		}
		for _, r := range res.Records {
			if r.Slot != r.Sent || r.Due.Defined() {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// Users have conversations and turns of their own. With a pace of 1 s and answers of 170 ms each sends every second; one that thinks for
// longer is as slow as that.
func TestUsers(t *testing.T) {
	for think, every := range map[string]time.Duration{"": time.Second, "2s": 2170 * ms} {
		virtual(t, exact(100*ms, 10*ms), func(w *world) {
			w.load(bench.Load{Shape: bench.Users, Concurrency: 3, Pace: "1s", Think: think}, bench.Stop{Requests: 12})
			recs, at := sends(w.do())
			users := map[int]int{}
			for i, r := range recs {
				if at[i] != time.Duration(i/3)*every || r.Turn != i/3 || r.Turn != users[r.Conversation] {
					t.Errorf("request %d: user %d, turn %d at %v", i, r.Conversation, r.Turn, at[i])
				}
				users[r.Conversation]++
			}
			if len(recs) != 12 || len(users) != 3 {
				t.Errorf("%d requests of %d users", len(recs), len(users))
			}
		})
	}
}

// One place in prefill: the next request goes out at the first token of the one before, every 100 ms, and several decode at once. With a
// cap of 2 in flight it waits for an end as well.
func TestPrefillConcurrency(t *testing.T) {
	for limit, want := range map[int][]time.Duration{
		0: {0, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 500 * ms}, // answers take 170 ms
		1: {0, 170 * ms, 340 * ms, 510 * ms, 680 * ms, 850 * ms},
	} {
		virtual(t, exact(100*ms, 10*ms), func(w *world) {
			w.load(bench.Load{Shape: bench.Prefill, Concurrency: 1, Cap: limit}, bench.Stop{Requests: 6})
			res := w.do()
			if _, at := sends(res); !slices.Equal(at, want) || res.Summary.Requests.OK != 6 {
				t.Errorf("cap %d: sent at %v, want %v", limit, at, want)
			}
		})
	}
}

// Of 40 requests those that are drawn are cancelled 120 ms after they were sent: with three tokens, and no failure.
func TestCancellation(t *testing.T) {
	var which []int
	for range 2 {
		virtual(t, exact(100*ms, 10*ms), func(w *world) {
			w.load(bench.Load{Shape: bench.Constant, Rate: 10, CancelRate: 0.25, CancelAfter: 125 * ms}, bench.Stop{Requests: 40})
			res := w.do()
			var ids []int
			for _, r := range res.Records {
				switch {
				case r.Outcome == bench.Cancelled:
					ids = append(ids, r.ID)
					if r.End.Or(0)-r.Sent.Or(0) != 125*ms || r.OutEvents != 3 {
						t.Fatalf("%+v", r)
					}
				case r.Outcome != bench.OK:
					t.Fatalf("%+v", r)
				}
			}
			slices.Sort(ids)
			if n := res.Summary.Requests.Cancelled; n != len(ids) || n < 3 || n > 20 || res.Summary.Requests.Failed != 0 || which != nil && !slices.Equal(which, ids) {
				t.Errorf("%d cancelled: %v, before %v", n, ids, which)
			}
			which = ids
		})
	}
}

// A trace is sent when it says, twice as fast, from its second second on.
func TestTraceOfFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times")
	if err := os.WriteFile(path, []byte("10.0\n10.5\n11.5\n12\n14\n15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	virtual(t, exact(100*ms, 10*ms), func(w *world) {
		w.load(bench.Load{Shape: bench.Trace, Times: path, Speedup: 2, From: time.Second, To: 5 * time.Second, Offset: time.Second}, bench.Stop{})
		res := w.do()
		_, at := sends(res)
		if want := []time.Duration{1250 * ms, 1500 * ms, 2500 * ms}; !slices.Equal(at, want) || res.Manifest.Planned != 3 || res.Summary.Verdict == bench.Void {
			t.Errorf("%v, want %v; %d planned, %+v", at, want, res.Manifest.Planned, res.Summary.Caveats)
		}
	})
}

// A warm-up and three measured phases of different loads: each has its own prompts and its own result.
func TestPhases(t *testing.T) {
	virtual(t, exact(100*ms, 10*ms), func(w *world) {
		stop := bench.Stop{Requests: 8, Grace: time.Second}
		w.spec.Phases = []bench.Phase{
			{Name: bench.Warmup, Load: bench.Load{Shape: bench.Closed, Concurrency: 2}, Stop: stop},
			{Name: "low", Load: bench.Load{Shape: bench.Closed, Concurrency: 1}, Stop: stop},
			{Name: "high", Load: bench.Load{Shape: bench.Closed, Concurrency: 8}, Stop: stop},
			{Name: "open", Load: bench.Load{Shape: bench.Constant, Rate: 20}, Stop: stop, Workload: &bench.Workload{Dataset: "random", ISL: "16", OSL: "4"}}}
		res := w.do()
		if s := res.Summary; len(s.Phases) != 3 || s.Requests.OK != 24 || s.Requests.Warmup != 8 || s.Requests.Planned != 24 || s.Verdict == bench.Void {
			t.Fatalf("%+v %+v", s.Requests, s.Caveats)
		}
		for i, want := range []int{1, 8, 3} {
			p := res.Summary.Phases[i]
			if p.Requests.OK != 8 || p.Requests.Planned != 8 || p.Load.InFlight.Peak != want {
				t.Errorf("%s: %+v, %d in flight, want %d", p.Name, p.Requests, p.Load.InFlight.Peak, want)
			}
		}
		if d := res.Summary.Phases[2].Metrics.Dist("osl"); d == nil || d.Max != 4 {
			t.Errorf("the last phase has %+v output tokens", d)
		}
	})
}

func TestLoadsRefused(t *testing.T) {
	stop := bench.Stop{Requests: 1}
	for _, phases := range [][]bench.Phase{
		{{Name: bench.Measure, Load: bench.Load{Shape: bench.Trace}, Stop: stop}},
		{{Name: bench.Measure, Load: bench.Load{Shape: bench.Trace, Times: "/nowhere"}, Stop: stop}},
		{{Name: bench.Measure, Load: bench.Load{Shape: bench.Users, Concurrency: 1, Think: "x"}, Stop: stop}},
		{{Name: bench.Measure, Load: bench.Load{Shape: bench.Poisson, Profile: "linear:1"}, Stop: stop}},
		{{Name: "a", Load: bench.Load{Shape: bench.Poisson, Rate: 1, Cap: 1}, Stop: stop}, {Name: "b", Load: bench.Load{Shape: bench.Poisson, Rate: 1}, Stop: stop}},
	} {
		virtual(t, exact(ms, ms), func(w *world) {
			w.spec.Phases = phases
			if _, err := Prepare(t.Context(), w.spec, w.deps, true); fault.CodeOf(err) != fault.Usage {
				t.Errorf("%+v: %v", phases[0].Load, err)
			}
		})
	}
}

// The spec of a manifest, as it is stored, gives the same bytes at the same due times.
func TestManifestRepeats(t *testing.T) {
	var stored []byte
	var first *Preview
	for _, l := range []bench.Load{{Shape: bench.Weibull, Rate: 20, Burstiness: 0.7, Profile: "linear:1,20,5s"}, {Shape: bench.Users, Concurrency: 3, Think: "exp:1s"}} {
		virtual(t, exact(100*ms, 10*ms), func(w *world) {
			w.load(l, bench.Stop{Requests: 30})
			res := w.do()
			var err error
			if stored, err = json.Marshal(res.Manifest); err != nil {
				t.Fatal(err)
			}
			if first, err = w.plan().Preview(30); err != nil {
				t.Fatal(err)
			}
		})
		virtual(t, exact(100*ms, 10*ms), func(w *world) {
			var m bench.Manifest
			if err := json.Unmarshal(stored, &m); err != nil {
				t.Fatal(err)
			}
			w.spec = m.Spec
			again, err := w.plan().Preview(30)
			if err != nil || !reflect.DeepEqual(first.First, again.First) || len(again.First) != 30 {
				t.Errorf("%v: %d requests, which are others", err, len(again.First))
			}
		})
	}
}

// plan prepares.
func (w *world) plan() *Plan {
	w.t.Helper()
	p, err := Prepare(w.t.Context(), w.spec, w.deps, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}
