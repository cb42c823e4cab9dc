// Package lmdeploy speaks LMDeploy's own /generate. Its path and fields are those of SGLang's, but each event holds what is new.
package lmdeploy

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// codec speaks /generate, and reads it too: an event needs nothing of those before.
type codec struct{}

// GenerateEndpoint is POST /generate.
func GenerateEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IDsIn: true, IDsOut: true, IgnoreEOS: true, Usage: true, EventUsage: true, PerEvent: true}
	return dialect.Endpoint{Name: "generate", Path: "/generate", Can: can, Codec: codec{}}
}

// doneMarks are the ends of a stream.
var doneMarks = []string{"\ndata: [DONE]", "\ndata:[DONE]"}

// Encode implements dialect.Codec. The server has one model, which is not named.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	b := &dialect.Object{}
	prompt, err := ep.Plain(r, o)
	if err == nil {
		err = ep.NoFormat(o)
	}
	switch {
	case err != nil:
		return wire.Call{}, err
	case o.Sampling.Seed != nil:
		return wire.Call{}, fault.New(fault.Usage, "the generate endpoint of lmdeploy takes no seed", "leave --sampling-seed out, or use --endpoint completions")
	case len(r.Tokens) > 0:
		b.Set("input_ids", prompt)
	default:
		b.Set("prompt", prompt)
	}
	b.Set("stream", o.Stream)
	if r.OSL > 0 {
		b.Set("max_tokens", r.OSL)
	}
	b.Sampling(&o.Sampling, "")
	if o.Sampling.Logprobs != nil {
		b.Set("return_logprob", true)
	}
	b.Length(ep, r, o, "")
	if !o.Stream {
		return b.Call(ep.Path, "", nil, r, o)
	}
	return b.Call(ep.Path, "text/event-stream", doneMarks, r, o)
}

// Decoder implements dialect.Codec.
func (c codec) Decoder(dialect.Endpoint) dialect.Decoder { return c }

// Stateless implements dialect.Stateless.
func (codec) Stateless() {}

// answer is an event, a whole answer or an error.
type answer struct {
	dialect.Failure
	Text *string `json:"text"`
	IDs  []int   `json:"output_ids"`
	Meta *struct {
		Prompt     *int `json:"prompt_tokens"`
		Completion *int `json:"completion_tokens"` // of all events so far
		Finish     *struct {
			Type string `json:"type"`
		} `json:"finish_reason"`
	} `json:"meta_info"`
}

// Event implements dialect.Decoder.
func (c codec) Event(ev wire.Event, d *dialect.Delta) error {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0:
		return nil
	case string(data) == "[DONE]":
		d.Done = true
		return nil
	}
	return c.Body(data, d)
}

// Body implements dialect.Decoder.
func (codec) Body(b []byte, d *dialect.Delta) error {
	var a answer
	if err := json.Unmarshal(b, &a); err != nil {
		return fmt.Errorf("no valid JSON of /generate (%v): %s", err, wire.Excerpt(b))
	}
	if words := a.Words(a.Meta != nil); words != "" {
		d.Error = words
		return nil
	}
	switch {
	case a.Meta == nil && a.Text == nil && a.IDs == nil && a.Type != "":
		return nil // an event of a kind that is not ours
	case a.Text == nil:
		return fmt.Errorf("no field \"text\" in %s", wire.Excerpt(b))
	case a.Meta == nil:
		return fmt.Errorf("no field \"meta_info\" in %s", wire.Excerpt(b))
	}
	out := d.Output(0)
	out.Text, out.IDs = *a.Text, len(a.IDs)
	if a.Meta.Finish != nil {
		out.Finish = a.Meta.Finish.Type
	}
	d.Native = true
	if n := a.Meta.Prompt; n != nil {
		d.Prompt = opt.Some(*n)
	}
	if n := a.Meta.Completion; n != nil {
		d.Completion = opt.Some(*n)
	}
	return nil
}
