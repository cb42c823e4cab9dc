package sim

import (
	"bytes"
	"sync"
	"time"
)

// reply is an answer under way. Events come from its source; faults interfere; each write is made ready as soon as the one before
// it has gone out, and goes out when it is due: by the pacer, or by a goroutine with plain timers.
type reply struct {
	s      *Server
	c      *conn
	src    source
	refuse refusal
	gen    *generation // nil for a script
	seq    *sequence   // in engine mode
	faults faults
	keep   bool // the connection may be used again afterwards
	turn   int  // number of its request on the connection, from 1

	done chan struct{} // closed when the reply is over and written down
	wake chan struct{} // a source that had nothing has something; for the goroutine with timers. One place

	mu      sync.Mutex // guards what follows, but for out while its owner writes it
	frame   framing
	ev      event
	events  int // that the source has given
	out     []byte
	off     int           // of out, written
	lim     int           // of out, to be written next: its end but for a drip
	due     time.Duration // of the next write
	tokens  int           // in out
	then    then          // after out
	parked  bool          // waits for its source
	behind  bool          // a full socket has held it up, and it has not caught up yet
	hung    bool          // will never be written again
	ending  bool          // the last write has begun: its writer ends the reply
	over    bool
	first   time.Duration // write of the first and of the latest token
	last    time.Duration
	started bool // a token has been written
	rec     TruthRecord
}

// replyState is what is to be done with a reply next.
type replyState uint8

const (
	isReady  replyState = iota // a write is ready: wait until due
	isParked                   // wait for the source
	isHung                     // nothing, until the connection closes
	isOver                     // settle
)

// start sends a reply on its way. The caller has written the head unless it is to go with the first write.
func (r *reply) start() {
	r.mu.Lock()
	state := r.prepare()
	r.mu.Unlock()
	r.hand(state)
}

// hand gives a reply to whoever writes it.
func (r *reply) hand(state replyState) {
	if r.c.raw == nil {
		r.s.wg.Go(func() { r.play(state) })
		return
	}
	switch state {
	case isReady:
		r.s.pace.push(r)
	case isOver:
		r.settle()
	}
}

// prepare makes the next write ready. The caller holds mu, and out has been written.
func (r *reply) prepare() replyState {
	for {
		r.ev.clear()
		if !r.src.next(&r.ev) {
			r.parked = true
			return isParked
		}
		r.events++
		from := len(r.out)
		half := r.interfere(&r.ev)
		if len(r.ev.body) > 0 || r.ev.then != hang {
			r.out = r.frame.append(r.out, &r.ev)
		}
		if half {
			r.out = r.out[:from+(len(r.out)-from)/2]
		}
		r.tokens += r.ev.tokens
		r.then = r.ev.then
		if r.then == goOn && (r.faults.atOnce || len(r.out) == 0) {
			continue
		}
		break
	}
	r.lim = len(r.out)
	if r.faults.drip > 0 && r.lim > 0 {
		r.lim = 1
		r.due = max(r.ev.due, r.due+r.faults.drip)
	} else {
		r.due = r.ev.due
	}
	if r.lim == 0 {
		return r.finish()
	}
	return isReady
}

// interfere lets a fault strike in the middle of an answer. half asks for the first half of the event's bytes only.
func (r *reply) interfere(e *event) (half bool) {
	f := r.faults.middle
	if f == nil || r.events <= f.After && e.then == goOn {
		return false
	}
	switch f.Kind {
	case FaultStall:
		e.clear()
		e.then = hang
	case FaultCut, FaultReset:
		e.tokens, e.then = 0, cut
		if f.Kind == FaultReset {
			e.then = reset
		}
		return true
	case FaultMalformed:
		r.faults.middle = nil // once
		e.tokens = 0
		e.body = breakJSON(e.body, e.cuts)
		e.cuts[len(e.cuts)-1] = len(e.body)
	case FaultError:
		due := e.due
		e.clear()
		e.due, e.then = due, clean
		r.src.(*generated).speaker.broken(e) // faults strike generations only
	}
	return false
}

// breakJSON cuts the last chunk of an event in the middle of its JSON. Events of a stream keep their blank line.
func breakJSON(body []byte, cuts []int) []byte {
	from := 0
	if len(cuts) > 1 {
		from = cuts[len(cuts)-2]
	}
	last := body[from:]
	if event, ok := bytes.CutSuffix(last, []byte("\n\n")); ok {
		return append(body[:from+len(event)/2], "\n\n"...)
	}
	return body[:from+len(last)/2]
}

// note writes down that a write is about to begin, and returns its bytes. The caller holds mu.
func (r *reply) note() []byte {
	t := time.Now()
	now := t.Sub(r.s.start)
	tokens := 0
	if r.lim == len(r.out) {
		tokens = r.tokens
		r.ending = r.then != goOn && r.then != hang
	}
	if rec := &r.rec; len(rec.Write) < maxWritesPerRequest {
		rec.Due = append(rec.Due, r.due)
		rec.Write = append(rec.Write, now)
		rec.Wall = append(rec.Wall, t.UnixNano())
		rec.Tokens = append(rec.Tokens, int32(tokens))
	} else {
		rec.Lost++
	}
	r.rec.Bytes += r.lim - r.off
	if !r.behind {
		r.s.truth.note(now - r.due)
	}
	if tokens > 0 {
		r.rec.Output += tokens
		r.s.met.written(r, now, tokens)
	}
	return r.out[r.off:r.lim]
}

// wrote goes on after a write. The caller holds mu.
func (r *reply) wrote() replyState {
	if r.off = r.lim; r.off < len(r.out) {
		r.lim++
		r.due += r.faults.drip
		return isReady
	}
	if r.then != goOn {
		return r.finish()
	}
	r.out, r.off, r.tokens = r.out[:0], 0, 0
	return r.prepare()
}

// finish ends a reply that has been written to its end. The caller holds mu.
func (r *reply) finish() replyState {
	switch r.then {
	case hang:
		r.hung = true
		return isHung
	case cut, reset:
		r.end(WasCut)
	default:
		r.end(Complete)
	}
	return isOver
}

// end marks the reply as over; false when it was already. The caller holds mu, and settles once it has let go of it.
func (r *reply) end(how Ending) bool {
	if r.over {
		return false
	}
	if r.over = true; r.hung {
		how = Hung
	}
	r.rec.Outcome, r.rec.End = how, r.s.now()
	return true
}

// abort ends a reply whose connection has gone. A client may close as soon as it has the last byte, ahead of the return of the
// write that brought it; that write then says how the reply has ended.
func (r *reply) abort() {
	r.mu.Lock()
	ended := !r.ending && r.end(r.gone())
	r.mu.Unlock()
	if ended {
		r.settle()
	}
}

// gone is the ending of a reply whose connection has gone.
func (r *reply) gone() Ending {
	if r.s.stopping() {
		return Stopped
	}
	return Aborted
}

// settle does what follows the end of a reply: the truth, the metrics, and what becomes of the connection. It is called once, by
// whoever ended it, without mu.
func (r *reply) settle() {
	if r.rec.Outcome != Complete {
		r.keep = false
	}
	if r.seq != nil {
		if r.rec.Outcome != Complete {
			r.s.drive.abort(r.seq)
		}
		// the scheduler does not touch it any more
		if r.seq.admitted {
			r.rec.Queued, r.rec.Cached = r.seq.scheduled-r.rec.Arrival, r.seq.cached
		}
	}
	r.s.met.ended(r)
	r.s.truth.add(r.rec)
	r.s.loaded.Add(-1)
	switch {
	case r.then == reset && r.rec.Outcome == WasCut:
		r.c.reset()
	case !r.keep:
		r.c.nc.Close()
	case r.faults.idle > 0:
		r.c.closeIdleAfter(r.faults.idle, r.turn)
	}
	if r.keep {
		r.c.out, r.c.ev = r.out, r.ev
	}
	close(r.done)
}

// kick tells a reply that its source has something.
func (r *reply) kick() {
	r.mu.Lock()
	if !r.parked || r.over {
		r.mu.Unlock()
		return
	}
	if r.c.raw == nil {
		r.mu.Unlock()
		select {
		case r.wake <- struct{}{}:
		default:
		}
		return
	}
	r.parked = false
	state := r.prepare()
	r.mu.Unlock()
	r.hand(state)
}

// backInTime is how far ahead of its next write a reply must be to be given back to the pacer.
const backInTime = time.Millisecond

// play writes a reply with plain timers until it is over. One that belongs to the pacer goes back to it when it has caught up.
func (r *reply) play(state replyState) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		switch state {
		case isOver:
			r.settle()
			return
		case isHung:
			return
		case isParked:
			if r.c.raw != nil {
				return // kick hands it to the pacer
			}
			select {
			case <-r.wake:
			case <-r.done:
				return
			}
			r.mu.Lock()
			if r.over {
				r.mu.Unlock()
				return
			}
			r.parked = false
			state = r.prepare()
			r.mu.Unlock()
			continue
		}
		if wait := r.due - r.s.now(); wait > 0 {
			r.behind = false
			if r.c.raw != nil && wait > backInTime {
				r.s.pace.push(r)
				return
			}
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-r.done:
				return
			}
		}
		r.mu.Lock()
		if r.over {
			r.mu.Unlock()
			return
		}
		data := r.note()
		r.mu.Unlock()
		state = r.writeOut(data)
	}
}

// slowWrite is how long a write may take before it counts as held up by a full socket. It takes some 10 us, and 10 ms more where a
// busy machine takes the processor away in the middle, which is the server's own lateness.
const slowWrite = 20 * time.Millisecond

// writeOut writes and waits for it, without mu.
func (r *reply) writeOut(data []byte) replyState {
	begin := r.s.now()
	_, err := r.c.nc.Write(data)
	took := r.s.now() - begin
	r.mu.Lock()
	defer r.mu.Unlock()
	if took > slowWrite && !r.behind {
		r.heldUp()
	}
	switch {
	case r.over:
		return isHung // somebody else has ended it, and settles
	case err != nil:
		r.end(r.gone())
		return isOver
	}
	return r.wrote()
}

// heldUp notes that a full socket holds the reply up. The caller holds mu.
func (r *reply) heldUp() {
	r.behind = true
	r.rec.Held++
	r.s.truth.held.Add(1)
}

// finishHeld writes the rest of a write for which the socket had no room, and plays on from there.
func (r *reply) finishHeld(rest []byte) { r.play(r.writeOut(rest)) }
