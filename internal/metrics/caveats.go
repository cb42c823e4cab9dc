package metrics

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/wire"
)

// rule finds one kind of caveat.
type rule struct {
	code     string
	severity bench.Severity
	remedy   string
	// find returns the texts of the caveats that hold, each with the metric it belongs to ("" = the run).
	find func(x *Context, s *bench.Summary, say func(metric, format string, args ...any))
}

// Thresholds of the rules.
const (
	attainedLeast = 0.95
	failuresMost  = 0.01
	excludedMost  = 0.01
	lengthsMost   = 0.05 // share of requests whose lengths differ
	bunchedMost   = 0.05
	cachedMost    = 0.05
	mergedMost    = 0.01 // share of output events
	unstampedMost = 0.01 // share of reads
)

// rules is the one table of all caveats.
func rules() []rule {
	return []rule{
		{"no_success", bench.SeverityVoid, "look at the failures", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if s.Requests.OK == 0 {
				say("", "no request succeeded")
			}
		}},
		{"mostly_failed", bench.SeverityVoid, "look at the failures", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c := s.Requests; c.OK > 0 && 2*c.Failed > c.Sent {
				say("", "%d of %d requests failed", c.Failed, c.Sent)
			}
		}},
		{"cut_short", bench.SeverityVoid, "run it again, to its end", findCutShort},
		{"client_limited", bench.SeverityVoid, "lower the load, or give the client a core of its own", findClientLimited},
		{"late_load", bench.SeverityVoid, "lower the rate, or give the client a core of its own", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if a, ok := x.attainedInTime(s); ok && a < attainedLeast && !waitedForCap(s) {
				say("", "only %.1f %% of the offered rate was sent: the client was late", 100*a)
			}
		}},
		{"clock_step", bench.SeverityVoid, "run again, with a time service that slews the clock and does not step it", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c := s.Client; c.UnrepairedSteps > 0 {
				say("", "%d kernel stamps could not be placed on the monotonic clock (the wall clock was stepped %d times): the times of their reads stand in for them",
					c.UnrepairedSteps, c.ClockSteps)
			}
		}},
		{"journal_behind", bench.SeverityVoid, "write to a faster disk, or use --events none", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if s.Client.JournalBehind {
				say("", "the client had to wait for storage")
			}
		}},

		{"failures", bench.SeverityWarn, "latencies are of the others; see the errors above", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c := s.Requests; c.Sent > 0 && float64(c.Failed) > failuresMost*float64(c.Sent) && 2*c.Failed <= c.Sent {
				say("", "%d of %d requests failed", c.Failed, c.Sent)
			}
		}},
		{"excluded", bench.SeverityWarn, "see the outcomes", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c := s.Requests; c.Sent > 0 && float64(c.Excluded) > excludedMost*float64(c.Sent) {
				say("", "%d of %d requests gave no sample: %d without output, %d not streamed", c.Excluded, c.Sent, c.ByOutcome[bench.Empty], c.ByOutcome[bench.NotStreamed])
			}
		}},
		{"offered_load_not_reached", bench.SeverityWarn, "raise --max-concurrency, or take the rate as the server's limit", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if a, ok := s.Load.Attained.Get(); ok && a < attainedLeast && waitedForCap(s) {
				say("", "only %.1f %% of the offered rate was sent: requests waited for the cap of %d in flight", 100*a, s.Load.Cap)
			}
		}},
		{"arrivals_differ", bench.SeverityWarn, "give the client a core of its own", arrivalsDiffer(byClient, "although the schedule does")},
		{"arrivals_differ", bench.SeverityWarn, "raise --max-concurrency, or take the result as that of a closed loop", arrivalsDiffer(byCap, "requests waited for the cap")},
		{"arrivals_differ", bench.SeverityWarn, "look at the failures", arrivalsDiffer(byFailures, "requests whose connection failed could not be sent")},
		{"drifting", bench.SeverityWarn, "run longer, warm up, or lower the load: the numbers depend on when the run ends", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if s.Steady.Word == wordUp || s.Steady.Word == wordDown {
				say("", "latency is %s over the run", s.Steady.Word)
			}
		}},
		{"no_plateau", bench.SeverityWarn, "run longer, warm up, or lower the load", noPlateau(lackSettling)},
		{"no_plateau", bench.SeverityWarn, "send more requests than the concurrency", noPlateau(lackRequests)},
		{"no_plateau", bench.SeverityWarn, "lower the concurrency, or give the client a core of its own", noPlateau(lackClient)},
		{"no_plateau", bench.SeverityWarn, "look at the failures, and at the time that connections take", noPlateau(lackOther)},
		{"lengths_differ", bench.SeverityWarn, "compare only with runs of the same delivered lengths", findLengths},
		{"buffered_stream", bench.SeverityWarn, "look for a proxy that buffers (X-Accel-Buffering: no), or for compression", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if n := s.Flags[bench.AllAtOnce] + s.Flags[bench.Clumped]; float64(n) > bunchedMost*float64(s.Requests.OK) {
				say("itl_ms", "%d streams came bunched: %d all at once, %d clumped", n, s.Flags[bench.AllAtOnce], s.Flags[bench.Clumped])
			}
		}},
		{"warm_cache", bench.SeverityWarn, "use prompts that the server has not seen (--dataset random without --seed)", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c, ok := s.Tokens.CachedShare.Get(); ok && c > cachedMost {
				say("ttft_ms", "%.0f %% of the prompt tokens came from the prefix cache", 100*c)
			}
		}},
		{"estimated_tokens", bench.SeverityWarn, "let the server report usage (leave out --no-usage)", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if n := s.Tokens.OSLSource[bench.FromEstimate]; n > 0 {
				say("osl", "the output tokens of %d requests are an estimate: the number of output events", n)
			}
		}},
		{"mixed_sources", bench.SeverityWarn, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			for _, m := range []struct {
				metric string
				from   map[bench.Source]int
			}{{"isl", s.Tokens.ISLSource}, {"osl", s.Tokens.OSLSource}} {
				if len(m.from) > 1 {
					say(m.metric, "token counts of several sources are in one column: %s", sourceList(m.from))
				}
			}
		}},

		{"few_samples", bench.SeverityCell, "--num-requests N or --duration T, or repeat the run", findFewSamples},
		{"no_interval", bench.SeverityCell, "repeat the run: a t-interval over 5 runs needs no independence", findNoInterval},

		{"uncalibrated", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			say("", "the error of this client on this machine has not been measured")
		}},
		{"stamps_fell_back", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			c := s.Client
			switch {
			case c.Stamp == "user" && c.Reads > 0:
				say("", "times are those of the reads, not of the kernel: a busy client reads late")
			case c.Reads > 0 && float64(c.Unstamped) > unstampedMost*float64(c.Reads):
				say("", "%d of %d reads have no kernel stamp", c.Unstamped, c.Reads)
			}
		}},
		{"merged_reads", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if merged, all := x.mergedEvents(); float64(merged) > mergedMost*float64(all) {
				say("itl_ms", "%.1f %% of the output events came in one read with another of their response: by these stamps there is no time between them",
					100*float64(merged)/float64(all))
			}
		}},
		{"clock_step", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c := s.Client; c.ClockSteps > 0 && c.UnrepairedSteps == 0 {
				say("", "the wall clock was stepped %d times; durations come from the monotonic clock, on which all stamps could be placed", c.ClockSteps)
			}
		}},
		{"stale_connections", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if n := s.Client.StaleRetries; n > 0 {
				say("", "%d reused connections had been closed by the server; their requests went out again on fresh ones", n)
			}
		}},
		{"too_short", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if s.Steady.Word == wordTooShort && s.Requests.Sent > 0 {
				say("", "too short to say whether the run was steady (fewer than %d requests)", steadyMinRequests)
			}
		}},
		{"multi_token_chunks", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if n := s.Flags[bench.MultiTokenChunks]; n > 0 {
				say("itl_ms", "%d streams brought several tokens an event: ITL is the gap between events, TPOT the time a token", n)
			}
		}},
		{"length_limited", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if v, ok := s.Tokens.LengthLimited.Get(); ok && v > 0 && !x.Spec.Workload.ForceLength {
				say("osl", "%.0f %% of the answers were cut off by the token limit", 100*v)
			}
		}},
		{"length_not_forced", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if x.Spec.Workload.Dataset == "random" && !x.Spec.Workload.ForceLength {
				say("osl", "the engine cannot be told to go on after its end token: answers may be shorter than asked")
			}
		}},
		{"estimated_prompts", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if strings.Contains(x.Spec.Workload.PromptSource, "estimate") {
				say("isl", "prompt lengths are an estimate: %s", x.Spec.Workload.PromptSource)
			}
		}},
	}
}

// caveats applies the table.
func caveats(x *Context, s *bench.Summary) []bench.Caveat {
	out := []bench.Caveat{}
	for _, r := range rules() {
		r.find(x, s, func(metric, format string, args ...any) {
			remedy := r.remedy
			if r.code == "few_samples" {
				remedy = moreSamples(x, s, metric)
			}
			out = append(out, bench.Caveat{Code: r.code, Severity: r.severity, Metric: metric, Remedy: remedy, Text: fmt.Sprintf(format, args...)})
		})
	}
	return out
}

// VerdictOf is void if any void caveat holds, doubtful if a warning does, else valid. A cell or a note changes nothing.
func VerdictOf(cs []bench.Caveat) bench.Verdict {
	v := bench.Valid
	for _, c := range cs {
		switch c.Severity {
		case bench.SeverityVoid:
			return bench.Void
		case bench.SeverityWarn:
			v = bench.Doubtful
		}
	}
	return v
}

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
