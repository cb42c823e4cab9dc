package sim

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The vocabulary. A word of letters has an id by its hash; the word of an id is spelled from syllables, and spelled so it hashes
// to its own id: ids -> text -> ids is the identity for word tokens, and no table of words is needed. text -> ids -> text keeps
// everything but words that are not of the vocabulary, which come back as the word they share an id with.
const (
	byteTokens  = 256   // 0-255: one byte each: digits, punctuation, blanks, what is no letter
	endToken    = 256   // ends a message and an answer
	beginToken  = 257   // begins a message
	roleTokens  = 258   // 258-262: the roles, the last for any other role
	wordTokens  = 512   // words with their leading blank, and after them the same words without one
	words       = 32768 // syllableBits * wordSyllables bits
	vocabulary  = wordTokens + 2*words
	wordLetters = 6 // longer words are cut into pieces of so many letters

	// Tokens of the chat template beside the contents: begin, role, line feed, end of each message, and begin, role, line feed of
	// the answer.
	messageOverhead = 4
	answerOverhead  = 3
)

const (
	syllableBits  = 5
	wordSyllables = wordLetters / 2
	consonants    = "bdfklmnr" // 3 bits
	vowels        = "aeio"     // 2 bits
)

func roleToken(role string) int32 {
	switch role {
	case "system":
		return roleTokens
	case "user":
		return roleTokens + 1
	case "assistant":
		return roleTokens + 2
	case "tool":
		return roleTokens + 3
	}
	return roleTokens + 4
}

// tokenize appends the tokens of a text.
func tokenize(out []int32, text string) []int32 {
	for i := 0; i < len(text); {
		start, base := i, int32(wordTokens+words)
		if text[i] == ' ' {
			start, base = i+1, wordTokens
		}
		end, letters := start, 0
		for end < len(text) && letters < wordLetters {
			n := letter(text[end:])
			if n == 0 {
				break
			}
			end, letters = end+n, letters+1
		}
		if letters == 0 {
			out = append(out, int32(text[i]))
			i++
			continue
		}
		out = append(out, base+wordID(text[start:end]))
		i = end
	}
	return out
}

// letter returns the length in bytes of the letter that s begins with, or 0.
func letter(s string) int {
	if c := s[0]; c < utf8.RuneSelf {
		if 'a' <= c|0x20 && c|0x20 <= 'z' {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError || !unicode.IsLetter(r) {
		return 0
	}
	return n
}

// wordID is the number of a word: its spelling when it is one of the vocabulary, else a hash.
func wordID(w string) int32 {
	if len(w) == wordLetters {
		id, spelled := int32(0), true
		for i := 0; i < len(w) && spelled; i += 2 {
			c, v := strings.IndexByte(consonants, w[i]), strings.IndexByte(vowels, w[i+1])
			spelled = c >= 0 && v >= 0
			id = id<<syllableBits | int32(c&7)<<2 | int32(v&3)
		}
		if spelled {
			return id
		}
	}
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(w) {
		h = (h ^ uint64(w[i])) * 1099511628211
	}
	return int32(mix(h) % words)
}

// appendToken appends the text of a token; nothing for a special token.
func appendToken(out []byte, id int32) []byte {
	switch {
	case id < byteTokens:
		return append(out, byte(id))
	case id < wordTokens:
		return out
	case id < wordTokens+words:
		out = append(out, ' ')
		id -= wordTokens
	default:
		id -= wordTokens + words
	}
	for shift := syllableBits * (wordSyllables - 1); shift >= 0; shift -= syllableBits {
		s := id >> shift
		out = append(out, consonants[s>>2&7], vowels[s&3])
	}
	return out
}

// detokenize returns the text of tokens.
func detokenize(ids []int32) string {
	var out []byte
	for _, id := range ids {
		out = appendToken(out, id)
	}
	return string(out)
}

// chatMessage is a message of a chat as far as the template needs it.
type chatMessage struct{ role, content string }

// tokenizeChat renders messages by the template, with the begin of the answer unless it is not wanted.
func tokenizeChat(messages []chatMessage, answer bool) []int32 {
	size := answerOverhead
	for _, m := range messages {
		size += messageOverhead + len(m.content)/4
	}
	out := make([]int32, 0, size)
	for _, m := range messages {
		out = append(out, beginToken, roleToken(m.role), '\n')
		out = tokenize(out, m.content)
		out = append(out, endToken)
	}
	if answer {
		out = append(out, beginToken, roleToken("assistant"), '\n')
	}
	return out
}

// writer is what the model "says" to a prompt: an endless sequence of words, the same for the same prompt and seed.
type writer uint64

func newWriter(prompt []int32, seed uint64) writer {
	h := seed
	for _, t := range prompt {
		h = mix(h ^ uint64(uint32(t)))
	}
	return writer(h)
}

// token is the i-th token of the answer.
func (w writer) token(i int) int32 {
	return wordTokens + int32(mix(uint64(w)+uint64(i))%words)
}
