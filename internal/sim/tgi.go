package sim

import "net/http"

// tgi is Hugging Face's Text Generation Inference 3.3.7.
func tgi() *dialect {
	h := habits{anyModel: true, noForce: true, noIDs: true}
	return &dialect{
		fingerprint: "3.3.7-native", refuse: tgiRefusal,
		guards: func(path string) bool { return below(path, "/generate", "/v1/chat", "/v1/completions") || path == "/" },
		routes: []route{
			tgiGenerate().at("/generate_stream", readTGI(true)), tgiWhole().at("/generate", readTGI(false)),
			tgiChat().at("/v1/chat/completions", h.chat), tgiCompletions().at("/v1/completions", h.complete),
		},
		pages: []page{
			alive("/health"), alive("/ping"), tells("/info", tgiInfo), tells("/", tgiInfo),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":0,"owned_by":$model}]}`),
			meters("/metrics", "text/plain; version=0.0.4", tgiMetrics),
			asks("/tokenize", tgiTokenize),
		},
	}
}

const tgiInfo = `{"model_id":$model,"model_sha":null,"model_pipeline_tag":"text-generation","max_concurrent_requests":128,"max_best_of":2,` +
	`"max_stop_sequences":4,"max_input_tokens":$limit,"max_total_tokens":$limit,"validation_workers":2,"max_client_batch_size":4,` +
	`"router":"text-generation-router","version":"3.3.7","sha":"simulated","docker_label":"sha-simulated"}`

// tgiRefusal tells of an error; what does not fit is unprocessable.
func tgiRefusal(e *apiError) (int, []byte) {
	switch {
	case e.cause == unauthorized:
		return e.status, nil
	case e.status == http.StatusTooManyRequests:
		return e.status, tgiError("Model is overloaded", "overloaded")
	case e.status >= 500:
		return e.status, tgiError("Request failed during generation: Server error", "generation")
	}
	return http.StatusUnprocessableEntity, tgiError("Input validation error: "+e.message, "validation")
}

func tgiError(message, kind string) []byte {
	return marshal(struct {
		Error string `json:"error"`
		Type  string `json:"error_type"`
	}{message, kind})
}

// tgiGenerate: exactly one token an event, and the whole text with the last.
func tgiGenerate() *form {
	const event = `{"index":$sent,"token":{"id":$token,"text":$spelled,"logprob":-0.125,"special":$special},"generated_text":`
	return &form{
		single: true,
		words: part{
			chunk: parse("data:" + event + "null,\"details\":null}\n\n"), last: parse("data:" + event + "$all,\"details\":$orasked}\n\n")},
		head: list(parse("x-compute-type: cpu"), parse("x-prompt-tokens: $prompt"), parse("x-generated-tokens: $output"),
			parse("x-total-time: $wholemsint"), parse("x-validation-time: 0"), parse("x-queue-time: 0"), parse("x-inference-time: $wholemsint"),
			parse("x-time-per-token: $tokenmsint")),
		broken: list(parse("data:{\"error\":\"Request failed during generation: Server error\",\"error_type\":\"generation\"}\n\n")),
		asked:  parse(`{"finish_reason":$finish,"generated_tokens":$output,"seed":null,"input_length":$prompt}`),
		token:  parse(`{"id":$token,"text":$spelled,"logprob":-0.125,"special":$special}`),
		finish: finishes("eos_token", "length", "eos_token"),
	}
}

// tgiWhole is the answer of POST /generate.
func tgiWhole() *form {
	f := tgiGenerate()
	f.whole = parse(`{"generated_text":$answer$ifasked}`)
	f.asked = parse(`,"details":{"finish_reason":$finish,"generated_tokens":$output,"seed":null,"prefill":[],"tokens":[$tokens]}`)
	return f
}

// readTGI reads POST /generate_stream and /generate. There are no token ids as a prompt and no forced lengths; what is out of range is
// refused.
func readTGI(stream bool) func(s *Server, req *request) (*wish, *apiError) {
	return func(s *Server, req *request) (*wish, *apiError) {
		var in struct {
			Inputs     *string `json:"inputs"`
			Parameters struct {
				MaxNewTokens *int     `json:"max_new_tokens"`
				Temperature  *float64 `json:"temperature"`
				TopP         *float64 `json:"top_p"`
				Seed         *int64   `json:"seed"`
				Details      bool     `json:"details"`
			} `json:"parameters"`
		}
		if err := s.readJSON(req, &in); err != nil {
			return nil, err
		}
		p := &in.Parameters
		switch {
		case in.Inputs == nil:
			return nil, missingField("inputs")
		case p.Temperature != nil && *p.Temperature <= 0:
			return nil, invalid("`temperature` must be strictly positive")
		case p.TopP != nil && (*p.TopP <= 0 || *p.TopP >= 1):
			return nil, invalid("`top_p` must be > 0.0 and < 1.0")
		}
		return &wish{stream: stream, prompt: tokenize(nil, *in.Inputs), limit: p.MaxNewTokens, limitName: "max_new_tokens", seed: p.Seed,
			usage: p.Details}, nil
	}
}

// tgiChat: role and text together, and no id.
func tgiChat() *form {
	chunk := func(delta, finish string) text {
		return data(`{"object":"chat.completion.chunk","id":"","created":$created,"model":$model,"system_fingerprint":$fingerprint,"choices":[` +
			`{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}],"usage":null}`)
	}
	const content = `{"role":"assistant","content":$text}`
	const call = `{"role":"assistant","tool_calls":[{"index":0,"id":"","type":"function","function":{"name":null,"arguments":$text}}]}`
	const usage = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total}`
	return &form{
		words: part{chunk: chunk(content, "null"), last: chunk(content, "$finish")},
		call: part{
			open: list(chunk(`{"role":"assistant","tool_calls":[{"index":0,"id":"$hex","type":"function","function":{"name":$tool,"arguments":""}}]}`,
				"null")),
			chunk: chunk(call, "null"), last: chunk(call, "$finish"),
			whole: parse(`,"tool_calls":[{"id":"$hex","type":"function","function":{"description":null,"name":$tool,"arguments":$arguments}}]`),
		},
		usage: list(data(`{"object":"chat.completion.chunk","id":"","created":$created,"model":$model,"system_fingerprint":$fingerprint,` +
			`"choices":[],"usage":` + usage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(data(`{"error":{"message":"Request failed during generation: Server error","http_status_code":424}}`), parse(doneEvent)),
		finish: finishes("stop", "length", "tool_calls"),
		whole: parse(`{"object":"chat.completion","id":"","created":$created,"model":$model,"system_fingerprint":$fingerprint,"choices":[{"index":0,` +
			`"message":{"role":"assistant","content":$answer$called},"logprobs":null,"finish_reason":$finish}],"usage":` + usage + `}`),
	}
}

func tgiCompletions() *form {
	const head = `{"object":"text_completion","id":"","created":$created,"model":$model,"system_fingerprint":$fingerprint,"choices":`
	const usage = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total}`
	return &form{
		words: part{
			chunk: data(head + `[{"index":0,"text":$text,"logprobs":null,"finish_reason":""}]}`),
			last:  data(head + `[{"index":0,"text":$text,"logprobs":null,"finish_reason":$finish}]$ifasked}`),
		},
		asked:  parse(`,"usage":` + usage),
		done:   list(parse(doneEvent)),
		broken: list(data(`{"error":{"message":"Request failed during generation: Server error","http_status_code":424}}`), parse(doneEvent)),
		finish: finishes("stop", "length", "stop"),
		whole:  parse(head + `[{"index":0,"text":$answer,"logprobs":null,"finish_reason":$finish}],"usage":` + usage + `}`),
	}
}

// tgiTokenize answers POST /tokenize: a list of tokens with their places in the text.
func tgiTokenize(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Inputs *string `json:"inputs"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if in.Inputs == nil {
		return nil, missingField("inputs")
	}
	return marshal(placed(*in.Inputs)), nil
}

// placedToken is a token with its place in a text.
type placedToken struct {
	ID    int32  `json:"id"`
	Text  string `json:"text"`
	Start int    `json:"start"`
	Stop  int    `json:"stop"`
}

func placed(in string) []placedToken {
	out, at := []placedToken{}, 0
	for _, id := range tokenize(nil, in) {
		t := string(appendToken(nil, id))
		out = append(out, placedToken{id, t, at, at + len(t)})
		at += len(t)
	}
	return out
}

func tgiMetrics(p *meterPage, r *readings) {
	p.created = ""
	p.gauge("tgi_batch_current_size", "Current batch size", r.running)
	p.gauge("tgi_queue_size", "Current queue size", r.waiting)
	p.gauge("tgi_batch_current_max_tokens", "Maximum tokens for the current batch", r.usage*r.capacity())
	p.gauge("tgi_batch_max_total_tokens", "Maximum total tokens of a batch", r.capacity())
	p.count("tgi_request_count", "Total number of requests", series{"", r.succeeded() + r.aborted()})
	p.count("tgi_request_success", "Number of successful requests", series{"", r.succeeded()})
	p.count("tgi_request_failure", "Number of failed requests", series{`err="generation"`, r.aborted()})
	p.histogram("tgi_request_input_length", "Input token length per request", r.promptLength)
	p.histogram("tgi_request_generated_tokens", "Generated tokens per request", r.outputLength)
	p.histogram("tgi_request_duration", "Request duration", r.whole)
	p.histogram("tgi_request_queue_duration", "Request queue duration", r.queue)
	p.histogram("tgi_request_inference_duration", "Request inference duration", r.inference)
	p.histogram("tgi_request_mean_time_per_token_duration", "Mean time per token per request", r.perOutputToken)
}
