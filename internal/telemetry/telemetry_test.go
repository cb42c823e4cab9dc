package telemetry

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prony-bench/prony/internal/bench"
)

func TestHostSheet(t *testing.T) {
	h := HostSheet(context.Background())
	if h.Cores < 1 || h.OS == "" || h.Arch == "" || h.GOMAXPROCS < 1 || h.MemoryBytes < 1<<20 {
		t.Errorf("%+v", h)
	}
}

func TestContainerLimits(t *testing.T) {
	for _, c := range []struct {
		files  map[string]string
		cores  float64
		memory uint64
	}{
		{nil, 0, 0},
		{map[string]string{"cpu.max": "max 100000\n", "memory.max": "max\n"}, 0, 0},
		{map[string]string{"cpu.max": "150000 100000\n", "memory.max": "1073741824\n"}, 1.5, 1 << 30},
		{map[string]string{"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000", "memory/memory.limit_in_bytes": "9223372036854771712"}, 2, 0},
		{map[string]string{"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000", "memory/memory.limit_in_bytes": "4096"}, 0, 4096},
	} {
		root := t.TempDir()
		for name, body := range c.files {
			os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777)
			os.WriteFile(filepath.Join(root, name), []byte(body), 0o600)
		}
		if cores, memory := containerLimits(root); cores != c.cores || memory != c.memory {
			t.Errorf("%v: %v cores, %v bytes", c.files, cores, memory)
		}
	}
}

func TestParseNvidia(t *testing.T) {
	got, err := parseNvidia("NVIDIA H200, GPU-1, 570.1, 143771, 700.00, 1980\nNVIDIA A100, GPU-2, 570.1, 81920, [N/A], [Not Supported]\n")
	want := []bench.GPU{{Name: "NVIDIA H200", UUID: "GPU-1", Driver: "570.1", MemoryMiB: 143771, PowerLimitW: 700, MaxSMClock: 1980},
		{Name: "NVIDIA A100", UUID: "GPU-2", Driver: "570.1", MemoryMiB: 81920}}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Error(err, cmp.Diff(want, got))
	}
	if _, err := parseNvidia("one, two\n"); err == nil {
		t.Error("a short row is taken")
	}
}

// nvidia-smi by a stand-in on the path: missing, failing, hanging is left to its timeout.
func TestGPUSheet(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if gpus, note := GPUSheet(context.Background()); gpus != nil || note != "nvidia-smi is not installed here" {
		t.Errorf("%v %q", gpus, note)
	}
	for body, want := range map[string]string{
		"echo 'NVIDIA-SMI has failed'; exit 9": "nvidia-smi: NVIDIA-SMI has failed",
		"exit 0":                               "nvidia-smi names no GPU",
		"echo garbage":                         "nvidia-smi: record on line 1: wrong number of fields",
		"echo 'NVIDIA L4, GPU-3, 1.2, 23034, 72.0, 2040'": "",
	} {
		os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+body+"\n"), 0o755)
		gpus, note := GPUSheet(context.Background())
		if note != want || (len(gpus) == 1) != (want == "") {
			t.Errorf("%q: %v %q", body, gpus, note)
		}
	}
}

// What this process does shows in its toll.
func TestToll(t *testing.T) {
	end := StartToll()
	before := time.Now()
	for x := 0; time.Since(before) < 50*time.Millisecond; x++ {
		_ = make([]byte, 1<<16)
	}
	runtime.GC()
	got := end()
	if got.User+got.System <= 0 || got.GCs < 1 || got.GCPauses < got.LongestGC || got.LongestGC <= 0 {
		t.Errorf("%+v", got)
	}
	if runtime.GOOS == "linux" && (got.PeakMemory < 1<<20 || !got.Steal.Defined()) {
		t.Errorf("%+v", got)
	}
}
