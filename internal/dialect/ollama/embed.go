package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// EmbedEndpoint is POST /api/embed.
func EmbedEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: "embed", Path: "/api/embed", Task: bench.Embed, Can: dialect.Abilities{ServerTimings: true}, Codec: embed{}}
}

type embed struct{}

// Encode implements dialect.Codec.
func (embed) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if err := dialect.CheckInputs(ep, r); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("model", o.Model)
	b.Set("input", r.Inputs)
	return b.Call(ep.Path, "", nil, r, o)
}

// Stateless implements dialect.Stateless.
func (embed) Stateless() {}

// Decoder implements dialect.Codec.
func (embed) Decoder(dialect.Endpoint) dialect.Decoder { return embed{} }

// Event implements dialect.Decoder: nothing is streamed here.
func (embed) Event(wire.Event, *dialect.Delta) error { return nil }

// Body implements dialect.Decoder. The count is of all inputs together; times are in ns.
func (embed) Body(b []byte, d *dialect.Delta) error {
	var list struct {
		Vectors []json.RawMessage `json:"embeddings"`
		Prompt  *int              `json:"prompt_eval_count"`
		Total   *float64          `json:"total_duration"`
		Load    *float64          `json:"load_duration"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("body is no list of embeddings (%v): %s", err, wire.Excerpt(b))
	}
	if list.Vectors == nil {
		return d.NoResults(b, "embeddings")
	}
	if list.Prompt != nil {
		d.Prompt, d.Native = opt.Some(*list.Prompt), true
	}
	if list.Total != nil {
		ms := *list.Total / 1e6
		d.Time("server_total_ms", &ms)
	}
	if list.Load != nil {
		ms := *list.Load / 1e6
		d.Time("server_load_ms", &ms)
	}
	for i, v := range list.Vectors {
		if err := d.AddVector(i, v); err != nil {
			return err
		}
	}
	return nil
}
