package client

import "time"

// sleeper lets the dispatcher wait for a moment or for a wake-up, whichever is first.
type sleeper interface {
	// until waits until the clock shows t, or until wake. A negative t waits for wake alone.
	until(t time.Duration)
	// wake ends the current until, or the next one.
	wake()
	close()
}

// timerSleeper waits with Go's timers: exact in virtual time, 1 ms late otherwise.
type timerSleeper struct {
	clock *clock
	woken chan struct{}
}

func newTimerSleeper(c *clock) *timerSleeper {
	return &timerSleeper{clock: c, woken: make(chan struct{}, 1)}
}

func (s *timerSleeper) until(t time.Duration) {
	if t < 0 {
		<-s.woken
		return
	}
	timer := time.NewTimer(t - s.clock.now())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.woken:
	}
}

func (s *timerSleeper) wake() {
	select {
	case s.woken <- struct{}{}:
	default: // a wake-up is pending already
	}
}

func (s *timerSleeper) close() {}
