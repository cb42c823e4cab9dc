package token

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// build makes a tokenizer of its parts.
func build(name string, p *parts) (*Tokenizer, error) {
	var c config
	if err := json.Unmarshal(p.config, &c); err != nil {
		return nil, err
	}
	t := &Tokenizer{name: name, digest: p.digest, tokens: p.tokens, byteTokens: c.byteTokens(), added: make(map[int32]addedToken, len(c.Added))}
	var err error
	if t.normalize, err = normalizer(c.Normalizer); err != nil {
		return nil, err
	}
	if t.steps, err = preTokenizer(c.PreTokenizer); err != nil {
		return nil, err
	}
	if t.decode, err = decoders(c.Decoder, t.byteTokens); err != nil {
		return nil, err
	}
	if t.model, err = newModel(&c, p); err != nil {
		return nil, err
	}
	if t.byteTokens {
		// bytes that would be written as characters only to be read back stay bytes
		if last := len(t.steps) - 1; last >= 0 && t.steps[last] == (toChars{}) && !c.Normalizer.has("ByteLevel") {
			t.steps = t.steps[:last]
		} else {
			t.steps = append(t.steps, toBytes{})
		}
	}
	if m, ok := t.model.(*bpe); ok {
		if s, ok := m.seams(p); ok {
			t.steps = append(t.steps, s)
		}
	}
	for _, a := range c.Added {
		if a.ID < 0 || a.ID >= mostTokens {
			return nil, fmt.Errorf("the id %d of the added token %q", a.ID, a.Content)
		}
		t.added[a.ID] = a
		text := a.Content
		if !a.Normalized {
			t.raw.add(text, a)
			continue
		}
		if t.normalize != nil {
			text = t.normalize(text)
		}
		t.normal.add(text, a)
	}
	if err := t.postProcessor(c.PostProcessor); err != nil {
		return nil, err
	}
	return t, nil
}

func newModel(c *config, p *parts) (model, error) {
	words := newVocab(p.tokens)
	unk := int32(-1)
	if id, ok := words.get(orEmpty(c.Model.Unk)); ok {
		unk = id
	}
	switch c.Model.Type {
	case "BPE":
		return newBPE(c, p, words, unk), nil
	case "Unigram":
		return newUnigram(c.Model, p, words)
	case "WordPiece":
		if unk < 0 {
			return nil, fmt.Errorf("the unknown token %q is not in the vocabulary", orEmpty(c.Model.Unk))
		}
		m := &wordPiece{vocab: words, unk: unk, prefix: "##", longest: 100}
		if c.Model.Prefix != nil {
			m.prefix = *c.Model.Prefix
		}
		if c.Model.LongestWord != nil {
			m.longest = *c.Model.LongestWord
		}
		for _, token := range p.tokens {
			m.most = max(m.most, len(token))
		}
		return m, nil
	case "WordLevel":
		return &wordLevel{words, unk}, nil
	}
	return nil, fmt.Errorf("the model %s is not known", c.Model.Type)
}

func newBPE(c *config, p *parts, words *vocab, unk int32) *bpe {
	m := &bpe{
		vocab: words, unk: unk, byBytes: c.byteTokens(), fallback: c.Model.ByteFallback, fuse: c.Model.FuseUnk, whole: c.Model.IgnoreMerges,
		prefix: orEmpty(c.Model.Prefix), suffix: orEmpty(c.Model.Suffix), merges: newPairs(len(p.merges)),
	}
	for rank, x := range p.merges {
		m.merges.put(x.left, x.right, uint64(rank)<<32|uint64(uint32(x.id)))
	}
	if m.byBytes {
		for i := range m.byteID {
			m.byteID[i] = unk
			if id, ok := words.get(string([]byte{byte(i)})); ok {
				m.byteID[i] = id
			}
		}
	} else {
		m.byteID = fallbackIDs(words)
	}
	return m
}

// fallbackIDs returns the ids of the tokens <0x00> to <0xFF>, -1 = there is none.
func fallbackIDs(words *vocab) (ids [256]int32) {
	for i := range ids {
		ids[i] = -1
		if id, ok := words.get(fmt.Sprintf("<0x%02X>", i)); ok {
			ids[i] = id
		}
	}
	return ids
}

// metaSpace stands for a blank in vocabularies of SentencePiece.
const metaSpace = "▁"

// seams returns a step that cuts a text before each meta space over which no merge reaches, so that a text without pre-tokens is worked
// on word by word: the merges on both sides cannot see each other.
func (m *bpe) seams(p *parts) (step, bool) {
	if _, ok := m.vocab.get(metaSpace); !ok || m.byBytes || m.whole || m.prefix != "" || m.suffix != "" {
		return nil, false
	}
	glue := map[rune]bool{} // characters before a meta space that a merge may join with it
	for _, x := range p.merges {
		if strings.HasPrefix(p.tokens[x.right], metaSpace) {
			r, _ := utf8.DecodeLastRuneInString(p.tokens[x.left])
			glue[r] = true
		}
	}
	return splitter(func(s string) int {
		for i := 1; i < len(s); {
			k := strings.Index(s[i:], metaSpace)
			if k < 0 {
				break
			}
			if r, _ := utf8.DecodeLastRuneInString(s[:i+k]); !glue[r] {
				return i + k
			}
			i += k + len(metaSpace)
		}
		return len(s)
	}), true
}

// postProcessor reads the special tokens around a text.
func (t *Tokenizer) postProcessor(n *node) error {
	if n == nil {
		return nil
	}
	var c struct {
		Processors []node
		Single     []struct {
			SpecialToken *struct{ ID string }
			Sequence     *struct{ ID string }
		}
		Special map[string]struct{ IDs []int32 } `json:"special_tokens"`
		Sep     json.RawMessage
		Cls     json.RawMessage
	}
	if err := n.read(&c); err != nil {
		return err
	}
	switch n.Type {
	case "ByteLevel":
		return nil
	case "Sequence":
		for i := range c.Processors {
			if err := t.postProcessor(&c.Processors[i]); err != nil {
				return err
			}
		}
		return nil
	case "TemplateProcessing":
		var before, after []int32
		seen := false
		for _, x := range c.Single {
			switch {
			case x.Sequence != nil:
				seen = true
			case x.SpecialToken == nil:
			case seen:
				after = append(after, c.Special[x.SpecialToken.ID].IDs...)
			default:
				before = append(before, c.Special[x.SpecialToken.ID].IDs...)
			}
		}
		t.before, t.after = append(before, t.before...), append(t.after, after...)
		return nil
	case "BertProcessing", "RobertaProcessing":
		var ids [2]int32
		for i, raw := range []json.RawMessage{c.Cls, c.Sep} {
			var pair [2]json.RawMessage
			if err := json.Unmarshal(raw, &pair); err != nil {
				return fmt.Errorf("%s: %w", n.Type, err)
			}
			if err := json.Unmarshal(pair[1], &ids[i]); err != nil {
				return fmt.Errorf("%s: %w", n.Type, err)
			}
		}
		t.before, t.after = append([]int32{ids[0]}, t.before...), append(t.after, ids[1])
		return nil
	}
	return fmt.Errorf("the post-processor %s is not known", n.Type)
}
