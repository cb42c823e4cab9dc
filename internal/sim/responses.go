package sim

// The Responses API: OpenAI's, and vLLM's, which has the keys in another order and tells of a length stop in the status alone.

// openAIResponses is POST /v1/responses of OpenAI. Two events come before any computation.
func openAIResponses() *form {
	response := func(status, details, output, usage string) string {
		return `{"id":"resp_$hex","object":"response","created_at":$created,"status":` + status + `,"error":null,"incomplete_details":` + details +
			`,"instructions":null,"max_output_tokens":null,"model":$model,"output":[` + output + `],"parallel_tool_calls":true,` +
			`"previous_response_id":null,"store":false,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled",` +
			`"usage":` + usage + `,"metadata":{}}`
	}
	event := func(kind, rest string) text {
		return named(kind, `{"type":"`+kind+`","sequence_number":$seq,`+rest+`}`)
	}
	const usage = `{"input_tokens":$prompt,"input_tokens_details":{"cached_tokens":$cached,"cache_write_tokens":0},"output_tokens":$output,` +
		`"output_tokens_details":{"reasoning_tokens":$thoughts},"total_tokens":$total}`
	const message = `{"id":"msg_$hex","type":"message","status":$complete,"role":"assistant","content":[{"type":"output_text","text":$sofar,` +
		`"annotations":[],"logprobs":[]}]}`
	const reasoning = `{"id":"rs_$hex","type":"reasoning","summary":[{"type":"summary_text","text":$sofar}]}`
	const call = `{"id":"fc_$hex","type":"function_call","status":"completed","arguments":$sofar,"call_id":"call_$hex","name":$tool}`
	const inText = `"item_id":"msg_$hex","output_index":$block,"content_index":0,`
	const inThought = `"item_id":"rs_$hex","output_index":$block,"summary_index":0,`
	const inCall = `"item_id":"fc_$hex","output_index":$block,`
	began := response(`"in_progress"`, "null", "", "null")
	ended := response("$complete", "$why", "$parts", usage)
	return &form{
		prefix: "resp_", silent: true,
		early: list(event("response.created", `"response":`+began), event("response.in_progress", `"response":`+began)),
		think: part{
			open: list(event("response.output_item.added", `"output_index":$block,"item":{"id":"rs_$hex","type":"reasoning","summary":[]}`),
				event("response.reasoning_summary_part.added", inThought+`"part":{"type":"summary_text","text":""}`)),
			chunk: event("response.reasoning_summary_text.delta", inThought+`"delta":$text`),
			close: list(event("response.reasoning_summary_text.done", inThought+`"text":$sofar`),
				event("response.reasoning_summary_part.done", inThought+`"part":{"type":"summary_text","text":$sofar}`),
				event("response.output_item.done", `"output_index":$block,"item":`+reasoning)),
			whole: parse(reasoning),
		},
		words: part{
			open: list(event("response.output_item.added",
				`"output_index":$block,"item":{"id":"msg_$hex","type":"message","status":"in_progress","role":"assistant","content":[]}`),
				event("response.content_part.added", inText+`"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`)),
			chunk: event("response.output_text.delta", inText+`"delta":$text,"logprobs":[],"obfuscation":"$padding"`),
			close: list(event("response.output_text.done", inText+`"text":$sofar,"logprobs":[]`),
				event("response.content_part.done", inText+`"part":{"type":"output_text","text":$sofar,"annotations":[],"logprobs":[]}`),
				event("response.output_item.done", `"output_index":$block,"item":`+message)),
			whole: parse(message),
		},
		call: part{
			open: list(event("response.output_item.added", `"output_index":$block,"item":{"id":"fc_$hex","type":"function_call",`+
				`"status":"in_progress","arguments":"","call_id":"call_$hex","name":$tool}`)),
			chunk: event("response.function_call_arguments.delta", inCall+`"delta":$text,"obfuscation":"$padding"`),
			close: list(event("response.function_call_arguments.done", inCall+`"name":$tool,"arguments":$sofar`),
				event("response.output_item.done", `"output_index":$block,"item":`+call)),
			whole: parse(call),
		},
		end: list(event("response.$verdict", `"response":`+ended)),
		broken: list(event("response.failed", `"response":`+response(`"failed"`, "null", "", "null")),
			named("error", `{"type":"error","sequence_number":$seq,"code":"server_error","message":"The server had an error processing your request.",`+
				`"param":null}`)),
		whole: parse(ended),
	}
}

// vllmResponses is POST /v1/responses of vLLM: its last event is response.completed whatever the status.
func vllmResponses() *form {
	response := func(details, output, status, usage string) string {
		return `{"id":"resp_$hex","created_at":$created,"incomplete_details":` + details + `,"instructions":null,"metadata":null,"model":$model,` +
			`"object":"response","output":[` + output + `],"parallel_tool_calls":true,"temperature":0.0,"tool_choice":"none","tools":[],` +
			`"top_p":1.0,"background":false,"max_output_tokens":$limit,"max_tool_calls":null,"previous_response_id":null,"prompt":null,` +
			`"reasoning":null,"service_tier":"auto","status":` + status + `,"text":null,"top_logprobs":null,"truncation":"disabled","usage":` +
			usage + `,"user":null,"presence_penalty":0.0,"frequency_penalty":0.0,"kv_transfer_params":null,"ec_transfer_params":null,` +
			`"input_messages":null,"output_messages":null}`
	}
	event := func(kind, rest string) text {
		return named(kind, `{`+rest+`,"sequence_number":$seq,"type":"`+kind+`"}`)
	}
	const usage = `{"input_tokens":$prompt,"input_tokens_details":{"cached_tokens":$cached,"cache_write_tokens":0,"input_tokens_per_turn":[],` +
		`"cached_tokens_per_turn":[]},"output_tokens":$output,"output_tokens_details":{"reasoning_tokens":$thoughts,"tool_output_tokens":0,` +
		`"output_tokens_per_turn":[],"tool_output_tokens_per_turn":[]},"total_tokens":$total}`
	const message = `{"id":"msg_$hex","content":[{"annotations":[],"text":$sofar,"type":"output_text","logprobs":null}],"role":"assistant",` +
		`"status":"completed","type":"message","phase":null}`
	const reasoning = `{"id":"rs_$hex","summary":[],"type":"reasoning","content":[{"text":$sofar,"type":"reasoning_text"}],` +
		`"encrypted_content":null,"status":"completed"}`
	began := response("null", "", `"in_progress"`, "null")
	ended := response("$why", "$parts", "$complete", usage)
	return &form{
		prefix: "resp_", silent: true,
		early: list(event("response.created", `"response":`+began), event("response.in_progress", `"response":`+began)),
		think: part{
			open: list(event("response.output_item.added", `"item":{"id":"rs_$hex","summary":[],"type":"reasoning","content":null,`+
				`"encrypted_content":null,"status":"in_progress"},"output_index":$block`),
				event("response.reasoning_part.added",
					`"content_index":0,"item_id":"rs_$hex","output_index":$block,"part":{"text":"","type":"reasoning_text"}`)),
			chunk: event("response.reasoning_text.delta", `"content_index":0,"delta":$text,"item_id":"rs_$hex","output_index":$block`),
			close: list(event("response.reasoning_text.done", `"content_index":0,"item_id":"rs_$hex","output_index":$block`),
				event("response.output_item.done", `"item":`+reasoning+`,"output_index":$block`)),
			whole: parse(reasoning),
		},
		words: part{
			open: list(event("response.output_item.added", `"item":{"id":"msg_$hex","content":[],"role":"assistant","status":"in_progress",`+
				`"type":"message","phase":null},"output_index":$block`),
				event("response.content_part.added", `"content_index":0,"item_id":"msg_$hex","output_index":$block,"part":{"annotations":[],`+
					`"text":"","type":"output_text","logprobs":[]}`)),
			chunk: event("response.output_text.delta", `"content_index":0,"delta":$text,"item_id":"msg_$hex","logprobs":[],"output_index":$block`),
			close: list(
				named("response.output_text.done", `{"content_index":0,"item_id":"msg_$hex","logprobs":[],"output_index":$block,`+
					`"sequence_number":$seq,"text":$sofar,"type":"response.output_text.done"}`),
				event("response.content_part.done", `"content_index":0,"item_id":"msg_$hex","output_index":$block,"part":{"annotations":[],`+
					`"text":$sofar,"type":"output_text","logprobs":null}`),
				event("response.output_item.done", `"item":`+message+`,"output_index":$block`)),
			whole: parse(message),
		},
		end: list(event("response.completed", `"response":`+ended)),
		broken: list(named("response.failed", `{"response":`+response("null", "", `"failed"`, "null")+`,"sequence_number":$seq,`+
			`"type":"response.failed"}`)),
		whole: parse(ended),
	}
}
