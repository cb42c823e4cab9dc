package run

import (
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/schedule"
	"github.com/prony-bench/prony/internal/wire"
)

// Bounds of what is prepared ahead of its time. A phase begins when its first requests are ready, so that none is late because it was
// not.
const (
	lookahead    = 2 * time.Second        // a request is encoded so long before it is due
	mostWaiting  = 2048                   // encoded requests that may wait for a slot
	mostPrepared = 64 << 20               // bytes of them
	fewestReady  = 2                      // that may wait however large they are
	firstReady   = 64                     // requests that are ready at the begin, besides one for each slot
	startDelay   = 20 * time.Millisecond  // from the last preparation to the begin of a phase
	openTime     = 100 * time.Microsecond // more for each connection that is opened ahead: what one takes of a processor, twice over
)

// submitAll hands the phase's requests to the client ahead of their times.
func (p *phaseRun) submitAll() {
	seq, err := p.dataset()
	if err != nil {
		p.fail(err)
		return
	}
	pull, stop := iter.Pull2(seq)
	defer stop()
	next := func() (bench.Request, error) {
		q, err, ok := pull()
		if err == nil && !ok {
			err = fault.New(fault.Internal, "the data set ended", "")
		}
		return q, err
	}
	if p.gated() {
		p.submitGated(func() (*task, error) {
			q, err := next()
			if err != nil {
				return nil, err
			}
			return p.prepare(q, 0)
		})
		return
	}
	var ready []*task // until the phase begins
	size, begun := 0, false
	p.ranOut = true
	for i, at := range p.offsets() {
		if p.isLast(i, at) || p.stopped() {
			p.ranOut = false
			break
		}
		if !begun && p.enough(len(ready), size, at) {
			p.begin(ready)
			begun = true
		}
		if begun && !p.waitAhead(p.start+at) {
			return
		}
		for ; p.skip > 0 && err == nil; p.skip-- {
			_, err = next()
		}
		var q bench.Request
		if err == nil {
			q, err = next()
		}
		var t *task
		if err == nil {
			t, err = p.prepare(q, at)
		}
		if err != nil {
			p.fail(err)
			return
		}
		if begun {
			p.submit(t)
		} else {
			ready = append(ready, t)
			size += t.size
		}
	}
	if !begun {
		p.begin(ready)
	}
}

// dataset opens the requests of the phase.
func (p *phaseRun) dataset() (iter.Seq2[bench.Request, error], error) {
	return p.r.plan.open(p.ph)
}

// isLast tells whether the phase ends before its i-th request, which is due at an offset from the begin.
func (p *phaseRun) isLast(i int, at time.Duration) bool {
	s := p.ph.Stop
	return s.Requests > 0 && i >= s.Requests || s.Duration > 0 && p.ph.Load.Paced() && at >= s.Duration
}

// enough tells whether so much is ready that the phase may begin.
func (p *phaseRun) enough(n, size int, at time.Duration) bool {
	switch limit := p.ph.Load.InFlightLimit(); {
	case size >= mostPrepared && n >= limit+fewestReady, n >= limit+mostWaiting:
		return true
	case p.ph.Load.Paced():
		return at >= lookahead
	case limit > 0:
		return n >= limit+min(max(limit, firstReady), mostWaiting/2)
	}
	return false
}

// begin sets the start of the phase and submits what is ready.
func (p *phaseRun) begin(ready []*task) {
	p.start = p.r.engine.Now() + p.delay
	p.meter.begin()
	close(p.begun)
	for _, t := range ready {
		p.submit(t)
	}
}

// offsets numbers the requests and says when each is due, counted from the begin. Without a schedule all are due at the begin.
func (p *phaseRun) offsets() iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		i := 0
		if !p.ph.Load.Paced() {
			for ; yield(i, 0); i++ {
			}
			return
		}
		if p.ph.Load.Shape == bench.Trace {
			p.replay(yield)
			return
		}
		shape, err := schedule.Of(p.ph.Load)
		if err != nil {
			p.fail(err)
			return
		}
		for at := range shape.Arrivals(rng.New(p.r.plan.Spec.Seed, streamName("schedule", p.ph.Name))) {
			if !yield(i, at) {
				return
			}
			i++
		}
	}
}

// replay gives the moments of a trace that lie in its window. Requests outside it are passed over, where the moments are theirs.
func (p *phaseRun) replay(yield func(int, time.Duration) bool) {
	own := p.ph.Load.Times == ""
	replay := schedule.ReplayOf(p.ph.Load, nil)
	i, last := 0, time.Duration(0)
	for t, err := range p.r.plan.timestamps(p.ph) {
		if err != nil {
			p.fail(err)
			return
		}
		at, inside := replay.At(t)
		if !inside {
			if own && t >= p.ph.Load.From { // those before it are not opened
				p.skip++
			}
			continue
		}
		if last = max(last, at); !yield(i, last) {
			return
		}
		i++
	}
}

// waitAhead waits until a request that is due then may be prepared. It returns false when the phase is to stop.
func (p *phaseRun) waitAhead(due time.Duration) bool {
	if wait := due - lookahead - p.r.engine.Now(); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.stop:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if limit := p.ph.Load.InFlightLimit(); limit > 0 {
		for p.tooMuchWaits(limit) && !p.stopped() {
			p.idle.Wait()
		}
	}
	return !p.stopped()
}

// tooMuchWaits tells whether what waits for a slot is at its bound; p.mu is held.
func (p *phaseRun) tooMuchWaits(limit int) bool {
	waiting := p.open - limit
	if waiting < fewestReady {
		return false
	}
	return waiting >= mostWaiting || p.held/p.open*waiting >= mostPrepared
}

// prepare encodes a request that is due at an offset from the begin.
func (p *phaseRun) prepare(q bench.Request, at time.Duration) (*task, error) {
	pl := p.r.plan
	q.ID, q.Phase = p.r.nextID, p.ph.Name
	if q.Conversation == 0 {
		q.Conversation = q.ID
	}
	p.r.nextID++
	call, err := pl.Endpoint.Codec.Encode(pl.Endpoint, &q, &pl.Options)
	if err != nil {
		return nil, err
	}
	if prefix := pl.Spec.Client.RequestID; prefix != "" {
		call.Header = append(slices.Clip(call.Header), wire.Field{Name: "X-Request-Id", Value: prefix + "-" + strconv.Itoa(q.ID)})
	}
	t := &task{plan: pl, req: q, load: p.ph.Load, size: len(call.Body), at: at}
	t.job = client.Job{ID: q.ID, Target: q.ID % len(pl.Targets), Call: call, Tag: t}
	if p.cancels == nil {
		p.cancels = rng.New(pl.Spec.Seed, streamName("cancel", p.ph.Name))
	}
	t.job.CancelAfter = cancelAt(p.ph.Load, p.cancels)
	t.ended = func(r *bench.Record) { p.took(t, r) }
	if p.ph.Load.Shape == bench.Prefill {
		t.began = func(at time.Duration) { p.began(t, at) }
	}
	return t, nil
}

// submit hands a request to the client, unless the phase has been stopped.
func (p *phaseRun) submit(t *task) {
	t.job.Due = opt.Some(p.start + t.at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped() {
		return
	}
	p.open++
	p.held += t.size
	p.count++
	p.meter.submitted(p.start + t.at)
	p.r.engine.Submit(&t.job)
}
