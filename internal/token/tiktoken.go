package token

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// encodings are those of OpenAI that come with prony: the file of their ranks, how they split, and their special tokens.
var encodings = map[string]struct {
	file    string
	split   splitter
	special map[string]int32
}{
	"o200k": {"o200k_base.tiktoken", o200kSplit, map[string]int32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018}},
	"cl100k": {"cl100k_base.tiktoken", cl100kSplit, map[string]int32{
		"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276,
	}},
}

// Builtins are the names that Builtin knows.
func Builtins() []string { return slices.Sorted(maps.Keys(encodings)) }

// Builtin returns an encoding of tiktoken by its name: o200k (GPT-4o and later) or cl100k (GPT-4), also with _base behind it. Special
// tokens in a text are found, as by tiktoken with allowed_special="all".
func Builtin(name string) (*Tokenizer, error) {
	e, ok := encodings[strings.TrimSuffix(name, "_base")]
	if !ok {
		return nil, fmt.Errorf("no encoding %q is built in: there are %s", name, strings.Join(Builtins(), " and "))
	}
	file, err := assets.Assets.ReadFile(e.file)
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{name: "builtin:" + strings.TrimSuffix(name, "_base"), digest: digest(file), steps: []step{e.split}, byteTokens: true, added: map[int32]addedToken{}}
	if t.tokens, err = readRanks(file); err != nil {
		return nil, fmt.Errorf("%s: %w", e.file, err)
	}
	m := &bpe{vocab: newVocab(t.tokens), ranks: true, byBytes: true, whole: true, unk: -1}
	for i := range m.byteID {
		m.byteID[i], _ = m.vocab.get(string([]byte{byte(i)}))
	}
	t.model = m
	for text, id := range e.special {
		a := addedToken{ID: id, Content: text, Special: true}
		t.added[id] = a
		t.raw.add(text, a)
	}
	t.decode = []decoder{func(tokens []string) []string { return []string{lossy(strings.Join(tokens, ""))} }}
	return t, nil
}

// readRanks reads lines of a token in base64 and its rank, which is its id.
func readRanks(file []byte) ([]string, error) {
	count := bytes.Count(file, []byte("\n")) + 1
	tokens := make([]string, 0, count)
	text := make([]byte, 0, len(file))
	ends := make([]int, 0, count)
	for line := range bytes.Lines(file) {
		b, rank, ok := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if id, err := strconv.Atoi(string(rank)); !ok || err != nil || id != len(ends) {
			return nil, fmt.Errorf("line %d has no token of that rank", len(ends)+1)
		}
		var err error
		if text, err = base64.StdEncoding.AppendDecode(text, b); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(ends)+1, err)
		}
		ends = append(ends, len(text))
	}
	all, from := string(text), 0
	for _, end := range ends {
		tokens = append(tokens, all[from:end])
		from = end
	}
	return tokens, nil
}
