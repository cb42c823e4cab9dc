package sim

import "fmt"

// anthropic is Anthropic's own API.
func anthropic() *dialect {
	h := habits{}
	return &dialect{
		fingerprint: "anthropic", refuse: anthropicRefusal, guards: func(path string) bool { return below(path, "/v1") }, keyHeader: "x-api-key",
		routes: []route{anthropicMessages().at("/v1/messages", h.messages)},
		pages: []page{
			tells("/v1/models", `{"data":[{"type":"model","id":$model,"display_name":$model,"created_at":$now}],"has_more":false,`+
				`"first_id":$model,"last_id":$model}`),
			asks("/v1/messages/count_tokens", countTokens),
		},
	}
}

// anthropicKinds are the words for statuses.
var anthropicKinds = map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 529: "overloaded_error"}

func anthropicRefusal(e *apiError) (int, []byte) {
	kind, message := anthropicKinds[e.status], e.message
	if kind == "" {
		kind = "api_error"
	}
	switch e.cause {
	case unknownModel:
		message = "model: " + e.model
	case tooLong:
		message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", e.prompt, e.window)
	case unauthorized:
		message = "invalid x-api-key"
	case malformedJSON:
		message = "The request body is not valid JSON"
	}
	return e.status, marshal(struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		ID string `json:"request_id"`
	}{"error", struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}{kind, message}, "req_simulated"})
}

// countTokens answers POST /v1/messages/count_tokens.
func countTokens(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Model    string         `json:"model"`
		Messages *[]messageBody `json:"messages"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	ids, err := chatPrompt(in.Messages)
	if err != nil {
		return nil, err
	}
	return append(number([]byte(`{"input_tokens":`), len(ids)), '}'), nil
}

// anthropicMessages: a ping follows the first block's start, and cached tokens are outside the input tokens.
func anthropicMessages() *form {
	block := func(open, delta string) part {
		return part{
			open:  list(named("content_block_start", `{"type":"content_block_start","index":$block,"content_block":`+open+`}`)),
			chunk: named("content_block_delta", `{"type":"content_block_delta","index":$block,"delta":`+delta+`}`),
			close: list(named("content_block_stop", `{"type":"content_block_stop","index":$block}`)),
		}
	}
	const input = `"input_tokens":$uncached,"cache_creation_input_tokens":0,"cache_read_input_tokens":$cached,`
	f := &form{
		prefix: "msg_", silent: true,
		start: list(named("message_start", `{"type":"message_start","message":{"id":$id,"type":"message","role":"assistant","model":$model,`+
			`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{`+input+`"output_tokens":1,"service_tier":"standard"}}}`)),
		words: block(`{"type":"text","text":""}`, `{"type":"text_delta","text":$text}`),
		think: block(`{"type":"thinking","thinking":"","signature":""}`, `{"type":"thinking_delta","thinking":$text}`),
		call:  block(`{"type":"tool_use","id":"toolu_$hex","name":$tool,"input":{}}`, `{"type":"input_json_delta","partial_json":$text}`),
		end: list(
			named("message_delta", `{"type":"message_delta","delta":{"stop_reason":$finish,"stop_sequence":null},"usage":{"output_tokens":$output$thinkingtokens}}`),
			named("message_stop", `{"type":"message_stop"}`)),
		broken: list(named("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_$hex"}`)),
		whole: parse(`{"id":$id,"type":"message","role":"assistant","model":$model,"content":[$parts],"stop_reason":$finish,"stop_sequence":null,` +
			`"usage":{` + input + `"output_tokens":$output,"service_tier":"standard"}}`),
		finish: finishes("end_turn", "max_tokens", "tool_use"),
	}
	f.words.open = append(f.words.open, named("ping", `{"type":"ping"}`))
	f.think.close = append(list(named("content_block_delta",
		`{"type":"content_block_delta","index":$block,"delta":{"type":"signature_delta","signature":"c2ltdWxhdGVk"}}`)), f.think.close...)
	f.call.open = append(f.call.open, named("content_block_delta",
		`{"type":"content_block_delta","index":$block,"delta":{"type":"input_json_delta","partial_json":""}}`))
	f.words.whole = parse(`{"type":"text","text":$sofar}`)
	f.think.whole = parse(`{"type":"thinking","thinking":$sofar,"signature":"c2ltdWxhdGVk"}`)
	f.call.whole = parse(`{"type":"tool_use","id":"toolu_$hex","name":$tool,"input":$object}`)
	return f
}
