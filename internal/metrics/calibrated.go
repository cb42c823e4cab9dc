package metrics

import "github.com/prony-bench/prony/internal/bench"

// ceilingMost is the share of the calibrated ceiling up to which the client's errors are those of the calibration.
const ceilingMost = 0.8

// findAboveCeiling looks for loads too near to what the client can do on this machine. A ceiling that is only known to be at least so
// high tells nothing.
func findAboveCeiling(x *Context, s *bench.Summary, say func(metric, format string, args ...any)) {
	c, w := x.Manifest.Calibration, s.Window.Or(0)
	if c == nil || w <= 0 {
		return
	}
	events := 0
	for _, r := range x.Records {
		events += r.OutEvents
	}
	for _, l := range []struct {
		what          string
		rate, ceiling float64
		bound         bool
	}{{"output events", float64(events) / w, c.Ceiling.EventRate, c.Ceiling.EventsBound}, {"requests", float64(s.Requests.Sent) / w, c.Ceiling.RequestRate, c.Ceiling.RequestsBound}} {
		if !l.bound && l.rate > ceilingMost*l.ceiling {
			say("", "%s %s/s are above 80 %% of this client's ceiling of %s/s", three(l.rate), l.what, three(l.ceiling))
		}
	}
}
