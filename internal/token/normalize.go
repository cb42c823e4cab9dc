package token

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalizer reads how a text is changed before it is split; nil = it is not.
func normalizer(n *node) (func(string) string, error) {
	if n == nil {
		return nil, nil
	}
	var c struct {
		Normalizers  []node
		Pattern      textOrRegex
		Content      string
		Prepend      string
		StripLeft    bool   `json:"strip_left"`
		StripRight   bool   `json:"strip_right"`
		Charsmap     []byte `json:"precompiled_charsmap"`
		CleanText    bool   `json:"clean_text"`
		Chinese      bool   `json:"handle_chinese_chars"`
		StripAccents *bool  `json:"strip_accents"`
		Lowercase    bool
	}
	if err := n.read(&c); err != nil {
		return nil, err
	}
	switch n.Type {
	case "Sequence":
		var all []func(string) string
		for i := range c.Normalizers {
			f, err := normalizer(&c.Normalizers[i])
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
		return chain(all), nil
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Lowercase":
		return lowercase, nil
	case "StripAccents":
		return without(unicode.IsMark), nil
	case "Strip":
		return func(s string) string {
			if c.StripLeft {
				s = strings.TrimLeftFunc(s, unicode.IsSpace)
			}
			if c.StripRight {
				s = strings.TrimRightFunc(s, unicode.IsSpace)
			}
			return s
		}, nil
	case "Prepend":
		return func(s string) string {
			if s == "" {
				return s
			}
			return c.Prepend + s
		}, nil
	case "Replace":
		return replacer(c.Pattern, c.Content)
	case "Nmt":
		return func(s string) string { return strings.Map(nmt, s) }, nil
	case "ByteLevel":
		return byteChars, nil
	case "Precompiled":
		return newCharsmap(c.Charsmap)
	case "BertNormalizer":
		var all []func(string) string
		if c.CleanText {
			all = append(all, func(s string) string { return strings.Map(clean, s) })
		}
		if c.Chinese {
			all = append(all, spaceChinese)
		}
		if c.StripAccents == nil && c.Lowercase || c.StripAccents != nil && *c.StripAccents {
			all = append(all, norm.NFD.String, without(func(r rune) bool { return unicode.Is(unicode.Mn, r) }))
		}
		if c.Lowercase {
			all = append(all, lowercase)
		}
		return chain(all), nil
	}
	return nil, fmt.Errorf("the normalizer %s is not known", n.Type)
}

func chain(all []func(string) string) func(string) string {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return func(s string) string {
		for _, f := range all {
			if f != nil {
				s = f(s)
			}
		}
		return s
	}
}

func replacer(p textOrRegex, with string) (func(string) string, error) {
	if p.Regex == "" {
		return func(s string) string {
			if p.String == "" {
				return s
			}
			return strings.ReplaceAll(s, p.String, with)
		}, nil
	}
	find, err := compile(p.Regex)
	return func(s string) string {
		var b strings.Builder
		at := 0
		for _, m := range find(s) {
			b.WriteString(s[at:m.from])
			b.WriteString(with)
			at = m.to
		}
		b.WriteString(s[at:])
		return b.String()
	}, err
}

// lowercase knows, other than strings.ToLower, the one letter that becomes two.
func lowercase(s string) string {
	return strings.ToLower(strings.ReplaceAll(s, "İ", "i̇"))
}

func without(drop func(rune) bool) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if drop(r) {
				return -1
			}
			return r
		}, s)
	}
}

// nmt cleans a text as SentencePiece does for translation.
func nmt(r rune) rune {
	switch {
	case r >= 1 && r <= 8, r == 0xb, r >= 0xe && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
		return -1
	case r == '\t', r == '\n', r == '\f', r == '\r', r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029, r == 0x2581, r == 0xfeff, r == 0xfffd:
		return ' '
	}
	return r
}

// clean drops control characters, and makes a blank of any white space, as BERT does.
func clean(r rune) rune {
	switch {
	case r == '\t', r == '\n', r == '\r':
		return ' '
	case r == 0, r == 0xfffd, unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// spaceChinese puts blanks around ideographs.
func spaceChinese(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2a6df || r >= 0x2a700 && r <= 0x2b73f ||
			r >= 0x2b740 && r <= 0x2b81f || r >= 0x2b920 && r <= 0x2ceaf || r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
