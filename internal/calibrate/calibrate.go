// Package calibrate measures the client: it sends loads to a server that keeps the truth of its own writes, and holds what the client
// reports against that.
package calibrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
)

// Latencies of the server, and the tokens of an answer: long where streams are counted, short where requests are.
const (
	TTFT        = 50 * time.Millisecond
	ITL         = 10 * time.Millisecond
	longAnswer  = 100
	shortAnswer = 2
)

// Level is a load to measure the client at: streams, or a rate.
type Level struct {
	Streams  int
	Rate     float64 // requests/s
	Requests int
}

// Full is the climb of a whole calibration, some 45 s; Quick one of 10 s.
var (
	Full  = levels([]int{1, 10, 100, 300, 1000}, 4, []float64{10, 50, 100, 200, 500, 1000, 2000, 5000}, 2)
	Quick = levels([]int{10, 300, 1000}, 2, []float64{100, 1000}, 0.6)
)

// levels makes levels of so many answers a stream, and of so many seconds a rate.
func levels(streams []int, answers int, rates []float64, seconds float64) []Level {
	var out []Level
	for _, n := range streams {
		out = append(out, Level{Streams: n, Requests: n * answers})
	}
	for _, r := range rates {
		out = append(out, Level{Rate: r, Requests: int(r * seconds)})
	}
	return out
}

// Config is what a calibration needs.
type Config struct {
	URL    string // of a simulated engine in exact mode, in a process of its own, with TTFT and ITL
	Stamps string // grade of the stamps, or auto
	Levels []Level
	Pinned bool
	Deps   run.Deps
	Each   func(bench.CalibrationLevel) // after each level; nil = nobody looks
}

// Run measures the client at each level. A level that fails is one that did not pass; an error means that nothing can be measured.
func Run(ctx context.Context, c Config) (*bench.Calibration, error) {
	dir, err := os.MkdirTemp("", "prony-calibrate-")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "calibrate", "it needs a place for temporary files (TMPDIR)")
	}
	defer os.RemoveAll(dir)
	out := &bench.Calibration{Schema: bench.CalibrationSchema, Taken: time.Now().UTC().Truncate(time.Second), Prony: c.Deps.Version, Pinned: c.Pinned}
	for i, l := range c.Levels {
		res, truth, err := c.measure(ctx, l, filepath.Join(dir, fmt.Sprint(i)))
		if ctx.Err() != nil {
			return nil, fault.New(fault.Interrupted, "interrupted", "nothing is stored")
		}
		if err != nil {
			return nil, err
		}
		m := res.Manifest
		out.Machine = MachineOf(m.Sheet.Host)
		out.Engine, out.Stamp = m.Client.Engine, worse(out.Stamp, m.Client.Stamp)
		level := judge(l, res, truth)
		out.Levels = append(out.Levels, level)
		if c.Each != nil {
			c.Each(level)
		}
	}
	out.Ceiling = ceilingOf(out.Levels)
	return out, nil
}

// worse returns the lower of two grades of stamps, "" being none.
func worse(a, b string) string {
	grades := []string{"user", "socket", "wire", ""}
	if slices.Index(grades, a) < slices.Index(grades, b) {
		return a
	}
	return b
}

// measure runs one level.
func (c *Config) measure(ctx context.Context, l Level, path string) (*run.Result, *truth, error) {
	if err := forgetTruth(ctx, c.URL); err != nil {
		return nil, nil, err
	}
	plan, err := run.Prepare(ctx, c.spec(l), c.Deps, false)
	if err != nil {
		return nil, nil, err
	}
	res, err := run.Execute(ctx, plan, path, run.Control{Interrupt: ctx.Done(), Kill: ctx.Done()})
	if err != nil {
		return nil, nil, err
	}
	os.RemoveAll(path)
	truth, err := fetchTruth(ctx, c.URL, res.Records)
	return res, truth, err
}

// requestID is the prefix of the requests' ids, by which the server's truth is joined.
const requestID = "calibrate"

// idOf is the id under which the server knows a request.
func idOf(r *bench.Record) string { return fmt.Sprintf("%s-%d", requestID, r.ID) }

func (c *Config) spec(l Level) bench.Spec {
	load := bench.Load{Shape: bench.Closed, Concurrency: l.Streams}
	tokens := longAnswer
	if l.Streams == 0 {
		load, tokens = bench.Load{Shape: bench.Poisson, Rate: l.Rate, Burstiness: 1}, shortAnswer
	}
	zero := 0.0
	return bench.Spec{Label: "calibrate", Seed: 1, SeedGiven: true, MaxErrorRate: 1,
		Target:   bench.Target{URLs: []string{c.URL}, Engine: "auto", Endpoint: "chat", Stream: true, Usage: true},
		Workload: bench.Workload{Dataset: "text", Prompt: "How late is the client?", OSL: fmt.Sprint(tokens)},
		Sampling: bench.Sampling{Temperature: &zero},
		Phases:   []bench.Phase{{Name: bench.Measure, Load: load, Stop: bench.Stop{Requests: l.Requests, Grace: 10 * time.Second}}},
		Client: bench.Client{Timeout: 30 * time.Second, ConnectTimeout: 10 * time.Second, Connection: "reuse", HTTP: "1.1", Stamps: c.Stamps,
			RequestID: requestID},
		Keep: bench.Keep{Events: true}}
}
