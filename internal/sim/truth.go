package sim

import (
	"encoding/json"
	"io"
	"math"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// TruthRecord is what the server did with one request to generate or to play a script: the truth against which a client is
// checked. Offsets count from the server's start and come from the monotonic clock; the wall-clock times (Unix ns) beside them
// were read at the same instant. The clock is read immediately before each write call.
type TruthRecord struct {
	Seq     uint64 `json:"seq"`                  // order in which requests ended, from 1
	ID      uint64 `json:"id"`                   // order of arrival, from 1; the response header x-prony-request
	Client  string `json:"request_id,omitempty"` // the request header x-request-id
	Path    string `json:"path"`
	Stream  bool   `json:"stream"`
	Status  int    `json:"status"`           // also of an answer that a fault kept back
	Fault   string `json:"fault,omitempty"`  // names of the faults that struck
	Outcome Ending `json:"outcome"`          // how the answer ended
	Script  string `json:"script,omitempty"` // that was played

	Arrival      time.Duration `json:"arrival_ns"` // of the last byte of the request
	ArrivalWall  int64         `json:"arrival_wall_ns"`
	ArrivalStamp string        `json:"arrival_stamp"` // socket: the kernel's receive stamp; user: when the request had been read
	End          time.Duration `json:"end_ns"`        // after the last write

	Prompt int `json:"prompt_tokens"`
	Cached int `json:"cached_tokens"`
	Output int `json:"output_tokens"` // written

	// One entry a write of the body. A head that goes out at once, ahead of the body, has none.
	Due    []time.Duration `json:"due_ns"`
	Write  []time.Duration `json:"write_ns"`
	Wall   []int64         `json:"write_wall_ns"`
	Tokens []int32         `json:"write_tokens"`          // output tokens that the write carried
	Lost   int             `json:"writes_lost,omitempty"` // above the bound of one request: their times were not kept
	Held   int             `json:"held_up,omitempty"`     // times that a full socket held it up
	Bytes  int             `json:"body_bytes"`            // written, with the transfer coding
	Queued time.Duration   `json:"queued_ns,omitzero"`    // engine mode: arrival until first scheduled
}

// Ending is how an answer ended.
type Ending string

// The endings.
const (
	Complete Ending = "complete"
	WasCut   Ending = "cut"     // closed or reset on purpose
	Hung     Ending = "hung"    // nothing more was sent, on purpose, until the connection closed
	Aborted  Ending = "aborted" // the client went away
	Stopped  Ending = "stopped" // the server was stopped
)

// maxWritesPerRequest bounds the times kept for one request: a drip of a long answer has one write a byte.
const maxWritesPerRequest = 1 << 16

// Pace is how well the server kept its times. Writes that came late since a full socket held their answer up are not counted: that
// is the client's doing.
type Pace struct {
	Writes    int64         `json:"writes"`      // that no full socket held up
	Late      int64         `json:"late_writes"` // later than LateAfter
	LateAfter time.Duration `json:"late_after_ns"`
	MaxLate   time.Duration `json:"max_late_ns"`
	MeanLate  time.Duration `json:"mean_late_ns"`
	HeldUp    int64         `json:"held_up"` // times that a full socket held an answer up
}

// TruthHead is the first line of GET /truth.
type TruthHead struct {
	StartWall int64         `json:"start_wall_ns"` // wall-clock time of offset 0
	Now       time.Duration `json:"now_ns"`
	Requests  uint64        `json:"requests"` // ended so far; ?since=N gives those with a seq above N
	Dropped   uint64        `json:"dropped"`  // of them no longer kept
	Pace      Pace          `json:"pace"`
}

// truthLog keeps the records of the latest requests, bounded in records and in write times.
type truthLog struct {
	mu                    sync.Mutex
	maxRecords, maxWrites int
	records               []TruthRecord // a ring: begins at head, in order of seq
	head                  int
	writes                int
	seq                   uint64
	dropped               uint64

	// How well the times were kept. Apart from mu: the pacer must not wait for somebody who reads the records.
	lateAfter                         time.Duration
	all, late, held, maxLate, sumLate atomic.Int64
}

// add takes the record of a request that has ended.
func (t *truthLog) add(r TruthRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq++
	r.Seq = t.seq
	t.records = append(t.records, r)
	t.writes += len(r.Write)
	for t.kept() > t.maxRecords || t.writes > t.maxWrites && t.kept() > 1 {
		t.writes -= len(t.records[t.head].Write)
		t.records[t.head] = TruthRecord{}
		t.head++
		t.dropped++
	}
	if t.head > 1024 && t.head > len(t.records)/2 {
		t.records = append(t.records[:0], t.records[t.head:]...)
		t.head = 0
	}
}

func (t *truthLog) kept() int { return len(t.records) - t.head }

// clear forgets everything but the numbering.
func (t *truthLog) clear() {
	t.mu.Lock()
	t.records, t.head, t.writes, t.dropped = nil, 0, 0, 0
	t.mu.Unlock()
	for _, n := range []*atomic.Int64{&t.all, &t.late, &t.held, &t.maxLate, &t.sumLate} {
		n.Store(0)
	}
}

// note counts a write and how late it was.
func (t *truthLog) note(late time.Duration) {
	late = max(late, 0)
	t.all.Add(1)
	t.sumLate.Add(int64(late))
	if late > t.lateAfter {
		t.late.Add(1)
	}
	for {
		most := t.maxLate.Load()
		if int64(late) <= most || t.maxLate.CompareAndSwap(most, int64(late)) {
			return
		}
	}
}

// since returns the oldest records with a seq above n, at most so many.
func (t *truthLog) since(n uint64, most int) []TruthRecord {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := t.records[t.head:]
	kept = kept[sort.Search(len(kept), func(i int) bool { return kept[i].Seq > n }):]
	return append([]TruthRecord(nil), kept[:min(most, len(kept))]...)
}

func (t *truthLog) pace() Pace {
	p := Pace{Writes: t.all.Load(), Late: t.late.Load(), LateAfter: t.lateAfter, HeldUp: t.held.Load()}
	p.MaxLate = time.Duration(t.maxLate.Load())
	if p.Writes > 0 {
		p.MeanLate = time.Duration(t.sumLate.Load() / p.Writes)
	}
	return p
}

// Truth returns the records of the requests that have ended and are still kept, in the order of their ends. Their slices are
// shared and must not be changed.
func (s *Server) Truth() []TruthRecord { return s.truth.since(0, math.MaxInt) }

// Pace returns how well the server kept its times since its start or the last DELETE /truth.
func (s *Server) Pace() Pace { return s.truth.pace() }

// truthBatch is how many records are copied at a time, so that nobody waits long who wants to add one.
const truthBatch = 256

// writeTruth writes the head and the records above since, one JSON object a line.
func (s *Server) writeTruth(w io.Writer, since uint64) error {
	s.truth.mu.Lock()
	head := TruthHead{StartWall: s.start.UnixNano(), Now: s.now(), Requests: s.truth.seq, Dropped: s.truth.dropped}
	s.truth.mu.Unlock()
	head.Pace = s.Pace()
	enc := json.NewEncoder(w)
	if err := enc.Encode(struct {
		Server TruthHead `json:"server"`
	}{head}); err != nil {
		return err
	}
	for since < head.Requests {
		records := s.truth.since(since, truthBatch)
		for i := range records {
			if since = records[i].Seq; since > head.Requests {
				return nil
			}
			if err := enc.Encode(&records[i]); err != nil {
				return err
			}
		}
		if len(records) == 0 {
			return nil
		}
	}
	return nil
}
