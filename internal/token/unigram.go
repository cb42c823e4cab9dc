package token

import (
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// unkPenalty is how much worse than the worst token an unknown character is.
const unkPenalty = 10

// unigram chooses the pieces of a pre-token whose scores have the greatest sum.
type unigram struct {
	scores   []float64
	vocab    *vocab
	trie     pairs // (node, rune) -> node<<32 | id+1 of the token that ends there; the root is node 0
	unk      int32 // -1 = none
	unkScore float64
	fallback bool
	byteID   [256]int32
}

// pathNode is the best way to a place in a pre-token.
type pathNode struct {
	score float64
	from  int32 // where its last piece begins; -1 = there is no way yet
	id    int32
}

func newUnigram(c modelConfig, p *parts, words *vocab) (*unigram, error) {
	m := &unigram{scores: p.scores, vocab: words, unk: -1, fallback: c.ByteFallback}
	if c.UnkID != nil {
		if *c.UnkID < 0 || *c.UnkID >= len(p.tokens) {
			return nil, fmt.Errorf("unk_id %d is not in the vocabulary", *c.UnkID)
		}
		m.unk = int32(*c.UnkID)
	}
	m.byteID = fallbackIDs(words)
	runes, least := 0, math.Inf(1)
	for id, t := range p.tokens {
		runes += utf8.RuneCountInString(t)
		least = min(least, p.scores[id])
	}
	m.unkScore = least - unkPenalty
	m.trie = newPairs(runes)
	nodes := int32(0)
	for _, t := range p.tokens {
		var last *slot
		node := int32(0)
		for _, r := range t {
			key := pairKey(node, r)
			last = m.trie.find(key)
			if last.key == 0 {
				nodes++
				last.key, last.value = key+1, uint64(nodes)<<32
			}
			node = int32(last.value >> 32)
		}
		if last != nil {
			id, _ := words.get(t)
			last.value = last.value>>32<<32 | uint64(id+1)
		}
	}
	return m, nil
}

func (m *unigram) encode(out []int32, w string, s *scratch) []int32 {
	path := slices.Grow(s.path[:0], len(w)+1)[:len(w)+1]
	for i := range path {
		path[i] = pathNode{from: -1}
	}
	s.path = path
	for i := 0; i < len(w); {
		_, first := utf8.DecodeRuneInString(w[i:])
		single, here := false, path[i].score
		node := int32(0)
		for k := i; k < len(w); {
			r, n := utf8.DecodeRuneInString(w[k:])
			v, ok := m.trie.get(node, r)
			if !ok {
				break
			}
			k += n
			node = int32(v >> 32)
			if id := int32(uint32(v)) - 1; id >= 0 {
				single = single || k == i+first
				better(&path[k], here+m.scores[id], i, id)
			}
		}
		if !single {
			better(&path[i+first], here+m.unkScore, i, m.unk)
		}
		i += first
	}
	begin := len(out)
	for end := len(w); end > 0; {
		from := int(path[end].from)
		id := path[end].id
		if id == m.unk { // neighbouring unknown characters are one piece
			for from > 0 && path[from].id == m.unk {
				from = int(path[from].from)
			}
		}
		out = m.piece(out, w[from:end], id)
		end = from
	}
	slices.Reverse(out[begin:])
	return out
}

func better(to *pathNode, score float64, from int, id int32) {
	if to.from < 0 || score > to.score {
		*to = pathNode{score, int32(from), id}
	}
}

// piece appends the ids of a piece, the last first.
func (m *unigram) piece(out []int32, text string, id int32) []int32 {
	if id != m.unk {
		return append(out, id)
	}
	if id, ok := m.vocab.get(text); ok {
		return append(out, id)
	}
	if m.fallback && allBytes(&m.byteID, text) {
		for i := len(text) - 1; i >= 0; i-- {
			out = append(out, m.byteID[text[i]])
		}
		return out
	}
	if m.unk < 0 {
		return out
	}
	return append(out, m.unk)
}
