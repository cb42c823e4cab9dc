// Package tei speaks the own API of Hugging Face's Text Embeddings Inference: bare lists, with the counts and times in the head.
package tei

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// EmbedEndpoint is POST /embed.
func EmbedEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: "embed", Path: "/embed", Task: bench.Embed, Can: dialect.Abilities{ServerTimings: true}, Codec: embed{}}
}

// RerankEndpoint is POST /rerank.
func RerankEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: "rerank", Path: "/rerank", Task: bench.Rerank, Can: dialect.Abilities{ServerTimings: true}, Codec: rerank{}}
}

// head reads what all answers have in their head, and their errors.
type head struct{}

// Event implements dialect.Decoder: nothing is streamed here.
func (head) Event(wire.Event, *dialect.Delta) error { return nil }

// Head implements dialect.Headed. The tokens are those of all inputs together, the server's own ones included.
func (head) Head(h http.Header, d *dialect.Delta) {
	if n, err := strconv.Atoi(h.Get("X-Compute-Tokens")); err == nil {
		d.Prompt, d.Native = opt.Some(n), true
	}
	for _, t := range []struct{ field, key string }{{"X-Total-Time", "server_total_ms"}, {"X-Tokenization-Time", "server_tokenization_ms"},
		{"X-Queue-Time", "server_queue_ms"}, {"X-Inference-Time", "server_inference_ms"}} {
		if ms, err := strconv.ParseFloat(h.Get(t.field), 64); err == nil {
			d.Time(t.key, &ms)
		}
	}
}

// failed reads an error object, which comes in the place of a list.
func failed(b []byte, d *dialect.Delta) bool {
	var e struct {
		dialect.Failure
		Kind string `json:"error_type"`
	}
	if b = bytes.TrimSpace(b); len(b) == 0 || b[0] != '{' || json.Unmarshal(b, &e) != nil {
		return false
	}
	if d.Error = e.Words(false); d.Error != "" && e.Kind != "" {
		d.Error += " (" + e.Kind + ")"
	}
	return d.Error != ""
}

type embed struct{ head }

// Encode implements dialect.Codec. The server serves one model, so that none is named.
func (embed) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if err := dialect.CheckInputs(ep, r); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("inputs", r.Inputs)
	return b.Call(ep.Path, "", nil, r, o)
}

// Stateless implements dialect.Stateless.
func (embed) Stateless() {}

// Decoder implements dialect.Codec.
func (embed) Decoder(dialect.Endpoint) dialect.Decoder { return embed{} }

// Body implements dialect.Decoder.
func (embed) Body(b []byte, d *dialect.Delta) error {
	if failed(b, d) {
		return nil
	}
	var vectors []json.RawMessage
	if err := json.Unmarshal(b, &vectors); err != nil {
		return fmt.Errorf("body is no list of vectors (%v): %s", err, wire.Excerpt(b))
	}
	for i, v := range vectors {
		if err := d.AddVector(i, v); err != nil {
			return err
		}
	}
	return nil
}

type rerank struct{ head }

// Encode implements dialect.Codec.
func (rerank) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if err := dialect.CheckInputs(ep, r); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("query", r.Query)
	b.Set("texts", r.Inputs)
	return b.Call(ep.Path, "", nil, r, o)
}

// Stateless implements dialect.Stateless.
func (rerank) Stateless() {}

// Decoder implements dialect.Codec.
func (rerank) Decoder(dialect.Endpoint) dialect.Decoder { return rerank{} }

// Body implements dialect.Decoder.
func (rerank) Body(b []byte, d *dialect.Delta) error {
	if failed(b, d) {
		return nil
	}
	var ranks []struct {
		Index *int     `json:"index"`
		Score *float64 `json:"score"` // null when it is no number
	}
	if err := json.Unmarshal(b, &ranks); err != nil {
		return fmt.Errorf("body is no ranking (%v): %s", err, wire.Excerpt(b))
	}
	for i, x := range ranks {
		switch {
		case x.Index == nil:
			return fmt.Errorf("no field \"index\" in result %d: %s", i, wire.Excerpt(b))
		case x.Score == nil:
			return fmt.Errorf("no number \"score\" in result %d: %s", i, wire.Excerpt(b))
		}
		d.Results = append(d.Results, *x.Index)
	}
	return nil
}
