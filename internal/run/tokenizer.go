package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/token"
	"github.com/prony-bench/prony/internal/workload"
)

// noTokenizer is the name of the tokenizer that is none: then nobody is asked for lengths. With "" the server is.
const noTokenizer = "none"

// startTokenizer begins to load the tokenizer of the spec, while the server is asked who it is.
func (p *Plan) startTokenizer(ctx context.Context) {
	name := p.Spec.Workload.Tokenizer
	if name == "" || name == noTokenizer || p.deps.Tokenizer == nil {
		return
	}
	p.counter = token.Background(func() (*token.Tokenizer, error) { return p.deps.Tokenizer(ctx, name) })
}

// takeTokenizer waits for the tokenizer, which then counts what the server does not.
func (p *Plan) takeTokenizer() error {
	if p.counter == nil {
		return nil
	}
	t, err := p.counter()
	if err != nil {
		return err
	}
	w := &p.Spec.Workload
	if w.TokenizerSHA != "" && w.TokenizerSHA != t.Digest() {
		return fault.Usagef("the run that is repeated had the file with SHA-256 "+w.TokenizerSHA, "the tokenizer %s is another one than that of the run", w.Tokenizer)
	}
	w.TokenizerSHA = t.Digest()
	if p.Endpoint.Task == bench.Generate {
		p.Options.Count = t.Count
	}
	return nil
}

// alignHere makes prompts of words that the tokenizer has as one token each. What the server adds is found out by two probes, where it
// tells counts. It leaves prompts to others where there is no tokenizer, or they must be token ids; and with none it asks nobody.
func (p *Plan) alignHere(ctx context.Context, offline bool) (done bool, err error) {
	if _, ids := p.dataset.(workload.RandomIDs); ids || p.Endpoint.Can.IDsOnly {
		return false, nil
	}
	name := p.Spec.Workload.Tokenizer
	if name == noTokenizer {
		p.setMaker(workload.Text{Words: workload.Words(), PerWord: 1, Overhead: p.queryWords(), Query: p.queryWords(), How: "estimate: one word is one token (--tokenizer none)"})
		return true, nil
	}
	if p.counter == nil || p.Endpoint.Task == bench.Rerank {
		return false, nil
	}
	t, err := p.counter()
	if err != nil {
		return false, err
	}
	here := func(words []string) (int, bool) { return t.Count(strings.Join(words, " ")), true }
	m, ok := p.alignText(here, "tokenizer", true)
	if !ok {
		return false, fault.Usagef("choose another one, or leave --tokenizer out", "the tokenizer %s knows no English words", name)
	}
	note, own, told := "", 0, false
	if !offline {
		var same bool
		if own, told, same, err = p.added(ctx, m.Words, here); err != nil {
			return false, err
		}
		if told && !same {
			p.deps.say("the server counts other tokens than the tokenizer %s: is it the model's?", name)
			note = "; the server counts others"
		}
	}
	if !told && p.Endpoint.Chat {
		if own, ok = p.templated(ctx, t, m.Words[:fewWords]); ok {
			note = " by the chat template"
		}
	}
	m.Overhead += own
	how := "text of exact length"
	if m.PerWord != 1 {
		how = fmt.Sprintf("estimate: text, %.3g tokens a word", m.PerWord)
	}
	m.How = fmt.Sprintf("%s by the tokenizer %s (%d tokens of the server's own%s)", how, name, m.Overhead, note)
	p.setMaker(m)
	return true, nil
}

// templated is how many tokens the chat template of the model puts around a message.
func (p *Plan) templated(ctx context.Context, t *token.Tokenizer, words []string) (own int, ok bool) {
	if p.deps.Chat == nil {
		return 0, false
	}
	c, err := p.deps.Chat(ctx, p.Spec.Workload.Tokenizer)
	if err != nil {
		return 0, false // which the source of the prompts does not claim then
	}
	text := strings.Join(words, " ")
	prompt, err := c.Render([]map[string]any{{"role": "user", "content": text}})
	return max(0, t.Count(prompt)-t.Count(text)), err == nil
}

// added is how many tokens the server adds to a text, whether it tells counts at all, and whether they are those of the tokenizer: a
// longer text has as many more tokens there as here.
func (p *Plan) added(ctx context.Context, words []string, here func([]string) (int, bool)) (own int, told, same bool, err error) {
	var more [2]int
	for i, n := range []int{fewWords, min(2*fewWords, len(words))} {
		there, err := p.probe(ctx, &p.Targets[0], p.probeRequest(words[:n], 1))
		if errors.Is(err, errUnreadable) || err == nil && there == 0 {
			return 0, false, false, nil
		}
		if err != nil {
			return 0, false, false, err
		}
		count, _ := here(words[:n])
		more[i] = there - count
	}
	return max(0, more[0]), true, more[0] == more[1] && more[0] >= 0, nil
}
