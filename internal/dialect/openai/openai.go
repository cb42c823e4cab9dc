// Package openai speaks the OpenAI API as OpenAI, vLLM, SGLang, TensorRT-LLM, LMDeploy, llama.cpp, Ollama and others serve it.
package openai

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// Dialect is one engine's form of the API: what it takes beyond the common fields.
type Dialect struct {
	name   string
	chat   dialect.Abilities
	text   dialect.Abilities
	strict *strictPool
}

// Engines returns the dialect of each engine with an OpenAI front. The abilities are those of the engines' own sources; an engine
// that is not known by name gets only what the API itself promises.
func Engines() []dialect.Dialect {
	usage := dialect.Abilities{Usage: true}
	forced := dialect.Abilities{Usage: true, IgnoreEOS: true, MinTokens: true}
	with := func(a dialect.Abilities, more func(*dialect.Abilities)) dialect.Abilities { more(&a); return a }
	idsIn := func(a *dialect.Abilities) { a.IDsIn = true }
	idsBoth := func(a *dialect.Abilities) { a.IDsIn, a.IDsOut = true, true }
	idsOut := func(a *dialect.Abilities) { a.IDsOut = true }
	pool := &strictPool{}
	return []dialect.Dialect{
		&Dialect{"openai", usage, usage, pool},
		&Dialect{"vllm", with(forced, idsOut), with(forced, idsBoth), pool},
		&Dialect{"sglang", with(forced, idsOut), with(forced, idsBoth), pool},
		&Dialect{"trtllm", forced, with(forced, idsIn), pool},
		&Dialect{"lmdeploy", dialect.Abilities{Usage: true, IgnoreEOS: true}, dialect.Abilities{Usage: true, IgnoreEOS: true}, pool},
		&Dialect{"llamacpp", dialect.Abilities{Usage: true, IgnoreEOS: true, ServerTimings: true},
			dialect.Abilities{Usage: true, IgnoreEOS: true, ServerTimings: true, IDsIn: true}, pool},
		&Dialect{"ollama", usage, usage, pool},
		&Dialect{"prony-sim", with(forced, idsOut), with(forced, idsBoth), pool},
	}
}

// Name implements dialect.Dialect.
func (d *Dialect) Name() string { return d.name }

// The endpoints' words.
const (
	Chat        = "chat"
	Completions = "completions"
)

// Endpoints implements dialect.Dialect.
func (d *Dialect) Endpoints() []dialect.Endpoint {
	return []dialect.Endpoint{
		{Name: Chat, Path: "/v1/chat/completions", Can: d.chat},
		{Name: Completions, Path: "/v1/completions", Can: d.text},
	}
}

// Encode implements dialect.Dialect. Fields come in a fixed order: the same request gives the same bytes.
func (d *Dialect) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	b := &body{}
	b.value("model", o.Model)
	if err := d.prompt(b, ep, r); err != nil {
		return wire.Call{}, err
	}
	b.raw("stream", strconv.FormatBool(o.Stream))
	if o.Stream && o.Usage {
		b.raw("stream_options", `{"include_usage":true}`)
	}
	if r.OSL > 0 {
		field := o.MaxTokensField
		if field == "" {
			field = "max_tokens"
		}
		b.raw(field, strconv.Itoa(r.OSL))
	}
	d.sampling(b, ep, r, o)
	if err := b.merge(r.Extra); err != nil {
		return wire.Call{}, fault.Wrap(fault.Usage, err, fmt.Sprintf("extra fields of request %d", r.ID), "extra fields are a JSON object")
	}
	if err := b.merge(o.Extra); err != nil {
		return wire.Call{}, fault.Wrap(fault.Usage, err, "--extra-body", "give a JSON object")
	}
	call := wire.Call{Method: "POST", Path: ep.Path, Body: b.bytes()}
	call.Header = append(call.Header, wire.Field{Name: "Content-Type", Value: "application/json"})
	if o.Stream {
		call.Header = append(call.Header, wire.Field{Name: "Accept", Value: "text/event-stream"})
		// a JSON string holds no raw line end, so none of these can be inside an answer
		call.Until = []string{"\ndata: [DONE]", "\ndata:[DONE]", "\rdata: [DONE]", "\rdata:[DONE]"}
	}
	call.Header = append(call.Header, wire.Field{Name: "Accept-Encoding", Value: "identity"})
	call.Header = wire.Override(call.Header, o.Header)
	return call, nil
}

func (d *Dialect) prompt(b *body, ep dialect.Endpoint, r *bench.Request) error {
	switch {
	case ep.Name == Completions && len(r.Tokens) > 0:
		b.value("prompt", r.Tokens)
	case ep.Name == Completions && len(r.Messages) > 0:
		return fault.New(fault.Usage, fmt.Sprintf("request %d is a chat, which the completions endpoint cannot take", r.ID), "use --endpoint chat")
	case ep.Name == Completions:
		b.value("prompt", r.Prompt)
	case len(r.Tokens) > 0:
		return fault.New(fault.Usage, fmt.Sprintf("request %d is token ids, which the chat endpoint cannot take", r.ID), "use --endpoint completions")
	case len(r.Messages) > 0:
		b.value("messages", r.Messages)
	default:
		content, err := json.Marshal(r.Prompt)
		if err != nil {
			return err
		}
		b.value("messages", []bench.Message{{Role: "user", Content: content}})
	}
	return nil
}

func (d *Dialect) sampling(b *body, ep dialect.Endpoint, r *bench.Request, o *dialect.Options) {
	s := o.Sampling
	if s.Temperature != nil {
		b.value("temperature", *s.Temperature)
	}
	if s.TopP != nil {
		b.value("top_p", *s.TopP)
	}
	if s.TopK != nil {
		b.value("top_k", *s.TopK)
	}
	if s.Seed != nil {
		b.value("seed", *s.Seed)
	}
	if len(s.Stop) > 0 {
		b.value("stop", s.Stop)
	}
	if s.Logprobs != nil {
		if ep.Name == Chat {
			b.raw("logprobs", "true")
			b.value("top_logprobs", *s.Logprobs)
		} else {
			b.value("logprobs", *s.Logprobs)
		}
	}
	if s.IgnoreEOS || o.ForceLength && ep.Can.IgnoreEOS {
		b.raw("ignore_eos", "true")
	}
	switch {
	case s.MinTokens > 0:
		b.value("min_tokens", s.MinTokens)
	case o.ForceLength && ep.Can.MinTokens && r.OSL > 0:
		b.value("min_tokens", r.OSL)
	}
}

// Decoder implements dialect.Dialect.
func (d *Dialect) Decoder(ep dialect.Endpoint) dialect.Decoder { return &decoder{strict: d.strict} }

// body builds a JSON object field by field.
type body struct {
	keys   []string
	values map[string]json.RawMessage
}

func (b *body) set(key string, v json.RawMessage) {
	if b.values == nil {
		b.values = map[string]json.RawMessage{}
	}
	if _, ok := b.values[key]; !ok {
		b.keys = append(b.keys, key)
	}
	b.values[key] = v
}

func (b *body) raw(key, v string) { b.set(key, json.RawMessage(v)) }

func (b *body) value(key string, v any) {
	j, err := json.Marshal(v)
	if err != nil {
		panic("openai: " + key + " does not marshal: " + err.Error())
	}
	b.set(key, j)
}

// merge adds the fields of an object in its order; a field that is there already is replaced, and null removes it.
func (b *body) merge(object json.RawMessage) error {
	if len(object) == 0 {
		return nil
	}
	fields, err := orderedFields(object)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if string(f.value) == "null" {
			delete(b.values, f.key)
			continue
		}
		b.set(f.key, f.value)
	}
	return nil
}

func (b *body) bytes() []byte {
	out := []byte{'{'}
	for _, k := range b.keys {
		v, ok := b.values[k]
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(k) // a string always marshals
		out = append(append(out, key...), ':')
		out = append(out, v...)
	}
	return append(out, '}')
}
