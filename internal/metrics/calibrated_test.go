package metrics

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// A run above 80 % of an exact ceiling is void; a ceiling that may be higher tells nothing, and no calibration is a note.
func TestAboveCeiling(t *testing.T) {
	m := &bench.Manifest{State: bench.Complete, Planned: 2}
	m.Spec.Phases = []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 2}, Stop: bench.Stop{Requests: 2}}}
	var recs []bench.Record
	for i := range 2 {
		recs = append(recs, bench.Record{ID: i, Phase: bench.Measure, Outcome: bench.OK, OutEvents: 50, Sent: opt.Some(time.Duration(0)), Slot: opt.Some(time.Duration(0)),
			First: opt.Some(time.Millisecond), Last: opt.Some(time.Second), End: opt.Some(time.Second)})
	}
	codes := func(c *bench.Calibration) (limited, uncalibrated int) {
		m.Calibration = c
		for _, x := range Summarize(m, recs).Caveats {
			switch x.Code {
			case "client_limited":
				limited++
			case "uncalibrated":
				uncalibrated++
			}
		}
		return
	}
	for _, c := range []struct {
		ceiling bench.Ceiling
		want    int
	}{{bench.Ceiling{EventRate: 124, RequestRate: 100}, 1}, {bench.Ceiling{EventRate: 126, RequestRate: 100}, 0}, {bench.Ceiling{EventRate: 50, EventsBound: true, RequestRate: 100}, 0},
		{bench.Ceiling{EventRate: 1e6, RequestRate: 2.4}, 1}, {bench.Ceiling{EventRate: 1e6, RequestRate: 2.6}, 0}} {
		if limited, un := codes(&bench.Calibration{Ceiling: c.ceiling}); limited != c.want || un != 0 {
			t.Errorf("%+v: client_limited %d times, uncalibrated %d", c.ceiling, limited, un)
		}
	}
	if limited, un := codes(nil); limited != 0 || un != 1 {
		t.Errorf("client_limited %d times, uncalibrated %d", limited, un)
	}
}
