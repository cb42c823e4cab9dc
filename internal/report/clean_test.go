package report

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{"  a\r\n\tb  ", "a b"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b[38;5;196mred", "red"},
		{"\x1b]0;title\x07text", "text"},
		{"\x1b]8;;http://e.org\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1bPq payload\x1b\\after", "after"},
		{"\u009b31mred", "red"},
		{"a\x1b(Bb", "ab"},
		{"a\x1bcb", "ab"},
		{"bell\x07 nul\x00 del\x7f c1\u0085x", "bell nul del c1 x"},
		{"abc\u202edef\u2066ghi\u200b", "abcdefghi"},
		{"bad\xff\xfeutf", "badutf"},
		{"日本語 \U0001f600", "日本語 \U0001f600"},
		{"family \U0001f468\u200d\U0001f469", "family \U0001f468\u200d\U0001f469"},
		{"<b>&", "<b>&"},
		{strings.Repeat("x", foreignMost), strings.Repeat("x", foreignMost)},
		{strings.Repeat("x", foreignMost+1), strings.Repeat("x", foreignMost) + "…"},
		{"\x1b[" + strings.Repeat("1", 2*sequenceMost) + "tail", strings.Repeat("1", sequenceMost+1) + "tail"},
	} {
		if got := clean(c.in); got != c.want {
			t.Errorf("clean(%q) is %q, want %q", c.in, got, c.want)
		}
	}
}

// Whatever comes in, no control character and no line end comes out, and cleaning again changes nothing.
func TestCleanAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.SliceOfN(rapid.SampledFrom([]string{"\x1b", "[", "]", "3", ";", "m", "\x07", "\\", "a", " ", "\n", "\u202e", "é", "語", "\x9b", "\xff", "P", "\u009c"}), 0, 40).Draw(t, "parts")
		got := clean(strings.Join(raw, ""))
		for _, r := range got {
			if unicode.IsControl(r) || r == '\u202e' || r == unicode.ReplacementChar {
				t.Fatalf("%q holds %q", got, r)
			}
		}
		if again := clean(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
	})
}

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "日本": 4, "\U0001f600": 2, "·": 1, "한": 2} {
		if got := columns(s); got != want {
			t.Errorf("columns(%q) is %d, want %d", s, got, want)
		}
	}
	if got := cut("日本語の文", 5); got != "日本…" {
		t.Errorf("cut gives %q", got)
	}
	if got := cut("short", 5); got != "short" {
		t.Errorf("cut gives %q", got)
	}
}

// No line is wider than asked, and no word is lost.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z語]{1,30}`), 0, 20).Draw(t, "words")
		most := rapid.IntRange(2, 40).Draw(t, "most")
		lines := wrap(strings.Join(words, " "), most)
		for _, l := range lines {
			if columns(l) > most || l == "" {
				t.Errorf("%q in %d columns", l, most)
			}
		}
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.Join(words, ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
