package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
)

// How an endpoint tells something, in the words of a table.
const (
	told    = "yes"
	onAsk   = "asked" // when a flag asks for it
	notTold = "no"
)

// engineSheet is an engine with its endpoints, the default first.
type engineSheet struct {
	Engine    string          `json:"engine"`
	Endpoints []endpointSheet `json:"endpoints"`
}

// endpointSheet is what an endpoint can do.
type endpointSheet struct {
	Endpoint  string     `json:"endpoint"`
	Path      string     `json:"path"`
	Task      string     `json:"task"`
	IDsIn     bool       `json:"ids_in"`
	IDsOut    string     `json:"ids_out"` // yes, asked or no
	IgnoreEOS bool       `json:"ignore_eos"`
	MinTokens bool       `json:"min_tokens"`
	Usage     bool       `json:"usage_in_stream"`
	PerEvent  string     `json:"tokens_per_event"` // yes, asked or no
	Timings   bool       `json:"server_timings"`
	Priority  bool       `json:"priority"`
	Estimates []estimate `json:"estimates"`
}

// estimate is a figure that is not exact there, and why.
type estimate struct {
	Figure string `json:"figure"`
	Why    string `json:"why"`
}

func sheetOf(e dialect.Engine) engineSheet {
	out := engineSheet{Engine: e.Name()}
	for _, ep := range e.Endpoints() {
		can := ep.Can
		s := endpointSheet{Endpoint: ep.Name, Path: ep.Path, Task: taskWord(ep.Task), IDsIn: can.IDsIn, IDsOut: notTold, IgnoreEOS: can.IgnoreEOS, MinTokens: can.MinTokens,
			Usage: can.Usage, PerEvent: notTold, Timings: can.ServerTimings, Priority: can.Priority, Estimates: estimates(ep)}
		switch {
		case can.IDsOut && can.PerEvent:
			s.IDsOut = told
		case can.IDsOut:
			s.IDsOut = onAsk
		}
		switch {
		case can.PerEvent:
			s.PerEvent = told
		case can.EventUsage || can.IDsOut && !can.Whole:
			s.PerEvent = onAsk
		}
		out.Endpoints = append(out.Endpoints, s)
	}
	return out
}

func taskWord(t bench.Task) string {
	if t == bench.Generate {
		return "generate"
	}
	return string(t)
}

// estimates lists the figures of an endpoint that are no exact ones.
func estimates(ep dialect.Endpoint) []estimate {
	out := []estimate{}
	can := ep.Can
	add := func(yes bool, figure, why string) {
		if yes {
			out = append(out, estimate{figure, why})
		}
	}
	generates, gaps := ep.Task == bench.Generate, ep.Task == bench.Generate && !can.Whole && !can.PerEvent
	add(generates && !can.IgnoreEOS && !can.MinTokens, "length", "of the output: an answer may end before --osl: the server cannot be told to go on")
	add(generates && !can.Usage, "output tokens", "the number of output events: the server tells no count")
	add(gaps && (can.EventUsage || can.IDsOut), "token gaps", "an event may hold several tokens; --token-ids or --continuous-usage tells how many")
	add(gaps && !can.EventUsage && !can.IDsOut, "token gaps", "ITL is between events, and an event may hold several tokens: nobody tells how many")
	add(can.NoFinish, "success", "the server never says why an answer ended: a clean end of the body is taken for one")
	return out
}

func (a *app) enginesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "engines [NAME]",
		Short: "List engines and endpoints, what each can do, and where a figure is an estimate",
		Long: `engines lists the words for --engine and --endpoint, the default endpoint first, with what each of them can do. With the name of an
engine it says more of that one: the paths, and why a figure is an estimate there.`,
		Example:   "  prony engines\n  prony engines vllm\n  prony engines --json",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: builtin.Engines().Names(),
		RunE: func(_ *cobra.Command, args []string) error {
			list := builtin.Engines().All()
			if len(args) == 1 {
				e, err := builtin.Engines().Get(args[0])
				if err != nil {
					return fault.Wrap(fault.Usage, err, "engines", "`prony engines` lists all of them")
				}
				list = []dialect.Engine{e}
			}
			var sheets []engineSheet
			for _, e := range list {
				sheets = append(sheets, sheetOf(e))
			}
			var b bytes.Buffer
			switch {
			case asJSON:
				enc := json.NewEncoder(&b)
				enc.SetIndent("", "  ")
				if err := enc.Encode(sheets); err != nil {
					return err
				}
			case len(args) == 1:
				writeEngine(&b, sheets[0])
			default:
				writeEngines(&b, sheets)
			}
			_, err := a.Stdout.Write(b.Bytes())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	return cmd
}

func yesNo(b bool) string {
	if b {
		return told
	}
	return notTold
}

// writeEngines writes one line an endpoint, and what the columns mean.
func writeEngines(w io.Writer, sheets []engineSheet) {
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "engine\tendpoint\tids in\tids out\tignore\tmin\tusage\tevent\ttimes\testimates")
	for _, e := range sheets {
		name := e.Engine
		for _, ep := range e.Endpoints {
			var names []string
			for _, x := range ep.Estimates {
				names = append(names, x.Figure)
			}
			row := []string{yesNo(ep.IDsIn), ep.IDsOut, yesNo(ep.IgnoreEOS), yesNo(ep.MinTokens), yesNo(ep.Usage), ep.PerEvent, yesNo(ep.Timings)}
			for i := range row {
				if row[i] == notTold {
					row[i] = "-"
				}
				if ep.Task != taskWord(bench.Generate) && i < len(row)-1 {
					row[i] = "" // it generates nothing
				}
			}
			fmt.Fprintln(t, strings.Join(append(append([]string{name, ep.Endpoint}, row...), strings.Join(names, ", ")), "\t"))
			name = ""
		}
	}
	t.Flush()
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
	fmt.Fprint(w, `
ids in   takes exact token ids; else random prompts are texts, aligned by the server's own counts
ids out  tells the ids of the output tokens: yes, or when --token-ids asks for them
ignore   --ignore-eos: goes on after the end token
min      --min-tokens: a least number of output tokens
usage    counts tokens in the stream, by itself or when asked, which --no-usage leaves out
event    tells the tokens of each event: yes, or when --token-ids or --continuous-usage asks for it
times    tells its own times, kept as server_*

The first endpoint of an engine is its default. More of one: `+"`prony engines vllm`"+`
`)
}

// writeEngine writes an engine's endpoints in words.
func writeEngine(w io.Writer, e engineSheet) {
	for i, ep := range e.Endpoints {
		note := ""
		if i == 0 {
			note = "   the default"
		}
		fmt.Fprintf(w, "--engine %s --endpoint %s   %s%s\n", e.Engine, ep.Endpoint, ep.Path, note)
		if ep.Task == taskWord(bench.Generate) {
			fmt.Fprintf(w, "  ids in: %s, ids out: %s, ignore_eos: %s, min tokens: %s, usage: %s, tokens of each event: %s, priority: %s, its own times: %s\n",
				yesNo(ep.IDsIn), ep.IDsOut, yesNo(ep.IgnoreEOS), yesNo(ep.MinTokens), yesNo(ep.Usage), ep.PerEvent, yesNo(ep.Priority), yesNo(ep.Timings))
		} else {
			fmt.Fprintf(w, "  %ss, generates nothing; its own times: %s\n", ep.Task, yesNo(ep.Timings))
		}
		for _, x := range ep.Estimates {
			fmt.Fprintf(w, "  estimate, %s: %s\n", x.Figure, x.Why)
		}
	}
}

// engineHelp is the help text of --engine.
func engineHelp() string {
	return "engine behind the URL: auto, " + strings.Join(builtin.Engines().Names(), ", ")
}

// endpointHelp is the help text of --endpoint. Of an endpoint that few engines have these are named.
func endpointHelp() string {
	const few = 2
	all := builtin.Engines().All()
	var words []string
	for _, name := range endpointNames() {
		var having []string
		for _, e := range all {
			if _, ok := e.Endpoint(name); ok {
				having = append(having, e.Name())
			}
		}
		if len(having) <= few {
			name += " (" + strings.Join(having, ", ") + ")"
		}
		words = append(words, name)
	}
	return strings.Join(words, ", ") + ", or a path that ends as theirs, such as /v2/rerank; see prony engines (default: the engine's first, mostly chat)"
}
