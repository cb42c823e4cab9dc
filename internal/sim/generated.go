package sim

import (
	"strconv"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/rng"
)

// timeline says when tokens are there.
type timeline interface {
	// next returns when the next tokens are due, and how many; false when that is not known yet.
	next() (due time.Duration, tokens int, ok bool)
}

// generated is the source of a generation: the events of a stream, or one body at its end.
type generated struct {
	*generation
	speaker  speaker
	line     timeline
	sent     int           // tokens written
	begun    time.Duration // when the answer was begun: what needs no token is due then
	greeted  bool          // it has been written
	gathered int           // tokens that are there, of an answer that is not streamed
}

func (s *generated) next(e *event) bool {
	if !s.stream {
		return s.body(e)
	}
	if !s.greeted {
		s.greeted = true
		if s.speaker.early(e); len(e.body) > 0 {
			e.due = s.begun
			return true
		}
	}
	if s.sent == s.output {
		return s.tail(e)
	}
	due, n, ok := s.line.next()
	if !ok {
		return false
	}
	if s.sent == 0 {
		s.first = due
	}
	s.last = due
	s.speaker.tokens(e, s.sent, s.sent+n)
	s.sent += n
	e.due, e.tokens = due, n
	if len(e.body) == 0 && s.sent == s.output {
		return s.tail(e) // it is all that tells of the end token
	}
	return true
}

// tail is what follows the last token, at the same time.
func (s *generated) tail(e *event) bool {
	s.speaker.tail(e)
	e.due, e.then = s.last, clean
	return true
}

// body is the answer as one body, due with its last token.
func (s *generated) body(e *event) bool {
	for s.gathered < s.output {
		due, n, ok := s.line.next()
		if !ok {
			return false
		}
		if s.gathered == 0 {
			s.first = due
		}
		s.gathered += n
		s.last = due
	}
	e.head = s.speaker.fields(e.head)
	e.body = s.speaker.whole(e.body)
	e.cut()
	e.due, e.then = s.last, clean
	if s.writes() {
		e.tokens = s.output
	}
	return true
}

// exactTimes is the timeline of exact mode.
type exactTimes struct {
	due      time.Duration // of the latest token, before the first: arrival
	produced int
	output   int
	perChunk int
	ttft     Law
	itl      Law
	draws    *rng.Stream
}

func (s *Server) exactTimes(id uint64, arrival time.Duration, output int) *exactTimes {
	return &exactTimes{due: arrival, output: output, perChunk: s.cfg.TokensPerChunk, ttft: s.cfg.TTFT, itl: s.cfg.ITL,
		draws: rng.New(s.cfg.Seed, "sim/latency/"+strconv.FormatUint(id, 10))}
}

func (t *exactTimes) next() (time.Duration, int, bool) {
	n := 1
	if t.produced == 0 {
		t.due += t.ttft.duration(t.draws)
	} else {
		n = min(t.perChunk, t.output-t.produced)
		for range n {
			t.due += t.itl.duration(t.draws)
		}
	}
	t.produced += n
	return t.due, n, true
}

// engineTimes is the timeline of engine mode: a queue that the driver fills. It is bounded by the length of the answer.
type engineTimes struct {
	gen *generation

	mu    sync.Mutex
	queue []engineTokens
	head  int
}

// engineTokens are the tokens of one step.
type engineTokens struct {
	due    time.Duration
	n      int
	cached int // prompt tokens that came from the prefix cache
}

func (t *engineTimes) push(e engineTokens) {
	t.mu.Lock()
	t.queue = append(t.queue, e)
	t.mu.Unlock()
}

func (t *engineTimes) next() (time.Duration, int, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.head == len(t.queue) {
		t.queue, t.head = t.queue[:0], 0
		return 0, 0, false
	}
	e := t.queue[t.head]
	t.head++
	t.gen.cached = e.cached
	return e.due, e.n, true
}
