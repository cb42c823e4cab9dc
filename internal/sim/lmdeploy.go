package sim

import "encoding/json"

// lmDeploy is LMDeploy 0.18. It does not count the end token.
func lmDeploy() *dialect {
	h := habits{completion: 16, ids: func(in *asking) json.RawMessage { return in.InputIDs }}
	return &dialect{
		fingerprint: "lmdeploy", refuse: func(e *apiError) (int, []byte) { return e.status, flatError(e) },
		guards: func(path string) bool { return !below(path, "/health", "/docs", "/redoc", "/nodes") },
		routes: []route{
			lmDeployGenerate().at("/generate", readLMDeploy), lmDeployChat().at("/v1/chat/completions", h.chat),
			lmDeployCompletions().at("/v1/completions", h.complete),
		},
		pages: []page{
			alive("/health"),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":$created,"owned_by":"lmdeploy","root":$model,`+
				`"parent":null,"permission":[]}]}`),
			asks("/v1/encode", lmDeployEncode),
			meters("/metrics", "text/plain; version=1.0.0; charset=utf-8", lmDeployMetrics),
		},
	}
}

const lmDeployBroken = `{"error":{"message":"Internal server error","type":"internal_error","code":500,"param":null,"object":"error"}}`

// lmDeployGenerate is POST /generate: the path and fields of SGLang's, but each event holds what is new, and the end has an event.
func lmDeployGenerate() *form {
	event := func(content, ids, sent, finish string) string {
		return `{"text":` + content + `,"output_ids":` + ids + `,"meta_info":{"prompt_tokens":$prompt,"completion_tokens":` + sent +
			`,"finish_reason":` + finish + `,"output_token_logprobs":null,"input_token_logprobs":null,"output_top_logprobs":null,` +
			`"input_top_logprobs":null,"routed_experts":null}}`
	}
	return &form{
		silent: true, endless: true,
		words:  part{chunk: data(event("$text", "$ids", "$sent", "null"))},
		end:    list(data(event(`""`, "[]", "$output", "$finish"))),
		done:   list(parse(doneEvent)),
		broken: list(data(lmDeployBroken), parse(doneEvent)),
		whole:  parse(event("$answer", "$ids", "$output", "$finish")),
		finish: reasons{stop: parse(`{"type":"stop"}`), length: parse(`{"type":"length"}`)},
	}
}

// readLMDeploy reads POST /generate.
func readLMDeploy(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Prompt    json.RawMessage `json:"prompt"`
		InputIDs  json.RawMessage `json:"input_ids"`
		MaxTokens *int            `json:"max_tokens"`
		IgnoreEOS bool            `json:"ignore_eos"`
		Stream    bool            `json:"stream"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	w := &wish{stream: in.Stream, limit: in.MaxTokens, limitName: "max_tokens", fallback: 128, ignoreEOS: in.IgnoreEOS}
	return w, w.read(in.Prompt, in.InputIDs)
}

// lmDeployChat has the role in every chunk, and blanks in its JSON but for the chunk of usage.
func lmDeployChat() *form {
	chunk := func(delta, more string) text {
		return data(`{"id": $id, "object": "chat.completion.chunk", "created": $created, "model": $model, "choices": [{"index": 0, "delta": ` + delta +
			more + `}], "usage": $orusage}`)
	}
	const counts = `"prompt_tokens_details":{"cached_tokens":$cached},"completion_tokens_details":{"reasoning_tokens":$thoughts}}`
	const usage = `{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,` + counts
	return &form{
		prefix: "chatcmpl-", silent: true, endless: true,
		think: part{chunk: chunk(`{"role": "assistant", "reasoning_content": $text}`, "")},
		words: part{chunk: chunk(`{"role": "assistant", "content": $text}`, "")},
		call: part{
			open: list(chunk(`{"role": "assistant", "tool_calls": [{"id": "chatcmpl-tool-$hex", "index": 0, "type": "function", "function": `+
				`{"name": $tool, "arguments": ""}}]}`, "")),
			chunk: chunk(`{"role": "assistant", "tool_calls": [{"index": 0, "type": "function", "function": {"arguments": $text}}]}`, ""),
			whole: parse(`[{"id":"chatcmpl-tool-$hex","type":"function","function":{"name":$tool,"arguments":$arguments}}]`),
		},
		end:     list(chunk(`{"role": "assistant", "content": ""}`, `, "finish_reason": $finish`)),
		usage:   list(data(`{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"choices":[],"usage":` + usage + `}`)),
		done:    list(parse(doneEvent)),
		broken:  list(data(lmDeployBroken), parse(doneEvent)),
		running: parse(`{"prompt_tokens": $prompt, "total_tokens": $sum, "completion_tokens": $sent}`),
		finish:  finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"object":"chat.completion","created":$created,"model":$model,"choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":$answer,"gen_tokens":null,"reasoning_content":$thinking,"tool_calls":$calls},"logprobs":null,"finish_reason":$finish}],` +
			`"usage":` + usage + `}`),
	}
}

func lmDeployCompletions() *form {
	chunk := func(content, more string) text {
		return data(`{"id": $id, "object": "text_completion", "created": $created, "model": $model, "choices": [{"index": 0, "text": ` + content +
			more + `}], "usage": null}`)
	}
	const usage = `{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,"prompt_tokens_details":{"cached_tokens":$cached},` +
		`"completion_tokens_details":{"reasoning_tokens":0}}`
	return &form{
		prefix: "cmpl-", silent: true, endless: true,
		words:  part{chunk: chunk("$text", "")},
		end:    list(chunk(`""`, `, "finish_reason": $finish`)),
		usage:  list(data(`{"id":$id,"object":"text_completion","created":$created,"model":$model,"choices":[],"usage":` + usage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(data(lmDeployBroken), parse(doneEvent)),
		finish: finishes("stop", "length", "stop"),
		whole: parse(`{"id":$id,"object":"text_completion","created":$created,"model":$model,"choices":[{"index":0,"text":$answer,"logprobs":null,` +
			`"gen_tokens":null,"finish_reason":$finish}],"usage":` + usage + `}`),
	}
}

func lmDeployEncode(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Input *string `json:"input"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if in.Input == nil {
		return nil, missingField("input")
	}
	ids := tokenize(nil, *in.Input)
	return append(number(append(appendIDs([]byte(`{"input_ids":`), ids), `,"length":`...), len(ids)), '}'), nil
}

func lmDeployMetrics(p *meterPage, r *readings) {
	p.labels = `engine="0",model_name=` + r.model
	p.gauge("lmdeploy:num_requests_running", "Number of requests in model execution batches.", r.running)
	p.gauge("lmdeploy:num_requests_waiting", "Number of requests waiting to be processed.", r.waiting)
	p.gauge("lmdeploy:gpu_cache_usage_perc", "GPU KV-cache usage. 1 means 100 percent usage.", r.usage)
	p.gauge("lmdeploy:prefix_cache_hit_rate", "Prefix cache hit rate.", over(float64(r.st.hits), float64(r.st.queried)))
	p.counter("lmdeploy:prompt_tokens", "Number of prefill tokens processed.", valueOf(&r.promptTokens))
	p.counter("lmdeploy:cached_tokens", "Number of cached tokens.", valueOf(&r.cachedTokens))
	p.counter("lmdeploy:generation_tokens", "Number of generation tokens processed.", valueOf(&r.generationTokens))
	p.counter("lmdeploy:request_success", "Count of successfully processed requests.", 0, r.reasonSeries("finished_reason")...)
	p.histogram("lmdeploy:time_to_first_token_seconds", "Histogram of time to first token in seconds.", r.firstToken)
	p.histogram("lmdeploy:iter_token_latency", "Histogram of inter-token latency.", r.betweenTokens)
	p.histogram("lmdeploy:time_per_output_token_seconds", "Histogram of time per output token in seconds.", r.perOutputToken)
	p.histogram("lmdeploy:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", r.whole)
	p.histogram("lmdeploy:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", r.queue)
	p.histogram("lmdeploy:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", r.prefill)
	p.histogram("lmdeploy:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", r.decoding)
	p.help("lmdeploy:backend_config_info", "gauge", "Information of the backend config")
	p.line("lmdeploy:backend_config_info", `quant_policy="0",session_len="`+string(number(nil, r.window))+`",tp="1"`, 1)
}
