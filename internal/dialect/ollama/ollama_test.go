package ollama

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/casetest"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

// write writes both endpoints: said is the field of the text, or of the message with it.
func write(p dialecttest.Part, said func(text, more string) string) string {
	line := func(fields string) string {
		return `{"model":"demo","created_at":"2026-01-01T00:00:00Z",` + fields + "}"
	}
	last := func(text string) string {
		return line(fmt.Sprintf(`%s,"done":true,"done_reason":%q,"total_duration":95000000,"load_duration":5000000,"prompt_eval_count":%d,"prompt_eval_duration":30000000,"eval_count":%d,"eval_duration":60000000`,
			said(text, ""), p.Reason, p.Prompt, p.Tokens))
	}
	switch p.Kind {
	case dialecttest.Text:
		return line(said(dialecttest.JSON(p.Text), "")+`,"done":false`) + "\n"
	case dialecttest.Reasoning:
		return line(said(`""`, `,"thinking":`+dialecttest.JSON(p.Text))+`,"done":false`) + "\n"
	case dialecttest.Finish:
		return last(`""`) + "\n"
	case dialecttest.Error:
		return fmt.Sprintf("{\"error\":%s}\n", dialecttest.JSON(p.Text))
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":%s}`, dialecttest.JSON(p.Text))
	case dialecttest.Body:
		return last(dialecttest.JSON(p.Text))
	}
	return ""
}

func writeGenerate(p dialecttest.Part) string {
	return write(p, func(text, more string) string { return `"response":` + text + more })
}

func writeChat(p dialecttest.Part) string {
	if p.Kind == dialecttest.Call {
		return fmt.Sprintf("{\"model\":\"demo\",\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":%q,\"arguments\":%s}}]},\"done\":false}\n", p.Name, p.Args)
	}
	return write(p, func(text, more string) string { return `"message":{"role":"assistant","content":` + text + more + "}" })
}

func TestConform(t *testing.T) {
	common := dialecttest.Protocol{
		Request: bench.Request{Prompt: "What color is the sky?"}, Lines: true, Stop: "stop", Length: "length", Tool: "stop", Terminator: dialecttest.Finish,
		Tokens: bench.FromCount, PlainTokens: bench.FromCount, Prompt: bench.FromCount,
	}
	without := map[dialecttest.Kind]string{
		dialecttest.Open: "a stream begins with its first text", dialecttest.Usage: "the counts are in the last line", dialecttest.End: "the last line is the end",
		dialecttest.Strange: "there is one kind of line", dialecttest.Arguments: "a call comes whole",
	}
	t.Run("chat", func(t *testing.T) {
		p := common
		p.Endpoint, p.Write, p.Without = ChatEndpoint(), writeChat, without
		p.Missing = map[string]string{"message": "{\"model\":\"demo\",\"done\":false}\n"}
		dialecttest.Conform(t, p)
	})
	t.Run("generate", func(t *testing.T) {
		p := common
		p.Endpoint, p.Write, p.Without = GenerateEndpoint(), writeGenerate, map[dialecttest.Kind]string{dialecttest.Call: "it has no tools"}
		for k, why := range without {
			p.Without[k] = why
		}
		p.Missing = map[string]string{"response": "{\"model\":\"demo\",\"done\":false}\n"}
		dialecttest.Conform(t, p)
	})
}

func TestGolden(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 3, map[string]dialect.Endpoint{"ollama-generate": GenerateEndpoint(), "ollama-chat": ChatEndpoint()})
}

func TestCase(t *testing.T) {
	c := casetest.One(t, "../../../testdata/cases", "c24-ollama-chat")
	f := dialect.NewFold(ChatEndpoint(), &bench.Request{}, &dialect.Options{Stream: true, KeepText: true})
	casetest.Compare(t, c.Name, c.Expect, f.End(c.Transcript()))
}

// Real answers fold to what their text shows.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name             string
		ep               dialect.Endpoint
		stream           bool
		outcome          bench.Outcome
		finish           bench.Finish
		isl, osl, events int
		text, server     string
	}{
		{"ollama-generate-stream", GenerateEndpoint(), true, bench.OK, bench.FinishLength, 6, 8, 8, " the capital of the country of France.",
			"map[server_decode_ms:941.005752 server_load_ms:165.918075 server_prefill_ms:208.372599 server_total_ms:1331.846024]"},
		{"ollama-generate-nonstream", GenerateEndpoint(), false, bench.OK, bench.FinishLength, 6, 4, 0, " the capital of the",
			"map[server_decode_ms:430.370909 server_load_ms:276.557625 server_prefill_ms:93.93623 server_total_ms:808.919449]"},
		{"ollama-chat-stream", ChatEndpoint(), true, bench.OK, bench.FinishLength, 6, 8, 8, " the capital of the country of France.",
			"map[server_decode_ms:1216.254625 server_load_ms:199.260927 server_prefill_ms:112.683714 server_total_ms:1540.743288]"},
		{"ollama-load", GenerateEndpoint(), false, bench.Empty, bench.FinishOther, -1, -1, 0, "", "map[]"},
	} {
		raw, err := os.ReadFile("../../../testdata/wire/recorded/" + c.name + ".response.http")
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		kind := "application/x-ndjson"
		if !c.stream {
			kind = "application/json"
		}
		r := dialect.NewFold(c.ep, &bench.Request{}, &dialect.Options{Stream: c.stream, KeepText: true}).End(dialecttest.Transcript(kind, body))
		if r.Outcome != c.outcome || r.Finish != c.finish || r.Text != c.text || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl || r.OutEvents != c.events ||
			fmt.Sprint(r.Server) != c.server {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestEncode(t *testing.T) {
	zero, seed, two := 0.0, int64(7), 2
	greedy := bench.Sampling{Temperature: &zero, Seed: &seed, Stop: []string{"."}}
	for _, c := range []struct {
		ep         dialect.Endpoint
		q          bench.Request
		o          dialect.Options
		path, body string
	}{
		{GenerateEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, dialect.Options{Model: "m", Stream: true, Sampling: bench.Sampling{Logprobs: &two}}, "/api/generate",
			`{"model":"m","prompt":"hi","raw":true,"stream":true,"options":{"num_predict":8},"logprobs":true,"top_logprobs":2}`},
		{GenerateEndpoint(), bench.Request{Prompt: "hi"}, dialect.Options{Model: "m", Extra: []byte(`{"keep_alive":"30m","options":{"num_ctx":8192}}`)}, "/api/generate",
			`{"model":"m","prompt":"hi","raw":true,"stream":false,"options":{"num_predict":-1,"num_ctx":8192},"keep_alive":"30m"}`},
		{ChatEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, dialect.Options{Model: "m", Tools: []byte(`[{"type":"function"}]`), ResponseFormat: []byte(`{"type":"json_object"}`)}, "/api/chat",
			`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}],"stream":false,"format":{"type":"object"},"options":{"num_predict":8}}`},
		{ChatEndpoint(), bench.Request{OSL: 8, Messages: []bench.Message{{Role: "system", Content: []byte(`"be brief"`)}, {Role: "user", Content: []byte(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`)}}},
			dialect.Options{Model: "m", Sampling: greedy}, "/api/chat",
			`{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"ab"}],"stream":false,"options":{"num_predict":8,"temperature":0,"seed":7,"stop":["."]}}`},
	} {
		call, err := c.ep.Codec.Encode(c.ep, &c.q, &c.o)
		if err != nil || call.Path != c.path || string(call.Body) != c.body {
			t.Errorf("%s %s, %v\nwant %s", call.Path, call.Body, err, c.body)
		}
	}
	for _, c := range []struct {
		ep dialect.Endpoint
		q  bench.Request
		o  dialect.Options
	}{
		{ep: GenerateEndpoint(), q: bench.Request{Tokens: []int{1}}},
		{ep: GenerateEndpoint(), o: dialect.Options{Tools: []byte(`[]`)}},
		{ep: ChatEndpoint(), q: bench.Request{Tokens: []int{1}}},
		{ep: ChatEndpoint(), q: bench.Request{Messages: []bench.Message{{Role: "user", Content: []byte(`[{"type":"image_url","image_url":{"url":"a"}}]`)}}}},
	} {
		if _, err := c.ep.Codec.Encode(c.ep, &c.q, &c.o); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// Each call of a tool is one of its own, though the server does not number them.
func TestCallsInOneLine(t *testing.T) {
	lines := `{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"a","arguments":{"done":true}}},{"function":{"name":"b","arguments":{}}}]},"done":false}` + "\n" +
		`{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"c","arguments":{}}}]},"done":false}` + "\n" +
		`{"message":{"role":"assistant","content":""},"done":true}` + "\n"
	r := dialect.NewFold(ChatEndpoint(), &bench.Request{}, &dialect.Options{Stream: true, KeepText: true}).End(dialecttest.Transcript("application/x-ndjson", []byte(lines)))
	if r.Outcome != bench.OK || r.Finish != bench.FinishStop || strings.Count(string(r.ToolCalls), `"name"`) != 3 {
		t.Errorf("%+v %s", r, r.ToolCalls)
	}
}
