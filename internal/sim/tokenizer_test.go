package sim

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTokenize(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
	}{
		{"", 0}, {"a", 1}, {" a", 1}, {"hello world", 2}, {"hello  world", 3}, {"extraordinary", 3}, {" extraordinary", 3}, {"abcdef", 1},
		{"abcdefg", 2}, {"42", 2}, {"it's", 3}, {"a\nb", 3}, {"Überraschung", 2}, {"日本", 1}, {"🌞", 4}, {"\xff\xfe", 2}, {" ", 1},
	} {
		if got := tokenize(nil, c.text); len(got) != c.n {
			t.Errorf("%q has %d tokens, want %d", c.text, len(got), c.n)
		}
	}
	if a, b := tokenize(nil, "the cat"), tokenize(nil, " the cat"); a[0] == b[0] || a[1] != b[1] {
		t.Errorf("a leading blank: %v, %v", a, b)
	}
}

// Tokens of words come back from their text, however they follow each other: a prompt of N random ids has N tokens.
func TestTokensRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Int32Range(wordTokens, vocabulary-1), 0, 300).Draw(t, "ids")
		text := detokenize(ids)
		if got := tokenize(nil, text); !slices.Equal(got, ids) {
			t.Fatalf("%v is %q is %v", ids, text, got)
		}
	})
}

// Any text keeps its number of tokens and its ids when it goes through ids once; what is no letter comes back as it was.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		ids := tokenize(nil, text)
		for _, id := range ids {
			if id < 0 || id >= vocabulary {
				t.Fatalf("id %d", id)
			}
		}
		back := detokenize(ids)
		letters := func(s string) string {
			return strings.Map(func(r rune) rune {
				if letter(string(r)) > 0 {
					return -1
				}
				return r
			}, s)
		}
		if letters(back) != letters(text) {
			t.Fatalf("%q came back as %q", text, back)
		}
	})
}

// Generated text tokenizes to the ids that were generated, and needs no escapes in JSON.
func TestWriter(t *testing.T) {
	prompt := tokenize(nil, "tell me a story")
	w := newWriter(prompt, 7)
	var ids []int32
	for i := range 1000 {
		ids = append(ids, w.token(i))
	}
	text := detokenize(ids)
	if got := tokenize(nil, text); !slices.Equal(got, ids) {
		t.Error("generated text has other tokens")
	}
	if q := string(appendQuoted(nil, text)); q != `"`+text+`"` {
		t.Errorf("needs escapes: %s", q)
	}
	if newWriter(prompt, 7) != w || newWriter(prompt, 8) == w || newWriter(prompt[1:], 7) == w {
		t.Error("the text must follow from prompt and seed")
	}
	distinct := map[int32]bool{}
	for _, id := range ids {
		distinct[id] = true
	}
	if len(distinct) < 950 {
		t.Errorf("%d different words of 1000", len(distinct))
	}
}

func TestChatTemplate(t *testing.T) {
	messages := []chatMessage{{"system", "be brief"}, {"user", "hello world"}}
	got := tokenizeChat(messages, true)
	if want := 2*messageOverhead + 4 + answerOverhead; len(got) != want {
		t.Errorf("%d tokens, want %d", len(got), want)
	}
	// the answer and the next turn continue the same tokens: a conversation shares its prefix
	answer := tokenize(nil, " one two")
	next := tokenizeChat(append(messages, chatMessage{"assistant", " one two"}, chatMessage{"user", "more"}), true)
	if prefix := append(append(got, answer...), endToken); !slices.Equal(next[:len(prefix)], prefix) {
		t.Errorf("%v does not begin with %v", next, prefix)
	}
}
