package report

import (
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// LoadWords says when requests are sent.
func LoadWords(l bench.Load) string { return loadWords(l) }

// loadWords names the law of arrivals.
func loadWords(l bench.Load) string {
	words := shapeWords(l)
	if l.Cap > 0 {
		words += ", at most " + count(l.Cap) + " in flight"
	}
	if l.CancelRate > 0 {
		words += ", " + percent(l.CancelRate) + " cancelled after " + l.CancelAfter.String()
	}
	return words
}

func shapeWords(l bench.Load) string {
	rate := plain(l.Rate) + " req/s"
	if l.Profile != "" {
		rate = profileWords(l.Profile, " req/s")
	}
	switch l.Shape {
	case bench.Closed:
		words := "closed loop of " + count(l.Concurrency)
		if l.Profile != "" {
			words = "closed loop of " + profileWords(l.Profile, "")
		}
		return words + pauseWords(", thinking ", l.Think)
	case bench.Users:
		return plural(l.Concurrency, "user", "users") + pauseWords(", thinking ", l.Think) + pauseWords(", one request in ", l.Pace)
	case bench.Prefill:
		return count(l.Concurrency) + " in prefill"
	case bench.Inf:
		return "all at once"
	case bench.Phases:
		return "phases of different loads"
	case bench.Trace:
		return traceWords(l)
	case bench.Gamma, bench.Weibull:
		return string(l.Shape) + "(" + plain(l.Burstiness) + ") " + rate
	case bench.Poisson:
		return "Poisson " + rate
	}
	return joined(" ", string(l.Shape), rate)
}

func pauseWords(before, law string) string { return prefix(before, clean(law)) }

// mostProfile is how much of a profile is shown: a file may have thousands of pieces.
const mostProfile = 60

// profileWords says how a level with a unit goes with time: "1 to 50 req/s linearly in 60s".
func profileWords(p, unit string) string {
	name, rest, _ := strings.Cut(p, ":")
	a := strings.Split(rest, ",")
	switch {
	case (name == "linear" || name == "exp") && len(a) == 3:
		how := map[string]string{"linear": "linearly", "exp": "exponentially"}[name]
		return clean(a[0] + " to " + a[1] + unit + " " + how + " in " + a[2])
	case name == "steps":
		return clean(strings.Replace(strings.Join(a, ", "), "/", unit+" for ", 1) + " each")
	case name == "bursts" && len(a) == 4:
		return clean(a[0] + unit + " for " + a[1] + ", then " + a[2] + " for " + a[3] + ", again and again")
	case name == "sine" && len(a) == 3:
		return clean(a[0] + " ± " + a[1] + unit + " over " + a[2])
	case len(p) > mostProfile:
		return plural(len(a), "piece", "pieces") + unit
	}
	return clean(strings.Join(a, ", ") + unit)
}

func traceWords(l bench.Load) string {
	words := "at the timestamps of the data set"
	if l.Times != "" {
		words = "at the timestamps of " + clean(l.Times)
	}
	if l.Speedup > 0 && l.Speedup != 1 {
		words += ", " + plain(l.Speedup) + " times as fast"
	}
	moment := func(before string, d time.Duration) {
		if d > 0 {
			words += before + d.String()
		}
	}
	moment(", from ", l.From)
	moment(" to ", l.To)
	moment(", beginning after ", l.Offset)
	return words
}
