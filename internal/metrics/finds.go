package metrics

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/wire"
)

func findCutShort(x *Context, s *bench.Summary, say func(string, string, ...any)) {
	m := x.Manifest
	ended := s.Requests.Sent - s.Requests.Incomplete
	switch {
	case m.State == bench.Interrupted || m.State == bench.Stopped:
		say("", "the run was stopped before its end: %s", m.Stopped)
	case m.State == bench.Running:
		say("", "the run did not end: it is still going, or was killed")
	case x.Spec.Stop.Requests > 0 && ended < m.Planned:
		say("", "%d of %d planned requests ended", ended, m.Planned)
	}
}

// noneDue tells whether an open loop ran its whole duration without an arrival.
func (x *Context) noneDue() bool {
	return x.Spec.Load.Paced() && x.Spec.Stop.Duration > 0 && x.Manifest.State == bench.Complete && len(x.Records) == 0
}

// cause is why a load did not go out as it was asked.
type cause uint8

const (
	byClient cause = iota
	byCap
	byFailures
)

// causeOf tells why requests went out late, in gaps of other lengths, or not at all.
func (x *Context) causeOf(s *bench.Summary) cause {
	switch {
	case waitedForCap(s):
		return byCap
	case x.unsent() > 0:
		return byFailures
	}
	return byClient
}

// unsent is the number of requests whose connection failed.
func (x *Context) unsent() int {
	n := 0
	for _, r := range x.Records {
		if !r.Sent.Defined() && r.Outcome.Failed() {
			n++
		}
	}
	return n
}

// attainedInTime is the attained share of the rate of those requests that had a connection: what failed before it could be sent was not
// late.
func (x *Context) attainedInTime(s *bench.Summary) (float64, bool) {
	attained, ok := s.Load.Attained.Get()
	sent := 0
	for _, r := range x.Records {
		if r.Sent.Defined() {
			sent++
		}
	}
	return attained * float64(sent+x.unsent()) / float64(max(1, sent)), ok
}

// arrivalsDiffer finds send times that fail the test of the arrivals through a cause.
func arrivalsDiffer(through cause, words string) func(*Context, *bench.Summary, func(string, string, ...any)) {
	return func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
		if t := s.Load.Arrivals; t != nil && !t.Passed && x.causeOf(s) == through {
			say("", "the send times do not follow the %s law that was asked: %s", t.Law, words)
		}
	}
}

// noPlateau finds that something lacks for a plateau.
func noPlateau(what lack) func(*Context, *bench.Summary, func(string, string, ...any)) {
	return func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
		if l, words := x.lack(&s.Steady); l == what {
			say("", "there is no plateau: %s", words)
		}
	}
}

// mergedEvents counts the output events that came in one read with another of their response, of all whose stamps are those of reads.
// Streams that came all at once are told of elsewhere. A journal without the count tells by equal times.
func (x *Context) mergedEvents() (merged, all int) {
	for _, r := range x.Records {
		if !OfStreams.Has(r) || r.Stamp == wire.StampWire {
			continue
		}
		all += r.OutEvents
		if r.Merged > 0 {
			merged += r.Merged
			continue
		}
		for i, at := range r.Events {
			if i > 0 && r.Events[i-1] == at || i+1 < len(r.Events) && r.Events[i+1] == at {
				merged++
			}
		}
	}
	return merged, all
}

// flagged counts the ok requests with a flag.
func (x *Context) flagged(f bench.Flag) int {
	n := 0
	for _, r := range x.Records {
		if r.Outcome == bench.OK && r.Has(f) {
			n++
		}
	}
	return n
}

// waitedForCap tells whether the rate was missed because of the cap and not because of the client.
func waitedForCap(s *bench.Summary) bool {
	queue, lag := s.Metrics.Dist("queue_ms"), s.Metrics.Dist("lag_ms")
	return s.Load.Cap > 0 && queue != nil && (lag == nil || queue.Mean > lag.Mean)
}

func findLengths(x *Context, s *bench.Summary, say func(string, string, ...any)) {
	if s.Requests.OK == 0 {
		return
	}
	over := func(n int) bool { return float64(n) > lengthsMost*float64(s.Requests.OK) }
	if n := s.Flags[bench.PromptLengthDiffers]; over(n) {
		text := fmt.Sprintf("%d prompts have another length than asked", n)
		if d, ok := s.Tokens.ISLDeviation.Get(); ok {
			text += fmt.Sprintf(" (mean deviation %.1f %%, worst %.1f %%)", 100*d, 100*s.Tokens.ISLWorst.Or(0))
		}
		say("isl", "%s", text)
	}
	if n := s.Flags[bench.PromptTruncated]; over(n) {
		say("isl", "%d prompts were truncated by the server", n)
	}
	if n := s.Flags[bench.OutputLonger]; over(n) {
		say("osl", "%d answers are longer than asked", n)
	}
	if n := s.Flags[bench.OutputShorter]; over(n) {
		say("osl", "%d answers are shorter than was forced", n)
	}
}

// primary are the metrics whose cells are marked.
var primary = []string{"ttft_ms", "itl_ms", "tpot_ms", "e2el_ms"}

func findFewSamples(x *Context, s *bench.Summary, say func(string, string, ...any)) {
	for _, key := range primary {
		d := s.Metrics.Dist(key)
		if d == nil {
			continue
		}
		for _, q := range d.Quantiles {
			if need := samplesNeeded(q.P); d.NEff.Or(0) < float64(need) {
				say(key+"."+q.Key(), "%s needs %d independent samples; this run has %.0f", q.Key(), need, d.NEff.Or(0))
			}
		}
	}
}

// mostLonger is how many times longer a run may be asked to be: beyond it, repeating is the better advice.
const mostLonger = 20

// moreSamples says how a percentile gets its samples: by more requests at the correlation of this run, or by repeated runs.
func moreSamples(x *Context, s *bench.Summary, metric string) string {
	key, percentile, _ := strings.Cut(metric, ".")
	d := s.Metrics.Dist(key)
	for _, p := range x.percentiles() {
		if bench.PercentileKey(p) != percentile || d == nil || d.NEff.Or(0) <= 0 {
			continue
		}
		times := float64(samplesNeeded(p)) / d.NEff.Or(1) * 1.05
		if times > mostLonger {
			break
		}
		if d := x.Spec.Stop.Duration; d > 0 {
			return "--duration " + roundUp(time.Duration(times*float64(d)))
		}
		return fmt.Sprintf("--num-requests %.0f", math.Ceil(times*float64(s.Requests.OK)/50)*50)
	}
	return "repeat the run and compare its percentiles"
}

// roundUp writes a duration as a person would give it: in s below 20 s, in tens of them below 2 minutes, in minutes above.
func roundUp(d time.Duration) string {
	up := func(unit time.Duration) int { return int((d + unit - 1) / unit) }
	switch {
	case d <= 20*time.Second:
		return fmt.Sprintf("%ds", up(time.Second))
	case d <= 2*time.Minute:
		return fmt.Sprintf("%ds", 10*up(10*time.Second))
	}
	return fmt.Sprintf("%dm", up(time.Minute))
}

func findNoInterval(x *Context, s *bench.Summary, say func(string, string, ...any)) {
	for _, key := range primary {
		if d := s.Metrics.Dist(key); d != nil && d.N > 1 && strings.HasPrefix(d.CIMethod, "none") {
			say(key, "no interval (%s)", strings.TrimPrefix(d.CIMethod, "none: "))
		}
	}
}

func sourceList(from map[bench.Source]int) string {
	var parts []string
	for _, src := range []bench.Source{bench.FromIDs, bench.FromCount, bench.FromUsage, bench.FromTokenizer, bench.FromEstimate} {
		if n := from[src]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d by %s", n, src))
		}
	}
	return strings.Join(parts, ", ")
}

// findFallenStamps tells that stamps are of a lower grade than they might be, and why.
func findFallenStamps(x *Context, s *bench.Summary, say func(string, string, ...any)) {
	c, asked := s.Client, x.Spec.Client.Stamps
	if c.Reads == 0 {
		return
	}
	why := ""
	if c.NoWire != "" {
		why = ": no packets are captured (" + c.NoWire + ")"
	}
	switch {
	case c.Stamp == "user" && asked != "user":
		say("", "times are those of the reads, not of the kernel, so that a busy client reads late%s", why)
	case c.Stamp == "socket" && (asked == "auto" || asked == "wire") && c.NoWire != "":
		say("", "times are the kernel's stamps of the reads%s", why)
	case c.WireExchanges > 0 && c.OtherExchanges > 0:
		say("", "%d of %d exchanges have stamps of reads among those of packets", c.OtherExchanges, c.WireExchanges+c.OtherExchanges)
	}
	if c.Stamp != "user" && float64(c.Unstamped) > unstampedMost*float64(c.Reads) {
		say("", "%d of %d reads have no kernel stamp", c.Unstamped, c.Reads)
	}
}

// sharesPrefixes tells whether a workload's prompts begin alike on purpose: then a prefix cache that helps is what is measured.
func sharesPrefixes(w bench.Workload) bool {
	return w.MultiTurn || w.Dataset == "prefix" || w.Dataset == "mooncake" || w.Dataset == "bailian"
}
