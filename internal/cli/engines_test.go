package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/builtin"
)

// The help of --engine and --endpoint has every word of the catalogue, and none that is not there.
func TestHelpOfEngines(t *testing.T) {
	var f runFlags
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(set)
	_, words, _ := strings.Cut(set.Lookup("engine").Usage, ": ")
	if want := "auto, " + strings.Join(builtin.Engines().Names(), ", "); words != want {
		t.Errorf("--engine %s, the catalogue %s", words, want)
	}
	usage := set.Lookup("endpoint").Usage
	for _, e := range builtin.Engines().All() {
		for _, ep := range e.Endpoints() {
			if !strings.Contains(", "+usage, ", "+ep.Name+",") && !strings.Contains(usage, ep.Name+" (") {
				t.Errorf("--endpoint does not name %s of %s: %s", ep.Name, e.Name(), usage)
			}
		}
	}
	words, _, _ = strings.Cut(usage, ", or a path")
	known := map[string]bool{}
	for _, name := range endpointNames() {
		known[name] = true
	}
	depth := 0
	for _, w := range strings.FieldsFunc(words, func(r rune) bool { // those outside of parentheses
		switch r {
		case '(':
			depth++
		case ')':
			depth--
			return true
		}
		return depth > 0 || r == ',' || r == ' '
	}) {
		if !known[w] {
			t.Errorf("--endpoint names %s, which no engine has", w)
		}
	}
}

// What an endpoint can do is said of every one: a figure that nobody tells is an estimate.
func TestEstimates(t *testing.T) {
	for _, e := range builtin.Engines().All() {
		for i, ep := range e.Endpoints() {
			s := sheetOf(e).Endpoints[i]
			var gaps bool
			for _, x := range s.Estimates {
				gaps = gaps || x.Figure == "token gaps"
			}
			if want := s.Task == "generate" && s.PerEvent != told && !ep.Can.Whole; gaps != want {
				t.Errorf("%s %s: tokens of each event %s, but %v", e.Name(), ep.Name, s.PerEvent, s.Estimates)
			}
			if s.Task == "generate" && !s.Usage {
				t.Errorf("%s %s tells no usage: say so in docs/engines.md", e.Name(), ep.Name)
			}
		}
	}
}
