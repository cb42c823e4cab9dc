package client

import (
	"strings"
	"sync"

	"github.com/prony-bench/prony/internal/wire"
)

// ends keeps the sequences that end exchanges, so that those of equal calls are one. A dialect has a few of them.
type ends struct {
	mu    sync.Mutex
	known map[string]*wire.Sequences
}

// until returns a search for some sequences.
func (e *ends) until(seqs []string) *wire.Until {
	key := strings.Join(seqs, "\x00")
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.known[key]
	if s == nil {
		if s = wire.NewSequences(seqs); e.known == nil {
			e.known = map[string]*wire.Sequences{}
		}
		e.known[key] = s
	}
	return s.Until()
}
