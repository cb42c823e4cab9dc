package sim

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// flatCost is 1 ms a step and 1 us a token.
func flatCost(l stepLoad) time.Duration {
	return time.Millisecond + time.Duration(l.prefill+l.decode)*time.Microsecond
}

func params(blocks int) engineParams {
	return engineParams{maxSeqs: 16, budget: 64, blockSize: 4, blocks: blocks, caching: true, cost: flatCost}
}

// seqOf makes a sequence whose prompt is n tokens that begin with those of a family.
func seqOf(family, n, output int, arrival time.Duration) *sequence {
	q := &sequence{arrival: arrival, output: output}
	for i := range n {
		q.prompt = append(q.prompt, int32(family*1000+i))
	}
	w := newWriter(q.prompt, uint64(family))
	q.answer = func(i int) int32 { return w.token(i) }
	return q
}

// check holds what must hold between any two steps.
func (s *scheduler) check() error {
	users := map[int32]int32{}
	for _, q := range s.running {
		if q.state != isRunning {
			return fmt.Errorf("running sequence in state %d", q.state)
		}
		if len(q.blocks)*s.blockSize < q.computed {
			return fmt.Errorf("%d tokens computed in %d blocks", q.computed, len(q.blocks))
		}
		for _, id := range q.blocks {
			users[id]++
		}
	}
	for _, q := range s.waiting {
		if len(q.blocks) != 0 || q.state != isWaiting {
			return fmt.Errorf("a waiting sequence holds %d blocks", len(q.blocks))
		}
	}
	free := 0
	for id := range int32(s.kv.size()) {
		b := s.kv.blocks[id]
		if b.users != users[id] {
			return fmt.Errorf("block %d has %d users, counted %d", id, users[id], b.users)
		}
		if b.users == 0 {
			free++
		}
		if found, ok := s.kv.byHash[b.hash]; b.known && (!ok || found != id) {
			return fmt.Errorf("block %d is known but not found", id)
		}
	}
	listed := 0
	for id := s.kv.blocks[s.kv.end()].next; id != s.kv.end(); id = s.kv.blocks[id].next {
		listed++
	}
	if free != s.kv.free || listed != free {
		return fmt.Errorf("%d blocks free, %d counted, %d listed", free, s.kv.free, listed)
	}
	for hash, id := range s.kv.byHash {
		if b := s.kv.blocks[id]; !b.known || b.hash != hash {
			return fmt.Errorf("block %d is found by a hash that is not its", id)
		}
	}
	return nil
}

// Whatever arrives, whatever the limits: tokens are conserved, blocks are never over-committed, the limits of a step hold, and every
// sequence comes to its end.
func TestSchedulerInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := params(rapid.IntRange(16, 60).Draw(t, "blocks"))
		p.maxSeqs = rapid.IntRange(1, 12).Draw(t, "seqs")
		p.budget = p.maxSeqs + rapid.IntRange(0, 60).Draw(t, "budget")
		p.caching = rapid.Bool().Draw(t, "caching")
		p.draft = rapid.IntRange(0, 4).Draw(t, "draft")
		p.acceptance = rapid.Float64Range(0, 1).Draw(t, "acceptance")
		window := 16 * p.blockSize
		s := newScheduler(p, 1)
		n := rapid.IntRange(1, 25).Draw(t, "n")
		var all []*sequence
		at := time.Duration(0)
		for range n {
			at += time.Duration(rapid.IntRange(0, 3000).Draw(t, "gap")) * time.Microsecond
			prompt := rapid.IntRange(1, window-1).Draw(t, "prompt")
			q := seqOf(rapid.IntRange(0, 3).Draw(t, "family"), prompt, rapid.IntRange(1, window-prompt).Draw(t, "output"), at)
			all = append(all, q)
			s.add(q)
		}
		cancelled := map[*sequence]bool{}
		got, ends := map[*sequence]int{}, map[*sequence]time.Duration{}
		now := time.Duration(0)
		for steps := 0; !s.idle(); steps++ {
			if steps > 20_000 {
				t.Fatal("a sequence starves")
			}
			if rapid.IntRange(0, 40).Draw(t, "abort") == 0 {
				q := all[rapid.IntRange(0, n-1).Draw(t, "which")]
				s.abort(q)
				if ends[q] == 0 {
					cancelled[q] = true
				}
			}
			outputs, d, ok := s.step(now)
			if !ok {
				if s.idle() {
					break
				}
				if len(s.running) > 0 || s.waiting[0].arrival <= now {
					t.Fatal("work, but no step")
				}
				now = s.waiting[0].arrival
				continue
			}
			scheduled := 0
			for _, part := range s.batch {
				scheduled += part.tokens
				if part.tokens < 1 || part.seq.arrival > now {
					t.Fatalf("part %+v", part)
				}
			}
			if scheduled > p.budget || len(s.batch) > p.maxSeqs || d <= 0 {
				t.Fatalf("step of %d tokens for %d sequences in %v", scheduled, len(s.batch), d)
			}
			now += d
			for _, o := range outputs {
				if o.tokens < 1 || o.tokens > 1+p.draft || cancelled[o.seq] || ends[o.seq] != 0 {
					t.Fatalf("output %+v", o)
				}
				got[o.seq] += o.tokens
				if o.done != (got[o.seq] == o.seq.output) || got[o.seq] > o.seq.output {
					t.Fatalf("%d of %d tokens, done %v", got[o.seq], o.seq.output, o.done)
				}
				if o.done {
					ends[o.seq] = now
				}
			}
			if err := s.check(); err != nil {
				t.Fatal(err)
			}
		}
		for i, q := range all {
			if !cancelled[q] && got[q] != q.output {
				t.Fatalf("sequence %d has %d of %d tokens", i, got[q], q.output)
			}
		}
		if s.kv.free != s.kv.size() {
			t.Fatalf("%d blocks are lost", s.kv.size()-s.kv.free)
		}
	})
}

// runAlone runs one sequence to its end and returns the offsets of its outputs.
func runAlone(s *scheduler, q *sequence) (at []time.Duration, tokens []int) {
	s.add(q)
	now := q.arrival
	for !s.idle() {
		outputs, d, ok := s.step(now)
		if !ok {
			return at, tokens
		}
		now += d
		for _, o := range outputs {
			at, tokens = append(at, now-q.arrival), append(tokens, o.tokens)
		}
	}
	return at, tokens
}

// A prompt above the budget is computed in pieces: 150 tokens in steps of 64, 64 and 22, then one token a step.
func TestChunkedPrefill(t *testing.T) {
	at, _ := runAlone(newScheduler(params(100), 1), seqOf(1, 150, 3, 0))
	want := []time.Duration{3150 * time.Microsecond, 4151 * time.Microsecond, 5152 * time.Microsecond}
	if fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", at, want)
	}
}

// The prefix cache finds exactly the full blocks that were computed before, but never the whole prompt; generated tokens count too.
func TestPrefixCache(t *testing.T) {
	s := newScheduler(params(100), 1)
	first := seqOf(1, 30, 10, 0)
	runAlone(s, first)
	if s.stats.queried != 30 || s.stats.hits != 0 {
		t.Errorf("first: %+v", s.stats)
	}
	for _, c := range []struct {
		name   string
		q      *sequence
		salt   uint64
		cached int
	}{
		{"the same prompt", seqOf(1, 30, 1, 0), 0, 28},
		{"a prompt of whole blocks", seqOf(1, 28, 1, 0), 0, 24}, // the last token must be computed
		{"a longer prompt", seqOf(1, 60, 1, 0), 0, 28},
		{"another prompt", seqOf(2, 30, 1, 0), 0, 0},
		{"another salt", seqOf(1, 30, 1, 0), 5, 0},
	} {
		c.q.salt = c.salt
		runAlone(s, c.q)
		if c.q.cached != c.cached {
			t.Errorf("%s: %d tokens from the cache, want %d", c.name, c.q.cached, c.cached)
		}
		// begin anew, so that what this case computed is not found by the next
		s = newScheduler(params(100), 1)
		runAlone(s, seqOf(1, 30, 10, 0))
	}
	// the next turn: prompt, answer and more; of 30+10 tokens 39 were computed: nine blocks
	next := seqOf(1, 30, 1, 0)
	for i := range 10 {
		next.prompt = append(next.prompt, first.answer(i))
	}
	next.prompt = append(next.prompt, 7, 8, 9)
	runAlone(s, next)
	if next.cached != 36 {
		t.Errorf("next turn: %d tokens from the cache, want 36", next.cached)
	}
	// without caching nothing is found
	p := params(100)
	p.caching = false
	s = newScheduler(p, 1)
	runAlone(s, seqOf(1, 30, 1, 0))
	again := seqOf(1, 30, 1, 0)
	if runAlone(s, again); again.cached != 0 {
		t.Errorf("%d tokens from a cache that is off", again.cached)
	}
}

// Free blocks are forgotten least recently used first, and of one sequence the last ones first.
func TestEviction(t *testing.T) {
	s := newScheduler(params(16), 1)
	runAlone(s, seqOf(1, 21, 1, 0)) // learns 5 blocks
	runAlone(s, seqOf(2, 21, 1, 0)) // learns 5 more
	runAlone(s, seqOf(3, 29, 1, 0)) // needs 8 blocks: the 6 that hold nothing and 2 of family 1
	for _, c := range []struct{ family, cached int }{{2, 20}, {1, 12}} {
		q := seqOf(c.family, 21, 1, 0)
		if runAlone(s, q); q.cached != c.cached {
			t.Errorf("family %d: %d tokens in the cache, want %d", c.family, q.cached, c.cached)
		}
	}
}

// When blocks run out the youngest goes back to the head of the queue and is computed again; all come to their ends.
func TestPreemption(t *testing.T) {
	p := params(16) // 64 tokens
	p.caching, p.maxSeqs = false, 3
	s := newScheduler(p, 1)
	var qs []*sequence
	for i := range 4 { // the fourth waits from the beginning, and still comes last
		q := seqOf(i, 15, 30, 0)
		qs = append(qs, q)
		s.add(q)
	}
	var order []int
	now := time.Duration(0)
	for !s.idle() {
		outputs, d, _ := s.step(now)
		now += d
		if n := len(s.waiting); !qs[3].admitted && n > 0 && s.waiting[n-1] != qs[3] {
			t.Fatal("the fourth overtook one that was thrown back")
		}
		for _, o := range outputs {
			if o.done {
				for i, q := range qs {
					if q == o.seq {
						order = append(order, i)
					}
				}
			}
		}
	}
	if fmt.Sprint(order) != "[0 1 2 3]" || qs[0].preempted != 0 || qs[2].preempted == 0 || s.stats.preemptions == 0 {
		t.Errorf("order %v, preempted %d %d %d", order, qs[0].preempted, qs[1].preempted, qs[2].preempted)
	}
}

// Speculation: with acceptance 1 each step gives 1 + draft tokens, with 0 one; in between the mean is that of a geometric law.
func TestSpeculation(t *testing.T) {
	for _, c := range []struct {
		acceptance float64
		low, high  float64 // mean tokens of a step
	}{{0, 1, 1}, {1, 3.99, 4}, {0.6, 2.10, 2.25}} { // 1 + .6 + .36 + .216 = 2.176
		p := params(2000)
		p.draft, p.acceptance = 3, c.acceptance
		s := newScheduler(p, 1)
		// 65 tokens of prompt are one above the budget: the last is computed alone, and that is no decoding yet
		_, tokens := runAlone(s, seqOf(1, 65, 5001, 0))
		total := 0
		for _, n := range tokens[1:] {
			total += n
		}
		mean := float64(total) / float64(len(tokens)-1)
		if tokens[0] != 1 || total != 5000 || mean < c.low || mean > c.high {
			t.Errorf("acceptance %g: %d tokens, %.3f a step", c.acceptance, total, mean)
		}
		st := s.stats
		if st.acceptTokens != int64(total-(len(tokens)-1)) || st.acceptedAt[0] < st.acceptedAt[1] || st.acceptedAt[1] < st.acceptedAt[2] ||
			st.acceptedAt[0]+st.acceptedAt[1]+st.acceptedAt[2] != st.acceptTokens {
			t.Errorf("acceptance %g: %+v", c.acceptance, st)
		}
	}
}

// The roofline by hand for one step of Llama 3.1 8B at fp16 on an H100.
func TestRoofline(t *testing.T) {
	r, err := parsePreset("h100/llama-8b/fp16/tp1")
	if err != nil {
		t.Fatal(err)
	}
	// one sequence at 1000 tokens: reads 16.06 GB of weights and 1000 * 131072 bytes of keys and values at 2.68 TB/s, and 1 ms
	got := r.step(stepLoad{sequences: 1, decode: 1, read: 1000, pairs: 1000})
	if want := time.Duration(7_041_445); got < want-1000 || got > want+1000 {
		t.Errorf("decode step %v, want %v", got, want)
	}
	// 8192 prompt tokens: 2 * 8.03e9 * 8192 FLOP and 4*32*32*128*8192*8193/2 more at 593.4 TFLOP/s
	got = r.step(stepLoad{prefill: 8192, read: 8192, pairs: 8192 * 8193 / 2})
	if want := time.Duration(252_360_000); got < want*99/100 || got > want*101/100 {
		t.Errorf("prefill step %v, want %v", got, want)
	}
	for _, bad := range []string{"", "h100", "h100/llama-8b/fp16/8", "h100/llama-8b/fp16/tp0", "x/llama-8b/fp16/tp1", "a100/llama-8b/fp8/tp1",
		"h100/llama-8b/fp16/tp1/x"} {
		if _, err := parsePreset(bad); err == nil {
			t.Errorf("%q is a preset", bad)
		}
	}
	// two times the GPUs: faster, but not twice as fast
	one, _ := parsePreset("h200/llama-70b/fp8/tp1")
	eight, err := parsePreset("h200/llama-70b/fp8/tp8")
	if err != nil {
		t.Fatal(err)
	}
	l := stepLoad{sequences: 8, decode: 8, read: 8000, pairs: 8000}
	if a, b := one.step(l), eight.step(l); b >= a || b < a/8 {
		t.Errorf("tp1 %v, tp8 %v", a, b)
	}
	// 70.6 GB of weights do not fit one 80 GB GPU at fp16
	if _, err := (EngineConfig{Preset: "h100/llama-70b/fp16/tp1"}).resolve(1024); err == nil {
		t.Error("weights without memory")
	}
}
