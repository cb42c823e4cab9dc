package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

func calibratedRun() (*bench.Manifest, []bench.Record) {
	m := &bench.Manifest{State: bench.Complete, Planned: 2}
	m.Spec.Phases = []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 2}, Stop: bench.Stop{Requests: 2}}}
	var recs []bench.Record
	for i := range 2 {
		recs = append(recs, bench.Record{ID: i, Phase: bench.Measure, Outcome: bench.OK, OutEvents: 50, Sent: opt.Some(time.Duration(0)), Slot: opt.Some(time.Duration(0)),
			First: opt.Some(time.Millisecond), Last: opt.Some(time.Second), End: opt.Some(time.Second)})
	}
	return m, recs
}

func calibrationWords(m *bench.Manifest, recs []bench.Record) (limited []string, uncalibrated string) {
	for _, x := range Summarize(m, recs).Caveats {
		switch x.Code {
		case "client_limited":
			limited = append(limited, x.Text)
		case "uncalibrated":
			uncalibrated = x.Text
		}
	}
	return limited, uncalibrated
}

// A run above 80 % of an exact ceiling is void; a ceiling that may be higher tells nothing.
func TestAboveCeiling(t *testing.T) {
	for _, c := range []struct {
		ceiling bench.Ceiling
		want    int
	}{{bench.Ceiling{EventRate: 124, RequestRate: 100}, 1}, {bench.Ceiling{EventRate: 126, RequestRate: 100}, 0}, {bench.Ceiling{EventRate: 50, EventsBound: true, RequestRate: 100}, 0},
		{bench.Ceiling{EventRate: 1e6, RequestRate: 2.4}, 1}, {bench.Ceiling{EventRate: 1e6, RequestRate: 2.6}, 0}, {bench.Ceiling{EventRate: 99, RequestRate: 1}, 2}} {
		m, recs := calibratedRun()
		m.Calibration = &bench.Calibration{Ceiling: c.ceiling}
		if limited, un := calibrationWords(m, recs); len(limited) != c.want || un != "" {
			t.Errorf("%+v: %q, %q", c.ceiling, limited, un)
		}
	}
}

// Without a calibration that holds a run says so, and why; it is not void for that.
func TestUncalibrated(t *testing.T) {
	const unknown = "the error of this client on this machine has not been measured"
	for _, c := range []struct {
		calibration *bench.Calibration
		why, want   string
	}{
		{nil, "", unknown},
		{nil, "the one that is stored is old", unknown + ": the one that is stored is old"},
		{&bench.Calibration{}, "", "the calibration of this client on this machine passed at no load"},
		{&bench.Calibration{Ceiling: bench.Ceiling{EventRate: 1e6, RequestRate: 1e3}}, "", ""},
	} {
		m, recs := calibratedRun()
		m.Calibration, m.NoCalibration = c.calibration, c.why
		if limited, un := calibrationWords(m, recs); limited != nil || un != c.want {
			t.Errorf("%q, %q, want %q", limited, un, c.want)
		}
	}
}

// The rates are those of the plateau, where that lasts: a slow begin and end do not hide a load at the client's ceiling.
func TestClientRates(t *testing.T) {
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	var recs []bench.Record
	add := func(sent, last int, events ...int) {
		r := bench.Record{ID: len(recs), Phase: bench.Measure, Outcome: bench.OK, OutEvents: 10, Sent: opt.Some(at(sent)), First: opt.Some(at(sent)), Last: opt.Some(at(last)), End: opt.Some(at(last))}
		for _, e := range events {
			r.Events = append(r.Events, at(e))
		}
		recs = append(recs, r)
	}
	add(0, 500)                                                            // before the plateau
	add(1000, 2000, 0, 100, 200, 300, 400, 500, 600, 700, 800, 900)        // wholly in it
	add(2500, 3500)                                                        // half of it in it, spread evenly
	add(9000, 9000)                                                        // after it, at once
	add(2000, 4000, 0, 500, 900, 1001, 1200, 1400, 1500, 1600, 1800, 2000) // three of ten in it
	m := &bench.Manifest{State: bench.Complete}
	m.Spec.Phases = []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 2}}}
	x := NewContext(m, recs)
	events, requests, over := x.clientRates(&bench.Steady{From: opt.Some(1.0), To: opt.Some(3.0)})
	if events != 9 || requests != 1.5 || over != "plateau" {
		t.Errorf("%v events/s, %v requests/s over the %s", events, requests, over)
	}
	for _, s := range []bench.Steady{{}, {From: opt.Some(1.0), To: opt.Some(1.9)}} {
		events, requests, over = x.clientRates(&s)
		if events != 50.0/9 || requests != 4.0/9 || over != "window" {
			t.Errorf("%v events/s, %v requests/s over the %s", events, requests, over)
		}
	}
	m.Calibration = &bench.Calibration{Ceiling: bench.Ceiling{EventRate: 6, RequestRate: 100}}
	var said string
	findAboveCeiling(x, &bench.Summary{}, func(_, format string, args ...any) { said = format })
	if !strings.Contains(said, "on average over the %s") {
		t.Errorf("%q does not say over what", said)
	}
	m.Calibration.Ceiling.EventRate = 7
	said = ""
	if findAboveCeiling(x, &bench.Summary{}, func(_, format string, args ...any) { said = format }); said != "" {
		t.Errorf("%q at 79 %%", said)
	}
}
