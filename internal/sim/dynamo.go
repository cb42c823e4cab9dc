package sim

import "encoding/json"

// dynamo is the frontend of NVIDIA Dynamo 1.6. Annotations come as comments, before any token, and an error is a comment too.
func dynamo() *dialect {
	h := habits{ids: func(in *asking) json.RawMessage {
		if in.Nvext == nil {
			return nil
		}
		return in.Nvext.TokenData
	}}
	d := &dialect{
		fingerprint: "dynamo", refuse: dynamoRefusal, guards: func(string) bool { return false },
		routes: []route{
			dynamoChat(false).at("/v1/chat/completions", h.chat), dynamoCompletions(false).at("/v1/completions", h.complete),
			openAIResponses().at("/v1/responses", h.responses), embeddings("/v1/embeddings", openAIVectors),
		},
		pages: []page{
			tells("/health", `{"status":"healthy","endpoints":["dyn://dynamo.backend.generate"],"instances":[{"component":"backend","endpoint":"generate",`+
				`"namespace":"dynamo","instance_id":1}]}`),
			tells("/live", `{"status":"live","message":"Service is live"}`),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"object","created":$created,"owned_by":"nvidia"}]}`),
			tells("/openapi.json", `{"openapi":"3.1.0","info":{"title":"NVIDIA Dynamo OpenAI Frontend","version":"1.6.1"},"paths":{}}`),
			meters("/metrics", "text/plain; version=0.0.4", dynamoMetrics),
		},
	}
	for i, form := range []func(timing bool) *form{dynamoChat, dynamoCompletions} {
		timed, untimed := form(true), form(false)
		d.routes[i].speak = func(g *generation, w *wish) speaker {
			f := *untimed
			if w.reason {
				f = *timed
			}
			f.early = dynamoNotes(w.notes)
			return f.speak(g)
		}
	}
	return d
}

// dynamoNotes are the annotations that were asked for: events of a name and a comment, without data.
func dynamoNotes(names []string) (out []text) {
	for _, name := range names {
		switch name {
		case "formatted_prompt":
			out = append(out, parse("event: formatted_prompt\n: $input\n\n"))
		case "token_ids":
			out = append(out, parse("event: token_ids\n: $inputids\n\n"))
		}
	}
	return out
}

func dynamoRefusal(e *apiError) (int, []byte) {
	message := e.message
	if e.cause == unknownModel {
		message = "Model not found: " + e.model
	}
	return e.status, marshal(struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    int    `json:"code"`
	}{message, e.kind, e.status})
}

const (
	dynamoUsage  = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total,"prompt_tokens_details":{"cached_tokens":$cached}}`
	dynamoTiming = `"nvext":{"worker_id":{"prefill_worker_id":1,"prefill_dp_rank":0,"decode_worker_id":2,"decode_dp_rank":0},` +
		`"timing":{"ttft_ms":$ttftms,"itl_ms":$gapms}}`
	dynamoBroken = "event: error\n: Stream ended before generation completed\n\n"
)

func dynamoTold(timing bool) string {
	if timing {
		return `,` + dynamoTiming
	}
	return ""
}

// dynamoChat: the first chunk has the role and the first token.
func dynamoChat(timing bool) *form {
	told := dynamoTold(timing)
	chunk := func(delta, finish, more string) text {
		return data(`{"id":$id,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish +
			`,"logprobs":null}],"created":$created,"model":$model,"object":"chat.completion.chunk","usage":null` + more + `}`)
	}
	const content, call = `{"content":$text$roleonce}`, `{"tool_calls":[{"index":0,"function":{"arguments":$text}}]}`
	return &form{
		prefix: "chatcmpl-",
		think:  part{chunk: chunk(`{"reasoning_content":$text$roleonce}`, "null", "")},
		words:  part{chunk: chunk(content, "null", ""), last: chunk(content, "$finish", told)},
		call: part{
			open: list(chunk(`{"tool_calls":[{"index":0,"id":"call-$hex","type":"function","function":{"name":$tool,"arguments":""}}]$roleonce}`,
				"null", "")),
			chunk: chunk(call, "null", ""), last: chunk(call, "$finish", told),
			whole: parse(`,"tool_calls":[{"id":"call-$hex","type":"function","function":{"name":$tool,"arguments":$arguments}}]`),
		},
		usage:  list(data(`{"id":$id,"choices":[],"created":$created,"model":$model,"object":"chat.completion.chunk","usage":` + dynamoUsage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(parse(dynamoBroken)),
		finish: finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"choices":[{"index":0,"message":{"content":$answer$called,"role":"assistant","reasoning_content":$thinking},` +
			`"finish_reason":$finish,"logprobs":null}],"created":$created,"model":$model,"object":"chat.completion","usage":` + dynamoUsage +
			told + `}`),
	}
}

func dynamoCompletions(timing bool) *form {
	told := dynamoTold(timing)
	chunk := func(finish, more string) text {
		return data(`{"id":$id,"choices":[{"text":$text,"index":0,"finish_reason":` + finish +
			`,"logprobs":null}],"created":$created,"model":$model,"object":"text_completion","usage":null` + more + `}`)
	}
	return &form{
		prefix: "cmpl-",
		words:  part{chunk: chunk("null", ""), last: chunk("$finish", told)},
		usage:  list(data(`{"id":$id,"choices":[],"created":$created,"model":$model,"object":"text_completion","usage":` + dynamoUsage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(parse(dynamoBroken)),
		finish: finishes("stop", "length", "stop"),
		whole: parse(`{"id":$id,"choices":[{"text":$answer,"index":0,"finish_reason":$finish,"logprobs":null}],"created":$created,` +
			`"model":$model,"object":"text_completion","usage":` + dynamoUsage + told + `}`),
	}
}

func dynamoMetrics(p *meterPage, r *readings) {
	p.created, p.labels = "", "model="+r.model
	const f = "dynamo_frontend_"
	p.gauge(f+"inflight_requests", "Number of inflight requests", r.running)
	p.gauge(f+"active_requests", "Number of active requests", r.running)
	p.gauge(f+"queued_requests", "Number of requests waiting", r.waiting)
	p.counter(f+"requests", "Total number of LLM requests processed", 0,
		series{`endpoint="chat_completions",status="success"`, r.succeeded()}, series{`endpoint="chat_completions",status="error"`, r.aborted()})
	p.gauge(f+"disconnected_clients", "Number of clients that went away", r.aborted())
	p.counter(f+"output_tokens", "Total number of output tokens generated", valueOf(&r.generationTokens))
	p.histogram(f+"input_sequence_tokens", "Input sequence length in tokens", r.promptLength)
	p.histogram(f+"output_sequence_tokens", "Output sequence length in tokens", r.outputLength)
	p.histogram(f+"time_to_first_token_seconds", "Time to first token in seconds", r.firstToken)
	p.histogram(f+"inter_token_latency_seconds", "Inter-token latency in seconds", r.betweenTokens)
	p.histogram(f+"request_duration_seconds", "Duration of LLM requests", r.whole)
	p.gauge(f+"model_context_length", "Maximum context length of the model", float64(r.window))
	blocks, size, seqs, batched := 0, 16, 0, 0
	if e := r.engine; e != nil {
		blocks, size, seqs, batched = e.blocks, e.blockSize, e.maxSeqs, e.budget
	}
	p.gauge(f+"model_kv_cache_block_size", "KV cache block size", float64(size))
	p.gauge(f+"model_total_kv_blocks", "Total KV blocks", float64(blocks))
	p.gauge(f+"model_max_num_seqs", "Maximum number of sequences", float64(seqs))
	p.gauge(f+"model_max_num_batched_tokens", "Maximum number of batched tokens", float64(batched))
	p.gauge(f+"worker_active_decode_blocks", "Active KV blocks of a worker", float64(r.st.blocks))
}
