package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/report"
	"github.com/prony-bench/prony/internal/run"
)

// ofTheLoad are the flags that the next command gives itself, or that would be wrong in it: a directory is used once, and a seed again
// would meet the cache of prompts that it filled.
var ofTheLoad = []string{"concurrency", "request-rate", "burstiness", "max-concurrency", "num-requests", "out", "seed"}

// nextCommand names the command that is worth trying after a result, with all conditions that were given, and their secrets left out.
func nextCommand(res *run.Result) string {
	m, s := res.Manifest, res.Summary
	load := m.Spec.Phases[len(m.Spec.Phases)-1].Load
	noneDue := slices.ContainsFunc(s.Caveats, func(c bench.Caveat) bool { return c.Code == "none_due" })
	mostlyFailed := res.Unusable != nil || s.Requests.OK == 0 || 2*s.Requests.Failed > s.Requests.Sent
	switch rps, ok := s.Metrics.Value("request_throughput"); {
	case noneDue:
		return strings.Join(append(again(m, "duration", "concurrency", "out", "seed"), "--num-requests", "100"), " ")
	case mostlyFailed: // the first of them, event by event
		words := givenFlags(m.Command, func(name string) bool { return slices.Contains(probeFlags, name) || slices.Contains(accessNames, name) })
		return strings.Join(append([]string{"prony", "probe", report.ShellQuote(m.Spec.Target.URLs[0])}, words...), " ")
	case ok && load.Shape == bench.Closed && m.Spec.Target.Stream:
		// a rate that this server can surely hold
		words := append(again(m, ofTheLoad...), "--request-rate", twoDigits(0.7*rps))
		if m.Planned > 0 {
			words = append(words, "--num-requests", fmt.Sprint(max(100, m.Planned)))
		}
		return strings.Join(words, " ")
	}
	return "prony report " + res.Dir.Path + " --format html --out report.html"
}

// again is the command of a run without some of its flags.
func again(m *bench.Manifest, without ...string) []string {
	return append([]string{"prony", "run"}, givenFlags(m.Command, func(name string) bool { return !slices.Contains(without, name) })...)
}

// givenFlags returns those flags of a run's command that are wanted, as they were given, quoted for a shell.
func givenFlags(command []string, wanted func(name string) bool) (words []string) {
	var f runFlags
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(set)
	for i := 0; i < len(command); i++ {
		name, ok := strings.CutPrefix(command[i], "--")
		if !ok {
			continue
		}
		name, _, whole := strings.Cut(name, "=")
		name = string(normalizeFlag(nil, name))
		fl, begin := set.Lookup(name), i
		if fl == nil {
			continue // of the command's own, such as --json
		}
		if !whole && fl.NoOptDefVal == "" {
			i++
		}
		if wanted(name) {
			for _, w := range command[begin:min(i+1, len(command))] {
				words = append(words, report.ShellQuote(w))
			}
		}
	}
	return words
}

// twoDigits rounds to two significant digits, without an exponent.
func twoDigits(v float64) string {
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return strconv.FormatFloat(math.Round(v/unit)*unit, 'f', max(0, -int(math.Floor(math.Log10(unit)))), 64)
}
