//go:build unix

package telemetry

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
)

// peakMemory is the most memory that this process has had, in bytes; 0 = not known. On Linux getrusage would tell of the process that
// started this one, too.
func peakMemory() uint64 {
	switch runtime.GOOS {
	case "linux":
		b, _ := os.ReadFile("/proc/self/status")
		lines := bufio.NewScanner(bytes.NewReader(b))
		for lines.Scan() {
			if f := bytes.Fields(lines.Bytes()); len(f) == 3 && string(f[0]) == "VmHWM:" {
				kib, _ := strconv.ParseUint(string(f[1]), 10, 50)
				return kib << 10
			}
		}
		return 0
	case "darwin":
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
			return uint64(u.Maxrss)
		}
	}
	return 0
}
