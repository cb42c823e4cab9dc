package token

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// step cuts a text into pieces, which it may also rewrite. First says that a text begins where the whole one does.
type step interface {
	cut(s string, first bool, yield func(piece string, first bool))
}

// cut lets a splitter be a step.
func (f splitter) cut(s string, first bool, yield func(string, bool)) {
	for len(s) > 0 {
		n := max(1, f(s))
		yield(s[:n], first)
		s, first = s[n:], false
	}
}

// rewrite is a step that changes a text as a whole.
type rewrite func(s string, first bool) string

func (f rewrite) cut(s string, first bool, yield func(string, bool)) { yield(f(s, first), first) }

// ways to treat what a pattern matches.
const (
	removed      = "Removed"
	isolated     = "Isolated"
	withPrevious = "MergedWithPrevious"
	withNext     = "MergedWithNext"
	contiguous   = "Contiguous"
)

// match is a place in a text.
type match struct{ from, to int }

// pattern is a step that looks for matches in a text.
type pattern struct {
	find   func(s string) []match // from left to right, none of them empty
	how    string
	invert bool // what lies between the matches counts as one
}

func (p pattern) cut(s string, first bool, yield func(string, bool)) {
	type part struct {
		match
		hit bool
	}
	var parts []part
	add := func(from, to int, hit bool) {
		if from < to {
			parts = append(parts, part{match{from, to}, hit != p.invert})
		}
	}
	at := 0
	for _, m := range p.find(s) {
		add(at, m.from, false)
		add(m.from, m.to, true)
		at = m.to
	}
	add(at, len(s), false)
	for i := 0; i < len(parts); {
		k := i + 1
		switch p.how {
		case removed:
			if parts[i].hit {
				i = k
				continue
			}
		case withPrevious:
			if k < len(parts) && !parts[i].hit && parts[k].hit {
				k++
			}
		case withNext:
			if k < len(parts) && parts[i].hit && !parts[k].hit {
				k++
			}
		case contiguous:
			for k < len(parts) && parts[k].hit == parts[i].hit {
				k++
			}
		}
		yield(s[parts[i].from:parts[k-1].to], first && parts[i].from == 0)
		i = k
	}
}

// eachRune finds every character of a kind.
func eachRune(is func(rune) bool) func(string) []match {
	return func(s string) (out []match) {
		for i, r := range s {
			if is(r) {
				out = append(out, match{i, i + utf8.RuneLen(r)})
			}
		}
		return out
	}
}

func findText(text string) func(string) []match {
	return func(s string) (out []match) {
		for at := 0; text != ""; {
			i := strings.Index(s[at:], text)
			if i < 0 {
				break
			}
			out = append(out, match{at + i, at + i + len(text)})
			at += i + len(text)
		}
		return out
	}
}

// compile makes a finder of a regular expression that looks ahead.
func compile(expr string) (func(string) []match, error) {
	re, err := regexp2.Compile(expr, regexp2.None)
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %w", expr, err)
	}
	return func(s string) (out []match) {
		runes := []rune(s)
		at, seen := 0, 0 // bytes and runes before here
		offset := func(n int) int {
			for ; seen < n; seen++ {
				at += utf8.RuneLen(runes[seen])
			}
			return at
		}
		for m, _ := re.FindRunesMatch(runes); m != nil; m, _ = re.FindNextMatch(m) {
			if m.Length > 0 {
				from := offset(m.Index)
				out = append(out, match{from, offset(m.Index + m.Length)})
			}
		}
		return out
	}, nil
}

func isPunctuation(r rune) bool {
	return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~' || unicode.IsPunct(r)
}

// wordsAndRest is `\w+|[^\w\s]+`.
func wordsAndRest(s string) (out []match) {
	kind := func(r rune) int {
		switch {
		case isWord(r):
			return 1
		case unicode.IsSpace(r):
			return 0
		}
		return 2
	}
	last := 0
	for i, r := range s {
		k := kind(r)
		if k == 0 || k != last {
			last = k
			if k > 0 {
				out = append(out, match{from: i})
			}
		}
		if k > 0 {
			out[len(out)-1].to = i + utf8.RuneLen(r)
		}
	}
	return out
}

// preTokenizer reads a step, or the steps of a sequence.
func preTokenizer(n *node) ([]step, error) {
	if n == nil {
		return nil, nil
	}
	var c struct {
		Pretokenizers  []node
		Pattern        textOrRegex
		Behavior       string
		Invert         bool
		UseRegex       *bool `json:"use_regex"`
		AddPrefixSpace *bool `json:"add_prefix_space"`
		Delimiter      string
		Replacement    string
		PrependScheme  string `json:"prepend_scheme"`
		Split          *bool
		Individual     bool `json:"individual_digits"`
		Length         *int
	}
	if err := n.read(&c); err != nil {
		return nil, err
	}
	yes := func(b *bool) bool { return b == nil || *b }
	one := func(p pattern) []step { return []step{p} }
	switch n.Type {
	case "Sequence":
		var all []step
		for i := range c.Pretokenizers {
			s, err := preTokenizer(&c.Pretokenizers[i])
			if err != nil {
				return nil, err
			}
			all = append(all, s...)
		}
		return all, nil
	case "ByteLevel":
		var out []step
		if yes(c.AddPrefixSpace) {
			out = append(out, rewrite(func(s string, _ bool) string {
				if strings.HasPrefix(s, " ") {
					return s
				}
				return " " + s
			}))
		}
		if yes(c.UseRegex) {
			out = append(out, splitter(gpt2Split))
		}
		return append(out, toChars{}), nil
	case "Split":
		return splitStep(c.Pattern, c.Behavior, c.Invert)
	case "Whitespace":
		return one(pattern{wordsAndRest, removed, true}), nil
	case "WhitespaceSplit":
		return one(pattern{eachRune(unicode.IsSpace), removed, false}), nil
	case "BertPreTokenizer":
		return []step{pattern{eachRune(unicode.IsSpace), removed, false}, pattern{eachRune(isPunctuation), isolated, false}}, nil
	case "Punctuation":
		how := c.Behavior
		if how == "" {
			how = isolated
		}
		return one(pattern{eachRune(isPunctuation), how, false}), nil
	case "Digits":
		how := contiguous
		if c.Individual {
			how = isolated
		}
		return one(pattern{eachRune(unicode.IsNumber), how, false}), nil
	case "CharDelimiterSplit":
		return one(pattern{findText(c.Delimiter), removed, false}), nil
	case "FixedLength":
		length := 5
		if c.Length != nil {
			length = max(1, *c.Length)
		}
		return []step{splitter(func(s string) int {
			i := 0
			for k := 0; k < length && i < len(s); k++ {
				_, n := utf8.DecodeRuneInString(s[i:])
				i += n
			}
			return i
		})}, nil
	case "Metaspace":
		scheme := strings.ToLower(c.PrependScheme)
		if scheme == "" {
			scheme = "always"
			if !yes(c.AddPrefixSpace) {
				scheme = "never"
			}
		}
		out := []step{rewrite(func(s string, first bool) string {
			s = strings.ReplaceAll(s, " ", c.Replacement)
			if (scheme == "always" || scheme == "first" && first) && !strings.HasPrefix(s, c.Replacement) {
				s = c.Replacement + s
			}
			return s
		})}
		if yes(c.Split) {
			out = append(out, pattern{findText(c.Replacement), withNext, false})
		}
		return out, nil
	}
	return nil, fmt.Errorf("the pre-tokenizer %s is not known", n.Type)
}

func splitStep(p textOrRegex, how string, invert bool) ([]step, error) {
	switch how {
	case removed, isolated, withPrevious, withNext, contiguous:
	default:
		return nil, fmt.Errorf("the split behaviour %q is not known", how)
	}
	if p.Regex == "" {
		return []step{pattern{findText(p.String), how, invert}}, nil
	}
	if f, ok := splitters[p.Regex]; ok && (how == isolated || how == removed && invert) {
		return []step{f}, nil // it leaves nothing between its matches
	}
	find, err := compile(p.Regex)
	return []step{pattern{find, how, invert}}, err
}

// toChars writes bytes as characters; toBytes is the way back.
type (
	toChars struct{}
	toBytes struct{}
)

func (toChars) cut(s string, first bool, yield func(string, bool)) { yield(byteChars(s), first) }

func (toBytes) cut(s string, first bool, yield func(string, bool)) {
	b, _ := charBytes(s)
	yield(b, first)
}
