//go:build !unix

package isolate

import "errors"

// Possible tells whether this system allows an engine process.
const Possible = false

func monotonic() (int64, error) {
	return 0, errors.New("no monotonic clock is shared between processes")
}
