package openai

import "strings"

// wordBlock is how much text shares one allocation: some hundred tokens.
const wordBlock = 2 << 10

// words makes strings of the texts of events. They lie in blocks, so that most events allocate nothing.
type words struct {
	block strings.Builder
}

// join returns the texts that lie at some places of b, one after the other. Most often one of them is not empty.
func (w *words) join(b []byte, first, second, third inside) string {
	if second.empty() && third.empty() {
		return w.word(b, first)
	}
	w.room(int(first.to - first.from + second.to - second.from + third.to - third.from))
	start := w.block.Len()
	w.add(b, first)
	w.add(b, second)
	w.add(b, third)
	return w.block.String()[start:]
}

// word returns the text that lies at a place of b.
func (w *words) word(b []byte, s inside) string {
	if s.empty() {
		return ""
	}
	w.room(int(s.to - s.from))
	start := w.block.Len()
	w.add(b, s)
	return w.block.String()[start:]
}

// room makes a new block when the texts to come, whose length this is at most, would not fit: the old one stays with its strings.
func (w *words) room(n int) {
	if w.block.Cap()-w.block.Len() < n {
		w.block.Reset()
		w.block.Grow(max(n, wordBlock))
	}
}

func (w *words) add(b []byte, s inside) {
	if s.escaped {
		unescape(&w.block, b[s.from:s.to])
	} else {
		w.block.Write(b[s.from:s.to])
	}
}
