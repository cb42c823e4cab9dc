package metrics

import (
	"fmt"
	"math"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
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
	lagFloorMS    = 10.0
	lagShare      = 0.05 // of the median TTFT
	attainedLeast = 0.95
	failuresMost  = 0.01
	excludedMost  = 0.01
	lengthsMost   = 0.05 // share of requests whose lengths differ
	bunchedMost   = 0.05
	cachedMost    = 0.05
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
			if a, ok := s.Load.Attained.Get(); ok && a < attainedLeast && !waitedForCap(s) {
				say("", "only %.1f %% of the offered rate was sent: the client was late", 100*a)
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
		{"arrivals_differ", bench.SeverityWarn, "give the client a core of its own", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if t := s.Load.Arrivals; t != nil && !t.Passed {
				say("", "the send times do not follow the %s law that was asked, although the schedule does", t.Law)
			}
		}},
		{"drifting", bench.SeverityWarn, "run longer, warm up, or lower the load: the numbers depend on when the run ends", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if s.Steady.Word == wordUp || s.Steady.Word == wordDown {
				say("", "latency is %s over the run", s.Steady.Word)
			}
		}},
		{"no_plateau", bench.SeverityWarn, "send more requests than the concurrency", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if !x.Spec.Load.Open() && s.Steady.Note != "" && s.Requests.Sent > 0 {
				say("", "the closed loop was never full: %s", s.Steady.Note)
			}
		}},
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

		{"few_samples", bench.SeverityCell, "--num-requests N, or repeat the run", findFewSamples},
		{"no_interval", bench.SeverityCell, "repeat the run: a t-interval over 5 runs needs no independence", findNoInterval},

		{"uncalibrated", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			say("", "the error of this client on this machine has not been measured")
		}},
		{"stamps_fell_back", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			c := s.Client
			switch {
			case c.Stamp == "user" && c.Reads > 0:
				say("", "times are those of the reads, not of the kernel: a busy client reads late")
			case c.Reads > 0 && float64(c.Unstamped) > 0.01*float64(c.Reads):
				say("", "%d of %d reads have no kernel stamp", c.Unstamped, c.Reads)
			}
		}},
		{"clock_step", bench.SeverityNote, "", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
			if c := s.Client; c.ClockSteps > 0 {
				say("", "the wall clock was stepped %d times; durations come from the monotonic clock (%d stamps were given up for the time of their read)", c.ClockSteps, c.UnrepairedSteps)
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

func findClientLimited(x *Context, s *bench.Summary, say func(string, string, ...any)) {
	limit := lagFloorMS
	if d := s.Metrics.Dist("ttft_ms"); d != nil {
		if p50, ok := d.P(50); ok {
			limit = math.Max(limit, lagShare*p50)
		}
	}
	if lag, ok := s.Metrics.Dist("lag_ms").P(99); ok && lag > limit {
		say("", "the client's lag p99 is %.3g ms, above %.3g ms", lag, limit)
	}
	if d := s.Client.ReadDelayP99; s.Client.Stamp != "wire" && float64(d)/perMS > limit {
		say("", "the client read its sockets %.3g ms late at p99, above %.3g ms", float64(d)/perMS, limit)
	}
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
		return fmt.Sprintf("--num-requests %.0f", math.Ceil(times*float64(s.Requests.OK)/50)*50)
	}
	return "repeat the run and compare its percentiles"
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
