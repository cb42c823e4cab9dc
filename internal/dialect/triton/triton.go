// Package triton speaks the protocols of NVIDIA's Triton Inference Server: its generate extension, as the models of TensorRT-LLM and
// the vLLM backend take it, and KServe's v2 inference. Its OpenAI fronts are package openai's.
package triton

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// generatePath is that of a stream; a plain answer has the one without the end.
const generatePath = "/v2/models/{model}/generate_stream"

// GenerateEndpoint is the generate extension before a model of TensorRT-LLM, such as ensemble or tensorrt_llm_bls. It never tells why
// an answer ended.
func GenerateEndpoint() dialect.Endpoint {
	can := dialect.Abilities{MinTokens: true, Usage: true, PerEvent: true, NoFinish: true}
	return dialect.Endpoint{Name: "generate", Path: generatePath, Can: can, Codec: generate{}}
}

// GenerateVLLMEndpoint is the generate extension before a model of the vLLM backend.
func GenerateVLLMEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IgnoreEOS: true, MinTokens: true, Usage: true, PerEvent: true}
	return dialect.Endpoint{Name: "generate-vllm", Path: generatePath, Can: can, Codec: generate{vllm: true}}
}

// generate speaks the generate extension. Its answers are of one form; what a model takes is its own.
type generate struct{ vllm bool }

// Encode implements dialect.Codec.
func (g generate) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	prompt, err := ep.Plain(r, o)
	if err != nil {
		return wire.Call{}, err
	}
	if err := ep.NoFormat(o); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("text_input", prompt)
	b.Set("stream", o.Stream)
	b.Set("exclude_input_in_output", true)
	if g.vllm {
		vllm(b, ep, r, o)
	} else {
		tensorrt(b, r, o)
	}
	if o.Usage || !o.Stream {
		b.Set("return_num_input_tokens", true)
		b.Set("return_num_output_tokens", true)
	}
	path := strings.TrimSuffix(ep.At(o.Model), "_stream")
	if !o.Stream {
		return b.Call(path, "", nil, r, o)
	}
	return b.Call(path+"_stream", "text/event-stream", nil, r, o)
}

// tensorrt sets the inputs of a model of TensorRT-LLM. It has no temperature of 0: the likeliest token is the first of one.
func tensorrt(b *dialect.Object, r *bench.Request, o *dialect.Options) {
	s := &o.Sampling
	if r.OSL > 0 {
		b.Set("max_tokens", r.OSL)
	}
	if n := leastTokens(r, o); n > 0 {
		b.Set("min_tokens", n)
	}
	if s.Temperature != nil && *s.Temperature > 0 {
		b.Set("temperature", *s.Temperature)
	}
	if s.TopP != nil {
		b.Set("top_p", *s.TopP)
	}
	if k := topK(s); k != nil {
		b.Set("top_k", *k)
	}
	if s.Seed != nil {
		b.Set("seed", *s.Seed)
	}
	b.Set("bad_words", "")
	if len(s.Stop) > 0 {
		b.Set("stop_words", s.Stop)
	} else {
		b.Set("stop_words", "")
	}
	if s.Logprobs != nil {
		b.Set("return_log_probs", true)
	}
}

// vllm sets the inputs and parameters of a model of the vLLM backend. Parameters hold no lists, so that stop sequences need all of
// them as a text of JSON, which takes the place of the others.
func vllm(b *dialect.Object, ep dialect.Endpoint, r *bench.Request, o *dialect.Options) {
	p := &dialect.Object{}
	if r.OSL > 0 {
		p.Set("max_tokens", r.OSL)
	}
	p.Sampling(&o.Sampling, "seed")
	p.Length(ep, r, o, "min_tokens")
	b.Set("return_finish_reason", true)
	if n := o.Sampling.Logprobs; n != nil {
		p.Set("logprobs", *n)
		b.Set("return_logprobs", true)
	}
	if len(o.Sampling.Stop) > 0 {
		b.Set("sampling_parameters", string(p.Bytes()))
		return
	}
	b.Raw("parameters", p.Bytes())
}

// leastTokens is the least number of tokens to ask for; 0 = none.
func leastTokens(r *bench.Request, o *dialect.Options) int {
	if o.Sampling.MinTokens == 0 && o.ForceLength {
		return r.OSL
	}
	return o.Sampling.MinTokens
}

// topK is the number of likeliest tokens to choose from; nil = not said.
func topK(s *bench.Sampling) *int {
	if s.Temperature != nil && *s.Temperature == 0 {
		one := 1
		return &one
	}
	return s.TopK
}

// Decoder implements dialect.Codec.
func (generate) Decoder(dialect.Endpoint) dialect.Decoder { return &decoder{} }

// decoder reads one response of the generate extension.
type decoder struct{ total int } // tokens so far: an event counts its own

// answer is an event, a whole response or an error, with the fields that matter.
type answer struct {
	dialect.Failure
	Sequence int     `json:"sequence_index"`
	Text     *string `json:"text_output"`
	Finish   string  `json:"finish_reason"` // of the vLLM backend: the word None until the end
	Prompt   *int    `json:"num_input_tokens"`
	Tokens   *int    `json:"num_output_tokens"` // of this event
}

// Event implements dialect.Decoder.
func (c *decoder) Event(ev wire.Event, d *dialect.Delta) error {
	if len(ev.Data) == 0 {
		return nil
	}
	return c.read(ev.Data, d)
}

// Body implements dialect.Decoder.
func (c *decoder) Body(body []byte, d *dialect.Delta) error { return c.read(body, d) }

func (c *decoder) read(data []byte, d *dialect.Delta) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("no valid JSON (%v): %s", err, wire.Excerpt(data))
	}
	if d.Error = a.Words(a.Text != nil); d.Error != "" {
		return nil
	}
	if a.Text == nil {
		return fmt.Errorf("no field %q in %s", "text_output", wire.Excerpt(data))
	}
	out := d.Output(a.Sequence)
	out.Text = *a.Text
	if a.Finish != "None" {
		out.Finish = a.Finish
	}
	d.Native = true
	if a.Prompt != nil {
		d.Prompt = opt.Some(*a.Prompt)
	}
	if a.Tokens != nil {
		c.total += *a.Tokens
		d.Completion = opt.Some(c.total)
	}
	return nil
}
