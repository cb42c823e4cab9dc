package dialect

import "time"

// Began returns when the first output of an answer that is still coming was there, and whether it was.
func (f *Fold) Began() (at time.Duration, ok bool) {
	if len(f.times) == 0 {
		return 0, false
	}
	return f.times[0], true
}
