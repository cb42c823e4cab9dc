package lmdeploy

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

func write(p dialecttest.Part) string {
	answer := func(text string, ids []int, finish string) string {
		return fmt.Sprintf(`{"text":%s,"output_ids":%s,"meta_info":{"prompt_tokens":%d,"completion_tokens":%d,"finish_reason":%s}}`,
			dialecttest.JSON(text), dialecttest.JSON(append([]int{}, ids...)), p.Prompt, p.Tokens, finish)
	}
	reason := fmt.Sprintf(`{"type":%q}`, p.Reason)
	switch p.Kind {
	case dialecttest.Text:
		return dialecttest.Data("%s", answer(p.Text, p.IDs, "null"))
	case dialecttest.Finish:
		return dialecttest.Data("%s", answer("", nil, reason))
	case dialecttest.End:
		return dialecttest.Data("[DONE]")
	case dialecttest.Error:
		return dialecttest.Data(`{"error":{"message":%s,"type":"x","code":500}}`, dialecttest.JSON(p.Text))
	case dialecttest.Strange:
		return dialecttest.Data(`{"type":"brand_new"}`)
	case dialecttest.Body:
		return answer(p.All, p.AllIDs, reason)
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"message":%s,"type":"invalid_request_error","code":%d,"param":null,"object":"error"}`, dialecttest.JSON(p.Text), p.Status)
	}
	return ""
}

func TestConform(t *testing.T) {
	dialecttest.Conform(t, dialecttest.Protocol{
		Endpoint: GenerateEndpoint(), Request: bench.Request{Prompt: "What color is the sky?"}, Write: write,
		Stop: "stop", Length: "length", Terminator: dialecttest.End,
		Tokens: bench.FromIDs, PlainTokens: bench.FromIDs, Prompt: bench.FromCount, PerEvent: true,
		Missing: map[string]string{
			"meta_info": dialecttest.Data(`{"text":"a","output_ids":[1]}`),
			"text":      dialecttest.Data(`{"output_ids":[1],"meta_info":{"finish_reason":null,"completion_tokens":1}}`),
		},
		Without: map[dialecttest.Kind]string{
			dialecttest.Open:      "a stream begins with its text",
			dialecttest.Reasoning: "there is one text",
			dialecttest.Call:      "it has no tools",
			dialecttest.Arguments: "it has no tools",
			dialecttest.Usage:     "each event has the counts",
		},
	})
}

func TestGoldenStreams(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 1, map[string]dialect.Endpoint{"lmdeploy-generate": GenerateEndpoint()})
}

func TestEncode(t *testing.T) {
	ep := GenerateEndpoint()
	temperature, topP, topK, seed, logprobs := 0.5, 0.9, 40, int64(7), 2
	s := bench.Sampling{Temperature: &temperature, TopP: &topP, TopK: &topK, Stop: []string{"x"}, Logprobs: &logprobs}
	o := &dialect.Options{Stream: true, ForceLength: true, Sampling: s}
	call, err := ep.Codec.Encode(ep, &bench.Request{Tokens: []int{1, 2}, OSL: 128}, o)
	want := `{"input_ids":[1,2],"stream":true,"max_tokens":128,"temperature":0.5,"top_p":0.9,"top_k":40,"stop":["x"],"return_logprob":true,"ignore_eos":true}`
	if err != nil || string(call.Body) != want {
		t.Errorf("%v\n%s\n%s", err, call.Body, want)
	}
	for name, c := range map[string]struct {
		r bench.Request
		o dialect.Options
	}{
		"a chat": {r: bench.Request{Messages: []bench.Message{{Role: "user"}}}},
		"tools":  {o: dialect.Options{Tools: json.RawMessage("[{}]")}},
		"a form": {o: dialect.Options{ResponseFormat: json.RawMessage(`{"type":"json_object"}`)}},
		"a seed": {o: dialect.Options{Sampling: bench.Sampling{Seed: &seed}}},
	} {
		if _, err := ep.Codec.Encode(ep, &c.r, &c.o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
