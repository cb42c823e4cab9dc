package sim

import "time"

// written counts tokens that are being written at now. The caller holds the reply's mu.
func (m *instruments) written(r *reply, now time.Duration, tokens int) {
	g := r.gen
	if g == nil {
		return
	}
	m.generationTokens.Add(int64(tokens))
	switch {
	case r.started:
		// as vLLM: one value for an output of the engine, however many tokens it has
		m.betweenTokens.seconds(now - r.last)
	default:
		first := now
		if !g.stream && tokens > 1 {
			// the tokens were there before the answer was written
			first = g.first
			m.betweenTokens.observe(g.gap().Seconds(), tokens-1)
		}
		r.started, r.first = true, first
		m.firstToken.seconds(first - r.rec.Arrival)
		m.promptTokens.Add(int64(len(g.prompt)))
		m.cachedTokens.Add(int64(g.cached))
	}
	r.last = now
}

// ended counts a request that is over.
func (m *instruments) ended(r *reply) {
	g := r.gen
	if g == nil {
		return
	}
	m.running.Add(-1)
	if r.rec.Outcome != Complete {
		m.finished[finishedAbort].Add(1)
		return
	}
	if g.finish == finishLength {
		m.finished[finishedLength].Add(1)
	} else {
		m.finished[finishedStop].Add(1)
	}
	m.promptLength.observe(float64(len(g.prompt)), 1)
	m.outputLength.observe(float64(r.rec.Output), 1)
	m.maxTokens.observe(float64(g.limit), 1)
	m.computedPrompt.observe(float64(len(g.prompt)-g.cached), 1)
	if g.embeds {
		m.promptTokens.Add(int64(len(g.prompt)))
		m.whole.seconds(g.last - g.arrival)
	}
	if !r.started {
		return
	}
	queued, preempted := time.Duration(0), 0
	if r.seq != nil {
		queued, preempted = r.rec.Queued, r.seq.preempted
	}
	m.preemptions.observe(float64(preempted), 1)
	m.queue.seconds(queued)
	m.prefill.seconds(r.first - r.rec.Arrival - queued)
	m.decoding.seconds(r.last - r.first)
	m.inference.seconds(r.last - r.rec.Arrival - queued)
	m.whole.seconds(r.last - r.rec.Arrival)
	if r.rec.Output > 1 {
		m.perOutputToken.observe((r.last-r.first).Seconds()/float64(r.rec.Output-1), 1)
	}
}
