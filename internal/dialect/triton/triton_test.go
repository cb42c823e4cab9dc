package triton

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/casetest"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

// writer writes the answers of the generate extension, with a reason for the end or without.
func writer(finish bool) func(dialecttest.Part) string {
	return func(p dialecttest.Part) string {
		text := dialecttest.JSON(p.Text)
		answer := func(text, reason string, n int) string {
			if finish {
				reason = fmt.Sprintf(`"finish_reason":%q,`, reason)
			} else {
				reason = `"sequence_end":false,`
			}
			return fmt.Sprintf(`{%s"model_name":"demo","model_version":"1","num_input_tokens":%d,"num_output_tokens":%d,"text_output":%s}`, reason, p.Prompt, n, text)
		}
		switch p.Kind {
		case dialecttest.Text:
			return dialecttest.Data("%s", answer(text, "None", p.N))
		case dialecttest.Finish:
			if finish {
				return dialecttest.Data("%s", answer(`""`, p.Reason, p.N))
			}
		case dialecttest.Usage:
			if !finish {
				return dialecttest.Data("%s", answer(`""`, "", 0)) // the last event is empty
			}
		case dialecttest.Error:
			return dialecttest.Data(`{"error":%s}`, text)
		case dialecttest.Refusal:
			return fmt.Sprintf(`{"error":%s}`, text)
		case dialecttest.Body:
			return answer(text, p.Reason, p.Tokens)
		}
		return ""
	}
}

var protocol = dialecttest.Protocol{
	Endpoint: GenerateEndpoint(), Request: bench.Request{Prompt: "What color is the sky?"}, Write: writer(false),
	Without: map[dialecttest.Kind]string{
		dialecttest.Open: "a stream begins with its first text", dialecttest.Reasoning: "there is one text", dialecttest.Call: "it has no tools",
		dialecttest.Arguments: "it has no tools", dialecttest.End: "the end of the body is the end",
		dialecttest.Strange: "there is one kind of event", dialecttest.Finish: "it never tells",
	},
	Tokens: bench.FromCount, PlainTokens: bench.FromCount, Prompt: bench.FromCount, PerEvent: true,
	Missing: map[string]string{"text_output": dialecttest.Data(`{"model_name":"demo","model_version":"1"}`)},
}

func TestConform(t *testing.T) {
	t.Run("tensorrt", func(t *testing.T) { dialecttest.Conform(t, protocol) })
	t.Run("vllm", func(t *testing.T) {
		p := protocol
		p.Endpoint, p.Write, p.Stop, p.Length = GenerateVLLMEndpoint(), writer(true), "stop", "length"
		p.Without = map[dialecttest.Kind]string{dialecttest.Usage: "each event counts"}
		for k, why := range protocol.Without {
			if k != dialecttest.Finish {
				p.Without[k] = why
			}
		}
		dialecttest.Conform(t, p)
	})
}

func TestGolden(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 3, map[string]dialect.Endpoint{"triton-generate": GenerateEndpoint()})
}

func TestCase(t *testing.T) {
	c := casetest.One(t, "../../../testdata/cases", "c26-triton-generate-stream")
	f := dialect.NewFold(GenerateEndpoint(), &bench.Request{}, &dialect.Options{Stream: true, KeepText: true})
	casetest.Compare(t, c.Name, c.Expect, f.End(c.Transcript()))
}

// The vLLM backend tells why an answer ended, so that one without a reason was cut off.
func TestVLLMCutOff(t *testing.T) {
	body, err := os.ReadFile("../../../testdata/wire/triton-vllm-generate_stream.sse")
	if err != nil {
		t.Fatal(err)
	}
	whole, _, _ := strings.Cut(string(body), `data: {"finish_reason":"stop"`)
	for text, want := range map[string]bench.Outcome{string(body): bench.OK, whole: bench.TruncatedStream} {
		r := dialect.NewFold(GenerateVLLMEndpoint(), &bench.Request{}, &dialect.Options{Stream: true}).End(dialecttest.Transcript("text/event-stream", []byte(text)))
		if r.Outcome != want {
			t.Errorf("%s (%s), want %s", r.Outcome, r.Error, want)
		}
	}
}

func TestEncode(t *testing.T) {
	zero, warm, seed, two := 0.0, 0.7, int64(7), 2
	greedy := bench.Sampling{Temperature: &zero, Seed: &seed}
	stream := dialect.Options{Model: "a/b c", Stream: true, Usage: true, ForceLength: true, Sampling: greedy}
	for _, c := range []struct {
		name       string
		ep         dialect.Endpoint
		q          bench.Request
		o          dialect.Options
		path, body string
	}{
		{"TensorRT-LLM", GenerateEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, stream, "/v2/models/a%2Fb%20c/generate_stream",
			`{"text_input":"hi","stream":true,"exclude_input_in_output":true,"max_tokens":8,"min_tokens":8,"top_k":1,"seed":7,"bad_words":"","stop_words":"","return_num_input_tokens":true,"return_num_output_tokens":true}`},
		{"without counts", GenerateEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, dialect.Options{Model: "ensemble", Stream: true, Sampling: bench.Sampling{Temperature: &warm, Stop: []string{"."}, Logprobs: &two}},
			"/v2/models/ensemble/generate_stream",
			`{"text_input":"hi","stream":true,"exclude_input_in_output":true,"max_tokens":8,"temperature":0.7,"bad_words":"","stop_words":["."],"return_log_probs":true}`},
		{"vLLM backend", GenerateVLLMEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, stream, "/v2/models/a%2Fb%20c/generate_stream",
			`{"text_input":"hi","stream":true,"exclude_input_in_output":true,"return_finish_reason":true,"parameters":{"max_tokens":8,"temperature":0,"seed":7,"ignore_eos":true,"min_tokens":8},"return_num_input_tokens":true,"return_num_output_tokens":true}`},
		{"vLLM backend, a list", GenerateVLLMEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, dialect.Options{Model: "m", Sampling: bench.Sampling{Stop: []string{"."}, Logprobs: &two}}, "/v2/models/m/generate",
			`{"text_input":"hi","stream":false,"exclude_input_in_output":true,"return_finish_reason":true,"return_logprobs":true,"sampling_parameters":"{\"max_tokens\":8,\"stop\":[\".\"],\"logprobs\":2}","return_num_input_tokens":true,"return_num_output_tokens":true}`},
		{"infer, ids", InferEndpoint(), bench.Request{Tokens: []int{1, 306}, OSL: 8}, dialect.Options{Model: "tensorrt_llm", ForceLength: true, Sampling: greedy}, "/v2/models/tensorrt_llm/infer",
			`{"inputs":[{"name":"input_ids","datatype":"INT32","shape":[1,2],"data":[1,306]},{"name":"input_lengths","datatype":"INT32","shape":[1,1],"data":[2]},{"name":"streaming","datatype":"BOOL","shape":[1,1],"data":[false]},` +
				`{"name":"request_output_len","datatype":"INT32","shape":[1,1],"data":[8]},{"name":"min_tokens","datatype":"INT32","shape":[1,1],"data":[8]},{"name":"runtime_top_k","datatype":"INT32","shape":[1,1],"data":[1]},{"name":"seed","datatype":"UINT64","shape":[1,1],"data":[7]},` + flags + `]}`},
		{"infer, a text", InferEndpoint(), bench.Request{Prompt: "hi", OSL: 8}, dialect.Options{Model: "ensemble", Sampling: bench.Sampling{Stop: []string{".", ";"}}}, "/v2/models/ensemble/infer",
			`{"inputs":[{"name":"text_input","datatype":"BYTES","shape":[1,1],"data":["hi"]},{"name":"stream","datatype":"BOOL","shape":[1,1],"data":[false]},{"name":"stop_words","datatype":"BYTES","shape":[1,2],"data":[".",";"]},` +
				`{"name":"max_tokens","datatype":"INT32","shape":[1,1],"data":[8]},` + flags + `]}`},
	} {
		call, err := c.ep.Codec.Encode(c.ep, &c.q, &c.o)
		if err != nil || call.Path != c.path || string(call.Body) != c.body {
			t.Errorf("%s: %s %s, %v\nwant %s", c.name, call.Path, call.Body, err, c.body)
		}
	}
	for name, o := range map[string]dialect.Options{"stream": {Stream: true}, "tools": {Tools: []byte(`[]`)}, "form": {ResponseFormat: []byte(`{}`)}} {
		if _, err := InferEndpoint().Codec.Encode(InferEndpoint(), &bench.Request{Prompt: "hi"}, &o); err == nil {
			t.Errorf("infer takes %s", name)
		}
	}
}

const flags = `{"name":"exclude_input_in_output","datatype":"BOOL","shape":[1,1],"data":[true]},{"name":"return_num_input_tokens","datatype":"BOOL","shape":[1,1],"data":[true]},{"name":"return_num_output_tokens","datatype":"BOOL","shape":[1,1],"data":[true]}`

func TestInfer(t *testing.T) {
	golden, err := os.ReadFile("../../../testdata/wire/kserve-v2-infer.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body    string
		outcome bench.Outcome
		text    string
		isl     int
		osl     int
		source  bench.Source
		words   string
	}{
		{string(golden), bench.OK, "The sky is blue today.", -1, -1, "", ""},
		{`{"outputs":[{"name":"text_output","datatype":"BYTES","shape":[1],"data":["a"]},{"name":"num_input_tokens","data":[7]},{"name":"num_output_tokens","data":[6]},{"name":"cum_log_probs","data":[0.5]}]}`,
			bench.OK, "a", 7, 6, bench.FromCount, ""},
		{`{"outputs":[{"name":"output_ids","datatype":"INT32","shape":[1,1,4],"data":[5,6,7,0]},{"name":"sequence_length","data":[3]}]}`, bench.OK, "", -1, 3, bench.FromIDs, ""},
		{`{"error":"Request for unknown model"}`, bench.StreamError, "", -1, -1, "", "unknown model"},
		{`{"model_name":"demo"}`, bench.Malformed, "", -1, -1, "", `"outputs"`},
		{`{"outputs":[{"name":"OUTPUT0","data":[1]}]}`, bench.Malformed, "", -1, -1, "", `"text_output"`},
		{`{"outputs":[{"name":"text_output","data":[1]}]}`, bench.Malformed, "", -1, -1, "", `"text_output"`},
		{`{"outputs":[`, bench.Malformed, "", -1, -1, "", "no valid JSON"},
		{``, bench.Malformed, "", -1, -1, "", "empty"},
	} {
		r := dialect.NewFold(InferEndpoint(), &bench.Request{}, &dialect.Options{KeepText: true}).End(dialecttest.Transcript("application/json", []byte(c.body)))
		if r.Outcome != c.outcome || r.Text != c.text || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl || r.OSLSource != c.source || !strings.Contains(r.Error, c.words) {
			t.Errorf("%s: %+v", c.body, r)
		}
	}
}
