package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/plot"
	"github.com/prony-bench/prony/internal/report"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/sweep"
)

// sweepFlags are the flags of a sweep: those of a run, with ladders in place of its load.
type sweepFlags struct {
	run               runFlags
	concurrency, rate string
	requests          int
	rounds            int
	cooldown          duration
	stopOn            string
	slo, search       string
	share, reserve    float64
	within            float64
	gpus              int
	out, resume       string

	estimate, json, quiet bool
}

// ownOfSweep are the flags of a run that a sweep has in a form of its own.
var ownOfSweep = []string{"concurrency", "request-rate", "num-requests", "out"}

// whileResuming are the flags that may be given with --resume: what is not stored, and how to talk.
var whileResuming = append([]string{"resume", "json", "quiet", "wait-ready", "extra-body"}, accessNames...)

func (a *app) sweepCommand() *cobra.Command {
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep --url URL",
		Short: "Climb a ladder of loads, or search for the highest that meets an SLO",
		Long: `sweep measures a server at one load after the other, and tells what it can take: throughput against latency, the knee, the load at
which it breaks, the highest load that meets the SLO, and the capacity that is recommended.

A ladder is a list (1,8,64) or a range with a factor (1..256x2) or a step (10..100+10), of --concurrency or --request-rate. All levels
are run in each of --rounds rounds, upwards in odd ones and downwards in even ones, each with prompts of its own. Intervals are over
rounds. The first round ends the ladder where two neighbouring levels are broken for good (--stop-on).

--search "ttft_p99<2000 and tpot_p99<50" finds the highest load that meets these objectives: doubling, bisection until the loads differ
by less than --resolution or the noise tells no more, and --rounds independent rounds that confirm the answer. ttft_p99<2000 limits a
figure of the run, ttft<2000 each request, of which --share have to be good. A rate is searched, or with --concurrency the number in flight.

Each level of each round is a run directory below that of the sweep. --resume DIR goes on where a sweep was ended: what is whole is not
repeated. --estimate says how long it takes, and sends three requests for that.

The other flags are those of prony run. The exit code is 3 when no load meets the SLO.`,
		Example: `  prony sweep --url http://127.0.0.1:8000 --concurrency 1..256x2
  prony sweep --url http://127.0.0.1:8000 --request-rate 10..100+10 --duration 60s --goodput "ttft:500 tpot:50"
  prony sweep --url http://127.0.0.1:8000 --concurrency 1,4,16,64 --rounds 3 --slo "ttft_p99<2000"
  prony sweep --url http://127.0.0.1:8000 --search "ttft_p99<2000 and tpot_p99<50"
  prony sweep --resume runs/2026-11-29T15-20-01Z-sweep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sweep(cmd.Context(), &f, cmd.Flags()) },
	}
	f.register(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

// Defaults of a sweep.
const (
	defaultLadder   = "1..64x2"
	defaultRounds   = 5
	defaultCooldown = 2 * time.Second
	defaultShare    = 0.99
	defaultReserve  = 0.2
	defaultWithin   = 0.03
	mostRounds      = 100
)

func (f *sweepFlags) register(set *pflag.FlagSet) {
	f.cooldown = duration(defaultCooldown)
	set.StringVar(&f.concurrency, "concurrency", "", "ladder of requests in flight of a closed loop (default "+defaultLadder+"); of a search its first load, or FROM..TO")
	set.StringVar(&f.rate, "request-rate", "", "ladder of requests/s of an open loop; of a search its first load (default 1), or FROM..TO")
	set.IntVar(&f.rounds, "rounds", defaultRounds, "rounds over all levels; of a search those that confirm its answer")
	set.IntVar(&f.requests, "num-requests", 0, "requests of each level (default: 5 a user of a closed loop, 20 s of a rate, at least 100)")
	set.Var(&f.cooldown, "cooldown", "pause between two runs")
	set.StringVar(&f.search, "search", "", `find the highest load that meets objectives: "ttft_p99<2000 and tpot_p99<50", in ms`)
	set.StringVar(&f.slo, "slo", "", "objectives by which the levels of a ladder are judged, in the same form, beside --goodput")
	set.Float64Var(&f.share, "share", defaultShare, "share of the requests that have to be good, or to succeed where no request has a limit")
	set.Float64Var(&f.within, "resolution", defaultWithin, "of a search: loads that differ by less than this share are not told apart")
	set.Float64Var(&f.reserve, "reserve", defaultReserve, "share of the highest load that the recommended capacity leaves free")
	set.StringVar(&f.stopOn, "stop-on", strings.Join(sweep.StopRules, ","), "what ends the ladder when two neighbouring levels have it: errors (more than 5 %), slo, saturation; or none")
	set.IntVar(&f.gpus, "gpus", 0, "number of GPUs of the server, for tok/s/GPU (default: as the engine tells)")
	set.StringVar(&f.out, "out", "", "directory of the sweep, exactly this one (default runs/<time>-<label>-sweep)")
	set.StringVar(&f.resume, "resume", "", "go on with the sweep of this directory; of the other flags only those of access may be given again")
	set.BoolVar(&f.estimate, "estimate", false, "say how long the sweep takes, and end")
	set.BoolVar(&f.json, "json", false, "print the curve as JSON in place of the tables")
	set.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks on stderr")
	inner := pflag.NewFlagSet("run", pflag.ContinueOnError)
	inner.SetNormalizeFunc(normalizeFlag)
	f.run.register(inner)
	inner.VisitAll(func(x *pflag.Flag) {
		if !slices.Contains(ownOfSweep, x.Name) {
			set.AddFlag(x)
		}
	})
}

// plan makes what is asked for.
func (f *sweepFlags) plan(given func(string) bool) (bench.SweepPlan, []bench.Limit, error) {
	p := bench.SweepPlan{Axis: bench.ByConcurrency, Rounds: f.rounds, Order: sweep.Order, Cooldown: time.Duration(f.cooldown), Requests: f.requests,
		Share: f.share, Reserve: f.reserve, GPUs: f.gpus, StopOn: []string{}}
	none := func(err error) (bench.SweepPlan, []bench.Limit, error) { return p, nil, err }
	switch {
	case given("concurrency") && given("request-rate"):
		return none(fault.New(fault.Usage, "--concurrency and --request-rate exclude each other", "a sweep climbs one of them"))
	case given("search") && given("slo"):
		return none(fault.New(fault.Usage, "--search and --slo exclude each other", "a search is for its own objectives"))
	case given("num-requests") && given("duration"):
		return none(fault.New(fault.Usage, "--num-requests and --duration exclude each other", "a level ends after a number of requests or after a time"))
	case given("num-requests") && f.requests < 1:
		return none(fault.Usagef("such as --num-requests 500", "--num-requests must be at least 1, not %d", f.requests))
	case f.rounds < 1 || f.rounds > mostRounds:
		return none(fault.Usagef("5 rounds give intervals", "--rounds must be between 1 and %d, not %d", mostRounds, f.rounds))
	case !(f.share > 0 && f.share < 1):
		return none(fault.Usagef("such as --share 0.99", "--share must be between 0 and 1, not %v", f.share))
	case !(f.reserve >= 0 && f.reserve < 1):
		return none(fault.Usagef("such as --reserve 0.2", "--reserve must be at least 0 and below 1, not %v", f.reserve))
	case !(f.within >= 0.001 && f.within <= 1):
		return none(fault.Usagef("such as --resolution 0.03", "--resolution must be between 0.001 and 1, not %v", f.within))
	case f.gpus < 0:
		return none(fault.Usagef("", "--gpus must be at least 1, not %d", f.gpus))
	}
	var limits []bench.Limit
	if objectives := f.search + f.slo; objectives != "" || given("search") || given("slo") {
		var err error
		if p.SLO, limits, err = sweep.ParseSLO(objectives); err != nil {
			return none(err)
		}
	}
	p.Search = f.search != ""
	ladder := f.concurrency
	switch {
	case given("request-rate") || p.Search && !given("concurrency"):
		p.Axis, ladder = bench.ByRate, f.rate
		if !given("request-rate") {
			ladder = "1"
		}
	case !given("concurrency"):
		ladder = defaultLadder
	}
	var err error
	if p.Loads, err = sweep.ParseLadder(ladder); err != nil {
		return none(err)
	}
	if p.Search {
		p.Order, p.Within = sweep.SearchOrder, f.within
		if n := len(p.Loads); n > 2 {
			p.Loads = []float64{p.Loads[0], p.Loads[n-1]}
		}
	}
	if p.Axis == bench.ByConcurrency {
		for _, l := range p.Loads {
			if l != float64(int(l)) {
				return none(fault.Usagef("requests in flight are whole", "--concurrency %v is no whole number", l))
			}
		}
	}
	if f.stopOn != "none" && !p.Search {
		for _, word := range strings.FieldsFunc(f.stopOn, func(r rune) bool { return r == ',' || r == ' ' }) {
			if err := oneOf("stop-on", word, append([]string{"none"}, sweep.StopRules...)); err != nil {
				return none(err)
			}
			p.StopOn = append(p.StopOn, word)
		}
	}
	return p, limits, nil
}

// spec is that of the runs.
func (f *sweepFlags) spec(p *bench.SweepPlan, limits []bench.Limit) (bench.Spec, error) {
	first := plainNumber(p.Loads[0])
	name := "concurrency"
	if p.Axis == bench.ByRate {
		name = "request-rate"
	}
	if err := f.run.set.Set(name, first); err != nil {
		return bench.Spec{}, err
	}
	spec, err := f.run.spec(newSeed)
	if err != nil {
		return spec, err
	}
	for _, l := range limits {
		if slices.ContainsFunc(spec.SLO, func(x bench.Limit) bool { return x.Metric == l.Metric }) {
			return spec, fault.Usagef("give one limit for each metric", "%s is limited twice, by --goodput too", l.Metric)
		}
		spec.SLO = append(spec.SLO, l)
	}
	spec.Percentiles = sweep.Percentiles(spec.Percentiles, p.SLO)
	return spec, nil
}

// sweep carries the command out.
func (a *app) sweep(ctx context.Context, f *sweepFlags, set *pflag.FlagSet) error {
	c := &sweep.Config{}
	var curve *bench.Curve
	var err error
	if f.resume != "" {
		curve, err = f.resumed(c, set)
	} else {
		var limits []bench.Limit
		if c.Plan, limits, err = f.plan(set.Changed); err == nil {
			c.Spec, err = f.spec(&c.Plan, limits)
		}
	}
	if err != nil {
		return err
	}
	if c.Deps, err = a.runDeps(&f.run); err != nil {
		return err
	}
	c.Deps.Command = redact(append([]string{"prony"}, a.Args...))
	if f.quiet {
		c.Deps.Say = nil
	}
	c.Spec.Target.HasKey = c.Deps.Key != "" || hasKey(c.Deps.Header)
	tuneRuntime()
	signals := a.watchSignals()
	defer signals.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-signals.kill:
			cancel()
		case <-ctx.Done():
		}
	}()
	c.Interrupt, c.Kill = signals.interrupt, signals.kill
	if f.estimate {
		return untilInterrupt(ctx, signals, func(ctx context.Context) error { return a.estimateSweep(ctx, c, f.json) })
	}
	if curve == nil {
		c.Dir = f.out
		if c.Dir == "" {
			c.Dir = freePath(store.DefaultPath(time.Now(), strings.TrimPrefix(c.Spec.Label+"-sweep", "-")))
		}
		if err := store.Free(c.Dir); err != nil {
			return err
		}
		if err := untilInterrupt(ctx, signals, func(ctx context.Context) error { return sweep.Prepare(ctx, c) }); err != nil {
			return err
		}
		if c.Spec.Label == "" {
			c.Spec.Label = c.Model()
		}
		if f.out == "" {
			c.Dir = freePath(store.DefaultPath(time.Now(), strings.TrimPrefix(c.Spec.Label+"-sweep", "-")))
		}
		if curve, err = sweep.Start(c, c.Deps.Command); err != nil {
			return err
		}
	}
	a.follow(c, f)
	err = sweep.Run(ctx, c, curve)
	if len(curve.Levels) == 0 && err != nil {
		return run.FirstFault(err)
	}
	rerr := a.writeSweep(c.Dir, curve)
	r := a.textRenderer(false, afterSweep(c.Dir, curve))
	if f.json {
		r = report.JSON{}
	}
	if perr := a.printSweep(c.Dir, curve, r); err == nil {
		err = perr
	}
	if err = errors.Join(err, rerr); err != nil {
		return run.FirstFault(err)
	}
	a.code = sweepCode(curve)
	return nil
}

// untilInterrupt waits for f, or for a person who ends it.
func untilInterrupt(ctx context.Context, s *signals, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.interrupt:
			cancel()
		case <-ctx.Done():
		}
	}()
	return unlessDone(ctx, func() error { return f(ctx) })
}

// sweepCode is the exit code of a sweep.
func sweepCode(c *bench.Curve) fault.Code {
	judged := len(c.Plan.SLO)+len(c.Spec.SLO) > 0
	switch {
	case c.State == bench.Interrupted:
		return fault.Interrupted
	case c.Verdict == bench.Void:
		return fault.Void
	case c.Search != nil && !c.Search.Load.Defined(), c.Search == nil && judged && c.Best == nil:
		return fault.Gate
	}
	return fault.OK
}

// resumed reads what a sweep was to do. What its curve may not keep has to be given again.
func (f *sweepFlags) resumed(c *sweep.Config, set *pflag.FlagSet) (*bench.Curve, error) {
	var other string
	set.Visit(func(x *pflag.Flag) {
		if !slices.Contains(whileResuming, x.Name) {
			other = x.Name
		}
	})
	if other != "" {
		return nil, fault.New(fault.Usage, "--"+other+" cannot be changed by --resume", "a sweep goes on as it began; begin another one with --out")
	}
	curve, err := sweep.Load(f.resume)
	if err != nil {
		return nil, err
	}
	c.Dir, c.Plan, c.Spec = f.resume, curve.Plan, curve.Spec
	f.run.urls, f.run.engine = c.Spec.Target.URLs, c.Spec.Target.Engine
	for _, name := range c.Spec.Target.Headers {
		if !slices.ContainsFunc(f.run.access.headers, func(h string) bool {
			return len(h) > len(name) && strings.EqualFold(h[:len(name)], name)
		}) {
			return nil, fault.Usagef("values of headers are not stored", "the sweep sends the header %s: give it again with --header", name)
		}
	}
	if _, secrets := run.ConcealBody(c.Spec.Target.ExtraBody); len(secrets) > 0 && f.run.extraBody == "" {
		return nil, fault.New(fault.Usage, "the sweep's --extra-body holds what is not stored", "give it again")
	}
	if f.run.extraBody != "" {
		c.Spec.Target.ExtraBody = []byte(f.run.extraBody)
	}
	return curve, nil
}

// follow shows how far the sweep has come, and writes the reports of its runs.
func (a *app) follow(c *sweep.Config, f *sweepFlags) {
	c.Finish = a.writeReports
	if f.quiet {
		return
	}
	var view *progressView
	c.Begin = func(p *run.Plan, what string) func(run.Progress) {
		view = a.newProgressView(p, false)
		tuneMemory(p.Spec)
		return view.show
	}
	c.Each = func(curve *bench.Curve, l *bench.CurveLevel, again bool) {
		if view != nil {
			view.done()
			view = nil
		}
		a.say(report.LevelLine(curve, l, again))
	}
}

// writeSweep writes the reports of a sweep, and its figures.
func (a *app) writeSweep(dir string, curve *bench.Curve) error {
	m := report.NewSweep(curve, dir)
	d := &store.Dir{Path: dir}
	var errs []error
	for name, r := range map[string]report.Renderer{store.HTMLFile: report.HTML{}, store.MarkdownFile: report.Markdown{}} {
		var b bytes.Buffer
		if err := r.Render(&b, m); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		errs = append(errs, d.WriteFile(name, b.Bytes()))
	}
	for _, part := range m.Parts {
		for _, fig := range part.Figures {
			errs = append(errs, writeNew(filepath.Join(dir, report.FigureFile(fig)), []byte(plot.File(fig.Plot, 1000))))
		}
	}
	return errors.Join(errs...)
}

// writeNew writes a file whose folder may not be there.
func writeNew(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fault.Wrap(fault.Internal, err, "write "+path, "")
	}
	d := &store.Dir{Path: filepath.Dir(path)}
	return d.WriteFile(filepath.Base(path), content)
}

// printSweep prints the result on stdout.
func (a *app) printSweep(dir string, curve *bench.Curve, r report.Renderer) error {
	var err error
	switch r.Name() {
	case report.JSON{}.Name():
		enc := json.NewEncoder(a.Stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(curve)
	case report.CSV{}.Name():
		err = report.CurveCSV(a.Stdout, curve)
	default:
		err = r.Render(a.Stdout, report.NewSweep(curve, dir))
	}
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the result cannot be printed", "it is kept in "+dir)
	}
	return nil
}

// reportSweep shows a sweep that was made before.
func (a *app) reportSweep(dir string, r report.Renderer, out string) error {
	curve, err := sweep.Load(dir)
	if err != nil {
		return err
	}
	if out != "" {
		file := &bytes.Buffer{}
		shown := *a
		shown.Stdout = file
		if err := shown.printSweep(dir, curve, r); err != nil {
			return err
		}
		return run.FirstFault(errors.Join(a.writeSweep(dir, curve), writeNew(out, file.Bytes())))
	}
	return run.FirstFault(errors.Join(a.writeSweep(dir, curve), a.printSweep(dir, curve, r)))
}

// afterSweep names the command that is worth trying after a sweep.
func afterSweep(dir string, curve *bench.Curve) string {
	if curve.State == bench.Interrupted || curve.State == bench.Stopped {
		return "prony sweep --resume " + report.ShellQuote(dir)
	}
	return ""
}

// plainNumber writes a load as a flag.
func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// estimateSweep says how long a sweep takes.
func (a *app) estimateSweep(ctx context.Context, c *sweep.Config, asJSON bool) error {
	e, err := sweep.EstimateOf(ctx, c)
	if err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(a.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	}
	_, err = io.WriteString(a.Stdout, estimateText(&c.Plan, e))
	return err
}

// estimateText says an estimate in words.
func estimateText(p *bench.SweepPlan, e sweep.Estimate) string {
	span := func(lo, hi, unit string) string {
		if lo == hi {
			return lo + unit
		}
		return lo + " to " + hi + unit
	}
	what := fmt.Sprintf("%d levels x %d rounds: ", len(p.Loads), p.Rounds)
	if p.Search {
		what = "a search, which ends when it knows enough: "
	}
	out := what + span(strconv.Itoa(e.Runs[0]), strconv.Itoa(e.Runs[1]), " runs")
	if e.Requests[1] > 0 {
		out += ", " + span(plot.Thousands(strconv.Itoa(e.Requests[0])), plot.Thousands(strconv.Itoa(e.Requests[1])), " requests")
	}
	return out + "\nit takes " + span(roundTime(e.Time[0]), roundTime(e.Time[1]), "") +
		"\n(a lone request takes " + roundTime(e.Alone) + "; the first time is for a server that is as fast under load, the second for one that answers one request at a time)\n"
}

// roundTime writes a time for a person.
func roundTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Minute:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
