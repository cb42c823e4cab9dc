package cli

import (
	"fmt"
	"math"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

// levelLine tells of a level in one line.
func levelLine(l bench.CalibrationLevel) string {
	verdict := "passed"
	if !l.Passed {
		verdict = l.Why
	}
	if l.ServerLimited {
		verdict += ", server_limited"
	}
	return fmt.Sprintf("%s: TTFT off by %s us mean, %s us p99; ITL by %.3f %%; %s", levelName(l), micros(l.TTFT.Mean), micros(l.TTFT.P99), 100*l.ITLRelative, verdict)
}

func levelName(l bench.CalibrationLevel) string {
	switch {
	case l.Streams == 1:
		return "1 stream"
	case l.Streams > 0:
		return thousands(float64(l.Streams)) + " streams"
	}
	return thousands(l.Rate) + " req/s"
}

// micros writes ns in us, as far as 0.01 us.
func micros(ns int64) string { return thousands(math.Round(float64(ns)/10) / 100) }

func thousands(v float64) string { return plot.Thousands(sig(v)) }

// calibrationText is the result for a person. A row is 79 columns wide.
func calibrationText(c *bench.Calibration, path string, runsReadIt bool) string {
	var b strings.Builder
	alone := "server and client on processors of their own"
	if !c.Pinned {
		alone = "server and client share the processors"
	}
	fmt.Fprintf(&b, "%s stamps · engine %s · %s\n\n", c.Stamp, c.Engine, alone)
	fmt.Fprintf(&b, "%-14s%7s%8s   %-18s   %-18s%8s\n", "", "", "", "TTFT off by, us", "ITL off by, us", "lag, us")
	row := func(name, requests, events string, e [6]string, lag string) {
		fmt.Fprintf(&b, "%-14s%7s%8s", name, requests, events)
		for _, v := range e {
			fmt.Fprintf(&b, "%7s", v)
		}
		fmt.Fprintf(&b, "%8s\n", lag)
	}
	row("load", "req/s", "event/s", [6]string{"mean", "p50", "p99", "mean", "p50", "p99"}, "p99")
	for _, l := range c.Levels {
		lag := "-" // a closed loop has none
		if l.Streams == 0 {
			lag = micros(l.Lag99)
		}
		row(levelName(l), thousands(l.RequestRate), thousands(l.EventRate), [6]string{micros(l.TTFT.Mean), micros(l.TTFT.P50), micros(l.TTFT.P99),
			micros(l.ITL.Mean), micros(l.ITL.P50), micros(l.ITL.P99)}, lag)
	}
	b.WriteByte('\n')
	for _, l := range c.Levels {
		if !l.Passed {
			fmt.Fprintf(&b, "! %s did not pass: %s\n", levelName(l), l.Why)
		}
		if l.ServerLimited {
			fmt.Fprintf(&b, ". %s is server_limited: %s %% of the server's writes were late\n", levelName(l), thousands(math.Round(100*l.LateWrites)))
		}
		if n := l.OK - l.Joined; n > 0 {
			fmt.Fprintf(&b, ". %s: %d of %d answers have no truth and are in no figure\n", levelName(l), n, l.OK)
		}
		if l.UserArrivals > 0 {
			fmt.Fprintf(&b, ". %s: %d of %d arrivals have no stamp of the kernel, and their TTFT seems off by more\n", levelName(l), l.UserArrivals, l.Joined)
		}
	}
	fmt.Fprintf(&b, "%s\nkept in %s%s\n", ceilingText(c.Ceiling), path, map[bool]string{true: "; runs on this machine carry it"}[runsReadIt])
	return b.String()
}

// ceilingText says up to which load the client holds.
func ceilingText(c bench.Ceiling) string {
	if c.EventRate == 0 {
		return "ceiling: not known, no level passed"
	}
	least := map[bool]string{true: "at least "}
	return fmt.Sprintf("ceiling: %s%s output events/s, %s%s requests/s", least[c.EventsBound], thousands(c.EventRate), least[c.RequestsBound], thousands(c.RequestRate))
}
