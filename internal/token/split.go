package token

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitter returns the length of the pre-token at the begin of a text.
type splitter func(s string) int

// splitters are the regular expressions of well-known tokenizers, by hand: they look ahead, which package regexp does not, and a library
// that does is twenty times slower.
var splitters = map[string]splitter{
	gpt2Pattern: gpt2Split,
	`'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`:                                       gpt2Split,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:   gpt4Split{digits: 3}.next,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:        gpt4Split{digits: 1}.next,
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`: cl100kSplit,
	o200kPattern: o200kSplit,
}

const (
	gpt2Pattern  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	o200kPattern = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// gpt4Split is the pattern of GPT-4, Llama 3 and Qwen.
type gpt4Split struct {
	digits int  // at most so many in a row
	end    bool // white space at the end of the text stays whole
}

var cl100kSplit = gpt4Split{digits: 3, end: true}.next

func (g gpt4Split) next(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if k := contraction(s, true, true); k > 0 {
		return k
	}
	if unicode.IsLetter(r) {
		return n + letters(s[n:])
	}
	if unicode.IsNumber(r) {
		return n + numbers(s[n:], g.digits-1)
	}
	if r != '\r' && r != '\n' {
		if k := letters(s[n:]); k > 0 {
			return n + k
		}
	}
	if k := others(s, "\r\n"); k > 0 {
		return k
	}
	return spaces(s, true, g.end)
}

func gpt2Split(s string) int {
	if k := contraction(s, false, false); k > 0 {
		return k
	}
	lead := 0
	if s[0] == ' ' {
		lead = 1
	}
	if k := letters(s[lead:]); k > 0 {
		return lead + k
	}
	if k := numbers(s[lead:], len(s)); k > 0 {
		return lead + k
	}
	if k := others(s, ""); k > 0 {
		return k
	}
	return spaces(s, false, false)
}

// Classes of the letters of o200k's words: a word is upper* lower+, or else upper+ lower*, and many letters are of both.
const (
	upper = 1 << iota // Lu Lt Lm Lo M
	lower             // Ll Lm Lo M
)

func class(r rune) int {
	switch {
	case r < 0x80:
		switch {
		case r >= 'a' && r <= 'z':
			return lower
		case r >= 'A' && r <= 'Z':
			return upper
		}
		return 0
	case unicode.IsLower(r):
		return lower
	case unicode.IsUpper(r) || unicode.IsTitle(r):
		return upper
	case unicode.IsLetter(r) || unicode.IsMark(r):
		return upper | lower
	}
	return 0
}

func o200kSplit(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	letter, number := unicode.IsLetter(r), unicode.IsNumber(r)
	if !number {
		lead := n // a character before the word, which is taken where there is a word behind it
		if letter || r == '\r' || r == '\n' {
			lead = 0
		}
		for _, word := range []func(string) int{o200kLower, o200kUpper} {
			k := word(s[lead:])
			if k > 0 {
				k += lead
			} else if lead > 0 {
				k = word(s)
			}
			if k > 0 {
				return k + contraction(s[k:], true, true)
			}
		}
	}
	if number {
		return n + numbers(s[n:], 2)
	}
	if k := others(s, "\r\n/"); k > 0 {
		return k
	}
	return spaces(s, true, false)
}

// o200kLower matches upper* lower+ at the begin of s.
func o200kLower(s string) int {
	i, back := 0, 0 // back is the end of the last character of both classes: as far as upper* gives back
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		c := class(r)
		if c&upper == 0 {
			break
		}
		i += n
		if c&lower != 0 {
			back = i
		}
	}
	if k := run(s[i:], lower); k > 0 {
		return i + k
	}
	return back
}

// o200kUpper matches upper+ lower* at the begin of s.
func o200kUpper(s string) int {
	k := run(s, upper)
	if k == 0 {
		return 0
	}
	return k + run(s[k:], lower)
}

func run(s string, of int) (i int) {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if class(r)&of == 0 {
			return i
		}
		i += n
	}
	return i
}

// contraction matches 's, 't, 'm, 'd, 're, 've or 'll; any says in capitals too, long also with ſ for s.
func contraction(s string, any, long bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	c := s[1]
	if any {
		c |= 0x20
	}
	switch c {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v', 'l':
		if len(s) > 2 {
			d := s[2]
			if any {
				d |= 0x20
			}
			if d == 'e' && c != 'l' || d == 'l' && c == 'l' {
				return 3
			}
		}
	}
	if long && strings.HasPrefix(s[1:], "ſ") {
		return 3
	}
	return 0
}

func letters(s string) (i int) {
	for i < len(s) {
		if c := s[i]; c < 0x80 {
			if c|0x20 < 'a' || c|0x20 > 'z' {
				return i
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsLetter(r) {
			return i
		}
		i += n
	}
	return i
}

func numbers(s string, most int) (i int) {
	for ; most > 0 && i < len(s); most-- {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsNumber(r) {
			return i
		}
		i += n
	}
	return i
}

// others matches ` ?[^\s\p{L}\p{N}]+` and any characters of tail behind it.
func others(s, tail string) int {
	i := 0
	if s[0] == ' ' {
		i = 1
	}
	j := i
	for j < len(s) {
		r, n := utf8.DecodeRuneInString(s[j:])
		if unicode.IsSpace(r) || unicode.IsLetter(r) || unicode.IsNumber(r) {
			break
		}
		j += n
	}
	if j == i {
		return 0
	}
	for j < len(s) && strings.IndexByte(tail, s[j]) >= 0 {
		j++
	}
	return j
}

// spaces matches white space: up to the last line end if lines, all of it at the end of the text (even before line ends, if end), and
// else all but the last, which goes with what follows.
func spaces(s string, lines, end bool) int {
	e, last, line := 0, 0, 0
	for e < len(s) {
		r, n := utf8.DecodeRuneInString(s[e:])
		if !unicode.IsSpace(r) {
			break
		}
		if r == '\r' || r == '\n' {
			line = e + n
		}
		last = e
		e += n
	}
	switch {
	case end && e == len(s):
		return e
	case lines && line > 0:
		return line
	case e == len(s) || last == 0:
		return e
	}
	return last
}
