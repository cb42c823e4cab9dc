package run

import (
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/schedule"
)

// ending is how a phase ended.
type ending struct {
	state    bench.State
	why      string
	unusable error
}

// Bounds of what is prepared ahead of its time.
const (
	lookahead    = 2 * time.Second       // a request is encoded so long before it is due
	mostWaiting  = 4096                  // encoded requests that may wait for a slot
	startDelay   = 20 * time.Millisecond // from the last preparation to the begin of a phase
	progressTick = 500 * time.Millisecond
	// unusableAfter answers of one kind, with nothing else before, tell that the target cannot be used.
	unusableAfter = 5
	// errorRateAfter ended requests the error rate is looked at.
	errorRateAfter = 20
)

// phase sends the requests of one phase and waits for their ends.
func (r *runner) phase(ph bench.Phase) ending {
	p := &phaseRun{r: r, ph: ph, meter: newMeter(ph), stop: make(chan struct{}), trouble: make(chan ending, 1)}
	if n := ph.Load.InFlightLimit(); n > 0 {
		for i := range r.plan.Targets {
			r.engine.Open(i, (n+len(r.plan.Targets)-1)/len(r.plan.Targets))
		}
	} else {
		for i := range r.plan.Targets {
			r.engine.Open(i, spare(ph.Load, false))
		}
	}
	measured := ph.Name == bench.Measure
	if measured {
		r.manifest.MeasureFrom = r.now()
	}
	end := p.run()
	if measured {
		r.manifest.MeasureTo = r.now()
		if ph.Stop.Requests == 0 {
			r.manifest.Planned = p.planned()
		}
	}
	return end
}

// phaseRun is one phase on its way.
type phaseRun struct {
	r       *runner
	ph      bench.Phase
	meter   *meter
	start   time.Duration // of the phase, since the epoch
	stop    chan struct{} // closed: no more is submitted
	once    sync.Once
	trouble chan ending

	mu       sync.Mutex
	idle     *sync.Cond // something has ended
	open     int        // submitted and not ended
	count    int        // submitted
	ended    int
	failed   int
	overtime bool  // the duration is over: what is due and was not sent is recorded as dropped
	failure  error // of the data set
}

// run is the phase's life: submit, end by a stop rule, drain.
func (p *phaseRun) run() ending {
	p.idle = sync.NewCond(&p.mu)
	p.begin()
	submitted := make(chan struct{})
	go func() {
		defer close(submitted)
		p.submitAll()
	}()
	finished := make(chan struct{})
	go func() {
		<-submitted
		p.await()
		close(finished)
	}()
	stopProgress := p.report()
	defer stopProgress()

	end := ending{state: bench.Complete}
	var over <-chan time.Time
	if d := p.ph.Stop.Duration; d > 0 {
		timer := time.NewTimer(p.start + d - p.r.engine.Now())
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-finished:
	case <-over:
		p.drain(true)
		p.withinGrace(finished)
	case end = <-p.trouble:
		p.drain(false)
		p.withinGrace(finished)
	case <-p.r.journal.Failed():
		end = ending{state: bench.Stopped, why: "the journal could not be written"}
		p.drain(false)
		p.withinGrace(finished)
	case <-p.r.ctl.Interrupt:
		end = ending{state: bench.Interrupted, why: "interrupted by a signal"}
		p.drain(false)
		p.withinGrace(finished)
	}
	<-finished
	select {
	case late := <-p.trouble: // found while the last ones ended
		if end.state == bench.Complete && late.unusable != nil {
			end = late
		}
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure != nil {
		end = ending{state: bench.Stopped, why: p.failure.Error(), unusable: p.failure}
	}
	return end
}

// begin sets the start of the phase a little ahead, so that the first requests are ready by then.
func (p *phaseRun) begin() { p.start = p.r.engine.Now() + startDelay }

// withinGrace gives what is in flight its time to end, and cuts it then, or when the run is to end at once.
func (p *phaseRun) withinGrace(finished <-chan struct{}) {
	timer := time.NewTimer(p.ph.Stop.Grace)
	defer timer.Stop()
	select {
	case <-finished:
		return
	case <-timer.C:
	case <-p.r.ctl.Kill:
	}
	p.r.engine.Cut()
}

// drain ends the submission and drops what has not been sent.
func (p *phaseRun) drain(overtime bool) {
	p.mu.Lock()
	p.overtime = overtime
	p.mu.Unlock()
	p.once.Do(func() { close(p.stop) })
	p.wake()
	p.r.engine.Drain()
}

func (p *phaseRun) wake() {
	p.mu.Lock()
	p.idle.Broadcast()
	p.mu.Unlock()
}

func (p *phaseRun) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// await waits until everything submitted has ended.
func (p *phaseRun) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.open > 0 {
		p.idle.Wait()
	}
}

// submitAll hands the phase's requests to the client ahead of their times.
func (p *phaseRun) submitAll() {
	seq, err := p.r.plan.dataset.Open(p.r.plan.config(p.ph.Name))
	if err != nil {
		p.fail(err)
		return
	}
	next, stop := iter.Pull2(seq)
	defer stop()
	for i, due := range p.dues() {
		if n := p.ph.Stop.Requests; n > 0 && i >= n {
			return
		}
		if p.ph.Stop.Duration > 0 && p.ph.Load.Paced() && due >= p.start+p.ph.Stop.Duration {
			return
		}
		if !p.waitAhead(due) {
			return
		}
		q, err, ok := next()
		if err == nil && !ok {
			err = fault.New(fault.Internal, "the data set ended", "")
		}
		if err == nil {
			err = p.submit(q, due)
		}
		if err != nil {
			p.fail(err)
			return
		}
	}
}

// dues numbers the requests and says when each is due. Without a schedule all are due at the begin.
func (p *phaseRun) dues() iter.Seq2[int, time.Duration] {
	return func(yield func(int, time.Duration) bool) {
		i := 0
		if !p.ph.Load.Paced() {
			for ; yield(i, p.start); i++ {
			}
			return
		}
		shape, err := schedule.Of(p.ph.Load)
		if err != nil {
			p.fail(err)
			return
		}
		stream := "schedule"
		if p.ph.Name == bench.Warmup {
			stream = "schedule/warmup"
		}
		for at := range shape.Arrivals(rng.New(p.r.plan.Spec.Seed, stream)) {
			if !yield(i, p.start+at) {
				return
			}
			i++
		}
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
		for p.open >= limit+mostWaiting && !p.stopped() {
			p.idle.Wait()
		}
	}
	return !p.stopped()
}

// submit encodes a request and hands it to the client.
func (p *phaseRun) submit(q bench.Request, due time.Duration) error {
	pl := p.r.plan
	q.ID, q.Phase, q.Conversation = p.r.nextID, p.ph.Name, p.r.nextID
	p.r.nextID++
	call, err := pl.Dialect.Encode(pl.Endpoint, &q, &pl.Options)
	if err != nil {
		return err
	}
	t := &task{req: q, load: p.ph.Load}
	t.fold = dialect.NewFold(pl.Dialect, pl.Endpoint, &t.req, &pl.Options)
	t.job = client.Job{ID: q.ID, Target: q.ID % len(pl.Targets), Call: call, Due: opt.Some(due), Tag: t}
	t.ended = p.took
	p.mu.Lock()
	p.open++
	p.count++
	p.mu.Unlock()
	p.meter.submitted(1)
	p.r.engine.Submit(&t.job)
	if p.stopped() {
		p.r.engine.Drain() // the phase was drained just before
	}
	return nil
}

// took takes the record of a request that has ended.
func (p *phaseRun) took(rec *bench.Record) {
	p.mu.Lock()
	overtime := p.overtime
	p.mu.Unlock()
	// what was ready ahead of its time and never due is no part of the run; what was due and could not be sent is
	waited := rec.Outcome == bench.Dropped && rec.Error == client.NeverSent
	if !waited || overtime && p.ph.Load.Paced() {
		p.r.collector.write(rec)
		p.meter.observe(rec)
	}
	p.judge(rec)
	p.mu.Lock()
	p.open--
	if rec.Outcome != bench.Dropped {
		p.ended++
	}
	p.idle.Broadcast()
	p.mu.Unlock()
}

// judge applies the stop rules to a record.
func (p *phaseRun) judge(rec *bench.Record) {
	if rec.Outcome == bench.Dropped || rec.Outcome == bench.Incomplete {
		return
	}
	if e := p.r.first.take(rec, p.firstFew()); e != nil {
		url := p.r.plan.Targets[rec.Target].Join(p.r.plan.Endpoint.Path)
		p.halt(ending{state: bench.Stopped, why: "the target cannot be used", unusable: e.fault(url)})
		return
	}
	p.mu.Lock()
	if rec.Outcome.Failed() {
		p.failed++
	}
	ended, failed := p.ended+1, p.failed
	p.mu.Unlock()
	if most := p.r.plan.Spec.MaxErrorRate; most < 1 && ended >= min(errorRateAfter, max(1, p.ph.Stop.Requests)) && float64(failed) > most*float64(ended) {
		p.halt(ending{state: bench.Stopped, why: fmt.Sprintf("%d of %d requests failed, more than --max-error-rate %g", failed, ended, most)})
	}
}

// firstFew is the number of first answers that decide whether the target can be used.
func (p *phaseRun) firstFew() int {
	if n := p.ph.Stop.Requests; n > 0 {
		return min(n, unusableAfter)
	}
	return unusableAfter
}

func (p *phaseRun) halt(e ending) {
	select {
	case p.trouble <- e:
	default: // it stops already
	}
}

// fail ends the phase because its requests cannot be made.
func (p *phaseRun) fail(err error) {
	p.mu.Lock()
	if p.failure == nil {
		p.failure = err
	}
	p.mu.Unlock()
}

// planned is the number of requests that the phase meant to send.
func (p *phaseRun) planned() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ph.Load.Paced() {
		return p.count
	}
	return p.ended
}

// report shows the progress until the returned function is called.
func (p *phaseRun) report() (stop func()) {
	if p.r.ctl.Progress == nil {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	show := func() {
		p.mu.Lock()
		waiting := 0
		if n := p.ph.Load.InFlightLimit(); n > 0 {
			waiting = max(0, p.open-n)
		}
		p.mu.Unlock()
		p.r.ctl.Progress(p.meter.snapshot(waiting))
	}
	go func() {
		defer close(gone)
		tick := time.NewTicker(progressTick)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				show()
			case <-done:
				show()
				return
			}
		}
	}()
	return func() { close(done); <-gone }
}

// firstAnswers watches whether the first answers of a run are all of one kind that no request can change.
type firstAnswers struct {
	mu      sync.Mutex
	n       int
	mixed   bool
	outcome bench.Outcome
	status  int
	words   string
}

// take looks at a record, and returns itself once enough first answers of that kind are together.
func (f *firstAnswers) take(rec *bench.Record, enough int) *firstAnswers {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mixed {
		return nil
	}
	hopeless := false
	switch rec.Outcome {
	case bench.Rejected, bench.DNS, bench.Refused, bench.TLSFailed:
		hopeless = true
	case bench.Malformed:
		hopeless = rec.Status == http.StatusOK // an HTML page, or another protocol
	}
	if !hopeless || f.n > 0 && (rec.Outcome != f.outcome || rec.Status != f.status) {
		f.mixed = true
		return nil
	}
	f.n++
	f.outcome, f.status, f.words = rec.Outcome, rec.Status, rec.Error
	if f.n < enough {
		return nil
	}
	f.mixed = true // said once
	return f
}

func (f *firstAnswers) fault(url string) error {
	if f.outcome == bench.Rejected {
		return unusableFault(url, f.status, f.words)
	}
	hint := "is the server up, and --url its address?"
	if f.outcome == bench.Malformed {
		hint = "is it the right --url and --endpoint? The first bytes are shown"
	}
	return fault.New(fault.Target, fmt.Sprintf("%s cannot be used (%s): %s", url, f.outcome, f.words), hint)
}
