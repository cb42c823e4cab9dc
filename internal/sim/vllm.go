package sim

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// vllmFront are the endpoints that calibrate clients: vLLM's chat and completions, written by hand.
func vllmFront() []route {
	h := habits{completion: 16}
	tools := vllmToolForm()
	speak := func(g *generation, _ *wish) speaker {
		if g.call != "" {
			return tools.speak(g)
		}
		return newEmitter(g)
	}
	return []route{
		{path: "/v1/chat/completions", prefix: "chatcmpl-", stream: eventStreamUTF8, read: h.chat, speak: speak},
		{path: "/v1/completions", prefix: "cmpl-", stream: eventStreamUTF8, read: h.complete, speak: speak},
	}
}

// vllmPages are what vLLM tells of itself.
func vllmPages(owner, version string) []page {
	return []page{
		alive("/health"), alive("/ping"),
		tells("/version", `{"version":"`+version+`"}`),
		tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":$created,"owned_by":"`+owner+
			`","root":$model,"parent":null,"max_model_len":$limit,"permission":[{"id":"modelperm-prony-sim","object":"model_permission",`+
			`"created":$created,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,`+
			`"allow_view":true,"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}]}`),
		{http.MethodGet, "/load", jsonKind, func(s *Server, _ *request) ([]byte, *apiError) {
			return append(strconv.AppendInt([]byte(`{"server_load":`), s.loaded.Load(), 10), '}'), nil
		}},
		meters("/metrics", "text/plain; version=1.0.0; charset=utf-8", vllmMetrics),
		asks("/tokenize", (*Server).tokenizeEndpoint),
		asks("/detokenize", (*Server).detokenizeEndpoint),
	}
}

// pronySim is vLLM's chat and completions under a name of its own.
func pronySim() *dialect {
	return &dialect{
		fingerprint: fingerprint, refuse: vllmRefusal, routes: vllmFront(), pages: vllmPages("prony-sim", "0.32.0"),
		guards: func(path string) bool { return below(path, "/v1") },
	}
}

// vLLM is vLLM 0.32.
func vLLM() *dialect {
	h := habits{completion: 16}
	d := &dialect{
		fingerprint: "vllm-0.32.0-simulated", refuse: vllmRefusal, pages: vllmPages("vllm", "0.32.0"),
		guards: func(path string) bool { return below(path, "/v1", "/v2", "/inference", "/cohere") },
		routes: append(vllmFront(),
			vllmResponses().at("/v1/responses", h.responses), vllmMessages().at("/v1/messages", h.messages),
			vllmGenerate().at("/inference/v1/generate", readInference), embeddings("/v1/embeddings", openAIVectors),
			rerank("/rerank", vllmRanks), rerank("/v1/rerank", vllmRanks), rerank("/v2/rerank", vllmRanks)),
	}
	for i := range d.routes {
		if d.routes[i].stream == eventStream {
			d.routes[i].stream = eventStreamUTF8
		}
	}
	return d
}

// nim is NIM 2.x: vLLM behind a layer of management.
func nim() *dialect {
	d := vLLM()
	d.pages = append(d.pages,
		alive("/v1/health/live"),
		tells("/v1/health/ready", `{"object":"health-response","message":"Service is ready.","status":"ready"}`),
		tells("/v1/version", `{"release":"2.1.6","api":"2.1.6"}`),
		tells("/v1/metadata", `{"version":"2.1.6","modelInfo":[{"modelUrl":$model,"shortName":$model}],"profile":"vllm-fp8-tp1"}`),
		tells("/v1/license", `{"name":"simulated","content":""}`),
		meters("/v1/metrics", "text/plain; version=1.0.0; charset=utf-8", vllmMetrics))
	return d
}

// vllmToolForm is a chat that calls a tool.
func vllmToolForm() *form {
	chunk := func(delta, rest string) text {
		return data(`{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"choices":[{"index":0,"delta":` + delta +
			`,"logprobs":null,"finish_reason":` + rest)
	}
	const usage = `{"prompt_tokens":$prompt,"total_tokens":$sum,"completion_tokens":$sent`
	call := func(head, rest string) text {
		return chunk(`{"tool_calls":[{`+head+`"function":{"arguments":$text},"index":0}]}`, rest)
	}
	return &form{
		start: list(chunk(`{"role":"assistant","content":""}`, `null}]$running,"prompt_token_ids":null,"prompt_text":null}`)),
		think: part{chunk: chunk(`{"reasoning":$text}`, `null,"token_ids":$idsasked}]$running}`), whole: parse("$thinking")},
		call: part{
			open: list(chunk(`{"tool_calls":[{"id":"chatcmpl-tool-$hex","type":"function","index":0,"function":{"name":$tool}}]}`,
				`null,"token_ids":null}]}`)),
			chunk: call("", `null,"token_ids":$idsasked}]$running}`), last: call("", `$finish,"stop_reason":null,"token_ids":$idsasked}]$running}`),
			whole: parse(`,"tool_calls":[{"id":"chatcmpl-tool-$hex","type":"function","function":{"name":$tool,"arguments":$arguments}}]`),
		},
		usage: list(data(`{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"choices":[],"usage":` + usage +
			`},"system_fingerprint":$fingerprint}`)),
		done:    list(parse(doneEvent)),
		broken:  list(parse(errorEvent), parse(doneEvent)),
		running: parse(`,"usage":` + usage + `,"completion_tokens_details":$details}`),
		finish:  finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"object":"chat.completion","created":$created,"model":$model,"choices":[{"index":0,"message":{"role":"assistant",` +
			`"content":$answer,"refusal":null,"annotations":null,"audio":null,"function_call":null$called,"reasoning":$thinking},"logprobs":null,` +
			`"finish_reason":$finish,"stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,` +
			`"system_fingerprint":$fingerprint,"usage":{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output,` +
			`"prompt_tokens_details":null,"completion_tokens_details":$details},"prompt_logprobs":null,"prompt_token_ids":null,` +
			`"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`),
	}
}

// vllmMessages is POST /v1/messages: no ping, a delta a token, and message_delta repeats the prompt's tokens.
func vllmMessages() *form {
	const usage = `"usage":{"input_tokens":$prompt,"output_tokens":$output}`
	block := func(open, delta string) part {
		return part{
			open:  list(named("content_block_start", `{"type":"content_block_start","content_block":`+open+`,"index":$block}`)),
			chunk: named("content_block_delta", `{"type":"content_block_delta","delta":`+delta+`,"index":$block}`),
			close: list(named("content_block_stop", `{"type":"content_block_stop","index":$block}`)),
		}
	}
	f := &form{
		prefix: "chatcmpl-", silent: true,
		start: list(named("message_start", `{"type":"message_start","message":{"id":$id,"type":"message","role":"assistant","content":[],`+
			`"model":$model,"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":$prompt,"output_tokens":0}}}`)),
		words: block(`{"type":"text","text":""}`, `{"type":"text_delta","text":$text}`),
		think: block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":$text}`),
		call: block(`{"type":"tool_use","id":"chatcmpl-tool-$hex","name":$tool,"input":{}}`,
			`{"type":"input_json_delta","partial_json":$text}`),
		end: list(
			named("message_delta", `{"type":"message_delta","delta":{"stop_reason":$finish,"stop_sequence":null},`+usage+`}`),
			named("message_stop", `{"type":"message_stop"}`)),
		broken: list(named("error", `{"type":"error","error":{"type":"internal_error","message":"Internal server error"}}`)),
		whole: parse(`{"id":$id,"type":"message","role":"assistant","content":[$parts],"model":$model,"stop_reason":$finish,` +
			`"stop_sequence":null,` + usage + `}`),
		finish: finishes("end_turn", "max_tokens", "tool_use"),
	}
	f.words.whole = parse(`{"type":"text","text":$sofar}`)
	f.think.whole = parse(`{"type":"thinking","thinking":$sofar,"signature":""}`)
	f.call.whole = parse(`{"type":"tool_use","id":"chatcmpl-tool-$hex","name":$tool,"input":$object}`)
	return f
}

// vllmGenerate is POST /inference/v1/generate: token ids in, token ids out.
func vllmGenerate() *form {
	const choice = `"stop_reason":null,"token_ids":$ids,"routed_experts":null,"sampling_mask":null,"weight_versions":null,"logprobs":null}]`
	const usage = `{"prompt_tokens":$prompt,"total_tokens":$sum,"completion_tokens":$sent}`
	const running = `$orusage,$inputonce"output_mode":"tokens","choices":[{"index":0,"finish_reason":`
	return &form{
		prefix: "generate-tokens-",
		words: part{
			chunk: data(`{"request_id":$id,"usage":` + running + `null,` + choice + `}`),
			last:  data(`{"request_id":$id,"usage":` + running + `$finish,` + choice + `}`),
		},
		running: parse(usage),
		usage:   list(data(`{"request_id":$id,"usage":` + usage + `,"output_mode":"tokens","choices":[]}`)),
		done:    list(parse(doneEvent)),
		broken:  list(parse(errorEvent), parse(doneEvent)),
		finish:  finishes("stop", "length", "stop"),
		whole: parse(`{"request_id":$id,"usage":{"prompt_tokens":$prompt,"total_tokens":$total,"completion_tokens":$output},` +
			`"prompt_token_ids":null,"output_mode":"tokens","choices":[{"index":0,"finish_reason":$finish,` + choice + `}`),
	}
}

// readInference reads POST /inference/v1/generate.
func readInference(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Model    string          `json:"model"`
		TokenIDs json.RawMessage `json:"token_ids"`
		Stream   bool            `json:"stream"`
		Options  *struct {
			Usage      bool `json:"include_usage"`
			Continuous bool `json:"continuous_usage_stats"`
		} `json:"stream_options"`
		Sampling struct {
			MaxTokens *int   `json:"max_tokens"`
			MinTokens int    `json:"min_tokens"`
			IgnoreEOS bool   `json:"ignore_eos"`
			Seed      *int64 `json:"seed"`
		} `json:"sampling_params"`
		CacheSalt string `json:"cache_salt"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	if len(in.TokenIDs) == 0 || in.TokenIDs[0] != '[' {
		return nil, missingField("token_ids")
	}
	ids, err := tokenList(in.TokenIDs)
	if err != nil {
		return nil, err
	}
	w := &wish{prompt: ids, exact: true, stream: in.Stream, limit: in.Sampling.MaxTokens, limitName: "max_tokens", fallback: 16,
		min: in.Sampling.MinTokens, ignoreEOS: in.Sampling.IgnoreEOS, seed: in.Sampling.Seed, salt: in.CacheSalt}
	if in.Options != nil {
		w.usage, w.continuous = in.Options.Usage, in.Options.Usage && in.Options.Continuous
	}
	return w, nil
}
