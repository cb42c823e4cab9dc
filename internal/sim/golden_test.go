package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

// question is a request that makes a dialect say what a golden file says.
type question struct {
	file, dialect, path, body string
	reasoning                 int
	output                    string // law of the length: "7" ends by itself within max_tokens 40
	fault                     string
}

const ask = `"model":"m","messages":[{"role":"user","content":"What color is the sky?"}],`

func questions() []question {
	const (
		chat, completions = "/v1/chat/completions", "/v1/completions"
		usage             = `,"stream":true,"stream_options":{"include_usage":true}}`
		stream            = `,"stream":true}`
		tools             = `,"tools":[{"type":"function","function":{"name":"get_weather"}}],"tool_choice":"required"`
	)
	seven, forty := `"max_tokens":7`, `"max_tokens":40`
	say := `{` + ask
	text := `{"model":"m","prompt":"What color is the sky?",`
	return []question{
		{"openai-chat.sse", "openai", chat, say + forty + usage, 0, "7", ""},
		{"openai-completions.sse", "openai", completions, text + seven + usage, 0, "", ""},
		{"openai-responses.sse", "openai", "/v1/responses", `{"model":"m","input":"hi","max_output_tokens":40,"stream":true}`, 0, "7", ""},
		{"anthropic-messages.sse", "anthropic", "/v1/messages", say + forty + stream, 0, "7", ""},
		{"anthropic-messages-error.sse", "anthropic", "/v1/messages", say + forty + stream, 0, "", "error@3:1"},
		{"vllm-chat-reasoning.sse", "vllm", chat, say + forty + usage, 5, "8", ""},
		{"vllm-chat-error.sse", "vllm", chat, say + forty + stream, 0, "", "error@2:1"},
		{"vllm-completions.sse", "vllm", completions, `{"model":"m","prompt":[600,601,602],"return_token_ids":true,"ignore_eos":true,` + seven + usage, 0, "", ""},
		{"vllm-messages.sse", "vllm", "/v1/messages", say + forty + stream, 0, "7", ""},
		{"vllm-responses.sse", "vllm", "/v1/responses", `{"model":"m","input":"hi","max_output_tokens":7,"stream":true}`, 0, "", ""},
		{"vllm-inference-generate.sse", "vllm", "/inference/v1/generate", `{"token_ids":[600,601],"sampling_params":{` + seven + `}` + usage, 0, "", ""},
		{"sglang-generate.sse", "sglang", "/generate", `{"text":"hi","sampling_params":{"max_new_tokens":7}` + stream, 0, "", ""},
		{"sglang-chat.sse", "sglang", chat, say + forty + usage, 0, "7", ""},
		{"sglang-chat-reasoning.sse", "sglang", chat, say + seven + usage, 3, "", ""},
		{"trtllm-chat.sse", "trtllm", chat, say + seven + usage, 0, "", ""},
		{"trtllm-completions-ids.sse", "trtllm", completions, text + seven + `,"detokenize":false,"stream":true,"stream_options":{"include_usage":true,` +
			`"continuous_usage_stats":false}}`, 0, "", ""},
		{"triton-trtllm-generate_stream.sse", "triton", "/v2/models/ensemble/generate_stream",
			`{"text_input":"hi","max_tokens":7,"return_num_input_tokens":true,"return_num_output_tokens":true}`, 0, "", ""},
		{"triton-vllm-generate_stream.sse", "triton", "/v2/models/m/generate_stream", `{"text_input":"hi","return_num_input_tokens":true,` +
			`"return_num_output_tokens":true,"return_finish_reason":true,"parameters":{"max_tokens":40}}`, 0, "7", ""},
		{"triton-generate_stream-error.sse", "triton", "/v2/models/m/generate_stream", `{"text_input":"hi","return_num_input_tokens":true,` +
			`"return_num_output_tokens":true,"return_finish_reason":true,"parameters":{"max_tokens":40}}`, 0, "", "error@1:1"},
		{"triton-openai-chat.sse", "triton", chat, say + forty + usage, 0, "7", ""},
		{"tgi-generate_stream.sse", "tgi", "/generate_stream", `{"inputs":"hi","parameters":{"max_new_tokens":40,"details":true}}`, 0, "7", ""},
		{"tgi-generate_stream-error.sse", "tgi", "/generate_stream", `{"inputs":"hi","parameters":{"max_new_tokens":40,"details":true}}`, 0, "", "error@1:1"},
		{"tgi-chat.sse", "tgi", chat, say + forty + usage, 0, "7", ""},
		{"lmdeploy-chat.sse", "lmdeploy", chat, say + forty + usage, 0, "7", ""},
		{"lmdeploy-generate.sse", "lmdeploy", "/generate", `{"prompt":"hi",` + seven + stream, 0, "", ""},
		{"llamacpp-completion.sse", "llamacpp", "/completion", `{"prompt":"hi","n_predict":40,"stream":true}`, 0, "7", ""},
		{"llamacpp-chat.sse", "llamacpp", chat, say + forty + usage, 0, "7", ""},
		{"llamacpp-completions.sse", "llamacpp", completions, text + seven + stream, 0, "", ""},
		{"ollama-generate.ndjson", "ollama", "/api/generate", `{"model":"m","prompt":"hi","options":{"num_predict":40}}`, 0, "7", ""},
		{"ollama-chat-thinking.ndjson", "ollama", "/api/chat", say + `"options":{"num_predict":7}}`, 3, "", ""},
		{"ollama-generate-error.ndjson", "ollama", "/api/generate", `{"model":"m","prompt":"hi","options":{"num_predict":40}}`, 0, "", "error@2:1"},
		{"ollama-openai-chat.sse", "ollama", chat, say + forty + usage, 0, "7", ""},
		{"dynamo-chat.sse", "dynamo", chat, say + seven + `,"nvext":{"annotations":["formatted_prompt","token_ids"],"extra_fields":["timing"]}` + usage, 0, "", ""},
		{"dynamo-chat-error.sse", "dynamo", chat, say + seven + stream, 0, "", "error@2:1"},
		// recorded from the engines themselves
		{"recorded/llamacpp-messages-stream.response.http", "llamacpp", "/v1/messages", say + seven + stream, 0, "", ""},
		{"recorded/llamacpp-chat-stream.response.http", "llamacpp", chat, say + seven + usage, 0, "", ""},
		{"recorded/llamacpp-v1-completions-stream.response.http", "llamacpp", completions, text + seven + stream, 0, "", ""},
		{"recorded/ollama-messages-stream.response.http", "ollama", "/v1/messages", say + seven + stream, 0, "", ""},
		{"recorded/ollama-generate-nonstream.response.http", "ollama", "/api/generate",
			`{"model":"m","prompt":"hi","stream":false,"options":{"num_predict":7}}`, 0, "", ""},
		{"recorded/ollama-chat-stream.response.http", "ollama", "/api/chat", say + `"options":{"num_predict":7}}`, 0, "", ""},
		{"recorded/ollama-v1-completions-stream.response.http", "ollama", completions, text + seven + usage, 0, "", ""},
		{"recorded/ollama-load.response.http", "ollama", "/api/generate", `{"model":"m"}`, 0, "", ""},
		{"recorded/vllm-responses-stream.response.http", "vllm", "/v1/responses", `{"model":"m","input":"hi","max_output_tokens":7,"stream":true}`, 0, "", ""},
		{"recorded/vllm-anthropic-messages-stream.response.http", "vllm", "/v1/messages", say + seven + stream, 0, "", ""},
		{"recorded/ollama-unknown-model.response.http", "ollama", "/api/generate", `{"model":"nope","prompt":"x"}`, 0, "", ""},
		{"recorded/llamacpp-too-long.response.http", "llamacpp", "/completion", `{"prompt":"` + strings.Repeat("word ", 2000) + `"}`, 0, "", ""},
		{"recorded/llamacpp-malformed.response.http", "llamacpp", "/completion", `{"prompt":`, 0, "", ""},
		{"recorded/llamacpp-tokenize.response.http", "llamacpp", "/tokenize", `{"content":"The capital","add_special":true}`, 0, "", ""},
		{"recorded/ollama-get-api-ps.response.http", "ollama", "GET /api/ps", ``, 0, "", ""},
		{"recorded/ollama-get-api-tags.response.http", "ollama", "GET /api/tags", ``, 0, "", ""},
		{"recorded/ollama-get-api-version.response.http", "ollama", "GET /api/version", ``, 0, "", ""},
		{"recorded/ollama-get-v1-models.response.http", "ollama", "GET /v1/models", ``, 0, "", ""},
		{"recorded/llamacpp-get-v1-models.response.http", "llamacpp", "GET /v1/models", ``, 0, "", ""},
		{"recorded/llamacpp-get-health.response.http", "llamacpp", "GET /health", ``, 0, "", ""},
		{"recorded/vllm-get-v1-models.response.http", "vllm", "GET /v1/models", ``, 0, "", ""},
		// whole bodies
		{"openai-embeddings.json", "openai", "/v1/embeddings", `{"input":["a b","c"],"dimensions":4}`, 0, "", ""},
		{"openai-embeddings-base64.json", "openai", "/v1/embeddings", `{"input":"a b","encoding_format":"base64"}`, 0, "", ""},
		{"vllm-rerank.json", "vllm", "/rerank", `{"model":"m","query":"capital","documents":["a b","c d"]}`, 0, "", ""},
		{"cohere-v2-rerank.json", "openai", "/v2/rerank", `{"model":"m","query":"capital","documents":["a b","c d"]}`, 0, "", ""},
		{"llamacpp-rerank.json", "llamacpp", "/v1/rerank", `{"query":"capital","documents":["a b","c d"]}`, 0, "", ""},
		{"tei-rerank.json", "tei", "/rerank", `{"query":"capital","texts":["a b","c d"]}`, 0, "", ""},
		{"tei-embed.json", "tei", "/embed", `{"inputs":["a b","c"]}`, 0, "", ""},
		{"kserve-v2-infer.json", "triton", "/v2/models/m/infer", `{"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1],"data":["hi"]}]}`, 0, "", ""},
		{"openai-chat-tools.sse", "openai", chat, say + seven + tools + stream, 0, "", ""},
	}
}

// outline is a stream event by event, repetitions left out: the event's name, and its keys in their order with the kinds of the values.
func outline(t *testing.T, kind, body string) (out []string) {
	t.Helper()
	add := func(s string) {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	switch {
	case body == "":
	case strings.Contains(kind, "event-stream"):
		var sse wire.SSE
		if err := sse.Feed([]byte(body), func(e wire.Event) {
			s := string(e.Data)
			if s != "[DONE]" && s != "" {
				s = shape(t, s)
			}
			add(string(e.Name) + " " + s)
		}); err != nil {
			t.Fatal(err)
		}
	case strings.Contains(kind, "ndjson"):
		for line := range strings.Lines(body) {
			add(shape(t, line))
		}
	default:
		add(shape(t, body))
	}
	return out
}

// answerTo is what a dialect answers to a question.
func answerTo(t *testing.T, q question) (got answer) {
	synctest.Test(t, func(t *testing.T) {
		cfg := Config{Mode: ModeExact, Dialect: q.dialect, Model: "m", MaxModelLen: 1024, Reasoning: q.reasoning, TTFT: Fixed(30 * time.Millisecond),
			ITL: Fixed(10 * time.Millisecond)}
		if q.output != "" {
			cfg.Output = must(ParseLengthLaw(q.output))
		}
		var err error
		if cfg.Faults, err = ParseFaults(q.fault); err != nil {
			t.Fatal(err)
		}
		r := serveMem(t, cfg)
		c := r.dial()
		if path, ok := strings.CutPrefix(q.path, "GET "); ok {
			got = c.call(get(path))
		} else {
			got = c.call(post(q.path, q.body))
		}
		c.nc.Close()
		r.stop()
	})
	return got
}

// Each emitter writes the keys of the golden file of its protocol, in its order, event by event, with values of the same kind, and the
// content type of the protocol.
func TestSameShapeAsGolden(t *testing.T) {
	for _, q := range questions() {
		raw, err := os.ReadFile(filepath.Join("../../testdata/wire", q.file))
		if err != nil {
			t.Fatal(err)
		}
		want, kind, status := string(raw), "", 200
		switch filepath.Ext(q.file) {
		case ".sse":
			kind = eventStream
		case ".ndjson":
			kind = "application/x-ndjson"
		case ".json":
			kind = jsonKind
		case ".http":
			a, err := parseRecorded(raw)
			if err != nil {
				t.Fatal(err)
			}
			want, status = "", a.status
			for _, e := range a.events {
				want += string(e.data)
			}
			for _, f := range a.header {
				if strings.EqualFold(f.name, "content-type") {
					kind = f.value
				}
			}
		}
		got := answerTo(t, q)
		if got.status != status {
			t.Errorf("%s: status %d: %s", q.file, got.status, got.body)
			continue
		}
		if k := got.header.Get("Content-Type"); strings.Split(k, ";")[0] != strings.Split(kind, ";")[0] {
			t.Errorf("%s: content type %q, want %q", q.file, k, kind)
		}
		g, w := outline(t, kind, got.body), outline(t, kind, want)
		if q.file == "openai-chat-tools.sse" { // without its short form of usage
			g, w = g[:3], w[:3]
		}
		if q.fault != "" { // how it ends; the beginning is asked for above
			g, w = g[len(g)-2:], w[len(w)-2:]
		}
		if !slices.Equal(g, w) {
			t.Errorf("%s:\ngot  %s\nwant %s", q.file, strings.Join(g, "\n     "), strings.Join(w, "\n     "))
		}
	}
}

// Every dialect's every word exists, and what is asked of it is answered.
func TestDialects(t *testing.T) {
	for _, name := range Dialects() {
		d := dialectOf(name)
		if len(d.routes) == 0 || d.fingerprint == "" || d.refuse == nil || d.guards == nil {
			t.Errorf("%s is not complete", name)
		}
		seen := map[string]bool{}
		for _, r := range d.routes {
			if r.read == nil || r.speak == nil || seen[r.path] {
				t.Errorf("%s: %s is not complete, or twice", name, r.path)
			}
			seen[r.path] = true
		}
		for _, p := range d.pages {
			if seen[fmt.Sprint(p.method, p.path)] || p.body == nil {
				t.Errorf("%s: %s twice", name, p.path)
			}
			seen[fmt.Sprint(p.method, p.path)] = true
		}
	}
}
