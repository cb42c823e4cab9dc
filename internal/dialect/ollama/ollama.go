// Package ollama speaks the own protocol of Ollama, beside its OpenAI fronts.
package ollama

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// codec speaks both endpoints: their objects differ in a few fields only.
type codec struct{}

var can = dialect.Abilities{Usage: true, ServerTimings: true}

// ChatEndpoint is POST /api/chat.
func ChatEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: "chat", Path: "/api/chat", Chat: true, Can: can, Codec: codec{}}
}

// GenerateEndpoint is POST /api/generate, without the model's template.
func GenerateEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: "generate", Path: "/api/generate", Can: can, Codec: codec{}}
}

// endless is the number of tokens by which the server goes on until the model ends. It is the server's default.
const endless = -1

// Encode implements dialect.Codec. A stream is the server's default, so that it is always said whether one is asked.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	b := &dialect.Object{}
	b.Set("model", o.Model)
	if err := prompt(b, ep, r, o); err != nil {
		return wire.Call{}, err
	}
	b.Set("stream", o.Stream)
	schema, err := dialect.Schema(o.ResponseFormat)
	if err != nil {
		return wire.Call{}, err
	}
	if schema != nil {
		b.Raw("format", schema)
	}
	b.Raw("options", options(r, &o.Sampling))
	if n := o.Sampling.Logprobs; n != nil {
		b.Set("logprobs", true)
		b.Set("top_logprobs", *n)
	}
	accept := ""
	if o.Stream {
		accept = "application/x-ndjson"
	}
	return b.Call(ep.At(o.Model), accept, nil, r, o)
}

func prompt(b *dialect.Object, ep dialect.Endpoint, r *bench.Request, o *dialect.Options) error {
	if !ep.Chat {
		text, err := ep.Plain(r, o)
		if err != nil {
			return err
		}
		b.Set("prompt", text)
		b.Set("raw", true)
		return nil
	}
	if len(r.Tokens) > 0 {
		return fault.New(fault.Usage, fmt.Sprintf("request %d is token ids, which Ollama cannot take", r.ID), "give a text or messages")
	}
	messages := []message{{Role: "user", Content: r.Prompt}}
	if len(r.Messages) > 0 {
		messages = messages[:0]
		for i, m := range r.Messages {
			text, err := textOf(m.Content)
			if err != nil {
				return fault.Wrap(fault.Usage, err, fmt.Sprintf("messages[%d] of request %d", i, r.ID), "Ollama's own chat takes texts; --endpoint openai-chat takes other parts too")
			}
			messages = append(messages, message{Role: m.Role, Content: text})
		}
	}
	b.Set("messages", messages)
	if len(o.ToolChoice) > 0 {
		return fault.New(fault.Usage, "Ollama's own chat takes no choice of a tool", "leave --tool-choice out, or use --endpoint openai-chat")
	}
	if len(o.Tools) > 0 {
		b.Raw("tools", o.Tools)
	}
	return nil
}

// message is one of a request.
type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// textOf returns the text of a content, which is a string or a list of parts.
func textOf(content json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(content, &parts); err != nil {
		return "", errors.New("the content is neither a string nor a list of parts")
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Text == nil {
			return "", fmt.Errorf("a part of the content is %q, not a text", p.Type)
		}
		all.WriteString(*p.Text)
	}
	return all.String(), nil
}

// options are how the model is to run. The size of its context is the user's: another one makes the server load the model again.
func options(r *bench.Request, s *bench.Sampling) json.RawMessage {
	b := &dialect.Object{}
	n := endless
	if r.OSL > 0 {
		n = r.OSL
	}
	b.Set("num_predict", n)
	b.Sampling(s, "seed")
	return b.Bytes()
}

// Decoder implements dialect.Codec.
func (codec) Decoder(ep dialect.Endpoint) dialect.Decoder { return &decoder{chat: ep.Chat} }
