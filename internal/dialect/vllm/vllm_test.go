package vllm

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

func write(p dialecttest.Part) string {
	choice := func(ids []int, finish string) string {
		return fmt.Sprintf(`{"index":0,"finish_reason":%s,"stop_reason":null,"token_ids":%s,"logprobs":null}`, finish, dialecttest.JSON(append([]int{}, ids...)))
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`, p.Prompt, p.Prompt+p.Tokens, p.Tokens)
	reason := dialecttest.JSON(p.Reason)
	switch p.Kind {
	case dialecttest.Text:
		return dialecttest.Data(`{"request_id":"a","usage":null,"choices":[%s]}`, choice(p.IDs, "null"))
	case dialecttest.Finish:
		return dialecttest.Data(`{"request_id":"a","usage":null,"choices":[%s]}`, choice(nil, reason))
	case dialecttest.Usage:
		return dialecttest.Data(`{"request_id":"a","usage":%s,"choices":[]}`, usage)
	case dialecttest.End:
		return dialecttest.Data("[DONE]")
	case dialecttest.Error:
		return dialecttest.Data(`{"error":{"message":%s,"type":"InternalServerError","param":null,"code":500}}`, dialecttest.JSON(p.Text))
	case dialecttest.Strange:
		return dialecttest.Data(`{"type":"brand_new"}`)
	case dialecttest.Body:
		return fmt.Sprintf(`{"request_id":"a","choices":[%s],"usage":%s}`, choice(p.AllIDs, reason), usage)
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":{"message":%s,"type":"BadRequestError","param":null,"code":%d}}`, dialecttest.JSON(p.Text), p.Status)
	}
	return ""
}

func TestConform(t *testing.T) {
	dialecttest.Conform(t, dialecttest.Protocol{
		Endpoint: GenerateEndpoint(), Request: bench.Request{Tokens: []int{128000, 3923, 1933}}, Write: write,
		Stop: "stop", Length: "length", Terminator: dialecttest.End, IDsOnly: true,
		Tokens: bench.FromIDs, PlainTokens: bench.FromIDs, Prompt: bench.FromUsage, PerEvent: true,
		Missing: map[string]string{
			"choices":   dialecttest.Data(`{"request_id":"a"}`),
			"token_ids": dialecttest.Data(`{"request_id":"a","choices":[{"index":0,"finish_reason":null}]}`),
		},
		Without: map[dialecttest.Kind]string{
			dialecttest.Open:      "a stream begins with its token ids",
			dialecttest.Reasoning: "token ids do not tell it",
			dialecttest.Call:      "token ids do not tell it",
			dialecttest.Arguments: "token ids do not tell it",
		},
	})
}

func TestGoldenStreams(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 1, map[string]dialect.Endpoint{"vllm-generate": GenerateEndpoint()})
}

// An older server tells no usage in a plain body.
func TestWithoutUsage(t *testing.T) {
	body := dialecttest.Transcript("application/json", []byte(`{"request_id":"a","choices":[{"index":0,"finish_reason":"length","token_ids":[5,6]}]}`))
	r := dialect.NewFold(GenerateEndpoint(), &bench.Request{Tokens: []int{1, 2, 3}}, &dialect.Options{}).End(body)
	if r.Outcome != bench.OK || r.OSL.Or(0) != 2 || r.OSLSource != bench.FromIDs || r.ISL.Or(0) != 3 || r.ISLSource != bench.FromIDs {
		t.Errorf("%s (%s): %v tokens from %s of %v from %s", r.Outcome, r.Error, r.OSL, r.OSLSource, r.ISL, r.ISLSource)
	}
}

func TestEncode(t *testing.T) {
	ep := GenerateEndpoint()
	temperature, topP, topK, seed, logprobs := 0.5, 0.9, 40, int64(7), 2
	s := bench.Sampling{Temperature: &temperature, TopP: &topP, TopK: &topK, Seed: &seed, Stop: []string{"x"}, Logprobs: &logprobs}
	call, err := ep.Codec.Encode(ep, &bench.Request{Tokens: []int{1, 2}, OSL: 128}, &dialect.Options{Model: "demo", Stream: true, Usage: true, EventUsage: true, Priority: &topK, ForceLength: true, Sampling: s})
	want := `{"model":"demo","token_ids":[1,2],"sampling_params":{"max_tokens":128,"temperature":0.5,"top_p":0.9,"top_k":40,"seed":7,"stop":["x"],"logprobs":2,"ignore_eos":true,` +
		`"min_tokens":128},"stream":true,"priority":40,"stream_options":{"include_usage":true,"continuous_usage_stats":true}}`
	if err != nil || string(call.Body) != want {
		t.Errorf("%v\n%s\n%s", err, call.Body, want)
	}
	for name, c := range map[string]struct {
		r bench.Request
		o dialect.Options
	}{
		"a text": {r: bench.Request{Prompt: "a"}},
		"tools":  {r: bench.Request{Tokens: []int{1}}, o: dialect.Options{Tools: json.RawMessage("[{}]")}},
	} {
		if _, err := ep.Codec.Encode(ep, &c.r, &c.o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
