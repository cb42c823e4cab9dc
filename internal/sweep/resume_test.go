package sweep

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/sim"
	"github.com/prony-bench/prony/internal/store"
)

// hashes are those of all files below a directory.
func hashes(t *testing.T, dir string) map[string][32]byte {
	out := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[rel] = sha256.Sum256(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A sweep that was killed in any of its runs goes on there: each level and round is there once, and what had ended is as it was.
func TestResume(t *testing.T) {
	loads, rounds := []float64{1, 2, 4}, 2
	for at := range len(loads) * rounds {
		virtual(t, sim.EngineConfig{Cost: &testCost}, func(w *world) {
			w.Plan.Loads, w.Plan.Rounds, w.Plan.Requests = loads, rounds, 300
			interrupt := make(chan struct{})
			w.Interrupt = interrupt
			begun, broken := 0, ""
			w.Begin = func(p *run.Plan, what string) func(run.Progress) {
				mine := begun
				begun++
				return func(pr run.Progress) {
					if mine == at && broken == "" {
						broken = what
						close(interrupt)
					}
				}
			}
			curve := w.do()
			if curve.State != bench.Interrupted || broken == "" {
				w.t.Fatalf("run %d: %s", at, curve.State)
			}
			dirs, _ := filepath.Glob(filepath.Join(w.Dir, "c*-r*"))
			if len(dirs) != at+1 {
				w.t.Fatalf("run %d: %d directories", at, len(dirs))
			}
			before := map[string]map[string][32]byte{}
			for _, d := range dirs {
				run := &store.Dir{Path: d}
				m, err := run.Manifest()
				if err != nil {
					w.t.Fatal(err)
				}
				if m.State == bench.Complete {
					before[filepath.Base(d)] = hashes(w.t, d)
					continue
				}
				m.State = bench.Running // as it is left by kill -9
				run.WriteManifest(m)
				os.Remove(filepath.Join(d, store.SummaryFile))
			}
			if len(before) != at {
				w.t.Errorf("run %d: %d have ended", at, len(before))
			}

			again, err := Load(w.Dir)
			if err != nil {
				w.t.Fatal(err)
			}
			w.Interrupt, w.Begin = nil, nil
			made := 0
			w.Each = func(_ *bench.Curve, _ *bench.CurveLevel, again bool) { made += count(!again) }
			w.Plan, w.Spec = again.Plan, again.Spec
			if err := Run(context.Background(), &w.Config, again); err != nil {
				w.t.Fatal(err)
			}
			if made != len(loads)*rounds-at || again.State != bench.Complete || len(again.Levels) != len(loads) {
				w.t.Errorf("run %d: %d made, %s, %d levels", at, made, again.State, len(again.Levels))
			}
			var have []string
			for _, l := range again.Levels {
				for _, r := range l.Runs {
					have = append(have, r.Dir)
				}
			}
			slices.Sort(have)
			if want := "[c1-r1 c1-r2 c2-r1 c2-r2 c4-r1 c4-r2]"; fmt.Sprint(have) != want {
				w.t.Errorf("run %d: %v", at, have)
			}
			for name, h := range before {
				if now := hashes(w.t, filepath.Join(w.Dir, name)); fmt.Sprint(now) != fmt.Sprint(h) {
					w.t.Errorf("run %d: %s has changed", at, name)
				}
			}
		})
	}
}

// A run that was killed between its last request and its last file is completed, not repeated.
func TestResumeAtTheEnd(t *testing.T) {
	virtual(t, sim.EngineConfig{Cost: &testCost}, func(w *world) {
		w.Plan.Loads, w.Plan.Requests = []float64{1, 2}, 20
		c := w.do()
		os.Remove(filepath.Join(w.Dir, "c2-r1", store.SummaryFile))
		os.Remove(filepath.Join(w.Dir, "c2-r1", store.ParquetFile))
		made := 0
		w.Each = func(_ *bench.Curve, _ *bench.CurveLevel, again bool) { made += count(!again) }
		if err := Run(context.Background(), &w.Config, c); err != nil {
			w.t.Fatal(err)
		}
		if _, err := (&store.Dir{Path: filepath.Join(w.Dir, "c2-r1")}).Summary(); err != nil || made != 0 {
			w.t.Errorf("%v, %d made", err, made)
		}
	})
}

// Prompts that are the same in each run get a salt where the engine knows one; the user's own stays.
func TestSalt(t *testing.T) {
	for _, c := range []struct{ engine, dataset, extra, want string }{
		{"vllm", "text", "", `{"cache_salt":"sweep-5"}`},
		{"vllm", "text", `{"a":1}`, `{"a":1,"cache_salt":"sweep-5"}`},
		{"vllm", "text", `{"cache_salt":"mine"}`, `{"cache_salt":"mine"}`},
		{"vllm", "random", "", ""},
		{"sglang", "text", "", ""},
	} {
		p := &run.Plan{Spec: bench.Spec{Seed: 5, Workload: bench.Workload{Dataset: c.dataset}, Target: bench.Target{Engine: c.engine, Endpoint: "chat"}}}
		if c.extra != "" {
			p.Spec.Target.ExtraBody = []byte(c.extra)
		}
		if err := salt(p); err != nil || string(p.Spec.Target.ExtraBody) != c.want {
			t.Errorf("%v: %s, %v", c, p.Spec.Target.ExtraBody, err)
		}
	}
}
