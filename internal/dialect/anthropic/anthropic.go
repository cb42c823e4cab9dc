// Package anthropic speaks the Messages API as Anthropic, vLLM, llama.cpp, SGLang and Ollama serve it.
package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// version is the version of the API, without which Anthropic answers nothing.
const version = "2023-06-01"

// codec speaks the Messages API.
type codec struct{}

// MessagesEndpoint is POST /v1/messages of an engine that can do so much.
func MessagesEndpoint(can dialect.Abilities) dialect.Endpoint {
	return dialect.Endpoint{Name: "messages", Path: "/v1/messages", Chat: true, Can: can, Codec: codec{}}
}

// doneMarks are the ends of a stream. A JSON string holds no raw line end, so none of these can be inside an answer.
var doneMarks = []string{"\nevent: message_stop", "\nevent:message_stop"}

// Encode implements dialect.Codec.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if err := refuse(ep, r, o); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("model", o.Model)
	b.Set("max_tokens", r.OSL)
	system, messages, err := chat(ep, r)
	if err != nil {
		return wire.Call{}, err
	}
	if len(system) > 0 {
		b.Set("system", strings.Join(system, "\n\n"))
	}
	b.Set("messages", messages)
	b.Set("stream", o.Stream)
	s := o.Sampling
	s.Stop = nil
	b.Sampling(&s, "")
	if len(o.Sampling.Stop) > 0 {
		b.Set("stop_sequences", o.Sampling.Stop)
	}
	if err := tools(b, o); err != nil {
		return wire.Call{}, err
	}
	if len(o.ResponseFormat) > 0 {
		schema, err := dialect.Schema(o.ResponseFormat)
		if err != nil {
			return wire.Call{}, err
		}
		if schema != nil {
			b.Set("output_config", map[string]any{"format": map[string]any{"type": "json_schema", "schema": schema}})
		}
	}
	accept, until := "", []string(nil)
	if o.Stream {
		accept, until = "text/event-stream", doneMarks
	}
	call, err := b.Call(ep.Path, accept, until, r, o)
	if !wire.HasField(call.Header, "anthropic-version") {
		call.Header = append(call.Header, wire.Field{Name: "anthropic-version", Value: version})
	}
	return call, err
}

// refuse names what the endpoint cannot be asked for.
func refuse(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) error {
	if err := ep.NoIDs(r); err != nil {
		return err
	}
	if !ep.Can.Format {
		if err := ep.NoFormat(o); err != nil {
			return err
		}
	}
	cannot := func(what, hint string) error {
		return fault.New(fault.Usage, fmt.Sprintf("the %s endpoint %s", ep.Name, what), hint)
	}
	switch {
	case o.Sampling.Seed != nil:
		return cannot("takes no seed", "leave --sampling-seed out")
	case o.Sampling.Logprobs != nil:
		return cannot("tells no log probabilities", "leave --logprobs out")
	case o.MaxTokensField != "" && o.MaxTokensField != "max_tokens":
		return cannot("has the output limit in max_tokens alone", "leave --max-tokens-field out")
	case r.OSL <= 0:
		return cannot(fmt.Sprintf("needs an output limit, and request %d has none", r.ID), "give one with --osl 128, or in the data set")
	}
	return nil
}

// block is a part of a message.
type block struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

// source is where an image is: at a URL, or here.
type source struct {
	Type  string `json:"type"`
	URL   string `json:"url,omitempty"`
	Media string `json:"media_type,omitempty"`
	Data  string `json:"data,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a text or a list of blocks
}

// chat returns the system messages that a chat begins with, and the rest.
func chat(ep dialect.Endpoint, r *bench.Request) (system []string, out []message, err error) {
	system, rest, err := ep.Split(r)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range rest {
		if m.Role != "user" && m.Role != "assistant" {
			return nil, nil, fault.New(fault.Usage, fmt.Sprintf("request %d has a message of role %q behind its begin, which the %s endpoint cannot take", r.ID, m.Role, ep.Name),
				"use --endpoint chat")
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			out = append(out, message{m.Role, text})
			continue
		}
		parts, err := ep.Parts(r, m)
		if err != nil {
			return nil, nil, err
		}
		var blocks []block
		for _, p := range parts {
			if p.Type == "text" {
				blocks = append(blocks, block{Type: "text", Text: p.Text})
			} else {
				blocks = append(blocks, block{Type: "image", Source: image(p.Image.URL)})
			}
		}
		out = append(out, message{m.Role, blocks})
	}
	if len(out) == 0 {
		return nil, nil, fault.New(fault.Usage, fmt.Sprintf("request %d has no message but those of the system, which the %s endpoint cannot take", r.ID, ep.Name), "")
	}
	return system, out, nil
}

// image turns the URL of an image into a source. One that holds the image itself is `data:TYPE;base64,DATA`.
func image(url string) *source {
	if inside, ok := strings.CutPrefix(url, "data:"); ok {
		if media, data, ok := strings.Cut(inside, ";base64,"); ok {
			return &source{Type: "base64", Media: media, Data: data}
		}
	}
	return &source{Type: "url", URL: url}
}

// tools sets the tools and the choice of one.
func tools(b *dialect.Object, o *dialect.Options) error {
	all, err := dialect.Tools(o.Tools)
	if err != nil {
		return err
	}
	list := make([]json.RawMessage, len(all))
	for i, t := range all {
		f := &dialect.Object{}
		f.Set("name", t.Name)
		if t.Description != "" {
			f.Set("description", t.Description)
		}
		if len(t.Parameters) == 0 {
			t.Parameters = json.RawMessage(`{"type":"object"}`)
		}
		f.Raw("input_schema", t.Parameters)
		if t.Strict != nil {
			f.Set("strict", *t.Strict)
		}
		list[i] = f.Bytes()
	}
	if len(list) > 0 {
		b.Set("tools", list)
	}
	word, name, err := dialect.ToolChoice(o.ToolChoice)
	switch {
	case err != nil:
		return err
	case word == "required":
		b.Set("tool_choice", map[string]string{"type": "any"})
	case word != "":
		b.Set("tool_choice", map[string]string{"type": word})
	case name != "":
		b.Set("tool_choice", map[string]string{"type": "tool", "name": name})
	}
	return nil
}

// Decoder implements dialect.Codec.
func (codec) Decoder(dialect.Endpoint) dialect.Decoder { return &decoder{} }
