package llamacpp

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

func write(p dialecttest.Part) string {
	text := dialecttest.JSON(p.Text)
	event := func(content string) string {
		return dialecttest.Data(`{"index":0,"content":%s,"tokens":[%d],"stop":false,"id_slot":-1,"tokens_predicted":%d,"tokens_evaluated":%d}`, content, 100+p.Tokens, p.Tokens, p.Prompt)
	}
	last := func(content string) string {
		return fmt.Sprintf(`{"index":0,"content":%s,"tokens":[],"id_slot":0,"stop":true,"model":"demo","tokens_predicted":%d,"tokens_evaluated":%d,"prompt":"<s>The \"stop\":true","stop_type":%q,"timings":{"cache_n":0,"prompt_n":%d,"prompt_ms":18.5,"predicted_n":%d,"predicted_ms":70.25}}`,
			content, p.Tokens, p.Prompt, p.Reason, p.Prompt, p.Tokens)
	}
	switch p.Kind {
	case dialecttest.Text:
		return event(text)
	case dialecttest.Finish:
		return dialecttest.Data("%s", last(`""`))
	case dialecttest.Error:
		return dialecttest.Data(`{"error":{"code":500,"message":%s,"type":"server_error"}}`, text)
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`, p.Status, text)
	case dialecttest.Body:
		return last(text)
	}
	return ""
}

var protocol = dialecttest.Protocol{
	Endpoint: CompletionEndpoint(), Request: bench.Request{Tokens: []int{128000, 3923, 1933}}, Write: write,
	Without: map[dialecttest.Kind]string{
		dialecttest.Open: "a stream begins with its first text", dialecttest.Reasoning: "there is one text", dialecttest.Call: "it has no tools",
		dialecttest.Arguments: "it has no tools", dialecttest.Usage: "each event counts", dialecttest.End: "the event with the reason is the end",
		dialecttest.Strange: "there is one kind of event",
	},
	Stop: "eos", Length: "limit", Terminator: dialecttest.Finish, Tokens: bench.FromCount, PlainTokens: bench.FromCount, Prompt: bench.FromCount, PerEvent: true,
	Missing: map[string]string{"content": dialecttest.Data(`{"index":0,"stop":false,"tokens_predicted":3}`)},
}

func TestConform(t *testing.T) { dialecttest.Conform(t, protocol) }

func TestGolden(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 1, map[string]dialect.Endpoint{"llamacpp-completion": CompletionEndpoint()})
}

// Real answers fold to what their text shows.
func TestRecorded(t *testing.T) {
	for _, c := range []struct {
		name             string
		stream           bool
		isl, osl, events int
		text, server     string
	}{
		{"llamacpp-completion-native-stream", true, 6, 8, 8, " the capital of the country of France.", ""},
		{"llamacpp-completion-native-nonstream", false, 6, 4, 0, " the capital of the", "717.95"},
	} {
		raw, err := os.ReadFile("../../../testdata/wire/recorded/" + c.name + ".response.http")
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		kind := "text/event-stream"
		if !c.stream {
			kind = "application/json"
		}
		r := dialect.NewFold(CompletionEndpoint(), &bench.Request{}, &dialect.Options{Stream: c.stream, KeepText: true}).End(dialecttest.Transcript(kind, body))
		if r.Outcome != bench.OK || r.Finish != bench.FinishLength || r.Text != c.text || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl || r.OutEvents != c.events ||
			r.OSLSource != bench.FromCount || r.Cached.Or(-1) != 1 || r.Server["server_decode_ms"] <= 0 || !strings.Contains(fmt.Sprint(r.Server["server_prefill_ms"]), c.server) {
			t.Errorf("%s: %+v", c.name, r)
		}
		if c.stream && fmt.Sprint(r.EventTokens) != "[1 1 1 1 1 1 1 1]" {
			t.Errorf("%s: %v", c.name, r.EventTokens)
		}
	}
}

func TestEncode(t *testing.T) {
	zero, seed := 0.0, int64(7)
	for _, c := range []struct {
		q    bench.Request
		o    dialect.Options
		body string
	}{
		{bench.Request{Tokens: []int{1, 306}, OSL: 128}, dialect.Options{Stream: true, ForceLength: true, Sampling: bench.Sampling{Temperature: &zero, Seed: &seed}},
			`{"prompt":[1,306],"n_predict":128,"stream":true,"cache_prompt":false,"temperature":0,"seed":7,"ignore_eos":true}`},
		{bench.Request{Prompt: "hi"}, dialect.Options{Extra: []byte(`{"cache_prompt":true}`)}, `{"prompt":"hi","n_predict":-1,"stream":false,"cache_prompt":true}`},
		{bench.Request{Prompt: "hi", OSL: 1}, dialect.Options{ResponseFormat: []byte(`{"type":"json_object"}`)},
			`{"prompt":"hi","n_predict":1,"stream":false,"cache_prompt":false,"json_schema":{"type":"object"}}`},
	} {
		call, err := CompletionEndpoint().Codec.Encode(CompletionEndpoint(), &c.q, &c.o)
		if err != nil || call.Path != "/completion" || string(call.Body) != c.body {
			t.Errorf("%s %s, %v\nwant %s", call.Path, call.Body, err, c.body)
		}
	}
	for _, c := range []struct {
		q bench.Request
		o dialect.Options
	}{{q: bench.Request{Messages: []bench.Message{{Role: "user"}}}}, {o: dialect.Options{Tools: []byte(`[]`)}}, {o: dialect.Options{ResponseFormat: []byte(`{"type":"verse"}`)}}} {
		if _, err := CompletionEndpoint().Codec.Encode(CompletionEndpoint(), &c.q, &c.o); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
