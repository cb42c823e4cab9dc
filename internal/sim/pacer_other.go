//go:build !linux

package sim

import "time"

// pacer does not exist here: answers are written with plain timers.
type pacer struct{}

type rawWrite struct{}

func newPacer(time.Time, time.Duration) (*pacer, error) { return nil, nil }

func (*pacer) adopt(*conn) {}
func (*pacer) push(*reply) {}
func (*pacer) stop()       {}
