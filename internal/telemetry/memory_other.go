//go:build !unix

package telemetry

// peakMemory is the most memory that this process has had, in bytes; 0 = not known.
func peakMemory() uint64 { return 0 }
