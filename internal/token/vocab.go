package token

import "hash/maphash"

// vocab finds the ids of tokens. It refers to the list of them, so that filling it costs a fraction of what a Go map of strings does.
type vocab struct {
	tokens []string
	slots  []int32 // id+1; 0 = free
	seed   maphash.Seed
}

// newVocab makes a table of the tokens that are not empty; of equal ones the last counts.
func newVocab(tokens []string) *vocab {
	size := 16
	for size < 2*len(tokens) {
		size *= 2
	}
	v := &vocab{tokens: tokens, slots: make([]int32, size), seed: maphash.MakeSeed()}
	for id, t := range tokens {
		if t != "" {
			*v.find(t) = int32(id) + 1
		}
	}
	return v
}

// find returns the slot of a token, or the free one where it belongs.
func (v *vocab) find(token string) *int32 {
	mask := uint64(len(v.slots) - 1)
	for i := maphash.String(v.seed, token) & mask; ; i = (i + 1) & mask {
		s := &v.slots[i]
		if *s == 0 || v.tokens[*s-1] == token {
			return s
		}
	}
}

func (v *vocab) get(token string) (int32, bool) {
	s := *v.find(token)
	return s - 1, s != 0
}
