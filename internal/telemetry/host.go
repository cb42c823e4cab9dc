// Package telemetry finds out about the machine: the environment sheet.
package telemetry

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/prony-bench/prony/internal/bench"
)

// HostSheet describes this machine. What cannot be found out is left empty.
func HostSheet(ctx context.Context) bench.Host {
	h := bench.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0)}
	if info, err := host.InfoWithContext(ctx); err == nil {
		h.Kernel = info.KernelVersion
		if info.Platform != "" {
			h.OS = strings.TrimSpace(info.Platform + " " + info.PlatformVersion)
		}
		if info.VirtualizationRole == "guest" {
			h.Virtual = info.VirtualizationSystem
		}
	}
	if cpus, err := cpu.InfoWithContext(ctx); err == nil && len(cpus) > 0 {
		h.CPU = strings.TrimSpace(cpus[0].ModelName)
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		h.MemoryBytes = m.Total
	}
	h.Governor = firstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
	h.CPULimit, h.MemoryLimit = containerLimits("/sys/fs/cgroup")
	return h
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// containerLimits reads the limits of a cgroup of version 2, or of version 1; 0 = none.
func containerLimits(root string) (cores float64, memory uint64) {
	if quota, period, ok := strings.Cut(firstLine(root+"/cpu.max"), " "); ok && quota != "max" {
		q, err1 := strconv.ParseFloat(quota, 64)
		p, err2 := strconv.ParseFloat(period, 64)
		if err1 == nil && err2 == nil && p > 0 {
			cores = q / p
		}
	} else if q, err := strconv.ParseFloat(firstLine(root+"/cpu/cpu.cfs_quota_us"), 64); err == nil && q > 0 {
		if p, err := strconv.ParseFloat(firstLine(root+"/cpu/cpu.cfs_period_us"), 64); err == nil && p > 0 {
			cores = q / p
		}
	}
	for _, f := range []string{"/memory.max", "/memory/memory.limit_in_bytes"} {
		if n, err := strconv.ParseUint(firstLine(root+f), 10, 64); err == nil && n < 1<<60 { // "no limit" is written as 2^63
			return cores, n
		}
	}
	return cores, 0
}
