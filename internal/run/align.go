package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/discover"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/workload"
)

// Ranges of token ids that are ordinary text in every vocabulary at hand: special tokens and single bytes lie below or at the end.
const (
	lowID      = 1000
	highID     = 20_000
	probeIDs   = 32
	fewWords   = 16
	leastWords = 64
	mostInputs = 192 // words of a text to embed or to rank: models for that may take no more than 256 tokens
	queryWords = 16  // of the query of a ranking
	// probeTimeout bounds one probe: a prompt of a thousand tokens, on a slow machine with a busy server.
	probeTimeout = 2 * time.Minute
)

// makePrompts finds out how to make prompts of a wanted length, as the first server counts them: by token ids where the endpoint
// takes them, by text that a tokenizer counts here, by text aligned through /tokenize, or by text aligned through two or three probes with one output token each.
func (p *Plan) makePrompts(ctx context.Context, offline bool) error {
	if !p.invents() {
		return nil
	}
	if _, ids := p.dataset.(workload.RandomIDs); (offline || p.Spec.Workload.Tokenizer == noTokenizer) && (ids || p.Endpoint.Can.IDsOnly) {
		p.setMaker(workload.IDs{Low: lowID, High: highID})
		return nil
	}
	if done, err := p.alignHere(ctx, offline); done || err != nil {
		return err
	}
	if offline {
		p.setMaker(workload.Text{Words: workload.Words(), PerWord: 1, Overhead: p.queryWords(), Query: p.queryWords(), How: "estimate: one word is one token (no server was asked)"})
		return nil
	}
	t := &p.Targets[0]
	if p.Endpoint.Can.IDsIn || p.Endpoint.Name == "completions" && p.Engine.Name() == "openai" {
		m, err := p.alignIDs(ctx, t)
		if err == nil {
			p.setMaker(m)
			return nil
		}
		if p.Endpoint.Can.IDsOnly {
			if errors.Is(err, errUnreadable) {
				err = fault.Wrap(fault.Target, err, "probe of the prompt length", "is it the right --engine and --endpoint? `prony probe` shows what the server answers")
			}
			return err
		}
	}
	if m, ok := p.alignText(func(words []string) (int, bool) {
		if p.Endpoint.Task == bench.Rerank {
			return 0, false // the count of a query with its document is the endpoint's
		}
		return p.prober(t).Count(ctx, p.Engine.Name(), p.Spec.Target.Model, strings.Join(words, " "), p.Endpoint.Chat)
	}, "/tokenize", true); ok {
		p.setMaker(m)
		return nil
	}
	var failed error
	count := func(words []string, documents int) (int, bool) {
		n, err := p.probe(ctx, t, p.probeRequest(words, documents))
		if err != nil {
			failed = err
		}
		return n, err == nil && n > 0
	}
	m, ok := p.alignText(func(words []string) (int, bool) { return count(words, 1) }, "prompt_tokens of probes", false)
	if ok && p.Endpoint.Task == bench.Rerank {
		if two, ok := count(m.Words[:fewWords], 2); ok {
			m = alignQuery(m, two)
		}
	}
	switch {
	case errors.Is(failed, errUnreadable):
		p.deps.say("a probe's answer could not be read (%v): prompt lengths are an estimate", p.conceal(failed.Error()))
		ok = false
	case failed != nil:
		return failed
	}
	if !ok {
		m = workload.Text{Words: workload.Words(), PerWord: 1, Overhead: p.queryWords(), Query: p.queryWords(), How: "estimate: one word is one token (the server tells no count)"}
	}
	p.setMaker(m)
	return nil
}

// probeRequest is a request with one prompt or input of such words, or with so many documents of them and a query as long as those of the run.
func (p *Plan) probeRequest(words []string, documents int) *bench.Request {
	text := strings.Join(words, " ")
	switch p.Endpoint.Task {
	case bench.Embed:
		return &bench.Request{Inputs: []string{text}}
	case bench.Rerank:
		return &bench.Request{Query: strings.Join(workload.Words()[:queryWords], " "), Inputs: slices.Repeat([]string{text}, documents)}
	}
	return &bench.Request{Prompt: text}
}

// alignQuery finds out whether the query counts with each document, as where a model reads both together, or once a request, as where
// each is embedded by itself. Two is the count of a request with two documents of a few words.
func alignQuery(m workload.Text, two int) workload.Text {
	one := m.Overhead + int(float64(fewWords)*m.PerWord+0.5)
	if once := 2*one - two; once >= m.Query/2 {
		m.Once, m.Overhead = once, max(0, m.Overhead-once)
		m.How += ", the query counted once a request"
	}
	return m
}

// queryWords is the length of the queries that go before documents.
func (p *Plan) queryWords() int {
	if p.Endpoint.Task == bench.Rerank {
		return queryWords
	}
	return 0
}

func (p *Plan) setMaker(m workload.Maker) {
	p.Maker = m
	p.Spec.Workload.PromptSource = m.Source()
}

// alignIDs tries a prompt of token ids. The server may add a begin token of its own.
func (p *Plan) alignIDs(ctx context.Context, t *client.Target) (workload.Maker, error) {
	m := workload.IDs{Low: lowID, High: highID}
	if v, ok := p.Sheet.Engines[0].Vocab.Get(); ok {
		m.High = min(m.High, v*9/10)
		m.Low = min(m.Low, m.High/2)
	}
	var q bench.Request
	m.Make(&q, probeIDs, 0, rng.New(p.Spec.Seed, "workload/probe"))
	n, err := p.probe(ctx, t, &q)
	if err == nil && n == 0 && p.Endpoint.Can.IDsOnly {
		n = probeIDs // it is not told, and there is nothing to be added to
	}
	if err == nil && (n < probeIDs || n > probeIDs+2) {
		err = fault.New(fault.Usage, fmt.Sprintf("the server counts a prompt of %d token ids as %d tokens", probeIDs, n), "use an endpoint that takes a text")
	}
	if err != nil {
		return nil, err
	}
	m.Added = n - probeIDs
	return m, nil
}

// alignText finds out how many tokens the server adds, and how many a word has. Where counting is cheap, words that are not one
// token are left out.
func (p *Plan) alignText(count func([]string) (int, bool), how string, cheap bool) (workload.Text, bool) {
	words := workload.Words()
	if p.Endpoint.Task != bench.Generate {
		words = words[:mostInputs]
	}
	if e := p.Sheet.Engines; len(e) > 0 {
		if limit, ok := e[0].MaxLen.Get(); ok {
			words = words[:max(leastWords, min(len(words), limit/2))]
		}
	}
	few, ok := count(words[:fewWords])
	if !ok {
		return workload.Text{}, false
	}
	all, ok := count(words)
	if !ok {
		return workload.Text{}, false
	}
	m := workload.Text{Words: words, Query: p.queryWords(), PerWord: float64(all-few) / float64(len(words)-fewWords)}
	exact := func(own int, note string) workload.Text {
		m.PerWord, m.Overhead = 1, own
		if m.Query > 0 {
			note += fmt.Sprintf(", a query of %d", m.Query)
		}
		m.How = fmt.Sprintf("text, aligned by %s (%d tokens of the server's own%s)", how, own-m.Query, note)
		return m
	}
	if m.PerWord == 1 && few >= fewWords {
		return exact(few-fewWords, ""), true
	}
	if cheap {
		if own, ok := overhead(words, count); ok {
			if kept := singles(words, own, count); len(kept) >= leastWords {
				m.Words = kept
				return exact(own, fmt.Sprintf("; %d of %d words", len(kept), len(words))), true
			}
		}
	}
	if m.PerWord <= 0 {
		return workload.Text{}, false
	}
	m.Overhead = max(0, few-int(float64(fewWords)*m.PerWord+0.5))
	m.How = fmt.Sprintf("estimate: text, %.3g tokens a word by %s", m.PerWord, how)
	return m, true
}

// overhead finds the tokens that the server adds, by a word that is one token: twice the word is one token more.
func overhead(words []string, count func([]string) (int, bool)) (int, bool) {
	for _, w := range words[:fewWords] {
		once, ok := count([]string{w})
		twice, ok2 := count([]string{w, w})
		if !ok || !ok2 {
			return 0, false
		}
		if twice == once+1 && once >= 1 {
			return once - 1, true
		}
	}
	return 0, false
}

// singles returns the words that are one token each: a run of words whose count is their number is good as a whole, else it is halved.
func singles(words []string, overhead int, count func([]string) (int, bool)) (kept []string) {
	n, ok := count(words)
	switch {
	case !ok:
		return nil
	case n == len(words)+overhead:
		return words
	case len(words) == 1:
		return nil
	}
	half := len(words) / 2
	return append(singles(words[:half:half], overhead, count), singles(words[half:], overhead, count)...)
}

// probe sends one request with a single output token and returns the server's count of its prompt.
func (p *Plan) probe(ctx context.Context, t *client.Target, q *bench.Request) (int, error) {
	q.OSL = 1
	o := p.Options
	o.Stream, o.ForceLength = false, false
	o.Sampling = bench.Sampling{}
	call, err := p.Endpoint.Codec.Encode(p.Endpoint, q, &o)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	status, head, body, err := p.prober(t).Post(ctx, call.Path, call.Body)
	if err != nil {
		return 0, fault.Wrap(fault.Target, err, "probe of the prompt length", "does the server answer `prony probe`? --prompt sends a text whose length needs no probe")
	}
	var d dialect.Delta
	dec := p.Endpoint.Codec.Decoder(p.Endpoint)
	if h, ok := dec.(dialect.Headed); ok {
		h.Head(head, &d)
	}
	derr := dec.Body(body, &d)
	if status != http.StatusOK {
		return 0, p.unusable(status, body, d.Error)
	}
	if derr != nil {
		return 0, fmt.Errorf("%w: %w", errUnreadable, derr)
	}
	if d.Error != "" {
		return 0, fault.New(fault.Target, fmt.Sprintf("%s gives no answer: %s", t.Name(call.Path), shorten(d.Error)), "is it the right --url and --endpoint?")
	}
	p.fingerprint(body)
	w := &p.Spec.Workload
	w.Probes++
	w.ProbeTokensIn += d.Prompt.Or(0)
	w.ProbeTokensOut += d.Completion.Or(0)
	return d.Prompt.Or(0), nil
}

// fingerprint keeps what an answer tells about its engine.
func (p *Plan) fingerprint(body []byte) {
	var a struct {
		Fingerprint string `json:"system_fingerprint"`
	}
	if json.Unmarshal(body, &a) == nil {
		f := discover.Found{Engine: p.Sheet.Engines[0]}
		f.Fingerprint(a.Fingerprint)
		p.Sheet.Engines[0] = f.Engine
	}
}

// errUnreadable says that an answer to a probe was none of the endpoint's. The run itself will show what comes there.
var errUnreadable = errors.New("no answer of this endpoint")

// shorten makes one line of a server's words, and no long one.
func shorten(words string) string {
	const most = 200
	if words = strings.Join(strings.Fields(words), " "); len(words) > most {
		words = strings.ToValidUTF8(words[:most], "") + "..."
	}
	return words
}

// unusable explains a status that every request would meet.
func (p *Plan) unusable(status int, body []byte, words string) error {
	if words == "" {
		words = string(body)
	}
	return p.unusableFault(p.Targets[0], status, shorten(words))
}

// tooLong is what servers say to a prompt, or a prompt and an answer, that is longer than their context.
var tooLong = regexp.MustCompile(`(?i)context (length|size|window)|too long|max_model_len|maximum length|max_total_tokens|max_seq_len|(must be <=?|less than).*tokens`)

func (p *Plan) unusableFault(t client.Target, status int, words string) error {
	ep := p.Endpoint
	if words == "" {
		words = http.StatusText(status)
	}
	hint := "the server's words say what it does not take: check --model, --endpoint and --extra-body"
	switch {
	case status == http.StatusProxyAuthRequired:
		hint = discover.ProxyHint
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		hint = discover.AccessHint(p.Engine.Name(), p.deps.Auth, p.deps.Key)
	case status < 500 && tooLong.MatchString(words):
		hint = "prompt and answer together are longer than the server takes: lower --isl or --osl, or give shorter prompts"
	case status == http.StatusNotFound && strings.Contains(strings.ToLower(words), "model"):
		hint = "choose a model that the server has with --model; GET /v1/models lists them"
	case ep.Task != bench.Generate && (status == http.StatusNotFound || status == http.StatusNotImplemented || status == http.StatusMethodNotAllowed):
		hint = "servers have this path only with a model for that task: is the model of --url one, and was the server started for it?"
	case status == http.StatusNotFound:
		hint = "check the path: --url is the base, such as http://host:8000, and --endpoint what is asked there"
	case strings.Contains(words, "stream_options"):
		hint = "leave it out with --no-usage; token counts are then estimates"
	case status == http.StatusTooManyRequests:
		hint = "the server limits requests: ask for less, with --concurrency or --request-rate, or wait"
	case status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		hint = "is it an LLM server? check --url and --endpoint"
	case status >= 500:
		hint = "the server fails by itself: its log may say why; is it still loading? --wait-ready 10m waits for it"
	case status >= 300 && status < 400:
		hint = "a redirect is not followed, since it would be measured with the answer: give the address it leads to with --url"
	}
	return fault.New(fault.Target, fmt.Sprintf("%s answers %d: %s", t.Name(ep.Path), status, words), hint)
}
