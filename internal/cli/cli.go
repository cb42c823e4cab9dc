// Package cli is the command line: one file a command, from flags to what is printed.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
)

// System is what a command needs of the process.
type System struct {
	Args    []string // without the program's name
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Getenv  func(string) string
	Signals func() (<-chan os.Signal, func()) // of SIGINT, SIGTERM and SIGHUP, and how to stop listening
	Self    string                            // path of this executable, for a child process
	Version string
}

// app is the program while it runs.
type app struct {
	System
	code fault.Code // of a command that ended without an error
}

// Main runs a command and returns the exit code.
func Main(ctx context.Context, sys System) int {
	a := &app{System: sys}
	root := a.root()
	root.SetArgs(sys.Args)
	root.SetIn(sys.Stdin)
	help := &keptError{w: sys.Stdout} // the flag library drops the errors of its writes
	root.SetOut(help)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a reader that has gone is an error of the write, not the end of the process
	root.SetErr(sys.Stderr)
	err := refuseTwins(sys.Args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil {
		err = help.err
	}
	if err == nil {
		return int(a.code)
	}
	var f *fault.Error
	var write *fs.PathError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &write) && write.Op == "write":
		err = fault.Wrap(fault.Internal, err, "the output cannot be written", "is the disk full, or the reader gone?")
	default:
		err = usageError(root, sys.Args, err)
	}
	a.printFault(err)
	return int(fault.CodeOf(err))
}

// printFault writes one line with the cause and one with the hint.
func (a *app) printFault(err error) {
	fmt.Fprintf(a.Stderr, "prony: error: %s\n", message(err.Error()))
	if hint := fault.HintOf(err); hint != "" {
		fmt.Fprintf(a.Stderr, "prony: hint: %s\n", message(hint))
	}
}

// keptError remembers the first failure of a writer.
type keptError struct {
	w   io.Writer
	err error
}

func (k *keptError) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	if k.err == nil {
		k.err = err
	}
	return n, err
}

// longestMessage bounds a line of talk, in bytes: servers' words are in it.
const longestMessage = 1000

// message is a line of talk.
func message(s string) string { return shorten(oneLine(s), longestMessage) }

// say writes a line of talk.
func (a *app) say(line string) { fmt.Fprintln(a.Stderr, "prony: "+message(line)) }

// oneLine keeps a message to one line, without control characters: servers' words are in it.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return -1
		}
		return r
	}, strings.TrimSpace(s))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "prony",
		Short: "Benchmark LLM inference servers, and prove the numbers",
		Long: `prony loads an LLM inference server (vLLM, SGLang, TensorRT-LLM, llama.cpp, Ollama, anything OpenAI-like), measures TTFT, ITL, TPOT,
E2E latency, throughput and goodput, and says how far the measurement can be trusted.

Exit codes: 0 fine, 1 internal, disk full or output not written, 2 usage, 3 a gate was missed, 4 not comparable, 5 the run is void,
6 the target cannot be used, 130 interrupted. The report of a run that is void exits with 0.`,
		Example: `  prony demo
  prony run --url http://127.0.0.1:8000
  prony run --url http://127.0.0.1:8000 --request-rate 10 --num-requests 500 --isl 1024 --osl 128 --goodput "ttft:500 tpot:50"`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return refuseEmpty(cmd, args) },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = a.Version
	root.SetVersionTemplate(a.versionLine())
	root.SetGlobalNormalizationFunc(normalizeFlag)
	root.AddCommand(a.demoCommand(), a.runCommand(), a.reportCommand(), a.probeCommand(), a.simCommand(), a.engineCommand(), a.calibrateCommand(), a.envCommand(), a.sweepCommand(), a.enginesCommand(), a.schemaCommand(), a.tokenizeCommand(), a.workloadCommand(), a.versionCommand(), datasetsTopic())
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		completeWords(cmd)
		if cmd.Name() == "completion" { // which of itself has nothing to run, and would take any word
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// flagAliases are spellings of other tools.
var flagAliases = map[string]string{
	"base-url": "url", "dataset-name": "dataset", "num-warmups": "warmup-requests", "metric-percentiles": "percentiles",
	"random-input-len": "isl", "random-output-len": "osl", "num-prompts": "num-requests", "request-count": "num-requests",
	"prefix-repetition-num-prefixes": "prefixes", "prefix-repetition-prefix-len": "prefix-len", "prefix-repetition-suffix-len": "isl", "prefix-repetition-output-len": "osl",
	"num-users": "users", "arrival-pattern": "arrivals", "request-cancellation-delay": "cancel-after",
	"random-range-ratio": "range-ratio", "request-id-prefix": "request-id",
}

func normalizeFlag(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if to, ok := flagAliases[name]; ok {
		name = to
	}
	return pflag.NormalizedName(name)
}

// usageError gives an error of the flag parser its exit code and a hint.
func usageError(root *cobra.Command, args []string, err error) error {
	text := plainWords(err.Error())
	cmd, _, ferr := root.Find(args)
	if ferr != nil || cmd == nil {
		cmd = root
	}
	hint := "see `" + cmd.CommandPath() + " --help`"
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		for alias := range flagAliases {
			names = append(names, alias)
		}
		text += catalog.DidYouMean(name, names)
	}
	if strings.HasPrefix(text, "unknown command") {
		text, _, _ = strings.Cut(text, "\n")
		var names []string
		for _, c := range root.Commands() {
			names = append(names, c.Name())
		}
		if len(args) > 0 {
			text += catalog.DidYouMean(args[0], names)
		}
	}
	return fault.New(fault.Usage, text, hint)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  prony version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(a.Stdout, a.versionLine())
			return err
		},
	}
}

func (a *app) versionLine() string {
	return fmt.Sprintf("prony %s (%s, %s/%s)\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
