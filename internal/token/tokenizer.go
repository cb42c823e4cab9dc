// Package token turns texts into the tokens of a model and back: it reads the tokenizer.json of Hugging Face and knows the encodings of
// OpenAI's tiktoken. It follows their reference implementations id by id, which its vectors check.
//
// The way of a text is: added tokens are cut out, what lies between is normalised and split into pre-tokens, the model turns each of these
// into ids, and the post-processor puts its special tokens around them. Truncation and padding of a tokenizer.json are left out: prony counts.
package token

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// Tokenizer is read-only after loading, and may be used by many goroutines at once.
type Tokenizer struct {
	name   string
	digest string

	raw, normal finder // added tokens as they stand in the text, and those that are looked for in the normalised text
	normalize   func(string) string
	steps       []step // from a normalised text to pre-tokens
	model       model

	before, after []int32 // of the post-processor
	tokens        []string
	added         map[int32]addedToken
	decode        []decoder
	byteTokens    bool // the strings of tokens are their bytes, not the characters that stand for bytes

	mu   sync.Mutex
	idle []*scratch
}

// model turns a pre-token into ids.
type model interface {
	encode(out []int32, piece string, s *scratch) []int32
}

// scratch is what one encoding at a time needs: memory to work in, and the words seen before.
type scratch struct {
	words map[string][]int32
	syms  []symbol
	heap  []candidate
	path  []pathNode
}

const (
	longestWord = 64      // bytes of a pre-token that is remembered
	mostWords   = 1 << 16 // remembered at once: some 10 MB, several times the words of a book
	mostIdle    = 16      // scratches that are kept for later
)

// Name is what the tokenizer was loaded by.
func (t *Tokenizer) Name() string { return t.name }

// Digest is the SHA-256 of the file it was read from, in hexadecimal.
func (t *Tokenizer) Digest() string { return t.digest }

// Size is one more than the highest id.
func (t *Tokenizer) Size() int {
	n := len(t.tokens)
	for id := range t.added {
		n = max(n, int(id)+1)
	}
	return n
}

// Special tells whether an id is a special token, which decoding may leave out.
func (t *Tokenizer) Special(id int32) bool { return t.added[id].Special }

// Count is the number of tokens of a text, without special ones.
func (t *Tokenizer) Count(text string) int { return len(t.Encode(text, false)) }

// Encode returns the ids of a text; special puts those around it that the post-processor adds. Bytes that are no UTF-8 count as U+FFFD,
// as they do where the text is read. What the model has no token for, not even an unknown one, has no id.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	if !utf8.ValidString(text) {
		text = lossy(text)
	}
	s := t.take()
	out := make([]int32, 0, len(text)/3+8)
	if special {
		out = append(out, t.before...)
	}
	t.raw.cut(text, func(part string, at int, id int32) {
		if id >= 0 {
			out = append(out, id)
			return
		}
		if t.normalize != nil {
			part = t.normalize(part)
		}
		t.normal.cut(part, func(part string, inner int, id int32) {
			if id >= 0 {
				out = append(out, id)
				return
			}
			out = t.pieces(out, t.steps, part, at == 0 && inner == 0, s)
		})
	})
	if special {
		out = append(out, t.after...)
	}
	t.give(s)
	return out
}

// pieces runs a text through the steps that are left, and each pre-token through the model. First says that the text begins here.
func (t *Tokenizer) pieces(out []int32, steps []step, text string, first bool, s *scratch) []int32 {
	if text == "" {
		return out
	}
	if len(steps) == 0 {
		return t.word(out, text, s)
	}
	steps[0].cut(text, first, func(piece string, first bool) {
		if len(steps) == 1 {
			if piece != "" {
				out = t.word(out, piece, s)
			}
			return
		}
		out = t.pieces(out, steps[1:], piece, first, s)
	})
	return out
}

// word encodes a pre-token, or remembers how it was encoded.
func (t *Tokenizer) word(out []int32, piece string, s *scratch) []int32 {
	if len(piece) > longestWord {
		return t.model.encode(out, piece, s)
	}
	if ids, ok := s.words[piece]; ok {
		return append(out, ids...)
	}
	begin := len(out)
	out = t.model.encode(out, piece, s)
	if len(s.words) >= mostWords {
		clear(s.words)
	}
	s.words[strings.Clone(piece)] = append([]int32(nil), out[begin:]...)
	return out
}

func (t *Tokenizer) take() *scratch {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.idle); n > 0 {
		s := t.idle[n-1]
		t.idle = t.idle[:n-1]
		return s
	}
	return &scratch{words: map[string][]int32{}}
}

func (t *Tokenizer) give(s *scratch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle) < mostIdle {
		t.idle = append(t.idle, s)
	}
}

// lossy makes UTF-8 of any bytes: each longest beginning of a character that does not go on, and each byte that begins none, becomes
// one U+FFFD, as the Unicode standard recommends and Rust and Python do.
func lossy(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			b.WriteRune(utf8.RuneError)
			n = brokenLen(s)
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// brokenLen is the number of bytes at the begin of s that could have begun a character, at least 1.
func brokenLen(s string) int {
	low, high, n := byte(0x80), byte(0xbf), 0
	switch c := s[0]; {
	case c >= 0xc2 && c <= 0xdf:
		n = 1
	case c >= 0xe0 && c <= 0xef:
		n = 2
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		n = 3
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	}
	i := 1
	for ; i <= n && i < len(s) && s[i] >= low && s[i] <= high; i++ {
		low, high = 0x80, 0xbf
	}
	return i
}
