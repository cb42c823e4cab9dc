package sim

import (
	"encoding/json"
	"net/http"
)

// sgLang is SGLang 0.5.23.
func sgLang() *dialect {
	h := habits{completion: 16, ids: func(in *asking) json.RawMessage { return in.InputIDs }}
	return &dialect{
		fingerprint: "sglang", refuse: sgLangRefusal,
		guards: func(path string) bool { return !below(path, "/health", "/ready", "/metrics") },
		routes: []route{
			sgLangChat().at("/v1/chat/completions", h.chat), sgLangCompletions().at("/v1/completions", h.complete),
			withRefusal(sgLangGenerate().at("/generate", readSGLang), sgLangNative), vllmMessages().at("/v1/messages", h.messages),
			vllmResponses().at("/v1/responses", h.responses), embeddings("/v1/embeddings", openAIVectors), rerank("/v1/rerank", sgLangRanks),
		},
		pages: []page{
			alive("/health"), alive("/ready"),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":$created,"owned_by":"sglang","root":$model,`+
				`"parent":null,"max_model_len":$limit}]}`),
			tells("/server_info", sgLangServer), tells("/get_server_info", sgLangServer),
			tells("/model_info", sgLangModel), tells("/get_model_info", sgLangModel),
			{http.MethodGet, "/v1/loads", jsonKind, func(s *Server, _ *request) ([]byte, *apiError) {
				return marshal(map[string]any{"version": "0.5.23", "loads": []map[string]any{{"dp_rank": 0, "num_running_reqs": s.met.running.Load()}}}), nil
			}},
			{http.MethodGet, "/flush_cache", "text/plain; charset=utf-8", cacheFlushed}, {http.MethodPost, "/flush_cache", "text/plain; charset=utf-8", cacheFlushed},
			meters("/metrics", "text/plain; version=1.0.0; charset=utf-8", sgLangMetrics),
			asks("/tokenize", (*Server).tokenizeEndpoint), asks("/detokenize", (*Server).detokenizeEndpoint),
		},
	}
}

const (
	sgLangModel = `{"model_path":$model,"tokenizer_path":$model,"is_generation":true,"served_model_name":$model,"model_type":"llama",` +
		`"architectures":["LlamaForCausalLM"],"weight_version":"default"}`
	sgLangServer = `{"model_path":$model,"served_model_name":$model,"tp_size":1,"dp_size":1,"pp_size":1,"ep_size":1,"quantization":null,` +
		`"kv_cache_dtype":"auto","context_length":$limit,"incremental_streaming_output":false,"max_total_num_tokens":$limit,` +
		`"max_req_input_len":$limit,"internal_states":[{"last_gen_throughput":0.0,"effective_max_running_requests_per_dp":1024}],` +
		`"version":"0.5.23"}`
)

// cacheFlushed is the answer to a reset of the cache, which fails while requests run.
func cacheFlushed(s *Server, _ *request) ([]byte, *apiError) {
	if s.met.running.Load() > 0 {
		return nil, invalid("Cache not cacheFlushed because there are pending requests.")
	}
	return []byte("Cache cacheFlushed.\nPlease check backend logs for more details. (When there are running or waiting requests, the operation " +
		"will not be performed.)\n"), nil
}

func withRefusal(r route, by refusal) route {
	r.refuse = by
	return r
}

// sgLangRefusal tells of an error on the OpenAI fronts.
func sgLangRefusal(e *apiError) (int, []byte) {
	if e.cause == unauthorized {
		return e.status, []byte(`{"error":"Unauthorized"}`)
	}
	return e.status, flatError(e)
}

// flatError is the form that several engines have from an older vLLM.
func flatError(e *apiError) []byte {
	return marshal(struct {
		Object  string  `json:"object"`
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}{"error", e.message, e.kind, optionalString(e.param), e.status})
}

func sgLangNative(e *apiError) (int, []byte) {
	return e.status, marshal(map[string]any{"error": map[string]any{"message": e.message}})
}

const sgLangBroken = `{"error":{"object":"error","message":"Internal server error","type":"InternalServerError","param":null,"code":500}}`

// sgLangChat: reasoning_content is in every chunk, and the reason of the end has a chunk of its own.
func sgLangChat() *form {
	const head = `{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"choices":`
	chunk := func(delta, finish, matched string) text {
		return data(head + `[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `,"matched_stop":` + matched + `}]$running}`)
	}
	const counts = `"prompt_tokens_details":null,"reasoning_tokens":$thoughts,"completion_tokens_details":$details}`
	const usage = `{"prompt_tokens":$prompt,"total_tokens":$sum,"completion_tokens":$sent,` + counts
	return &form{
		silent: true,
		start:  list(chunk(`{"reasoning_content":null,"role":"assistant","content":""}`, "null", "null")),
		think:  part{chunk: chunk(`{"reasoning_content":$text}`, "null", "null")},
		words:  part{chunk: chunk(`{"reasoning_content":null,"content":$text}`, "null", "null")},
		call: part{
			open: list(chunk(`{"reasoning_content":null,"tool_calls":[{"id":"call_$hex","index":0,"type":"function","function":{"name":$tool,`+
				`"arguments":""}}]}`, "null", "null")),
			chunk: chunk(`{"reasoning_content":null,"tool_calls":[{"id":null,"index":0,"type":"function","function":{"name":null,`+
				`"arguments":$text}}]}`, "null", "null"),
			whole: parse(`[{"id":"call_$hex","index":0,"type":"function","function":{"name":$tool,"arguments":$arguments}}]`),
		},
		end:     list(chunk(`{"reasoning_content":null}`, "$finish", "$matched")),
		usage:   list(data(head + `[],"usage":` + usage + `}`)),
		done:    list(parse(doneEvent)),
		broken:  list(data(sgLangBroken), parse(doneEvent)),
		running: parse(`,"usage":` + usage),
		finish:  finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"object":"chat.completion","created":$created,"model":$model,"choices":[{"index":0,"message":` +
			`{"role":"assistant","content":$answer,"reasoning_content":$thinking,"tool_calls":$calls},"logprobs":null,"finish_reason":$finish,` +
			`"matched_stop":$matched}],"usage":{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,` + counts +
			`,"metadata":{"weight_version":"default"}}`),
	}
}

func sgLangCompletions() *form {
	const head = `{"id":$id,"object":"text_completion","created":$created,"model":$model,"choices":`
	const choice = `{"index":0,"text":$text,"logprobs":null,"finish_reason":`
	const counts = `"prompt_tokens_details":null,"reasoning_tokens":0,"completion_tokens_details":null}`
	const usage = `{"prompt_tokens":$prompt,"total_tokens":$sum,"completion_tokens":$sent,` + counts
	return &form{
		silent:  true,
		words:   part{chunk: data(head + `[` + choice + `null,"matched_stop":null}]$running}`)},
		end:     list(data(head + `[{"index":0,"text":"","logprobs":null,"finish_reason":$finish,"matched_stop":$matched}]$running}`)),
		usage:   list(data(head + `[],"usage":` + usage + `}`)),
		done:    list(parse(doneEvent)),
		broken:  list(data(sgLangBroken), parse(doneEvent)),
		running: parse(`,"usage":` + usage),
		finish:  finishes("stop", "length", "stop"),
		whole: parse(head + `[{"index":0,"text":$answer,"logprobs":null,"finish_reason":$finish,"matched_stop":$matched}],"usage":` +
			`{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,` + counts + `,"metadata":{"weight_version":"default"}}`),
	}
}

// sgLangGenerate is POST /generate: text and ids are those of all events so far.
func sgLangGenerate() *form {
	meta := func(finish, more string) string {
		return `{"id":$id,"finish_reason":` + finish + `,"prompt_tokens":$prompt,"weight_version":"default","num_retractions":0,` +
			`"reasoning_tokens":0,"completion_tokens":$sent,"cached_tokens":$cached,"dp_rank":null` + more + `}`
	}
	all := func(meta string) string { return `{"text":$all,"output_ids":$idsall,"meta_info":` + meta + `}` }
	last := all(meta("$finish", `,"e2e_latency":$wholes`))
	return &form{
		words:  part{chunk: data(all(meta("null", ""))), last: data(last)},
		done:   list(parse(doneEvent)),
		broken: list(data(`{"error":{"message":"Internal server error","type":"InternalServerError","code":500,"retryable":false}}`), parse(doneEvent)),
		whole:  parse(last),
		finish: reasons{stop: parse(`{"type":"stop","matched":$matched}`), length: parse(`{"type":"length","length":$output}`)},
	}
}

// readSGLang reads POST /generate.
func readSGLang(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Text     json.RawMessage `json:"text"`
		InputIDs json.RawMessage `json:"input_ids"`
		Stream   bool            `json:"stream"`
		Sampling struct {
			MaxNewTokens *int   `json:"max_new_tokens"`
			MinNewTokens int    `json:"min_new_tokens"`
			IgnoreEOS    bool   `json:"ignore_eos"`
			Seed         *int64 `json:"sampling_seed"`
		} `json:"sampling_params"`
		ExtraKey string `json:"extra_key"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	p := in.Sampling
	w := &wish{stream: in.Stream, limit: p.MaxNewTokens, limitName: "max_new_tokens", fallback: 128, min: p.MinNewTokens, ignoreEOS: p.IgnoreEOS,
		seed: p.Seed, salt: in.ExtraKey}
	return w, w.read(in.Text, in.InputIDs)
}

// read takes a prompt that is a text or, in a field of its own, ids.
func (w *wish) read(text, ids json.RawMessage) (err *apiError) {
	switch {
	case len(ids) > 0 && ids[0] == '[':
		w.prompt, err = tokenList(ids)
		w.exact = true
	default:
		w.prompt, w.exact, err = textPrompt(text)
	}
	return err
}

// sgLangRanks is a list alone, in which each document counts its own tokens.
func sgLangRanks(b []byte, g *generation, w *wish) []byte {
	return appendRanks(b, w, func(b []byte, r rank) []byte {
		b = decimal(append(b, `{"score":`...), r.score)
		b = append(append(b, `,"document":`...), appendQuoted(nil, w.texts[r.index])...)
		b = number(append(b, `,"index":`...), r.index)
		b = number(append(b, `,"meta_info":{"id":"`+g.hex+`","finish_reason":null,"prompt_tokens":`...), len(w.lists[r.index]))
		return append(b, `,"weight_version":"default"}}`...)
	})
}

func sgLangMetrics(p *meterPage, r *readings) {
	p.labels = `engine_type="unified",model_name=` + r.model + `,pp_rank="0",tp_rank="0"`
	p.gauge("sglang:num_running_reqs", "The number of running requests.", r.running)
	p.gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.", r.waiting)
	p.gauge("sglang:token_usage", "The token usage.", r.usage)
	rate := 0.0
	if r.st.queried > 0 {
		rate = float64(r.st.hits) / float64(r.st.queried)
	}
	p.gauge("sglang:cache_hit_rate", "The prefix cache hit rate.", rate)
	p.counter("sglang:prompt_tokens", "Number of prefill tokens processed.", valueOf(&r.promptTokens))
	p.counter("sglang:generation_tokens", "Number of generation tokens processed.", valueOf(&r.generationTokens))
	p.counter("sglang:cached_tokens", "Number of cached prompt tokens.", valueOf(&r.cachedTokens))
	p.counter("sglang:num_retracted_requests", "Number of retracted requests.", float64(r.st.preemptions))
	p.counter("sglang:num_requests", "Number of requests processed.", r.succeeded()+r.aborted())
	p.counter("sglang:num_aborted_requests", "Number of requests aborted.", r.aborted())
	p.histogram("sglang:prompt_tokens_histogram", "Histogram of prompt token length.", r.promptLength)
	p.histogram("sglang:generation_tokens_histogram", "Histogram of generation token length.", r.outputLength)
	p.histogram("sglang:time_to_first_token_seconds", "Histogram of time to first token in seconds.", r.firstToken)
	p.histogram("sglang:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", r.betweenTokens)
	p.histogram("sglang:request_time_per_output_token_seconds", "Histogram of time per output token of a request.", r.perOutputToken)
	p.histogram("sglang:e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds.", r.whole)
	p.histogram("sglang:queue_time_seconds", "Histogram of queueing time in seconds.", r.queue)
}
