package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
	"github.com/prony-bench/prony/internal/wire"
)

func named(kind, fields string, args ...any) string {
	if fields != "" {
		fields = "," + fmt.Sprintf(fields, args...)
	}
	return "event: " + kind + "\n" + dialecttest.Data(`{"type":%q%s}`, kind, fields)
}

func write(p dialecttest.Part) string {
	text := dialecttest.JSON(p.Text)
	// each block begins when the one before has ended
	begin := func(block string) string {
		if !p.New {
			return ""
		}
		end := ""
		if p.Block > 0 {
			end = named("content_block_stop", `"index":%d`, p.Block-1)
		}
		return end + named("content_block_start", `"index":%d,"content_block":%s`, p.Block, block)
	}
	delta := func(kind, field string) string {
		return named("content_block_delta", `"index":%d,"delta":{"type":%q,%q:%s}`, p.Block, kind, field, text)
	}
	switch p.Kind {
	case dialecttest.Open:
		return named("message_start", `"message":{"id":"a","type":"message","role":"assistant","content":[],"stop_reason":null,"usage":{"input_tokens":%d,"cache_read_input_tokens":2,"output_tokens":1}}`, p.Prompt-2) +
			named("ping", "")
	case dialecttest.Text:
		return begin(`{"type":"text","text":""}`) + delta("text_delta", "text")
	case dialecttest.Reasoning:
		return begin(`{"type":"thinking","thinking":"","signature":""}`) + delta("thinking_delta", "thinking")
	case dialecttest.Call:
		p.New = true
		return begin(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, p.ID, p.Name))
	case dialecttest.Arguments:
		return delta("input_json_delta", "partial_json")
	case dialecttest.Finish:
		return named("message_delta", `"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, p.Reason, p.Tokens)
	case dialecttest.End:
		return named("message_stop", "")
	case dialecttest.Error:
		return named("error", `"error":{"type":"overloaded_error","message":%s},"request_id":"r"`, text)
	case dialecttest.Strange:
		return named("brand_new", `"delta":[1],"content_block":7,"message":"a","usage":"b","index":{}`) +
			named("content_block_start", `"index":99,"content_block":{"type":"brand_new","text":{}}`) +
			named("content_block_delta", `"index":99,"delta":{"type":"signature_delta","signature":"c"}`)
	case dialecttest.Body:
		return fmt.Sprintf(`{"id":"a","type":"message","role":"assistant","content":[{"type":"brand_new"},{"type":"text","text":%s}],"stop_reason":%q,"usage":{"input_tokens":%d,"output_tokens":%d}}`,
			text, p.Reason, p.Prompt, p.Tokens)
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%s},"request_id":"r"}`, text)
	}
	return ""
}

var endpoint = MessagesEndpoint(dialect.Abilities{Usage: true, Format: true})

func protocol() dialecttest.Protocol {
	return dialecttest.Protocol{
		Endpoint: endpoint, Request: bench.Request{Prompt: "What color is the sky?"}, Write: write,
		Stop: "end_turn", Length: "max_tokens", Tool: "tool_use", Terminator: dialecttest.End,
		Tokens: bench.FromUsage, PlainTokens: bench.FromUsage, Prompt: bench.FromUsage,
		Without: map[dialecttest.Kind]string{dialecttest.Usage: "the counts come with the reason of the end"},
		Missing: map[string]string{
			"type":          dialecttest.Data(`{"index":0}`),
			"message":       dialecttest.Data(`{"type":"message_start"}`),
			"content_block": dialecttest.Data(`{"type":"content_block_start","index":0}`),
			"index":         dialecttest.Data(`{"type":"content_block_start","content_block":{"type":"tool_use","name":"f"}}`),
			"delta":         dialecttest.Data(`{"type":"content_block_delta","index":0}`),
			"text":          dialecttest.Data(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta"}}`),
			"thinking":      dialecttest.Data(`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","text":"a"}}`),
			"partial_json":  dialecttest.Data(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta"}}`),
			"content":       `{"id":"a","type":"message","stop_reason":"end_turn"}`,
		},
	}
}

func TestConform(t *testing.T) { dialecttest.Conform(t, protocol()) }

func FuzzFold(f *testing.F) { dialecttest.Fuzz(f, protocol()) }

func TestGoldenStreams(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 4, map[string]dialect.Endpoint{"anthropic": endpoint})
}

// Real answers of real engines fold to what their text shows, in any reads.
func TestRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		isl, cached int
		text        string
	}{
		"vllm-anthropic-messages-stream": {8, -1, "ally allowsargerrorUserxz"},
		"llamacpp-messages-stream":       {29, 24, "A.The capital of France"},
		"ollama-messages-stream":         {6, -1, " known as the capital of Europe"}, // its start tells an estimate of 7
	} {
		r := dialecttest.Recorded(t, "../../../testdata/wire/recorded", name, endpoint)
		if r.Outcome != bench.OK || r.Finish != bench.FinishLength || r.Text != c.text || r.OutEvents != 6 || r.OSL.Or(-1) != 6 || r.OSLSource != bench.FromUsage ||
			r.ISL.Or(-1) != c.isl || r.Cached.Or(-1) != c.cached {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

func fold(stream bool, body string) bench.Record {
	kind := "text/event-stream"
	if !stream {
		kind = "application/json"
	}
	return dialect.NewFold(endpoint, &bench.Request{}, &dialect.Options{Stream: stream, KeepText: true}).End(dialecttest.Transcript(kind, []byte(body)))
}

const (
	start = `"message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":3,"cache_read_input_tokens":5,"output_tokens":4}}`
	hello = `"index":0,"delta":{"type":"text_delta","text":"hello"}`
)

// Counts are running totals, and the prompt is a sum of three.
func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		changes                       string
		isl, osl, cached, thinking, n int
	}{
		"output alone":       {named("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}`), 18, 9, 5, -1, 1},
		"all of it again":    {named("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":6,"output_tokens":9}`), 17, 9, 6, -1, 1},
		"two changes":        {named("message_delta", `"delta":{},"usage":{"output_tokens":7}`) + named("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":2}}`), 18, 9, 5, 2, 1},
		"two reasons":        {named("message_delta", `"delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":7}`) + named("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}`), 18, 7, 5, -1, 1},
		"counts at the end":  {named("message_delta", `"delta":{"stop_reason":null},"usage":{"output_tokens":9}`) + named("message_delta", `"delta":{"stop_reason":"end_turn"}`), 18, 9, 5, -1, 1},
		"no counts at all":   {named("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":null`), 18, 1, 5, -1, 1},
		"a start that is no": {named("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":{}`), 18, 1, 5, -1, 1},
	} {
		r := fold(true, named("message_start", start)+named("content_block_delta", hello)+c.changes+named("message_stop", ""))
		if r.Outcome != bench.OK || r.Finish != bench.FinishStop || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl || r.Cached.Or(-1) != c.cached || r.Reasoning.Or(-1) != c.thinking || r.OutEvents != c.n {
			t.Errorf("%s: %s (%s), finish %s, isl %v, osl %v, cached %v, reasoning %v, %d events", name, r.Outcome, r.Error, r.Finish, r.ISL, r.OSL, r.Cached, r.Reasoning, r.OutEvents)
		}
	}
}

// A block may begin with what is in it, and a stream may end in ways of its own.
func TestStreams(t *testing.T) {
	end := named("message_delta", `"delta":{"stop_reason":"end_turn"}`) + named("message_stop", "")
	for name, c := range map[string]struct {
		stream  string
		outcome bench.Outcome
		words   string
		text    string
		calls   string
	}{
		"a text at once":          {named("content_block_start", `"index":0,"content_block":{"type":"text","text":"a"}`) + end, bench.OK, "", "a", ""},
		"a call at once":          {named("content_block_start", `"index":0,"content_block":{"type":"tool_use","id":"i","name":"f","input":{"a":1}}`) + end, bench.OK, "", "", `[{"id":"i","name":"f","arguments":"{\"a\":1}"}]`},
		"a reason that is null":   {named("content_block_delta", hello) + named("message_delta", `"delta":{"stop_reason":null}`) + named("message_stop", ""), bench.TruncatedStream, "without a finish reason", "hello", ""},
		"no start":                {named("content_block_delta", hello) + end, bench.OK, "", "hello", ""},
		"an error without a type": {named("content_block_delta", hello) + dialecttest.Data(`{"error":{"message":"no luck"}}`), bench.StreamError, "no luck", "hello", ""},
		"an error in one word":    {named("error", `"message":"no luck"`), bench.StreamError, "no luck", "", ""},
		"an event by its name":    {"event: content_block_delta\n" + dialecttest.Data(`{%s}`, hello) + end, bench.OK, "", "hello", ""},
	} {
		r := fold(true, c.stream)
		if r.Outcome != c.outcome || !strings.Contains(r.Error, c.words) || r.Text != c.text || string(r.ToolCalls) != c.calls {
			t.Errorf("%s: %s (%s), text %q, calls %s", name, r.Outcome, r.Error, r.Text, r.ToolCalls)
		}
	}
	r := fold(false, `{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"tool_use","id":"i","name":"f","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"cache_read_input_tokens":2,"output_tokens":3}}`)
	if r.Outcome != bench.OK || r.Finish != bench.FinishTool || r.Thinking != "hm" || r.Text != "a" || string(r.ToolCalls) != `[{"id":"i","name":"f","arguments":"{}"}]` || r.ISL.Or(0) != 3 || r.OSL.Or(0) != 3 {
		t.Errorf("%+v", r)
	}
}

func TestEncode(t *testing.T) {
	half, topP, topK, seed := 0.5, 0.9, 40, int64(5)
	chat := func(messages string) bench.Request {
		q := bench.Request{OSL: 8}
		if err := json.Unmarshal([]byte(messages), &q.Messages); err != nil {
			t.Fatal(err)
		}
		return q
	}
	plain := bench.Request{Prompt: "hi", OSL: 8}
	const hi = `{"model":"m","max_tokens":8,"messages":[{"role":"user","content":"hi"}],"stream":false`
	tools := json.RawMessage(`[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"g","strict":true}}]`)
	const sent = `,"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{}}},{"name":"g","input_schema":{"type":"object"},"strict":true}]`
	choice := func(c string) dialect.Options {
		return dialect.Options{Model: "m", Tools: tools, ToolChoice: json.RawMessage(c)}
	}
	form := json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"array"}}}`)
	bare := MessagesEndpoint(dialect.Abilities{})
	for name, c := range map[string]struct {
		ep   dialect.Endpoint
		q    bench.Request
		o    dialect.Options
		want string // "" = refused
	}{
		"sampling": {endpoint, plain, dialect.Options{Model: "m", Stream: true, Sampling: bench.Sampling{Temperature: &half, TopP: &topP, TopK: &topK, Stop: []string{"x"}}},
			`{"model":"m","max_tokens":8,"messages":[{"role":"user","content":"hi"}],"stream":true,"temperature":0.5,"top_p":0.9,"top_k":40,"stop_sequences":["x"]}`},
		"a chat": {endpoint, chat(`[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"http://a/b"}}]},{"role":"assistant","content":"b"}]`), dialect.Options{Model: "m"},
			`{"model":"m","max_tokens":8,"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"image","source":{"type":"url","url":"http://a/b"}}]},{"role":"assistant","content":"b"}],"stream":false}`},
		"tools":             {endpoint, plain, choice(``), hi + sent + `}`},
		"any tool":          {endpoint, plain, choice(`"required"`), hi + sent + `,"tool_choice":{"type":"any"}}`},
		"no tool":           {endpoint, plain, choice(`"none"`), hi + sent + `,"tool_choice":{"type":"none"}}`},
		"one tool":          {endpoint, plain, choice(`{"type":"function","function":{"name":"f"}}`), hi + sent + `,"tool_choice":{"name":"f","type":"tool"}}`},
		"a form":            {endpoint, plain, dialect.Options{Model: "m", ResponseFormat: form}, hi + `,"output_config":{"format":{"schema":{"type":"array"},"type":"json_schema"}}}`},
		"a form, elsewhere": {bare, plain, dialect.Options{ResponseFormat: form}, ""},
		"token ids":         {endpoint, bench.Request{Tokens: []int{1}, OSL: 8}, dialect.Options{}, ""},
		"no limit":          {endpoint, bench.Request{Prompt: "hi"}, dialect.Options{}, ""},
		"a seed":            {endpoint, plain, dialect.Options{Sampling: bench.Sampling{Seed: &seed}}, ""},
		"log probabilities": {endpoint, plain, dialect.Options{Sampling: bench.Sampling{Logprobs: &topK}}, ""},
		"another field":     {endpoint, plain, dialect.Options{MaxTokensField: "max_completion_tokens"}, ""},
		"a late system":     {endpoint, chat(`[{"role":"user","content":"a"},{"role":"system","content":"b"}]`), dialect.Options{}, ""},
		"a system alone":    {endpoint, chat(`[{"role":"system","content":"b"}]`), dialect.Options{}, ""},
		"sound":             {endpoint, chat(`[{"role":"user","content":[{"type":"input_audio"}]}]`), dialect.Options{}, ""},
		"an unknown choice": {endpoint, plain, choice(`"perhaps"`), ""},
	} {
		call, err := c.ep.Codec.Encode(c.ep, &c.q, &c.o)
		if c.want == "" && err == nil || c.want != "" && (err != nil || string(call.Body) != c.want) {
			t.Errorf("%s: %v\n%s\n%s", name, err, call.Body, c.want)
		}
		if err == nil && !wire.HasField(call.Header, "Anthropic-Version") {
			t.Errorf("%s: headers %v", name, call.Header)
		}
	}
	call, _ := endpoint.Codec.Encode(endpoint, &plain, &dialect.Options{Header: []wire.Field{{Name: "Anthropic-Version", Value: "2030-01-01"}}})
	if s := fmt.Sprint(call.Header); strings.Contains(s, version) || !strings.Contains(s, "2030-01-01") {
		t.Errorf("headers %s", s)
	}
}
