package cli

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/wire"
)

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	var dry, asJSON, quiet, printSpec bool
	var file string
	cmd := &cobra.Command{
		Use:   "run --url URL",
		Short: "Send one workload at one load to one server, and measure it",
		Long: `run sends requests to a server, measures each, and prints what the numbers are and how far they can be trusted.

The load is a closed loop (--concurrency N), users (--users N --think 5s), or an open loop (--request-rate R, arrivals by --burstiness,
optionally under --max-concurrency). Rate and concurrency may go with time: linear:1,50,60s and the like. --arrivals trace sends when the
data set says. -f reads all flags from a YAML spec, with several phases, or repeats the run of a manifest.json. Everything is kept in a run directory: manifest.json (every condition), requests.jsonl (one line a request),
summary.json, requests.parquet, report.html and report.md.

Flags that vLLM's bench has too mean the same here and are marked (vLLM).`,
		Example: `  prony run --url http://127.0.0.1:8000
  prony run --url http://127.0.0.1:8000 --concurrency 16 --num-requests 500 --isl 1024 --osl 128
  prony run --url http://127.0.0.1:8000 --request-rate 10 --duration 2m --isl lognormal:800,400 --osl truncnormal:200,50,16,400
  prony run --url http://127.0.0.1:8000 --request-rate 10 --goodput "ttft:500 tpot:50" --warmup-requests 20
  prony run --url http://127.0.0.1:8000 --dataset jsonl --dataset-path prompts.jsonl --keep-text
  prony run --url http://127.0.0.1:8000 --dry-run
  prony run --url http://127.0.0.1:8000 --request-rate linear:1,50,5m --duration 5m
  prony run --url http://127.0.0.1:8000 --users 100 --think exp:5s --duration 10m
  prony run -f spec.yaml
  prony run -f runs/20261130-101500-llama/manifest.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			spec, err := f.specOf(file)
			if err != nil {
				return err
			}
			if printSpec {
				text, err := f.writeSpec(spec.Seed)
				if err == nil {
					_, err = a.Stdout.Write(text)
				}
				return err
			}
			j := &runJob{spec: spec, out: f.out, json: asJSON, quiet: quiet, dry: dry, command: redact(append([]string{"prony"}, a.Args...))}
			if j.deps, err = a.runDeps(&f); err != nil {
				return err
			}
			if quiet {
				j.deps.Say = nil
			}
			return a.carryOut(cmd.Context(), j)
		},
	}
	f.register(cmd.Flags())
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVarP(&file, "file", "f", "", "spec in YAML, with a key for each flag and a list of phases; or the manifest.json of a run, which is then repeated")
	cmd.Flags().BoolVar(&printSpec, "print-spec", false, "print the flags as a spec in YAML, and do nothing")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would be sent, how long it takes and how large the journal gets; nobody is contacted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the summary as JSON in place of the tables")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "no progress and no remarks on stderr")
	return cmd
}

// specOf builds the conditions of a run from its flags, and from a file where one is given.
func (f *runFlags) specOf(file string) (bench.Spec, error) {
	if file != "" {
		again, err := f.readSpec(file)
		if err != nil {
			return bench.Spec{}, err
		}
		if again != nil {
			return *again, nil
		}
	}
	return f.spec(newSeed)
}

// newSeed draws the seed of a run that gives none. It stays below 2^53, so that every JSON reader keeps it exactly.
func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:]) >> 11
}

// runJob is a run as a command asks for it.
type runJob struct {
	spec             bench.Spec
	deps             run.Deps
	out              string
	command          []string
	json, quiet, dry bool
	definitions      bool   // print what each metric means
	next             string // the command to try next; "" = decide by the result
}

// carryOut prepares and executes a run, and prints its result.
func (a *app) carryOut(ctx context.Context, j *runJob) error {
	tuneRuntime()
	signals := a.watchSignals()
	defer signals.stop()
	prepare, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-signals.interrupt:
			cancel()
		case <-prepare.Done():
		}
	}()
	j.spec.Target.HasKey = j.deps.Key != "" || hasKey(j.deps.Header)
	j.deps.Command = j.command
	if !j.dry {
		at := j.out
		if at == "" {
			at = freePath(store.DefaultPath(time.Now(), j.spec.Label))
		}
		if err := store.Free(at); err != nil {
			return err
		}
	}
	var plan *run.Plan
	if err := unlessDone(prepare, func() (err error) {
		if plan, err = run.Prepare(prepare, j.spec, j.deps, j.dry); err == nil && j.dry {
			err = a.showPlan(plan, j)
		}
		return err
	}); err != nil || j.dry {
		return err
	}
	if plan.Spec.Label == "" {
		plan.Spec.Label = plan.Spec.Target.Model
	}
	path := j.out
	if path == "" {
		path = freePath(store.DefaultPath(time.Now(), plan.Spec.Label))
	}
	if !j.quiet && !j.json {
		a.sayPlan(plan)
	}
	tuneMemory(plan.Spec)
	view := a.newProgressView(plan, j.quiet)
	res, err := run.Execute(ctx, plan, path, run.Control{Interrupt: signals.interrupt, Kill: signals.kill, Progress: view.show})
	view.done()
	if res == nil || res.Summary == nil { // the records are kept, but there is no result to show
		return run.FirstFault(err)
	}
	rerr := a.writeReports(res)
	if perr := a.printResult(res, j); err == nil {
		err = perr
	}
	if err = errors.Join(err, rerr); err != nil {
		return run.FirstFault(err)
	}
	if res.Unusable != nil && res.Manifest.State != bench.Interrupted {
		return res.Unusable
	}
	a.code = res.ExitCode()
	return nil
}

// unlessDone waits for f, or for the end of the context: a large data set takes its time, and so does a long prompt. What f still does
// then ends with the process.
func unlessDone(ctx context.Context, f func() error) error {
	c := make(chan error, 1)
	go func() { c <- f() }()
	var err error
	select {
	case err = <-c:
		if err == nil || ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	return fault.New(fault.Interrupted, "interrupted before the first request", "nothing was measured")
}

func hasKey(header []wire.Field) bool {
	for _, f := range header {
		if strings.EqualFold(f.Name, "authorization") || strings.EqualFold(f.Name, "x-api-key") || strings.EqualFold(f.Name, "api-key") {
			return true
		}
	}
	return false
}

// freePath adds a number to a default path that is taken: two runs may begin in one second.
func freePath(path string) string {
	for i, p := 2, path; ; i++ {
		if _, err := os.Stat(p); err != nil {
			return p
		}
		p = fmt.Sprintf("%s-%d", path, i)
	}
}

// tuneRuntime gives the client's thread a processor of its own, and keeps memory low: where the kernel stamps what arrives, a read that
// a collection made late costs nothing.
func tuneRuntime() {
	runtime.GOMAXPROCS(runtime.NumCPU() + 1)
	debug.SetGCPercent(50)
}

// collectAt is how much garbage may lie beside what a run needs, in percent of it, by the requests in flight. A collection takes processor
// time from the folding and holds it up for a moment, so few are better; with many streams memory would be large.
var collectAt = []struct{ below, percent int }{{2000, 150}, {4000, 50}, {math.MaxInt, 15}}

// tuneMemory sets when garbage is collected.
func tuneMemory(s bench.Spec) {
	most := 0
	for _, ph := range s.Phases {
		most = max(most, ph.Load.InFlightLimit())
	}
	for _, c := range collectAt {
		if most < c.below {
			debug.SetGCPercent(c.percent)
			return
		}
	}
}

// signals are the wishes of a person to end the run.
type signals struct {
	interrupt, kill chan struct{}
	stop            func()
}

// watchSignals turns the first signal into an interrupt, the second into a kill.
func (a *app) watchSignals() *signals {
	s := &signals{interrupt: make(chan struct{}), kill: make(chan struct{})}
	in, stopListening := a.Signals()
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for n := 0; n < 2; n++ {
			select {
			case <-in:
			case <-done:
				return
			}
			if n == 0 {
				a.say("interrupted: what is in flight may end; once more to end at once")
				close(s.interrupt)
			} else {
				close(s.kill)
			}
		}
	}()
	s.stop = func() {
		stopListening()
		close(done)
		<-gone
	}
	return s
}
