package openai

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// The functions of this file find where a JSON token ends. They accept a part of what encoding/json accepts, never more, and build
// nothing. Each takes the offset of the token's first byte and returns the offset behind its last.

// maxDepth bounds the nesting of a value that is skipped. Real chunks have 5 levels.
const maxDepth = 16

// Masks for looking at eight bytes at a time.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// endOfString returns the offset of the closing quote of the string whose inside begins at i, and whether it holds escapes. It
// refuses what encoding/json refuses (control characters, bad escapes, no end) and what it repairs (invalid UTF-8).
func endOfString(b []byte, i int) (end int, escaped, ok bool) {
	start, high := i, uint64(0)
	for i < len(b) {
		if i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			quote, slash := x^ones*'"', x^ones*'\\'
			// the lowest marked byte is a quote, a backslash or below 0x20; those above it may be marked through the borrow
			stop := ((quote-ones)&^quote | (slash-ones)&^slash | (x-ones*' ')&^x) & highs
			if stop == 0 {
				high |= x & highs
				i += 8
				continue
			}
			high |= x & highs & (stop&-stop - 1)
			i += bits.TrailingZeros64(stop) / 8
		}
		switch c := b[i]; {
		case c == '"':
			return i, escaped, high == 0 || utf8.Valid(b[start:i])
		case c == '\\':
			n := escapeLen(b[i:])
			if n == 0 {
				return i, false, false
			}
			escaped = true
			i += n
		case c < ' ':
			return i, false, false
		default:
			high |= uint64(c) & 0x80
			i++
		}
	}
	return i, false, false
}

// escapeLen returns the length of the escape that b begins with, or 0.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads \uXXXX.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// unescape appends the inside of a string that endOfString has accepted. Half of a surrogate pair becomes U+FFFD, as in encoding/json.
func unescape(to *strings.Builder, b []byte) {
	for i := 0; i < len(b); {
		plain := i
		for i < len(b) && b[i] != '\\' {
			i++
		}
		to.Write(b[plain:i])
		if i == len(b) {
			return
		}
		switch c := b[i+1]; c {
		case 'u':
			r, _ := hex4(b[i:])
			i += 6
			if utf16.IsSurrogate(r) {
				low, _ := hex4(b[i:])
				if r = utf16.DecodeRune(r, low); r != unicode.ReplacementChar {
					i += 6
				}
			}
			to.WriteRune(r)
			continue
		case 'b':
			to.WriteByte('\b')
		case 'f':
			to.WriteByte('\f')
		case 'n':
			to.WriteByte('\n')
		case 'r':
			to.WriteByte('\r')
		case 't':
			to.WriteByte('\t')
		default:
			to.WriteByte(c)
		}
		i += 2
	}
}

// afterSpace returns the offset of the next byte that is no white space.
func afterSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// mostDigits is how many digits of a number cannot overflow an int.
const mostDigits = 9 * (strconv.IntSize / 32)

// natural reads a number without sign, fraction and exponent. What follows it is the caller's to check.
func natural(b []byte, i int) (v, end int, ok bool) {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		v = 10*v + int(b[i]-'0')
		i++
	}
	n := i - start
	return v, i, n == 1 || 1 < n && n <= mostDigits && b[start] != '0'
}

// naturals counts the members of an array of natural numbers.
func naturals(b []byte, i int) (n, end int, ok bool) {
	if i >= len(b) || b[i] != '[' {
		return 0, i, false
	}
	i = afterSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return 0, i + 1, true
	}
	for {
		if _, i, ok = natural(b, i); !ok {
			return 0, i, false
		}
		n++
		i = afterSpace(b, i)
		switch {
		case i < len(b) && b[i] == ',':
			i = afterSpace(b, i+1)
		case i < len(b) && b[i] == ']':
			return n, i + 1, true
		default:
			return 0, i, false
		}
	}
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// endOfNumber accepts the numbers of JSON.
func endOfNumber(b []byte, i int) (end int, ok bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	start := i
	if i = digits(b, i); i == start || i > start+1 && b[start] == '0' {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = digits(b, start); i == start {
			return i, false
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start = i
		if i = digits(b, i); i == start {
			return i, false
		}
	}
	return i, true
}

// endOfWord accepts true, false and null.
func endOfWord(b []byte, i int) (end int, ok bool) {
	for _, w := range [...]string{"null", "false", "true"} {
		if hasPrefix(b, i, w) {
			return i + len(w), true
		}
	}
	return i, false
}

func hasPrefix(b []byte, i int, w string) bool {
	return len(b)-i >= len(w) && string(b[i:i+len(w)]) == w
}

// endOfValue accepts any value that is nested no deeper than allowed.
func endOfValue(b []byte, i, depth int) (end int, ok bool) {
	if i >= len(b) || depth < 0 {
		return i, false
	}
	switch c := b[i]; c {
	case '"':
		end, _, ok := endOfString(b, i+1)
		return end + 1, ok
	case '{', '[':
		closing := c + 2 // in ASCII, of both
		if i = afterSpace(b, i+1); i < len(b) && b[i] == closing {
			return i + 1, true
		}
		for {
			if c == '{' {
				if i >= len(b) || b[i] != '"' {
					return i, false
				}
				if i, _, ok = endOfString(b, i+1); !ok {
					return i, false
				}
				if i = afterSpace(b, i+1); i >= len(b) || b[i] != ':' {
					return i, false
				}
				i = afterSpace(b, i+1)
			}
			if i, ok = endOfValue(b, i, depth-1); !ok {
				return i, false
			}
			i = afterSpace(b, i)
			switch {
			case i < len(b) && b[i] == ',':
				i = afterSpace(b, i+1)
			case i < len(b) && b[i] == closing:
				return i + 1, true
			default:
				return i, false
			}
		}
	case 't', 'f', 'n':
		return endOfWord(b, i)
	default:
		return endOfNumber(b, i)
	}
}
