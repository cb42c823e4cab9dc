package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever the dialect, the first token is written at its time and every other at its own; only what needs no token comes before.
func TestDialectTimes(t *testing.T) {
	const ttft, itl = 30 * time.Millisecond, 10 * time.Millisecond
	early := []string{"openai-responses.sse", "vllm-responses.sse", "recorded/vllm-responses-stream.response.http", "triton-openai-chat.sse", "dynamo-chat.sse"}
	for _, q := range questions() {
		kind := answerTo(t, q).header.Get("Content-Type")
		if q.fault != "" || !strings.Contains(kind, "event-stream") && !strings.Contains(kind, "ndjson") {
			continue
		}
		tokens := 7
		if q.output != "" {
			fmt.Sscan(q.output, &tokens)
		}
		var want []time.Duration
		if slices.Contains(early, q.file) {
			want = append(want, 0)
		}
		for k := range tokens {
			want = append(want, ttft+time.Duration(k)*itl)
		}
		a := answerTo(t, q)
		var got []time.Duration
		for _, p := range a.pieces {
			got = append(got, p.at-a.sent)
		}
		if !slices.Equal(got, want) || a.err != nil || !a.keep || a.end != a.pieces[len(a.pieces)-1].at {
			t.Errorf("%s of %s: written at %v, want %v (%v)", q.path, q.dialect, got, want, a.err)
		}
	}
}

// bodyFor is a request of a dialect's route for so many tokens, as its protocol has them.
func bodyFor(path string, n int, stream bool) string {
	s := fmt.Sprintf(`,"stream":%v}`, stream)
	switch {
	case strings.Contains(path, "embed"):
		return `{"model":"m","input":"a b","inputs":"a b"}`
	case strings.Contains(path, "rerank"):
		return `{"model":"m","query":"a","documents":["b","c"],"texts":["b","c"]}`
	case strings.Contains(path, "responses"):
		return fmt.Sprintf(`{"model":"m","input":"a b","max_output_tokens":%d`, n) + s
	case strings.Contains(path, "inference"):
		return fmt.Sprintf(`{"token_ids":[600,601],"sampling_params":{"max_tokens":%d}`, n) + s
	case strings.Contains(path, "/api/"):
		return fmt.Sprintf(`{"model":"m","prompt":"a b","messages":[{"role":"user","content":"a b"}],"options":{"num_predict":%d}`, n) + s
	case strings.Contains(path, "infer"):
		return fmt.Sprintf(`{"inputs":[{"name":"text_input","data":["a b"]},{"name":"max_tokens","data":[[%d]]}]}`, n)
	case strings.Contains(path, "/v2/"):
		return fmt.Sprintf(`{"text_input":"a b","max_tokens":%d}`, n)
	case path == "/generate" || path == "/generate_stream": // SGLang, LMDeploy and TGI
		return fmt.Sprintf(`{"text":"a b","prompt":"a b","inputs":"a b","sampling_params":{"max_new_tokens":%d},"max_tokens":%d,`+
			`"parameters":{"max_new_tokens":%d}`, n, n, n) + s
	case path == "/completion":
		return fmt.Sprintf(`{"prompt":"a b","n_predict":%d`, n) + s
	}
	return fmt.Sprintf(`{"model":"m","prompt":"a b","messages":[{"role":"user","content":"a b"}],"max_tokens":%d`, n) + s
}

// Every route of every dialect, streaming and not, in exact and in engine mode: it answers with JSON, on time, and the truth has what was
// asked for.
func TestEveryRoute(t *testing.T) {
	const tokens = 5
	for _, name := range Dialects() {
		for _, route := range dialectOf(name).routes {
			path := strings.ReplaceAll(route.path, "{model}", "m")
			for _, engine := range []bool{false, true} {
				for _, stream := range []bool{false, true} {
					synctest.Test(t, func(t *testing.T) {
						cfg := Config{Mode: ModeExact, Dialect: name, Model: "m", TTFT: Fixed(30 * time.Millisecond), ITL: Fixed(10 * time.Millisecond)}
						if engine {
							cfg = Config{Mode: ModeEngine, Dialect: name, Model: "m",
								Engine: EngineConfig{Cost: &Cost{Base: 10 * time.Millisecond}, Draft: 2, Acceptance: 1}}
						}
						r := serveMem(t, cfg)
						c := r.dial()
						a := c.call(post(path, bodyFor(path, tokens, stream)))
						c.nc.Close()
						r.stop()
						what := fmt.Sprintf("%s %s, engine %v, stream %v", name, path, engine, stream)
						rec := r.s.Truth()[0]
						embeds := strings.Contains(path, "embed") || strings.Contains(path, "rerank")
						want := 70 * time.Millisecond
						if embeds {
							want = 30 * time.Millisecond
						}
						if a.status != 200 || a.err != nil || !a.keep || !engine && a.end-a.sent != want {
							t.Errorf("%s: status %d after %v, %v: %s", what, a.status, a.end-a.sent, a.err, a.body)
						}
						if n := rec.Output; n != tokens && !embeds || rec.Outcome != Complete || rec.Prompt < 2 || embeds && n != 0 {
							t.Errorf("%s: %+v", what, rec)
						}
						for _, doc := range outline(t, a.header.Get("Content-Type"), a.body) {
							if doc == "" {
								t.Errorf("%s: an empty event", what)
							}
						}
						if m := r.s.met; m.running.Load() != 0 || m.succeeded() != 1 || m.promptTokens.Load() != int64(rec.Prompt) {
							t.Errorf("%s: running %d, ended %v, prompt tokens %d", what, m.running.Load(), m.succeeded(), m.promptTokens.Load())
						}
					})
				}
			}
		}
	}
}

// What every dialect refuses, in its own form: a model that it does not serve, a prompt that is too long, a body that is no JSON, a
// request without the key.
func TestDialectRefusals(t *testing.T) {
	long := strings.Repeat("word ", 200)
	chat, broken := func(model, text string) string {
		return fmt.Sprintf(`{"model":%q,"max_tokens":5,"messages":[{"role":"user","content":%q}]}`, model, text)
	}, `{"model":`
	for _, q := range []struct {
		dialect, path, body string
		status              int
		want                string
	}{
		{"openai", "/v1/chat/completions", chat("x", "hi"), 404, `"code":"model_not_found"`},
		{"openai", "/v1/chat/completions", chat("m", long), 400, `"code":"context_length_exceeded"`},
		{"openai", "/v1/chat/completions", broken, 400, `"type":"invalid_request_error"`},
		{"vllm", "/v1/messages", chat("x", "hi"), 404, `"type":"NotFoundError"`},
		{"sglang", "/v1/chat/completions", chat("m", long), 400, `{"object":"error","message":"This model's maximum context length`},
		{"sglang", "/generate", `{"text":"` + long + `"}`, 400, `{"error":{"message":"This model's maximum context length`},
		{"trtllm", "/v1/chat/completions", chat("x", "hi"), 404, `{"object":"error",`},
		{"trtllm", "/v1/completions", `{"model":"m","prompt":"a","return_token_ids":true}`, 400, "extra_forbidden"},
		{"dynamo", "/v1/chat/completions", chat("x", "hi"), 404, `{"message":"Model not found: x"`},
		{"anthropic", "/v1/messages", chat("x", "hi"), 404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}`},
		{"anthropic", "/v1/messages", chat("m", long), 400, `prompt is too long: `},
		{"anthropic", "/v1/messages", broken, 400, `"invalid_request_error"`},
		{"tgi", "/generate", `{"inputs":"` + long + `"}`, 422, `"error_type":"validation"`},
		{"tgi", "/generate", `{"inputs":"a","parameters":{"temperature":0}}`, 422, "must be strictly positive"},
		{"triton", "/v2/models/x/generate", `{"text_input":"a","max_tokens":2}`, 400, `{"error":"Request for unknown model: 'x' is not found"}`},
		{"triton", "/v2/models/m/generate", broken, 400, `failed to parse the request JSON buffer`},
		{"triton", "/v1/chat/completions", chat("x", "hi"), 404, `{"detail":"Unknown model: x"}`},
		{"llamacpp", "/completion", `{"prompt":"` + long + `"}`, 400, `"type":"exceed_context_size_error","n_prompt_tokens":`},
		{"llamacpp", "/v1/chat/completions", chat("x", "hi"), 200, `"finish_reason":"length"`},
		{"llamacpp", "/completion", broken, 500, `"type":"server_error"`},
		{"ollama", "/api/chat", chat("x", "hi"), 404, `{"error":"model 'x' not found"}`},
		{"ollama", "/v1/chat/completions", chat("x", "hi"), 404, `"type":"not_found_error"`},
		{"ollama", "/api/generate", `{"model":"m","stream":false,"prompt":"` + long + `"}`, 200, `"prompt_eval_count":50,`},
		{"ollama", "/api/generate", `{"model":"m","keep_alive":0}`, 200, `"done_reason":"unload"}`},
		{"lmdeploy", "/generate", `{"prompt":"` + long + `"}`, 400, `{"object":"error",`},
		{"tei", "/embed", `{"inputs":"` + long + `"}`, 413, `"error_type":"Validation"`},
		{"tei", "/embed", broken, 422, `"error_type":"Validation"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Dialect: q.dialect, Model: "m", MaxModelLen: 100})
			c := r.dial()
			a := c.call(post(q.path, q.body))
			c.nc.Close()
			r.stop()
			if a.status != q.status || !strings.Contains(a.body, q.want) || !json.Valid([]byte(a.body)) {
				t.Errorf("%s %s: %d %s", q.dialect, q.path, a.status, a.body)
			}
		})
	}
	// the key: where it is asked for, how it may come, and the words of a refusal
	for _, q := range []struct {
		dialect, path, header string
		status                int
		want                  string
	}{
		{"openai", "/v1/models", "Authorization: Bearer k", 200, `"owned_by":"openai"`},
		{"openai", "/v1/models", "X-Api-Key: k", 401, `"code":"invalid_api_key"`},
		{"vllm", "/version", "", 200, "0.32.0"},
		{"vllm", "/v1/models", "", 401, `{"error":"Unauthorized"}`},
		{"sglang", "/server_info", "", 401, "Unauthorized"}, {"sglang", "/health", "", 200, ""},
		{"anthropic", "/v1/models", "X-Api-Key: k", 200, `"display_name":"m"`},
		{"anthropic", "/v1/models", "", 401, `"type":"authentication_error"`},
		{"llamacpp", "/props", "X-Api-Key: k", 200, `"total_slots":4`}, {"llamacpp", "/props", "", 401, `"authentication_error"`},
		{"lmdeploy", "/metrics", "", 401, ""}, {"trtllm", "/v1/models", "", 200, "tensorrt_llm"}, {"tgi", "/info", "", 200, `"version":"3.3.7"`},
		{"tei", "/info", "", 401, ""}, {"ollama", "/api/version", "", 200, "version"}, {"triton", "/v2", "", 200, `"name":"triton"`},
		{"dynamo", "/openapi.json", "", 200, "Dynamo"}, {"nim", "/v1/metadata", "Authorization: Bearer k", 200, "modelInfo"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Dialect: q.dialect, Model: "m", APIKey: "k"})
			c := r.dial()
			request := get(q.path)
			if q.header != "" {
				request = strings.Replace(request, "Host: sim", "Host: sim\r\n"+q.header, 1)
			}
			a := c.call(request)
			c.nc.Close()
			r.stop()
			if a.status != q.status || !strings.Contains(a.body, q.want) {
				t.Errorf("%s %s: %d %s", q.dialect, q.path, a.status, a.body)
			}
		})
	}
}

// Every page of every dialect answers, and those of JSON are JSON.
func TestEveryPage(t *testing.T) {
	for _, name := range Dialects() {
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Dialect: name, Model: "m"})
			c := r.dial()
			for _, p := range dialectOf(name).pages {
				request := get(strings.ReplaceAll(p.path, "{model}", "m"))
				if p.method == "POST" {
					request = post(strings.ReplaceAll(p.path, "{model}", "m"), `{"model":"m","prompt":"a b","content":"a b","inputs":"a b","input":"a b",`+
						`"tokens":[600],"messages":[{"role":"user","content":"a"}]}`)
				}
				if a := c.call(request); a.status != 200 || a.header.Get("Content-Type") != p.kind || p.kind == jsonKind && !json.Valid([]byte(a.body)) {
					t.Errorf("%s %s %s: %d %s %s", name, p.method, p.path, a.status, a.header.Get("Content-Type"), a.body)
				}
			}
			c.nc.Close()
			r.stop()
		})
	}
}

// The pages of metrics, under each engine's names, tell of the same requests.
func TestDialectMetrics(t *testing.T) {
	for _, q := range []struct {
		dialect, page string
		series        []string
	}{
		{"sglang", "/metrics", []string{"sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "sglang:time_to_first_token_seconds_sum",
			"sglang:inter_token_latency_seconds_count", "sglang:e2e_request_latency_seconds_sum", "sglang:prompt_tokens_total",
			"sglang:generation_tokens_total 5.0", "sglang:num_requests_total 1.0"}},
		{"trtllm", "/prometheus/metrics", []string{"trtllm_num_requests_running", "trtllm_num_requests_waiting", "trtllm_kv_cache_utilization",
			"trtllm_time_to_first_token_seconds_sum 0.03", "trtllm_time_per_output_token_seconds_count 1.0", "trtllm_e2e_request_latency_seconds_sum 0.07",
			"trtllm_prompt_tokens_total", "trtllm_generation_tokens_total 5.0", "trtllm_request_success_total"}},
		{"dynamo", "/metrics", []string{"dynamo_frontend_inflight_requests 0.0", "dynamo_frontend_queued_requests", "dynamo_frontend_time_to_first_token_seconds_sum 0.03",
			"dynamo_frontend_inter_token_latency_seconds_count 4.0", "dynamo_frontend_request_duration_seconds_sum 0.07",
			"dynamo_frontend_output_tokens_total 5.0", "dynamo_frontend_requests_total 1.0"}},
		{"tgi", "/metrics", []string{"tgi_batch_current_size 0.0", "tgi_queue_size", "tgi_batch_current_max_tokens", "tgi_request_duration_sum 0.07",
			"tgi_request_mean_time_per_token_duration_sum 0.01", "tgi_request_generated_tokens_sum 5.0", "tgi_request_success 1.0"}},
		{"triton", "/metrics", []string{"nv_inference_request_success 1.0", "nv_inference_pending_request_count", "nv_trt_llm_kv_cache_block_metrics",
			"nv_trt_llm_request_metrics", "nv_inference_first_response_histogram_ms_sum 30.0", "nv_llm_output_token_len_sum 5.0"}},
		{"lmdeploy", "/metrics", []string{"lmdeploy:num_requests_running", "lmdeploy:num_requests_waiting", "lmdeploy:gpu_cache_usage_perc",
			"lmdeploy:time_to_first_token_seconds_sum 0.03", "lmdeploy:iter_token_latency_count 4.0", "lmdeploy:e2e_request_latency_seconds_sum 0.07",
			"lmdeploy:prompt_tokens_total", "lmdeploy:generation_tokens_total 5.0", "lmdeploy:request_success_total"}},
		{"llamacpp", "/metrics", []string{"llamacpp:requests_processing 0.0", "llamacpp:requests_deferred 0.0", "llamacpp:prompt_tokens_total",
			"llamacpp:prompt_seconds_total 0.03", "llamacpp:tokens_predicted_total 5.0", "llamacpp:tokens_predicted_seconds_total 0.04"}},
		{"tei", "/metrics", []string{"te_request_count 1.0", "te_request_success 1.0", "te_queue_size 0.0", "te_request_duration_sum 0.03",
			"te_request_input_length_sum 2.0"}},
		{"nim", "/v1/metrics", []string{"vllm:time_to_first_token_seconds_sum 0.03"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Dialect: q.dialect, Model: "m", TTFT: Fixed(30 * time.Millisecond), ITL: Fixed(10 * time.Millisecond)})
			c := r.dial()
			path := strings.ReplaceAll(r.s.lang.routes[0].path, "{model}", "m")
			c.call(post(path, bodyFor(path, 5, true)))
			a := c.call(get(q.page))
			c.nc.Close()
			r.stop()
			var plain bytes.Buffer // without labels
			for line := range strings.Lines(a.body) {
				if at := strings.IndexByte(line, '{'); at >= 0 && line[0] != '#' {
					line = line[:at] + line[strings.IndexByte(line, '}')+1:]
				}
				plain.WriteString(line)
			}
			for _, s := range q.series {
				if !strings.Contains(plain.String(), "\n"+s) {
					t.Errorf("%s: no %q in\n%s", q.dialect, s, a.body)
				}
			}
		})
	}
}

// Reasoning and tool calls: the same tokens in parts, counted as output.
func TestParts(t *testing.T) {
	const tools = `,"tools":[{"type":"function","name":"f","function":{"name":"f"}}],"tool_choice":`
	for _, q := range []struct {
		dialect, path, choice string
		want                  []string
	}{
		{"vllm", "/v1/chat/completions", `"required"`, []string{`"reasoning":" `, `"name":"f"`, `"tool_calls":[{"function":{"arguments":"{\"words\":\"`, `"tool_calls","stop_reason"`}},
		{"openai", "/v1/chat/completions", `"required"`, []string{`"name":"f","arguments":""`, `"reasoning_tokens":3`, `"finish_reason":"tool_calls"`}},
		{"openai", "/v1/responses", `"required"`, []string{"response.reasoning_summary_text.delta", "response.function_call_arguments.delta", `"name":"f"`}},
		{"anthropic", "/v1/messages", `{"type":"any"}`, []string{`"thinking_delta"`, `"signature_delta"`, `"index":1,"content_block":{"type":"tool_use"`,
			`"partial_json":"{\"words\":\"`, `"stop_reason":"tool_use"`, `"thinking_tokens":3`}},
		{"sglang", "/v1/chat/completions", `"required"`, []string{`"reasoning_content":" `, `"name":"f"`, `"finish_reason":"tool_calls"`}},
		{"llamacpp", "/v1/chat/completions", `"required"`, []string{`"reasoning_content":" `, `"name":"f"`, `"finish_reason":"tool_calls"`}},
		{"ollama", "/api/chat", `"required"`, []string{`"thinking":" `, `"tool_calls":[{"function":{"name":"f","arguments":{"words":"`, `"eval_count":9`}},
		{"dynamo", "/v1/chat/completions", `"required"`, []string{`"reasoning_content":" `, `"name":"f"`, `"finish_reason":"tool_calls"`}},
		{"lmdeploy", "/v1/chat/completions", `"required"`, []string{`"reasoning_content": " `, `"name": "f"`, `"finish_reason": "tool_calls"`}},
		{"trtllm", "/v1/chat/completions", `"required"`, []string{`"reasoning_content":" `, `"name":"f"`, `"finish_reason":"tool_calls"`}},
	} {
		for _, stream := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := serveMem(t, Config{Mode: ModeExact, Dialect: q.dialect, Model: "m", Reasoning: 3, ITL: Fixed(10 * time.Millisecond), TokensPerChunk: 2})
				c := r.dial()
				body := strings.TrimSuffix(bodyFor(q.path, 9, stream), "}") + tools + q.choice
				if stream && strings.HasPrefix(q.path, "/v1/chat") {
					body += `,"stream_options":{"include_usage":true}`
				}
				a := c.call(post(q.path, body+"}"))
				c.nc.Close()
				r.stop()
				outline(t, a.header.Get("Content-Type"), a.body) // it is JSON
				for _, w := range q.want {
					if stream && !strings.Contains(a.body, w) {
						t.Errorf("%s %s: no %s in\n%s", q.dialect, q.path, w, a.body)
					}
				}
				if !stream && !strings.Contains(a.body, `"f"`) || r.s.Truth()[0].Output != 9 {
					t.Errorf("%s %s: %s", q.dialect, q.path, a.body)
				}
			})
		}
	}
}

// Writing an event allocates nothing, by hand or by a form.
func TestSpeakersAllocateNothing(t *testing.T) {
	for _, name := range []string{DefaultDialect, "openai", "llamacpp", "anthropic"} {
		d := dialectOf(name)
		r := d.routes[0]
		if name == "llamacpp" {
			r = d.routes[1]
		}
		g := &generation{chat: true, model: "m", id: "x", print: "f", output: 1 << 30, finish: finishLength, text: newWriter([]int32{1}, 1)}
		speaker, e, sent := r.speak(g, &wish{}), &event{}, 0
		step := func() {
			e.clear()
			speaker.tokens(e, sent, sent+1)
			sent++
		}
		for range 10 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n != 0 {
			t.Errorf("%s: %v allocations an event", name, n)
		}
	}
}
