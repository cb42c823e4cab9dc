package token

import "strings"

// Byte-level tokenizers write each byte as a character: printable ones of Latin-1 as themselves, the others from U+0100 on.
var byteRune, runeByte = byteTables()

func byteTables() (runes [256]rune, bytes map[rune]byte) {
	bytes = map[rune]byte{}
	next := rune(256)
	for i := range runes {
		r := rune(i)
		if !(i >= '!' && i <= '~' || i >= 0xa1 && i <= 0xac || i >= 0xae && i <= 0xff) {
			r, next = next, next+1
		}
		runes[i] = r
		bytes[r] = byte(i)
	}
	return runes, bytes
}

// byteChars writes the bytes of a text as characters.
func byteChars(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/4)
	for i := range len(s) {
		b.WriteRune(byteRune[s[i]])
	}
	return b.String()
}

// charBytes is the way back; false: a character stands for no byte.
func charBytes(s string) (string, bool) {
	i := 0
	for i < len(s) && s[i] >= '!' && s[i] <= '~' {
		i++
	}
	if i == len(s) {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for _, r := range s {
		c, ok := runeByte[r]
		if !ok {
			return s, false
		}
		b = append(b, c)
	}
	return string(b), true
}
