package calibrate

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/run"
)

const us = time.Microsecond

// result is a run of two requests of three events each, whose first events came 50 ms and the others 10 ms apart, and so much later.
func result(late ...time.Duration) *run.Result {
	m := &bench.Manifest{State: bench.Complete, Planned: 2, Epoch: time.Unix(0, 0)}
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
{"request_id":"calibrate-1","arrival_wall_ns":1000002000,"arrival_stamp":"user","write_wall_ns":[1050002000,1060002000,1070002000],"write_tokens":[1,1,1]}
{"request_id":"","arrival_wall_ns":2000,"write_wall_ns":[],"write_tokens":[]}
`

func truthOf(t *testing.T) *truth {
	t.Helper()
	truth, err := readTruth(strings.NewReader(truthText))
	if err != nil || len(truth.of) != 2 || truth.late != 0.06 {
		t.Fatalf("%+v, %v", truth, err)
	}
	return truth
}

func TestJudge(t *testing.T) {
	l := judge(Level{Streams: 1}, result(100*us, 104*us, 98*us), truthOf(t))
	// The requests were sent at 0 and 1 s after the epoch, and arrived 1 and 2 us later.
	want := bench.CalibrationLevel{Streams: 1, Requests: 2, OK: 2, Joined: 2, UserArrivals: 1, Events: 6, RequestRate: l.RequestRate, EventRate: l.EventRate,
		TTFT: bench.ErrorOf{Mean: 100e3, P50: 100e3, P99: 100e3}, Event: bench.ErrorOf{Mean: 99167, P50: 98500, P99: 102950},
		ITL: bench.ErrorOf{Mean: -1e3, P50: 5e3, P99: 6e3}, ITLRelative: -1e-4, LateWrites: 0.06, ServerLimited: true, Passed: true}
	if l != want {
		t.Errorf("%+v\nwant %+v", l, want)
	}
	if l.RequestRate < 1.8 || l.RequestRate > 1.9 || l.EventRate != 3*l.RequestRate {
		t.Errorf("%v requests/s, %v events/s", l.RequestRate, l.EventRate)
	}
	for _, c := range []struct {
		why  string
		late [3]time.Duration
	}{
		{"", [3]time.Duration{999 * us, 999 * us, 999 * us}},
		{"TTFT is off by 1.1 ms", [3]time.Duration{1100 * us, 1100 * us, 1100 * us}},
		{"TTFT is off by 1.1 ms", [3]time.Duration{-1100 * us, -1100 * us, -1100 * us}},
		{"ITL is off by 0.2 %", [3]time.Duration{0, 20 * us, 40 * us}},
		{"ITL is off by -0.2 %", [3]time.Duration{0, -20 * us, -40 * us}},
	} {
		if l := judge(Level{Streams: 1}, result(c.late[:]...), truthOf(t)); l.Passed != (c.why == "") || !strings.HasPrefix(l.Why, c.why) {
			t.Errorf("%v: %q, want %q", c.late, l.Why, c.why)
		}
	}
	if l := judge(Level{Rate: 10}, result(0, 20*us, 40*us), truthOf(t)); !l.Passed {
		t.Errorf("the ITL of short answers is judged: %q", l.Why)
	}
}

// What else keeps a level from passing.
func TestNotPassed(t *testing.T) {
	truth := truthOf(t)
	delete(truth.of, "calibrate-1")
	if l := judge(Level{Streams: 1}, result(0, 0, 0), truth); l.Passed || l.Why != "1 of 2 requests have no truth" || l.OK != 2 || l.Joined != 1 {
		t.Errorf("%+v", l)
	}
	fewer := truthOf(t)
	fewer.of["calibrate-0"].Tokens[3] = 0
	if l := judge(Level{Streams: 1}, result(0, 0, 0), fewer); l.Passed || l.Joined != 1 {
		t.Errorf("an answer of another number of events is joined: %+v", l)
	}
	failed := result(0, 0, 0)
	failed.Records[1].Outcome = bench.Reset
	failed.Summary = metrics.Summarize(failed.Manifest, failed.Records)
	if l := judge(Level{Streams: 1}, failed, truthOf(t)); l.Passed || l.Why != "1 of 2 requests are not ok" {
		t.Errorf("%q", l.Why)
	}
	for lag, why := range map[time.Duration]string{time.Millisecond: "", 2 * time.Millisecond: "requests were sent 2 ms late at p99"} {
		late := result(0, 0, 0)
		late.Manifest.Spec.Phases[0].Load = bench.Load{Shape: bench.Poisson, Rate: 1, Burstiness: 1}
		for i := range late.Records {
			sent, _ := late.Records[i].Sent.Get()
			late.Records[i].Due, late.Records[i].Slot = opt.Some(sent-lag), opt.Of[time.Duration]{}
		}
		late.Summary = metrics.Summarize(late.Manifest, late.Records)
		if l := judge(Level{Rate: 1}, late, truthOf(t)); l.Why != why || l.Lag99 != int64(lag) {
			t.Errorf("%v: %q, %d", lag, l.Why, l.Lag99)
		}
	}
	cut := result(0, 0, 0)
	cut.Manifest.State = bench.Stopped
	if l := judge(Level{Streams: 1}, cut, truthOf(t)); l.Passed || l.Why != "the run was stopped" {
		t.Errorf("%q", l.Why)
	}
	void := result(0, 0, 0)
	void.Summary.Caveats = []bench.Caveat{{Severity: bench.SeverityWarn, Text: "b"}, {Severity: bench.SeverityVoid, Text: "a"}}
	if l := judge(Level{Streams: 1}, void, truthOf(t)); l.Why != "a" {
		t.Errorf("%q", l.Why)
	}
}

func TestCeiling(t *testing.T) {
	level := func(streams int, rate, events, requests float64, passed, server bool) bench.CalibrationLevel {
		return bench.CalibrationLevel{Streams: streams, Rate: rate, EventRate: events, RequestRate: requests, Passed: passed, ServerLimited: server}
	}
	one := level(1, 0, 100, 1, true, false)
	for name, c := range map[string]struct {
		levels []bench.CalibrationLevel
		want   bench.Ceiling
	}{
		"all passed":              {[]bench.CalibrationLevel{one, level(0, 50, 60, 49, true, false)}, bench.Ceiling{RequestRate: 49, RequestsBound: true, EventRate: 100, EventsBound: true}},
		"the client failed":       {[]bench.CalibrationLevel{one, level(9, 0, 500, 5, false, false)}, bench.Ceiling{RequestRate: 1, RequestsBound: true, EventRate: 100}},
		"given downwards":         {[]bench.CalibrationLevel{level(9, 0, 500, 5, false, false), one}, bench.Ceiling{RequestRate: 1, RequestsBound: true, EventRate: 100}},
		"the server was at fault": {[]bench.CalibrationLevel{one, level(9, 0, 500, 5, false, true)}, bench.Ceiling{RequestRate: 1, RequestsBound: true, EventRate: 100, EventsBound: true}},
		"the server, then the client": {[]bench.CalibrationLevel{one, level(9, 0, 500, 5, false, true), level(10, 0, 600, 5, false, false)},
			bench.Ceiling{RequestRate: 1, RequestsBound: true, EventRate: 100, EventsBound: true}},
		"a disturbance below": {[]bench.CalibrationLevel{one, level(9, 0, 500, 5, false, false), level(10, 0, 900, 9, true, true)},
			bench.Ceiling{RequestRate: 9, RequestsBound: true, EventRate: 900, EventsBound: true}},
		"a rate failed": {[]bench.CalibrationLevel{level(0, 10, 20, 10, true, false), level(0, 99, 180, 90, false, false)}, bench.Ceiling{RequestRate: 10, EventRate: 20, EventsBound: true}},
		"streams passed at more requests": {[]bench.CalibrationLevel{level(99, 0, 9900, 99, true, false), level(0, 10, 20, 10, true, false), level(0, 99, 180, 90, false, false)},
			bench.Ceiling{RequestRate: 99, RequestsBound: true, EventRate: 9900, EventsBound: true}},
		"nothing passed": {[]bench.CalibrationLevel{level(1, 0, 90, 1, false, false), level(0, 10, 20, 10, false, false)}, bench.Ceiling{RequestsBound: true, EventsBound: true}},
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
		if err := Store(path, &bench.Calibration{Schema: bench.CalibrationSchema, Machine: m, Engine: "epoll", Stamp: stamp, Ceiling: bench.Ceiling{EventRate: rate}}); err != nil {
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
		if c, why := Of(all, here, bench.ClientReport{Engine: "epoll", Stamp: stamp}); c == nil || why != "" || c.Ceiling.EventRate != want {
			t.Errorf("%s: %+v, %q", stamp, c, why)
		}
	}
	os.WriteFile(path, []byte("{"), 0o600)
	if _, err := Load(path); err == nil {
		t.Error("a torn file is read")
	}
	os.WriteFile(path, []byte(`[{"schema":"prony.calibration/9"}]`), 0o600)
	if _, err := Load(path); err == nil {
		t.Error("one of another version is read")
	}
	add(here, "wire", 5)
	if all, err := Load(path); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	if err := Store(filepath.Join(path, "c.json"), &bench.Calibration{}); err == nil {
		t.Error("stored below a file")
	}
}

// A calibration holds for its machine, engine and grade only, and where none does it is said why.
func TestOf(t *testing.T) {
	here := bench.CalibratedMachine{Host: "a", ID: "1", CPU: "x", Cores: 2, Kernel: "6"}
	all := []bench.Calibration{{Machine: here, Engine: "epoll", Stamp: "wire"}}
	run := bench.ClientReport{Engine: "epoll", Stamp: "wire"}
	with := func(change func(*bench.CalibratedMachine, *bench.ClientReport)) string {
		m, r := here, run
		change(&m, &r)
		c, why := Of(all, m, r)
		if (c != nil) != (why == "") {
			t.Errorf("%+v, %q", c, why)
		}
		return strings.TrimPrefix(why, "the calibration that is stored is ")
	}
	for _, c := range []struct {
		want   string
		change func(*bench.CalibratedMachine, *bench.ClientReport)
	}{
		{"", func(*bench.CalibratedMachine, *bench.ClientReport) {}},
		{"", func(m *bench.CalibratedMachine, _ *bench.ClientReport) { m.Cores = 1 }},
		{"", func(_ *bench.CalibratedMachine, r *bench.ClientReport) { r.Engine = "epoll, isolated" }},
		{`of the machine "a"`, func(m *bench.CalibratedMachine, _ *bench.ClientReport) { m.Host = "b" }},
		{"of another machine of this name", func(m *bench.CalibratedMachine, _ *bench.ClientReport) { m.ID = "2" }},
		{"of another processor, x", func(m *bench.CalibratedMachine, _ *bench.ClientReport) { m.CPU = "y" }},
		{"of another kernel, 6", func(m *bench.CalibratedMachine, _ *bench.ClientReport) { m.Kernel = "7" }},
		{"with wire stamps, this run has user stamps (calibrate --stamps user)", func(_ *bench.CalibratedMachine, r *bench.ClientReport) { r.Stamp = "user" }},
		{"of the engine epoll, this run used portable", func(_ *bench.CalibratedMachine, r *bench.ClientReport) { r.Engine = "portable" }},
	} {
		if got := with(c.change); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if c, why := Of(nil, here, run); c != nil || why != "" {
		t.Errorf("%+v, %q", c, why)
	}
	other := bench.Calibration{Machine: bench.CalibratedMachine{Host: "b"}, Engine: "epoll", Stamp: "user"}
	if _, why := Of(append([]bench.Calibration{other}, all...), here, bench.ClientReport{Engine: "epoll", Stamp: "user"}); !strings.Contains(why, "with wire stamps") {
		t.Errorf("%q tells of another machine, although there is one of this", why)
	}
}

// The truth of an answer may be there a moment later than the answer.
func TestFetchTruth(t *testing.T) {
	head, rest, _ := strings.Cut(truthText, "\n")
	first, _, _ := strings.Cut(rest, "\n")
	asked, gone := 0, false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; {
		case gone:
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path != "/truth":
			t.Errorf("%s asked", r.URL)
		case asked < 3:
			io.WriteString(w, head+"\n"+first+"\n")
		default:
			io.WriteString(w, truthText)
		}
	}))
	defer srv.Close()
	records := result(0, 0, 0).Records
	if got, err := fetchTruth(t.Context(), srv.URL, records); err != nil || len(got.of) != 2 || asked != 3 {
		t.Errorf("%+v, %v, asked %d times", got, err, asked)
	}
	asked = 0
	if got, err := fetchTruth(t.Context(), srv.URL, records[:1]); err != nil || len(got.of) != 1 || asked != 1 {
		t.Errorf("%+v, %v, asked %d times", got, err, asked)
	}
	gone = true
	if _, err := fetchTruth(t.Context(), srv.URL, records); fault.CodeOf(err) != fault.Internal || fault.HintOf(err) == "" {
		t.Errorf("%v", err)
	}
}

func TestMachineID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "id")
	if id := machineID(path); id != "" {
		t.Errorf("%q", id)
	}
	os.WriteFile(path, []byte("secret\n"), 0o600)
	if id := machineID(path); len(id) != 16 || strings.Contains(id, "secret") {
		t.Errorf("%q", id)
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
