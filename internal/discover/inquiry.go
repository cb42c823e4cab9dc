package discover

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Found is what a server tells about itself, and how it is asked when nobody says how.
type Found struct {
	bench.Engine
	Endpoint string // empty = the engine's first
	Trouble  error  // a fault: why GET /v1/models names no model; nil when it does
}

// inquiry is Identify on its way.
type inquiry struct {
	Found
	p     *Prober
	ctx   context.Context
	model string // that is to be used; empty = the only one
}

// owners are the engines by what they write into owned_by.
var owners = map[string]string{"vllm": "vllm", "sglang": "sglang", "lmdeploy": "lmdeploy", "tensorrt_llm": "trtllm", "llamacpp": "llamacpp",
	"Triton Inference Server": "triton", "openai": "openai", "openai-internal": "openai", "prony-sim": "prony-sim"}

// Identify finds out what a server tells about itself: who it is by GET /v1/models and what stands there for its owner, then by questions
// that one engine alone answers, each of them cheap. The model is the one to be used, if it is known. The error is a fault when the server
// cannot be used at all.
func (p *Prober) Identify(ctx context.Context, model string) (Found, error) {
	ctx, cancel := context.WithTimeout(ctx, allTimeout)
	defer cancel()
	q := &inquiry{p: p, ctx: ctx, model: model}
	if err := q.models(); err != nil {
		return q.Found, err
	}
	for _, question := range []func(){q.byInfo, q.byOllama, q.byTriton, q.byProps, q.byMetadata, q.byMetrics} {
		if q.Name == "" {
			question()
		}
	}
	if q.Name == "vllm" {
		q.byMetadata() // NIM passes on what vLLM says
	}
	q.describe()
	switch {
	case len(q.Models) > 0:
		q.Trouble = nil
	case q.Name != "":
		q.Trouble = fault.New(fault.Target, fmt.Sprintf("%s is %s, and names no model", p.name(), q.Name), "load one, or give its name with --model")
	}
	return q.Found, nil
}

// models asks GET /v1/models.
func (q *inquiry) models() error {
	a, err := q.p.ask(q.ctx, "/v1/models", nil)
	if err == nil && a.anthropic() && q.p.Engine == "" {
		q.Name, q.p.Engine = "anthropic", "anthropic" // whose key goes into another header
		a, err = q.p.ask(q.ctx, "/v1/models", nil)
	}
	p := q.p
	switch {
	case err != nil:
		return p.unreachable(err)
	case p.Proxy != "" && slices.Contains(ofProxies, a.status):
		return fault.New(fault.Target, fmt.Sprintf("%s answers %d through the proxy %s: %s", p.name(), a.status, p.Proxy, words(a.body)), ProxyHint)
	case a.status == http.StatusUnauthorized || a.status == http.StatusForbidden:
		return fault.New(fault.Target, fmt.Sprintf("the server refuses access (%d): %s", a.status, words(a.body)), p.AccessHint())
	}
	var m doc
	if a.status != http.StatusOK || json.Unmarshal(a.body, &m) != nil {
		q.Trouble = p.noModels(a)
		return nil
	}
	q.Trouble = fault.New(fault.Target, p.Join("/v1/models")+" names no model", "give one with --model; a server that is still loading is waited for by --wait-ready 10m")
	for i, d := range m.list("data") {
		q.Models = append(q.Models, d.text("id"))
		if q.model != "" && q.model != d.text("id") || q.model == "" && i > 0 {
			continue
		}
		fill(&q.MaxLen, d.number("max_model_len"), d.number("meta", "n_ctx"))
		fill(&q.Vocab, d.number("meta", "n_vocab"))
		q.Quant = d.text("meta", "ftype")
	}
	q.byOwner(m)
	return nil
}

// byOwner tells an engine by its list of models.
func (q *inquiry) byOwner(m doc) {
	for _, d := range m.list("data") {
		switch owner := d.text("owned_by"); {
		case owners[owner] != "":
			q.Name = owners[owner]
		case owner == "nvidia" && d.text("object") == "object":
			q.Name = "dynamo"
		case d.text("type") == "model" && d.text("display_name") != "":
			q.Name = "anthropic"
		}
	}
}

// byInfo tells TGI and TEI.
func (q *inquiry) byInfo() {
	i := q.get("/info")
	switch {
	case i.text("model_id") == "":
	case i.number("max_total_tokens").Defined() || strings.HasPrefix(i.text("router"), "text-generation"):
		q.Name = "tgi"
	case i.number("max_input_length").Defined() && i.at("model_type") != nil:
		q.Name = "tei"
	}
}

func (q *inquiry) byOllama() {
	if q.get("/api/version").text("version") != "" {
		q.Name = "ollama"
	}
}

func (q *inquiry) byTriton() {
	if q.get("/v2").text("name") == "triton" {
		q.Name = "triton"
	}
}

func (q *inquiry) byProps() {
	if p := q.get("/props"); p.text("build_info") != "" || p.number("default_generation_settings", "n_ctx").Defined() {
		q.Name = "llamacpp"
	}
}

func (q *inquiry) byMetadata() {
	if q.metadata() != nil {
		q.Name = "nim"
	}
}

// metadata is what NIM tells beside its engine; nil where nobody does.
func (q *inquiry) metadata() doc {
	m := q.get("/v1/metadata")
	for _, field := range []string{"selectedModelProfileId", "modelInfo", "licenseInfo"} {
		if m.at(field) != nil {
			return m
		}
	}
	return nil
}

// byMetrics tells an engine by the names of its metrics. TensorRT-LLM's page is asked first: its /metrics is emptied by reading it.
func (q *inquiry) byMetrics() {
	if q.page("/prometheus/metrics").has("trtllm_") {
		q.Name = "trtllm"
		return
	}
	p := q.page("/metrics")
	for _, x := range [][2]string{{"vllm:", "vllm"}, {"sglang:", "sglang"}, {"lmdeploy:", "lmdeploy"}, {"dynamo_frontend_", "dynamo"}, {"tgi_", "tgi"},
		{"te_", "tei"}, {"llamacpp:", "llamacpp"}, {"nv_inference_", "triton"}} {
		if p.has(x[0]) {
			q.Name = x[1]
			return
		}
	}
}

// get asks for a JSON object; nil where there is none.
func (q *inquiry) get(path string) doc { return q.post(path, nil) }

func (q *inquiry) post(path string, body any) (d doc) {
	q.json(path, body, &d)
	return d
}

// postList asks for a list of JSON objects.
func (q *inquiry) postList(path string, body any) []doc {
	var v any
	q.json(path, body, &v)
	return docs(v)
}

func (q *inquiry) json(path string, body, v any) bool {
	ctx, cancel := context.WithTimeout(q.ctx, sideTimeout)
	defer cancel()
	return q.p.into(ctx, path, body, v)
}

// page asks for a Prometheus page.
func (q *inquiry) page(path string) page {
	ctx, cancel := context.WithTimeout(q.ctx, sideTimeout)
	defer cancel()
	if a, err := q.p.ask(ctx, path, nil); err == nil && a.status == http.StatusOK {
		return page(a.body)
	}
	return ""
}

// chosen is the model to be used; empty while it is not clear.
func (q *inquiry) chosen() string {
	if q.model == "" && len(q.Models) == 1 {
		return q.Models[0]
	}
	return q.model
}

// named adds the model of a server whose list has none.
func (q *inquiry) named(names ...string) {
	if name := cmp.Or(names...); name != "" && len(q.Models) == 0 {
		q.Models = []string{name}
	}
}
