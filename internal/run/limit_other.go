//go:build !unix

package run

// fileLimit is not known here.
func fileLimit() (uint64, bool) { return 0, false }
