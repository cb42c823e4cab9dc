package discover

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/memnet"
)

// engine is what one answers, by path with its query; the others answer 404.
type engine struct {
	name   string
	model  string // that is to be used
	bodies map[string]string
	want   string // of Found, as sheet writes it
	models string
}

// sheet writes what is known, in one line.
func sheet(f Found) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", f.Name, f.Version)
	var told map[string]any
	text, _ := json.Marshal(f.Engine)
	json.Unmarshal(text, &told)
	for _, key := range slices.Sorted(maps.Keys(told)) {
		if v := told[key]; v != nil && !slices.Contains([]string{"url", "name", "version", "model", "models"}, key) {
			fmt.Fprintf(&b, " %s=%v", key, v)
		}
	}
	if f.Endpoint != "" {
		b.WriteString(" -> " + f.Endpoint)
	}
	return b.String()
}

func models(owner, more string) string {
	return fmt.Sprintf(`{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":%q%s}]}`, owner, more)
}

const sglangInfo = `{"model_path":"m","tp_size":8,"pp_size":1,"dp_size":2,"ep_size":8,"quantization":"fp8","kv_cache_dtype":"auto","context_length":null,
	"disable_radix_cache":false,"max_total_num_tokens":1200000,"max_running_requests":null,"version":"0.5.23",
	"internal_states":[{"effective_max_running_requests_per_dp":128,"memory_usage":{}}]}`

const trtllmPage = `# HELP trtllm_model_config_info x
trtllm_model_config_info{model="m",served_model_name="m",dtype="bfloat16",quantization="fp8",max_model_len="8192",gpu_type="NVIDIA H200",model_name="m"} 1.0
trtllm_parallel_config_info{tensor_parallel_size="4",pipeline_parallel_size="2",gpu_count="8"} 1.0
trtllm_kv_cache_max_blocks{model_name="m"} 1000.0
trtllm_kv_cache_tokens_per_block{model_name="m"} 32.0
`

const dynamoPage = `dynamo_frontend_model_context_length{model="m"} 40960
dynamo_frontend_model_kv_cache_block_size{model="m"} 16
dynamo_frontend_model_total_kv_blocks{model="m"} 2000
dynamo_frontend_model_max_num_seqs{model="m"} 256
`

const lmdeployPage = `lmdeploy:backend_config_info{dtype="auto",tp="2",dp="1",session_len="16384",max_batch_size="128",cache_max_entry_count="0.8",block_size="64",num_gpu_blocks="0",quant_policy="8",enable_prefix_caching="False",model_format="awq"} 1.0
`

const tritonConfig = `{"name":"tensorrt_llm","backend":"tensorrtllm","max_batch_size":64,"parameters":{"enable_kv_cache_reuse":{"string_value":"true"},
	"max_tokens_in_paged_kv_cache":{"string_value":"65536"},"max_beam_width":{"string_value":""}}}`

const tritonIndex = `[{"name":"ensemble","version":"1","state":"READY"},{"name":"tensorrt_llm","version":"1","state":"READY"},{"name":"old","state":"UNAVAILABLE"}]`

const triton = `{"name":"triton","version":"2.73.0","extensions":["generate"]}`

const devMode = `{"vllm_config":{"model_config":{"quantization":"fp8"},"parallel_config":{"tensor_parallel_size":8,"pipeline_parallel_size":1,
	"data_parallel_size":2},"scheduler_config":{"max_num_seqs":256}}}`

func engines(t *testing.T) []engine {
	return []engine{
		{"vLLM", "", map[string]string{"/v1/models": recorded(t, "vllm-get-v1-models"), "/version": recorded(t, "vllm-get-version"), "/metrics": recorded(t, "vllm-get-metrics")},
			"vllm 0.32.0 kv_cache_tokens=524288 max_model_len=2048 prefix_cache=true", "tiny"},
		{"vLLM in development mode", "", map[string]string{"/v1/models": models("vllm", `,"max_model_len":4096`), "/version": `{"version":"0.33.0"}`,
			"/metrics": `vllm:cache_config_info{block_size="16",num_gpu_blocks="100",cache_dtype="fp8",enable_prefix_caching="False"} 1.0`, "/server_info?config_format=json": devMode},
			"vllm 0.33.0 data_parallel=2 kv_cache_dtype=fp8 kv_cache_tokens=1600 max_model_len=4096 pipeline_parallel=1 prefix_cache=false quantization=fp8 slots=256 tensor_parallel=8", "m"},
		{"vLLM behind a gateway", "", map[string]string{"/v1/models": models("acme", ""), "/version": `{"version":"0.32.0"}`, "/metrics": recorded(t, "vllm-get-metrics")},
			"vllm 0.32.0 kv_cache_tokens=524288 prefix_cache=true", "m"},
		{"NIM", "", map[string]string{"/v1/models": models("vllm", `,"max_model_len":131072`), "/v1/metadata": `{"version":"2.1.6","modelInfo":[],"selectedModelProfileId":"a"}`,
			"/v1/metrics": `vllm:cache_config_info{kv_cache_size_tokens="1000",enable_prefix_caching="True"} 1.0`},
			"nim 2.1.6 kv_cache_tokens=1000 max_model_len=131072 prefix_cache=true", "m"},
		{"NIM 1", "", map[string]string{"/v1/models": models("system", ""), "/v1/metadata": `{"version":"1.10.1","modelInfo":[],"licenseInfo":{}}`}, "nim 1.10.1", "m"},
		{"SGLang", "", map[string]string{"/v1/models": models("sglang", `,"max_model_len":40960`), "/server_info": sglangInfo},
			"sglang 0.5.23 data_parallel=2 expert_parallel=8 kv_cache_tokens=1.2e+06 max_model_len=40960 pipeline_parallel=1 prefix_cache=true quantization=fp8 slots=128 tensor_parallel=8", "m"},
		{"an older SGLang", "", map[string]string{"/v1/models": models("sglang", ""), "/get_server_info": `{"version":"0.4.6","tp_size":1,"max_running_requests":32,"disable_radix_cache":true}`},
			"sglang 0.4.6 prefix_cache=false slots=32 tensor_parallel=1", "m"},
		{"TensorRT-LLM", "", map[string]string{"/v1/models": models("tensorrt_llm", ""), "/version": `{"version":"1.2.0"}`, "/prometheus/metrics": trtllmPage},
			"trtllm 1.2.0 kv_cache_tokens=32000 max_model_len=8192 pipeline_parallel=2 quantization=fp8 tensor_parallel=4", "m"},
		{"TensorRT-LLM without an owner", "", map[string]string{"/v1/models": models("", ""), "/prometheus/metrics": trtllmPage},
			"trtllm  kv_cache_tokens=32000 max_model_len=8192 pipeline_parallel=2 quantization=fp8 tensor_parallel=4", "m"},
		{"Dynamo", "", map[string]string{"/v1/models": strings.Replace(models("nvidia", ""), `"object":"model"`, `"object":"object"`, 1), "/metrics": dynamoPage},
			"dynamo  kv_cache_tokens=32000 max_model_len=40960 slots=256", "m"},
		{"LMDeploy", "", map[string]string{"/v1/models": models("lmdeploy", ""), "/metrics": lmdeployPage},
			"lmdeploy  data_parallel=1 kv_cache_dtype=int8 max_model_len=16384 prefix_cache=false quantization=awq slots=128 tensor_parallel=2", "m"},
		{"llama.cpp", "", map[string]string{"/v1/models": recorded(t, "llamacpp-get-v1-models"), "/props": recorded(t, "llamacpp-get-props")},
			"llamacpp b1-0c1e570 max_model_len=2048 quantization=Q4_K - Medium slots=4 vocabulary=262144", "gemma3-270m-q4km.gguf"},
		{"llama.cpp without a list", "", map[string]string{"/props": recorded(t, "llamacpp-get-props")},
			"llamacpp b1-0c1e570 max_model_len=2048 quantization=Q4_K - Medium slots=4", "gemma3-270m-q4km.gguf"},
		{"Ollama", "", map[string]string{"/v1/models": recorded(t, "ollama-get-v1-models"), "/api/version": recorded(t, "ollama-get-api-version"), "/api/ps": recorded(t, "ollama-get-api-ps"),
			"/api/show": recorded(t, "ollama-show")}, "ollama 0.0.0 max_model_len=2048 quantization=Q4_K_M", "gemma3-270m:latest"},
		{"Ollama with a model that is not loaded", "gemma3-270m", map[string]string{"/api/version": `{"version":"0.17.4"}`, "/api/tags": recorded(t, "ollama-get-api-tags"), "/api/ps": `{"models":[]}`,
			"/api/show": `{"details":{"quantization_level":"Q8_0"},"parameters":"temperature 1","model_info":{"gemma3.context_length":32768}}`}, "ollama 0.17.4 quantization=Q8_0", "gemma3-270m:latest"},
		{"TGI", "", map[string]string{"/v1/models": models("org/m", ""), "/info": `{"model_id":"org/m","version":"3.3.7","router":"text-generation-router","max_input_tokens":512,"max_total_tokens":1024,"max_concurrent_requests":128}`},
			"tgi 3.3.7 max_model_len=1024 max_requests=128", "m"},
		{"TGI without a list", "", map[string]string{"/info": `{"model_id":"org/m","version":"2.0.0","max_total_tokens":1024}`}, "tgi 2.0.0 max_model_len=1024", "org/m"},
		{"TEI", "", map[string]string{"/info": `{"model_id":"BAAI/bge-small-en-v1.5","version":"1.8.2","max_input_length":512,"max_concurrent_requests":512,"model_type":{"embedding":{"pooling":"cls"}}}`},
			"tei 1.8.2 max_model_len=512 max_requests=512", "BAAI/bge-small-en-v1.5"},
		{"TEI that ranks", "", map[string]string{"/info": `{"model_id":"r","version":"1.8.2","max_input_length":512,"model_type":{"reranker":{"id2label":{"0":"L"}}}}`},
			"tei 1.8.2 max_model_len=512 -> rerank", "r"},
		{"Triton", "ensemble", map[string]string{"/v2": triton, "/v2/repository/index": tritonIndex, "/v2/models/ensemble/config": `{"name":"ensemble","platform":"ensemble","max_batch_size":8}`,
			"/v2/models/tensorrt_llm/config": tritonConfig}, "triton 2.73.0 backend=tensorrtllm kv_cache_tokens=65536 prefix_cache=true slots=64 -> generate", "ensemble tensorrt_llm"},
		{"Triton before vLLM", "", map[string]string{"/v2": triton, "/v2/repository/index": `[{"name":"v","state":"READY"}]`, "/v2/models/v/config": `{"name":"v","backend":"vllm","max_batch_size":0}`},
			"triton 2.73.0 backend=vllm -> generate-vllm", "v"},
		{"Triton's OpenAI front", "", map[string]string{"/v1/models": models("Triton Inference Server", "")}, "triton ", "m"},
		{"OpenAI", "", map[string]string{"/v1/models": models("openai", "")}, "openai ", "m"},
		{"Anthropic", "", map[string]string{"/v1/models": `{"data":[{"type":"model","id":"claude-demo","display_name":"Claude","created_at":"2026-01-01T00:00:00Z"}],"has_more":false}`}, "anthropic ", "claude-demo"},
		{"nobody known", "", map[string]string{"/v1/models": `{"data":[{"id":"a","owned_by":"me"},{"id":"b"}]}`}, " ", "a b"},
		{"nobody at all", "", map[string]string{}, " ", ""},
		{"an HTML page", "", map[string]string{"/v1/models": "<html>", "/api/version": "<html>", "/info": "<html>", "/v2": "<html>", "/props": "<html>", "/metrics": "<html>"}, " ", ""},
		{"the same for all", "", map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/info": `{"data":[{"id":"m"}]}`, "/api/version": `[]`, "/v2": `"x"`, "/props": `null`, "/v1/metadata": `{"data":[]}`}, " ", "m"},
	}
}

// costly are the paths that generate, or take something away from others who ask.
var costly = []string{"/health", "/health_generate", "/generate", "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/embeddings", "/api/generate", "/api/chat", "/completion", "/perf_metrics"}

// Every engine is known by what it answers, with what it tells of itself, and no question costs a generation.
func TestIdentify(t *testing.T) {
	for _, e := range engines(t) {
		var mu sync.Mutex
		var asked []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, r.URL.Path)
			body, ok := e.bodies[r.URL.RequestURI()]
			if !ok {
				http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
				return
			}
			io.WriteString(w, body)
		}))
		address := func(p string) string { return srv.URL + p }
		f, err := (&Prober{HTTP: srv.Client(), Join: address, Root: address}).Identify(context.Background(), e.model)
		srv.Close()
		if got := sheet(f); err != nil || got != e.want || strings.Join(f.Models, " ") != e.models {
			t.Errorf("%s:\n got %s, models %q, %v\nwant %s, models %q", e.name, got, f.Models, err, e.want, e.models)
		}
		if (f.Trouble == nil) != (e.models != "") {
			t.Errorf("%s: trouble %v", e.name, f.Trouble)
		}
		for _, path := range asked {
			if slices.Contains(costly, path) {
				t.Errorf("%s is asked %s", e.name, path)
			}
			if path == "/metrics" && strings.HasPrefix(e.name, "TensorRT") {
				t.Errorf("%s: %s is emptied by reading it", e.name, path)
			}
		}
	}
}

// hanging runs test, in virtual time, against a server that answers what an engine answers and is silent to all else.
func hanging(t *testing.T, bodies map[string]string, test func(p *Prober)) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l, err := n.Listen("e:80")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if body, ok := bodies[r.URL.RequestURI()]; ok {
				io.WriteString(w, body)
				return
			}
			<-r.Context().Done()
		})}
		var wg sync.WaitGroup
		wg.Go(func() { srv.Serve(l) })
		transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) { return n.Dial(ctx, network, "e:80") }}
		address := func(p string) string { return "http://e" + p }
		test(&Prober{HTTP: &http.Client{Transport: transport}, Join: address, Root: address})
		transport.CloseIdleConnections()
		srv.Close()
		wg.Wait()
	})
}

// A server that is silent to a question holds nobody up for longer than the question's bound, and not all questions for longer than theirs.
func TestIdentifyHanging(t *testing.T) {
	all := engines(t)
	for _, e := range all {
		if e.bodies["/v1/models"] == "" {
			continue
		}
		hanging(t, e.bodies, func(p *Prober) {
			begun := time.Now()
			f, err := p.Identify(context.Background(), e.model)
			if took := time.Since(begun); err != nil || took > allTimeout {
				t.Errorf("%s: %v after %v", e.name, err, took)
			}
			if owner, _, _ := strings.Cut(e.want, " "); owner != f.Name && time.Since(begun) < allTimeout {
				t.Errorf("%s: found %q, not %q", e.name, f.Name, owner)
			}
		})
	}
	hanging(t, map[string]string{"/v1/models": models("sglang", "")}, func(p *Prober) {
		begun := time.Now()
		if f, err := p.Identify(context.Background(), ""); err != nil || f.Name != "sglang" || f.Version != "" || time.Since(begun) != 2*sideTimeout {
			t.Errorf("%+v, %v after %v", f, err, time.Since(begun))
		}
	})
	hanging(t, nil, func(p *Prober) {
		begun := time.Now()
		if _, err := p.Identify(context.Background(), ""); fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), "no answer within 5s") || time.Since(begun) != askTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		if p.Ready(context.Background()) {
			t.Error("a silent server is ready")
		}
	})
}

// Why there is no list of models is said, with what to do about it.
func TestNoModels(t *testing.T) {
	for _, c := range []struct {
		status      int
		body, where string
		cause, hint string
	}{
		{404, `{"detail":"Not Found"}`, "", `/v1/models answers 404: {"detail":"Not Found"}`, "check the path in --url"},
		{200, "<!DOCTYPE html><title>Sign in</title>", "", "/v1/models answers 200 with an HTML page", "the server's API"},
		{404, "<html>no</html>", "", "/v1/models answers 404 with an HTML page", "the server's API"},
		{200, "hello", "", "/v1/models answers no JSON: hello", "is it an LLM server"},
		{200, `{"data":[]}`, "", "/v1/models names no model", "--model"},
		{503, `{"error":{"message":"Loading model"}}`, "", "/v1/models answers 503", "--wait-ready"},
		{307, "", "https://elsewhere/", "/v1/models answers 307, a redirect to https://elsewhere/", "--url"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				http.NotFound(w, r)
				return
			}
			if c.where != "" {
				w.Header().Set("Location", c.where)
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		client := srv.Client()
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		address := func(p string) string { return srv.URL + p }
		f, err := (&Prober{HTTP: client, Join: address, Root: address}).Identify(context.Background(), "")
		srv.Close()
		if err != nil || fault.CodeOf(f.Trouble) != fault.Target || !strings.HasPrefix(f.Trouble.Error(), srv.URL+c.cause) || !strings.Contains(fault.HintOf(f.Trouble), c.hint) {
			t.Errorf("%d: %v, %v (%s)", c.status, err, f.Trouble, fault.HintOf(f.Trouble))
		}
	}
}

// Where the engine is known but has no model, that is what is said.
func TestNoModelOfEngine(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2":
			io.WriteString(w, triton)
		case "/v2/repository/index":
			io.WriteString(w, `[{"name":"m","state":"UNAVAILABLE"}]`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	address := func(p string) string { return srv.URL + p }
	f, err := (&Prober{HTTP: srv.Client(), Join: address, Root: address}).Identify(context.Background(), "")
	if err != nil || f.Trouble == nil || f.Trouble.Error() != srv.URL+" is triton, and names no model" || !strings.Contains(fault.HintOf(f.Trouble), "--model") {
		t.Errorf("%v, %v", err, f.Trouble)
	}
}

// The key goes into the header that the engine has for it, or that was chosen.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ engine, auth, header, value string }{
		{"", "", "Authorization", "Bearer secret"},
		{"vllm", "x-api-key", "X-Api-Key", "secret"},
		{"vllm", "api-key", "Api-Key", "secret"},
		{"anthropic", "", "X-Api-Key", "secret"},
		{"anthropic", "bearer", "Authorization", "Bearer secret"},
	} {
		var got http.Header
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r.Header }))
		address := func(p string) string { return srv.URL + p }
		(&Prober{HTTP: srv.Client(), Join: address, Root: address, Engine: c.engine, Auth: c.auth, Key: "secret"}).send(context.Background(), srv.URL, nil)
		srv.Close()
		n := len(got["Authorization"]) + len(got["X-Api-Key"]) + len(got["Api-Key"])
		if got.Get(c.header) != c.value || n != 1 || (got.Get("anthropic-version") != "") != (c.engine == "anthropic") {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Anthropic's API is known by how it refuses, and asked again in its own way.
func TestAnthropicRefuses(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") == "right" && r.Header.Get("anthropic-version") != "" {
			io.WriteString(w, `{"data":[{"type":"model","id":"claude-demo","display_name":"Claude"}]}`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"x-api-key header is required"}}`)
	}))
	defer srv.Close()
	address := func(p string) string { return srv.URL + p }
	ask := func(key string) (Found, error) {
		return (&Prober{HTTP: srv.Client(), Join: address, Root: address, Key: key}).Identify(context.Background(), "")
	}
	if f, err := ask("right"); err != nil || f.Name != "anthropic" || len(f.Models) != 1 {
		t.Error(f, err)
	}
	if _, err := ask("wrong"); fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), "--api-key") || !strings.Contains(fault.HintOf(err), "sent as x-api-key") {
		t.Error(err, fault.HintOf(err))
	}
	if _, err := ask(""); !strings.Contains(fault.HintOf(err), "give a key with --api-key") {
		t.Error(err, fault.HintOf(err))
	}
}

// A server is waited for without a health check where that may cost a generation.
func TestReady(t *testing.T) {
	for _, c := range []struct {
		name   string
		status map[string]int // by path; 404 for the others
		ready  bool
		asked  string
	}{
		{"an OpenAI front", map[string]int{"/v1/models": 200}, true, "/v1/models"},
		{"one that loads", map[string]int{"/v1/models": 503, "/health": 200}, false, "/v1/models"},
		{"one that wants a key", map[string]int{"/v1/models": 401}, true, "/v1/models"},
		{"TGI, TEI", map[string]int{"/info": 200}, true, "/v1/models /info"},
		{"Triton", map[string]int{"/v2/health/ready": 200}, true, "/v1/models /info /v2/health/ready"},
		{"another", map[string]int{"/health": 200}, true, "/v1/models /info /v2/health/ready /api/version /health"},
		{"nobody", nil, false, "/v1/models /info /v2/health/ready /api/version /health"},
	} {
		var asked []string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.URL.Path)
			if s := c.status[r.URL.Path]; s != 0 {
				w.WriteHeader(s)
				return
			}
			http.NotFound(w, r)
		}))
		address := func(p string) string { return srv.URL + p }
		ready := (&Prober{HTTP: srv.Client(), Join: address, Root: address}).Ready(context.Background())
		srv.Close()
		if ready != c.ready || strings.Join(asked, " ") != c.asked {
			t.Errorf("%s: ready %v, asked %v", c.name, ready, asked)
		}
	}
}

// What vLLM writes into its answers tells its layout.
func TestFingerprint(t *testing.T) {
	for text, want := range map[string]string{
		"vllm-0.32.0-tp8-dp2-ep-1a2b3c4d": "  data_parallel=2 pipeline_parallel=1 tensor_parallel=8",
		"vllm-0.32.0-1a2b3c4d":            "  data_parallel=1 pipeline_parallel=1 tensor_parallel=1",
		"fp_44709d6fcb":                   " ",
		"vllm-1a2b3c4d":                   " ",
		"b5000-abc":                       " ",
	} {
		var f Found
		if f.Fingerprint(text); sheet(f) != want {
			t.Errorf("%s: %q", text, sheet(f))
		}
	}
}

// A page of metrics is read as far as its form allows.
func TestPage(t *testing.T) {
	p := page("# HELP a b\na_info{x=\"1\",y=\"q\\\"}, z\\n\"} 2 1234\na 5\nb{x=\"1\" 3\n")
	if d := p.series("a_info"); d.text("x") != "1" || d.text("y") != "q\"}, z" || d[""] != 2.0 {
		t.Errorf("%v", d)
	}
	if d := p.series("a"); !d.number("").Defined() || d.number("").Or(0) != 5 {
		t.Errorf("%v", d)
	}
	if d := p.series("b"); d != nil {
		t.Errorf("%v", d)
	}
	if p.has("HELP") || !p.has("a_") || !p.has("# HELP") || page("").series("a") != nil {
		t.Error("prefixes")
	}
}
