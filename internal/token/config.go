package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// node is a step of a tokenizer.json: its type, and what that reads.
type node struct {
	Type string
	raw  json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *node) UnmarshalJSON(b []byte) error {
	n.raw = append(n.raw[:0], b...)
	var t struct{ Type string }
	err := json.Unmarshal(b, &t)
	n.Type = t.Type
	return err
}

func (n *node) read(to any) error {
	if err := json.Unmarshal(n.raw, to); err != nil {
		return fmt.Errorf("%s: %w", n.Type, err)
	}
	return nil
}

// textOrRegex is a pattern: a text, or a regular expression.
type textOrRegex struct{ String, Regex string }

// UnmarshalJSON implements json.Unmarshaler: a bare string is a text.
func (p *textOrRegex) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &p.String)
	}
	type plain textOrRegex
	return json.Unmarshal(b, (*plain)(p))
}

// config is a tokenizer.json without the tables of its model.
type config struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *node        `json:"normalizer"`
	PreTokenizer  *node        `json:"pre_tokenizer"`
	PostProcessor *node        `json:"post_processor"`
	Decoder       *node        `json:"decoder"`
	Model         modelConfig  `json:"model"`
}

type modelConfig struct {
	Type         string
	Unk          *string `json:"unk_token"`
	UnkID        *int    `json:"unk_id"`
	Prefix       *string `json:"continuing_subword_prefix"`
	Suffix       *string `json:"end_of_word_suffix"`
	FuseUnk      bool    `json:"fuse_unk"`
	ByteFallback bool    `json:"byte_fallback"`
	IgnoreMerges bool    `json:"ignore_merges"`
	LongestWord  *int    `json:"max_input_chars_per_word"`
}

// byteTokens tells whether the strings of tokens are kept as bytes.
func (c *config) byteTokens() bool {
	return c.Model.Type == "BPE" && orEmpty(c.Model.Prefix) == "" && orEmpty(c.Model.Suffix) == "" &&
		(c.PreTokenizer.has("ByteLevel") || c.Normalizer.has("ByteLevel"))
}

// has tells whether a step is of a kind, or contains one.
func (n *node) has(kind string) bool {
	if n == nil {
		return false
	}
	var c struct{ Pretokenizers, Normalizers []node }
	if n.Type != "Sequence" || n.read(&c) != nil {
		return n.Type == kind
	}
	for _, in := range append(c.Pretokenizers, c.Normalizers...) {
		if in.has(kind) {
			return true
		}
	}
	return false
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// parts is what a tokenizer is made of: a small text, and large tables.
type parts struct {
	digest string // of the file
	config []byte // the file without the tables
	tokens []string
	scores []float64 // by id, of a unigram model only
	merges []merge   // by rank
}

type merge struct{ left, right, id int32 }

// mostTokens bounds the ids of a vocabulary: those of models go to some 300,000.
const mostTokens = 1 << 23

// parse reads a tokenizer.json.
func parse(b []byte) (*parts, error) {
	var file, model map[string]json.RawMessage
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	if len(file["model"]) == 0 {
		return nil, errors.New("it has no model: is it a tokenizer.json?")
	}
	if err := json.Unmarshal(file["model"], &model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	vocab, merges := model["vocab"], model["merges"]
	delete(model, "vocab")
	delete(model, "merges")
	if string(model["type"]) == "" || string(model["type"]) == "null" {
		model["type"] = json.RawMessage(guessType(vocab, merges, model))
	}
	var err error
	if file["model"], err = json.Marshal(model); err != nil {
		return nil, err
	}
	p := &parts{}
	if p.config, err = json.Marshal(file); err != nil {
		return nil, err
	}
	var c config
	if err := json.Unmarshal(p.config, &c); err != nil {
		return nil, err
	}
	if c.Model.Type == "Unigram" {
		err = p.readScores(vocab)
	} else {
		err = p.readTokens(vocab, merges, &c)
	}
	return p, err
}

// guessType names the model of an old file, which does not.
func guessType(vocab, merges json.RawMessage, model map[string]json.RawMessage) string {
	switch {
	case len(merges) > 0:
		return `"BPE"`
	case len(vocab) > 0 && vocab[0] == '[':
		return `"Unigram"`
	case len(model["max_input_chars_per_word"]) > 0:
		return `"WordPiece"`
	}
	return `"WordLevel"`
}

// readScores reads the vocabulary of a unigram model: pairs of a token and its score, by id.
func (p *parts) readScores(vocab json.RawMessage) error {
	var rows [][2]json.RawMessage
	if err := json.Unmarshal(vocab, &rows); err != nil {
		return fmt.Errorf("vocabulary: %w", err)
	}
	if len(rows) == 0 || len(rows) > mostTokens {
		return fmt.Errorf("a vocabulary of %d tokens", len(rows))
	}
	p.tokens, p.scores = make([]string, len(rows)), make([]float64, len(rows))
	for i, r := range rows {
		if err := errors.Join(json.Unmarshal(r[0], &p.tokens[i]), json.Unmarshal(r[1], &p.scores[i])); err != nil {
			return fmt.Errorf("vocabulary, token %d: %w", i, err)
		}
	}
	return nil
}

func (p *parts) readTokens(vocab, merges json.RawMessage, c *config) error {
	var ids map[string]int32
	if err := json.Unmarshal(vocab, &ids); err != nil {
		return fmt.Errorf("vocabulary: %w", err)
	}
	top := int32(-1)
	for token, id := range ids {
		if id < 0 || id >= mostTokens || int(id) >= 16*len(ids)+4096 {
			return fmt.Errorf("vocabulary: the id %d of %q, with %d tokens in all", id, token, len(ids))
		}
		top = max(top, id)
	}
	bytes := c.byteTokens()
	p.tokens = make([]string, top+1)
	for token, id := range ids {
		if bytes {
			token, _ = charBytes(token)
		}
		p.tokens[id] = token
	}
	if c.Model.Type != "BPE" {
		return nil
	}
	return p.readMerges(merges, ids, orEmpty(c.Model.Prefix))
}

// readMerges reads pairs of tokens, each a list of two or a text with a blank between.
func (p *parts) readMerges(merges json.RawMessage, ids map[string]int32, prefix string) error {
	var lists [][2]string
	if json.Unmarshal(merges, &lists) != nil {
		var texts []string
		if err := json.Unmarshal(merges, &texts); err != nil {
			return fmt.Errorf("merges: %w", err)
		}
		lists = make([][2]string, 0, len(texts))
		for i, s := range texts {
			l, r, ok := strings.Cut(s, " ")
			if strings.HasPrefix(s, "#version") {
				continue
			}
			if !ok {
				return fmt.Errorf("merge %d: %q is no pair", i, s)
			}
			lists = append(lists, [2]string{l, r})
		}
	}
	p.merges = make([]merge, len(lists))
	for i, m := range lists {
		left, ok1 := ids[m[0]]
		right, ok2 := ids[m[1]]
		id, ok3 := ids[m[0]+strings.TrimPrefix(m[1], prefix)]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d: %q and %q, or both together, are not in the vocabulary", i, m[0], m[1])
		}
		p.merges[i] = merge{left, right, id}
	}
	return nil
}
