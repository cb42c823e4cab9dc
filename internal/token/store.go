package token

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// The form of a kept tokenizer: magic, SHA-256 of what follows, and then, all numbers little endian: digest (64 bytes), config, tokens,
// scores and merges. Texts have their length before them, as have lists.
const magic = "prony tokenizer 1\n"

// writeParts writes a kept tokenizer as a whole, or not at all.
func writeParts(path string, p *parts) error {
	b := make([]byte, 0, 64+len(p.config)+16*len(p.tokens)+12*len(p.merges))
	b = append(b, p.digest...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.config)))
	b = append(b, p.config...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.tokens)))
	for _, t := range p.tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(t)))
	}
	for _, t := range p.tokens {
		b = append(b, t...)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.scores)))
	for _, s := range p.scores {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s))
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.merges)))
	for _, m := range p.merges {
		for _, v := range [3]int32{m.left, m.right, m.id} {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	sum := sha256.Sum256(b)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "part-*")
	if err != nil {
		return err
	}
	for _, piece := range [][]byte{[]byte(magic), sum[:], b} {
		if err == nil {
			_, err = f.Write(piece)
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// reader takes numbers and texts off a text; broken stays true once something was missing.
type reader struct {
	s      string
	broken bool
}

func (r *reader) take(n int) string {
	if r.broken || n < 0 || n > len(r.s) {
		r.broken = true
		return ""
	}
	out := r.s[:n]
	r.s = r.s[n:]
	return out
}

func number(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// count reads the length of a list of which each element takes at least so many bytes.
func (r *reader) count(each int) int {
	s := r.take(4)
	if r.broken || int64(number(s))*int64(each) > int64(len(r.s)) {
		r.broken = true
		return 0
	}
	return int(number(s))
}

// readParts reads a kept tokenizer. The strings of its tokens are parts of one text.
func readParts(path string) (*parts, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	body, ok := strings.CutPrefix(string(b), magic)
	if !ok || len(body) < sha256.Size {
		return nil, errBroken
	}
	if sum := sha256.Sum256(b[len(magic)+sha256.Size:]); string(sum[:]) != body[:sha256.Size] {
		return nil, errBroken
	}
	r := &reader{s: body[sha256.Size:]}
	p := &parts{digest: r.take(64)}
	p.config = []byte(r.take(r.count(1)))
	p.tokens = make([]string, r.count(4))
	lengths := r.take(4 * len(p.tokens))
	for i := range p.tokens {
		if !r.broken {
			p.tokens[i] = r.take(int(number(lengths[4*i:])))
		}
	}
	if n := r.count(8); n > 0 {
		p.scores = make([]float64, n)
	}
	for i := range p.scores {
		s := r.take(8)
		p.scores[i] = math.Float64frombits(uint64(number(s)) | uint64(number(s[4:]))<<32)
	}
	if n := r.count(12); n > 0 {
		p.merges = make([]merge, n)
	}
	for i := range p.merges {
		s := r.take(12)
		p.merges[i] = merge{int32(number(s)), int32(number(s[4:])), int32(number(s[8:]))}
	}
	if r.broken || len(p.scores) > 0 && len(p.scores) != len(p.tokens) {
		return nil, errBroken
	}
	for _, m := range p.merges {
		if top := int32(len(p.tokens)); m.left < 0 || m.right < 0 || m.id < 0 || m.left >= top || m.right >= top || m.id >= top {
			return nil, errBroken
		}
	}
	return p, nil
}
