package discover

import (
	"strings"

	"github.com/prony-bench/prony/internal/opt"
)

// describe asks an engine that is known by name for its version, limits and layout. What it does not answer stays undefined.
func (q *inquiry) describe() {
	switch q.Name {
	case "vllm", "prony-sim":
		q.Version = q.get("/version").text("version")
		q.vllm("/metrics")
	case "nim":
		q.Version = q.metadata().text("version")
		q.vllm("/v1/metrics")
	case "sglang":
		q.sglang()
	case "trtllm":
		q.Version = q.get("/version").text("version")
		q.trtllm()
	case "lmdeploy":
		q.lmdeploy()
	case "llamacpp":
		q.llamacpp()
	case "dynamo":
		q.dynamo()
	case "ollama":
		q.ollama()
	case "tgi", "tei":
		q.info()
	case "triton":
		q.triton()
	}
}

// vllm reads the state of the cache from the metrics, and the layout where the server is in development mode.
func (q *inquiry) vllm(metrics string) {
	cache := q.page(metrics).series("vllm:cache_config_info")
	fill(&q.KVTokens, cache.number("kv_cache_size_tokens"), product(cache.number("num_gpu_blocks"), cache.number("block_size")))
	fill(&q.PrefixCache, cache.yes("enable_prefix_caching"))
	q.KVType = cache.text("cache_dtype")
	c := q.get("/server_info?config_format=json")
	if q.Quant == "" {
		q.Quant = c.text("vllm_config", "model_config", "quantization")
	}
	fill(&q.Slots, c.number("vllm_config", "scheduler_config", "max_num_seqs"))
	fill(&q.Tensor, c.number("vllm_config", "parallel_config", "tensor_parallel_size"))
	fill(&q.Pipeline, c.number("vllm_config", "parallel_config", "pipeline_parallel_size"))
	fill(&q.Data, c.number("vllm_config", "parallel_config", "data_parallel_size"))
}

func (q *inquiry) sglang() {
	info := q.get("/server_info")
	if info == nil {
		info = q.get("/get_server_info") // of older ones
	}
	q.Version, q.Quant, q.KVType = info.text("version"), info.text("quantization"), info.text("kv_cache_dtype")
	fill(&q.MaxLen, info.number("context_length"))
	fill(&q.Tensor, info.number("tp_size"))
	fill(&q.Pipeline, info.number("pp_size"))
	fill(&q.Data, info.number("dp_size"))
	fill(&q.Expert, info.number("ep_size"))
	fill(&q.KVTokens, info.number("max_total_num_tokens"))
	if off, ok := info.yes("disable_radix_cache").Get(); ok {
		q.PrefixCache = opt.Some(!off)
	}
	for _, state := range info.list("internal_states") {
		fill(&q.Slots, state.number("effective_max_running_requests_per_dp"))
	}
	fill(&q.Slots, info.number("max_running_requests"))
}

// trtllm reads the page beside /metrics, which is emptied by reading it.
func (q *inquiry) trtllm() {
	p := q.page("/prometheus/metrics")
	model, parallel := p.series("trtllm_model_config_info"), p.series("trtllm_parallel_config_info")
	q.Quant = model.text("quantization")
	fill(&q.MaxLen, model.number("max_model_len"))
	fill(&q.Tensor, parallel.number("tensor_parallel_size"))
	fill(&q.Pipeline, parallel.number("pipeline_parallel_size"))
	fill(&q.Expert, parallel.number("expert_parallel_size"))
	fill(&q.KVTokens, product(p.series("trtllm_kv_cache_max_blocks").number(""), p.series("trtllm_kv_cache_tokens_per_block").number("")))
}

func (q *inquiry) lmdeploy() {
	c := q.page("/metrics").series("lmdeploy:backend_config_info")
	fill(&q.MaxLen, c.number("session_len"))
	fill(&q.Tensor, c.number("tp"))
	fill(&q.Data, c.number("dp"))
	fill(&q.Expert, c.number("ep"))
	fill(&q.Slots, c.number("max_batch_size"))
	fill(&q.PrefixCache, c.yes("enable_prefix_caching"))
	fill(&q.KVTokens, product(c.number("num_gpu_blocks"), c.number("block_size")))
	if bits, ok := c.number("quant_policy").Get(); ok {
		q.KVType = map[int]string{4: "int4", 8: "int8"}[bits]
	}
	if form := c.text("model_format"); form != "hf" {
		q.Quant = form
	}
}

func (q *inquiry) llamacpp() {
	p := q.get("/props")
	q.Version = p.text("build_info")
	fill(&q.Slots, p.number("total_slots"))
	if n := p.number("default_generation_settings", "n_ctx"); n.Defined() {
		q.MaxLen = n // of a slot: what a request can use
	}
	if form := p.text("model_ftype"); form != "" {
		q.Quant = form
	}
	q.named(p.text("model_alias"), p.text("model_path"))
}

func (q *inquiry) dynamo() {
	p := q.page("/metrics")
	of := func(name string) opt.Of[int] { return p.series("dynamo_frontend_model_" + name).number("") }
	fill(&q.MaxLen, of("context_length"))
	fill(&q.Slots, of("max_num_seqs"))
	fill(&q.KVTokens, product(of("total_kv_blocks"), of("kv_cache_block_size")))
}

// ollama asks for the models that are there, and about the one to be used. The context of a model that is not loaded is known only
// where the model says it: else the server chooses it by its memory.
func (q *inquiry) ollama() {
	q.Version = q.get("/api/version").text("version")
	if len(q.Models) == 0 {
		for _, m := range q.get("/api/tags").list("models") {
			q.Models = append(q.Models, m.text("name"))
		}
	}
	name := q.chosen()
	if name == "" {
		return
	}
	for _, m := range q.get("/api/ps").list("models") {
		if m.text("name") == name || m.text("model") == name || m.text("name") == name+":latest" {
			fill(&q.MaxLen, m.number("context_length"))
		}
	}
	show := q.post("/api/show", map[string]string{"model": name})
	q.Quant = show.text("details", "quantization_level")
	for line := range strings.Lines(show.text("parameters")) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			fill(&q.MaxLen, doc{"n": f[1]}.number("n"))
		}
	}
}

// info asks TGI and TEI, whose models stand in no list.
func (q *inquiry) info() {
	i := q.get("/info")
	q.Version = i.text("version")
	fill(&q.MaxLen, i.number("max_total_tokens"), i.number("max_input_length"), i.number("max_input_tokens"))
	fill(&q.MaxRequests, i.number("max_concurrent_requests"))
	q.named(i.text("model_id"))
	if i.at("model_type", "reranker") != nil && i.at("model_type", "embedding") == nil {
		q.Endpoint = "rerank"
	}
}

// triton asks for the models that are ready, and for the settings of the one to be used: what it takes depends on its backend.
func (q *inquiry) triton() {
	v2 := q.get("/v2")
	if v2 == nil {
		return // it is its OpenAI front
	}
	q.Version = v2.text("version")
	if len(q.Models) == 0 {
		for _, m := range q.postList("/v2/repository/index", map[string]bool{"ready": true}) {
			if m.text("state") == "READY" {
				q.Models = append(q.Models, m.text("name"))
			}
		}
		q.Endpoint = "generate"
	}
	name := q.chosen()
	if name == "" {
		return
	}
	c := q.get("/v2/models/" + name + "/config")
	if c.text("platform") == "ensemble" {
		if inner := q.get("/v2/models/tensorrt_llm/config"); inner != nil {
			c = inner
		}
	}
	if q.Backend = c.text("backend"); q.Backend == "vllm" && q.Endpoint != "" {
		q.Endpoint = "generate-vllm"
	}
	setting := func(name string) doc { return doc{"v": c.at("parameters", name, "string_value")} }
	fill(&q.Slots, c.number("max_batch_size"))
	fill(&q.KVTokens, setting("max_tokens_in_paged_kv_cache").number("v"))
	fill(&q.PrefixCache, setting("enable_kv_cache_reuse").yes("v"))
}

// Fingerprint reads what vLLM writes into system_fingerprint of its answers: vllm-<version>[-tpN][-ppN][-dpN][-ep]-<hash>, where a
// degree that is not named is 1.
func (f *Found) Fingerprint(text string) {
	parts := strings.Split(text, "-")
	if len(parts) < 3 || parts[0] != "vllm" || !strings.Contains(parts[1], ".") {
		return
	}
	degree := map[string]*opt.Of[int]{"tp": &f.Tensor, "pp": &f.Pipeline, "dp": &f.Data}
	for _, p := range parts[2 : len(parts)-1] {
		for name, to := range degree {
			if n, ok := strings.CutPrefix(p, name); ok {
				fill(to, doc{"n": n}.number("n"))
			}
		}
	}
	for _, to := range degree {
		fill(to, opt.Some(1))
	}
}
