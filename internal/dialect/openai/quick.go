package openai

import (
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// Quick implements dialect.Quick. An event of the form of the one before costs a comparison of bytes and a look at the values that
// may change; another one is scanned whole; neither allocates.
func (d *decoder) Quick(b []byte, to *dialect.Delta) bool {
	if len(b) > wire.MaxEvent { // places of texts are 32 bits
		return false
	}
	if !d.form.read(b, &d.chunk) && !d.scan(b) {
		return false
	}
	d.chunk.fill(to, b, &d.words)
	return true
}

// scan reads an event whole and makes it the form of those to come.
func (d *decoder) scan(b []byte) bool {
	d.form.forget()
	d.chunk = chunk{}
	s := scanner{b: b, to: &d.chunk, at: &d.form}
	if !s.event() {
		return false
	}
	d.form.learn(b)
	return true
}
