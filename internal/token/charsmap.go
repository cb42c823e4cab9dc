package token

import (
	"encoding/binary"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// charsmap is the normalisation that SentencePiece compiled into a model: a double array of what is replaced, and the replacements.
type charsmap struct {
	units []uint32
	texts string // each ends with a zero byte
}

func newCharsmap(b []byte) (func(string) string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < 4 {
		return nil, errors.New("precompiled_charsmap is cut short")
	}
	size := int(binary.LittleEndian.Uint32(b))
	if size < 4 || size > len(b)-4 {
		return nil, errors.New("precompiled_charsmap is cut short")
	}
	m := charsmap{units: make([]uint32, size/4), texts: string(b[4+size:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4+4*i:])
	}
	return m.normalize, nil
}

// normalize replaces short grapheme clusters as a whole, and the characters of others one by one, as SentencePiece's port in Rust does.
func (m charsmap) normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	state := -1
	for len(s) > 0 {
		var cluster string
		cluster, s, _, state = uniseg.FirstGraphemeClusterInString(s, state)
		if len(cluster) < 6 {
			if to, ok := m.lookup(cluster); ok {
				b.WriteString(to)
				continue
			}
		}
		for len(cluster) > 0 {
			_, n := utf8.DecodeRuneInString(cluster)
			if to, ok := m.lookup(cluster[:n]); ok {
				b.WriteString(to)
			} else {
				b.WriteString(cluster[:n])
			}
			cluster = cluster[n:]
		}
	}
	return b.String()
}

// lookup returns what stands for the shortest beginning of a text that has a replacement: all of the text is replaced by it.
func (m charsmap) lookup(s string) (string, bool) {
	at := func(i uint32) (uint32, bool) {
		if int(i) >= len(m.units) {
			return 0, false
		}
		return m.units[i], true
	}
	offset := func(u uint32) uint32 { return (u >> 10) << ((u & (1 << 9)) >> 6) }
	u, ok := at(0)
	pos := offset(u)
	for i := 0; ok && i < len(s) && s[i] != 0; i++ {
		pos ^= uint32(s[i])
		if u, ok = at(pos); !ok || u&(1<<31|0xff) != uint32(s[i]) {
			return "", false
		}
		pos ^= offset(u)
		if u>>8&1 == 1 {
			leaf, ok := at(pos)
			from := int(leaf & (1<<31 - 1))
			if !ok || from > len(m.texts) {
				return "", false
			}
			text, _, _ := strings.Cut(m.texts[from:], "\x00")
			return text, true
		}
	}
	return "", false
}
