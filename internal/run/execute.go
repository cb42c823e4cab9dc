package run

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/isolate"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/telemetry"
	"github.com/prony-bench/prony/internal/wire"
)

// Control lets a person end a run.
type Control struct {
	// Interrupt ends the run early when closed: nothing more is sent, what is in flight gets the grace time.
	Interrupt <-chan struct{}
	// Kill ends it at once when closed. What is in flight is incomplete.
	Kill <-chan struct{}
	// Progress gets the state twice a second, from a goroutine of the run's own; nil = nobody looks.
	Progress func(Progress)
}

// Result is a finished run.
type Result struct {
	Dir      *store.Dir
	Manifest *bench.Manifest
	Records  []bench.Record
	Summary  *bench.Summary
	// Unusable is set when the target could not be used from the start. The records are kept all the same.
	Unusable error
}

// runner is a run on its way.
type runner struct {
	plan      *Plan
	ctl       Control
	engine    client.Engine
	collector *collector
	journal   *store.Journal
	manifest  *bench.Manifest
	first     firstAnswers
	lost      <-chan struct{} // closed when the engine's process has ended before its time; nil without one
	whyLost   func() error
	nextID    int
}

// Execute carries out a plan and leaves its run directory at path. An error means that there is no result; a run that failed,
// was interrupted or found its target unusable has one.
func Execute(ctx context.Context, p *Plan, path string, ctl Control) (*Result, error) {
	dir, err := store.Create(path)
	if err != nil {
		return nil, err
	}
	epoch := time.Now()
	r := &runner{plan: p, ctl: ctl, manifest: p.manifest(epoch)}
	if err := dir.WriteManifest(r.manifest); err != nil {
		return nil, err
	}
	if r.journal, err = dir.NewJournal(); err != nil {
		return nil, err
	}
	var transcripts *store.Transcripts
	if p.Spec.Keep.Transcripts {
		if transcripts, err = dir.NewTranscripts(); err != nil {
			r.journal.Close()
			return nil, err
		}
	}
	r.collector = newCollector(r.journal, transcripts, p.Spec.Keep.Events, p.secrets)
	if r.engine, err = p.newEngine(epoch, r.collector); err != nil {
		r.collector.close()
		r.journal.Close()
		if transcripts != nil {
			transcripts.Close()
		}
		return nil, err
	}
	if e, ok := r.engine.(*isolate.Engine); ok {
		r.lost, r.whyLost = e.Failed(), e.Err
	}
	toll := telemetry.StartToll()

	var end ending
	for _, ph := range p.Spec.Phases {
		if end = r.phase(ph); end.state != bench.Complete {
			break
		}
	}

	r.manifest.Client = r.engine.Close()
	r.collector.close()
	lost, jerr := r.journal.Close()
	r.manifest.Client.Toll, r.manifest.Client.Test = together(toll(), r.manifest.Client.Toll), p.tested
	r.manifest.Client.JournalBehind = r.collector.behind.Load()
	r.manifest.Client.FileLimit, _ = fileLimit()
	if known := p.deps.Calibration; known != nil {
		r.manifest.Calibration, r.manifest.NoCalibration = known(r.manifest.Sheet.Host, r.manifest.Client)
	}
	if end.state == bench.Complete {
		end = r.engineEnd(end) // it may have died at the very end
	}
	r.manifest.State, r.manifest.Stopped = end.state, end.why
	if jerr != nil && end.state == bench.Complete {
		r.manifest.State, r.manifest.Stopped = bench.Stopped, jerr.Error()
	}
	var terr error
	if transcripts != nil {
		terr = transcripts.Close()
	}
	res := &Result{Dir: dir, Manifest: r.manifest, Unusable: end.unusable}
	err = errors.Join(res.finish(lost), jerr, terr)
	return res, FirstFault(err)
}

// finish reads the journal back, so that every number comes from it, and writes the results.
func (res *Result) finish(lost []bench.Record) error {
	for rec, err := range res.Dir.Records() {
		if err != nil {
			return err
		}
		res.Records = append(res.Records, rec)
	}
	res.Records = append(res.Records, lost...)
	return res.Conclude()
}

// Conclude summarises manifest and records and writes summary, manifest and Parquet. On a full disk the summary is there in memory.
func (res *Result) Conclude() error {
	m := res.Manifest
	res.Summary = metrics.Summarize(m, res.Records)
	m.Caveats, m.Verdict = res.Summary.Caveats, res.Summary.Verdict
	return errors.Join(
		res.Dir.WriteSummary(res.Summary),
		res.Dir.WriteManifest(m),
		res.Dir.WriteParquet(func(yield func(bench.Record, error) bool) {
			for _, r := range res.Records {
				if !yield(r, nil) {
					return
				}
			}
		}))
}

// FirstFault returns the first of joined errors, however deep: one line is enough for a person.
func FirstFault(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
		return FirstFault(joined.Unwrap()[0])
	}
	return err
}

// ExitCode is the exit code of a result, without gates.
func (res *Result) ExitCode() fault.Code {
	switch {
	case res.Manifest.State == bench.Interrupted:
		return fault.Interrupted
	case res.Unusable != nil:
		return fault.Target
	case res.Summary.Verdict == bench.Void:
		return fault.Void
	}
	return fault.OK
}

func (p *Plan) manifest(epoch time.Time) *bench.Manifest {
	m := &bench.Manifest{Schema: bench.ManifestSchema, Journal: bench.JournalSchema, Prony: p.deps.Version, Go: runtime.Version(),
		Command: p.deps.Command, Epoch: epoch.UTC(), Spec: p.Shown(), Sheet: p.Sheet, State: bench.Running,
		Streams: []string{"workload", "workload/warmup", "workload/prefix", "schedule", "schedule/warmup", "think", "cancel"}, Caveats: []bench.Caveat{}}
	for _, ph := range p.Spec.Measured() {
		m.Planned += ph.Stop.Requests
	}
	return m
}

// engineEnd is the end of a run whose engine process may have died.
func (r *runner) engineEnd(end ending) ending {
	select {
	case <-r.lost:
		return ending{state: bench.Stopped, why: r.whyLost().Error()}
	default:
		return end
	}
}

// together is the toll of this process and that of the engine's, if that is another.
func together(a, b bench.Toll) bench.Toll {
	a.User, a.System, a.PeakMemory = a.User+b.User, a.System+b.System, a.PeakMemory+b.PeakMemory
	a.GCs, a.GCPauses, a.LongestGC = a.GCs+b.GCs, a.GCPauses+b.GCPauses, max(a.LongestGC, b.LongestGC)
	return a
}

// newEngine starts the client for a plan.
func (p *Plan) newEngine(epoch time.Time, sink client.Sink) (client.Engine, error) {
	c := p.Spec.Client
	o := client.Options{Epoch: epoch, Targets: p.Targets, Sink: sink, Timeout: c.Timeout, ConnectTimeout: c.ConnectTimeout,
		FreshEach: c.Connection == "new", HTTP2: c.HTTP == "2", TLS: p.tls, Trust: p.deps.Trust, Spin: p.deps.Spin, Dial: p.deps.Dial,
		UserAgent: "prony/" + p.deps.Version, Threads: c.Engines}
	if c.Stamps != "auto" {
		o.Stamps = wire.Stamp(c.Stamps)
	}
	if p.tested != nil {
		o.NoWire = p.tested.Trouble
	}
	o.Cap = p.clientCap()
	for _, ph := range p.Spec.Phases {
		o.Spare = max(o.Spare, spare(ph.Load, o.FreshEach))
		if c.Engines == 0 {
			o.Threads = max(o.Threads, threads(ph.Load))
		}
		o.Eager = o.Eager || ph.Load.Shape == bench.Prefill
	}
	if c.Isolate {
		return isolate.Start(o, p.deps.EngineProcess())
	}
	return client.New(o), nil
}

// One engine thread serves this many streams, as fast as engines decode (100 events/s each), or this many requests/s that last some
// seconds.
const (
	streamsAThread = 1000
	rateAThread    = 500
)

// threads is the number of engine threads for a load: no more than half of the processors, since server, deliverer and folding need some.
func threads(l bench.Load) int {
	n := (l.InFlightLimit() + streamsAThread - 1) / streamsAThread
	if l.Paced() {
		n = max(n, int(math.Ceil(l.Rate/rateAThread)))
	}
	return max(1, min(n, runtime.NumCPU()/2))
}

// spareTime is how much of an open loop's arrivals should find a connection open: a new one takes about as long.
const (
	spareTime = 0.010 // s
	mostSpare = 64
)

// spare is the number of idle connections to keep ahead of need. A closed loop opens what it needs at its begin; too many idle
// ones would take threads of a server that gives each connection one (llama.cpp).
func spare(l bench.Load, fresh bool) int {
	switch {
	case l.Paced():
		return min(mostSpare, max(1, int(l.Rate*spareTime)))
	case fresh:
		return min(mostSpare, max(1, l.InFlightLimit()/4))
	}
	return 0
}

// now is a moment of the run, for the manifest.
func (r *runner) now() opt.Of[time.Duration] { return opt.Some(r.engine.Now()) }
