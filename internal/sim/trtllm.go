package sim

import (
	"encoding/json"
	"strconv"
)

// trtLLM is TensorRT-LLM's trtllm-serve. An error in the middle of a stream drops the connection.
func trtLLM() *dialect {
	h := habits{countAll: true, ids: func(in *asking) json.RawMessage { return in.PromptTokenIDs }}
	return &dialect{
		fingerprint: "trtllm", refuse: func(e *apiError) (int, []byte) { return e.status, flatError(e) }, guards: func(string) bool { return false },
		routes: []route{
			trtLLMChat().at("/v1/chat/completions", allowed(h.chat)), trtLLMCompletions().at("/v1/completions", allowed(h.complete)),
		},
		pages: []page{
			alive("/health"), tells("/version", `{"version":"1.2.0"}`),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":$created,"owned_by":"tensorrt_llm"}]}`),
			tells("/server_info", `{"disaggregated_params":null}`), tells("/metrics", `[]`), tells("/perf_metrics", `[]`),
			meters("/prometheus/metrics", "text/plain; version=1.0.0; charset=utf-8", trtLLMMetrics),
		},
	}
}

// allowed refuses fields that only vLLM has: TensorRT-LLM takes no field that it does not know.
func allowed(read func(s *Server, req *request) (*wish, *apiError)) func(s *Server, req *request) (*wish, *apiError) {
	return func(s *Server, req *request) (*wish, *apiError) {
		for _, name := range []string{"return_token_ids", "priority", "request_id"} {
			if has(req.body, name) {
				return nil, &apiError{status: 400, kind: "BadRequestError",
					message: "[{'type': 'extra_forbidden', 'loc': ('body', '" + name + "'), 'msg': 'Extra inputs are not permitted'}]"}
			}
		}
		return read(s, req)
	}
}

const trtLLMUsage = `{"prompt_tokens":$prompt,"total_tokens":$sum,"completion_tokens":$sent,"prompt_tokens_details":{"cached_tokens":$cached}}`

// trtLLMChat leaves fields out that are null. The role chunk has a blank after its JSON.
func trtLLMChat() *form {
	const head = `{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"choices":`
	chunk := func(delta, rest string) text {
		return data(head + `[{"index":0,"delta":` + delta + `,"avg_decoded_tokens_per_iter":1.0` + rest + `}]$running}`)
	}
	const (
		content = `{"content":$text,"reasoning_content":""}`
		call    = `{"tool_calls":[{"index":0,"type":"function","function":{"arguments":$text}}]}`
		finish  = `,"finish_reason":$finish`
	)
	return &form{
		prefix: "chatcmpl-",
		start:  list(parse("data: " + head + `[{"index":0,"delta":{"role":"assistant"}}]$running} ` + "\n\n")),
		think:  part{chunk: chunk(`{"content":"","reasoning_content":$text}`, "")},
		words:  part{chunk: chunk(content, ""), last: chunk(content, finish)},
		call: part{
			open:  list(chunk(`{"tool_calls":[{"index":0,"id":"chatcmpl-tool-$hex","type":"function","function":{"name":$tool,"arguments":""}}]}`, "")),
			chunk: chunk(call, ""), last: chunk(call, finish),
			whole: parse(`{"id":"chatcmpl-tool-$hex","type":"function","function":{"name":$tool,"arguments":$arguments}}`),
		},
		usage:   list(data(head + `[],"usage":` + trtLLMUsage + `}`)),
		done:    list(parse(doneEvent)),
		running: parse(`,"usage":` + trtLLMUsage),
		finish:  finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"object":"chat.completion","created":$created,"model":$model,"choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":$answer,"reasoning_content":$thinking,"reasoning":null,"tool_calls":[$called]},"logprobs":null,"finish_reason":$finish,` +
			`"stop_reason":null,"mm_embedding_handle":null,"disaggregated_params":null,"avg_decoded_tokens_per_iter":1.0}],"usage":` + trtLLMUsage +
			`,"prompt_token_ids":null}`),
	}
}

// trtLLMCompletions has ids in place of the text when detokenize is false.
func trtLLMCompletions() *form {
	const head = `{"id":$id,"object":"text_completion","created":$created,"model":$model,"choices":`
	choice := func(finish string) string {
		return `{"index":0,"text":$unlessids,"token_ids":$idsasked,"logprobs":null,"finish_reason":` + finish +
			`,"stop_reason":null,"avg_decoded_tokens_per_iter":1.0}`
	}
	return &form{
		prefix:  "cmpl-",
		words:   part{chunk: data(head + `[` + choice("null") + `],"usage":$orusage}`), last: data(head + `[` + choice("$finish") + `],"usage":$orusage}`)},
		usage:   list(data(head + `[],"usage":` + trtLLMUsage + `}`)),
		done:    list(parse(doneEvent)),
		running: parse(trtLLMUsage),
		finish:  finishes("stop", "length", "stop"),
		whole: parse(head + `[{"index":0,"text":$unlessids,"token_ids":$idsasked,"logprobs":null,"context_logits":null,"finish_reason":$finish,` +
			`"stop_reason":null,"disaggregated_params":null,"avg_decoded_tokens_per_iter":1.0}],"usage":` + trtLLMUsage + `}`),
	}
}

func trtLLMMetrics(p *meterPage, r *readings) {
	p.labels = `engine_type="trtllm",model_name=` + r.model
	p.gauge("trtllm_num_requests_running", "Number of requests running.", r.running)
	p.gauge("trtllm_num_requests_waiting", "Number of requests waiting.", r.waiting)
	p.gauge("trtllm_kv_cache_utilization", "KV cache utilization.", r.usage)
	p.counter("trtllm_prompt_tokens", "Prompt tokens processed.", valueOf(&r.promptTokens))
	p.counter("trtllm_prompt_cached_tokens", "Prompt tokens found in the cache.", valueOf(&r.cachedTokens))
	p.counter("trtllm_generation_tokens", "Tokens generated.", valueOf(&r.generationTokens))
	p.counter("trtllm_request_success", "Count of successfully processed requests.", 0, r.reasonSeries("finished_reason")...)
	p.counter("trtllm_request_error", "Count of failed requests.", r.aborted())
	p.histogram("trtllm_time_to_first_token_seconds", "Histogram of time to first token in seconds.", r.firstToken)
	p.histogram("trtllm_time_per_output_token_seconds", "Histogram of time per output token in seconds.", r.perOutputToken)
	p.histogram("trtllm_e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", r.whole)
	p.histogram("trtllm_request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", r.queue)
	p.histogram("trtllm_request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", r.prefill)
	p.histogram("trtllm_request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", r.decoding)
	p.help("trtllm_model_config_info", "gauge", "Information of the model")
	p.line("trtllm_model_config_info", p.with(`dtype="bfloat16",gpu_type="simulated",max_model_len="`+strconv.Itoa(r.window)+`",model=`+r.model+
		`,quantization="none"`), 1)
	p.help("trtllm_parallel_config_info", "gauge", "Information of the parallelism")
	p.line("trtllm_parallel_config_info", p.with(`expert_parallel_size="1",gpu_count="1",pipeline_parallel_size="1",tensor_parallel_size="1"`), 1)
}
