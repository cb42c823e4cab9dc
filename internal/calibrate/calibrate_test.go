package calibrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/run"
)

const us = time.Microsecond

// result is a run of two requests of three events each, whose first events came 50 ms and the others 10 ms apart, and so much later.
func result(late ...time.Duration) *run.Result {
	m := &bench.Manifest{State: bench.Complete, Planned: 2}
	m.Spec.Phases = []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 1}, Stop: bench.Stop{Requests: 2}}}
	res := &run.Result{Manifest: m}
	for i := range 2 {
		sent := time.Duration(i) * time.Second
		r := bench.Record{ID: i, Phase: bench.Measure, Outcome: bench.OK, Sent: opt.Some(sent), Slot: opt.Some(sent), OutEvents: 3, OSL: opt.Some(3), Stamp: "wire"}
		for k := range 3 {
			r.Events = append(r.Events, 50*time.Millisecond+time.Duration(k)*10*time.Millisecond+late[k])
		}
		r.First, r.Second, r.Last = opt.Some(sent+r.Events[0]), opt.Some(sent+r.Events[1]), opt.Some(sent+r.Events[2])
		r.End = r.Last
		res.Records = append(res.Records, r)
	}
	res.Summary = metrics.Summarize(m, res.Records)
	return res
}

// truthText is what the server tells of these requests. A first write carries no token.
const truthText = `{"server":{"now_ns":1,"pace":{"writes":100,"late_writes":6}}}
{"request_id":"calibrate-0","arrival_wall_ns":1000,"arrival_stamp":"socket","write_wall_ns":[40001000,50001000,60001000,70001000],"write_tokens":[0,1,1,1]}
{"request_id":"calibrate-1","arrival_wall_ns":2000,"arrival_stamp":"user","write_wall_ns":[50002000,60002000,70002000],"write_tokens":[1,1,1]}
{"request_id":"","arrival_wall_ns":2000,"write_wall_ns":[],"write_tokens":[]}
`

func TestJudge(t *testing.T) {
	truth, err := readTruth(strings.NewReader(truthText))
	if err != nil || len(truth.of) != 2 || truth.exact || truth.late != 0.06 {
		t.Fatalf("%+v, %v", truth, err)
	}
	l := judge(Level{Streams: 1}, result(100*us, 104*us, 98*us), truth)
	want := bench.CalibrationLevel{Streams: 1, Requests: 2, Joined: 2, Events: 6, RequestRate: l.RequestRate, EventRate: l.EventRate,
		TTFT: bench.ErrorOf{Mean: 100e3, P50: 100e3, P99: 100e3}, ITL: bench.ErrorOf{Mean: -1e3, P50: 5e3, P99: 6e3}, ITLRelative: -1e-4,
		LateWrites: 0.06, ServerLimited: true, Passed: true}
	if l != want {
		t.Errorf("%+v\nwant %+v", l, want)
	}
	if l.RequestRate < 1.8 || l.RequestRate > 1.9 || l.EventRate != 3*l.RequestRate {
		t.Errorf("%v requests/s, %v events/s", l.RequestRate, l.EventRate)
	}
	for _, c := range []struct {
		why  string
		late [3]time.Duration
	}{{"TTFT is off by 1.1 ms", [3]time.Duration{1100 * us, 1100 * us, 1100 * us}}, {"ITL is off by 0.2 %", [3]time.Duration{0, 20 * us, 40 * us}}} {
		if l := judge(Level{Streams: 1}, result(c.late[:]...), truth); l.Passed || !strings.HasPrefix(l.Why, c.why) {
			t.Errorf("%q, want %q", l.Why, c.why)
		}
	}
	delete(truth.of, "calibrate-1")
	if l := judge(Level{Streams: 1}, result(0, 0, 0), truth); l.Passed || l.Why != "1 of 2 requests have no truth" {
		t.Errorf("%q", l.Why)
	}
	failed := result(0, 0, 0)
	failed.Records[1].Outcome = bench.Reset
	failed.Summary = metrics.Summarize(failed.Manifest, failed.Records)
	if l := judge(Level{Streams: 1}, failed, truth); l.Passed || l.Why != "1 of 2 requests are not ok" {
		t.Errorf("%q", l.Why)
	}
}

func TestCeiling(t *testing.T) {
	level := func(streams int, rate, events, requests float64, passed, server bool) bench.CalibrationLevel {
		return bench.CalibrationLevel{Streams: streams, Rate: rate, EventRate: events, RequestRate: requests, Passed: passed, ServerLimited: server}
	}
	for name, c := range map[string]struct {
		levels []bench.CalibrationLevel
		want   bench.Ceiling
	}{
		"all passed":              {[]bench.CalibrationLevel{level(1, 0, 100, 1, true, false), level(0, 50, 60, 49, true, false)}, bench.Ceiling{RequestRate: 49, RequestsBound: true, EventRate: 100, EventsBound: true}},
		"the client failed":       {[]bench.CalibrationLevel{level(1, 0, 100, 1, true, false), level(9, 0, 500, 5, false, false)}, bench.Ceiling{RequestRate: 1, RequestsBound: true, EventRate: 100}},
		"the server was at fault": {[]bench.CalibrationLevel{level(1, 0, 100, 1, true, false), level(9, 0, 500, 5, false, true)}, bench.Ceiling{RequestRate: 1, RequestsBound: true, EventRate: 100, EventsBound: true}},
		"a rate failed":           {[]bench.CalibrationLevel{level(0, 10, 20, 10, true, false), level(0, 99, 180, 90, false, false)}, bench.Ceiling{RequestRate: 10, EventRate: 20, EventsBound: true}},
	} {
		if d := cmp.Diff(c.want, ceilingOf(c.levels)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b.json")
	here, there := bench.CalibratedMachine{Host: "a", Cores: 2}, bench.CalibratedMachine{Host: "b", Cores: 2}
	add := func(m bench.CalibratedMachine, stamp string, rate float64) {
		t.Helper()
		if err := Store(path, &bench.Calibration{Schema: bench.CalibrationSchema, Machine: m, Stamp: stamp, Ceiling: bench.Ceiling{EventRate: rate}}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := Load(path); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	add(here, "wire", 1)
	add(there, "wire", 2)
	add(here, "socket", 3)
	add(here, "wire", 4)
	all, err := Load(path)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for stamp, want := range map[string]float64{"wire": 4, "socket": 3} {
		if c := Of(all, here, stamp); c == nil || c.Ceiling.EventRate != want {
			t.Errorf("%s: %+v", stamp, c)
		}
	}
	if c := Of(all, here, "user"); c != nil {
		t.Errorf("%+v", c)
	}
	if c := Of(all, bench.CalibratedMachine{Host: "a", Cores: 1}, "wire"); c == nil {
		t.Error("bound to one core it is another machine")
	}
	if c := Of(all, bench.CalibratedMachine{Host: "a", Kernel: "7"}, "wire"); c != nil {
		t.Errorf("another kernel's: %+v", c)
	}
	os.WriteFile(path, []byte("{"), 0o600)
	if _, err := Load(path); err == nil {
		t.Error("a torn file is read")
	}
	add(here, "wire", 5)
	if all, err := Load(path); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestPath(t *testing.T) {
	for dir, want := range map[string]string{"/state": "/state/prony/calibration.json", "relative": ".local/state/prony/calibration.json", "": ".local/state/prony/calibration.json"} {
		if got, err := Path(func(string) string { return dir }); err != nil || !strings.HasSuffix(filepath.ToSlash(got), want) || !filepath.IsAbs(got) {
			t.Errorf("%q: %q, %v", dir, got, err)
		}
	}
}

func TestWorse(t *testing.T) {
	for _, c := range [][3]string{{"", "wire", "wire"}, {"wire", "socket", "socket"}, {"user", "wire", "user"}} {
		if got := worse(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q: %q", c[0], c[1], got)
		}
	}
}
