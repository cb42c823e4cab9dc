package sglang

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

// write writes the parts that both ways of a stream have in common.
func write(p dialecttest.Part) string {
	meta := func(finish string) string {
		return fmt.Sprintf(`{"id":"c0ffee","finish_reason":%s,"prompt_tokens":%d,"completion_tokens":%d,"cached_tokens":0}`, finish, p.Prompt, p.Tokens)
	}
	reason := fmt.Sprintf(`{"type":%q,"matched":2}`, p.Reason)
	text, ids := dialecttest.JSON(p.All), dialecttest.JSON(append([]int{}, p.AllIDs...))
	switch p.Kind {
	case dialecttest.Text:
		return dialecttest.Data(`{"text":%s,"output_ids":%s,"meta_info":%s}`, text, ids, meta("null"))
	case dialecttest.Finish:
		return dialecttest.Data(`{"text":%s,"output_ids":%s,"meta_info":%s}`, text, ids, meta(reason))
	case dialecttest.End:
		return dialecttest.Data("[DONE]")
	case dialecttest.Error:
		return dialecttest.Data(`{"error":{"message":%s,"type":"x","code":500,"retryable":false}}`, dialecttest.JSON(p.Text))
	case dialecttest.Strange:
		return dialecttest.Data(`{"type":"brand_new"}`)
	case dialecttest.Body:
		return fmt.Sprintf(`{"text":%s,"output_ids":%s,"meta_info":%s}`, text, ids, meta(reason))
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":{"message":%s}}`, dialecttest.JSON(p.Text))
	}
	return ""
}

// writeIncremental writes what is new only.
func writeIncremental(p dialecttest.Part) string {
	switch p.Kind {
	case dialecttest.Text:
		p.All, p.AllIDs = p.Text, p.IDs
	case dialecttest.Finish:
		p.All, p.AllIDs = "", nil
	}
	return write(p)
}

func TestConform(t *testing.T) {
	for name, write := range map[string]func(dialecttest.Part) string{"cumulative": write, "incremental": writeIncremental} {
		t.Run(name, func(t *testing.T) {
			dialecttest.Conform(t, dialecttest.Protocol{
				Endpoint: GenerateEndpoint(), Request: bench.Request{Prompt: "What color is the sky?"}, Write: write,
				Stop: "stop", Length: "length", Terminator: dialecttest.End,
				Tokens: bench.FromIDs, PlainTokens: bench.FromIDs, Prompt: bench.FromCount, PerEvent: true,
				Missing: map[string]string{
					"meta_info":         dialecttest.Data(`{"text":"a","output_ids":[1]}`),
					"text":              dialecttest.Data(`{"meta_info":{"finish_reason":null,"completion_tokens":1}}`),
					"completion_tokens": dialecttest.Data(`{"text":"a","output_ids":[1],"meta_info":{"finish_reason":null}}`),
				},
				Without: map[dialecttest.Kind]string{
					dialecttest.Open:      "each event is an answer so far",
					dialecttest.Reasoning: "there is one text",
					dialecttest.Call:      "it has no tools",
					dialecttest.Arguments: "it has no tools",
					dialecttest.Usage:     "each event has the counts",
				},
			})
		})
	}
}

func TestGoldenStreams(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 3, map[string]dialect.Endpoint{
		"sglang-generate-cumulative": GenerateEndpoint(), "sglang-generate-incremental": GenerateEndpoint()})
}

func fold(stream bool, body string) bench.Record {
	kind := "text/event-stream"
	if !stream {
		kind = "application/json"
	}
	return dialect.NewFold(GenerateEndpoint(), &bench.Request{}, &dialect.Options{Stream: stream, KeepText: true}).End(dialecttest.Transcript(kind, []byte(body)))
}

// event is an event of /generate.
func event(text, ids string, total int, finish string) string {
	return dialecttest.Data(`{"text":%q,"output_ids":%s,"meta_info":{"finish_reason":%s,"completion_tokens":%d}}`, text, ids, finish, total)
}

// How events follow each other tells whether each holds all so far.
func TestModes(t *testing.T) {
	const stop = `{"type":"stop"}`
	for _, c := range []struct {
		name, events, text, tokens string
	}{
		{"the same word twice, incremental", event("ha", "[5]", 1, "null") + event("ha", "[5]", 2, "null") + event("", "[]", 2, stop), "haha", "[1 1]"},
		{"the same word twice, cumulative", event("ha", "[5]", 1, "null") + event("haha", "[5,5]", 2, "null") + event("haha", "[5,5]", 2, stop), "haha", "[1 1]"},
		{"tokens without a text at first, cumulative", event("", "[1]", 1, "null") + event("", "[1,2]", 2, "null") + event("é", "[1,2,3]", 3, stop), "é", "[1 1 1]"},
		{"tokens without a text at first, incremental", event("", "[1]", 1, "null") + event("", "[2]", 2, "null") + event("é", "[3]", 3, stop), "é", "[1 1 1]"},
		{"a slow reader", event("a b c", "[1,2,3]", 3, "null") + event("a b c d e", "[1,2,3,4,5]", 5, stop), "a b c d e", "[3 2]"},
		{"one event", event("a", "[1]", 1, stop), "a", "[1]"},
		{"a stop word taken off", event("a", "[1]", 1, "null") + event("a EN", "[1,2]", 2, "null") + event("a ", "[1,2,3]", 3, stop), "a EN", "[1 1 1]"},
		{"a character that was not whole", event("a", "[1]", 1, "null") + event("ab\ufffd", "[1,2]", 2, "null") + event("ab\u00e9c", "[1,2,3]", 3, stop), "ab\ufffd\u00e9c", "[1 1 1]"},
	} {
		r := fold(true, c.events+dialecttest.Data("[DONE]"))
		if r.Outcome != bench.OK || r.Text != c.text || fmt.Sprint(r.EventTokens) != c.tokens || r.OSLSource != bench.FromIDs {
			t.Errorf("%s: %s (%s), text %q, tokens %v from %s", c.name, r.Outcome, r.Error, r.Text, r.EventTokens, r.OSLSource)
		}
	}
}

// Without ids the count is the server's own, and text alone tells the mode.
func TestWithoutIDs(t *testing.T) {
	one := func(text string, total int, finish string) string {
		return dialecttest.Data(`{"text":%q,"meta_info":{"finish_reason":%s,"completion_tokens":%d}}`, text, finish, total)
	}
	for _, events := range []string{one("a", 1, "null") + one("abc", 3, `"stop"`), one("a", 1, "null") + one("bc", 3, `"stop"`)} {
		r := fold(true, events+dialecttest.Data("[DONE]"))
		if r.Outcome != bench.OK || r.Text != "abc" || r.OSL.Or(0) != 3 || r.OSLSource != bench.FromCount || fmt.Sprint(r.EventTokens) != "[1 2]" {
			t.Errorf("%s (%s), text %q, %v from %s, tokens %v", r.Outcome, r.Error, r.Text, r.OSL, r.OSLSource, r.EventTokens)
		}
	}
}

// The server's own times are kept in ms, and an abort is a failure also when nothing is streamed.
func TestEnds(t *testing.T) {
	r := fold(false, `{"text":"a","output_ids":[1],"meta_info":{"finish_reason":{"type":"length","length":1},"completion_tokens":1,"e2e_latency":0.5,"queue_time":0.25,"first_token_latency":0.125}}`)
	if r.Outcome != bench.OK || len(r.Server) != 3 || r.Server["server_e2e_ms"] != 500 || r.Server["server_queue_ms"] != 250 || r.Server["server_ttft_ms"] != 125 {
		t.Errorf("%s (%s), times %v", r.Outcome, r.Error, r.Server)
	}
	r = fold(false, `{"text":"","output_ids":[],"meta_info":{"finish_reason":{"type":"abort","message":"too long","status_code":400}}}`)
	if r.Outcome != bench.StreamError || r.Error != "too long (code 400)" {
		t.Errorf("%s (%s)", r.Outcome, r.Error)
	}
}

// Several answers count their own tokens; the sum is the request's.
func TestSeveralAnswers(t *testing.T) {
	of := func(index int, text, ids string, total int, finish string) string {
		return fmt.Sprintf(`{"index":%d,`, index) + strings.TrimPrefix(strings.TrimSpace(event(text, ids, total, finish)), "data: {") + "\n\n"
	}
	stream := "data: " + of(0, "a", "[1]", 1, "null") + "data: " + of(1, "b", "[7]", 1, "null") + "data: " + of(0, "ac", "[1,2]", 2, `"stop"`) + "data: " + of(1, "bd", "[7,8]", 2, `"stop"`) + "data: [DONE]\n\n"
	list := "[" + of(0, "ac", "[1,2]", 2, `"stop"`) + "," + of(0, "bd", "[7,8]", 2, `"stop"`) + "]"
	for _, r := range []bench.Record{fold(true, stream), fold(false, list)} {
		if r.Outcome != bench.OK || r.Choices != 2 || r.OSL.Or(0) != 4 || len(r.Text) != 4 {
			t.Errorf("%s (%s): %d choices, %v tokens, text %q", r.Outcome, r.Error, r.Choices, r.OSL, r.Text)
		}
	}
}

func TestEncode(t *testing.T) {
	temperature, topP, topK, seed, logprobs := 0.5, 0.9, 40, int64(7), 2
	o := &dialect.Options{Stream: true, ForceLength: true, Priority: &topK, ResponseFormat: json.RawMessage(`{"type":"json_object"}`), Sampling: bench.Sampling{Temperature: &temperature, TopP: &topP, TopK: &topK, Seed: &seed, Stop: []string{"x"}, Logprobs: &logprobs}}
	call, err := GenerateEndpoint().Codec.Encode(GenerateEndpoint(), &bench.Request{Tokens: []int{1, 2}, OSL: 128}, o)
	want := `{"input_ids":[1,2],"sampling_params":{"max_new_tokens":128,"temperature":0.5,"top_p":0.9,"top_k":40,"sampling_seed":7,"stop":["x"],"ignore_eos":true,"min_new_tokens":128,"json_schema":"{\"type\":\"object\"}"},` +
		`"stream":true,"priority":40,"return_logprob":true,"top_logprobs_num":2}`
	if err != nil || string(call.Body) != want {
		t.Errorf("%v\n%s\n%s", err, call.Body, want)
	}
	for name, refused := range map[string]func() error{
		"a chat": func() error {
			_, err := GenerateEndpoint().Codec.Encode(GenerateEndpoint(), &bench.Request{Messages: []bench.Message{{Role: "user"}}}, o)
			return err
		},
		"tools": func() error {
			_, err := GenerateEndpoint().Codec.Encode(GenerateEndpoint(), &bench.Request{Prompt: "a"}, &dialect.Options{Tools: json.RawMessage("[{}]")})
			return err
		},
	} {
		if refused() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
