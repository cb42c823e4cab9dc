// Package isolate runs the client's engine in a process of its own, so that neither the collector of the runtime nor the folding, the
// journal and the progress line of this one touch the threads that send and stamp.
//
// The child is this program again. Calls go to it over its stdin, and what came back returns over its stdout, as frames (frame.go). It
// ends with its stdin, so that it does not outlive its parent.
package isolate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Engine is a client.Engine in a child process. Its jobs come back in the order in which the child's engine gives them.
type Engine struct {
	sink  client.Sink
	epoch time.Time
	limit int // requests in flight at once; 0 = any number
	cmd   *exec.Cmd
	in    io.Closer // its stdin
	words *firstWords
	out   *outbox

	mu       sync.Mutex
	changed  *sync.Cond
	jobs     map[uint64]*client.Job // submitted and not ended, by the number they have in frames
	number   uint64
	returned []returned
	closing  bool
	over     bool // nothing is returned any more
	err      error
	report   *bench.ClientReport

	heard   atomic.Int64 // frames
	handing atomic.Bool  // the sink has one

	failed    chan struct{} // closed when the process has ended before its time
	gone      chan struct{} // closed when it has ended and all that it said is handed on
	undertook chan struct{} // closed when all that was returned is handed on
	closeOnce sync.Once
}

// returned is a job that does not end in the child.
type returned struct {
	job   *client.Job
	fail  wire.Fail
	cause string
}

const (
	// mostQueued is how many bytes of requests may wait for the child to read them. It reads at once, and a run prepares 64 MiB ahead at
	// most; a job beyond is dropped.
	mostQueued = 256 << 20
	// largestCall leaves room for a call's path and headers in a frame.
	largestCall = mostFrame - 16<<20
	// startTime is how long the child may take to start, endTime how long to end once it has closed its stdout.
	startTime = 10 * time.Second
	endTime   = 5 * time.Second
	// cutTime is how long the child may say nothing after a Cut with jobs open. It is ended then.
	cutTime = 10 * time.Second
)

// Start starts an engine in the process of a command, which must call Serve.
func Start(o client.Options, cmd *exec.Cmd) (*Engine, error) {
	options, err := pack(&o)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	e := &Engine{sink: o.Sink, epoch: o.Epoch, limit: o.Cap, cmd: cmd, in: in, words: &firstWords{}, jobs: map[uint64]*client.Job{},
		failed: make(chan struct{}), gone: make(chan struct{}), undertook: make(chan struct{})}
	e.changed = sync.NewCond(&e.mu)
	cmd.Stderr, cmd.WaitDelay = e.words, endTime
	if err := cmd.Start(); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "start the engine process", "leave --isolate out")
	}
	frames := newFrames(out)
	if err := e.greet(in, frames, options); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the engine process did not start", "leave --isolate out; was the program replaced while it runs?")
	}
	e.out = newOutbox(in, mostQueued)
	go e.listen(frames)
	go e.undertake()
	return e, nil
}

// greet sends the options and waits until the child is ready. On an error the child has ended.
func (e *Engine) greet(in io.Writer, f *frames, options []byte) error {
	timer := time.AfterFunc(startTime, func() { e.cmd.Process.Kill() })
	defer timer.Stop()
	_, err := in.Write(whole(kindOptions, options))
	k, b, rerr := f.next()
	if err == nil && rerr == nil && k == kindReady && len(b) == 0 {
		return nil
	}
	e.cmd.Process.Kill()
	state, words := e.cmd.Wait(), e.words.line()
	switch {
	case rerr == nil && k == kindReady && len(b) > 0:
		return errors.New(string(b))
	case words != "":
		return errors.New(words)
	case rerr == nil:
		return errFrame
	case state != nil:
		return state
	}
	return rerr
}

// Failed is closed when the process has ended before its time.
func (e *Engine) Failed() <-chan struct{} { return e.failed }

// Err says why, then.
func (e *Engine) Err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Now implements client.Engine.
func (e *Engine) Now() time.Duration { return time.Since(e.epoch) }

// Submit implements client.Engine. What does not reach the child comes back from another goroutine, so that a sink that waits for the
// caller holds up nobody.
func (e *Engine) Submit(j *client.Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch size := len(j.Call.Body); {
	case e.over:
		e.mu.Unlock()
		e.sink.Done(j, &wire.Transcript{Target: j.Target, Framed: true, Fail: wire.FailDropped, Cause: client.NeverSent})
		e.mu.Lock()
	case e.closing || e.err != nil:
		e.giveBack(j, wire.FailDropped, client.NeverSent)
	case size > largestCall:
		e.giveBack(j, wire.FailDropped, fmt.Sprintf("a request of %d bytes is too large for the engine process", size))
	default:
		e.number++
		if !e.out.put(false, size, func(b []byte) []byte { return putSubmit(b, e.number, j) }) {
			e.giveBack(j, wire.FailDropped, fmt.Sprintf("the engine process does not take its requests: %d MiB of them wait", mostQueued>>20))
			break
		}
		e.jobs[e.number] = j
	}
	j.Call.Body = nil
}

// giveBack leaves a job to the undertaker; mu is held.
func (e *Engine) giveBack(j *client.Job, fail wire.Fail, cause string) {
	e.returned = append(e.returned, returned{j, fail, cause})
	e.changed.Broadcast()
}

// undertake ends the jobs that do not end in the child.
func (e *Engine) undertake() {
	defer close(e.undertook)
	for {
		e.mu.Lock()
		for len(e.returned) == 0 && !e.over {
			e.changed.Wait()
		}
		all := e.returned
		e.returned = nil
		e.mu.Unlock()
		if len(all) == 0 {
			return
		}
		for _, r := range all {
			t := &wire.Transcript{Target: r.job.Target, Framed: true, Fail: r.fail, Cause: r.cause}
			if r.fail != wire.FailDropped {
				t.Ended = opt.Some(e.Now())
			}
			e.sink.Done(r.job, t)
		}
	}
}

// Open implements client.Engine.
func (e *Engine) Open(target, n int) { e.out.force(openFrame(target, n)) }

// Drain implements client.Engine.
func (e *Engine) Drain() { e.out.force(whole(kindDrain, nil)) }

// Cut implements client.Engine.
func (e *Engine) Cut() {
	e.out.force(whole(kindCut, nil))
	e.expect(e.heard.Load())
}

// expect ends a child that says nothing more although it has jobs.
func (e *Engine) expect(heard int64) {
	time.AfterFunc(cutTime, func() {
		e.mu.Lock()
		idle := len(e.jobs) == 0
		e.mu.Unlock()
		now := e.heard.Load()
		switch {
		case idle:
		case now != heard || e.handing.Load():
			e.expect(now)
		default:
			e.cmd.Process.Kill()
		}
	})
}

// Close implements client.Engine.
func (e *Engine) Close() bench.ClientReport {
	e.closeOnce.Do(func() {
		e.mu.Lock()
		e.closing = true
		e.mu.Unlock()
		e.out.force(whole(kindClose, nil))
		<-e.gone
		e.mu.Lock()
		e.over = true
		e.changed.Broadcast()
		e.mu.Unlock()
		<-e.undertook
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.report == nil {
		return bench.ClientReport{Engine: "isolated"}
	}
	return *e.report
}

// listen hands on what the child says, until it ends.
func (e *Engine) listen(f *frames) {
	defer close(e.gone)
	err := e.hear(f)
	if err != nil && !errors.Is(err, io.EOF) {
		e.cmd.Process.Kill()
	}
	timer := time.AfterFunc(endTime, func() { e.cmd.Process.Kill() })
	state := e.cmd.Wait()
	timer.Stop()
	e.out.end() // what it did not read is lost: its stdin is closed
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.report != nil && len(e.jobs) == 0 {
		return
	}
	switch words := e.words.line(); {
	case words != "":
		err = errors.New(words)
	case state != nil:
		err = state
	}
	e.err = fmt.Errorf("the engine process ended: %w", err)
	e.bury()
	close(e.failed)
}

// bury gives back the jobs of a child that has ended; mu is held. Those that can have been sent are incomplete; the others were not.
func (e *Engine) bury() {
	now := e.Now()
	var numbers []uint64
	for n := range e.jobs {
		numbers = append(numbers, n)
	}
	due := func(n uint64) time.Duration { return e.jobs[n].Due.Or(-1) }
	slices.SortFunc(numbers, func(a, b uint64) int { return cmp.Or(cmp.Compare(due(a), due(b)), cmp.Compare(a, b)) })
	for i, n := range numbers {
		if due(n) <= now && (e.limit == 0 || i < e.limit) {
			e.giveBack(e.jobs[n], wire.FailIncomplete, e.err.Error())
		} else {
			e.giveBack(e.jobs[n], wire.FailDropped, client.NeverSent)
		}
	}
	clear(e.jobs)
}

// hear takes frames until the report, or an error.
func (e *Engine) hear(f *frames) error {
	for {
		k, b, err := f.next()
		if err != nil {
			return err
		}
		e.heard.Add(1)
		p := &parser{b: b}
		switch k {
		case kindPart:
			n := p.unsigned()
			part := p.part()
			j := e.job(n, false)
			if p.err != nil || j == nil {
				return errFrame
			}
			e.handing.Store(true)
			e.sink.Part(j, part)
		case kindDone:
			n := p.unsigned()
			t := p.done()
			j := e.job(n, true)
			if p.err != nil || j == nil {
				return errFrame
			}
			e.handing.Store(true)
			e.sink.Done(j, t)
		case kindReport:
			var r bench.ClientReport
			if json.Unmarshal(b, &r) != nil {
				return errFrame
			}
			r.Engine += ", isolated"
			e.mu.Lock()
			e.report = &r
			e.mu.Unlock()
			e.in.Close() // with which it ends
		default:
			return errFrame
		}
		e.handing.Store(false)
	}
}

// job returns the job of a number, or nil; ended forgets it.
func (e *Engine) job(number uint64, ended bool) *client.Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.jobs[number]
	if ended {
		delete(e.jobs, number)
	}
	return j
}

// firstWords keeps the begin of what a process writes to stderr: where it crashes, its first line says why.
type firstWords struct {
	mu   sync.Mutex
	text []byte
}

const mostWords = 4 << 10

func (w *firstWords) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, b[:min(len(b), mostWords-len(w.text))]...)
	return len(b), nil
}

func (w *firstWords) line() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	line, _, _ := strings.Cut(strings.TrimSpace(string(w.text)), "\n")
	return strings.TrimSpace(line)
}
