// Package vllm speaks vLLM's /inference/v1/generate: token ids in, token ids out, and no text.
package vllm

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

// codec speaks the endpoint, and reads it too: an event needs nothing of those before.
type codec struct{}

// GenerateEndpoint is POST /inference/v1/generate of a server with --enable-scale-out.
func GenerateEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IDsIn: true, IDsOnly: true, IDsOut: true, IgnoreEOS: true, MinTokens: true, Usage: true, EventUsage: true, PerEvent: true, Priority: true}
	return dialect.Endpoint{Name: "generate", Path: "/inference/v1/generate", Can: can, Codec: codec{}}
}

// doneMarks are the ends of a stream.
var doneMarks = []string{"\ndata: [DONE]", "\ndata:[DONE]"}

// Encode implements dialect.Codec.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if len(r.Tokens) == 0 {
		return wire.Call{}, fault.New(fault.Usage, fmt.Sprintf("request %d is no token ids, and the generate endpoint of vllm takes nothing else", r.ID),
			"use --dataset random, whose prompts are token ids there, or --endpoint completions")
	}
	prompt, err := ep.Plain(r, o)
	if err == nil {
		err = ep.NoFormat(o)
	}
	if err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	if o.Model != "" {
		b.Set("model", o.Model)
	}
	b.Set("token_ids", prompt)
	b.Raw("sampling_params", sampling(ep, r, o))
	b.Set("stream", o.Stream)
	if o.Priority != nil {
		b.Set("priority", *o.Priority)
	}
	switch {
	case !o.Stream:
		return b.Call(ep.Path, "", nil, r, o)
	case o.Usage && o.EventUsage:
		b.Raw("stream_options", json.RawMessage(`{"include_usage":true,"continuous_usage_stats":true}`))
	case o.Usage:
		b.Raw("stream_options", json.RawMessage(`{"include_usage":true}`))
	}
	return b.Call(ep.Path, "text/event-stream", doneMarks, r, o)
}

func sampling(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) json.RawMessage {
	b := &dialect.Object{}
	if r.OSL > 0 {
		b.Set("max_tokens", r.OSL)
	}
	b.Sampling(&o.Sampling, "seed")
	if o.Sampling.Logprobs != nil {
		b.Set("logprobs", *o.Sampling.Logprobs)
	}
	b.Length(ep, r, o, "min_tokens")
	return b.Bytes()
}

// Decoder implements dialect.Codec.
func (c codec) Decoder(dialect.Endpoint) dialect.Decoder { return c }

// Stateless implements dialect.Stateless.
func (codec) Stateless() {}

// answer is an event, a whole answer or an error.
type answer struct {
	dialect.Failure
	Choices []struct {
		Index  int     `json:"index"`
		Finish *string `json:"finish_reason"`
		IDs    []int   `json:"token_ids"`
	} `json:"choices"` // nil when absent or null
	Usage *struct {
		Prompt     *int `json:"prompt_tokens"`
		Completion *int `json:"completion_tokens"`
		Details    *struct {
			Cached *int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
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
		return fmt.Errorf("no valid JSON of /inference/v1/generate (%v): %s", err, wire.Excerpt(b))
	}
	if words := a.Words(a.Choices != nil); words != "" {
		d.Error = words
		return nil
	}
	if a.Choices == nil && a.Usage == nil {
		if a.Type != "" {
			return nil // an event of a kind that is not ours
		}
		return fmt.Errorf("no field \"choices\" in %s", wire.Excerpt(b))
	}
	for i := range a.Choices {
		c := &a.Choices[i]
		out := d.Output(c.Index)
		if out.IDs = len(c.IDs); c.Finish != nil {
			out.Finish = *c.Finish
		}
		if c.IDs == nil && c.Finish == nil {
			return fmt.Errorf("no field \"token_ids\" in %s", wire.Excerpt(b))
		}
	}
	if u := a.Usage; u != nil {
		set := func(to *opt.Of[int], from *int) {
			if from != nil {
				*to = opt.Some(*from)
			}
		}
		set(&d.Prompt, u.Prompt)
		set(&d.Completion, u.Completion)
		if u.Details != nil {
			set(&d.Cached, u.Details.Cached)
		}
	}
	return nil
}
