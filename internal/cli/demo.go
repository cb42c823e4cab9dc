package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/store"
)

// demoRun is the run of the demo, in the flags of `prony run`.
var demoRun = []string{"--request-rate", "25", "--num-requests", "200", "--isl", "lognormal:512,256,4096", "--osl", "truncnormal:128,32,16,256",
	"--goodput", "ttft:200 tpot:50", "--seed", "7", "--label", "demo"}

// demoSim is the server of the demo: a model of one GPU, so that its latencies look like an engine's.
var demoSim = []string{"sim", "--listen", "127.0.0.1:0", "--mode", "engine", "--preset", "h100/llama-8b/fp16/tp1", "--until-stdin-closes"}

func (a *app) demoCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "The whole line on a simulated engine: run, verdict, report",
		Long: `demo starts the simulated engine in a process of its own, sends it 200 streaming chat requests (Poisson arrivals, log-normal input
lengths, truncated-normal output lengths), prints the result with its definitions, and writes a run directory with an HTML report.
No network, no model, no GPU; it takes about 15 s.`,
		Example: "  prony demo\n  prony demo --out /tmp/demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out != "" {
				if err := store.Free(out); err != nil {
					return err
				}
			}
			url, stop, err := a.startSim(cmd.Context(), demoSim)
			if err != nil {
				return err
			}
			defer stop()
			var f runFlags
			set := pflag.NewFlagSet("run", pflag.ContinueOnError)
			f.register(set)
			args := append([]string{"--url", url}, demoRun...)
			if err := set.Parse(args); err != nil {
				return fmt.Errorf("the demo's own flags: %w", err)
			}
			spec, err := f.spec(newSeed)
			if err != nil {
				return err
			}
			a.say("simulated engine at " + url + " (one H100 with an 8B model, modelled)")
			j := &runJob{spec: spec, out: out, definitions: true, command: append([]string{"prony", "run"}, args...),
				next: "prony run --url http://127.0.0.1:8000     (your own server)"}
			if j.deps, err = a.runDeps(&f); err != nil {
				return err
			}
			j.deps.Key = "" // the demo needs none
			return a.carryOut(cmd.Context(), j)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "run directory, exactly this one (default runs/<time>-demo)")
	return cmd
}

// startSim starts this program again as a simulated engine, and returns its URL and how to end it. The child ends with its stdin,
// so that it does not outlive this process.
func (a *app) startSim(ctx context.Context, args []string) (url string, stop func(), err error) {
	cmd := exec.CommandContext(ctx, a.Self, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	var words strings.Builder
	cmd.Stderr = &words
	cmd.WaitDelay = childEnd
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return "", nil, fault.Wrap(fault.Internal, err, "start the simulated engine", "")
	}
	stop = func() {
		in.Close()
		timer := time.AfterFunc(childEnd, func() { cmd.Process.Kill() })
		defer timer.Stop()
		cmd.Wait()
	}
	line, err := bufio.NewReader(io.LimitReader(out, 4096)).ReadString('\n')
	url, _, ok := strings.Cut(line, " ")
	if err != nil || !ok {
		stop()
		return "", nil, fault.New(fault.Internal, "the simulated engine did not start: "+oneLine(words.String()), "")
	}
	return url, stop, nil
}
