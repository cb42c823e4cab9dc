// Package llamacpp speaks the own protocol of llama.cpp's server, beside its OpenAI fronts.
package llamacpp

import (
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

type codec struct{}

// CompletionEndpoint is POST /completion.
func CompletionEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IDsIn: true, IgnoreEOS: true, Usage: true, PerEvent: true, ServerTimings: true}
	return dialect.Endpoint{Name: "completion", Path: "/completion", Can: can, Codec: codec{}}
}

// endless is the number of tokens by which the server goes on until the model ends. It is the server's default.
const endless = -1

// Encode implements dialect.Codec. The number of tokens is always sent, and prompts are not to be read from the cache: they are there
// to be measured. --extra-body '{"cache_prompt":true}' measures the cache.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	prompt, err := ep.Plain(r, o)
	if err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("prompt", prompt)
	n := endless
	if r.OSL > 0 {
		n = r.OSL
	}
	b.Set("n_predict", n)
	b.Set("stream", o.Stream)
	b.Set("cache_prompt", false)
	b.Sampling(&o.Sampling, "seed")
	b.Length(ep, r, o, "")
	if n := o.Sampling.Logprobs; n != nil {
		b.Set("n_probs", *n)
	}
	schema, err := dialect.Schema(o.ResponseFormat)
	if err != nil {
		return wire.Call{}, err
	}
	if schema != nil {
		b.Raw("json_schema", schema)
	}
	accept := ""
	if o.Stream {
		accept = "text/event-stream"
	}
	return b.Call(ep.At(o.Model), accept, nil, r, o)
}

// Decoder implements dialect.Codec.
func (codec) Decoder(dialect.Endpoint) dialect.Decoder { return decoder{} }

// Stateless implements dialect.Stateless.
func (codec) Stateless() {}

type decoder struct{}

// answer is an event, a whole response or an error, with the fields that matter.
type answer struct {
	dialect.Failure
	Index     int      `json:"index"`
	Content   *string  `json:"content"`
	Stop      bool     `json:"stop"`
	StopType  string   `json:"stop_type"`
	Predicted *int     `json:"tokens_predicted"` // so far
	Evaluated *int     `json:"tokens_evaluated"` // of the prompt, cached ones included
	Timings   *timings `json:"timings"`
}

// timings are the server's own, in ms. The second begins at the first token.
type timings struct {
	Cached    *int     `json:"cache_n"`
	Prompt    *float64 `json:"prompt_ms"`
	Predicted *float64 `json:"predicted_ms"`
}

// Event implements dialect.Decoder.
func (decoder) Event(ev wire.Event, d *dialect.Delta) error {
	if len(ev.Data) == 0 {
		return nil
	}
	return read(ev.Data, d)
}

// Body implements dialect.Decoder.
func (decoder) Body(body []byte, d *dialect.Delta) error { return read(body, d) }

// read reads an event or a whole answer: they have the same fields. The ids in an event are those of its last token only: tokens
// that end inside a character are in the count alone, so that the count is what tells.
func read(data []byte, d *dialect.Delta) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("no valid JSON (%v): %s", err, wire.Excerpt(data))
	}
	if d.Error = a.Words(a.Content != nil); d.Error != "" {
		return nil
	}
	if a.Content == nil {
		return fmt.Errorf("no field %q in %s", "content", wire.Excerpt(data))
	}
	out := d.Output(a.Index)
	out.Text = *a.Content
	d.Native = true
	if a.Predicted != nil {
		d.Completion = opt.Some(*a.Predicted)
	}
	if a.Evaluated != nil {
		d.Prompt = opt.Some(*a.Evaluated)
	}
	if a.Stop {
		d.Done = true
		out.Finish = a.StopType
	}
	if t := a.Timings; t != nil {
		if t.Cached != nil {
			d.Cached = opt.Some(*t.Cached)
		}
		d.Time("server_prefill_ms", t.Prompt)
		d.Time("server_decode_ms", t.Predicted)
	}
	return nil
}
