package token

// pairs is a table from a pair of numbers to another pair. A Go map of half a million merges takes four times as long to fill.
type pairs struct {
	slots []slot
	shift uint
}

type slot struct{ key, value uint64 } // key is one more than the key; 0 = free

func newPairs(n int) pairs {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	return pairs{slots: make([]slot, 1<<bits), shift: 64 - bits}
}

func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

// find returns the slot of a key, or the free one where it belongs.
func (p *pairs) find(key uint64) *slot {
	mask := len(p.slots) - 1
	for i := int((key * 0x9e3779b97f4a7c15) >> p.shift); ; i = (i + 1) & mask {
		s := &p.slots[i&mask]
		if s.key == key+1 || s.key == 0 {
			return s
		}
	}
}

func (p *pairs) get(a, b int32) (uint64, bool) {
	s := p.find(pairKey(a, b))
	return s.value, s.key != 0
}

func (p *pairs) put(a, b int32, value uint64) {
	s := p.find(pairKey(a, b))
	s.key, s.value = pairKey(a, b)+1, value
}
