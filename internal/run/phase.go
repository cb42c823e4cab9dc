package run

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/discover"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// ending is how a phase ended.
type ending struct {
	state    bench.State
	why      string
	unusable error
}

const (
	progressTick = 500 * time.Millisecond
	// unusableAfter answers of one kind, with nothing else before, tell that the target cannot be used.
	unusableAfter = 5
	// errorRateAfter ended requests the error rate is looked at.
	errorRateAfter = 20
)

// phase sends the requests of one phase and waits for their ends.
func (r *runner) phase(ph bench.Phase) ending {
	p := &phaseRun{r: r, ph: ph, meter: newMeter(ph), stop: make(chan struct{}), begun: make(chan struct{}), trouble: make(chan ending, 1)}
	each := spare(ph.Load, false) // connections to a target
	if n := ph.Load.InFlightLimit(); n > 0 {
		each = (n + len(r.plan.Targets) - 1) / len(r.plan.Targets)
	}
	for i := range r.plan.Targets {
		r.engine.Open(i, each)
	}
	p.delay = startDelay + openTime*time.Duration(each*len(r.plan.Targets))
	from := r.now()
	end := p.run()
	planned := ph.Stop.Requests
	if planned == 0 || p.ranOut && end.state == bench.Complete {
		planned = p.planned()
	}
	r.manifest.Ran = append(r.manifest.Ran, bench.Ran{Name: ph.Name, Start: p.start, End: r.engine.Now(), Planned: planned})
	if ph.Warm() {
		return end
	}
	if !r.manifest.MeasureFrom.Defined() {
		r.manifest.MeasureFrom = from
	}
	r.manifest.MeasureTo = r.now()
	r.manifest.Planned += planned - ph.Stop.Requests // which it has been set to
	return end
}

// phaseRun is one phase on its way.
type phaseRun struct {
	r       *runner
	ph      bench.Phase
	meter   *meter
	begun   chan struct{} // closed: start is set
	delay   time.Duration // from the last preparation to the start
	start   time.Duration // of the phase, since the epoch
	stop    chan struct{} // closed, under mu: no more is submitted
	trouble chan ending

	mu       sync.Mutex
	idle     *sync.Cond // something has ended
	open     int        // submitted and not ended
	held     int        // bytes of their requests
	count    int        // submitted
	ended    int
	failed   int
	overtime bool  // the duration is over: what is due and was not sent is recorded as dropped
	failure  error // of the data set
	gate     *gate // of a load whose places are given out here; nil = the client has them
	ranOut   bool  // the arrivals ended before any stop rule

	cancels *rng.Stream // of cancellations; the submitter's
	skip    int         // requests of a trace before its window; the submitter's
}

// run is the phase's life: submit, end by a stop rule, drain.
func (p *phaseRun) run() ending {
	p.idle = sync.NewCond(&p.mu)
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
	for begun := p.begun; begun != nil; {
		select {
		case <-begun:
			begun = nil // and around once more, for what else may happen
			if d := p.ph.Stop.Duration; d > 0 {
				timer := time.NewTimer(p.start + d - p.r.engine.Now())
				defer timer.Stop()
				over = timer.C
			}
			end = p.until(finished, over)
		case <-finished: // nothing could be prepared
			begun = nil
		case <-p.r.ctl.Interrupt:
			begun = nil
			end = p.until(finished, over)
		}
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

// until waits for the end of the phase by a stop rule, and gives what is in flight then its time.
func (p *phaseRun) until(finished <-chan struct{}, over <-chan time.Time) ending {
	end := ending{state: bench.Complete}
	select {
	case <-finished:
		return end
	case <-over:
	case end = <-p.trouble:
	case <-p.r.journal.Failed():
		end = ending{state: bench.Stopped, why: "the journal could not be written"}
	case <-p.r.lost:
		end = p.r.engineEnd(end)
	case <-p.r.ctl.Interrupt:
		end = interruption
	}
	p.drain(end.state == bench.Complete)
	if p.withinGrace(finished, end.state == bench.Interrupted) {
		end = interruption
	}
	return end
}

var interruption = ending{state: bench.Interrupted, why: "interrupted by a signal"}

// withinGrace gives what is in flight its time to end, and cuts it then, or when the run is to end at once. It returns whether a
// person interrupted the run.
func (p *phaseRun) withinGrace(finished <-chan struct{}, interrupted bool) bool {
	timer := time.NewTimer(p.ph.Stop.Grace)
	defer timer.Stop()
	interrupt := p.r.ctl.Interrupt
	if interrupted {
		interrupt = nil // it stays closed
	}
	for {
		select {
		case <-finished:
			return interrupted
		case <-interrupt:
			interrupted, interrupt = true, nil
			continue
		case <-timer.C:
		case <-p.r.ctl.Kill:
			interrupted = true
		}
		p.r.engine.Cut()
		return interrupted
	}
}

// drain ends the submission and drops what has not been sent. Nothing is submitted afterwards: submit looks at stop under the lock.
func (p *phaseRun) drain(overtime bool) {
	p.mu.Lock()
	p.overtime = overtime
	close(p.stop)
	p.idle.Broadcast()
	p.mu.Unlock()
	p.r.engine.Drain()
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

// took takes the record of a request that has ended.
func (p *phaseRun) took(t *task, rec *bench.Record) {
	p.mu.Lock()
	overtime := p.overtime
	p.mu.Unlock()
	p.r.plan.concealRecord(rec)
	// what was ready ahead of its time and never due is no part of the run; what was due and could not be sent is
	waited := rec.Outcome == bench.Dropped && rec.Error == client.NeverSent
	if !waited || overtime && p.ph.Load.Paced() {
		p.r.collector.write(rec)
		p.meter.observe(rec)
	}
	p.judge(rec)
	p.mu.Lock()
	if p.gate != nil {
		p.gate.ended(p, t, rec.End.Or(p.r.engine.Now()))
	}
	p.open--
	p.held -= t.size
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
		p.halt(ending{state: bench.Stopped, why: "the target cannot be used", unusable: e.fault(p.r.plan, p.r.plan.Targets[rec.Target])})
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
		p.r.ctl.Progress(p.meter.snapshot(p.r.engine.Now(), p.ph.Load.InFlightLimit()))
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
		hopeless = rec.Status == 0 || rec.Status == http.StatusOK // another protocol, or an HTML page
	case bench.Reset:
		hopeless = rec.Bytes == 0 // it closes without a word
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

func (f *firstAnswers) fault(p *Plan, t client.Target) error {
	ep := p.Endpoint
	if f.outcome == bench.Rejected {
		return p.unusableFault(t, f.status, f.words)
	}
	hint := "is the server up, and --url its address?"
	if t.Proxy != nil {
		hint = discover.ProxyHint
	}
	switch f.outcome {
	case bench.Malformed:
		if hint = "is it the right --url and --endpoint?"; strings.Contains(f.words, "HTTP/2") {
			hint = "does the server speak HTTP/2? leave --http 2 out"
		}
	case bench.TLSFailed:
		hint = discover.TLSHint
	case bench.Reset:
		hint = "the server's log may say why it closes; does it want https://?"
	}
	return fault.New(fault.Target, fmt.Sprintf("%s cannot be used (%s): %s", t.Name(ep.Path), f.outcome, f.words), hint)
}
