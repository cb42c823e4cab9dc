package sim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

// shape is a JSON value without its contents: keys in their order, kinds, and the first element of a list.
func shape(t *testing.T, raw string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var out strings.Builder
	var value func()
	value = func() {
		tok, err := dec.Token()
		if err != nil {
			t.Fatalf("%v in %q", err, raw)
		}
		switch v := tok.(type) {
		case json.Delim:
			out.WriteString(v.String())
			for n := 0; dec.More(); n++ {
				if v == '{' {
					key, err := dec.Token()
					if err != nil {
						t.Fatal(err)
					}
					fmt.Fprintf(&out, "%v:", key)
					value()
					out.WriteByte(' ')
					continue
				}
				if n == 0 {
					value()
					continue
				}
				var skip json.RawMessage
				if err := dec.Decode(&skip); err != nil {
					t.Fatal(err)
				}
			}
			end, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(end.(json.Delim).String())
		case nil:
			out.WriteString("null")
		default:
			fmt.Fprintf(&out, "%T", v)
		}
	}
	value()
	return out.String()
}

// shapes of the events of a stream, repetitions left out, or of a body.
func shapes(t *testing.T, body string) (out []string) {
	t.Helper()
	if !strings.HasPrefix(body, "data: ") {
		return []string{shape(t, body)}
	}
	var sse wire.SSE
	if err := sse.Feed([]byte(body), func(e wire.Event) {
		s := string(e.Data)
		if s != "[DONE]" {
			s = shape(t, s)
		}
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// What vLLM 0.32 answered to a request, and what the simulated engine answers to the same: the same keys in the same order with
// values of the same kind, the same status, the same type of content.
func TestSameShapeAsVLLM(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.response.http")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := parseRecorded(raw)
		if err != nil {
			t.Fatal(file, err)
		}
		var body strings.Builder
		for _, e := range want.events {
			body.Write(e.data)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".response.http")
		path, ask := "/v1/completions", post
		switch {
		case strings.Contains(name, "chat"):
			path = "/v1/chat/completions"
		case strings.Contains(name, "tokenize"):
			path = "/tokenize"
		case strings.Contains(name, "embeddings"):
			path = "/v1/embeddings"
		case strings.Contains(name, "models"):
			path, ask = "/v1/models", func(path, _ string) string { return get(path) }
		case strings.Contains(name, "version"):
			path, ask = "/version", func(path, _ string) string { return get(path) }
		}
		request, err := os.ReadFile(strings.TrimSuffix(file, ".response.http") + ".request.json")
		if err != nil && !strings.Contains(name, "-get-") {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Model: "tiny", MaxModelLen: 2048, TTFT: Fixed(time.Millisecond), ITL: Fixed(time.Millisecond)})
			c := r.dial()
			got := c.call(ask(path, string(request)))
			c.nc.Close()
			r.stop()
			if got.status != want.status || got.err != nil {
				t.Errorf("%s: status %d, want %d (%v)", name, got.status, want.status, got.err)
			}
			for _, f := range want.header {
				if strings.EqualFold(f.name, "content-type") && got.header.Get("Content-Type") != f.value {
					t.Errorf("%s: content type %q, want %q", name, got.header.Get("Content-Type"), f.value)
				}
			}
			g, w := shapes(t, got.body), shapes(t, body.String())
			if !slices.Equal(g, w) {
				t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(g, "\n     "), strings.Join(w, "\n     "))
			}
			if want.status >= 400 && got.body != body.String() {
				t.Errorf("%s: error\n%s, want\n%s", name, got.body, body.String())
			}
		})
	}
}

// Bodies that were not recorded, as vLLM 0.32.0's response classes write them.
func TestSameShapeAsClasses(t *testing.T) {
	const whole = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":` +
		`{"role":"assistant","content":" a b","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},` +
		`"logprobs":null,` +
		`"finish_reason":"length","stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"fp",` +
		`"usage":{"prompt_tokens":8,"total_tokens":12,"completion_tokens":4,"prompt_tokens_details":null,"completion_tokens_details":null},` +
		`"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`
	const lastChat = `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"},` +
		`"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null}],"system_fingerprint":"fp"}`
	const lastText = `{"id":"x","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"a","logprobs":null,` +
		`"finish_reason":"length","stop_reason":null,"prompt_token_ids":null,"token_ids":null}],"usage":{"prompt_tokens":5,"total_tokens":6,` +
		`"completion_tokens":1}}`
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Model: "tiny"})
		c := r.dial()
		a := c.call(post("/v1/chat/completions", chat("tiny", "hi", `,"max_tokens":4`)))
		if got, want := shape(t, a.body), shape(t, whole); got != want {
			t.Errorf("chat:\n%s\n%s", got, want)
		}
		// the last chunk bears the fingerprint when no usage follows
		ev := c.call(post("/v1/chat/completions", chat("tiny", "hi", `,"max_tokens":4,"stream":true`))).events()
		if got, want := shape(t, ev[4].data), shape(t, lastChat); got != want || len(ev) != 6 {
			t.Errorf("last chunk of a chat:\n%s\n%s", got, want)
		}
		ev = c.call(post("/v1/completions", `{"prompt":"a","max_tokens":1,"stream":true,"stream_options":{"include_usage":true,`+
			`"continuous_usage_stats":true}}`)).events()
		if got, want := shape(t, ev[0].data), shape(t, lastText); got != want {
			t.Errorf("last chunk of a completion:\n%s\n%s", got, want)
		}
		c.nc.Close()
		r.stop()
	})
}

// series reads a Prometheus page: name with labels -> value; values of the labels that differ between servers are taken out.
func pageSeries(t *testing.T, text string) map[string]string {
	t.Helper()
	model := regexp.MustCompile(`model_name="[^"]*"`)
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		k := strings.LastIndexByte(line, ' ')
		name := model.ReplaceAllString(line[:k], `model_name="m"`)
		labels := ""
		if i := strings.IndexByte(name, '{'); i >= 0 {
			list := strings.Split(strings.TrimSuffix(name[i+1:], "}"), ",")
			sort.Strings(list)
			name, labels = name[:i], strings.Join(list, ",")
		}
		out[name+"{"+labels+"}"] = line[k+1:]
	}
	return out
}

// Every series that the simulated engine shows exists in vLLM's page with the same labels, so that the bucket edges are the same too.
func TestMetricsAsVLLM(t *testing.T) {
	raw, err := os.ReadFile("testdata/wire/vllm-metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := pageSeries(t, string(raw))
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Model: "tiny", MaxModelLen: 2048, TTFT: Fixed(30 * time.Millisecond),
			ITL: Fixed(20 * time.Millisecond)})
		c := r.dial()
		c.call(post("/v1/completions", `{"prompt":"a b c d e","max_tokens":5,"stream":true}`))
		c.call(post("/v1/completions", `{"prompt":"a b c d e","max_tokens":5}`))
		a := c.call(get("/metrics"))
		c.nc.Close()
		r.stop()
		got := pageSeries(t, a.body)
		if len(got) < 250 {
			t.Fatalf("%d series", len(got))
		}
		for name := range got {
			if strings.Contains(name, "_created{") {
				continue
			}
			if _, ok := want[name]; !ok {
				t.Errorf("vLLM has no %s", name)
			}
		}
		l := `{engine="0",model_name="m"}`
		for name, value := range map[string]string{
			"vllm:prompt_tokens_total" + l: "10.0", "vllm:generation_tokens_total" + l: "10.0", "vllm:num_requests_running" + l: "0.0",
			"vllm:time_to_first_token_seconds_count" + l: "2.0", "vllm:time_to_first_token_seconds_sum" + l: "0.06",
			"vllm:inter_token_latency_seconds_count" + l: "8.0", "vllm:inter_token_latency_seconds_sum" + l: "0.16",
			"vllm:e2e_request_latency_seconds_sum" + l: "0.22", "vllm:request_decode_time_seconds_sum" + l: "0.16",
			`vllm:request_success_total{engine="0",finished_reason="length",model_name="m"}`:          "2.0",
			`vllm:time_to_first_token_seconds_bucket{engine="0",le="0.02",model_name="m"}`:            "0.0",
			`vllm:time_to_first_token_seconds_bucket{engine="0",le="0.04",model_name="m"}`:            "2.0",
			`vllm:request_time_per_output_token_seconds_bucket{engine="0",le="0.025",model_name="m"}`: "2.0",
			`vllm:request_time_per_output_token_seconds_bucket{engine="0",le="0.01",model_name="m"}`:  "0.0",
			`vllm:prompt_tokens_by_source_total{engine="0",model_name="m",source="local_compute"}`:    "10.0",
			`vllm:request_params_max_tokens_bucket{engine="0",le="5.0",model_name="m"}`:               "2.0",
		} {
			if got[name] != value {
				t.Errorf("%s is %s, want %s", name, got[name], value)
			}
		}
		if !strings.Contains(a.body, "vllm:prompt_tokens_created{") ||
			a.header.Get("Content-Type") != "text/plain; version=1.0.0; charset=utf-8" {
			t.Error("no _created series, or another type of content")
		}
	})
}
