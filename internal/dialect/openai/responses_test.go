package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

// named writes an event of the Responses API.
func named(kind, format string, args ...any) string {
	return "event: " + kind + "\n" + dialecttest.Data(`{"type":%q,"sequence_number":1,%s}`, kind, fmt.Sprintf(format, args...))
}

// writeResponse writes a whole response that ended for a reason.
func writeResponse(p dialecttest.Part, output string) string {
	status, details := p.Reason, "null"
	if s, reason, ok := strings.Cut(p.Reason, ":"); ok {
		status, details = s, fmt.Sprintf(`{"reason":%q}`, reason)
	}
	if status == "function_call" {
		status, output = "completed", `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{}"}`
	}
	return fmt.Sprintf(`{"id":"r","object":"response","status":%q,"error":null,"incomplete_details":%s,"output":[%s],"usage":{"input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0}}}`,
		status, details, output, p.Prompt, p.Tokens)
}

func writeResponses(p dialecttest.Part) string {
	text := dialecttest.JSON(p.Text)
	start := ""
	switch p.Kind {
	case dialecttest.Open:
		return named("response.created", `"response":{"id":"r","object":"response","status":"in_progress","error":null,"output":[],"usage":null}`) +
			named("response.in_progress", `"response":{"id":"r","status":"in_progress"}`)
	case dialecttest.Text:
		if p.New {
			start = named("response.output_item.added", `"output_index":%d,"item":{"type":"message","id":"m","role":"assistant","status":"in_progress","content":[]}`, p.Block) +
				named("response.content_part.added", `"output_index":%d,"content_index":0,"part":{"type":"output_text","text":""}`, p.Block)
		}
		return start + named("response.output_text.delta", `"output_index":%d,"content_index":0,"item_id":"m","delta":%s`, p.Block, text)
	case dialecttest.Reasoning:
		if p.New {
			start = named("response.output_item.added", `"output_index":%d,"item":{"type":"reasoning","id":"s","summary":[]}`, p.Block)
		}
		return start + named("response.reasoning_text.delta", `"output_index":%d,"item_id":"s","delta":%s`, p.Block, text)
	case dialecttest.Call:
		return named("response.output_item.added", `"output_index":%d,"item":{"type":"function_call","id":"fc_%d","call_id":%q,"name":%q,"arguments":"","status":"in_progress"}`, p.Block, p.Call, p.ID, p.Name)
	case dialecttest.Arguments:
		return named("response.function_call_arguments.delta", `"output_index":%d,"item_id":"fc_%d","delta":%s`, p.Block, p.Call, text)
	case dialecttest.Finish:
		kind := "response.completed"
		if strings.HasPrefix(p.Reason, "incomplete") {
			kind = "response.incomplete"
		}
		return named(kind, `"response":%s`, writeResponse(p, `{"type":"message","id":"m","content":[{"type":"output_text","text":"all of it again"}]}`))
	case dialecttest.Error:
		return named("error", `"code":"server_error","message":%s,"param":null`, text)
	case dialecttest.Strange:
		return named("response.brand_new.delta", `"delta":{"a":1},"item":[],"response":"b","output_index":"c"`)
	case dialecttest.Body:
		return writeResponse(p, fmt.Sprintf(`{"type":"brand_new","content":7},{"type":"message","id":"m","content":[{"type":"output_text","text":%s}]}`, text))
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`, text)
	}
	return ""
}

func responsesProtocol() dialecttest.Protocol {
	return dialecttest.Protocol{
		Endpoint: ResponsesEndpoint(dialect.Abilities{Usage: true, IgnoreEOS: true, Priority: true, Format: true}), Request: bench.Request{Prompt: "What color is the sky?"},
		Write: writeResponses, Stop: "completed", Length: "incomplete:max_output_tokens", Tool: "function_call", Terminator: dialecttest.Finish,
		Tokens: bench.FromUsage, PlainTokens: bench.FromUsage, Prompt: bench.FromUsage,
		Without: map[dialecttest.Kind]string{
			dialecttest.Usage: "the last event has the counts",
			dialecttest.End:   "the last event tells why the answer ended",
		},
		Missing: map[string]string{
			"type":         dialecttest.Data(`{"sequence_number":4,"delta":"a"}`),
			"delta":        dialecttest.Data(`{"type":"response.output_text.delta","output_index":0}`),
			"output_index": dialecttest.Data(`{"type":"response.function_call_arguments.delta","delta":"{"}`),
			"item":         dialecttest.Data(`{"type":"response.output_item.added","output_index":0}`),
			"response":     dialecttest.Data(`{"type":"response.completed","sequence_number":4}`),
			"status":       dialecttest.Data(`{"type":"response.completed","response":{"output":[]}}`),
			"output":       `{"id":"r","object":"response","status":"completed"}`,
		},
	}
}

func TestResponsesConform(t *testing.T) { dialecttest.Conform(t, responsesProtocol()) }

func FuzzResponses(f *testing.F) { dialecttest.Fuzz(f, responsesProtocol()) }

func TestResponsesGolden(t *testing.T) {
	dialecttest.Golden(t, wireDir, 3, map[string]dialect.Endpoint{"openai-responses": ResponsesEndpoint(dialect.Abilities{Usage: true})})
}

// How a response ends is its status, whatever the event is called.
func TestResponsesEnds(t *testing.T) {
	text := named("response.output_text.delta", `"output_index":0,"delta":"a"`)
	end := func(kind, response string) string { return text + named(kind, `"response":%s`, response) }
	for name, c := range map[string]struct {
		stream  string
		outcome bench.Outcome
		finish  bench.Finish
		words   string
	}{
		"vLLM's incomplete":        {end("response.completed", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`), bench.OK, bench.FinishLength, ""},
		"filtered":                 {end("response.incomplete", `{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}`), bench.OK, bench.FinishOther, ""},
		"incomplete without a why": {end("response.incomplete", `{"status":"incomplete","incomplete_details":null}`), bench.OK, bench.FinishOther, ""},
		"failed":                   {end("response.failed", `{"status":"failed","error":{"code":"server_error","message":"out of luck"}}`), bench.StreamError, "", "out of luck (code server_error)"},
		"failed without words":     {end("response.failed", `{"status":"failed","error":null}`), bench.StreamError, "", "the server ended the response as failed"},
		"vLLM's abort":             {end("response.completed", `{"status":"cancelled"}`), bench.StreamError, "", "the server ended the response as cancelled"},
		"a bare error":             {text + dialecttest.Data(`{"error":{"message":"Internal server error","type":"InternalServerError","code":500}}`), bench.StreamError, "", "Internal server error"},
		"no end":                   {text, bench.TruncatedStream, "", "without a finish reason"},
		"another protocol's end":   {text + dialecttest.Data("[DONE]"), bench.TruncatedStream, "", "without a finish reason"},
		"a refusal":                {named("response.refusal.delta", `"output_index":0,"delta":"no"`) + named("response.completed", `"response":{"status":"completed"}`), bench.OK, bench.FinishStop, ""},
	} {
		r := dialect.NewFold(responsesProtocol().Endpoint, &bench.Request{}, &dialect.Options{Stream: true, KeepText: true}).End(timed([]byte(c.stream)))
		if r.Outcome != c.outcome || r.Finish != c.finish || !strings.Contains(r.Error, c.words) || c.words == "" && r.Error != "" {
			t.Errorf("%s: %s (%s), finish %q", name, r.Outcome, r.Error, r.Finish)
		}
	}
}

// llama.cpp numbers no items, says completed of an answer that is cut off, and tells its times beside the response.
func TestResponsesOfLlamaCpp(t *testing.T) {
	call := func(id, name string) string {
		return named("response.output_item.added", `"item":{"type":"function_call","call_id":%q,"name":%q,"arguments":"","status":"in_progress"}`, id, name)
	}
	piece := func(id, text string) string {
		return named("response.function_call_arguments.delta", `"item_id":%q,"delta":%s`, id, dialecttest.JSON(text))
	}
	stream := named("response.output_text.delta", `"item_id":"m","delta":"a"`) + call("fc_1", "f") + piece("fc_1", `{"a"`) + piece("fc_1", `:1}`) + call("fc_2", "g") + piece("fc_2", `{}`) +
		named("response.completed", `"response":{"status":"completed","output":[],"usage":{"input_tokens":29,"output_tokens":4,"input_tokens_details":{"cached_tokens":24}}},"timings":{"cache_n":24,"prompt_n":5,"prompt_ms":203.5,"predicted_n":4,"predicted_ms":53.25}`)
	r := dialect.NewFold(responsesProtocol().Endpoint, &bench.Request{}, &dialect.Options{Stream: true, KeepText: true}).End(timed([]byte(stream)))
	if r.Outcome != bench.OK || string(r.ToolCalls) != `[{"id":"fc_1","name":"f","arguments":"{\"a\":1}"},{"id":"fc_2","name":"g","arguments":"{}"}]` ||
		r.ISL.Or(0) != 29 || r.OSL.Or(0) != 4 || r.OSLSource != bench.FromUsage || r.Cached.Or(0) != 24 || r.Server["server_prefill_ms"] != 203.5 || r.Server["server_decode_ms"] != 53.25 {
		t.Errorf("%+v", r)
	}
}

// A whole answer has its reasoning and its calls in the order of its items.
func TestResponsesBody(t *testing.T) {
	body := `{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"short"}],"content":[{"type":"reasoning_text","text":"long"}]},` +
		`{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"b"}]},` +
		`{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"call_2","name":"g","input":"x"}],` +
		`"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":2},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4}}}`
	tr := timed([]byte(body))
	tr.Header = map[string][]string{"Content-Type": {"application/json"}}
	r := dialect.NewFold(responsesProtocol().Endpoint, &bench.Request{}, &dialect.Options{KeepText: true}).End(tr)
	if r.Outcome != bench.OK || r.Finish != bench.FinishTool || r.Text != "ab" || r.Thinking != "long" || r.Cached.Or(0) != 2 || r.Reasoning.Or(0) != 4 || r.ISL.Or(0) != 5 ||
		string(r.ToolCalls) != `[{"id":"call_1","name":"f","arguments":"{}"},{"id":"call_2","name":"g","arguments":"x"}]` {
		t.Errorf("%+v", r)
	}
}

func TestResponsesEncode(t *testing.T) {
	zero, priority, seed, logprobs := 0.0, 2, int64(5), 3
	chat := func(messages string) bench.Request {
		var q bench.Request
		if err := json.Unmarshal([]byte(messages), &q.Messages); err != nil {
			t.Fatal(err)
		}
		return q
	}
	tools := json.RawMessage(`[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}},{"type":"function","function":{"name":"g"}}]`)
	const rest = `,"stream":false,"store":false`
	ep := responsesProtocol().Endpoint
	for name, c := range map[string]struct {
		q    bench.Request
		o    dialect.Options
		want string // "" = refused
	}{
		"text": {bench.Request{Prompt: "hi", OSL: 8}, dialect.Options{Stream: true, ForceLength: true, Priority: &priority, Sampling: bench.Sampling{Temperature: &zero, Seed: &seed, Logprobs: &logprobs}},
			`{"model":"","input":"hi","stream":true,"store":false,"max_output_tokens":8,"temperature":0,"seed":5,"top_logprobs":3,"include":["message.output_text.logprobs"],"ignore_eos":true,"priority":2}`},
		"system messages are instructions": {chat(`[{"role":"system","content":"be"},{"role":"developer","content":[{"type":"text","text":"brief"}]},{"role":"user","content":"a"},{"role":"system","content":"b"}]`), dialect.Options{},
			`{"model":"","input":[{"role":"user","content":"a"},{"role":"system","content":"b"}],"instructions":"be\n\nbrief"` + rest + `}`},
		"parts": {chat(`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","content":[{"type":"text","text":"b"}]}]`), dialect.Options{},
			`{"model":"","input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},{"role":"assistant","content":[{"type":"output_text","text":"b"}]}]` + rest + `}`},
		"tools": {bench.Request{Prompt: "a"}, dialect.Options{Tools: tools, ToolChoice: json.RawMessage(`{"type":"function","function":{"name":"f"}}`)},
			`{"model":"","input":"a"` + rest + `,"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true},{"type":"function","name":"g","strict":false}],"tool_choice":{"name":"f","type":"function"}}`},
		"a schema": {bench.Request{Prompt: "a"}, dialect.Options{ResponseFormat: json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"},"strict":true}}`)},
			`{"model":"","input":"a"` + rest + `,"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"},"strict":true}}}`},
		"any object": {bench.Request{Prompt: "a"}, dialect.Options{ResponseFormat: json.RawMessage(`{"type":"json_object"}`)},
			`{"model":"","input":"a"` + rest + `,"text":{"format":{"type":"json_object"}}}`},
		"token ids":      {bench.Request{Tokens: []int{1}}, dialect.Options{}, ""},
		"a tool's words": {chat(`[{"role":"tool","content":"a"}]`), dialect.Options{}, ""},
		"sound":          {chat(`[{"role":"user","content":[{"type":"input_audio"}]}]`), dialect.Options{}, ""},
		"another form":   {bench.Request{Prompt: "a"}, dialect.Options{ResponseFormat: json.RawMessage(`{"type":"grammar"}`)}, ""},
		"another tool":   {bench.Request{Prompt: "a"}, dialect.Options{Tools: json.RawMessage(`[{"type":"web_search"}]`)}, ""},
		"no tool":        {bench.Request{Prompt: "a"}, dialect.Options{ToolChoice: json.RawMessage(`"perhaps"`)}, ""},
	} {
		call, err := ep.Codec.Encode(ep, &c.q, &c.o)
		if c.want == "" && err == nil || c.want != "" && (err != nil || string(call.Body) != c.want) {
			t.Errorf("%s: %v\n%s\n%s", name, err, call.Body, c.want)
		}
	}
}
