package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foreignMost bounds a text that a server, a file or a person gave, in runes. The whole text is in the journal.
const foreignMost = 500

// clean makes a foreign text fit for one line of a terminal: escape sequences, control characters and marks that turn the direction of
// writing are taken out, white space is one blank, and the length is bounded. Renderers escape for their own format besides.
func clean(s string) string {
	var b strings.Builder
	n, blank := 0, false
	var esc escape
	for _, r := range s {
		if esc.swallows(r) {
			continue
		}
		switch {
		case unicode.IsSpace(r):
			blank = b.Len() > 0
			continue
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200d' || r == utf8.RuneError || r >= 0xfff0 && r <= 0xffff:
			continue
		}
		if n++; n > foreignMost {
			b.WriteString("…")
			break
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// escape follows the escape sequences of terminals (ECMA-48), so that not only their first character is taken out.
type escape struct {
	in   byte // 0 outside, 1 after ESC, '[' in a control sequence, ']' in a string up to its end
	seen int
}

// sequenceMost bounds what is taken for a sequence: what is longer is text.
const sequenceMost = 128

// swallows tells whether a rune belongs to an escape sequence.
func (e *escape) swallows(r rune) bool {
	if e.seen++; e.in != 0 && e.seen > sequenceMost {
		e.in = 0
	}
	switch {
	case r == 0x1b:
		*e = escape{in: 1}
	case r == 0x9b:
		*e = escape{in: '['}
	case e.in == 0:
		return false
	case e.in == 1 && r == '[':
		e.in = '['
	case e.in == 1 && (r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_'):
		e.in = ']'
	case e.in == 1 && r >= 0x20 && r <= 0x2f: // an intermediate byte
	case e.in == 1:
		e.in = 0
	case e.in == '[' && r >= 0x40 && r <= 0x7e, e.in == ']' && (r == 0x07 || r == 0x9c):
		e.in = 0
	case e.in == '[' && (r < 0x20 || r > 0x3f): // no control sequence after all
		e.in = 0
		return false
	}
	return true
}

// columns is the number of terminal columns that a text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

// runeColumns is 2 for the wide letters of East Asia and for pictures, 0 for marks that join the letter before.
func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// cut shortens a text to so many columns.
func cut(s string, most int) string {
	if columns(s) <= most {
		return s
	}
	n := 1 // of the ellipsis
	for i, r := range s {
		if n += runeColumns(r); n > most {
			return s[:i] + "…"
		}
	}
	return s
}

// wrap breaks a text at blanks into lines of so many columns. A word that is longer is broken.
func wrap(s string, most int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= most:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for columns(line) > most {
			head, rest := split(line, most)
			lines = append(lines, head)
			line = rest
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// split cuts a word after so many columns.
func split(s string, most int) (head, rest string) {
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n > most && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}
