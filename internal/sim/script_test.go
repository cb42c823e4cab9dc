package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// step is an answer of a case file, read again here by other means.
type step struct {
	Status  int
	Headers map[string]string
	Events  []struct {
		AfterMS int    `json:"after_ms"`
		Data    string `json:"data_b64"`
	}
	End string
}

func caseSteps(t *testing.T, name string) (first step, then, scripts []step) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../testdata/cases", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		step
		Then, Scripts []step
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	return f.step, f.Then, f.Scripts
}

func load(t *testing.T, path string) []Script {
	t.Helper()
	s, err := LoadScripts(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compare checks an answer against the case's: bytes, and the time of each event.
func compare(t *testing.T, name string, a answer, want step) {
	t.Helper()
	var pieces []piece
	at := a.sent
	for _, e := range want.Events {
		at += time.Duration(e.AfterMS) * time.Millisecond
		data, err := base64.StdEncoding.DecodeString(e.Data)
		if err != nil {
			t.Fatal(err)
		}
		if k := len(pieces); k > 0 && pieces[k-1].at == at {
			pieces[k-1].data += string(data)
		} else {
			pieces = append(pieces, piece{at, string(data)})
		}
	}
	if a.status != want.Status || len(a.pieces) != len(pieces) {
		t.Errorf("%s: status %d with %d reads, want %d with %d", name, a.status, len(a.pieces), want.Status, len(pieces))
		return
	}
	for i := range pieces {
		if a.pieces[i] != pieces[i] {
			t.Errorf("%s: read %d at %v: %q, want at %v: %q", name, i, a.pieces[i].at, a.pieces[i].data, pieces[i].at, pieces[i].data)
		}
	}
	for k, v := range want.Headers {
		if a.header.Get(k) != v {
			t.Errorf("%s: header %s: %q, want %q", name, k, a.header.Get(k), v)
		}
	}
	if len(pieces) > 0 && a.end != at {
		t.Errorf("%s: ended at %v, want %v", name, a.end, at)
	}
}

const streamed = `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`

// Single cases, byte for byte and to the nanosecond, on one connection where the case leaves it open.
func TestPlayCases(t *testing.T) {
	for _, name := range []string{"c01-role-chunk-first", "c11-connection-cut", "c18-gzip-body", "c28-not-streaming",
		"c31-chunked-prefill-empties"} {
		want, _, _ := caseSteps(t, name)
		scripts := load(t, filepath.Join("../../testdata/cases", name+".json"))
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeScript, Scripts: scripts})
			c := r.dial()
			time.Sleep(time.Second)
			for _, path := range []string{scripts[0].Endpoint, "/" + name + scripts[0].Endpoint} {
				a := c.call(post(path, streamed))
				compare(t, name, a, want)
				if want.End == "cut" {
					if !errors.Is(a.err, wire.ErrCut) || !errors.Is(a.readErr, io.EOF) {
						t.Errorf("%s: ended with %v, %v", name, a.err, a.readErr)
					}
					c = r.dial()
				} else if a.err != nil || !a.keep {
					t.Errorf("%s: %v, keep %v", name, a.err, a.keep)
				}
				time.Sleep(time.Millisecond)
			}
			c.nc.Close()
			r.stop()
			truth := r.s.Truth()
			if len(truth) != 2 || truth[0].Script != name || len(truth[0].Write) != len(want.Events) {
				t.Errorf("%s: truth %+v", name, truth)
			}
		})
	}
}

// c20: the first answer is a refusal; a later request without stream_options gets the stream, one with them the refusal again.
func TestPlayThen(t *testing.T) {
	const name = "c20-stream-options-refused"
	first, then, _ := caseSteps(t, name)
	scripts := load(t, "../../testdata/cases/"+name+".json")
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeScript, Scripts: scripts})
		c := r.dial()
		const plain = `{"model":"m","stream":true}`
		for i, step := range []struct {
			body string
			want step
		}{{streamed, first}, {streamed, first}, {plain, then[0]}, {streamed, first}, {plain, then[0]}} {
			a := c.call(post("/v1/chat/completions", step.body))
			compare(t, name, a, step.want)
			if a.err != nil || !a.keep {
				t.Errorf("request %d: %v", i, a.err)
			}
		}
		c.nc.Close()
		r.stop()
		// it is for a later request: the first gets the refusal all the same
		r = serveMem(t, Config{Mode: ModeScript, Scripts: scripts})
		c = r.dial()
		compare(t, name, c.call(post("/v1/chat/completions", plain)), first)
		c.nc.Close()
		r.stop()
	})
}

// An event without bytes is no chunk, since an empty one would end the body.
func TestPlayEmptyEvent(t *testing.T) {
	s, err := loadJSON(&Script{Name: "x", Method: "POST"}, []byte(`{"kind":"http","status":200,"end":"clean","events":[
		{"after_ms":1,"data_b64":"YQ=="},{"after_ms":1.5,"data_b64":""},{"after_ms":1,"data_b64":"Yg=="}]}`))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeScript, Scripts: []Script{*s}})
		c := r.dial()
		a := c.call(post("/any", "{}"))
		if a.err != nil || a.body != "ab" || len(a.pieces) != 2 || a.end != 3500*time.Microsecond {
			t.Errorf("%q at %v, %v", a.body, a.end, a.err)
		}
		c.nc.Close()
		r.stop()
	})
}

// c32: four requests at once; the third gets two events and then nothing, and its connection stays open.
func TestPlayHang(t *testing.T) {
	const name = "c32-one-request-never-ends"
	_, _, steps := caseSteps(t, name)
	scripts := load(t, "../../testdata/cases/"+name+".json")
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeScript, Scripts: scripts})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				time.Sleep(time.Duration(i)) // the order at the server
				c := r.dial()
				defer c.nc.Close()
				if i == 2 {
					time.AfterFunc(1500*time.Millisecond, func() { c.nc.Close() })
				}
				a := c.call(post("/v1/chat/completions", streamed))
				if i != 2 {
					compare(t, name, a, steps[i])
					return
				}
				if len(a.pieces) != 2 || a.end != 1500*time.Millisecond+2 || a.err == nil {
					t.Errorf("the third: %d reads, ended at %v with %v", len(a.pieces), a.end, a.err)
				}
			})
		}
		wg.Wait()
		r.stop()
		outcomes := map[Ending]int{}
		for _, rec := range r.s.Truth() {
			outcomes[rec.Outcome]++
		}
		if outcomes[Complete] != 3 || outcomes[Hung] != 1 {
			t.Errorf("outcomes %v", outcomes)
		}
	})
}

// c33: the server counts: five failures, then successes. What a client asks about the server is not counted; DELETE /truth begins anew.
func TestPlayScenarioCounts(t *testing.T) {
	const name = "c33-no-silent-retry"
	_, _, steps := caseSteps(t, name)
	scripts := load(t, "../../testdata/cases/"+name+".json")
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeScript, Scripts: scripts})
		c := r.dial()
		for range 2 {
			for i := range 7 {
				if a := c.call(get("/" + name + "/v1/models")); a.status != 200 || !strings.Contains(a.body, DefaultModel) {
					t.Errorf("models: %d %s", a.status, a.body)
				}
				if a := c.call(post("/"+name+"/tokenize", `{"prompt":"x"}`)); a.status != 404 {
					t.Errorf("tokenize: %d", a.status)
				}
				compare(t, name, c.call(post("/v1/chat/completions", streamed)), steps[min(i/5, 1)])
			}
			if a := c.call("DELETE /truth HTTP/1.1\r\nHost: sim\r\n\r\n"); a.status != 200 {
				t.Errorf("DELETE /truth: %d", a.status)
			}
		}
		c.nc.Close()
		r.stop()
	})
}

// A file without times: event by event by the laws of the configuration, the bytes as they are.
func TestPlayBodies(t *testing.T) {
	dir := load(t, "testdata/wire")
	names := map[string]bool{}
	for _, s := range dir {
		names[s.Name] = true
	}
	if len(dir) < 14 || !names["vllm-chat"] || !names["vllm-chat-stream"] || !names["ollama-generate"] || names["vllm-metrics"] {
		t.Fatalf("scripts %v", names)
	}
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeScript, Scripts: dir, TTFT: Fixed(50 * time.Millisecond), ITL: Fixed(7 * time.Millisecond)})
		c := r.dial()
		for _, f := range []struct {
			name, file, separator string
			header                bool
		}{{"vllm-chat", "vllm-chat.sse", "\n\n", false}, {"ollama-generate", "ollama-generate.ndjson", "\n", false},
			{"openai-embeddings", "openai-embeddings.json", "", false},
			{"vllm-completions-stream", "vllm-completions-stream.response.http", "\n\n", true}} {
			raw, err := os.ReadFile("testdata/wire/" + f.file)
			if err != nil {
				t.Fatal(err)
			}
			if f.header {
				_, raw, _ = bytes.Cut(raw, []byte("\r\n\r\n"))
			}
			a := c.call(post("/"+f.name+"/v1/any", `{}`))
			events := 1
			if f.separator != "" {
				events = strings.Count(strings.TrimRight(string(raw), "\n"), f.separator) + 1
			}
			if a.status != 200 || a.body != string(raw) || len(a.pieces) != events {
				t.Errorf("%s: status %d, %d reads of %d, same bytes %v", f.name, a.status, len(a.pieces), events, a.body == string(raw))
				continue
			}
			for i, p := range a.pieces {
				if want := a.sent + 50*time.Millisecond + time.Duration(i)*7*time.Millisecond; p.at != want {
					t.Errorf("%s: event %d at %v, want %v", f.name, i, p.at, want)
				}
			}
		}
		if a := c.call(get("/vllm-get-version/version")); a.body != `{"version":"0.32.0"}` || a.header.Get("Server") != "uvicorn" {
			t.Errorf("recorded GET: %s", a.body)
		}
		list := c.call(get("/"))
		if !strings.Contains(list.body, "vllm-chat\n") || strings.Count(list.body, "\n") != len(dir) {
			t.Errorf("GET /: %s", list.body)
		}
		if a := c.call(post("/v1/chat/completions", `{}`)); a.status != 404 {
			t.Errorf("without a name among several scripts: %d", a.status)
		}
		c.nc.Close()
		r.stop()
	})
}

func TestLoadScriptsRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kind.json":       `{"kind":"records","records":[]}`,
		"end.json":        `{"kind":"http","status":200,"events":[],"end":"maybe"}`,
		"when.json":       `{"kind":"http","status":200,"events":[],"end":"clean","then":[{"when":"it rains","status":200,"end":"clean"}]}`,
		"range.json":      `{"kind":"scenario","scripts":[{"for_request_at_server":"5..1","status":200,"end":"clean"}]}`,
		"status.json":     `{"kind":"http","events":[],"end":"clean"}`,
		"type.json":       `{"kind":"http","status":"200"}`,
		"broken.json":     `{"kind":`,
		"text.txt":        `hello`,
		"x.response.http": "hello\r\n\r\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadScripts(path); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadScripts(filepath.Join(dir, "missing")); fault.CodeOf(err) != fault.Usage {
		t.Errorf("missing: %v", err)
	}
	if _, err := LoadScripts(t.TempDir()); fault.CodeOf(err) != fault.Usage {
		t.Errorf("empty directory: %v", err)
	}
	one := load(t, "testdata/wire/vllm-chat.sse")
	if _, err := New(Config{Mode: ModeScript, Scripts: append(one, one...)}); err == nil {
		t.Error("two scripts of one name")
	}
}

// Every golden stream plays at the endpoint of its protocol, byte by byte and with its content type, and nowhere else; beside it the
// engine tells of itself.
func TestPlayWire(t *testing.T) {
	const dir = "../../testdata/wire"
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest []struct{ File, Protocol string }
	if err := json.Unmarshal(raw, &manifest); err != nil || len(manifest) < 40 {
		t.Fatal(len(manifest), err)
	}
	scripts := load(t, dir)
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeScript, Scripts: scripts, TTFT: Fixed(30 * time.Millisecond), ITL: Fixed(10 * time.Millisecond)})
		c := r.dial()
		for _, m := range manifest {
			want, err := os.ReadFile(filepath.Join(dir, m.File))
			if err != nil {
				t.Fatal(err)
			}
			path, kind := protocolPaths[m.Protocol], "text/event-stream; charset=utf-8"
			if filepath.Ext(m.File) == ".ndjson" {
				kind = "application/x-ndjson"
			}
			if path == "" {
				t.Errorf("%s: no path for %s", m.File, m.Protocol)
			}
			root := "/" + strings.TrimSuffix(m.File, filepath.Ext(m.File))
			a := c.call(post(root+strings.ReplaceAll(path, "{model}", "m"), `{}`))
			if a.status != 200 || a.body != string(want) || a.header.Get("Content-Type") != kind || a.err != nil || a.pieces[0].at-a.sent != 30*time.Millisecond {
				t.Errorf("%s: %d %s", m.File, a.status, a.body)
			}
			if a := c.call(post(root+"/v1/elsewhere", `{}`)); a.status != 404 {
				t.Errorf("%s elsewhere: %d", m.File, a.status)
			}
		}
		for path, want := range map[string]string{"/sglang-chat/v1/models": "sglang", "/tgi-chat/info": "3.3.7", "/ollama-generate/api/version": "0.33.0",
			"/llamacpp-chat/props": "build_info", "/triton-openai-chat/v2": "triton"} {
			if a := c.call(get(path)); a.status != 200 || !strings.Contains(a.body, want) {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		c.nc.Close()
		r.stop()
	})
}
