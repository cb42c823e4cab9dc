package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/memnet"
)

// natives is a server of no engine in particular: on the engines' native paths it answers three tokens, 100 ms and 20 ms apart, and
// a prompt has a token a word or id and two of the server's own. It has /v1/models alone below /v1.
type natives struct{ asked map[string]int }

func (n natives) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.asked[r.URL.EscapedPath()]++
	body := map[string]any{}
	json.NewDecoder(r.Body).Decode(&body)
	prompt := 2
	for _, key := range []string{"prompt", "inputs", "text_input"} {
		switch v := body[key].(type) {
		case string:
			prompt += len(strings.Fields(v))
		case []any:
			prompt += len(v)
		}
	}
	if m, ok := body["messages"].([]any); ok {
		prompt += len(strings.Fields(m[0].(map[string]any)["content"].(string)))
	}
	write := func(text string, args ...any) {
		fmt.Fprintf(w, text, args...)
		w.(http.Flusher).Flush()
	}
	stream := func(kind, event, last string) {
		w.Header().Set("Content-Type", kind)
		pause := 100 * ms
		for i := range 3 {
			time.Sleep(pause)
			pause = 20 * ms
			if i == 2 {
				event = last
			}
			write("%s", strings.NewReplacer("$I", fmt.Sprint(i+1), "$P", fmt.Sprint(prompt)).Replace(event))
		}
	}
	const sse, lines = "text/event-stream", "application/x-ndjson"
	token := `data:{"index":$I,"token":{"id":$I,"text":" a","special":false},"generated_text":null,"details":null}` + "\n\n"
	triton := `data: {"finish_reason":"None","text_output":" a","num_input_tokens":$P,"num_output_tokens":1}` + "\n\n"
	llama := `data: {"index":0,"content":" a","tokens":[$I],"stop":false,"tokens_predicted":$I,"tokens_evaluated":$P}` + "\n\n"
	ollama := `{"response":" a","message":{"content":" a"},"done":false}` + "\n"
	end := `{"response":"","message":{"content":""},"done":true,"done_reason":"length","prompt_eval_count":$P,"eval_count":3,"load_duration":2000000}` + "\n"
	switch path := r.URL.EscapedPath(); {
	case path == "/v1/models":
		write(`{"data":[{"id":"org/m"}]}`)
	case path == "/tokenize":
		write("[%s1]", strings.Repeat("1,", prompt-1))
	case path == "/generate_stream":
		stream(sse, token, strings.Replace(token, `"details":null`, `"details":{"finish_reason":"length","generated_tokens":3,"input_length":$P}`, 1))
	case path == "/v2/models/org%2Fm/generate_stream":
		stream(sse, triton, strings.Replace(triton, "None", "length", 1))
	case path == "/v2/models/org%2Fm/generate":
		write(`{"text_output":" a","num_input_tokens":%d,"num_output_tokens":1}`, prompt)
	case path == "/v2/models/org%2Fm/infer":
		in := body["inputs"].([]any)[0].(map[string]any)["data"].([]any)
		write(`{"outputs":[{"name":"output_ids","data":[1,2,3]},{"name":"num_input_tokens","data":[%d]}]}`, len(in)+2)
	case path == "/completion" && body["stream"] == true:
		stream(sse, llama, strings.Replace(llama, `"stop":false`, `"stop":true,"stop_type":"limit"`, 1))
	case path == "/completion":
		write(`{"content":" a","stop":true,"stop_type":"limit","tokens_predicted":1,"tokens_evaluated":%d}`, prompt)
	case (path == "/api/chat" || path == "/api/generate") && body["stream"] == true:
		stream(lines, ollama, strings.TrimSuffix(ollama, "\n")+"\n"+end)
	case path == "/api/chat" || path == "/api/generate":
		write("%s", strings.ReplaceAll(strings.ReplaceAll(end, `:""`, `:" a"`), "$P", fmt.Sprint(prompt)))
	default:
		w.WriteHeader(http.StatusNotFound)
		write(`{"error":"no such path"}`)
	}
}

// A run before each native endpoint asks where that is, beside the /v1 of the base URL, with prompts of the wanted length.
func TestNatives(t *testing.T) {
	for _, c := range []struct {
		engine, endpoint, path string
		stream                 bool
		source                 bench.Source // of the number of output tokens
		prompts                string       // how their length was made sure of
	}{
		{"tgi", "generate", "/generate_stream", true, bench.FromIDs, "/tokenize"},
		{"triton", "generate", "/v2/models/org%2Fm/generate_stream", true, bench.FromCount, "probes"},
		{"triton", "generate-vllm", "/v2/models/org%2Fm/generate_stream", true, bench.FromCount, "probes"},
		{"triton", "infer", "/v2/models/org%2Fm/infer", false, bench.FromIDs, "token ids"},
		{"llamacpp", "completion", "/completion", true, bench.FromCount, "token ids"},
		{"ollama", "generate", "/api/generate", true, bench.FromCount, "probes"},
		{"ollama", "", "/api/chat", true, bench.FromCount, "probes"},
	} {
		name := c.engine + " " + c.endpoint
		asked := map[string]int{}
		res, err := native(t, natives{asked}, func(s *bench.Spec) {
			s.Target.Engine, s.Target.Endpoint, s.Target.Stream = c.engine, c.endpoint, c.stream
			s.Workload.OSL = "3"
		})
		if err != nil {
			t.Fatalf("%s: %v (%s)", name, err, fault.HintOf(err))
		}
		if asked[c.path] < 20 || !strings.Contains(res.Manifest.Spec.Workload.PromptSource, c.prompts) {
			t.Errorf("%s: asked %v, prompts by %s", name, asked, res.Manifest.Spec.Workload.PromptSource)
		}
		for _, r := range res.Records {
			sent, _ := r.Sent.Get()
			if r.Outcome != bench.OK || r.ISL.Or(-1) != 32 || r.OSL.Or(-1) != 3 || r.OSLSource != c.source ||
				c.stream && (r.First.Or(0)-sent != 100*ms || r.Last.Or(0)-sent != 140*ms || r.OutEvents != 3) {
				t.Fatalf("%s: %+v", name, r)
			}
		}
	}
}

// What an endpoint cannot do at all is refused before the server is asked for an answer.
func TestNativeRefused(t *testing.T) {
	for _, c := range []struct {
		engine, endpoint, words, hint string
		change                        func(*bench.Spec)
	}{
		{"triton", "infer", "one piece", "--no-stream", func(*bench.Spec) {}},
		{"tgi", "generate", "--extra-body", "JSON object", func(s *bench.Spec) { s.Target.ExtraBody = []byte(`[]`) }},
		{"llamacpp", "/v1/chatter", "not clear", "/completion", func(*bench.Spec) {}},
		{"triton", "/v2/models/generate", "not clear", "{model}", func(*bench.Spec) {}},
	} {
		asked := map[string]int{}
		_, err := native(t, natives{asked}, func(s *bench.Spec) {
			s.Target.Engine, s.Target.Endpoint = c.engine, c.endpoint
			c.change(s)
		})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.words) || !strings.Contains(fault.HintOf(err), c.hint) {
			t.Errorf("%s %s: %v (%s)", c.engine, c.endpoint, err, fault.HintOf(err))
		}
		for path := range asked {
			if strings.Contains(path, "generate") || strings.Contains(path, "infer") || strings.Contains(path, "completion") {
				t.Errorf("%s %s: asked %v", c.engine, c.endpoint, asked)
			}
		}
	}
}

// What is spoken at a path of the user's own follows from its end.
func TestSpokenAt(t *testing.T) {
	const generate = "/v2/models/{model}/generate_stream"
	for _, c := range []struct {
		path, of string
		want     bool
	}{
		{"/v1/chat/completions", "/v1/chat/completions", true},
		{"/openai/chat/completions", "/v1/chat/completions", true},
		{"/v1/completion", "/v1/completions", false},
		{"/generate", "/generate_stream", true},
		{"/a/generate_stream", "/generate_stream", true},
		{"/a/v2/models/m/generate_stream", generate, true},
		{"/v2/models/{model}/generate", generate, true},
		{"/v2/models/m/versions/1/generate", generate, false},
		{"/v2/models//generate", generate, false},
		{"/v2/models/generate", generate, false},
		{"/v2/models/m/infer", generate, false},
	} {
		if got := spokenAt(c.path, c.of); got != c.want {
			t.Errorf("%s at %s: %v", c.of, c.path, got)
		}
	}
}

// native prepares and executes a run against a handler, whole in virtual time.
func native(t *testing.T, h http.Handler, change func(*bench.Spec)) (res *Result, err error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, lerr := n.Listen("sim:80")
		if lerr != nil {
			t.Fatal(lerr)
		}
		srv := &http.Server{Handler: h}
		go srv.Serve(ln)
		defer srv.Close()
		spec := testSpec(bench.Load{Shape: bench.Closed, Concurrency: 1}, 20)
		spec.Target.URLs, spec.Client.Stamps = []string{"http://sim:80/v1"}, "user"
		change(&spec)
		var plan *Plan
		if plan, err = Prepare(context.Background(), spec, testDeps(&n), false); err != nil {
			return
		}
		res, err = Execute(context.Background(), plan, dir, Control{})
	})
	return res, err
}
