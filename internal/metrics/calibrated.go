package metrics

import (
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// ceilingMost is the share of the calibrated ceiling up to which the client's errors are those of the calibration.
const ceilingMost = 0.8

// shortPlateau is the length below which a plateau tells no rate.
const shortPlateau = time.Second

// findAboveCeiling looks for loads too near to what the client can do on this machine. A ceiling that is only known to be at least so
// high tells nothing, nor one of a calibration that passed at no load.
func findAboveCeiling(x *Context, s *bench.Summary, say func(metric, format string, args ...any)) {
	c := x.Manifest.Calibration
	if c == nil || !x.Sent {
		return
	}
	events, requests, over := x.clientRates(&s.Steady)
	for _, l := range []struct {
		what          string
		rate, ceiling float64
		bound         bool
	}{{"output events", events, c.Ceiling.EventRate, c.Ceiling.EventsBound}, {"requests", requests, c.Ceiling.RequestRate, c.Ceiling.RequestsBound}} {
		if !l.bound && l.ceiling > 0 && l.rate > ceilingMost*l.ceiling {
			say("", "%s %s/s on average over the %s are above 80 %% of this client's ceiling of %s/s", three(l.rate), l.what, over, three(l.ceiling))
		}
	}
}

// clientRates are the mean rates, a second, of output events that came and of requests that went out: over the plateau, or over the
// window where there is none of a second at least. Requests of all outcomes count.
func (x *Context) clientRates(s *bench.Steady) (events, requests float64, over string) {
	from, to, over := x.From, x.To, "window"
	begin, ok := s.From.Get()
	end, ok2 := s.To.Get()
	if p, q := x.From+seconds(begin), x.From+seconds(end); ok && ok2 && q-p >= shortPlateau {
		from, to, over = p, q, "plateau"
	}
	if to <= from {
		return 0, 0, over
	}
	for _, r := range x.Records {
		if sent, ok := r.Sent.Get(); ok && sent >= from && sent < to {
			requests++
		}
		events += eventsWithin(r, from, to)
	}
	span := (to - from).Seconds()
	return events / span, requests / span, over
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// eventsWithin counts the output events of a record between two moments. Where their times were not kept they are taken as spread evenly
// from the first to the last.
func eventsWithin(r *bench.Record, from, to time.Duration) (n float64) {
	if sent, ok := r.Sent.Get(); ok && len(r.Events) > 0 {
		for _, at := range r.Events {
			if at += sent; at >= from && at <= to {
				n++
			}
		}
		return n
	}
	first, ok := r.First.Get()
	last, ok2 := r.Last.Get()
	switch {
	case !ok || !ok2 || last < from || first > to:
		return 0
	case last == first:
		return float64(r.OutEvents)
	}
	return float64(r.OutEvents) * float64(min(last, to)-max(first, from)) / float64(last-first)
}

// findUncalibrated says why nothing is known of the client's error.
func findUncalibrated(x *Context, _ *bench.Summary, say func(metric, format string, args ...any)) {
	const unknown = "the error of this client on this machine has not been measured"
	switch m := x.Manifest; {
	case m.Calibration == nil && m.NoCalibration != "":
		say("", unknown+": %s", m.NoCalibration)
	case m.Calibration == nil:
		say("", unknown)
	case m.Calibration.Ceiling.EventRate == 0:
		say("", "the calibration of this client on this machine passed at no load")
	}
}
