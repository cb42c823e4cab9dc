//go:build unix

package isolate

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Possible tells whether this system allows an engine process.
const Possible = true

// monotonic reads a clock that all processes of the host share and nobody sets, in nanoseconds.
func monotonic() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("read the monotonic clock: %w", err)
	}
	return ts.Nano(), nil
}
