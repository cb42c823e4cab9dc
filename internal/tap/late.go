package tap

import "slices"

// piece is a part of the stream that came behind a hole.
type piece struct {
	start, end int64
	at         int64
	losses     uint32 // of the capture, when it came
}

// hold keeps what is new of a segment behind a hole.
func (f *Flow) hold(start, end, at int64, losses uint32) {
	i := len(f.late)
	for i > 0 && f.late[i-1].end > start {
		i--
	}
	for ; start < end; i++ {
		to := end
		if i < len(f.late) {
			to = min(end, f.late[i].start)
		}
		if start < to {
			if len(f.late) == maxLate {
				f.own++
				f.stats.Dropped++
				return
			}
			f.late = slices.Insert(f.late, i, piece{start, to, at, losses})
			i++
		}
		if i == len(f.late) {
			return
		}
		start = f.late[i].end
	}
}

// fill accounts for a segment that continues the stream, and for what it frees behind it. If the capture has lost packets since
// the hole opened, the hole's packet may have been among them and this a second one, so that nothing of it can be dated.
func (f *Flow) fill(end, at int64, losses uint32) {
	if losses != f.safe {
		at = none
	}
	f.extend(end, at)
	i := 0
	for ; i < len(f.late) && f.late[i].start <= f.next; i++ {
		if p := f.late[i]; at == none {
			f.extend(p.end, none)
		} else {
			f.extend(p.end, max(at, p.at))
		}
	}
	f.forget(i)
	switch {
	case len(f.late) == 0:
		f.safe = losses
	case at == none:
		f.doubt() // what is still behind a hole may have come before this, or after the first copy of this
	}
}

// forget drops the first pieces.
func (f *Flow) forget(n int) {
	f.late = slices.Delete(f.late, 0, n)
}
