package run

import (
	"container/heap"
	"strconv"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/schedule"
)

// gate gives out the places of a load whose next request does not simply follow the end of one: places that come and go with time,
// users who think, prefills whose place is free at the first token. Times count from the begin of the phase; phaseRun.mu guards it.
type gate struct {
	load        bench.Load
	level       profile.Profile // places over time
	most        int             // places at any time
	think, pace schedule.Pause
	places      []place
	back        returns         // places whose next request has a moment
	vacant      []int           // numbers of places that were given up
	out         int             // places that are not given up
	ahead       []time.Duration // when places open that have their request already, in order
	changed     time.Duration   // when a place was opened or given up last
	flying      int             // requests under way

	ready []*task // encoded, in order
	size  int     // bytes of them
	all   bool    // no more come
}

// place is where one request follows another: a user, where they are users.
type place struct {
	random *rng.Stream
	turn   int // requests so far
}

// placeRef is a request's place.
type placeRef struct {
	number int
	taken  bool // by this request
}

// comesBack is a place whose next request is due at a moment.
type comesBack struct {
	at    time.Duration
	place int
}

type returns []comesBack

func (r returns) Len() int { return len(r) }
func (r returns) Less(i, j int) bool {
	return r[i].at < r[j].at || r[i].at == r[j].at && r[i].place < r[j].place
}
func (r returns) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *returns) Push(x any)   { *r = append(*r, x.(comesBack)) }
func (r *returns) Pop() any {
	old := *r
	x := old[len(old)-1]
	*r = old[:len(old)-1]
	return x
}

func newGate(l bench.Load) (*gate, error) {
	g := &gate{load: l, level: profile.Flat(float64(l.Concurrency)), most: l.Concurrency}
	var err error
	if l.Profile != "" {
		if g.level, err = profile.Parse(l.Profile); err != nil {
			return nil, fault.Wrap(fault.Usage, err, "the concurrency", profile.Forms)
		}
	}
	if g.think, err = schedule.ParsePause(l.Think); err != nil {
		return nil, err
	}
	g.pace, err = schedule.ParsePause(l.Pace)
	return g, err
}

// levelTolerance is what rounding takes from a level.
const levelTolerance = 1e-6

// next returns the next request and its moment; p.mu is held, and let go of while it waits. It is nil when there is no other.
func (g *gate) next(p *phaseRun) *task {
	for !p.stopped() {
		now := p.r.engine.Now() - p.start
		wake := time.Duration(-1)
		switch full := g.load.Shape == bench.Prefill && g.load.Cap > 0 && g.flying >= g.load.Cap; {
		case len(g.ready) == 0 && g.all:
			return nil
		case len(g.ready) == 0 || full:
		case len(g.back) > 0:
			b := heap.Pop(&g.back).(comesBack)
			if g.level.At(b.at)+levelTolerance >= float64(g.out-g.later(b.at)) {
				return g.take(p, b)
			}
			g.out--
			g.vacant = append(g.vacant, b.place)
			g.changed = max(g.changed, b.at)
			continue
		case g.out < g.most:
			at, ok := g.level.Reaches(g.changed, float64(g.out+1)-levelTolerance)
			if ok && at <= now+lookahead {
				g.changed = at
				g.ahead = append(g.ahead, at)
				return g.take(p, comesBack{at, g.open(p.r.plan.Spec.Seed, p.ph.Name)})
			}
			if ok {
				wake = at - lookahead - now
			}
		}
		g.wait(p, wake)
	}
	return nil
}

// later is how many of the places in use open after a moment.
func (g *gate) later(than time.Duration) int {
	for len(g.ahead) > 0 && g.ahead[0] <= than {
		g.ahead = g.ahead[1:]
	}
	return len(g.ahead)
}

// wait waits until something has changed, or for so long; a negative time has no end.
func (g *gate) wait(p *phaseRun, most time.Duration) {
	if most >= 0 {
		timer := time.AfterFunc(most, func() {
			p.mu.Lock()
			p.idle.Broadcast()
			p.mu.Unlock()
		})
		defer timer.Stop()
	}
	p.idle.Wait()
}

// open takes a place into use.
func (g *gate) open(seed uint64, phase string) int {
	g.out++
	if n := len(g.vacant); n > 0 {
		k := g.vacant[n-1]
		g.vacant = g.vacant[:n-1]
		return k
	}
	k := len(g.places)
	g.places = append(g.places, place{random: rng.New(seed, streamName("think", phase)+"/"+strconv.Itoa(k))})
	return k
}

// take gives a place its request.
func (g *gate) take(p *phaseRun, b comesBack) *task {
	t := g.ready[0]
	g.ready = g.ready[1:]
	g.size -= t.size
	g.flying++
	t.at, t.place, t.gated = b.at, placeRef{b.place, true}, true
	if g.load.Shape == bench.Users {
		t.req.Conversation, t.req.Turn = b.place, g.places[b.place].turn
	}
	g.places[b.place].turn++
	p.idle.Broadcast() // there is room for another
	return t
}

// ended takes the end of a request, at a time since the epoch; p.mu is held.
func (g *gate) ended(p *phaseRun, t *task, at time.Duration) {
	g.flying--
	g.free(p, t, at)
}

// free lets the place of a request have its next one.
func (g *gate) free(p *phaseRun, t *task, at time.Duration) {
	if !t.place.taken {
		return // it was free at the first token
	}
	t.place.taken = false
	k := t.place.number
	next := at - p.start + g.think.Draw(g.places[k].random)
	if g.load.Pace != "" {
		next = max(next, t.at+g.pace.Draw(g.places[k].random))
	}
	heap.Push(&g.back, comesBack{next, k})
}

// began tells the phase that the first output of a request was there.
func (p *phaseRun) began(t *task, at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gate.free(p, t, at)
	p.idle.Broadcast()
}

// submitGated hands the phase's requests to the client as their places are free.
func (p *phaseRun) submitGated(next func() (*task, error)) {
	g, err := newGate(p.ph.Load)
	if err != nil {
		p.fail(err)
		return
	}
	p.gate = g
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.prepareAhead(g, next)
	}()
	defer func() { <-done }()
	p.mu.Lock()
	first := min(int(g.level.Begin()+levelTolerance), mostWaiting) + fewestReady
	for !g.all && len(g.ready) < first && g.size < mostPrepared && !p.stopped() {
		p.idle.Wait()
	}
	p.mu.Unlock()
	p.begin(nil)
	for {
		p.mu.Lock()
		t := g.next(p)
		p.mu.Unlock()
		if t == nil {
			return
		}
		p.submit(t)
	}
}

// prepareAhead encodes requests before there is a place for them.
func (p *phaseRun) prepareAhead(g *gate, next func() (*task, error)) {
	ahead := min(g.most, mostWaiting) + firstReady
	for i := 0; ; i++ {
		p.mu.Lock()
		for len(g.ready) >= fewestReady && (len(g.ready) >= ahead || g.size >= mostPrepared) && !p.stopped() {
			p.idle.Wait()
		}
		stopped := p.stopped()
		p.mu.Unlock()
		var t *task
		var err error
		if last := stopped || p.isLast(i, 0); !last {
			if t, err = next(); err != nil {
				p.fail(err)
			}
		}
		p.mu.Lock()
		if t != nil {
			g.ready = append(g.ready, t)
			g.size += t.size
		} else {
			g.all = true
		}
		p.idle.Broadcast()
		p.mu.Unlock()
		if t == nil {
			return
		}
	}
}

// streamName is the name of the random numbers of a phase, so that no two phases have the same.
func streamName(purpose, phase string) string {
	if phase == bench.Measure {
		return purpose
	}
	return purpose + "/" + phase
}

// cancelAt draws whether a request is to be cancelled, and returns how long after its sending; 0 = it is not.
func cancelAt(l bench.Load, r *rng.Stream) time.Duration {
	if l.CancelRate > 0 && r.Float64() < l.CancelRate {
		return l.CancelAfter
	}
	return 0
}
