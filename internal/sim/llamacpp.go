package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// llamaCpp is llama.cpp's server at 0c1e57098. It has one model, whatever name is asked for.
func llamaCpp() *dialect {
	h := habits{anyModel: true}
	return &dialect{
		fingerprint: "b10500-0c1e57098", refuse: llamaCppRefusal,
		guards: func(path string) bool { return path != "/health" && path != "/v1/health" && path != "/v1/models" }, keyHeader: "x-api-key",
		routes: []route{
			llamaCppCompletion().at("/completion", readLlamaCpp), llamaCppChat().at("/v1/chat/completions", h.chat),
			llamaCppCompletions().at("/v1/completions", h.complete), llamaCppMessages().at("/v1/messages", h.messages),
			openAIResponses().at("/v1/responses", h.responses), embeddings("/v1/embeddings", openAIVectors),
			rerank("/v1/rerank", llamaRanks), rerank("/rerank", llamaRanks),
		},
		pages: []page{
			tells("/health", `{"status":"ok"}`), tells("/v1/health", `{"status":"ok"}`),
			tells("/v1/models", `{"models":[{"name":$model,"model":$model,"modified_at":"","size":"","digest":"","type":"model","description":"",`+
				`"tags":[""],"capabilities":["completion"],"parameters":"","details":{"parent_model":"","format":"gguf","family":"","families":[""],`+
				`"parameter_size":"","quantization_level":""}}],"object":"list","data":[{"id":$model,"aliases":[$model],"tags":[],"object":"model",`+
				`"created":$created,"owned_by":"llamacpp","meta":{"vocab_type":1,"n_vocab":66048,"n_ctx":$limit,"n_ctx_train":$limit,"n_embd":640,`+
				`"n_params":268098176,"size":246587904,"ftype":"Q4_K - Medium"}}]}`),
			tells("/props", `{"default_generation_settings":{"params":{"seed":4294967295,"temperature":0.8,"top_k":40,"top_p":0.95,"min_p":0.05,`+
				`"max_tokens":-1,"n_predict":-1,"ignore_eos":false,"stream":false},"n_ctx":$limit},"total_slots":4,"model_alias":$model,`+
				`"model_ftype":"Q4_K - Medium","model_path":$model,"modalities":{"vision":false,"video":false,"audio":false},`+
				`"endpoint_slots":true,"endpoint_props":false,"endpoint_metrics":true,"ui":false,"chat_template":"","bos_token":"<bos>",`+
				`"eos_token":"<eos>","build_info":"b10500-0c1e57098","is_sleeping":false}`),
			{http.MethodGet, "/slots", jsonKind, llamaCppSlots},
			meters("/metrics", "text/plain; version=0.0.4", llamaCppMetrics),
			asks("/tokenize", llamaCppTokenize), asks("/detokenize", llamaCppDetokenize),
		},
	}
}

// llamaCppRefusal: a body that is no JSON is the server's error.
func llamaCppRefusal(e *apiError) (int, []byte) {
	out := struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Type    string `json:"type"`
		Prompt  int    `json:"n_prompt_tokens,omitempty"`
		Window  int    `json:"n_ctx,omitempty"`
	}{Code: e.status, Message: e.message, Type: "invalid_request_error"}
	switch {
	case e.cause == malformedJSON:
		out.Code, out.Type, out.Message = http.StatusInternalServerError, "server_error", "[json.exception.parse_error.101] parse error: "+e.message
	case e.cause == tooLong:
		out.Type, out.Prompt, out.Window = "exceed_context_size_error", e.prompt, e.window
		out.Message = fmt.Sprintf("request (%d tokens) exceeds the available context size (%d tokens), try increasing it", e.prompt, e.window)
	case e.cause == unauthorized:
		out.Type, out.Message = "authentication_error", "Invalid API Key"
	case e.status >= 500:
		out.Type = "server_error"
	}
	return out.Code, marshal(map[string]any{"error": out})
}

// llamaCppTimings begin to count the generation at the first token.
const llamaCppTimings = `"timings":{"cache_n":$cached,"prompt_n":$uncached,"prompt_ms":$ttftms,"prompt_per_token_ms":$perprompt,` +
	`"prompt_per_second":$promptrate,"predicted_n":$output,"predicted_ms":$decodems,"predicted_per_token_ms":$gapms,"predicted_per_second":$decoderate}`

const llamaCppBroken = `{"error":{"code":500,"message":"Internal server error","type":"server_error"}}`

// llamaCppCompletion is POST /completion: the end token has an event, and the end one more.
func llamaCppCompletion() *form {
	ending := func(content, tokens string) string {
		return `{"index":0,"content":` + content + `,"tokens":` + tokens + `,"id_slot":0,"stop":true,"model":$model,"tokens_predicted":$output,` +
			`"tokens_evaluated":$prompt,"generation_settings":{"seed":4294967295,"temperature":0.0,"n_predict":$limit,"ignore_eos":false,` +
			`"stream":true},"prompt":$input,"has_new_line":false,"truncated":false,"stop_type":$finish,"stopping_word":"","tokens_cached":$held,` +
			llamaCppTimings + `}`
	}
	return &form{
		words:  part{chunk: data(`{"index":0,"content":$text,"tokens":[$latest],"stop":false,"id_slot":-1,"tokens_predicted":$sent,"tokens_evaluated":$prompt}`)},
		end:    list(data(ending(`""`, "[]"))),
		broken: list(data(llamaCppBroken)),
		whole:  parse(ending("$answer", "[]")),
		finish: finishes("eos", "limit", "eos"),
	}
}

// readLlamaCpp reads POST /completion. Without n_predict, or with -1, the model decides how long the answer is.
func readLlamaCpp(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Prompt    json.RawMessage `json:"prompt"`
		NPredict  *int            `json:"n_predict"`
		MaxTokens *int            `json:"max_tokens"`
		Stream    bool            `json:"stream"`
		IgnoreEOS bool            `json:"ignore_eos"`
		Seed      *int64          `json:"seed"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	w := &wish{stream: in.Stream, limit: in.NPredict, limitName: "n_predict", ignoreEOS: in.IgnoreEOS, seed: in.Seed}
	if w.limit == nil {
		w.limit = in.MaxTokens
	}
	if w.limit != nil && *w.limit < 0 {
		w.limit = nil
	}
	return w, w.read(in.Prompt, nil)
}

// llamaCppChat: the role chunk has a content of null, and the timings are in the last chunk.
func llamaCppChat() *form {
	const tail = `"created":$created,"id":$id,"model":$model,"system_fingerprint":$fingerprint,"object":"chat.completion.chunk"`
	chunk := func(delta, finish, more string) text {
		return data(`{"choices":[{"finish_reason":` + finish + `,"index":0,"delta":` + delta + `}],` + tail + more + `}`)
	}
	const usage = `{"completion_tokens":$output,"prompt_tokens":$prompt,"total_tokens":$total,"prompt_tokens_details":{"cached_tokens":$cached}}`
	return &form{
		prefix: "chatcmpl-", silent: true,
		start: list(chunk(`{"role":"assistant","content":null}`, "null", "")),
		think: part{chunk: chunk(`{"reasoning_content":$text}`, "null", ""), whole: parse(`,"reasoning_content":$thinking`)},
		words: part{chunk: chunk(`{"content":$text}`, "null", "")},
		call: part{
			open:  list(chunk(`{"tool_calls":[{"index":0,"id":"$hex","type":"function","function":{"name":$tool,"arguments":""}}]}`, "null", "")),
			chunk: chunk(`{"tool_calls":[{"index":0,"function":{"arguments":$text}}]}`, "null", ""),
			whole: parse(`,"tool_calls":[{"type":"function","function":{"name":$tool,"arguments":$arguments},"id":"$hex"}]`),
		},
		end:     list(chunk(`{}`, "$finish", "$unasked")),
		unasked: parse(`,` + llamaCppTimings),
		usage:   list(data(`{"choices":[],` + tail + `,"usage":` + usage + `,` + llamaCppTimings + `}`)),
		done:    list(parse(doneEvent)),
		broken:  list(data(llamaCppBroken)),
		finish:  finishes("stop", "length", "tool_calls"),
		whole: parse(`{"choices":[{"finish_reason":$finish,"index":0,"message":{"role":"assistant","content":$answer$thought$called}}],` +
			`"created":$created,"model":$model,"system_fingerprint":$fingerprint,"object":"chat.completion","usage":` + usage + `,"id":$id,` +
			llamaCppTimings + `}`),
	}
}

// llamaCppCompletions has usage and timings in the last chunk, asked or not.
func llamaCppCompletions() *form {
	head := func(content, finish string) string {
		return `{"choices":[{"text":` + content + `,"index":0,"logprobs":null,"finish_reason":` + finish +
			`}],"created":$created,"model":$model,"system_fingerprint":$fingerprint,"object":"text_completion",`
	}
	const usage = `"usage":{"completion_tokens":$output,"prompt_tokens":$prompt,"total_tokens":$total,"prompt_tokens_details":{"cached_tokens":$cached}},`
	return &form{
		prefix: "chatcmpl-", silent: true,
		words:  part{chunk: data(head("$text", "null") + `"id":$id}`)},
		end:    list(data(head(`""`, "$finish") + usage + `"id":$id,` + llamaCppTimings + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(data(llamaCppBroken)),
		finish: finishes("stop", "length", "stop"),
		whole:  parse(head("$answer", "$finish") + usage + `"id":$id,` + llamaCppTimings + `}`),
	}
}

// llamaCppMessages is as Anthropic's, without pings, and cached tokens are told at the start.
func llamaCppMessages() *form {
	f := anthropicMessages()
	const input = `"usage":{"cache_read_input_tokens":$cached,"input_tokens":$uncached,"output_tokens":`
	f.prefix = "chatcmpl-"
	f.start = list(named("message_start", `{"type":"message_start","message":{"id":$id,"type":"message","role":"assistant","content":[],`+
		`"model":$model,"stop_reason":null,"stop_sequence":null,`+input+`0}}}`))
	f.words.open = f.words.open[:1]
	f.end[0] = named("message_delta", `{"type":"message_delta","delta":{"stop_reason":$finish,"stop_sequence":null},"usage":{"output_tokens":$output}}`)
	f.broken = list(named("error", llamaCppBroken))
	f.whole = parse(`{"id":$id,"type":"message","role":"assistant","content":[$parts],"model":$model,"stop_reason":$finish,"stop_sequence":null,` +
		input + `$output}}`)
	return f
}

func llamaCppSlots(s *Server, _ *request) ([]byte, *apiError) {
	running := int(s.met.running.Load())
	var slots []map[string]any
	for i := range 4 {
		slots = append(slots, map[string]any{"id": i, "n_ctx": s.cfg.MaxModelLen, "speculative": false, "is_processing": i < running,
			"n_prompt_tokens_processed": 0, "next_token": []map[string]any{{"has_next_token": false, "n_remain": -1, "n_decoded": 0}}})
	}
	return marshal(slots), nil
}

func llamaCppTokenize(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Content    string `json:"content"`
		WithPieces bool   `json:"with_pieces"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	ids := tokenize(nil, in.Content)
	if !in.WithPieces {
		return append(appendIDs([]byte(`{"tokens":`), ids), '}'), nil
	}
	pieces := []map[string]any{}
	for _, id := range ids {
		pieces = append(pieces, map[string]any{"id": id, "piece": string(appendToken(nil, id))})
	}
	return marshal(map[string]any{"tokens": pieces}), nil
}

func llamaCppDetokenize(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Tokens json.RawMessage `json:"tokens"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if len(in.Tokens) == 0 || in.Tokens[0] != '[' {
		return nil, missingField("tokens")
	}
	ids, err := tokenList(in.Tokens)
	if err != nil {
		return nil, err
	}
	return append(appendQuoted([]byte(`{"content":`), detokenize(ids)), '}'), nil
}

func llamaCppMetrics(p *meterPage, r *readings) {
	p.created = ""
	prompt, decode := r.prefill.total(), r.decoding.total()
	computed, generated := valueOf(&r.promptTokens)-valueOf(&r.cachedTokens), valueOf(&r.generationTokens)
	p.counter("llamacpp:prompt_tokens", "Number of prompt tokens processed, excluding cached tokens", computed)
	p.counter("llamacpp:prompt_tokens_cached", "Number of prompt tokens reused from the cache", valueOf(&r.cachedTokens))
	p.counter("llamacpp:prompt_seconds", "Total time spent processing prompts", prompt)
	p.counter("llamacpp:tokens_predicted", "Number of generation tokens processed", generated)
	p.counter("llamacpp:tokens_predicted_seconds", "Total time spent generating tokens", decode)
	p.counter("llamacpp:spec_decode_num_draft_tokens", "Speculative: Total draft tokens generated", float64(r.st.draftTokens))
	p.counter("llamacpp:spec_decode_num_accepted_tokens", "Speculative: Total draft tokens accepted by the target model", float64(r.st.acceptTokens))
	p.gauge("llamacpp:prompt_tokens_seconds", "Average prompt throughput in tokens/s", over(computed, prompt))
	p.gauge("llamacpp:predicted_tokens_seconds", "Average generation throughput in tokens/s", over(generated, decode))
	p.gauge("llamacpp:requests_processing", "Number of requests processing", r.running)
	p.gauge("llamacpp:requests_deferred", "Number of requests deferred", r.waiting)
}

// over divides, and is 0 where there is nothing to divide by.
func over(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
