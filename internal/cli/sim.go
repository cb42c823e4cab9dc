package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/sim"
)

func (a *app) simCommand() *cobra.Command {
	var addr, mode, ttft, itl, output, faults, script, cost string
	var cfg sim.Config
	var cpus string
	var untilEOF bool
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Serve a simulated engine: exact latencies, a batching model, or recorded answers",
		Long: `sim serves the API of an engine on a loopback port, without a model.

exact    given TTFT and ITL, written on time; GET /truth tells when each request arrived and each event was written
engine   a model of continuous batching (chunked prefill, KV blocks, prefix cache, preemption): it saturates as real engines do
script   recorded answers: a case or wire file, or a directory of them, each under /<name>/v1/...

--dialect says whose API: its endpoints with the events as that engine writes them, its errors, what it tells of itself, its
metrics under its names. The default, prony-sim, has vLLM's /v1/chat/completions, /v1/completions, /v1/models, /tokenize, /health
and /metrics. All have /truth. The dialects are ` + strings.Join(sim.Dialects()[1:], ", ") + `.

Faults, in exact and engine mode, are a list of kind[@argument]:share, the share from 0 to 1 or everyN:
` + sim.FaultWords,
		Example: `  prony sim
  prony sim --ttft 50ms --itl 10ms
  prony sim --dialect sglang --reasoning 20
  prony sim --mode engine --preset h200/llama-70b/fp8/tp8
  prony sim --faults "429:0.1,cut@5:0.02"
  prony sim --script testdata/cases`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := simConfig(cmd, &cfg, mode, ttft, itl, output, faults, script, cost); err != nil {
				return err
			}
			if cpus != "" {
				if err := pin(cpus); err != nil {
					return fault.Wrap(fault.Usage, err, "--cpu-list", "leave it out")
				}
			}
			return a.serveSim(cmd.Context(), cfg, addr, untilEOF)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&addr, "listen", "127.0.0.1:8000", "address to listen on; port 0 takes a free one, unix:/path is a unix socket")
	f.StringVar(&mode, "mode", "exact", "exact, engine or script (--script alone means script)")
	f.StringVar(&cfg.Dialect, "dialect", sim.DefaultDialect, "engine whose API is spoken")
	f.StringVar(&cfg.Model, "model", "", `name of the served model (default "`+sim.DefaultModel+`", of another dialect "`+sim.ModelOf("vllm")+`")`)
	f.IntVar(&cfg.MaxModelLen, "max-model-len", sim.DefaultModelLen, "tokens of prompt and answer together")
	f.StringVar(&cfg.APIKey, "require-key", "", "key that is asked for, where the engine asks for one")
	f.Uint64Var(&cfg.Seed, "seed", 0, "seed of every draw")
	f.StringVar(&ttft, "ttft", "50ms", "exact: time to first token; a duration, uniform:a,b, normal:m,s or lognormal:m,s")
	f.StringVar(&itl, "itl", "10ms", "exact: time between tokens, same laws")
	f.IntVar(&cfg.TokensPerChunk, "tokens-per-chunk", 1, "exact: tokens in one event")
	f.StringVar(&output, "output", "", "length that the model would choose, in tokens; same laws (default: as many as allowed)")
	f.IntVar(&cfg.Reasoning, "reasoning", 0, "tokens of thinking before the answer, where the endpoint tells of such")
	f.StringVar(&cfg.Engine.Preset, "preset", sim.DefaultPreset, "engine: hardware/model/precision/tpN")
	f.StringVar(&cost, "cost", "", `engine: step time by coefficients in place of a preset, e.g. "base=5ms,prefill=20us,decode=50us,read=10ns"`)
	f.IntVar(&cfg.Engine.MaxNumSeqs, "max-num-seqs", 0, "engine: sequences in a step (default 1024)")
	f.IntVar(&cfg.Engine.MaxBatchedTokens, "max-num-batched-tokens", 0, "engine: tokens in a step (default 8192)")
	f.IntVar(&cfg.Engine.Blocks, "kv-blocks", 0, "engine: KV blocks of 16 tokens (default: what the preset's memory holds)")
	f.BoolVar(&cfg.Engine.NoPrefixCache, "no-prefix-cache", false, "engine: compute every prompt anew")
	f.IntVar(&cfg.Engine.Draft, "draft", 0, "engine: speculative tokens a step")
	f.Float64Var(&cfg.Engine.Acceptance, "acceptance", 0.7, "engine: probability that a speculative token is accepted")
	f.StringVar(&faults, "faults", "", `misbehave, e.g. "429:0.1,cut@5:0.02,drip@2ms:0.01,503@text:every20"`)
	f.StringVar(&script, "script", "", "script: file or directory to play")
	f.BoolVar(&untilEOF, "until-stdin-closes", false, "end when stdin does, so that no server outlives its parent")
	f.StringVar(&cpus, "cpu-list", "", "run on these processors only, such as 0,2 (Linux)")
	f.MarkHidden("cpu-list") // for calibrate
	return cmd
}

// simConfig puts the flags together. A flag of another mode is refused, not ignored.
func simConfig(cmd *cobra.Command, cfg *sim.Config, mode, ttft, itl, output, faults, script, cost string) (err error) {
	given := cmd.Flags().Changed
	if script != "" && !given("mode") {
		mode = "script"
	}
	cfg.Mode = sim.Mode(mode)
	for flag, of := range map[string]sim.Mode{"ttft": sim.ModeExact, "itl": sim.ModeExact, "tokens-per-chunk": sim.ModeExact, "preset": sim.ModeEngine,
		"cost": sim.ModeEngine, "max-num-seqs": sim.ModeEngine, "max-num-batched-tokens": sim.ModeEngine, "kv-blocks": sim.ModeEngine,
		"no-prefix-cache": sim.ModeEngine, "draft": sim.ModeEngine, "acceptance": sim.ModeEngine, "script": sim.ModeScript} {
		scripted := cfg.Mode == sim.ModeScript && (flag == "ttft" || flag == "itl") // files without times take these
		if given(flag) && cfg.Mode != of && !scripted {
			return fault.Usagef("add --mode "+string(of)+", or leave it out", "--%s belongs to mode %s", flag, of)
		}
	}
	for _, flag := range []string{"max-model-len", "tokens-per-chunk", "max-num-seqs", "max-num-batched-tokens", "kv-blocks"} {
		if n, err := cmd.Flags().GetInt(flag); err == nil && given(flag) && n < 1 {
			return fault.Usagef("leave it out for the default", "--%s must be at least 1, not %d", flag, n)
		}
	}
	if given("cost") && given("preset") {
		return fault.New(fault.Usage, "--cost and --preset exclude each other", "")
	}
	if cfg.Mode == sim.ModeEngine {
		ttft, itl = "", ""
	}
	for _, l := range []struct {
		to    *sim.Law
		from  string
		parse func(string) (sim.Law, error)
	}{{&cfg.TTFT, ttft, sim.ParseDurationLaw}, {&cfg.ITL, itl, sim.ParseDurationLaw}, {&cfg.Output, output, sim.ParseLengthLaw}} {
		if l.from != "" {
			if *l.to, err = l.parse(l.from); err != nil {
				return err
			}
		}
	}
	if cfg.Faults, err = sim.ParseFaults(faults); err != nil {
		return err
	}
	if script != "" {
		if cfg.Scripts, err = sim.LoadScripts(script); err != nil {
			return err
		}
	}
	if cost != "" {
		if cfg.Engine.Cost, err = sim.ParseCost(cost); err != nil {
			return err
		}
		cfg.Engine.Preset = ""
	}
	if cfg.Engine.Draft == 0 {
		if given("acceptance") {
			return fault.New(fault.Usage, "--acceptance without --draft", "give the number of speculative tokens with --draft N")
		}
		cfg.Engine.Acceptance = 0
	}
	if cfg.Mode != sim.ModeExact {
		cfg.TokensPerChunk = 0
	}
	if cfg.Model == "" {
		cfg.Model = sim.ModelOf(cfg.Dialect)
	}
	if runtime.GOOS == "linux" {
		cfg.Spin = sim.DefaultSpin
	}
	return cfg.Validate()
}

// serveSim serves until a signal, or until stdin closes.
func (a *app) serveSim(ctx context.Context, cfg sim.Config, addr string, untilEOF bool) error {
	srv, err := sim.New(cfg)
	if err != nil {
		return err
	}
	ln, url, err := sim.Listen(addr)
	if err != nil {
		return err
	}
	runtime.GOMAXPROCS(runtime.NumCPU() + 1) // for the thread that writes on time
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, stop := a.Signals()
	defer stop()
	go func() {
		select {
		case <-in:
			cancel()
		case <-ctx.Done():
		}
	}()
	if untilEOF {
		go func() {
			io.Copy(io.Discard, a.Stdin)
			cancel()
		}()
	}
	if _, err := fmt.Fprintf(a.Stdout, "%s model %s (%s mode)\n", url, cfg.Model, cfg.Mode); err != nil {
		return err
	}
	err = srv.Serve(ctx, ln)
	if errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return nil
	}
	return err
}

// childEnd is how long a child process may take to end once its stdin is closed.
const childEnd = 5 * time.Second
