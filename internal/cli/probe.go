package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
)

// probePrompt is asked when no other prompt is given.
const probePrompt = "Write one sentence about the sea."

// probeFlags are the flags of a run that a probe takes.
var probeFlags = []string{"engine", "endpoint", "model", "extra-body", "prompt", "osl", "temperature", "top-p", "top-k", "sampling-seed",
	"stop", "ignore-eos", "min-tokens", "max-tokens-field", "no-usage", "no-stream", "logprobs", "timeout", "connect-timeout", "http", "wait-ready"}

func (a *app) probeCommand() *cobra.Command {
	var f runFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "probe URL",
		Short: "Send one request and show it event by event",
		Long: `probe sends one request and shows each event of the answer with its time: which is the first token, which are none, how many
tokens the server counts and where the count comes from.`,
		Example: `  prony probe http://127.0.0.1:8000
  prony probe http://127.0.0.1:8000 --endpoint completions --prompt "Once upon a time" --osl 16`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.urls = args
			switch {
			case f.prompt == "" && strings.HasSuffix(f.endpoint, "rerank"):
				f.isl, f.batch = "32", 2 // random documents: a prompt is no query with documents
			case f.prompt == "":
				f.prompt = probePrompt
			}
			if f.osl == "" {
				f.osl = "32"
			}
			spec, err := f.spec(newSeed)
			if err != nil {
				return err
			}
			deps, err := a.runDeps(&f)
			if err != nil {
				return err
			}
			deps.Say = a.say
			ctx, stop := a.untilSignal(cmd.Context())
			defer stop()
			var plan *run.Plan
			if err := unlessDone(ctx, func() (err error) { plan, err = run.Prepare(ctx, spec, deps, false); return err }); err != nil {
				return err
			}
			p, err := run.Probe(ctx, plan)
			if err != nil && p == nil {
				return err
			}
			if err := a.printProbe(p, asJSON); err != nil {
				return err
			}
			switch r := p.Record; {
			case err != nil:
				return fault.New(fault.Interrupted, "interrupted", "what had come until then is above")
			case unusable(r.Outcome):
				return fault.New(fault.Target, fmt.Sprintf("%s cannot be used (%s): %s", p.URL, r.Outcome, r.Error), "check the URL, --endpoint and --model")
			case r.Outcome.Failed():
				a.code = fault.Void
			}
			return nil
		},
	}
	all := pflag.NewFlagSet("run", pflag.ContinueOnError)
	f.register(all)
	for _, name := range append(probeFlags, accessNames...) {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	f.set = cmd.Flags()
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the record as the journal holds it")
	return cmd
}

// unusable tells whether an outcome is one that no second try changes.
func unusable(o bench.Outcome) bool {
	switch o {
	case bench.Rejected, bench.Malformed, bench.DNS, bench.Refused, bench.TLSFailed:
		return true
	}
	return false
}

// untilSignal returns a context that ends with the first signal.
func (a *app) untilSignal(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	in, stop := a.Signals()
	go func() {
		select {
		case <-in:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { stop(); cancel() }
}

func (a *app) printProbe(p *run.Probed, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(a.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(p.Record)
	}
	var b bytes.Buffer
	writeProbe(&b, p)
	_, err := a.Stdout.Write(b.Bytes())
	return err
}

func writeProbe(w io.Writer, p *run.Probed) {
	r := p.Record
	fmt.Fprintf(w, "POST %s\n%s\n\n", p.URL, oneLine(shorten(string(p.Call.Body), 400)))
	line := func(at time.Duration, format string, args ...any) {
		fmt.Fprintf(w, "%10.3f ms  %s\n", float64(at)/1e6, oneLine(fmt.Sprintf(format, args...)))
	}
	sent, ok := r.Sent.Get()
	if !ok {
		fmt.Fprintf(w, "never sent: %s\n", oneLine(r.Error))
		return
	}
	if d, ok := r.Connect.Get(); ok {
		line(-d, "connecting (not counted)")
	}
	line(0, "sent")
	if h, ok := r.Headers.Get(); ok {
		kind := strings.Join(p.Header["Content-Type"], "")
		line(h-sent, "status %d, %s", r.Status, kind)
	}
	first := true
	for i, e := range p.Events {
		mark := ""
		if e.Output && first {
			mark, first = "   <- first token", false
		}
		if i > 0 && p.Events[i-1].Read == e.Read {
			mark += "   (same read)"
		}
		line(e.At, "event %-4d %s%s", i, describe(e), mark)
	}
	if len(p.Events) == 0 && len(p.Body) > 0 {
		body := oneLine(string(p.Body))
		if r.Inputs > 0 {
			body = shorten(body, 400) // vectors
		}
		fmt.Fprintf(w, "\n%s\n", body)
	}
	if end, ok := r.End.Get(); ok {
		line(end-sent, "end: %s", outcomeWords(&r))
	}
	fmt.Fprintln(w)
	writeProbeSummary(w, &r)
}

func outcomeWords(r *bench.Record) string {
	s := string(r.Outcome)
	if r.Finish != "" {
		s += ", finish " + string(r.Finish)
	}
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
}

// describe says what an event holds.
func describe(e run.ProbedEvent) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch {
	case e.Error != "":
		add("error: %s", e.Error)
	case e.Done:
		add("terminator")
	case e.Output:
		if e.Reasoning != "" {
			add("reasoning %s", strconv.Quote(e.Reasoning))
		}
		if e.Text != "" {
			add("text %s", strconv.Quote(e.Text))
		}
		if e.Tool {
			add("tool call")
		}
		if len(parts) == 0 {
			add("a token without text")
		}
	default:
		add("no output")
	}
	if e.IDs > 0 {
		add("%d ids", e.IDs)
	}
	if e.Finish != "" {
		add("finish %s", e.Finish)
	}
	if e.Total >= 0 {
		add("output tokens %d", e.Total)
	}
	if e.Prompt >= 0 {
		add("prompt tokens %d", e.Prompt)
	}
	return strings.Join(parts, ", ")
}

func writeProbeSummary(w io.Writer, r *bench.Record) {
	sent, _ := r.Sent.Get()
	row := func(name string, v fmt.Stringer, note string) { fmt.Fprintf(w, "%-14s %s%s\n", name, v, note) }
	if first, ok := r.First.Get(); ok {
		row("TTFT", millis(first-sent), "   first output event - sent")
	}
	if last, ok := r.Last.Get(); ok {
		note := "   last output event - sent"
		if r.Inputs > 0 {
			note = "   end of the body - sent"
		}
		row("E2E", millis(last-sent), note)
		if first, ok := r.First.Get(); ok && r.OSL.Or(0) > 1 {
			row("TPOT", millis((last-first)/time.Duration(r.OSL.Or(2)-1)), "   (last - first) / (output tokens - 1)")
		}
	}
	count := func(name string, n int, ok bool, src bench.Source) {
		if ok {
			fmt.Fprintf(w, "%-14s %d   by %s\n", name, n, sourceWords(src))
		} else {
			fmt.Fprintf(w, "%-14s not told\n", name)
		}
	}
	isl, ok := r.ISL.Get()
	count("input tokens", isl, ok, r.ISLSource)
	if r.Inputs > 0 {
		fmt.Fprintf(w, "%-14s %d\n", "inputs", r.Inputs)
		if r.Dimensions > 0 {
			fmt.Fprintf(w, "%-14s %d\n", "dimensions", r.Dimensions)
		}
	} else {
		osl, ok := r.OSL.Get()
		count("output tokens", osl, ok, r.OSLSource)
		fmt.Fprintf(w, "%-14s %d in %d bytes\n", "output events", r.OutEvents, r.Bytes)
	}
	fmt.Fprintf(w, "%-14s %s\n", "stamps", r.Stamp)
	if len(r.Flags) > 0 {
		var names []string
		for _, f := range r.Flags {
			names = append(names, string(f))
		}
		fmt.Fprintf(w, "%-14s %s\n", "flags", strings.Join(names, ", "))
	}
}

func sourceWords(s bench.Source) string {
	switch s {
	case bench.FromIDs:
		return "token ids"
	case bench.FromCount:
		return "a count in the stream"
	case bench.FromUsage:
		return "the usage block"
	case bench.FromEstimate:
		return "estimate (number of output events)"
	}
	return string(s)
}

// millis is a duration that is written in ms.
type millis time.Duration

func (m millis) String() string { return fmt.Sprintf("%.3f ms", float64(m)/1e6) }
