package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/metrics"
)

// manifest is the least that results can be made of.
func manifest() *bench.Manifest {
	return &bench.Manifest{Schema: bench.ManifestSchema, Journal: bench.JournalSchema, State: bench.Complete, Caveats: []bench.Caveat{},
		Spec: bench.Spec{Target: bench.Target{URLs: []string{"http://a", "http://b"}}, SLO: []bench.Limit{{Metric: "ttft", Max: 1}, {Metric: "itl", Max: 1}},
			Phases: []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Closed, Concurrency: 2}, Stop: bench.Stop{Requests: 3}}}}}
}

// What cannot be is told with its line, and no record of it is given.
func TestImpossibleRecords(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":1,"outcome":"won"}`: `line 1: request 1 has the unknown outcome "won"`,
		`{"id":1}`:                 `unknown outcome ""`,
		`{"id":1,"outcome":"ok","sent_ns":0,"end_ns":9223372036854775807}`:  "9223372036854775807 in end_ns: more than 100 days",
		`{"id":1,"outcome":"ok","sent_ns":-9223372036854775808}`:            "sent_ns",
		`{"id":1,"outcome":"ok","event_ns":[9223372036854775807]}`:          "event_ns",
		`{"id":1,"outcome":"ok","event_tokens":[16777216,1]}`:               "a count of 1 in event_tokens",
		`{"id":1,"outcome":"ok","event_tokens":[-1]}`:                       "event_tokens",
		`{"id":1,"outcome":"ok","osl":1099511627777}`:                       "a count of 1099511627777 in osl",
		`{"id":1,"outcome":"ok","isl":-5}`:                                  "isl",
		`{"id":-1,"outcome":"ok"}`:                                          "below 0",
		`{"id":1,"outcome":"ok","sent_ns":8640000000000000,"osl":16777216}`: "", // the bound itself
	} {
		n := 0
		var failed error
		for _, err := range readRecords(strings.NewReader(body + "\n")) {
			if failed = err; err == nil {
				n++
			}
		}
		switch {
		case want == "" && (failed != nil || n != 1):
			t.Errorf("%s: %v", body, failed)
		case want != "" && (n > 0 || failed == nil || !strings.Contains(failed.Error(), want)):
			t.Errorf("%s: %d records, %v; want %q", body, n, failed, want)
		}
	}
}

// A manifest of which no result can be made says what lacks; the planned number has a stand-in.
func TestManifestsThatLack(t *testing.T) {
	d := create(t)
	for want, spoil := range map[string]func(*bench.Manifest){
		"state":                  func(m *bench.Manifest) { m.State = "" },
		`unknown state "asleep"`: func(m *bench.Manifest) { m.State = "asleep" },
		"names no target":        func(m *bench.Manifest) { m.Spec.Target.URLs = nil },
		"no measured phase":      func(m *bench.Manifest) { m.Spec.Phases = nil },
		"no law of arrivals":     func(m *bench.Manifest) { m.Spec.Phases[0].Load = bench.Load{Shape: bench.Poisson} },
		"the percentile 100":     func(m *bench.Manifest) { m.Spec.Percentiles = []float64{50, 100} },
	} {
		m := manifest()
		spoil(m)
		d.WriteManifest(m)
		if _, err := d.Manifest(); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	d.WriteManifest(manifest())
	if m, err := d.Manifest(); err != nil || m.Planned != 3 {
		t.Errorf("%+v, %v", m, err)
	}
}

// A file that may not be written is no full disk.
func TestDiskFault(t *testing.T) {
	for err, want := range map[error]string{syscall.ENOSPC: "full", syscall.EACCES: "may not be written", syscall.EROFS: "may not be written", syscall.EIO: "is kept"} {
		f := diskFault(&fs.PathError{Op: "open", Path: "x", Err: err}, "x")
		if hint := fault.HintOf(f); !strings.Contains(hint, want) || strings.Contains(hint, "full") != errors.Is(err, syscall.ENOSPC) || fault.CodeOf(f) != fault.Internal {
			t.Errorf("%v: %q", err, hint)
		}
	}
}

// Whatever the reader of the journal lets through gives a summary that can be written.
func FuzzSummarize(f *testing.F) {
	whole := record(1)
	whole.Phase, whole.EventTokens, whole.EventChoice = bench.Measure, []int{1, 3}, []int{0, 1}
	line, _ := json.Marshal(whole)
	f.Add(append(line, '\n'), uint8(0))
	f.Add([]byte(`{"id":1,"phase":"measure","outcome":"ok","sent_ns":0,"first_ns":-5,"end_ns":100000000000,"last_ns":7,"osl":9,"isl":3,"event_ns":[9,-8,5],"event_tokens":[0,3,0]}
{"id":2,"phase":"measure","outcome":"refused","end_ns":3,"error":"port 4711"}
{"id":3,"phase":"measure","outcome":"ok","due_ns":5,"slot_ns":9,"sent_ns":-8,"handed_ns":1,"flags":["all_at_once"]}
`), uint8(1))
	f.Add([]byte(`{"id":1,"outcome":"won"}`+"\n"), uint8(2))
	loads := []bench.Load{{Shape: bench.Closed, Concurrency: 2}, {Shape: bench.Poisson, Rate: 3}, {Shape: bench.Constant, Rate: 1e-9}, {Shape: bench.Inf}, {Shape: bench.Inf, Cap: 1},
		{Shape: bench.Gamma, Rate: 1e9, Burstiness: 0.1, Cap: 1}}
	f.Fuzz(func(t *testing.T, b []byte, load uint8) {
		var records []bench.Record
		for r, err := range readRecords(bytes.NewReader(b)) {
			if err != nil {
				break
			}
			if r.Sent.Or(0) > time.Hour || r.End.Or(0) > time.Hour || r.Last.Or(0) > time.Hour || len(r.EventTokens) > 0 && slices.Max(r.EventTokens) > 1000 {
				return // can be, but takes long
			}
			records = append(records, r)
		}
		m := manifest()
		m.Spec.Phases[0].Load = loads[int(load)%len(loads)]
		s := metrics.Summarize(m, records)
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
	})
}
