//go:build unix

package workload

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// A pipe is refused before it is opened: opening would wait for a writer for ever.
func TestPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{pipe, "/dev/null", "-"} {
		for _, d := range []Dataset{Lines{}, JSONL{}} {
			_, err := d.Open(Config{Spec: bench.Workload{OSL: "1", Path: path}})
			if fault.CodeOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "file first") {
				t.Errorf("%s %s: %v", d.Name(), path, err)
			}
		}
	}
}
