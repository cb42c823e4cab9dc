package client

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// spinSleeper waits in the kernel, whose timers are good to some 20-80 us, until Spin before the moment, and polls the clock for
// the rest. An eventfd wakes it.
type spinSleeper struct {
	clock *clock
	spin  time.Duration
	fd    int
	woken atomic.Bool
}

func newSleeper(c *clock, spin time.Duration) sleeper {
	if spin <= 0 {
		return newTimerSleeper(c)
	}
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return newTimerSleeper(c)
	}
	return &spinSleeper{clock: c, spin: spin, fd: fd}
}

// prepareThread asks for exact timers on the calling thread, which must be locked.
func prepareThread() { unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

func (s *spinSleeper) until(t time.Duration) {
	for !s.woken.Load() {
		var timeout *unix.Timespec
		if t >= 0 {
			left := t - s.spin - s.clock.now()
			if left <= 0 {
				break
			}
			ts := unix.NsecToTimespec(int64(left))
			timeout = &ts
		}
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
		if n, err := unix.Ppoll(fds, timeout, nil); n > 0 && err == nil {
			break
		}
	}
	for s.clock.now() < t && !s.woken.Load() && t-s.clock.now() <= s.spin {
	}
	s.clear() // a wake-up too many is no harm: the dispatcher looks around and waits again
}

// clear takes a pending wake-up. One that comes meanwhile is kept by its flag.
func (s *spinSleeper) clear() {
	s.woken.Store(false)
	var b [8]byte
	unix.Read(s.fd, b[:]) // the counter back to 0; non-blocking, and an empty one is no harm
}

func (s *spinSleeper) wake() {
	if !s.woken.Swap(true) {
		unix.Write(s.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (s *spinSleeper) close() { unix.Close(s.fd) }
