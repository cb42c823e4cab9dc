package tgi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/casetest"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

func write(p dialecttest.Part) string {
	text := dialecttest.JSON(p.Text)
	switch p.Kind {
	case dialecttest.Text:
		return dialecttest.Data(`{"index":%d,"token":{"id":%d,"text":%s,"logprob":-0.125,"special":false},"generated_text":null,"details":null}`, p.Tokens, p.IDs[0], text)
	case dialecttest.Finish:
		return dialecttest.Data(`{"index":%d,"token":{"id":2,"text":"</s>","logprob":-0.125,"special":true},"generated_text":%s,"details":{"finish_reason":%q,"generated_tokens":%d,"seed":null,"input_length":%d}}`,
			p.Tokens, dialecttest.JSON(p.All), p.Reason, p.Tokens, p.Prompt)
	case dialecttest.Error:
		return dialecttest.Data(`{"error":%s,"error_type":"generation"}`, text)
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":%s,"error_type":"validation"}`, text)
	case dialecttest.Body:
		tokens := ""
		for _, id := range p.AllIDs {
			tokens += fmt.Sprintf(`,{"id":%d,"text":"a","logprob":-0.125,"special":false}`, id)
		}
		prefill := ""
		for range p.Prompt {
			prefill += `,{"id":1,"text":"a","logprob":null}`
		}
		return fmt.Sprintf(`{"generated_text":%s,"details":{"finish_reason":%q,"generated_tokens":%d,"seed":null,"prefill":[%s],"tokens":[%s]}}`,
			text, p.Reason, p.Tokens, prefill[1:], tokens[1:])
	}
	return ""
}

var protocol = dialecttest.Protocol{
	Endpoint: GenerateEndpoint(), Request: bench.Request{Prompt: "What color is the sky?"}, Write: write,
	Without: map[dialecttest.Kind]string{
		dialecttest.Open: "a stream begins with its first token", dialecttest.Reasoning: "there is one text", dialecttest.Call: "it has no tools",
		dialecttest.Arguments: "it has no tools", dialecttest.Usage: "the counts are in the event of the last token", dialecttest.End: "the end of the body is the end",
		dialecttest.Strange: "there is one kind of event",
	},
	Stop: "eos_token", Length: "length", Tokens: bench.FromIDs, PlainTokens: bench.FromIDs, Prompt: bench.FromCount, PerEvent: true, OneEach: true, EndToken: true,
	Missing: map[string]string{"token": dialecttest.Data(`{"index":1,"generated_text":null}`), "generated_text": `{"details":null}`},
}

func TestConform(t *testing.T) { dialecttest.Conform(t, protocol) }

func TestGolden(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 2, map[string]dialect.Endpoint{"tgi-generate": GenerateEndpoint()})
}

func TestCase(t *testing.T) {
	c := casetest.One(t, "../../../testdata/cases", "c25-tgi-generate-stream")
	f := dialect.NewFold(GenerateEndpoint(), &bench.Request{OSL: 3}, &dialect.Options{Stream: true, KeepText: true})
	casetest.Compare(t, c.Name, c.Expect, f.End(c.Transcript()))
}

// What is sent keeps to the server's bounds, with the path of what is asked.
func TestEncode(t *testing.T) {
	zero, warm, one, seed := 0.0, 0.7, 1.0, int64(7)
	schema := []byte(`{"type":"json_schema","json_schema":{"schema":{"type":"object"}}}`)
	for _, c := range []struct {
		o          dialect.Options
		path, body string
	}{
		{dialect.Options{Stream: true, Sampling: bench.Sampling{Temperature: &zero, TopP: &one, Seed: &seed}}, "/generate_stream",
			`{"inputs":"hi","parameters":{"max_new_tokens":8,"do_sample":false,"seed":7,"details":true}}`},
		{dialect.Options{Sampling: bench.Sampling{Temperature: &warm, Stop: []string{"."}}}, "/generate",
			`{"inputs":"hi","parameters":{"max_new_tokens":8,"do_sample":true,"temperature":0.7,"stop":["."],"details":true}}`},
		{dialect.Options{ResponseFormat: schema}, "/generate",
			`{"inputs":"hi","parameters":{"max_new_tokens":8,"details":true,"grammar":{"type":"json","value":{"type":"object"}}}}`},
		{dialect.Options{Extra: []byte(`{"parameters":{"typical_p":0.9,"details":null}}`)}, "/generate",
			`{"inputs":"hi","parameters":{"max_new_tokens":8,"typical_p":0.9}}`},
	} {
		call, err := GenerateEndpoint().Codec.Encode(GenerateEndpoint(), &bench.Request{Prompt: "hi", OSL: 8}, &c.o)
		if err != nil || call.Path != c.path || string(call.Body) != c.body {
			t.Errorf("%s %s, %v\nwant %s", call.Path, call.Body, err, c.body)
		}
	}
	for _, q := range []bench.Request{{Tokens: []int{1}}, {Messages: []bench.Message{{Role: "user"}}}} {
		if _, err := GenerateEndpoint().Codec.Encode(GenerateEndpoint(), &q, &dialect.Options{}); err == nil {
			t.Errorf("%+v is taken", q)
		}
	}
}

// A plain answer without lists of tokens tells its counts and times in its head.
func TestHead(t *testing.T) {
	body := []byte(`{"generated_text":"The sky"}`)
	tr := &wire.Transcript{Status: 200, Raw: body, Bytes: len(body), Marks: []wire.Mark{{End: len(body), At: time.Second}}, Sent: opt.Some(time.Duration(0)), Ended: opt.Some(time.Second),
		Header: http.Header{"Content-Type": {"application/json"}, "X-Prompt-Tokens": {"7"}, "X-Generated-Tokens": {"2"}, "X-Total-Time": {"812"}, "X-Queue-Time": {"3"},
			"X-Inference-Time": {"800"}, "X-Validation-Time": {"1"}, "X-Time-Per-Token": {"400"}}}
	r := dialect.NewFold(GenerateEndpoint(), &bench.Request{}, &dialect.Options{}).End(tr)
	want := "map[server_inference_ms:800 server_per_token_ms:400 server_queue_ms:3 server_total_ms:812 server_validation_ms:1]"
	if r.Outcome != bench.OK || r.ISL.Or(0) != 7 || r.OSL.Or(0) != 2 || r.OSLSource != bench.FromCount || fmt.Sprint(r.Server) != want {
		t.Errorf("%+v", r)
	}
}
