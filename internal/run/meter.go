package run

import (
	"math"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// Progress is how far a run has come, for the person who waits. Latencies are of all requests of the phase so far, to 2 %.
type Progress struct {
	Phase    string
	Elapsed  time.Duration // of the phase
	Planned  int           // requests; 0 when a duration rules
	Duration time.Duration // of the phase; 0 when a number of requests rules
	Done     int
	Sent     int
	InFlight int
	Errors   int
	LastErr  string

	RequestRate float64 // requests/s that ended, so far
	TokenRate   float64 // output tokens/s, so far
	InputRate   float64 // input tokens/s, so far
	TTFT50      float64 // ms
	TTFT99      float64
	TPOT50      float64
	Lag99       float64
	E2E50       float64 // ms, of requests that generate nothing
	E2E99       float64
	TTFT, TPOT  []float64 // medians of the last seconds, for a small figure
	E2E         []float64
}

// meter follows a phase. Its numbers are for the eye only: results are computed from the journal.
type meter struct {
	mu      sync.Mutex
	p       Progress
	dues    []time.Duration // of what was submitted and is not due yet, in order
	start   time.Time
	tokens  int
	inputs  int // tokens
	ttft    sketch
	tpot    sketch
	lag     sketch
	second  time.Time
	ttftNow sketch
	tpotNow sketch
	e2e     sketch
	e2eNow  sketch
}

const sparkSeconds = 24

func newMeter(phase bench.Phase) *meter {
	return &meter{start: time.Now(), second: time.Now(), p: Progress{Phase: phase.Name, Planned: phase.Stop.Requests, Duration: phase.Stop.Duration}}
}

// observe takes a record.
func (m *meter) observe(r *bench.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Outcome == bench.Dropped {
		return
	}
	m.p.Done++
	if r.Outcome.Failed() {
		m.p.Errors++
		m.p.LastErr = string(r.Outcome) + ": " + r.Error
		return
	}
	m.tokens += r.OSL.Or(0)
	m.inputs += r.ISL.Or(0)
	sent, _ := r.Sent.Get()
	if last, ok := r.Last.Get(); ok && r.Inputs > 0 {
		m.e2e.add(float64(last-sent) / 1e6)
		m.e2eNow.add(float64(last-sent) / 1e6)
	}
	if first, ok := r.First.Get(); ok {
		ms := float64(first-sent) / 1e6
		m.ttft.add(ms)
		m.ttftNow.add(ms)
		if last, ok := r.Last.Get(); ok && r.OSL.Or(0) > 1 {
			v := float64(last-first) / 1e6 / float64(r.OSL.Or(0)-1)
			m.tpot.add(v)
			m.tpotNow.add(v)
		}
	}
	if due, ok := r.Due.Get(); ok {
		m.lag.add(float64(sent-max(due, r.Slot.Or(due))) / 1e6)
	}
}

// begin tells that the phase begins.
func (m *meter) begin() {
	m.mu.Lock()
	m.start, m.second = time.Now(), time.Now()
	m.mu.Unlock()
}

// submitted counts a request that goes out when it is due.
func (m *meter) submitted(due time.Duration) {
	m.mu.Lock()
	m.dues = append(m.dues, due)
	m.mu.Unlock()
}

// snapshot returns the progress at a moment of the run. What is due is in flight, as far as the limit allows (0 = none).
func (m *meter) snapshot(now time.Duration, limit int) Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := &m.p
	p.Elapsed = time.Since(m.start)
	for len(m.dues) > 0 && m.dues[0] <= now {
		m.dues = m.dues[1:]
		p.Sent++
	}
	p.InFlight = max(0, p.Sent-p.Done)
	if limit > 0 {
		p.InFlight = min(p.InFlight, limit)
	}
	if s := p.Elapsed.Seconds(); s > 0 {
		p.RequestRate, p.TokenRate, p.InputRate = float64(p.Done)/s, float64(m.tokens)/s, float64(m.inputs)/s
	}
	p.TTFT50, p.TTFT99, p.TPOT50, p.Lag99 = m.ttft.quantile(0.5), m.ttft.quantile(0.99), m.tpot.quantile(0.5), m.lag.quantile(0.99)
	p.E2E50, p.E2E99 = m.e2e.quantile(0.5), m.e2e.quantile(0.99)
	if time.Since(m.second) >= time.Second {
		m.second = time.Now()
		p.TTFT = push(p.TTFT, m.ttftNow.quantile(0.5))
		p.TPOT = push(p.TPOT, m.tpotNow.quantile(0.5))
		p.E2E = push(p.E2E, m.e2eNow.quantile(0.5))
		m.ttftNow, m.tpotNow, m.e2eNow = sketch{}, sketch{}, sketch{}
	}
	out := *p
	out.TTFT = append([]float64{}, p.TTFT...)
	out.TPOT = append([]float64{}, p.TPOT...)
	out.E2E = append([]float64{}, p.E2E...)
	return out
}

func push(s []float64, v float64) []float64 {
	if s = append(s, v); len(s) > sparkSeconds {
		s = s[1:]
	}
	return s
}

// sketch counts values in buckets 2 % wide, from 1 us to an hour (in ms).
type sketch struct {
	counts map[int]int
	n      int
}

const sketchBase = 1.02

func (s *sketch) add(v float64) {
	if s.counts == nil {
		s.counts = map[int]int{}
	}
	s.counts[int(math.Floor(math.Log(math.Min(math.Max(v, 1e-3), 3.6e6))/math.Log(sketchBase)))]++
	s.n++
}

// quantile returns the middle of the bucket that holds the q-quantile; NaN without values.
func (s *sketch) quantile(q float64) float64 {
	if s.n == 0 {
		return math.NaN()
	}
	lo, hi := math.MaxInt, math.MinInt
	for k := range s.counts {
		lo, hi = min(lo, k), max(hi, k)
	}
	want, seen := int(math.Ceil(q*float64(s.n))), 0
	for k := lo; k <= hi; k++ {
		if seen += s.counts[k]; seen >= want {
			return math.Pow(sketchBase, float64(k)+0.5)
		}
	}
	panic("run: sums of a sketch differ")
}
