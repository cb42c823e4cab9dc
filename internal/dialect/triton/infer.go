package triton

import (
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// InferEndpoint is KServe's v2 inference before a model of TensorRT-LLM: a text for one such as ensemble, token ids for tensorrt_llm.
// It answers in one piece and never tells why an answer ended.
func InferEndpoint() dialect.Endpoint {
	can := dialect.Abilities{IDsIn: true, IDsOut: true, MinTokens: true, Usage: true, Whole: true, NoFinish: true}
	return dialect.Endpoint{Name: "infer", Path: "/v2/models/{model}/infer", Can: can, Codec: infer{}}
}

type infer struct{}

// tensor is an input of a request.
type tensor struct {
	Name  string `json:"name"`
	Type  string `json:"datatype"`
	Shape [2]int `json:"shape"` // of the batch, which is 1, and of its one row
	Data  any    `json:"data"`
}

// tensors builds the inputs of a request.
type tensors []tensor

func (t *tensors) one(name, kind string, value any) {
	*t = append(*t, tensor{name, kind, [2]int{1, 1}, []any{value}})
}

// The types of a tensor.
const (
	int32s  = "INT32"
	uint64s = "UINT64"
	floats  = "FP32"
	bools   = "BOOL"
	texts   = "BYTES"
)

// Encode implements dialect.Codec.
func (infer) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if o.Stream {
		return wire.Call{}, fault.New(fault.Usage, "the infer endpoint answers in one piece", "ask for no stream with --no-stream, or use --endpoint generate")
	}
	prompt, err := ep.Plain(r, o)
	if err != nil {
		return wire.Call{}, err
	}
	if err := ep.NoFormat(o); err != nil {
		return wire.Call{}, err
	}
	var in tensors
	topKName, topPName, length := "top_k", "top_p", "max_tokens"
	if ids, ok := prompt.([]int); ok {
		topKName, topPName, length = "runtime_top_k", "runtime_top_p", "request_output_len"
		in = append(in, tensor{"input_ids", int32s, [2]int{1, len(ids)}, ids})
		in.one("input_lengths", int32s, len(ids))
		in.one("streaming", bools, false)
		if len(o.Sampling.Stop) > 0 {
			return wire.Call{}, fault.New(fault.Usage, "a prompt of token ids takes no stop sequences of text", "leave --stop out")
		}
	} else {
		in.one("text_input", texts, prompt)
		in.one("stream", bools, false)
		if n := len(o.Sampling.Stop); n > 0 {
			in = append(in, tensor{"stop_words", texts, [2]int{1, n}, o.Sampling.Stop})
		}
	}
	if r.OSL > 0 {
		in.one(length, int32s, r.OSL)
	}
	s := &o.Sampling
	if n := leastTokens(r, o); n > 0 {
		in.one("min_tokens", int32s, n)
	}
	if s.Temperature != nil && *s.Temperature > 0 {
		in.one("temperature", floats, *s.Temperature)
	}
	if s.TopP != nil {
		in.one(topPName, floats, *s.TopP)
	}
	if k := topK(s); k != nil {
		in.one(topKName, int32s, *k)
	}
	if s.Seed != nil {
		in.one("seed", uint64s, *s.Seed)
	}
	for _, name := range []string{"exclude_input_in_output", "return_num_input_tokens", "return_num_output_tokens"} {
		in.one(name, bools, true)
	}
	b := &dialect.Object{}
	b.Set("inputs", in)
	return b.Call(ep.At(o.Model), "", nil, r, o)
}

// Decoder implements dialect.Codec.
func (infer) Decoder(dialect.Endpoint) dialect.Decoder { return inferred{} }

// Stateless implements dialect.Stateless.
func (infer) Stateless() {}

type inferred struct{}

// Event implements dialect.Decoder.
func (inferred) Event(ev wire.Event, _ *dialect.Delta) error {
	return fmt.Errorf("an event of a stream, where there is none: %s", wire.Excerpt(ev.Data))
}

// Body implements dialect.Decoder.
func (inferred) Body(body []byte, d *dialect.Delta) error {
	var a struct {
		dialect.Failure
		Outputs []struct {
			Name string          `json:"name"`
			Data json.RawMessage `json:"data"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("body is no valid JSON (%v): %s", err, wire.Excerpt(body))
	}
	if d.Error = a.Words(a.Outputs != nil); d.Error != "" {
		return nil
	}
	if a.Outputs == nil {
		return fmt.Errorf("no field %q in %s", "outputs", wire.Excerpt(body))
	}
	out := d.Output(0)
	d.Native = true
	known, lengths := false, 0
	for _, t := range a.Outputs {
		var err error
		switch t.Name {
		case "text_output":
			var words []string
			if err = json.Unmarshal(t.Data, &words); err == nil && len(words) > 0 {
				out.Text, known = words[0], true
			}
		case "output_ids", "sequence_length", "num_input_tokens", "num_output_tokens":
			var n []int
			if err = json.Unmarshal(t.Data, &n); err != nil || len(n) == 0 {
				break
			}
			switch t.Name {
			case "output_ids":
				out.IDs, known = len(n), true
			case "sequence_length":
				lengths = n[0]
			case "num_input_tokens":
				d.Prompt = opt.Some(n[0])
			case "num_output_tokens":
				d.Completion = opt.Some(n[0])
			}
		}
		if err != nil {
			return fmt.Errorf("the output %q holds no list of its type (%v): %s", t.Name, err, wire.Excerpt(t.Data))
		}
	}
	if !known {
		return fmt.Errorf("no output %q or %q in %s", "text_output", "output_ids", wire.Excerpt(body))
	}
	if lengths > 0 {
		out.IDs = min(out.IDs, lengths) // the list is filled up to a common length
	}
	return nil
}
