package sim

import "encoding/json"

// openAI is OpenAI's own API: chunks are padded, usage is null in all but the last, and nothing can be forced.
func openAI() *dialect {
	h := habits{completion: 16, noForce: true, noIDs: false, nullUsage: true}
	return &dialect{
		fingerprint: "fp_5a0c", refuse: openAIRefusal, guards: func(path string) bool { return below(path, "/v1") },
		routes: []route{
			openAIChat().at("/v1/chat/completions", h.chat), openAICompletions().at("/v1/completions", h.complete),
			openAIResponses().at("/v1/responses", h.responses), embeddings("/v1/embeddings", openAIVectors), rerank("/v1/rerank", vllmRanks),
			rerank("/v2/rerank", cohereRanks),
		},
		pages: []page{tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":$created,"owned_by":"openai"}]}`)},
	}
}

func openAIChat() *form {
	const head = `{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"service_tier":"default","system_fingerprint":$fingerprint,"choices":`
	chunk := func(delta, finish string) text {
		return data(head + `[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]$running}`)
	}
	const usage = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total,"prompt_tokens_details":{"cached_tokens":$cached,` +
		`"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":$thoughts,"audio_tokens":0,"accepted_prediction_tokens":0,` +
		`"rejected_prediction_tokens":0}}`
	return &form{
		prefix: "chatcmpl-", silent: true,
		think: part{chunk: text{}, whole: text{}}, // it is not shown
		words: part{open: list(chunk(`{"role":"assistant","content":"","refusal":null}`, "null")), chunk: chunk(`{"content":$text}`, "null")},
		call: part{
			open: list(chunk(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_$hex","type":"function","function":{"name":$tool,`+
				`"arguments":""}}],"refusal":null}`, "null")),
			chunk: chunk(`{"tool_calls":[{"index":0,"function":{"arguments":$text}}]}`, "null"),
			whole: parse(`"tool_calls":[{"id":"call_$hex","type":"function","function":{"name":$tool,"arguments":$arguments}}],`),
		},
		end:     list(chunk(`{}`, "$finish")),
		usage:   list(data(head + `[],"usage":` + usage + `,"obfuscation":"$padding"}`)),
		done:    list(parse(doneEvent)),
		broken:  list(data(openAIBroken)),
		running: parse(`,"usage":null,"obfuscation":"$padding"`),
		finish:  finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"object":"chat.completion","created":$created,"model":$model,"choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":$answer,$called"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":$finish}],"usage":` + usage +
			`,"service_tier":"default","system_fingerprint":$fingerprint}`),
	}
}

const openAIBroken = `{"error":{"message":"The server had an error processing your request.","type":"server_error","param":null,"code":null}}`

func openAICompletions() *form {
	const head = `{"id":$id,"object":"text_completion","created":$created,"choices":[`
	const usage = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total}`
	return &form{
		prefix: "cmpl-",
		words: part{
			chunk: data(head + `{"text":$text,"index":0,"logprobs":null,"finish_reason":null}],"model":$model$running}`),
			last:  data(head + `{"text":$text,"index":0,"logprobs":null,"finish_reason":$finish}],"model":$model$running}`),
		},
		usage:   list(data(head + `],"model":$model,"usage":` + usage + `}`)),
		done:    list(parse(doneEvent)),
		broken:  list(data(openAIBroken)),
		running: parse(`,"usage":null`),
		finish:  finishes("stop", "length", "stop"),
		whole:   parse(head + `{"text":$answer,"index":0,"logprobs":null,"finish_reason":$finish}],"model":$model,"usage":` + usage + `}`),
	}
}

// openAIRefusal tells of an error in OpenAI's words.
func openAIRefusal(e *apiError) (int, []byte) {
	kind, code, status, message := "invalid_request_error", "", e.status, e.message
	switch e.cause {
	case unknownModel:
		code, message = "model_not_found", "The model `"+e.model+"` does not exist or you do not have access to it."
	case tooLong:
		code = "context_length_exceeded"
	case unauthorized:
		code, message = "invalid_api_key", "Incorrect API key provided."
	case malformedJSON:
		message = "We could not parse the JSON body of your request."
	}
	switch {
	case status == 429:
		kind, code = "rate_limit_error", "rate_limit_exceeded"
	case status >= 500:
		kind = "server_error"
	}
	return status, marshal(map[string]any{"error": openAIError{message, kind, optionalString(e.param), optionalString(code)}})
}

type openAIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func optionalString(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// marshal is for what is not written often.
func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sim: a value that cannot be JSON: " + err.Error())
	}
	return b
}
