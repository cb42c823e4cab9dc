package sim

import (
	"time"

	"github.com/prony-bench/prony/internal/rng"
)

// scheduler is the model of continuous batching, after vLLM's V1 scheduler: a pure state machine without a clock. At each step the
// running sequences come first, then as many waiting ones as budget, slots and KV blocks allow; a long prompt is computed in
// pieces; when blocks run out, the youngest running sequence is thrown back and computes its tokens again.
type scheduler struct {
	engineParams
	kv      *kvCache
	waiting []*sequence // by arrival; thrown-back ones in front
	running []*sequence // by admission
	luck    *rng.Stream // of speculative decoding

	batch   []share // of the step in progress, kept for its memory
	outputs []output
	stats   schedulerStats
}

// sequence is a request inside the scheduler. All of it belongs to the scheduler but prompt, answer, output, salt and arrival.
type sequence struct {
	arrival time.Duration
	prompt  []int32
	answer  func(i int) int32 // its i-th token
	output  int               // tokens that it will have, at least 1
	salt    uint64            // keeps prefixes apart: 0 = shared with all

	reply *reply // whose answer it is, and where its tokens go; nil in tests of the scheduler alone
	times *engineTimes

	produced  int      // output tokens so far
	computed  int      // tokens whose keys and values are there
	blocks    []int32  // of the KV cache
	hashes    []uint64 // of its full blocks, as far as they were needed
	learned   int      // blocks that the cache has been told of
	cached    int      // prompt tokens found in the cache at first admission
	preempted int
	admitted  bool          // it has been scheduled once
	scheduled time.Duration // when first
	state     sequenceState
}

type sequenceState uint8

const (
	isWaiting sequenceState = iota
	isRunning
	isDone
)

// share is a sequence's part in a step.
type share struct {
	seq    *sequence
	tokens int // computed in this step
	drafts int // of them speculative
}

// output is what a step produced for a sequence.
type output struct {
	seq    *sequence
	tokens int
	done   bool
}

// stepLoad is what a step has to do, as far as its time depends on it.
type stepLoad struct {
	prefill   int     // prompt tokens computed
	sequences int     // that decode
	decode    int     // tokens computed for them, drafts included
	read      int     // tokens whose keys and values are read
	pairs     float64 // pairs of a computed token and one that it attends to
}

// schedulerStats are counters since the start, and the state during the latest step.
type schedulerStats struct {
	running, waiting, blocks int // during the latest step

	queried, hits                     int64 // prompt tokens looked up in and found in the prefix cache
	preemptions                       int64
	drafts, draftTokens, acceptTokens int64
	acceptedAt                        []int64 // by draft position
}

func newScheduler(p engineParams, seed uint64) *scheduler {
	return &scheduler{engineParams: p, kv: newKVCache(p.blocks), luck: rng.New(seed, "sim/acceptance"),
		stats: schedulerStats{acceptedAt: make([]int64, p.draft)}}
}

// len is the number of tokens that the sequence has, the newest of which need not have been computed.
func (q *sequence) len() int { return len(q.prompt) + q.produced }

func (q *sequence) token(i int) int32 {
	if i < len(q.prompt) {
		return q.prompt[i]
	}
	return q.answer(i - len(q.prompt))
}

// hash is the hash of the k-th full block and of all before it.
func (q *sequence) hash(k, size int) uint64 {
	for len(q.hashes) <= k {
		n := len(q.hashes)
		h := mix(q.salt + 1)
		if n > 0 {
			h = q.hashes[n-1]
		}
		for i := n * size; i < (n+1)*size; i++ {
			h = mix(h ^ uint64(uint32(q.token(i))))
		}
		q.hashes = append(q.hashes, h)
	}
	return q.hashes[k]
}

// add puts a sequence into the queue.
func (s *scheduler) add(q *sequence) { s.waiting = append(s.waiting, q) }

// idle tells whether there is nothing to do until a sequence is added.
func (s *scheduler) idle() bool { return len(s.running) == 0 && len(s.waiting) == 0 }

// abort takes a sequence out, wherever it is.
func (s *scheduler) abort(q *sequence) {
	switch q.state {
	case isWaiting:
		s.waiting = without(s.waiting, q)
	case isRunning:
		s.running = without(s.running, q)
		s.kv.release(q.blocks)
	}
	q.blocks, q.state = nil, isDone
}

func without(list []*sequence, q *sequence) []*sequence {
	kept := list[:0]
	for _, p := range list {
		if p != q {
			kept = append(kept, p)
		}
	}
	clear(list[len(kept):])
	return kept
}

// step plans and performs one step that begins at now. What it returns is there at now + duration, and until then no other step
// may begin; the slice is valid until the next step. ok is false when there is nothing to do at now.
func (s *scheduler) step(now time.Duration) (outputs []output, duration time.Duration, ok bool) {
	s.batch, s.outputs = s.batch[:0], s.outputs[:0]
	budget := s.budget
	budget, thrownBack := s.continueRunning(budget)
	if !thrownBack {
		s.admit(budget, now)
	}
	s.stats.running, s.stats.waiting, s.stats.blocks = len(s.running), len(s.waiting), s.kv.size()-s.kv.free
	if len(s.batch) == 0 {
		return nil, 0, false
	}
	duration = s.cost(s.load())
	for _, part := range s.batch {
		s.perform(part)
	}
	s.removeDone()
	return s.outputs, duration, true
}

// continueRunning schedules the running sequences, oldest first, and throws back the youngest when blocks run out.
func (s *scheduler) continueRunning(budget int) (left int, thrownBack bool) {
	for i := 0; i < len(s.running) && budget > 0; i++ {
		q := s.running[i]
		part := share{seq: q, tokens: min(q.len()-q.computed, budget)}
		if q.produced > 0 && q.computed == q.len()-1 {
			// speculation never goes past the end of the answer
			part.drafts = max(0, min(s.draft, q.output-q.produced-1, budget-1))
			part.tokens += part.drafts
		}
		for !s.reserve(q, q.computed+part.tokens) {
			victim := s.running[len(s.running)-1]
			s.throwBack(victim)
			thrownBack = true
			if victim == q {
				return budget, true
			}
		}
		s.batch = append(s.batch, part)
		budget -= part.tokens
	}
	return budget, thrownBack
}

// reserve gives a sequence the blocks for so many tokens; false when there are not enough.
func (s *scheduler) reserve(q *sequence, tokens int) bool {
	need := s.blocksFor(tokens) - len(q.blocks)
	if need > s.kv.free {
		return false
	}
	for range need {
		q.blocks = append(q.blocks, s.kv.take())
	}
	return true
}

func (s *scheduler) blocksFor(tokens int) int { return (tokens + s.blockSize - 1) / s.blockSize }

// throwBack preempts a running sequence: its blocks are free, its tokens must be computed again.
func (s *scheduler) throwBack(q *sequence) {
	s.running = s.running[:len(s.running)-1]
	s.kv.release(q.blocks)
	q.blocks, q.computed, q.learned, q.state = q.blocks[:0], 0, 0, isWaiting
	q.preempted++
	s.stats.preemptions++
	s.waiting = append(s.waiting, nil)
	copy(s.waiting[1:], s.waiting)
	s.waiting[0] = q
}

// admit moves waiting sequences that had arrived by now to the running ones.
func (s *scheduler) admit(budget int, now time.Duration) {
	n := 0
	for ; n < len(s.waiting) && budget > 0 && len(s.running) < s.maxSeqs; n++ {
		q := s.waiting[n]
		if q.arrival > now {
			break
		}
		shared, revived := s.lookup(q)
		computed := len(shared) * s.blockSize
		part := share{seq: q, tokens: min(q.len()-computed, budget)}
		if s.blocksFor(computed+part.tokens)-len(shared)+revived > s.kv.free {
			break
		}
		for _, id := range shared {
			s.kv.share(id)
		}
		q.blocks = append(q.blocks[:0], shared...)
		q.computed, q.learned = computed, len(shared)
		s.reserve(q, computed+part.tokens)
		if !q.admitted {
			q.admitted, q.scheduled, q.cached = true, now, computed
			s.stats.queried += int64(len(q.prompt))
			s.stats.hits += int64(computed)
		}
		q.state = isRunning
		s.running = append(s.running, q)
		s.batch = append(s.batch, part)
		budget -= part.tokens
	}
	if n > 0 {
		kept := copy(s.waiting, s.waiting[n:])
		clear(s.waiting[kept:])
		s.waiting = s.waiting[:kept]
	}
}

// lookup finds the blocks of the prefix cache that a sequence can begin with. At least one token is left to be computed. revived
// counts those that nobody uses at present: using them takes them from the free ones.
func (s *scheduler) lookup(q *sequence) (shared []int32, revived int) {
	if !s.caching {
		return nil, 0
	}
	for k := 0; (k+1)*s.blockSize <= q.len()-1; k++ {
		id, ok := s.kv.find(q.hash(k, s.blockSize))
		if !ok {
			break
		}
		shared = append(shared, id)
		if s.kv.blocks[id].users == 0 {
			revived++
		}
	}
	return shared, revived
}

// load sums up what the batch has to do.
func (s *scheduler) load() (l stepLoad) {
	for _, p := range s.batch {
		if p.seq.computed == p.seq.len()-1 {
			l.sequences++
			l.decode += p.tokens
		} else {
			l.prefill += p.tokens
		}
		l.read += p.seq.computed + p.tokens
		l.pairs += float64(p.tokens) * (float64(p.seq.computed) + float64(p.tokens+1)/2)
	}
	return l
}

// perform computes a sequence's part and takes the tokens that come of it.
func (s *scheduler) perform(p share) {
	q := p.seq
	produced := 0
	if q.computed+p.tokens-p.drafts == q.len() {
		produced = 1 + s.accept(p.drafts)
	}
	q.computed += p.tokens - p.drafts + max(0, produced-1)
	q.produced += produced
	if s.caching {
		for ; (q.learned+1)*s.blockSize <= q.computed; q.learned++ {
			s.kv.learn(q.blocks[q.learned], q.hash(q.learned, s.blockSize))
		}
	}
	if produced == 0 {
		return
	}
	if q.produced == q.output {
		q.state = isDone
	}
	s.outputs = append(s.outputs, output{q, produced, q.state == isDone})
}

// accept draws how many of the drafts are right: each with the same probability, up to the first that is not.
func (s *scheduler) accept(drafts int) int {
	if drafts == 0 {
		return 0
	}
	n := 0
	for n < drafts && s.luck.Float64() < s.acceptance {
		s.stats.acceptedAt[n]++
		n++
	}
	s.stats.drafts++
	s.stats.draftTokens += int64(drafts)
	s.stats.acceptTokens += int64(n)
	return n
}

// removeDone frees the blocks of the sequences that have ended.
func (s *scheduler) removeDone() {
	kept := s.running[:0]
	for _, q := range s.running {
		if q.state == isDone {
			s.kv.release(q.blocks)
			q.blocks = nil
		} else {
			kept = append(kept, q)
		}
	}
	clear(s.running[len(kept):])
	s.running = kept
}
