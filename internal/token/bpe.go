package token

import (
	"unicode/utf8"
)

// bpe merges neighbours, the pair of the lowest rank first, and of equal ones the leftmost.
type bpe struct {
	vocab  *vocab
	merges pairs // (left, right) -> rank<<32 | id
	ranks  bool  // there are no merges: what two neighbours spell together is a token, and its id is the rank (tiktoken)

	byteID   [256]int32 // ids of single bytes, -1 = none
	byBytes  bool       // the smallest pieces are bytes, not characters
	fallback bool       // a character without a token becomes its bytes
	fuse     bool       // neighbouring unknown characters become one token
	whole    bool       // a pre-token that is a token is not looked into
	unk      int32      // -1 = none
	prefix   string     // of each piece within a word but the first
	suffix   string     // of the last piece of a word
}

// symbol is a piece of a word, in a list of them.
type symbol struct {
	id         int32 // -2 = merged into the one before
	prev, next int32 // -1 = none
	at         int32 // where it begins in the word
}

// candidate is a merge that may be made.
type candidate struct {
	key             uint64 // rank<<32 | place
	left, right, id int32
}

func (m *bpe) encode(out []int32, w string, s *scratch) []int32 {
	if m.whole {
		if id, ok := m.vocab.get(w); ok {
			return append(out, id)
		}
	}
	s.syms = m.split(s.syms[:0], w)
	switch len(s.syms) {
	case 0:
		return out
	case 1:
		return append(out, s.syms[0].id)
	}
	s.syms[len(s.syms)-1].next = -1
	m.merge(w, s)
	for i := int32(0); i >= 0; i = s.syms[i].next {
		out = append(out, s.syms[i].id)
	}
	return out
}

// split returns the smallest pieces of a word.
func (m *bpe) split(syms []symbol, w string) []symbol {
	add := func(id int32, at int) {
		n := int32(len(syms))
		if id < 0 || id == m.unk && m.fuse && n > 0 && syms[n-1].id == id {
			return
		}
		syms = append(syms, symbol{id, n - 1, n + 1, int32(at)})
	}
	if m.byBytes {
		for i := range len(w) {
			add(m.byteID[w[i]], i)
		}
		return syms
	}
	for i := 0; i < len(w); {
		_, n := utf8.DecodeRuneInString(w[i:])
		piece := w[i : i+n]
		if m.prefix != "" && i > 0 {
			piece = m.prefix + piece
		}
		if m.suffix != "" && i+n == len(w) {
			piece += m.suffix
		}
		if id, ok := m.vocab.get(piece); ok {
			add(id, i)
		} else if m.fallback && m.allBytes(piece) {
			for k := range len(piece) {
				add(m.byteID[piece[k]], i)
			}
		} else {
			add(m.unk, i)
		}
		i += n
	}
	return syms
}

func (m *bpe) allBytes(s string) bool { return allBytes(&m.byteID, s) }

// allBytes tells whether each byte of s has a token.
func allBytes(ids *[256]int32, s string) bool {
	for i := range len(s) {
		if ids[s[i]] < 0 {
			return false
		}
	}
	return true
}

// rank returns rank<<32 | id of the merge of a symbol with its next one.
func (m *bpe) rank(w string, syms []symbol, i, j int32) (uint64, bool) {
	if !m.ranks {
		return m.merges.get(syms[i].id, syms[j].id)
	}
	end := len(w)
	if k := syms[j].next; k >= 0 {
		end = int(syms[k].at)
	}
	id, ok := m.vocab.get(w[syms[i].at:end])
	return uint64(uint32(id))<<32 | uint64(uint32(id)), ok
}

func (m *bpe) merge(w string, s *scratch) {
	syms, h := s.syms, s.heap[:0]
	push := func(i int32) {
		if i < 0 || syms[i].next < 0 {
			return
		}
		j := syms[i].next
		if v, ok := m.rank(w, syms, i, j); ok {
			h = pushCandidate(h, candidate{v>>32<<32 | uint64(uint32(i)), syms[i].id, syms[j].id, int32(uint32(v))})
		}
	}
	for i := range syms {
		push(int32(i))
	}
	for len(h) > 0 {
		var c candidate
		c, h = popCandidate(h)
		i := int32(uint32(c.key))
		j := syms[i].next
		if syms[i].id != c.left || j < 0 || syms[j].id != c.right {
			continue // one of them was merged with another since
		}
		syms[i].id, syms[i].next = c.id, syms[j].next
		if k := syms[j].next; k >= 0 {
			syms[k].prev = i
		}
		syms[j].id = -2
		push(syms[i].prev)
		push(i)
	}
	s.heap = h
}

// pushCandidate and popCandidate keep a heap, least key first. container/heap would box each candidate.
func pushCandidate(h []candidate, x candidate) []candidate {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		p := (i - 1) / 2
		if h[p].key <= x.key {
			break
		}
		h[i] = h[p]
		i = p
	}
	h[i] = x
	return h
}

func popCandidate(h []candidate) (candidate, []candidate) {
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	if len(h) == 0 {
		return top, h
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].key < h[c].key {
			c++
		}
		if last.key <= h[c].key {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = last
	return top, h
}
