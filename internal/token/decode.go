package token

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder turns the strings of tokens into pieces of the text.
type decoder func(tokens []string) []string

// Decode returns the text of ids; skip leaves special tokens out. Ids that the vocabulary does not have are left out.
func (t *Tokenizer) Decode(ids []int32, skip bool) string {
	pieces := make([]string, 0, len(ids))
	for _, id := range ids {
		text, ok := t.Token(id)
		if !ok || skip && t.added[id].Special {
			continue
		}
		pieces = append(pieces, text)
	}
	if t.decode == nil {
		if t.byteTokens {
			for i := range pieces {
				pieces[i] = byteChars(pieces[i])
			}
		}
		return strings.Join(pieces, " ")
	}
	for _, f := range t.decode {
		pieces = f(pieces)
	}
	return strings.Join(pieces, "")
}

// Token returns the string of an id: of byte-level tokenizers, its bytes.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if a, ok := t.added[id]; ok {
		return a.Content, true
	}
	if id < 0 || int(id) >= len(t.tokens) || t.tokens[id] == "" {
		return "", false
	}
	return t.tokens[id], true
}

// perToken makes a decoder of what happens to each token.
func perToken(f func(i int, s string) string) decoder {
	return func(tokens []string) []string {
		for i := range tokens {
			tokens[i] = f(i, tokens[i])
		}
		return tokens
	}
}

// decoders reads a decoder, or those of a sequence. Bytes says that the strings of tokens are their bytes.
func decoders(n *node, bytes bool) ([]decoder, error) {
	if n == nil {
		return nil, nil
	}
	var c struct {
		Decoders       []node
		Pattern        textOrRegex
		Content        string
		Start, Stop    int
		Prefix, Suffix string
		Cleanup        bool
		Replacement    string
		PrependScheme  string `json:"prepend_scheme"`
		AddPrefixSpace *bool  `json:"add_prefix_space"`
		PadToken       string `json:"pad_token"`
		WordDelimiter  string `json:"word_delimiter_token"`
	}
	if err := n.read(&c); err != nil {
		return nil, err
	}
	switch n.Type {
	case "Sequence":
		var all []decoder
		for i := range c.Decoders {
			d, err := decoders(&c.Decoders[i], bytes)
			if err != nil {
				return nil, err
			}
			all = append(all, d...)
		}
		return all, nil
	case "ByteLevel":
		return []decoder{func(tokens []string) []string {
			var b strings.Builder
			for _, t := range tokens {
				if !bytes {
					t, _ = charBytes(t)
				}
				b.WriteString(t)
			}
			return []string{lossy(b.String())}
		}}, nil
	case "ByteFallback":
		return []decoder{fallbackBytes}, nil
	case "Fuse":
		return []decoder{func(tokens []string) []string { return []string{strings.Join(tokens, "")} }}, nil
	case "Replace":
		f, err := replacer(c.Pattern, c.Content)
		return []decoder{perToken(func(_ int, s string) string { return f(s) })}, err
	case "Strip":
		return []decoder{perToken(func(_ int, s string) string {
			for k := 0; k < c.Start && c.Content != "" && strings.HasPrefix(s, c.Content); k++ {
				s = s[len(c.Content):]
			}
			for k := 0; k < c.Stop && c.Content != "" && strings.HasSuffix(s, c.Content); k++ {
				s = s[:len(s)-len(c.Content)]
			}
			return s
		})}, nil
	case "WordPiece":
		return []decoder{perToken(func(i int, s string) string {
			if i > 0 {
				if rest, ok := strings.CutPrefix(s, c.Prefix); ok {
					s = rest
				} else {
					s = " " + s
				}
			}
			if c.Cleanup {
				s = cleanup(s)
			}
			return s
		})}, nil
	case "BPEDecoder":
		return []decoder{func(tokens []string) []string {
			for i := range tokens {
				space := " "
				if i == len(tokens)-1 {
					space = ""
				}
				tokens[i] = strings.ReplaceAll(tokens[i], c.Suffix, space)
			}
			return tokens
		}}, nil
	case "Metaspace":
		never := strings.EqualFold(c.PrependScheme, "never") || c.PrependScheme == "" && c.AddPrefixSpace != nil && !*c.AddPrefixSpace
		return []decoder{perToken(func(i int, s string) string {
			if i == 0 && !never {
				return strings.ReplaceAll(s, c.Replacement, "")
			}
			return strings.ReplaceAll(s, c.Replacement, " ")
		})}, nil
	case "CTC":
		return []decoder{func(tokens []string) (out []string) {
			last := ""
			for i, t := range tokens {
				if i > 0 && t == last {
					continue
				}
				last = t
				t = strings.ReplaceAll(t, c.PadToken, "")
				if c.Cleanup {
					t = strings.ReplaceAll(cleanup(t), c.WordDelimiter, " ")
				}
				if t != "" {
					out = append(out, t)
				}
			}
			return out
		}}, nil
	}
	return nil, fmt.Errorf("the decoder %s is not known", n.Type)
}

// fallbackBytes joins runs of byte tokens; a run that is no UTF-8 becomes one U+FFFD a byte.
func fallbackBytes(tokens []string) (out []string) {
	var run []byte
	flush := func() {
		switch {
		case len(run) == 0:
		case utf8.Valid(run):
			out = append(out, string(run))
		default:
			for range run {
				out = append(out, "\ufffd")
			}
		}
		run = run[:0]
	}
	for _, t := range tokens {
		if b, ok := byteToken(t); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, t)
	}
	flush()
	return out
}

// byteToken reads <0x0A>.
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	v, err := strconv.ParseUint(s[3:5], 16, 8)
	return byte(v), err == nil
}

// cleanup takes the blanks away that splitting English put before punctuation.
func cleanup(s string) string {
	for _, p := range [][2]string{{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}} {
		s = strings.ReplaceAll(s, p[0], p[1])
	}
	return s
}
