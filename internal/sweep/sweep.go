// Package sweep carries out the experiments over load: ladders of concurrencies or rates in interleaved rounds, and the search for the
// highest load that meets service level objectives. Each level of each round is an ordinary run directory below that of the sweep.
package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/store"
)

// File is the result of a sweep, in its directory.
const File = "sweep.json"

// Config is a sweep to carry out.
type Config struct {
	Dir  string          // of the sweep
	Plan bench.SweepPlan // a valid one
	Spec bench.Spec      // of its runs; load, stop and seed are set for each
	Deps run.Deps

	Interrupt, Kill <-chan struct{} // end the run on its way, and with it the sweep

	Finish func(*run.Result) error                               // writes the reports of a run; nil = none
	Begin  func(p *run.Plan, what string) func(run.Progress)     // before each run: what is a line for the one who waits
	Each   func(c *bench.Curve, l *bench.CurveLevel, again bool) // after each run, with its level; again = its result was there

	prepared *run.Plan
	limit    int // requests in flight that it was prepared for
}

// Model is the name of the model, once the target was reached.
func (c *Config) Model() string { return c.prepared.Spec.Target.Model }

// sweeper is a sweep on its way.
type sweeper struct {
	*Config
	ctx   context.Context
	curve *bench.Curve
	dir   *store.Dir
	runs  map[float64][]*outcome // by load, in the order of the rounds
	last  time.Time              // end of the run before, zero for none
	sent  int
}

// outcome is a finished run.
type outcome struct {
	bench.CurveRun
	sum *bench.Summary
}

// errEnded ends a sweep that has a result all the same; the curve says why.
var errEnded = errors.New("ended")

// Prepare reaches the target before anything is written, so that one that cannot be used leaves nothing behind.
func Prepare(ctx context.Context, c *Config) error {
	load := c.Plan.Loads[0]
	if !c.Plan.Search {
		load = c.Plan.Loads[len(c.Plan.Loads)-1] // needs the most connections
	}
	spec := SpecOf(c.Spec, &c.Plan, load, 1)
	plan, err := run.Prepare(ctx, spec, c.Deps, false)
	if err != nil {
		return err
	}
	c.prepared = plan
	for _, ph := range spec.Phases {
		c.limit = max(c.limit, ph.Load.InFlightLimit())
	}
	return nil
}

// Start makes the directory of a sweep and its curve, which says what is meant to be done.
func Start(c *Config, command []string) (*bench.Curve, error) {
	if _, err := store.Create(c.Dir); err != nil {
		return nil, err
	}
	spec := c.Spec
	if body, secrets := run.ConcealBody(spec.Target.ExtraBody); len(secrets) > 0 {
		spec.Target.ExtraBody = body
	}
	curve := &bench.Curve{Schema: bench.CurveSchema, Prony: c.Deps.Version, Command: command, Begun: time.Now().UTC(), Spec: spec, Plan: c.Plan,
		State: bench.Running, Levels: []bench.CurveLevel{}, Frontier: []bench.FrontierStep{}, Caveats: []bench.Caveat{}}
	return curve, write(&store.Dir{Path: c.Dir}, curve)
}

// Is tells whether a directory is that of a sweep.
func Is(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, File))
	return err == nil
}

// Load reads the curve of a sweep's directory.
func Load(dir string) (*bench.Curve, error) {
	b, err := os.ReadFile(filepath.Join(dir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Usage, fmt.Sprintf("%s is no directory of a sweep: it has no %s", dir, File), "give the directory that `prony sweep` named")
	}
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "sweep", "")
	}
	var c bench.Curve
	if err := json.Unmarshal(b, &c); err != nil {
		return nil, fault.Wrap(fault.Usage, err, filepath.Join(dir, File)+" is damaged", "")
	}
	if c.Schema != bench.CurveSchema {
		return nil, fault.Usagef("use a newer prony", "%s has schema %q, this prony knows %s", filepath.Join(dir, File), c.Schema, bench.CurveSchema)
	}
	return &c, nil
}

func write(d *store.Dir, c *bench.Curve) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", File, err)
	}
	return d.WriteFile(File, append(b, '\n'))
}

// Run carries a sweep out, or on: runs that have ended are read, not repeated. The curve is complete with every error.
func Run(ctx context.Context, c *Config, curve *bench.Curve) error {
	s := &sweeper{Config: c, ctx: ctx, curve: curve, dir: &store.Dir{Path: c.Dir}, runs: map[float64][]*outcome{}}
	curve.State, curve.Stopped = bench.Running, ""
	var err error
	if c.Plan.Search {
		err = s.search()
	} else {
		err = s.ladder()
	}
	if curve.State == bench.Running {
		curve.State = bench.Complete
	}
	if err != nil && !errors.Is(err, errEnded) {
		curve.State, curve.Stopped = bench.Stopped, err.Error()
	} else {
		err = nil
	}
	s.conclude()
	return errors.Join(err, write(s.dir, curve))
}

// ladder runs every level in each round: up in the odd rounds, down in the even ones, so that a drift of the server falls on all levels
// alike. The first round decides how far up the ladder goes.
func (s *sweeper) ladder() error {
	loads := slices.Clone(s.Plan.Loads)
	for round := 1; round <= s.Plan.Rounds; round++ {
		order := slices.Clone(loads)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for i, load := range order {
			if _, err := s.do(load, round); err != nil {
				return err
			}
			if round > 1 || i+1 == len(order) {
				continue
			}
			if why := s.broken(loads[:i+1]); why != "" {
				loads = loads[:i+1]
				s.curve.Stopped = why
				break
			}
		}
	}
	return nil
}

// Order says in which order a ladder's runs are made.
const Order = "all levels in each round; odd rounds upwards, even rounds downwards"

// name is the directory of a run within that of the sweep.
func (s *sweeper) name(load float64, round int) string {
	word := "c"
	if s.Plan.Axis == bench.ByRate {
		word = "q"
	}
	return fmt.Sprintf("%s%s-r%d", word, loadText(load), round)
}

// SpecOf is the spec of one run of a sweep. Each has a seed of its own, so that no prompt is sent twice.
func SpecOf(spec bench.Spec, p *bench.SweepPlan, load float64, round int) bench.Spec {
	spec.Seed = rng.New(spec.Seed, fmt.Sprintf("sweep/%s/%s/%d", p.Axis, loadText(load), round)).Uint64() >> 11 // below 2^53, as every JSON reader keeps it
	spec.Phases = slices.Clone(spec.Phases)
	for i := range spec.Phases {
		ph := &spec.Phases[i]
		if p.Axis == bench.ByRate {
			ph.Load.Rate = load
		} else {
			ph.Load.Concurrency = int(load)
		}
		if ph.Name != bench.Warmup && ph.Stop.Duration == 0 {
			ph.Stop.Requests = RequestsAt(p, load)
		}
	}
	return spec
}

// Requests of a level where neither their number nor a duration is given: enough for the lower percentiles, for each user of a closed
// loop to send some, and for an open loop to last a while.
const (
	leastRequests   = 100
	requestsPerUser = 5
	secondsPerRate  = 20
)

// RequestsAt is the number of requests of a level.
func RequestsAt(p *bench.SweepPlan, load float64) int {
	switch {
	case p.Requests > 0:
		return p.Requests
	case p.Axis == bench.ByRate:
		return max(leastRequests, int(secondsPerRate*load))
	}
	return max(leastRequests, requestsPerUser*int(load))
}

// do makes a run, or reads it if it has ended before.
func (s *sweeper) do(load float64, round int) (*outcome, error) {
	name := s.name(load, round)
	path := filepath.Join(s.Dir, name)
	res, err := s.finished(path)
	again := res != nil
	if err == nil && res == nil {
		res, err = s.execute(path, load, round)
	}
	if err != nil {
		return nil, err
	}
	if len(s.runs) == 0 {
		s.curve.Sheet = res.Manifest.Sheet
		s.curve.Spec.Target, s.curve.Spec.Workload = res.Manifest.Spec.Target, res.Manifest.Spec.Workload
	}
	o := s.judge(res, round, name)
	s.runs[load] = append(s.runs[load], o)
	s.sent += o.Sent
	s.conclude()
	s.curve.State = bench.Running
	if err := write(s.dir, s.curve); err != nil {
		return nil, err
	}
	if s.Each != nil {
		s.Each(s.curve, s.level(load), again)
	}
	return o, nil
}

// level returns a level of the curve.
func (s *sweeper) level(load float64) *bench.CurveLevel {
	for i := range s.curve.Levels {
		if s.curve.Levels[i].Load == load {
			return &s.curve.Levels[i]
		}
	}
	return nil
}

// finished reads a run that has ended; nil when there is none. What a killed or interrupted one left is moved away.
func (s *sweeper) finished(path string) (*run.Result, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	dir, err := store.Open(path)
	if err == nil {
		var m *bench.Manifest
		if m, err = dir.Manifest(); err == nil && (m.State == bench.Complete || m.State == bench.Stopped) {
			res := &run.Result{Dir: dir, Manifest: m}
			for rec, err := range dir.Records() {
				if err != nil {
					return nil, err
				}
				res.Records = append(res.Records, rec)
			}
			return res, s.whole(res)
		}
	}
	return nil, s.putAside(path)
}

// whole completes a run that was killed after its last request, and before the last of its files.
func (s *sweeper) whole(res *run.Result) error {
	missing := false
	for _, name := range []string{store.SummaryFile, store.ParquetFile, store.HTMLFile, store.MarkdownFile} {
		if _, err := os.Stat(filepath.Join(res.Dir.Path, name)); err != nil {
			missing = missing || s.Finish != nil || name != store.HTMLFile && name != store.MarkdownFile
		}
	}
	if !missing {
		var err error
		res.Summary, err = res.Dir.Summary()
		return err
	}
	if err := res.Conclude(); err != nil || s.Finish == nil {
		return err
	}
	return s.Finish(res)
}

// mostAside bounds the names of runs that were put away.
const mostAside = 10_000

// putAside keeps what a run left that did not end, out of the way of the one that takes its place.
func (s *sweeper) putAside(path string) error {
	to := filepath.Join(s.Dir, "unfinished")
	if err := os.MkdirAll(to, 0o777); err != nil {
		return fault.Wrap(fault.Internal, err, "put an unfinished run away", "")
	}
	for i := 1; i < mostAside; i++ {
		free := filepath.Join(to, fmt.Sprintf("%s-%d", filepath.Base(path), i))
		if _, err := os.Stat(free); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, free); err != nil {
				return fault.Wrap(fault.Internal, err, "put an unfinished run away", "")
			}
			return nil
		}
	}
	return fault.New(fault.Internal, fmt.Sprintf("%s holds %d runs that did not end", to, mostAside), "delete it")
}

// execute makes a run, after the cool-down.
func (s *sweeper) execute(path string, load float64, round int) (*run.Result, error) {
	spec := SpecOf(s.Spec, &s.Plan, load, round)
	if !s.last.IsZero() && s.Plan.Cooldown > 0 {
		t := time.NewTimer(s.Plan.Cooldown - time.Since(s.last))
		defer t.Stop()
		select {
		case <-t.C:
		case <-s.Interrupt:
		case <-s.ctx.Done():
		}
	}
	if s.interrupted() {
		return nil, s.end(bench.Interrupted, "interrupted")
	}
	plan, err := s.prepare(spec)
	if err != nil {
		return nil, err
	}
	ctl := run.Control{Interrupt: s.Interrupt, Kill: s.Kill}
	if s.Begin != nil {
		ctl.Progress = s.Begin(plan, fmt.Sprintf("round %d of %d, %s", round, max(round, s.Plan.Rounds), LoadWords(s.Plan.Axis, load)))
	}
	res, err := run.Execute(s.ctx, plan, path, ctl)
	s.last = time.Now()
	switch {
	case res == nil || err != nil:
		return nil, err
	case res.Manifest.State == bench.Interrupted || s.interrupted():
		return nil, s.end(bench.Interrupted, "interrupted")
	case res.Unusable != nil:
		return nil, res.Unusable
	}
	if s.Finish != nil {
		err = s.Finish(res)
	}
	return res, err
}

// interrupted tells whether a person has ended the sweep.
func (s *sweeper) interrupted() bool {
	select {
	case <-s.Interrupt:
		return true
	case <-s.Kill:
		return true
	case <-s.ctx.Done():
		return true
	default:
		return false
	}
}

func (s *sweeper) end(state bench.State, why string) error {
	s.curve.State, s.curve.Stopped = state, why
	return errEnded
}

// LoadWords says a load with its unit.
func LoadWords(axis bench.LoadAxis, load float64) string {
	if axis == bench.ByRate {
		return loadText(load) + " req/s"
	}
	return loadText(load) + " in flight"
}

// prepare resolves the target once, and again only for a load that needs more connections than was asked about.
func (s *sweeper) prepare(spec bench.Spec) (*run.Plan, error) {
	need := 0
	for _, ph := range spec.Phases {
		need = max(need, ph.Load.InFlightLimit())
	}
	if s.prepared == nil {
		if err := Prepare(s.ctx, s.Config); err != nil {
			return nil, err
		}
	}
	if need > s.limit {
		plan, err := run.Prepare(s.ctx, spec, s.Deps, false)
		if err != nil {
			return nil, err
		}
		s.prepared, s.limit = plan, need
	}
	plan := *s.prepared
	plan.Spec.Label, plan.Spec.Seed, plan.Spec.Phases = spec.Label, spec.Seed, spec.Phases
	return &plan, salt(&plan)
}

// salted are the engines whose prefix cache keeps prompts with another salt apart, at the endpoints of saltedEndpoints.
var (
	salted          = []string{"vllm"}
	saltedEndpoints = []string{"chat", "completions"}
)

// salt keeps the prefix cache of other runs away from prompts that are the same in each, where the engine has a field for that. Random
// prompts need none.
func salt(p *run.Plan) error {
	t := &p.Spec.Target
	if p.Spec.Workload.Dataset == "random" || !slices.Contains(salted, t.Engine) || !slices.Contains(saltedEndpoints, t.Endpoint) {
		return nil
	}
	fields := map[string]json.RawMessage{}
	if len(t.ExtraBody) > 0 {
		if err := json.Unmarshal(t.ExtraBody, &fields); err != nil {
			return fault.Wrap(fault.Usage, err, "--extra-body", "")
		}
	}
	if fields["cache_salt"] != nil {
		return nil
	}
	fields["cache_salt"] = fmt.Appendf(nil, `"sweep-%d"`, p.Spec.Seed)
	body, err := json.Marshal(fields)
	t.ExtraBody, p.Options.Extra = body, body
	return err
}

// defined is a value that may not be.
func defined(v float64, ok bool) opt.Of[float64] {
	if !ok {
		return opt.Of[float64]{}
	}
	return opt.Some(v)
}
