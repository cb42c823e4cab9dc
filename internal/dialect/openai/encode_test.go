package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

func encode(t *testing.T, name, path string, q bench.Request, o dialect.Options) string {
	t.Helper()
	d := engine(name)
	call, err := shared.Encode(endpoint(d, path), &q, &o)
	if err != nil {
		t.Fatal(err)
	}
	if call.Method != "POST" || call.Path != path || !json.Valid(call.Body) {
		t.Errorf("%s %s %s", call.Method, call.Path, call.Body)
	}
	return string(call.Body)
}

func TestEncode(t *testing.T) {
	const chat, text = "/v1/chat/completions", "/v1/completions"
	zero, topP, topK, seed, lp := 0.0, 0.9, 40, int64(5), 3
	msgs := []bench.Message{{Role: "system", Content: json.RawMessage(`"be brief"`)}, {Role: "user", Content: json.RawMessage(`[{"type":"text","text":"a"}]`)}}
	stream := dialect.Options{Model: "m", Stream: true, Usage: true, Sampling: bench.Sampling{Temperature: &zero}}
	for _, c := range []struct {
		name, engine, path string
		q                  bench.Request
		o                  dialect.Options
		want               string
	}{
		{"chat", "openai", chat, bench.Request{Prompt: "hi", OSL: 8}, stream,
			`{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":8,"temperature":0}`},
		{"messages", "openai", chat, bench.Request{Messages: msgs}, dialect.Options{Model: "m"},
			`{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"a"}]}],"stream":false}`},
		{"ids", "vllm", text, bench.Request{Tokens: []int{1, 2}, OSL: 8}, dialect.Options{Model: "m", Stream: true, ForceLength: true},
			`{"model":"m","prompt":[1,2],"stream":true,"max_tokens":8,"ignore_eos":true,"min_tokens":8}`},
		{"forced, as far as llama.cpp can", "llamacpp", chat, bench.Request{Prompt: "a", OSL: 8}, dialect.Options{Model: "m", ForceLength: true},
			`{"model":"m","messages":[{"role":"user","content":"a"}],"stream":false,"max_tokens":8,"ignore_eos":true}`},
		{"Ollama cannot be forced", "ollama", chat, bench.Request{Prompt: "a", OSL: 8}, dialect.Options{Model: "m", ForceLength: true},
			`{"model":"m","messages":[{"role":"user","content":"a"}],"stream":false,"max_tokens":8}`},
		{"sampling", "openai", text, bench.Request{Prompt: "a"}, dialect.Options{Model: "m", MaxTokensField: "max_completion_tokens", Sampling: bench.Sampling{Temperature: &zero,
			TopP: &topP, TopK: &topK, Seed: &seed, Stop: []string{"x", "y"}, Logprobs: &lp, IgnoreEOS: true, MinTokens: 4}},
			`{"model":"m","prompt":"a","stream":false,"temperature":0,"top_p":0.9,"top_k":40,"seed":5,"stop":["x","y"],"logprobs":3,"ignore_eos":true,"min_tokens":4}`},
		{"chat logprobs and field", "openai", chat, bench.Request{Prompt: "a", OSL: 2}, dialect.Options{Model: "m", MaxTokensField: "max_completion_tokens", Sampling: bench.Sampling{Logprobs: &lp}},
			`{"model":"m","messages":[{"role":"user","content":"a"}],"stream":false,"max_completion_tokens":2,"logprobs":true,"top_logprobs":3}`},
		{"tools and a form", "openai", chat, bench.Request{Prompt: "a"}, dialect.Options{Model: "m", Tools: json.RawMessage(`[{"type":"function"}]`), ToolChoice: json.RawMessage(`"required"`),
			ResponseFormat: json.RawMessage(`{"type":"json_object"}`)},
			`{"model":"m","messages":[{"role":"user","content":"a"}],"stream":false,"tools":[{"type":"function"}],"tool_choice":"required","response_format":{"type":"json_object"}}`},
		{"extra fields replace, add and remove", "openai", text, bench.Request{Prompt: "a", Extra: json.RawMessage(`{"user": "u", "n": 2}`)},
			dialect.Options{Model: "m", Sampling: bench.Sampling{Temperature: &zero}, Extra: json.RawMessage(`{"temperature": 0.5, "stream": null, "n": 3}`)},
			`{"model":"m","prompt":"a","temperature":0.5,"user":"u","n":3}`},
	} {
		if got := encode(t, c.engine, c.path, c.q, c.o); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	d := engine("vllm")
	for _, c := range []struct {
		path string
		q    bench.Request
		o    dialect.Options
	}{
		{"/v1/chat/completions", bench.Request{Tokens: []int{1}}, dialect.Options{}},
		{"/v1/completions", bench.Request{Messages: []bench.Message{{Role: "user"}}}, dialect.Options{}},
		{"/v1/completions", bench.Request{Prompt: "a", Extra: json.RawMessage(`[1]`)}, dialect.Options{}},
		{"/v1/completions", bench.Request{Prompt: "a"}, dialect.Options{Extra: json.RawMessage(`{"a":`)}},
		{"/v1/completions", bench.Request{Prompt: "a"}, dialect.Options{Tools: json.RawMessage(`[{}]`)}},
		{"/v1/completions", bench.Request{Prompt: "a"}, dialect.Options{ResponseFormat: json.RawMessage(`{"type":"json_object"}`)}},
	} {
		if _, err := shared.Encode(endpoint(d, c.path), &c.q, &c.o); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%+v: %v", c.q, err)
		}
	}
}

// A server that is asked for an uncompressed stream has no reason to compress it (case c18).
func TestHeaders(t *testing.T) {
	d := engine("openai")
	call, _ := shared.Encode(d.Endpoints()[0], &bench.Request{Prompt: "a"}, &dialect.Options{Stream: true, Header: []wire.Field{{Name: "Authorization", Value: "Bearer k"}}})
	got := ""
	for _, h := range call.Header {
		got += h.Name + ": " + h.Value + "; "
	}
	if want := "Content-Type: application/json; Accept: text/event-stream; Accept-Encoding: identity; Authorization: Bearer k; "; got != want {
		t.Errorf("%s", got)
	}
	if len(call.Until) == 0 {
		t.Error("a stream without terminator")
	}
}

// Whatever a server sends, folding ends in a known outcome and never panics; a chunk of another protocol is named.
func FuzzFold(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"), true, uint16(200))
	f.Add([]byte(`{"choices":[{"message":{"content":"a","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"finish_reason":"tool_calls"}]}`), false, uint16(200))
	f.Add([]byte(`{"error":{"message":"m","code":null}}`), true, uint16(404))
	known := map[bench.Outcome]bool{}
	for _, o := range bench.Outcomes {
		known[o] = true
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool, status uint16) {
		tr := timed(body)
		tr.Status, tr.Header = int(status%400)+200, nil
		r := fold("/v1/chat/completions", stream, 4, 4, nil, tr)
		if !known[r.Outcome] {
			t.Fatalf("outcome %q", r.Outcome)
		}
		if r.Outcome == bench.OK && stream && (!r.First.Defined() || !r.Last.Defined() || r.Last.Or(0) < r.First.Or(0)) {
			t.Fatalf("%+v", r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

func TestMalformedNamesTheField(t *testing.T) {
	for body, want := range map[string]string{
		"data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\"}\n\n":    `no field "choices"`,
		"data: {\"choices\":\"x\"}\n\n":                                    "choices",
		"data: {\"choices\":[{\"delta\":{\"content\":5}}]}\n\n":            "content is neither a string nor null",
		"data: nonsense\n\ndata: [DONE]\n\n":                               "nonsense",
		"data: {\"type\":\"ping\"}\n\ndata: [DONE]\n\n":                    "without an answer",
		"data: {\"object\":\"other.kind\",\"x\":1}\n\ndata: [DONE]\n\n":    "without an answer",
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {": "without a finish reason",
	} {
		r := fold("/v1/chat/completions", true, 0, 0, nil, timed([]byte(body)))
		if r.Outcome != bench.Malformed && r.Outcome != bench.TruncatedStream || !strings.Contains(r.Error, want) {
			t.Errorf("%q: %s %q", body, r.Outcome, r.Error)
		}
	}
}
