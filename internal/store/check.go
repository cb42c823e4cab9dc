package store

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// Bounds of what a record may say. No run comes near them; beyond them lies a damaged file, of which no result can be made.
const (
	maxMoment      = 100 * 24 * time.Hour // from the epoch, before or after it
	maxCount       = 1 << 40              // tokens or bytes of a request
	maxEventTokens = 1 << 24              // tokens that the events of a request tell, together
)

// checkRecord says what a record tells that cannot be.
func checkRecord(r *bench.Record) error {
	if !slices.Contains(bench.Outcomes, r.Outcome) {
		return fmt.Errorf("request %d has the unknown outcome %q", r.ID, r.Outcome)
	}
	if r.ID < 0 || r.Target < 0 {
		return fmt.Errorf("request %d of target %d: neither may be below 0", r.ID, r.Target)
	}
	for _, m := range []struct {
		field string
		at    opt.Of[time.Duration]
	}{{"due_ns", r.Due}, {"slot_ns", r.Slot}, {"sent_ns", r.Sent}, {"handed_ns", r.Handed}, {"headers_ns", r.Headers}, {"first_ns", r.First},
		{"second_ns", r.Second}, {"first_answer_ns", r.FirstAnswer}, {"last_ns", r.Last}, {"end_ns", r.End}, {"connect_ns", r.Connect}, {"tls_ns", r.TLS}} {
		if at := m.at.Or(0); at > maxMoment || at < -maxMoment {
			return fmt.Errorf("request %d has %d in %s: more than %d days from the epoch", r.ID, at, m.field, maxMoment/(24*time.Hour))
		}
	}
	if first := r.First.Or(0); first < 0 {
		return fmt.Errorf("request %d has its first output at %d, before the run", r.ID, first)
	}
	for _, at := range r.Events {
		if at > maxMoment || at < -maxMoment {
			return fmt.Errorf("request %d has %d in event_ns: more than %d days from its send", r.ID, at, maxMoment/(24*time.Hour))
		}
	}
	for _, c := range []struct {
		field string
		n     int
	}{{"isl", r.ISL.Or(0)}, {"isl_asked", r.ISLAsked}, {"osl", r.OSL.Or(0)}, {"osl_asked", r.OSLAsked}, {"cached_tokens", r.Cached.Or(0)},
		{"reasoning_tokens", r.Reasoning.Or(0)}, {"choices", r.Choices}, {"n_events", r.OutEvents}, {"merged_events", r.Merged},
		{"inputs", r.Inputs}, {"dimensions", r.Dimensions}, {"bytes", r.Bytes}} {
		if c.n < 0 || c.n > maxCount {
			return fmt.Errorf("request %d has a count of %d in %s", r.ID, c.n, c.field)
		}
	}
	sum := 0
	for _, n := range r.EventTokens {
		if n < 0 || n > maxEventTokens-sum {
			return fmt.Errorf("request %d has a count of %d in event_tokens", r.ID, n)
		}
		sum += n
	}
	return nil
}

// checkManifest says what lacks in a manifest that results can be made of. The number of planned requests, where it lacks, is that
// at which the measured phase stops.
func checkManifest(m *bench.Manifest) error {
	switch m.State {
	case bench.Running, bench.Complete, bench.Interrupted, bench.Stopped:
	case "":
		return fmt.Errorf("it does not say how the run ended (state)")
	default:
		return fmt.Errorf("it has the unknown state %q", m.State)
	}
	if len(m.Spec.Target.URLs) == 0 {
		return fmt.Errorf("it names no target (spec.target.urls)")
	}
	if len(m.Spec.Measured()) == 0 {
		return fmt.Errorf("it has no measured phase (spec.phases)")
	}
	for i, p := range m.Spec.Phases {
		switch l := p.Load; {
		case l.Shape == bench.Inf || l.Shape == bench.Trace:
		case !l.Open() && l.Concurrency > 0:
		case l.Paced() && l.Rate > 0 && !math.IsInf(l.Rate, 0) && (l.Shape != bench.Gamma && l.Shape != bench.Weibull || l.Burstiness > 0):
		default:
			return fmt.Errorf("it has no law of arrivals that can be (spec.phases[%d].load)", i)
		}
	}
	for _, p := range m.Spec.Percentiles {
		if !(p > 0 && p < 100) {
			return fmt.Errorf("it has the percentile %v (spec.percentiles)", p)
		}
	}
	if m.Planned < 0 || m.Client.Reads < 0 {
		return fmt.Errorf("it has a count below 0")
	}
	if m.Planned == 0 {
		for _, p := range m.Spec.Measured() {
			m.Planned += p.Stop.Requests
		}
	}
	return nil
}
