package client

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/wire"
)

// An engine thread that is woken for every segment spends more on waking than on reading. The kernel has stamped what arrives, so that
// a late read costs no precision: while many streams run, the thread rests between its reads. It rests for a fiftieth of the time
// between two reads of one stream at most, so that no two events of a stream share a read for that, and is up in time for what is due.
// A job that waits for a place goes out later by no more than longestRest.
const (
	restShare   = 50
	leastRest   = 50 * time.Microsecond // less costs more than it saves
	longestRest = 400 * time.Microsecond
	paceWindow  = 5 * time.Millisecond // over which the reads are counted
)

// spend counts what the calling thread, which ends, has used of the processors.
func (n *counts) spend() {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) == nil {
		n.user.Add(u.Utime.Nano())
		n.system.Add(u.Stime.Nano())
	}
}

// pace is how fast the reads of an engine thread come.
type pace struct {
	from  time.Duration
	reads int
	rest  time.Duration // between reads; 0 = none
}

// look counts the reads of a window, and sets the rest by them.
func (p *pace) look(now time.Duration, busy int) {
	window := now - p.from
	if window < paceWindow {
		return
	}
	p.rest = 0
	if p.reads > 0 {
		if gap := window * time.Duration(busy) / time.Duration(p.reads); gap/restShare >= leastRest && window/time.Duration(p.reads) < leastRest {
			p.rest = min(longestRest, gap/restShare)
		}
	}
	p.from, p.reads = now, 0
}

// pause rests, where that saves something.
func (l *loop) pause() {
	if l.o.Stamps == wire.StampUser {
		return // a late read is a late time
	}
	l.pace.look(l.now, l.busy)
	rest := l.pace.rest
	if l.next != never {
		rest = min(rest, l.next-l.o.Spin-l.clock.now())
	}
	if rest < leastRest {
		return
	}
	ts := unix.NsecToTimespec(int64(rest))
	syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0) // a signal may end it: so much the better
}
