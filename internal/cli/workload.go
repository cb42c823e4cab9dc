package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/tty"
	"github.com/prony-bench/prony/internal/workload"
)

// workloadJob is what the commands below workload were asked for.
type workloadJob struct {
	flags runFlags
	json  bool
	file  string
}

// mostShown is how many requests are looked at of a load without an end of its own.
const mostShown = 1000

func (a *app) workloadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workload",
		Short: "Look at what a run would send, or write it to a file; nothing is sent",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var show, export workloadJob
	shown := &cobra.Command{
		Use:   "show",
		Short: "Lengths, shared prefixes and arrivals of what a run would send",
		Long: `show takes the flags of run, and tells what that run would send: the lengths of prompts and answers, the part of the prompts' tokens that
an unlimited prefix cache would have had already, classes and conversations, and the arrivals. A trace is shown with its own times, unless
another load is given. Without --url nobody is asked, and a word counts as a token.`,
		Example: `  prony workload show --dataset mooncake --dataset-path conversation_trace.jsonl
  prony workload show --mix "512,128:0.7;4096,512:0.3" --request-rate 10 --num-requests 1000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showWorkload(cmd.Context(), &show) },
	}
	show.flags.register(shown.Flags())
	shown.Flags().SortFlags = false
	shown.Flags().BoolVar(&show.json, "json", false, "print JSON in place of the tables")
	exported := &cobra.Command{
		Use:   "export --to FILE",
		Short: "Write what a run would send as JSON lines, for --dataset jsonl and other tools",
		Long: `export takes the flags of run, and writes the requests of that run to a file, one JSON object a line: the prompt, messages or token ids,
output_tokens, and with a schedule the timestamp in ms. --dataset jsonl reads the same requests from it, and --arrivals trace with it sends
them at the same times. Without --url nobody is asked, and a word counts as a token.`,
		Example: `  prony workload export --dataset azure --dataset-path AzureLLMInferenceTrace_code.csv --seed 1 --to azure.jsonl
  prony run --url http://127.0.0.1:8000 --dataset jsonl --dataset-path azure.jsonl --arrivals trace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.exportWorkload(cmd.Context(), &export) },
	}
	export.flags.register(exported.Flags())
	exported.Flags().SortFlags = false
	exported.Flags().StringVar(&export.file, "to", "", "file to write; - is stdout")
	cmd.AddCommand(shown, exported)
	return cmd
}

// planned prepares the run that the flags ask for, without sending anything.
func (a *app) planned(ctx context.Context, f *runFlags) (*run.Plan, error) {
	offline := len(f.urls) == 0
	if offline {
		f.urls = []string{"http://127.0.0.1:8000"}
	}
	if d, err := builtin.Datasets().Get(f.dataset); err == nil && f.arrivals == "" && !f.given("request-rate") && !f.given("concurrency") && !f.given("max-concurrency") {
		_, invents := d.(workload.Inventor)
		if _, timed := d.(workload.Timed); timed && invents {
			f.arrivals = "trace"
		}
	}
	spec, err := f.spec(newSeed)
	if err != nil {
		return nil, err
	}
	deps, err := a.runDeps(f)
	if err != nil {
		return nil, err
	}
	deps.Say = nil
	return run.Prepare(ctx, spec, deps, offline)
}

func (a *app) exportWorkload(ctx context.Context, j *workloadJob) error {
	if j.file == "" {
		return fault.New(fault.Usage, "no file is given", "give one with --to FILE; --to - is stdout")
	}
	p, err := a.planned(ctx, &j.flags)
	if err != nil {
		return err
	}
	out := io.Writer(a.Stdout)
	var f *os.File
	if j.file != "-" {
		if f, err = os.OpenFile(j.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err != nil {
			return fault.Wrap(fault.Usage, err, "--to", "choose a file that is not there yet")
		}
		defer f.Close()
		out = f
	}
	w := bufio.NewWriterSize(out, 1<<16)
	n := 0
	for q, err := range p.Sequence(mostShown) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fault.New(fault.Interrupted, "interrupted while writing "+j.file, "the file is not whole")
		}
		due, has := q.Due.Get()
		row, err := workload.Row(&q.Request, due, has)
		if err != nil {
			return err
		}
		if _, err := w.Write(row); err != nil {
			return fault.Wrap(fault.Internal, err, "write "+j.file, "is the disk full?")
		}
		n++
	}
	if err := w.Flush(); err != nil {
		return fault.Wrap(fault.Internal, err, "write "+j.file, "is the disk full?")
	}
	if f != nil {
		if err := f.Close(); err != nil {
			return fault.Wrap(fault.Internal, err, "write "+j.file, "is the disk full?")
		}
		a.say(fmt.Sprintf("%d requests in %s; seed %d", n, j.file, p.Spec.Seed))
	}
	if p.Spec.Workload.ForceLength {
		a.say("the output lengths of these requests are forced where the engine can: add --ignore-eos when you send them from the file")
	}
	return nil
}

func (a *app) showWorkload(ctx context.Context, j *workloadJob) error {
	p, err := a.planned(ctx, &j.flags)
	if err != nil {
		return err
	}
	var v workload.View
	for q, err := range p.Sequence(mostShown) {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fault.New(fault.Interrupted, "interrupted", "--num-requests looks at fewer requests")
		}
		due, has := q.Due.Get()
		v.Add(&q.Request, due, has)
	}
	v.Close()
	var b bytes.Buffer
	if j.json {
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		if err := enc.Encode(struct {
			Workload bench.Workload `json:"workload"`
			Seed     uint64         `json:"seed"`
			workload.View
		}{p.Spec.Workload, p.Spec.Seed, v}); err != nil {
			return err
		}
	} else {
		writeView(&b, p, &v)
	}
	_, err = a.Stdout.Write(b.Bytes())
	return err
}

// writeView prints what requests look like.
func writeView(w io.Writer, p *run.Plan, v *workload.View) {
	s := p.Spec.Workload
	fmt.Fprintf(w, "data set       %s\n", s.Dataset)
	if s.Rows != nil {
		fmt.Fprintf(w, "file           %s: %s\n", cmp.Or(s.Path, s.Lengths), workload.Describe(s.Rows))
	}
	if s.PromptSource != "" {
		fmt.Fprintf(w, "prompts        %s; seed %d\n", s.PromptSource, p.Spec.Seed)
	}
	fmt.Fprintf(w, "requests       %d\n", v.Requests)
	if v.Conversations > 0 {
		fmt.Fprintf(w, "conversations  %d, at most %d turns\n", v.Conversations, max(1, v.Turns))
	}
	for i, name := range slices.Sorted(maps.Keys(v.Classes)) {
		head := ""
		if i == 0 {
			head = "classes"
		}
		fmt.Fprintf(w, "%-14s %s: %d (%.1f %%)\n", head, name, v.Classes[name], 100*float64(v.Classes[name])/float64(v.Requests))
	}
	fmt.Fprintf(w, "shared prefix  %.1f %% of the prompts' tokens would be in an unlimited prefix cache\n", 100*v.Shared)
	if a := v.Arrivals; a != nil {
		fmt.Fprintf(w, "arrivals       %.4g requests/s over %s; coefficient of variation of the gaps %.2f, dispersion by the second %.2f (Poisson: 1 and 1)\n",
			a.Rate, spanWords(a.Span), a.GapCV, a.Dispersion)
		fmt.Fprintf(w, "               %d different moments, at most %d requests in a second\n", a.Distinct, a.Peak)
		fmt.Fprintf(w, "               %s\n", tty.Spark(a.Counts))
	}
	fmt.Fprintf(w, "\n%-14s %9s %9s %9s %9s %9s %9s\n", "tokens", "mean", "min", "p50", "p90", "p99", "max")
	in := "input"
	if v.InEstimated {
		in = "input (est.)"
	}
	for _, l := range []struct {
		name string
		workload.Lengths
	}{{in, v.In}, {"output", v.Out}} {
		fmt.Fprintf(w, "%-14s %9.1f %9.0f %9.0f %9.0f %9.0f %9.0f\n", l.name, l.Mean, l.Min, l.P50, l.P90, l.P99, l.Max)
	}
	writeBars(w, in, v.In.Values)
	writeBars(w, "output", v.Out.Values)
}

const (
	barRows  = 12
	barWidth = 50
)

// writeBars draws sorted lengths in classes: equal ones, or by powers of two where the longest is far from the shortest.
func writeBars(w io.Writer, name string, sorted []float64) {
	if len(sorted) == 0 || sorted[0] == sorted[len(sorted)-1] {
		return
	}
	lo, hi := math.Max(1, sorted[0]), sorted[len(sorted)-1]
	byPowers := hi/lo > 16
	var edges []float64
	if byPowers {
		for e := math.Pow(2, math.Floor(math.Log2(lo))); e <= hi; e *= 2 {
			edges = append(edges, e)
		}
	} else {
		step := math.Ceil((hi - lo + 1) / barRows)
		for e := lo; e <= hi; e += step {
			edges = append(edges, e)
		}
	}
	counts := make([]int, len(edges))
	for _, x := range sorted {
		k, found := slices.BinarySearch(edges, x)
		if !found {
			k--
		}
		counts[max(0, k)]++
	}
	most := slices.Max(counts)
	fmt.Fprintf(w, "\n%s tokens from\n", name)
	for i, n := range counts {
		fmt.Fprintf(w, "%10.0f %7d %s\n", edges[i], n, strings.Repeat("█", (n*barWidth+most-1)/most))
	}
}
