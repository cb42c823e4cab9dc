//go:build !linux

package client

import "time"

func newSleeper(c *clock, _ time.Duration) sleeper { return newTimerSleeper(c) }

func prepareThread() {}
