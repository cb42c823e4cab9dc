// Package tgi speaks the protocol of Hugging Face's Text Generation Inference, beside its OpenAI fronts.
package tgi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

type codec struct{}

// GenerateEndpoint is POST /generate_stream, and /generate where no stream is asked.
func GenerateEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IDsOut: true, Usage: true, PerEvent: true}
	return dialect.Endpoint{Name: "generate", Path: "/generate_stream", Can: can, Codec: codec{}}
}

// Encode implements dialect.Codec.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	prompt, err := ep.Plain(r, o)
	if err != nil {
		return wire.Call{}, err
	}
	p, b := &dialect.Object{}, &dialect.Object{}
	if r.OSL > 0 {
		p.Set("max_new_tokens", r.OSL)
	}
	sampling(p, &o.Sampling)
	p.Set("details", true)
	schema, err := dialect.Schema(o.ResponseFormat)
	if err != nil {
		return wire.Call{}, err
	}
	if schema != nil {
		p.Set("grammar", map[string]any{"type": "json", "value": schema})
	}
	b.Set("inputs", prompt)
	b.Raw("parameters", p.Bytes())
	path := strings.TrimSuffix(ep.At(o.Model), "_stream")
	if !o.Stream {
		return b.Call(path, "", nil, r, o)
	}
	return b.Call(path+"_stream", "text/event-stream", nil, r, o)
}

// sampling sets the parameters within the bounds that the server has: a temperature of 0 and a top_p of 1 are refused with status 422.
func sampling(p *dialect.Object, s *bench.Sampling) {
	if t := s.Temperature; t != nil {
		p.Set("do_sample", *t > 0)
		if *t > 0 {
			p.Set("temperature", *t)
		}
	}
	if s.TopP != nil && *s.TopP < 1 {
		p.Set("top_p", *s.TopP)
	}
	if s.TopK != nil && *s.TopK > 0 {
		p.Set("top_k", *s.TopK)
	}
	if s.Seed != nil {
		p.Set("seed", *s.Seed)
	}
	if len(s.Stop) > 0 {
		p.Set("stop", s.Stop)
	}
	if s.Logprobs != nil {
		p.Set("top_n_tokens", *s.Logprobs)
	}
}

// Decoder implements dialect.Codec.
func (codec) Decoder(dialect.Endpoint) dialect.Decoder { return decoder{} }

// Stateless implements dialect.Stateless.
func (codec) Stateless() {}

type decoder struct{}

// answer is an event, a whole response or an error, with the fields that matter.
type answer struct {
	dialect.Failure
	ErrorType string `json:"error_type"`
	Token     *struct {
		Text    string `json:"text"`
		Special bool   `json:"special"`
	} `json:"token"`
	Generated *string  `json:"generated_text"`
	Details   *details `json:"details"`
}

type details struct {
	Finish  string            `json:"finish_reason"`
	Tokens  *int              `json:"generated_tokens"`
	Prompt  *int              `json:"input_length"` // of a stream
	Prefill []json.RawMessage `json:"prefill"`      // of a plain answer, where it was asked for
	List    []json.RawMessage `json:"tokens"`       // of a plain answer
}

// Event implements dialect.Decoder. Each event is one token; the text of a special one is no part of the answer.
func (decoder) Event(ev wire.Event, d *dialect.Delta) error {
	if len(ev.Data) == 0 {
		return nil
	}
	var a answer
	if err := json.Unmarshal(ev.Data, &a); err != nil {
		return fmt.Errorf("event is no valid JSON (%v): %s", err, wire.Excerpt(ev.Data))
	}
	if a.failed(d) {
		return nil
	}
	if a.Token == nil {
		return fmt.Errorf("no field %q in %s", "token", wire.Excerpt(ev.Data))
	}
	out := d.Output(0)
	out.IDs = 1
	if !a.Token.Special {
		out.Text = a.Token.Text
	}
	a.Details.fill(d, out)
	return nil
}

// Body implements dialect.Decoder.
func (decoder) Body(body []byte, d *dialect.Delta) error {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("body is no valid JSON (%v): %s", err, wire.Excerpt(body))
	}
	if a.failed(d) {
		return nil
	}
	if a.Generated == nil {
		return fmt.Errorf("no field %q in %s", "generated_text", wire.Excerpt(body))
	}
	out := d.Output(0)
	out.Text = *a.Generated
	a.Details.fill(d, out)
	return nil
}

// failed takes an error.
func (a *answer) failed(d *dialect.Delta) bool {
	if d.Error = a.Words(a.Token != nil || a.Generated != nil); d.Error == "" {
		return false
	}
	if a.ErrorType != "" {
		d.Error += " (" + a.ErrorType + ")"
	}
	return true
}

func (t *details) fill(d *dialect.Delta, out *dialect.Output) {
	if t == nil {
		return
	}
	out.Finish = t.Finish
	out.IDs += len(t.List)
	d.Native = true
	if t.Tokens != nil {
		d.Completion = opt.Some(*t.Tokens)
	}
	if n := len(t.Prefill); n > 0 {
		d.Prompt = opt.Some(n)
	}
	if t.Prompt != nil {
		d.Prompt = opt.Some(*t.Prompt)
	}
}

// times are the header fields of a plain answer that tell the server's own times, in ms, by their keys in a record.
var times = []struct{ field, key string }{
	{"x-total-time", "server_total_ms"}, {"x-validation-time", "server_validation_ms"}, {"x-queue-time", "server_queue_ms"},
	{"x-inference-time", "server_inference_ms"}, {"x-time-per-token", "server_per_token_ms"},
}

// Head implements dialect.Headed. The counts of the body, where there are some, take their place.
func (decoder) Head(h http.Header, d *dialect.Delta) {
	if n, err := strconv.Atoi(h.Get("x-prompt-tokens")); err == nil {
		d.Prompt, d.Native = opt.Some(n), true
	}
	if n, err := strconv.Atoi(h.Get("x-generated-tokens")); err == nil {
		d.Completion, d.Native = opt.Some(n), true
	}
	for _, t := range times {
		if v, err := strconv.ParseFloat(h.Get(t.field), 64); err == nil && v >= 0 {
			d.Time(t.key, &v)
		}
	}
}
