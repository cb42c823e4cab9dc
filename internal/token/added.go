package token

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is found before the model sees the text.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// finder finds added tokens in a text: the leftmost, and of those at one place the longest.
type finder struct {
	byText  map[string]addedToken
	lengths [256][]int // of the tokens that begin with a byte, longest first
}

func (f *finder) add(text string, a addedToken) {
	if text == "" {
		return
	}
	if f.byText == nil {
		f.byText = map[string]addedToken{}
	}
	f.byText[text] = a
	l := &f.lengths[text[0]]
	if !slices.Contains(*l, len(text)) {
		*l = append(*l, len(text))
		slices.SortFunc(*l, func(a, b int) int { return b - a })
	}
}

// match returns the longest token at the begin of s, and its length there.
func (f *finder) match(s string) (addedToken, int) {
	for _, n := range f.lengths[s[0]] {
		if n <= len(s) {
			if a, ok := f.byText[s[:n]]; ok {
				return a, n
			}
		}
	}
	return addedToken{}, 0
}

// cut calls yield for each part of a text, with the place where it begins, and for each token with its id; parts have the id -1.
func (f *finder) cut(s string, yield func(part string, at int, id int32)) {
	begin := 0
	for i := 0; len(f.byText) > 0 && i < len(s); {
		if len(f.lengths[s[i]]) == 0 {
			i++
			continue
		}
		a, n := f.match(s[i:])
		if n == 0 {
			i++
			continue
		}
		from, to := i, i+n
		i = to
		if a.SingleWord && (endsWithWord(s[:from]) || beginsWithWord(s[to:])) {
			continue
		}
		if a.LStrip {
			from = max(begin, len(strings.TrimRightFunc(s[:from], unicode.IsSpace)))
		}
		if a.RStrip {
			to = len(s) - len(strings.TrimLeftFunc(s[to:], unicode.IsSpace))
		}
		if begin < from {
			yield(s[begin:from], begin, -1)
		}
		yield(s[from:to], from, a.ID)
		begin = to
	}
	if begin < len(s) {
		yield(s[begin:], begin, -1)
	}
}

func endsWithWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && isWord(r)
}

func beginsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && isWord(r)
}

// isWord is \w of Rust's regular expressions.
func isWord(r rune) bool {
	if r < 0x80 {
		return r == '_' || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z'
	}
	return unicode.IsLetter(r) || unicode.In(r, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}
