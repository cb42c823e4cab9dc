package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// The endpoints' words.
const (
	Embeddings = "embeddings"
	Rerank     = "rerank"
)

// EmbeddingsEndpoint is POST /v1/embeddings of an engine that can do so much.
func EmbeddingsEndpoint(can dialect.Abilities) dialect.Endpoint {
	return dialect.Endpoint{Name: Embeddings, Path: "/v1/embeddings", Task: bench.Embed, Can: can, Codec: embeddings{}}
}

// RerankEndpoint is POST /v1/rerank, as Jina made it and vLLM, SGLang and llama.cpp serve it. Cohere's /v2/rerank takes the same fields,
// and answers with what it bills in place of tokens. SGLang answers with a list alone.
func RerankEndpoint() dialect.Endpoint {
	return dialect.Endpoint{Name: Rerank, Path: "/v1/rerank", Task: bench.Rerank, Codec: rerank{}}
}

type embeddings struct{}

// Encode implements dialect.Codec.
func (embeddings) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if err := dialect.CheckInputs(ep, r); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("model", o.Model)
	b.Set("input", r.Inputs)
	b.Set("encoding_format", "float")
	return b.Call(ep.Path, "", nil, r, o)
}

// Stateless implements dialect.Stateless.
func (embeddings) Stateless() {}

// Decoder implements dialect.Codec.
func (embeddings) Decoder(dialect.Endpoint) dialect.Decoder { return embeddings{} }

// Event implements dialect.Decoder: nothing is streamed here.
func (embeddings) Event(wire.Event, *dialect.Delta) error { return nil }

// Body implements dialect.Decoder.
func (embeddings) Body(b []byte, d *dialect.Delta) error {
	var list struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
		Usage *listUsage `json:"usage"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("body is no list of embeddings (%v): %s", err, wire.Excerpt(b))
	}
	if list.Data == nil {
		return d.NoResults(b, "data")
	}
	list.Usage.fill(d)
	for i, x := range list.Data {
		if x.Index == nil {
			x.Index = &i
		}
		if err := d.AddVector(*x.Index, x.Embedding); err != nil {
			return err
		}
	}
	return nil
}

type rerank struct{}

// Encode implements dialect.Codec.
func (rerank) Encode(ep dialect.Endpoint, r *bench.Request, o *dialect.Options) (wire.Call, error) {
	if err := dialect.CheckInputs(ep, r); err != nil {
		return wire.Call{}, err
	}
	b := &dialect.Object{}
	b.Set("model", o.Model)
	b.Set("query", r.Query)
	b.Set("documents", r.Inputs)
	return b.Call(ep.Path, "", nil, r, o)
}

// Stateless implements dialect.Stateless.
func (rerank) Stateless() {}

// Decoder implements dialect.Codec.
func (rerank) Decoder(dialect.Endpoint) dialect.Decoder { return rerank{} }

// Event implements dialect.Decoder: nothing is streamed here.
func (rerank) Event(wire.Event, *dialect.Delta) error { return nil }

// unitsKey is the key of what Cohere bills in a record.
const unitsKey = "server_search_units"

// Body implements dialect.Decoder.
func (rerank) Body(b []byte, d *dialect.Delta) error {
	if start := bytes.TrimSpace(b); len(start) > 0 && start[0] == '[' {
		return bareRanks(b, d)
	}
	var list struct {
		Results []struct {
			Index *int     `json:"index"`
			Score *float64 `json:"relevance_score"` // null when it is no number
		} `json:"results"`
		Usage *listUsage `json:"usage"`
		Meta  struct {   // Cohere's
			Billed struct {
				Units *float64 `json:"search_units"`
			} `json:"billed_units"`
			Tokens struct {
				Input *int `json:"input_tokens"`
			} `json:"tokens"`
		} `json:"meta"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("body is no ranking (%v): %s", err, wire.Excerpt(b))
	}
	if list.Results == nil {
		return d.NoResults(b, "results")
	}
	list.Usage.fill(d)
	if n := list.Meta.Tokens.Input; n != nil {
		d.Prompt = opt.Some(*n)
	}
	d.Time(unitsKey, list.Meta.Billed.Units)
	for i, x := range list.Results {
		switch {
		case x.Index == nil:
			return fmt.Errorf("no field \"index\" in result %d: %s", i, wire.Excerpt(b))
		case x.Score == nil:
			return fmt.Errorf("no number \"relevance_score\" in result %d: %s", i, wire.Excerpt(b))
		}
		d.Results = append(d.Results, *x.Index)
	}
	return nil
}

// bareRanks reads SGLang's ranking: a list without an object around it, in which each result counts its own tokens.
func bareRanks(b []byte, d *dialect.Delta) error {
	var list []struct {
		Index *int     `json:"index"`
		Score *float64 `json:"score"`
		Meta  struct {
			Prompt *int `json:"prompt_tokens"`
		} `json:"meta_info"`
	}
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("body is no ranking (%v): %s", err, wire.Excerpt(b))
	}
	for i, x := range list {
		switch {
		case x.Index == nil:
			return fmt.Errorf("no field \"index\" in result %d: %s", i, wire.Excerpt(b))
		case x.Score == nil:
			return fmt.Errorf("no number \"score\" in result %d: %s", i, wire.Excerpt(b))
		}
		d.Results = append(d.Results, *x.Index)
		if n := x.Meta.Prompt; n != nil {
			d.Prompt = opt.Some(d.Prompt.Or(0) + *n)
		}
	}
	return nil
}

// listUsage counts the tokens of all inputs together. Older servers tell only the total, which here is the same.
type listUsage struct {
	Prompt *int `json:"prompt_tokens"`
	Total  *int `json:"total_tokens"`
}

func (u *listUsage) fill(d *dialect.Delta) {
	switch {
	case u == nil:
	case u.Prompt != nil && (*u.Prompt > 0 || u.Total == nil):
		d.Prompt = opt.Some(*u.Prompt)
	case u.Total != nil:
		d.Prompt = opt.Some(*u.Total)
	}
}
