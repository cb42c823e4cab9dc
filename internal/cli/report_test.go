package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/report"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/store"
)

// The end line names the files that are there.
func TestWrittenFiles(t *testing.T) {
	dir := t.TempDir()
	res := &run.Result{Dir: &store.Dir{Path: dir}, Manifest: &bench.Manifest{}, Summary: &bench.Summary{}}
	last := func() string {
		var b strings.Builder
		if err := (report.Text{}).Render(&b, written(res)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if out := last(); strings.Contains(out, "summary.json") || !strings.Contains(out, filepath.Base(dir)) {
		t.Errorf("nothing was written, and yet:\n%s", out)
	}
	if err := os.WriteFile(filepath.Join(dir, store.SummaryFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out := last(); !strings.Contains(out, "summary.json") || strings.Contains(out, "report.html") {
		t.Errorf("the summary alone was written, and yet:\n%s", out)
	}
}

// The next command repeats what was given, but for the load, the directory and the seed; what grants access is not in it.
func TestNextCommand(t *testing.T) {
	given := redact([]string{"prony", "run", "--url", "http://a", "--url=http://b", "--model", "a model", "--isl=5", "--endpoint=completions", "--ignore-eos", "--num-prompts", "7", "--json",
		"--concurrency", "4", "--out", "x", "--seed=3", "--api-key", "sekret", "--header", "X-Token: sekret", "--stamps", "wire", "--connection", "new", "--goodput", "ttft:5 tpot:6"})
	const kept = "--url http://a --url=http://b --model 'a model' --isl=5 --endpoint=completions --ignore-eos --api-key REDACTED --header X-Token:REDACTED " +
		"--stamps wire --connection new --goodput 'ttft:5 tpot:6'"
	const asked = "--model 'a model' --endpoint=completions --ignore-eos --api-key REDACTED --header X-Token:REDACTED"
	for _, c := range []struct {
		name       string
		command    []string
		ok, failed int
		shape      bench.Shape
		planned    int
		noneDue    bool
		unusable   bool
		want       string
	}{
		{"a closed loop", given, 7, 0, bench.Closed, 7, false, false, "prony run " + kept + " --request-rate 7.0 --num-requests 100"},
		{"for a time", []string{"prony", "run", "--url", "http://a", "--duration", "5s"}, 7, 0, bench.Closed, 0, false, false, "prony run --url http://a --duration 5s --request-rate 7.0"},
		{"an open loop", given, 7, 0, bench.Poisson, 7, false, false, "prony report d --format html --out report.html"},
		{"mostly failed", given, 3, 4, bench.Closed, 7, false, false, "prony probe http://a " + asked},
		{"half failed", given, 4, 4, bench.Poisson, 8, false, false, "prony report d --format html --out report.html"},
		{"all failed", given, 0, 7, bench.Poisson, 7, false, false, "prony probe http://a " + asked},
		{"unusable", given, 0, 7, bench.Closed, 7, false, true, "prony probe http://a " + asked},
		{"none due", []string{"prony", "run", "--url", "http://a", "--request-rate", "0.1", "--duration", "1s"}, 0, 0, bench.Poisson, 0, true, false,
			"prony run --url http://a --request-rate 0.1 --num-requests 100"},
		{"cut off in a flag", []string{"prony", "run", "--model"}, 7, 0, bench.Closed, 7, false, false, "prony run --model --request-rate 7.0 --num-requests 100"},
	} {
		m := &bench.Manifest{Command: c.command, Planned: c.planned}
		m.Spec.Target = bench.Target{URLs: []string{"http://a"}, Stream: true}
		m.Spec.Phases = []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: c.shape}}}
		s := &bench.Summary{Requests: bench.Counts{OK: c.ok, Failed: c.failed, Sent: c.ok + c.failed},
			Metrics: bench.Metrics{{Key: "request_throughput", Scalar: &bench.Scalar{Value: opt.Some(10.0)}}}}
		if c.noneDue {
			s.Caveats = []bench.Caveat{{Code: "none_due"}}
		}
		res := &run.Result{Dir: &store.Dir{Path: "d"}, Manifest: m, Summary: s}
		if c.unusable {
			res.Unusable = errors.New("x")
		}
		if got := nextCommand(res); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
