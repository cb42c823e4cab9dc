// Package say speaks the protocol of an engine that does not exist: a JSON object a line, {"piece":"a"} for each token, and
// {"end":"stop","in":7,"out":1} at the end. It is the example of CONTRIBUTING's recipe.
package say

import (
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

type codec struct{}

// SayEndpoint is POST /say.
func SayEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: "say", Path: "/say", Can: dialect.Abilities{Usage: true}, Codec: codec{}}
}

// Encode implements dialect.Codec.
func (codec) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	prompt, err := ep.Plain(r, o)
	if err == nil {
		err = ep.NoFormat(o)
	}
	if err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("prompt", prompt)
	b.Set("most", r.OSL)
	b.Set("stream", o.Stream)
	b.Sampling(&o.Sampling, "seed")
	return b.Call(ep.Path, "", nil, r, o)
}

// Decoder implements dialect.Codec.
func (c codec) Decoder(dialect.Endpoint) dialect.Decoder { return c }

// Stateless implements dialect.Stateless.
func (codec) Stateless() {}

// Event implements dialect.Decoder.
func (c codec) Event(ev wire.Event, d *dialect.Delta) error { return c.Body(ev.Data, d) }

// Body implements dialect.Decoder. A whole answer is the pieces and the end in one object.
func (codec) Body(b []byte, d *dialect.Delta) error {
	var a struct {
		dialect.Failure
		Piece *string `json:"piece"`
		End   *string `json:"end"`
		In    *int    `json:"in"`
		Out   *int    `json:"out"`
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return fmt.Errorf("no valid JSON (%v): %s", err, wire.Excerpt(b))
	}
	if d.Error = a.Words(a.Piece != nil || a.End != nil); d.Error != "" {
		return nil
	}
	if a.Piece == nil && a.End == nil {
		return fmt.Errorf("no field \"piece\" and no \"end\" in %s", wire.Excerpt(b))
	}
	out := d.Output(0)
	if a.Piece != nil {
		out.Text = *a.Piece
	}
	if a.End != nil {
		out.Finish, d.Done, d.Native = *a.End, true, true
	}
	if a.In != nil {
		d.Prompt = opt.Some(*a.In)
	}
	if a.Out != nil {
		d.Completion = opt.Some(*a.Out)
	}
	return nil
}
