// Package openai speaks the OpenAI API as OpenAI, vLLM, SGLang, TensorRT-LLM, LMDeploy, llama.cpp, Ollama and others serve it.
package openai

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// The endpoints' words.
const (
	Chat        = "chat"
	Completions = "completions"
)

// front speaks chat and completions: their objects differ in a few fields only.
type front struct {
	strict *strictPool
	always string // fields of every request of this engine, a JSON object
}

// fronts is the one of all engines: they share what is expensive to make.
var shared = front{strict: &strictPool{}}

// ChatEndpoint is POST /v1/chat/completions of an engine that can do so much.
func ChatEndpoint(can dialect.Abilities) dialect.Endpoint {
	return dialect.Endpoint{Name: Chat, Path: "/v1/chat/completions", Chat: true, Can: can, Codec: shared}
}

// CompletionsEndpoint is POST /v1/completions of an engine that can do so much.
func CompletionsEndpoint(can dialect.Abilities) dialect.Endpoint {
	return dialect.Endpoint{Name: Completions, Path: "/v1/completions", Can: can, Codec: shared}
}

// Dynamo makes an endpoint one of NVIDIA Dynamo, which tells its own times when asked.
func Dynamo(ep dialect.Endpoint) dialect.Endpoint {
	ep.Codec = front{strict: shared.strict, always: `{"nvext":{"extra_fields":["timing"]}}`}
	return ep
}

// Encode implements dialect.Codec.
func (f front) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	b := &dialect.Object{}
	b.Set("model", o.Model)
	if err := prompt(b, ep, r); err != nil {
		return wire.Call{}, err
	}
	b.Set("stream", o.Stream)
	switch {
	case o.Stream && o.Usage && o.EventUsage && ep.Can.EventUsage:
		b.Raw("stream_options", json.RawMessage(`{"include_usage":true,"continuous_usage_stats":true}`))
	case o.Stream && o.Usage:
		b.Raw("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	if o.TokenIDs && ep.Can.IDsOut {
		b.Set("return_token_ids", true)
	}
	if o.Priority != nil && ep.Can.Priority {
		b.Set("priority", *o.Priority)
	}
	if r.OSL > 0 {
		b.Set(cmp.Or(o.MaxTokensField, "max_tokens"), r.OSL)
	}
	sampling(b, ep, r, o)
	if err := output(b, ep, o); err != nil {
		return wire.Call{}, err
	}
	if err := b.Merge(json.RawMessage(f.always)); err != nil {
		return wire.Call{}, err
	}
	if !o.Stream {
		return b.Call(ep.Path, "", nil, r, o)
	}
	return b.Call(ep.Path, "text/event-stream", doneMarks, r, o)
}

// doneMarks are the ends of a stream. A JSON string holds no raw line end, so none of these can be inside an answer.
var doneMarks = []string{"\ndata: [DONE]", "\ndata:[DONE]", "\rdata: [DONE]", "\rdata:[DONE]"}

func prompt(b *dialect.Object, ep dialect.Endpoint, r *bench.Request) error {
	switch {
	case ep.Name == Completions && len(r.Tokens) > 0:
		b.Set("prompt", r.Tokens)
	case ep.Name == Completions && len(r.Messages) > 0:
		return fault.New(fault.Usage, fmt.Sprintf("request %d is a chat, which the completions endpoint cannot take", r.ID), "use --endpoint chat")
	case ep.Name == Completions:
		b.Set("prompt", r.Prompt)
	case len(r.Tokens) > 0:
		return fault.New(fault.Usage, fmt.Sprintf("request %d is token ids, which the chat endpoint cannot take", r.ID), "use --endpoint completions")
	case len(r.Messages) > 0:
		b.Set("messages", r.Messages)
	default:
		content, err := json.Marshal(r.Prompt)
		if err != nil {
			return err
		}
		b.Set("messages", []bench.Message{{Role: "user", Content: content}})
	}
	return nil
}

func sampling(b *dialect.Object, ep dialect.Endpoint, r *bench.Request, o *dialect.Options) {
	b.Sampling(&o.Sampling, "seed")
	if s := o.Sampling; s.Logprobs != nil {
		if ep.Chat {
			b.Set("logprobs", true)
			b.Set("top_logprobs", *s.Logprobs)
		} else {
			b.Set("logprobs", *s.Logprobs)
		}
	}
	b.Length(ep, r, o, "min_tokens")
}

// output sets the tools and the form of the answer, which a chat takes as they are. Few completions take a form, and none takes tools.
func output(b *dialect.Object, ep dialect.Endpoint, o *dialect.Options) error {
	if !ep.Chat {
		if err := ep.NoTools(o); err != nil {
			return err
		}
		if !ep.Can.Format {
			if err := ep.NoFormat(o); err != nil {
				return err
			}
		}
	}
	if len(o.Tools) > 0 {
		b.Raw("tools", o.Tools)
	}
	if len(o.ToolChoice) > 0 {
		b.Raw("tool_choice", o.ToolChoice)
	}
	if len(o.ResponseFormat) > 0 {
		b.Raw("response_format", o.ResponseFormat)
	}
	return nil
}

// Stateless implements dialect.Stateless: what a decoder keeps is the form of events, which engines send alike.
func (f front) Stateless() {}

// Decoder implements dialect.Codec.
func (f front) Decoder(dialect.Endpoint) dialect.Decoder { return &decoder{strict: f.strict} }
