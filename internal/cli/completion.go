package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/discover"
	"github.com/prony-bench/prony/internal/sim"
)

// completeWords offers the words that a flag can have.
func completeWords(cmd *cobra.Command) {
	words := map[string][]string{
		"endpoint": endpointNames(), "events": {"full", "none"}, "connection": {"reuse", "new"}, "http": {"1.1", "2"}, "auth": discover.Auths, "proxy": {"env", "http://"},
		"stamps": stampGrades, "max-tokens-field": maxTokensFields, "mode": {"exact", "engine", "script"}, "dialect": sim.Dialects(),
		"dataset": builtin.Datasets().Names(), "engine": append([]string{"auto"}, builtin.Engines().Names()...),
		"goodput": {"ttft:", "tpot:", "itl:", "e2el:"},
		"isl":     {"uniform:", "normal:", "truncnormal:", "lognormal:"}, "osl": {"uniform:", "normal:", "truncnormal:", "lognormal:"},
		"request-rate": {"inf"}, "burstiness": {"1", "inf"}, "format": {"text", "html", "md", "csv", "json"},
	}
	for name, list := range words {
		if cmd.Flags().Lookup(name) != nil {
			cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	if cmd.Name() == "sim" {
		laws := []string{"uniform:", "normal:", "lognormal:"}
		for name, list := range map[string][]string{"ttft": laws, "itl": laws, "output": laws, "faults": sim.FaultKinds, "preset": {sim.DefaultPreset}} {
			cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
		}
	}
}

// endpointNames lists the words for the endpoints of all engines.
func endpointNames() (names []string) {
	for _, e := range builtin.Engines().All() {
		for _, ep := range e.Endpoints() {
			if !slices.Contains(names, ep.Name) {
				names = append(names, ep.Name)
			}
		}
	}
	return names
}
