package metrics

import (
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
)

// rule finds one kind of caveat.
type rule struct {
	code     string
	severity bench.Severity
	when     string // it holds
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
	fewerMost     = 0.05 // share of ok requests with fewer tokens than events
	mergedMost    = 0.01 // share of output events
	unstampedMost = 0.01 // share of reads
)

// rules is the one table of all caveats.
func rules() []rule {
	return []rule{
		{"no_success", bench.SeverityVoid, "no request is ok",
			"look at the failures", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if s.Requests.OK == 0 && !x.noneDue() {
					say("", "no request succeeded")
				}
			}},
		{"none_due", bench.SeverityVoid, "no request was due within the duration of the run",
			"measure for longer, or at a higher rate", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if x.noneDue() {
					say("", "no request was due within %v", x.Spec.Stop.Duration)
				}
			}},
		{"mostly_failed", bench.SeverityVoid, "more than half of the sent requests failed",
			"look at the failures", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if c := s.Requests; c.OK > 0 && 2*c.Failed > c.Sent {
					say("", "%d of %d requests failed", c.Failed, c.Sent)
				}
			}},
		{"cut_short", bench.SeverityVoid, "the run was interrupted, stopped by a rule, or killed, or fewer requests ended than were planned",
			"run it again, to its end", findCutShort},
		{"client_limited", bench.SeverityVoid, "the lateness p99 of the client (its lag; in a closed loop, under a cap and with rate inf the time from a free place to the send), or without wire stamps its read delay p99, or with user stamps its scheduling delay p99, is above max(10 ms, 5 % of the median TTFT); or it did not run for more than 2 % of the window, and 100 ms",
			"lower the load, or give the client a core of its own", findClientLimited},
		{"late_load", bench.SeverityVoid, "less than 95 % of the offered rate was sent, not through the cap and not through connections that failed",
			"lower the rate, or give the client a core of its own", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if a, ok := x.attainedInTime(s); ok && a < attainedLeast && !waitedForCap(s) {
					say("", "only %.1f %% of the offered rate was sent: the client was late", 100*a)
				}
			}},
		{"clock_step", bench.SeverityVoid, "a kernel stamp could not be placed on the monotonic clock after a step of the wall clock",
			"run again, with a time service that slews the clock and does not step it", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if c := s.Client; c.UnrepairedSteps > 0 {
					say("", "%d kernel stamps could not be placed on the monotonic clock (the wall clock was stepped %d times): the times of their reads stand in for them",
						c.UnrepairedSteps, c.ClockSteps)
				}
			}},
		{"journal_behind", bench.SeverityVoid, "the client had to wait for storage",
			"write to a faster disk, or use --events none", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if s.Client.JournalBehind {
					say("", "the client had to wait for storage")
				}
			}},

		{"failures", bench.SeverityWarn, "more than 1 % of the sent requests failed, and no more than half",
			"latencies are of the others; see the errors above", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if c := s.Requests; c.Sent > 0 && float64(c.Failed) > failuresMost*float64(c.Sent) && 2*c.Failed <= c.Sent {
					say("", "%d of %d requests failed", c.Failed, c.Sent)
				}
			}},
		{"excluded", bench.SeverityWarn, "more than 1 % of the sent requests gave no sample: empty, or not streamed",
			"see the outcomes", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if c := s.Requests; c.Sent > 0 && float64(c.Excluded) > excludedMost*float64(c.Sent) {
					say("", "%d of %d requests gave no sample: %d without output, %d not streamed", c.Excluded, c.Sent, c.ByOutcome[bench.Empty], c.ByOutcome[bench.NotStreamed])
				}
			}},
		{"offered_load_not_reached", bench.SeverityWarn, "less than 95 % of the offered rate was sent, through waiting for the cap",
			"raise --max-concurrency, or take the rate as the server's limit", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if a, ok := s.Load.Attained.Get(); ok && a < attainedLeast && waitedForCap(s) {
					say("", "only %.1f %% of the offered rate was sent: requests waited for the cap of %d in flight", 100*a, s.Load.Cap)
				}
			}},
		{"arrivals_differ", bench.SeverityWarn, "the send times fail the test of the arrivals, the due times pass it, and neither a cap nor failed connections are the cause",
			"give the client a core of its own", arrivalsDiffer(byClient, "although the schedule does")},
		{"arrivals_differ", bench.SeverityWarn, "the same, where requests waited for the cap",
			"raise --max-concurrency, or take the result as that of a closed loop", arrivalsDiffer(byCap, "requests waited for the cap")},
		{"arrivals_differ", bench.SeverityWarn, "the same, where requests could not be sent since their connection failed",
			"look at the failures", arrivalsDiffer(byFailures, "requests whose connection failed could not be sent")},
		{"drifting", bench.SeverityWarn, "the latency over the plateau has a trend: Mann-Kendall p < 0.01, and a change of a tenth of the mean or more",
			"run longer, warm up, or lower the load: the numbers depend on when the run ends", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if s.Steady.Word == wordUp || s.Steady.Word == wordDown {
					say("", "latency is %s over the run", s.Steady.Word)
				}
			}},
		{"no_plateau", bench.SeverityWarn, "arrivals of their own, and the latency does not settle in the first half of the run (MSER-5, from 100 requests on)",
			"run longer, warm up, or lower the load", noPlateau(lackSettling)},
		{"no_plateau", bench.SeverityWarn, "fewer requests were sent than a closed loop or a cap has places, of which 95 % were never taken",
			"send more requests than the concurrency", noPlateau(lackRequests)},
		{"no_plateau", bench.SeverityWarn, "95 % of the places were taken for less than 95 % of the time between the first and the last time that they were, and half of the empty time or more is the lateness of the client",
			"lower the concurrency, or give the client a core of its own", noPlateau(lackClient)},
		{"no_plateau", bench.SeverityWarn, "the same, and the client is not the cause",
			"look at the failures, and at the time that connections take", noPlateau(lackOther)},
		{"lengths_differ", bench.SeverityWarn, "more than 5 % of the ok requests have another input length than asked, a truncated prompt, or another output length than asked or forced",
			"compare only with runs of the same delivered lengths", findLengths},
		{"buffered_stream", bench.SeverityWarn, "more than 5 % of the ok requests came all at once or clumped",
			"look for a proxy that buffers (X-Accel-Buffering: no), or for compression", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if n := s.Flags[bench.AllAtOnce] + s.Flags[bench.Clumped]; float64(n) > bunchedMost*float64(s.Requests.OK) {
					say("itl_ms", "%d streams came bunched: %d all at once, %d clumped", n, s.Flags[bench.AllAtOnce], s.Flags[bench.Clumped])
				}
			}},
		{"warm_cache", bench.SeverityWarn, "more than 5 % of the prompt tokens came from the prefix cache, and the prompts do not begin alike on purpose",
			"use prompts that the server has not seen (--dataset random without --seed)", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if c, ok := s.Tokens.CachedShare.Get(); ok && c > cachedMost && !sharesPrefixes(x.Spec.Workload) {
					say("ttft_ms", "%.0f %% of the prompt tokens came from the prefix cache", 100*c)
				}
			}},
		{"estimated_tokens", bench.SeverityWarn, "the output tokens of a request are estimated by its output events",
			"let the server report usage (leave out --no-usage)", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if n := s.Tokens.OSLSource[bench.FromEstimate]; n > 0 {
					say("osl", "the output tokens of %d requests are an estimate: the number of output events", n)
				}
			}},
		{"fewer_tokens_than_events", bench.SeverityWarn, "the count of output tokens is below the number of output events in more than 5 % of the ok requests",
			"trust the rates of events and the latencies; compare the server's count with a tokenizer", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if n := x.flagged(bench.FewerTokensThanEvents); float64(n) > fewerMost*float64(s.Requests.OK) {
					say("osl", "the server counts fewer tokens than it sent events in %d of %d answers: token rates by its count may be too low", n, s.Requests.OK)
				}
			}},
		{"mixed_sources", bench.SeverityWarn, "token counts of one column come from several sources",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				for _, m := range []struct {
					metric string
					from   map[bench.Source]int
				}{{"isl", s.Tokens.ISLSource}, {"osl", s.Tokens.OSLSource}} {
					if len(m.from) > 1 {
						say(m.metric, "token counts of several sources are in one column: %s", sourceList(m.from))
					}
				}
			}},

		{"few_samples", bench.SeverityCell, "a percentile has fewer independent samples than bound it at 99 % confidence: p50 7, p90 44, p99 459",
			"--num-requests N or --duration T, or repeat the run", findFewSamples},
		{"no_interval", bench.SeverityCell, "a metric of several samples has no interval; the text says why",
			"repeat the run: a t-interval over 5 runs needs no independence", findNoInterval},

		{"client_limited", bench.SeverityVoid, "the mean rate of output events or requests, over the plateau if it lasts 1 s and else over the window, is above 80 % of the exact ceiling that `prony calibrate` found on this machine",
			"lower the load, or send it from more machines", findAboveCeiling},
		{"uncalibrated", bench.SeverityNote, "no calibration of this machine (host, CPU, kernel) with the engine and the stamps in use is stored, or it passed at no load",
			"measure it with `prony calibrate`", findUncalibrated},
		{"stamps_fell_back", bench.SeverityNote, "the stamps are of a lower grade than the best that was asked for, some exchanges have stamps of a lower grade than others, or more than 1 % of the reads have no kernel stamp",
			"", findFallenStamps},
		{"ring_drops", bench.SeverityNote, "the capture lost packets, or ended before the run",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				switch c := s.Client; {
				case c.RingTrouble != "":
					say("", "%s: what came later is dated by the reads", c.RingTrouble)
				case c.RingDropped > 0:
					say("", "the capture lost %d packets: their bytes are dated by the reads, or by what came behind them", c.RingDropped)
				}
			}},
		{"merged_reads", bench.SeverityNote, "without wire stamps, more than 1 % of the output events came in one read with another",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if merged, all := x.mergedEvents(); float64(merged) > mergedMost*float64(all) {
					say("itl_ms", "%.1f %% of the output events came in one read with another of their response: by these stamps there is no time between them",
						100*float64(merged)/float64(all))
				}
			}},
		{"clock_step", bench.SeverityNote, "the wall clock was stepped, and all stamps could be placed on the monotonic clock",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if c := s.Client; c.ClockSteps > 0 && c.UnrepairedSteps == 0 {
					say("", "the wall clock was stepped %d times; durations come from the monotonic clock, on which all stamps could be placed", c.ClockSteps)
				}
			}},
		{"stale_connections", bench.SeverityNote, "a request went out again since its reused connection had been closed",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if n := s.Client.StaleRetries; n > 0 {
					say("", "%d reused connections had been closed by the server; their requests went out again on fresh ones", n)
				}
			}},
		{"through_proxy", bench.SeverityNote, "the requests went through a proxy",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if p := x.Spec.Client.Proxy; p != "" {
					say("", "the requests went through the proxy %s: its time is in every latency", p)
				}
			}},
		{"too_short", bench.SeverityNote, "fewer than 50 requests: nothing can be said of steadiness",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if s.Steady.Word == wordTooShort && s.Requests.Sent > 0 {
					say("", "too short to say whether the run was steady (fewer than %d requests)", steadyMinRequests)
				}
			}},
		{"multi_token_chunks", bench.SeverityNote, "a stream brought several tokens an event",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if n := s.Flags[bench.MultiTokenChunks]; n > 0 {
					say("itl_ms", "%d streams brought several tokens an event: ITL is the gap between events, TPOT the time a token", n)
				}
			}},
		{"length_limited", bench.SeverityNote, "answers were cut off by the token limit, and their length was not forced",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if v, ok := s.Tokens.LengthLimited.Get(); ok && v > 0 && !x.Spec.Workload.ForceLength {
					say("osl", "%.0f %% of the answers were cut off by the token limit", 100*v)
				}
			}},
		{"invalid_json", bench.SeverityNote, "answers were to be JSON, and some that ended by themselves are none, or do not follow the schema",
			"look at them with --keep-text", findInvalidJSON},
		{"json_cut_off", bench.SeverityNote, "answers were to be JSON, and the output limit cut some off",
			"give the answers room: raise --osl", findCutOffJSON},
		{"length_not_forced", bench.SeverityNote, "random prompts, and an engine that cannot be told to go on after its end token",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
				if x.Spec.Workload.PromptSource != "" && !x.Spec.Workload.ForceLength && x.Spec.Target.Task == bench.Generate && s.Form == nil {
					say("osl", "the engine cannot be told to go on after its end token: answers may be shorter than asked")
				}
			}},
		{"estimated_prompts", bench.SeverityNote, "prompt lengths are an estimate",
			"", func(x *Context, s *bench.Summary, say func(string, string, ...any)) {
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
