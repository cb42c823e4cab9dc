package cli

import (
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/telemetry"
)

func (a *app) envCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "env [--url URL]",
		Short: "Print the environment sheet: host, GPU, and the engine behind a URL",
		Long: `env prints what prony can find out about this machine and, with --url, about the engine there: the sheet that every run keeps in
its manifest. No generation is asked for.`,
		Example: "  prony env\n  prony env --url http://127.0.0.1:8000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sheet := bench.Sheet{Taken: time.Now()}
			ctx, stop := a.untilSignal(cmd.Context())
			defer stop()
			if len(f.urls) > 0 {
				f.prompt = "-" // a data set that needs no probe
				spec, err := f.spec(newSeed)
				if err != nil {
					return err
				}
				deps, err := a.runDeps(&f)
				if err != nil {
					return err
				}
				var plan *run.Plan
				if err := unlessDone(ctx, func() (err error) { plan, err = run.Prepare(ctx, spec, deps, false); return err }); err != nil {
					return err
				}
				sheet = plan.Sheet
			} else {
				sheet.Host = telemetry.HostSheet(ctx)
				sheet.GPUs, sheet.GPUNote = telemetry.GPUSheet(ctx)
			}
			enc := json.NewEncoder(a.Stdout)
			enc.SetIndent("", "  ")
			return enc.Encode(sheet)
		},
	}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(all)
	for _, name := range append([]string{"url", "engine", "model", "connect-timeout", "wait-ready"}, accessNames...) {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	f.set = cmd.Flags()
	return cmd
}
