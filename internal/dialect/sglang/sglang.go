// Package sglang speaks SGLang's own /generate.
package sglang

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// codec speaks /generate.
type codec struct{}

// GenerateEndpoint is POST /generate.
func GenerateEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IDsIn: true, IDsOut: true, IgnoreEOS: true, MinTokens: true, Usage: true, EventUsage: true, PerEvent: true, ServerTimings: true, Priority: true}
	return dialect.Endpoint{Name: "generate", Path: "/generate", Can: can, Codec: codec{}}
}

// doneMarks are the ends of a stream.
var doneMarks = []string{"\ndata: [DONE]", "\ndata:[DONE]"}

// Encode implements dialect.Codec. The server has one model, which is not named.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	b := &dialect.Object{}
	prompt, err := ep.Plain(r, o)
	if err != nil {
		return wire.Call{}, err
	}
	if len(r.Tokens) > 0 {
		b.Set("input_ids", prompt)
	} else {
		b.Set("text", prompt)
	}
	params, err := sampling(ep, r, o)
	if err != nil {
		return wire.Call{}, err
	}
	b.Raw("sampling_params", params)
	b.Set("stream", o.Stream)
	if o.Priority != nil {
		b.Set("priority", *o.Priority)
	}
	if o.Sampling.Logprobs != nil {
		b.Set("return_logprob", true)
		b.Set("top_logprobs_num", *o.Sampling.Logprobs)
	}
	if !o.Stream {
		return b.Call(ep.Path, "", nil, r, o)
	}
	return b.Call(ep.Path, "text/event-stream", doneMarks, r, o)
}

func sampling(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (json.RawMessage, error) {
	b := &dialect.Object{}
	if r.OSL > 0 {
		b.Set("max_new_tokens", r.OSL)
	}
	b.Sampling(&o.Sampling, "sampling_seed")
	b.Length(ep, r, o, "min_new_tokens")
	schema, err := dialect.Schema(o.ResponseFormat)
	if schema != nil {
		b.Set("json_schema", string(schema)) // a schema in a text
	}
	return b.Bytes(), err
}

// Decoder implements dialect.Codec.
func (codec) Decoder(dialect.Endpoint) dialect.Decoder { return &decoder{} }

// Event implements dialect.Decoder.
func (d *decoder) Event(ev wire.Event, to *dialect.Delta) error {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0:
		return nil
	case string(data) == "[DONE]":
		to.Done = true
		return nil
	}
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("event is no valid JSON of /generate (%v): %s", err, wire.Excerpt(data))
	}
	return d.add(&a, to, data)
}

// Body implements dialect.Decoder. A request of several answers has a list of them.
func (d *decoder) Body(b []byte, to *dialect.Delta) error {
	var all []answer
	if start := bytes.TrimSpace(b); len(start) > 0 && start[0] != '[' {
		all = make([]answer, 1)
		if err := json.Unmarshal(b, &all[0]); err != nil {
			return fmt.Errorf("body is no valid JSON (%v): %s", err, wire.Excerpt(b))
		}
	} else if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("body is no valid JSON (%v): %s", err, wire.Excerpt(b))
	}
	if len(all) == 0 {
		return fmt.Errorf("no answer in %s", wire.Excerpt(b))
	}
	for i := range all {
		all[i].Index = i
		if err := d.add(&all[i], to, b); err != nil {
			return err
		}
	}
	return nil
}
