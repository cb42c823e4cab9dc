package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// Responses is the endpoint's word.
const Responses = "responses"

// ResponsesEndpoint is POST /v1/responses of an engine that can do so much.
func ResponsesEndpoint(can dialect.Abilities) dialect.Endpoint {
	return dialect.Endpoint{Name: Responses, Path: "/v1/responses", Chat: true, Can: can, Codec: responses{}}
}

// responses speaks the Responses API.
type responses struct{}

// Encode implements dialect.Codec. The server is told to store nothing: it would keep every answer of a run.
func (responses) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	b := &dialect.Object{}
	b.Set("model", o.Model)
	if err := input(b, ep, r); err != nil {
		return wire.Call{}, err
	}
	b.Set("stream", o.Stream)
	b.Set("store", false)
	if r.OSL > 0 {
		b.Set(cmp.Or(o.MaxTokensField, "max_output_tokens"), r.OSL)
	}
	b.Sampling(&o.Sampling, "seed")
	if n := o.Sampling.Logprobs; n != nil {
		b.Set("top_logprobs", *n)
		b.Set("include", []string{"message.output_text.logprobs"})
	}
	b.Length(ep, r, o, "min_tokens")
	if o.Priority != nil && ep.Can.Priority {
		b.Set("priority", *o.Priority)
	}
	if err := flatTools(b, o); err != nil {
		return wire.Call{}, err
	}
	if len(o.ResponseFormat) > 0 {
		if !ep.Can.Format {
			return wire.Call{}, ep.NoFormat(o)
		}
		format, err := flatFormat(o.ResponseFormat)
		if err != nil {
			return wire.Call{}, err
		}
		b.Raw("text", format)
	}
	if !o.Stream {
		return b.Call(ep.Path, "", nil, r, o)
	}
	return b.Call(ep.Path, "text/event-stream", nil, r, o) // the last event is as long as the answer: the end of the body is the end
}

// input sets what is asked. The system messages that a chat begins with are its instructions.
func input(b *dialect.Object, ep dialect.Endpoint, r *bench.Request) error {
	if err := ep.NoIDs(r); err != nil {
		return err
	}
	if len(r.Messages) == 0 {
		b.Set("input", r.Prompt)
		return nil
	}
	system, rest, err := ep.Split(r)
	if err != nil {
		return err
	}
	type part struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image string `json:"image_url,omitempty"`
	}
	type message struct {
		Role    string `json:"role"`
		Content any    `json:"content"`
	}
	list := []message{}
	for _, m := range rest {
		switch m.Role {
		case "user", "assistant", "system", "developer":
		default:
			return fault.New(fault.Usage, fmt.Sprintf("request %d has a message of role %q, which the %s endpoint cannot take", r.ID, m.Role, ep.Name), "use --endpoint chat")
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			list = append(list, message{m.Role, text})
			continue
		}
		parts, err := ep.Parts(r, m)
		if err != nil {
			return err
		}
		var out []part
		for _, p := range parts {
			switch {
			case p.Type == "image_url":
				out = append(out, part{Type: "input_image", Image: p.Image.URL})
			case m.Role == "assistant":
				out = append(out, part{Type: "output_text", Text: p.Text})
			default:
				out = append(out, part{Type: "input_text", Text: p.Text})
			}
		}
		list = append(list, message{m.Role, out})
	}
	b.Set("input", list)
	if len(system) > 0 {
		b.Set("instructions", strings.Join(system, "\n\n"))
	}
	return nil
}

// flatTools sets the tools, which are not wrapped here. Unlike in a chat, one that does not say so is strict.
func flatTools(b *dialect.Object, o *dialect.Options) error {
	tools, err := dialect.Tools(o.Tools)
	if err != nil {
		return err
	}
	list := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		f := &dialect.Object{}
		f.Set("type", "function")
		f.Set("name", t.Name)
		if t.Description != "" {
			f.Set("description", t.Description)
		}
		if len(t.Parameters) > 0 {
			f.Raw("parameters", t.Parameters)
		}
		f.Set("strict", t.Strict != nil && *t.Strict)
		list[i] = f.Bytes()
	}
	if len(list) > 0 {
		b.Set("tools", list)
	}
	word, name, err := dialect.ToolChoice(o.ToolChoice)
	switch {
	case err != nil:
		return err
	case word != "":
		b.Set("tool_choice", word)
	case name != "":
		b.Set("tool_choice", map[string]string{"type": "function", "name": name})
	}
	return nil
}

// flatFormat turns a form of the answer, as the chat has it, into the field text.
func flatFormat(format json.RawMessage) (json.RawMessage, error) {
	if _, err := dialect.Schema(format); err != nil {
		return nil, err
	}
	var f struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"json_schema"`
	}
	if err := json.Unmarshal(format, &f); err != nil {
		return nil, err
	}
	flat := &dialect.Object{}
	flat.Set("type", f.Type)
	if err := flat.Merge(f.Schema); err != nil {
		return nil, err
	}
	text := &dialect.Object{}
	text.Raw("format", flat.Bytes())
	return text.Bytes(), nil
}

// Decoder implements dialect.Codec.
func (responses) Decoder(dialect.Endpoint) dialect.Decoder { return &responseDecoder{} }
