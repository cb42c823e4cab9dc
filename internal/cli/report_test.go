package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
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

// The next command measures the same target.
func TestTargetFlags(t *testing.T) {
	m := &bench.Manifest{Command: []string{"prony", "run", "--url", "http://b", "--model", "a model", "--isl=5", "--endpoint=completions", "--engine"}}
	m.Spec.Target.URLs = []string{"http://a"}
	if got, want := targetFlags(m), "--url http://a --model 'a model' --endpoint completions --engine ''"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
