package sim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"time"
)

// ollama is Ollama: lines of JSON on its own endpoints, and no page of metrics. A prompt that is too long is cut, silently.
func ollama() *dialect {
	h := habits{noForce: true, noIDs: true, truncate: true}
	fronts := func(r route) route { return withRefusal(r, ollamaFrontRefusal) }
	return &dialect{
		fingerprint: "fp_ollama", refuse: ollamaRefusal, guards: func(string) bool { return false },
		routes: []route{
			ollamaGenerate().at("/api/generate", readOllama(false)), ollamaChat().at("/api/chat", readOllama(true)),
			embeddings("/api/embed", ollamaVectors), fronts(ollamaFrontChat().at("/v1/chat/completions", h.chat)),
			fronts(ollamaFrontCompletions().at("/v1/completions", h.complete)), withRefusal(ollamaMessages().at("/v1/messages", h.messages), anthropicRefusal),
			fronts(openAIResponses().at("/v1/responses", h.responses)), fronts(embeddings("/v1/embeddings", openAIVectors)),
		},
		pages: []page{
			plain("/", "Ollama is running"), tells("/api/version", `{"version":"0.33.0"}`),
			tells("/api/ps", `{"models":[{"name":$model,"model":$model,"size":467313152,"digest":"simulated","details":`+ollamaDetails+
				`,"expires_at":$now,"size_vram":467313152,"context_length":$limit}]}`),
			tells("/api/tags", `{"models":[{"name":$model,"model":$model,"modified_at":$now,"size":253113472,"digest":"simulated","details":`+
				ollamaDetails+`}]}`),
			tells("/v1/models", `{"object":"list","data":[{"id":$model,"object":"model","created":$created,"owned_by":"library"}]}`),
			asks("/api/show", ollamaShow),
		},
	}
}

const ollamaDetails = `{"parent_model":"","format":"gguf","family":"simulated","families":["simulated"],"parameter_size":"268.10M",` +
	`"quantization_level":"Q4_K_M"}`

func ollamaShow(s *Server, req *request) ([]byte, *apiError) {
	var in struct {
		Model string `json:"model"`
		Name  string `json:"name"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(cmp.Or(in.Model, in.Name)); err != nil {
		return nil, err
	}
	return s.about(parse(`{"modelfile":"","parameters":"num_ctx $limit","template":"{{ .Prompt }}","details":` + ollamaDetails +
		`,"model_info":{"general.architecture":"simulated","simulated.context_length":$limit,"general.parameter_count":268098176},` +
		`"capabilities":["completion","tools","thinking"]}`)), nil
}

func (e *apiError) ollamaWords() (int, string) {
	switch {
	case e.cause == unknownModel:
		return http.StatusNotFound, "model '" + e.model + "' not found"
	case e.cause == malformedJSON:
		return http.StatusBadRequest, "unexpected EOF"
	case e.status == http.StatusTooManyRequests:
		return http.StatusServiceUnavailable, "server busy, please try again.  maximum pending requests exceeded"
	}
	return e.status, e.message
}

func ollamaRefusal(e *apiError) (int, []byte) {
	status, words := e.ollamaWords()
	return status, marshal(map[string]string{"error": words})
}

func ollamaFrontRefusal(e *apiError) (int, []byte) {
	status, words := e.ollamaWords()
	kind := "invalid_request_error"
	switch {
	case status == http.StatusNotFound:
		kind = "not_found_error"
	case status >= 500:
		kind = "api_error"
	}
	return status, marshal(map[string]any{"error": openAIError{words, kind, nil, nil}})
}

// loadTime is how long the model took to load, which is part of the whole: it was loaded already.
func loadTime(g *generation) time.Duration { return min(time.Millisecond, g.first-g.arrival) }

const ollamaTimes = `"total_duration":$wholens,"load_duration":$loadns,"prompt_eval_count":$prompt,"prompt_eval_duration":$ttftns,` +
	`"eval_count":$output,"eval_duration":$decodens}`

// ollamaLines is a form of lines: each has its time, and the last all that was counted.
func ollamaLines(text, thought, call, none, whole, context string) *form {
	line := func(body string) string { return `{"model":$model,"created_at":$now,` + body }
	return &form{
		stream: "application/x-ndjson", silent: true,
		think:  part{chunk: parse(line(thought+`,"done":false}`) + "\n"), whole: parse(`,"thinking":$thinking`)},
		words:  part{chunk: parse(line(text+`,"done":false}`) + "\n")},
		call:   part{chunk: parse(""), close: list(parse(line(call+`,"done":false}`) + "\n")), whole: parse(`,"tool_calls":[{"function":{"name":$tool,"arguments":$object}}]`)},
		end:    list(parse(line(none+`,"done":true,"done_reason":$finish,`+context+ollamaTimes) + "\n")),
		broken: list(parse(`{"error":"an error was encountered while running the model"}` + "\n")),
		whole:  parse(line(whole + `,"done":true,"done_reason":$finish,` + context + ollamaTimes)),
		finish: finishes("stop", "length", "stop"),
	}
}

func ollamaGenerate() *form {
	f := ollamaLines(`"response":$text`, `"response":"","thinking":$text`, ``, `"response":""`, `"response":$said$thought`, `"context":$context,`)
	f.call = part{}
	return f
}

func ollamaChat() *form {
	return ollamaLines(`"message":{"role":"assistant","content":$text}`, `"message":{"role":"assistant","content":"","thinking":$text}`,
		`"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":$tool,"arguments":$object}}]}`,
		`"message":{"role":"assistant","content":""}`, `"message":{"role":"assistant","content":$said$thought$called}`, ``)
}

// readOllama reads POST /api/generate and /api/chat, which stream unless told not to. A request without a prompt loads the model, or
// unloads it when it is not to be kept alive.
func readOllama(chat bool) func(s *Server, req *request) (*wish, *apiError) {
	return func(s *Server, req *request) (*wish, *apiError) {
		var in struct {
			Model    string          `json:"model"`
			Prompt   string          `json:"prompt"`
			System   string          `json:"system"`
			Messages []messageBody   `json:"messages"`
			Stream   *bool           `json:"stream"`
			Keep     json.RawMessage `json:"keep_alive"`
			Tools    []toolBody      `json:"tools"`
			Choice   json.RawMessage `json:"tool_choice"`
			Options  struct {
				NumPredict *int   `json:"num_predict"`
				Seed       *int64 `json:"seed"`
			} `json:"options"`
		}
		if err := s.readJSON(req, &in); err != nil {
			return nil, err
		}
		if in.Model == "" {
			return nil, &apiError{status: http.StatusNotFound, kind: "NotFoundError", cause: unknownModel}
		}
		if err := s.checkModel(in.Model); err != nil {
			return nil, err
		}
		w := &wish{chat: chat, stream: in.Stream == nil || *in.Stream, limit: in.Options.NumPredict, limitName: "num_predict", seed: in.Options.Seed,
			truncate: true}
		if w.limit != nil && *w.limit < 0 {
			w.limit = nil
		}
		switch {
		case chat && len(in.Messages) > 0:
			messages, err := chatMessages(in.Messages)
			if err != nil {
				return nil, err
			}
			w.prompt, w.call = tokenizeChat(messages, true), mustCall(in.Tools, in.Choice)
		case !chat && in.Prompt != "":
			w.prompt = tokenize(nil, in.System+in.Prompt)
		default:
			reason := "load"
			if string(in.Keep) == "0" || string(in.Keep) == `"0"` {
				reason = "unload"
			}
			none := `"response":""`
			if chat {
				none = `"message":{"role":"assistant","content":""}`
			}
			w.loads = func(s *Server, _ uint64) []byte {
				return s.about(parse(`{"model":$model,"created_at":$now,` + none + `,"done":true,"done_reason":"` + reason + `"}`))
			}
		}
		return w, nil
	}
}

// ollamaFrontChat: the first chunk has the role and the first token.
func ollamaFrontChat() *form {
	const head = `{"id":$id,"object":"chat.completion.chunk","created":$created,"model":$model,"system_fingerprint":$fingerprint,"choices":`
	chunk := func(delta, finish string) text {
		return data(head + `[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`)
	}
	const usage = `{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total}`
	return &form{
		prefix: "chatcmpl-", silent: true,
		think: part{chunk: chunk(`{$roleandonce"content":"","reasoning":$text}`, "null"), whole: parse(`,"reasoning":$thinking`)},
		words: part{chunk: chunk(`{$roleandonce"content":$text}`, "null")},
		call: part{
			chunk: parse(""),
			close: list(chunk(`{"role":"assistant","content":"","tool_calls":[{"id":"call_$hex","index":0,"type":"function","function":{"name":$tool,`+
				`"arguments":$sofar}}]}`, "null")),
			whole: parse(`,"tool_calls":[{"id":"call_$hex","index":0,"type":"function","function":{"name":$tool,"arguments":$arguments}}]`),
		},
		end:    list(chunk(`{}`, "$finish")),
		usage:  list(data(head + `[],"usage":` + usage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(data(`{"error":{"message":"an error was encountered while running the model","type":"api_error","param":null,"code":null}}`)),
		finish: finishes("stop", "length", "tool_calls"),
		whole: parse(`{"id":$id,"object":"chat.completion","created":$created,"model":$model,"system_fingerprint":$fingerprint,"choices":[{"index":0,` +
			`"message":{"role":"assistant","content":$said$thought$called},"finish_reason":$finish}],"usage":` + usage + `}`),
	}
}

// ollamaFrontCompletions has a usage of zeros in every chunk, once usage is asked.
func ollamaFrontCompletions() *form {
	const head = `{"id":$id,"object":"text_completion","created":$created,"choices":`
	chunk := func(content, finish string) text {
		return data(head + `[{"text":` + content + `,"index":0,"finish_reason":` + finish +
			`}],"model":$model,"system_fingerprint":$fingerprint$ifasked}`)
	}
	const usage = `"usage":{"prompt_tokens":$prompt,"completion_tokens":$output,"total_tokens":$total}`
	return &form{
		prefix: "cmpl-", silent: true,
		words:  part{chunk: chunk("$text", "null")},
		end:    list(chunk(`""`, "$finish")),
		asked:  parse(`,"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`),
		usage:  list(data(head + `[],"model":$model,"system_fingerprint":$fingerprint,` + usage + `}`)),
		done:   list(parse(doneEvent)),
		broken: list(data(`{"error":{"message":"an error was encountered while running the model","type":"api_error","param":null,"code":null}}`)),
		finish: finishes("stop", "length", "stop"),
		whole:  parse(head + `[{"text":$answer,"index":0,"finish_reason":$finish}],"model":$model,"system_fingerprint":$fingerprint,` + usage + `}`),
	}
}

// ollamaMessages is as Anthropic's, with fewer fields.
func ollamaMessages() *form {
	f := anthropicMessages()
	f.start = list(named("message_start", `{"type":"message_start","message":{"id":$id,"type":"message","role":"assistant","model":$model,`+
		`"content":[],"usage":{"input_tokens":$prompt,"output_tokens":0}}}`))
	f.words.open = f.words.open[:1]
	f.end[0] = named("message_delta", `{"type":"message_delta","delta":{"stop_reason":$finish},"usage":{"input_tokens":$prompt,"output_tokens":$output}}`)
	f.whole = parse(`{"id":$id,"type":"message","role":"assistant","model":$model,"content":[$parts],"stop_reason":$finish,` +
		`"usage":{"input_tokens":$prompt,"output_tokens":$output}}`)
	return f
}
