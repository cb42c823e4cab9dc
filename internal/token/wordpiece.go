package token

import (
	"unicode/utf8"
)

// wordPiece takes the longest token at the begin of what is left of a word, again and again.
type wordPiece struct {
	vocab   *vocab
	unk     int32
	prefix  string // of each piece but the first
	longest int    // characters of a word that is looked at; a longer one is unknown
	most    int    // bytes of the longest token
}

func (m *wordPiece) encode(out []int32, w string, _ *scratch) []int32 {
	if utf8.RuneCountInString(w) > m.longest {
		return append(out, m.unk)
	}
	begin := len(out)
	for i := 0; i < len(w); {
		id, n := m.at(w, i)
		if n == 0 {
			return append(out[:begin], m.unk)
		}
		out = append(out, id)
		i += n
	}
	return out
}

// at returns the longest token at a place of a word, and its length there; 0 = there is none.
func (m *wordPiece) at(w string, i int) (int32, int) {
	for end := min(len(w), i+m.most); end > i; {
		if end == len(w) || utf8.RuneStart(w[end]) {
			key := w[i:end]
			if i > 0 {
				key = m.prefix + key
			}
			if id, ok := m.vocab.get(key); ok {
				return id, end - i
			}
		}
		end--
	}
	return 0, 0
}

// wordLevel knows words only as a whole.
type wordLevel struct {
	vocab *vocab
	unk   int32 // -1 = none
}

func (m *wordLevel) encode(out []int32, w string, _ *scratch) []int32 {
	if id, ok := m.vocab.get(w); ok {
		return append(out, id)
	}
	if m.unk < 0 {
		return out
	}
	return append(out, m.unk)
}
