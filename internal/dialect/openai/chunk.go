package openai

import (
	"strconv"

	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
)

// Bounds of what the quick decoder takes: engines send one choice in a chunk, and one tool call in it.
const (
	maxChoices = 4
	maxTools   = 4
)

// chunk is what matters of an event. Its texts are places in the event's bytes, so that none is copied before it is wanted.
type chunk struct {
	counts  [nCounts]int
	times   [nTimes]float64
	told    uint16 // the counts that the event tells, by bit
	timed   uint8  // the times, likewise
	timings bool   // there is a block of llama.cpp's timings
	choices int
	tools   int
	choice  [maxChoices]chunkChoice
	tool    [maxTools]chunkTool // in the order of their choices
}

type chunkChoice struct {
	index int
	ids   int
	tools int // how many of the chunk's tools are this choice's
	texts [nTexts]inside
}

type chunkTool struct {
	index int
	texts [nToolTexts]inside
}

// inside is where the inside of a string lies.
type inside struct {
	from, to int32
	escaped  bool
}

func (s inside) empty() bool { return s.from == s.to }

// The texts of a choice.
const (
	contentText = iota
	refusalText
	reasoningText
	reasoningContentText
	plainText // "text", of completions
	finishText
	nTexts
)

// The texts of a tool call.
const (
	toolID = iota
	toolName
	toolArguments
	nToolTexts
)

// The counts of an event.
const (
	promptTokens = iota
	completionTokens
	cachedTokens
	usageReasoning   // usage.reasoning_tokens
	detailsReasoning // usage.completion_tokens_details.reasoning_tokens
	topReasoning     // reasoning_tokens beside usage (SGLang)
	cacheN           // timings.cache_n, and so on
	promptN
	predictedN
	nCounts
)

// The times of an event.
const (
	promptMS = iota
	predictedMS
	nTimes
)

// cell is a place in an event where a value stands, and what it means. It begins with the value's first byte; that of a string is
// behind its quote.
type cell struct {
	from, to uint16
	kind     cellKind
	what     uint8 // which text, count or time
	of       uint8 // number of the choice or tool in the chunk
	changes  bool  // from event to event
}

type cellKind uint8

const (
	skippedText cellKind = iota // of no interest, like the next two
	skippedNumber
	skippedValue
	choiceIndex
	choiceText
	choiceIDs
	toolIndex
	toolText
	aCount
	aTime
)

// take reads the value of a cell, which begins at b[i], into the chunk. It returns the offset of its end.
func (c *chunk) take(w *cell, b []byte, i int) (end int, ok bool) {
	switch w.kind {
	case choiceText:
		var escaped bool
		end, escaped, ok = endOfString(b, i)
		c.choice[w.of].texts[w.what] = inside{int32(i), int32(end), escaped}
		if w.what == finishText && escaped {
			return end, false
		}
	case skippedText:
		end, _, ok = endOfString(b, i)
	case skippedNumber:
		end, ok = endOfNumber(b, i)
	case skippedValue:
		end, ok = endOfValue(b, i, maxDepth)
	case aCount:
		c.counts[w.what], end, ok = natural(b, i)
	case choiceIndex:
		c.choice[w.of].index, end, ok = natural(b, i)
	case choiceIDs:
		c.choice[w.of].ids, end, ok = naturals(b, i)
	case aTime:
		if end, ok = endOfNumber(b, i); ok {
			var err error
			c.times[w.what], err = strconv.ParseFloat(string(b[i:end]), 64)
			ok = err == nil
		}
	case toolText:
		var escaped bool
		end, escaped, ok = endOfString(b, i)
		c.tool[w.of].texts[w.what] = inside{int32(i), int32(end), escaped}
	case toolIndex:
		c.tool[w.of].index, end, ok = natural(b, i)
	}
	return end, ok
}

// fill says in d what the chunk, read from b, says.
func (c *chunk) fill(d *dialect.Delta, b []byte, words *words) {
	if c.told != 0 || c.timings {
		c.fillCounts(d)
	}
	tool := 0
	for k := range c.choices {
		from := &c.choice[k]
		out := d.Output(from.index)
		out.IDs = from.ids
		t := &from.texts
		thought := t[reasoningText]
		if thought.empty() {
			thought = t[reasoningContentText]
		}
		if d.Texts {
			out.Text = words.join(b, t[contentText], t[refusalText], t[plainText])
			out.Reasoning = words.word(b, thought)
		} else {
			if !t[contentText].empty() || !t[refusalText].empty() || !t[plainText].empty() {
				out.Text = dialect.Unread
			}
			if !thought.empty() {
				out.Reasoning = dialect.Unread
			}
		}
		if f := t[finishText]; !f.empty() {
			out.Finish = finishWord(b[f.from:f.to])
		}
		for range from.tools {
			out.Tools = append(out.Tools, c.tool[tool].piece(d.Texts, b, words))
			tool++
		}
	}
}

// fillCounts is the order of usage.fill, object.fill and timings.fill.
func (c *chunk) fillCounts(d *dialect.Delta) {
	set := func(to *opt.Of[int], count int) {
		if c.told>>count&1 != 0 {
			*to = opt.Some(c.counts[count])
		}
	}
	set(&d.Prompt, promptTokens)
	set(&d.Completion, completionTokens)
	set(&d.Cached, cachedTokens)
	set(&d.Reasoning, usageReasoning)
	set(&d.Reasoning, detailsReasoning)
	set(&d.Reasoning, topReasoning)
	if !c.timings {
		return
	}
	if c.told>>promptN&1 != 0 && !d.Prompt.Defined() {
		d.Prompt, d.Native = opt.Some(c.counts[promptN]+c.counts[cacheN]), true
	}
	if c.told>>predictedN&1 != 0 && !d.Completion.Defined() {
		d.Completion, d.Native = opt.Some(c.counts[predictedN]), true
	}
	if !d.Cached.Defined() {
		set(&d.Cached, cacheN)
	}
	if c.timed>>promptMS&1 != 0 {
		d.Server = append(d.Server, dialect.ServerTime{Key: prefillKey, Value: c.times[promptMS]})
	}
	if c.timed>>predictedMS&1 != 0 {
		d.Server = append(d.Server, dialect.ServerTime{Key: decodeKey, Value: c.times[predictedMS]})
	}
}

func (t *chunkTool) piece(texts bool, b []byte, w *words) dialect.ToolPiece {
	p := dialect.ToolPiece{Index: t.index}
	for k, to := range [nToolTexts]*string{&p.ID, &p.Name, &p.Arguments} {
		switch s := t.texts[k]; {
		case texts:
			*to = w.word(b, s)
		case !s.empty():
			*to = dialect.Unread
		}
	}
	return p
}

// finishWord makes no string of the usual reasons.
func finishWord(b []byte) string {
	for _, w := range [...]string{"stop", "length", "tool_calls"} {
		if string(b) == w {
			return w
		}
	}
	return string(b)
}
