package sim

import (
	"encoding/json"
	"net/http"
	"strings"
)

// triton is Triton with a model of TensorRT-LLM, or of the vLLM backend: a request that has its parameters in an object is taken for
// one to the latter. It also has Triton's OpenAI front.
func triton() *dialect {
	h := habits{completion: 16, noForce: true, noIDs: true}
	chat, complete := tritonChat().at("/v1/chat/completions", h.chat), openAICompletions().at("/v1/completions", h.complete)
	chat.refuse, complete.refuse = tritonFrontRefusal, tritonFrontRefusal
	ensemble, reasons, backend := tritonEnsemble(), tritonVLLM(true), tritonVLLM(false)
	speak := func(g *generation, w *wish) speaker {
		switch {
		case !w.backend:
			return ensemble.speak(g)
		case w.reason:
			return reasons.speak(g)
		}
		return backend.speak(g)
	}
	stream := route{path: "/v2/models/{model}/generate_stream", stream: eventStreamUTF8, read: readTriton(true), speak: speak}
	whole := route{path: "/v2/models/{model}/generate", read: readTriton(false), speak: speak}
	inText, inIDs := tritonInfer(inferText), tritonInfer(inferIDs)
	infer := route{path: "/v2/models/{model}/infer", read: readInfer, speak: func(g *generation, w *wish) speaker {
		if w.exact {
			return inIDs.speak(g)
		}
		return inText.speak(g)
	}}
	return &dialect{
		fingerprint: "triton", refuse: tritonRefusal, guards: func(string) bool { return false },
		routes: []route{stream, whole, infer, chat, complete},
		pages: []page{
			tells("/v2", `{"name":"triton","version":"2.73.0","extensions":["classification","sequence","model_repository","statistics","generate"]}`),
			alive("/v2/health/live"), alive("/v2/health/ready"), alive("/v2/models/{model}/ready"), alive("/health/ready"),
			tells("/v2/models/{model}", `{"name":$model,"versions":["1"],"platform":"ensemble","inputs":[{"name":"text_input","datatype":"BYTES",`+
				`"shape":[-1]}],"outputs":[{"name":"text_output","datatype":"BYTES","shape":[-1]}]}`),
			tells("/v2/models/{model}/config", `{"name":$model,"platform":"ensemble","backend":"","max_batch_size":256,`+
				`"model_transaction_policy":{"decoupled":true},"parameters":{"max_queue_size":{"string_value":"0"}}}`),
			{http.MethodGet, "/v2/models/{model}/stats", jsonKind, tritonStats},
			asks("/v2/repository/index", func(s *Server, _ *request) ([]byte, *apiError) {
				return []byte(`[{"name":` + string(appendQuoted(nil, s.cfg.Model)) + `,"version":"1","state":"READY"}]`), nil
			}),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"created":$created,"object":"model","owned_by":"Triton Inference Server"}]}`),
			meters("/metrics", "text/plain; version=0.0.4", tritonMetrics),
		},
	}
}

func tritonRefusal(e *apiError) (int, []byte) {
	message := e.message
	switch e.cause {
	case unknownModel:
		return http.StatusBadRequest, marshal(map[string]string{"error": "Request for unknown model: '" + e.model + "' is not found"})
	case malformedJSON:
		message = "failed to parse the request JSON buffer: Invalid value. at 0"
	}
	return e.status, marshal(map[string]string{"error": message})
}

// tritonFrontRefusal is that of FastAPI.
func tritonFrontRefusal(e *apiError) (int, []byte) {
	message := e.message
	if e.cause == unknownModel {
		message = "Unknown model: " + e.model
	}
	return e.status, marshal(map[string]string{"detail": message})
}

// tritonNames are the models that an ensemble of TensorRT-LLM has, beside the name that is served.
func (s *Server) tritonModel(name string) *apiError {
	if name == "ensemble" || name == "tensorrt_llm_bls" {
		return nil
	}
	return s.checkModel(name)
}

// readTriton reads the generate extension.
func readTriton(stream bool) func(s *Server, req *request) (*wish, *apiError) {
	return func(s *Server, req *request) (*wish, *apiError) {
		var in struct {
			Text       *string `json:"text_input"`
			MaxTokens  *int    `json:"max_tokens"`
			MinTokens  int     `json:"min_tokens"`
			Seed       *int64  `json:"seed"`
			CountIn    bool    `json:"return_num_input_tokens"`
			CountOut   bool    `json:"return_num_output_tokens"`
			Reason     bool    `json:"return_finish_reason"`
			Parameters *struct {
				MaxTokens *int   `json:"max_tokens"`
				MinTokens int    `json:"min_tokens"`
				IgnoreEOS bool   `json:"ignore_eos"`
				Seed      *int64 `json:"seed"`
			} `json:"parameters"`
			Packed string `json:"sampling_parameters"` // the same as a text
		}
		if err := s.tritonModel(req.model); err != nil {
			return nil, err
		}
		if err := s.readJSON(req, &in); err != nil {
			return nil, err
		}
		if in.Text == nil {
			return nil, invalid("expected 1 inputs but got 0 inputs for model '" + req.model + "'. Got input(s) [], but missing required input(s) ['text_input'].")
		}
		w := &wish{stream: stream, prompt: tokenize(nil, *in.Text), limit: in.MaxTokens, limitName: "max_tokens", min: in.MinTokens, seed: in.Seed,
			usage: in.CountIn && in.CountOut, reason: in.Reason}
		if in.Packed != "" {
			if err := json.Unmarshal([]byte(in.Packed), &in.Parameters); err != nil {
				return nil, badJSON(err)
			}
		}
		if p := in.Parameters; p != nil {
			w.backend, w.limit, w.fallback, w.min, w.ignoreEOS, w.seed = true, p.MaxTokens, 16, p.MinTokens, p.IgnoreEOS, p.Seed
		} else if w.limit == nil {
			return nil, invalid("in ensemble '" + req.model + "', input 'max_tokens' is required")
		}
		return w, nil
	}
}

const tritonBroken = `{"error":"in ensemble 'ensemble', Failed to process the request"}`

// tritonEnsemble never tells why an answer ended: the end of the body is the end. Counts are those of the event.
func tritonEnsemble() *form {
	event := func(out string) string {
		return `{"batch_index":0,"context_logits":0.0,"cum_log_probs":0.0,"generation_logits":0.0,"model_name":$model,"model_version":"1",$ifasked` +
			`"output_log_probs":[0.0],"sequence_end":false,"sequence_id":0,"sequence_index":0,"sequence_start":false,"text_output":` + out + `}`
	}
	return &form{
		words:  part{chunk: data(event("$text"))},
		broken: list(data(tritonBroken)),
		whole:  parse(event("$answer")),
		asked:  parse(`"num_input_tokens":$prompt,"num_output_tokens":$fresh,`),
	}
}

// tritonVLLM says the word None until it has a reason.
func tritonVLLM(reason bool) *form {
	event := func(finish, out string) string {
		if finish = `"finish_reason":` + finish + `,`; !reason {
			finish = ""
		}
		return `{` + finish + `"model_name":$model,"model_version":"1",$ifasked"text_output":` + out + `}`
	}
	return &form{
		words:  part{chunk: data(event(`"None"`, "$text")), last: data(event("$finish", "$text"))},
		broken: list(data(tritonBroken)),
		whole:  parse(event("$finish", "$answer")),
		asked:  parse(`"num_input_tokens":$prompt,"num_output_tokens":$fresh,`),
		finish: finishes("stop", "length", "stop"),
	}
}

// tritonInfer is KServe's v2 inference, which does not stream: a text for a text, and ids for ids.
func tritonInfer(outputs string) *form {
	return &form{
		whole: parse(`{"id":"42","model_name":$model,"model_version":"1","outputs":[` + outputs + `$ifasked]}`),
		asked: parse(`,{"name":"num_input_tokens","datatype":"INT32","shape":[1,1],"data":[$prompt]},` +
			`{"name":"num_output_tokens","datatype":"INT32","shape":[1,1],"data":[$output]}`),
	}
}

const (
	inferText = `{"name":"text_output","datatype":"BYTES","shape":[1],"data":[$answer]}`
	inferIDs  = `{"name":"output_ids","datatype":"INT32","shape":[1,1,$output],"data":$ids},` +
		`{"name":"sequence_length","datatype":"INT32","shape":[1,1],"data":[$output]}`
)

// readInfer reads POST /v2/models/M/infer: tensors by name.
func readInfer(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Inputs []struct {
			Name string          `json:"name"`
			Data json.RawMessage `json:"data"`
		} `json:"inputs"`
		Parameters struct {
			MaxTokens *int `json:"max_tokens"`
		} `json:"parameters"`
	}
	if err := s.tritonModel(req.model); err != nil {
		return nil, err
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	w := &wish{limitName: "max_tokens", fallback: 16, limit: in.Parameters.MaxTokens}
	for _, t := range in.Inputs {
		switch raw := flatten(t.Data); t.Name {
		case "text_input":
			var text []string
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, badJSON(err)
			}
			w.prompt = tokenize(w.prompt, strings.Join(text, ""))
		case "max_tokens", "request_output_len":
			var n []int
			if err := json.Unmarshal(raw, &n); err != nil {
				return nil, badJSON(err)
			}
			if len(n) > 0 {
				w.limit = &n[0]
			}
		case "min_tokens":
			var n []int
			if err := json.Unmarshal(raw, &n); err == nil && len(n) > 0 {
				w.min = n[0]
			}
		case "return_num_input_tokens", "return_num_output_tokens":
			w.usage = string(raw) == "[true]"
		case "input_ids":
			ids, err := tokenList(raw)
			if err != nil {
				return nil, err
			}
			w.prompt, w.exact = ids, true
		case "sampling_parameters":
			var text []string
			var p struct {
				MaxTokens *int `json:"max_tokens"`
				MinTokens int  `json:"min_tokens"`
				IgnoreEOS bool `json:"ignore_eos"`
			}
			if json.Unmarshal(raw, &text) == nil && len(text) == 1 && json.Unmarshal([]byte(text[0]), &p) == nil {
				w.limit, w.min, w.ignoreEOS = p.MaxTokens, p.MinTokens, p.IgnoreEOS
			}
		}
	}
	if w.prompt == nil {
		return nil, invalid("expected input 'text_input'")
	}
	return w, nil
}

// flatten takes the rows of a tensor of one row together.
func flatten(raw json.RawMessage) json.RawMessage {
	var rows []json.RawMessage
	if json.Unmarshal(raw, &rows) == nil && len(rows) == 1 && len(rows[0]) > 0 && rows[0][0] == '[' {
		return rows[0]
	}
	return raw
}

// tritonChat: the role chunk goes out before the inference has begun.
func tritonChat() *form {
	chunk := func(delta, finish string) text {
		return data(`{"id":$id,"choices":[{"finish_reason":` + finish + `,"index":0,"delta":{` + delta + `,"function_call":null},"logprobs":null}],` +
			`"created":$created,"model":$model,"system_fingerprint":null,"object":"chat.completion.chunk"}`)
	}
	const usage = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total}`
	const content = `"content":$text,"role":null`
	return &form{
		prefix: "cmpl-",
		early:  list(chunk(`"content":"","role":"assistant"`, "null")),
		words:  part{chunk: chunk(content, "null"), last: chunk(content, "$finish")},
		usage:  list(data(`{"id":$id,"choices":[],"created":$created,"model":$model,"object":"chat.completion.chunk","usage":` + usage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(data(`{"error":{"message":"Internal server error"}}`)),
		finish: finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"choices":[{"finish_reason":$finish,"index":0,"message":{"content":$answer,"tool_calls":null,"role":"assistant",` +
			`"function_call":null},"logprobs":null}],"created":$created,"model":$model,"system_fingerprint":null,"object":"chat.completion","usage":` +
			usage + `}`),
	}
}

func tritonStats(s *Server, _ *request) ([]byte, *apiError) {
	r := s.met
	return marshal(map[string]any{"model_stats": []map[string]any{{"name": s.cfg.Model, "version": "1", "inference_count": r.succeeded(),
		"execution_count": r.succeeded(), "inference_stats": map[string]any{
			"success": map[string]any{"count": r.succeeded(), "ns": int64(r.whole.total() * 1e9)},
			"fail":    map[string]any{"count": r.aborted(), "ns": 0},
			"queue":   map[string]any{"count": r.succeeded(), "ns": int64(r.queue.total() * 1e9)}}}}}), nil
}

func tritonMetrics(p *meterPage, r *readings) {
	p.created, p.labels = "", "model="+r.model+`,version="1"`
	p.count("nv_inference_request_success", "Number of successful inference requests, all batch sizes", series{"", r.succeeded()})
	p.count("nv_inference_request_failure", "Number of failed inference requests, all batch sizes", series{`reason="OTHER"`, r.aborted()})
	p.gauge("nv_inference_pending_request_count", "Instantaneous number of pending requests awaiting execution per-model.", r.waiting)
	p.count("nv_inference_request_duration_us", "Cumulative inference request duration in microseconds (includes cached requests)",
		series{"", r.whole.total() * 1e6})
	p.count("nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds (includes cached requests)",
		series{"", r.queue.total() * 1e6})
	p.count("nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds (does not include cached requests)",
		series{"", r.inference.total() * 1e6})
	p.histogramIn(1000, "nv_inference_first_response_histogram_ms", "Duration from request to first response in milliseconds", r.firstToken)
	p.help("nv_trt_llm_request_metrics", "gauge", "TRT LLM request metrics")
	for _, s := range []series{{"active", r.running + r.waiting}, {"scheduled", r.running}, {"waiting", r.waiting}} {
		p.line("nv_trt_llm_request_metrics", p.with(`request_type="`+s.label+`"`), s.v)
	}
	most := r.capacity() / 16
	p.help("nv_trt_llm_kv_cache_block_metrics", "gauge", "TRT LLM KV cache block metrics")
	for _, s := range []series{{"max", most}, {"used", r.usage * most}, {"free", most - r.usage*most}, {"tokens_per", 16}, {"fraction", r.usage}} {
		p.line("nv_trt_llm_kv_cache_block_metrics", p.with(`kv_cache_block_type="`+s.label+`"`), s.v)
	}
	p.help("nv_trt_llm_inflight_batcher_metrics", "gauge", "TRT LLM inflight_batcher metrics")
	p.line("nv_trt_llm_inflight_batcher_metrics", p.with(`inflight_batcher_specific_metric="generation_requests"`), r.running)
	p.histogram("nv_llm_input_token_len", "Input tokens of a request", r.promptLength)
	p.histogram("nv_llm_output_token_len", "Output tokens of a request", r.outputLength)
}
