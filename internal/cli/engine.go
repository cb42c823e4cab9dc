package cli

import (
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/isolate"
)

// engineCommand is the child of `prony run --isolate`. A person has no use for it.
func (a *app) engineCommand() *cobra.Command {
	return &cobra.Command{
		Use: "engine", Short: "The engine process of run --isolate", Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, stop := a.Signals() // they are the parent's to act on: what is in flight gets its grace
			defer stop()
			tuneRuntime()
			return isolate.Serve(a.Stdin, a.Stdout)
		},
	}
}

// engineProcess makes the command that starts this program again as an engine.
func (a *app) engineProcess() *exec.Cmd {
	cmd := exec.Command(a.Self, "engine")
	detach(cmd)
	return cmd
}
