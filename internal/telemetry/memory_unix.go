//go:build unix

package telemetry

import (
	"runtime"
	"syscall"
)

// peakMemory is the most memory that this process has had, in bytes; 0 = not known.
func peakMemory() uint64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return uint64(u.Maxrss)
	}
	return uint64(u.Maxrss) << 10
}
