package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// Refusals in vLLM's words, each with its record in the truth.
func TestRefusals(t *testing.T) {
	long := strings.Repeat(" word", 200)
	ids := "[" + strings.TrimSuffix(strings.Repeat("600,", 101), ",") + "]"
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Model: "m", MaxModelLen: 100})
		c := r.dial()
		n := 0
		for _, q := range []struct {
			path, body string
			status     int
			message    string
		}{
			{"completions", `{"prompt":"x","max_tokens":101}`, 400, "max_tokens=101 cannot be greater than max_model_len=100. " +
				"Please request fewer output tokens. (parameter=max_tokens, value=101)"},
			{"chat/completions", `{"messages":[],"max_completion_tokens":101}`, 400, "max_completion_tokens=101 cannot be greater"},
			{"completions", `{"prompt":"` + long + `"}`, 400, "This model's maximum context length is 100 tokens. However, your prompt " +
				"contains at least 101 input tokens, which exceeds this limit even without any output tokens. " +
				"Please reduce the length of the input prompt. (parameter=input_tokens, value=101)"},
			{"completions", `{"prompt":` + ids + `}`, 400, "your prompt contains 101 input tokens"},
			{"completions", `{"prompt":` + ids[:len(ids)-5] + `]}`, 400, "max_tokens must be at least 1, got 0."},
			{"completions", `{"prompt":"x","max_tokens":0}`, 400, "max_tokens must be at least 1, got 0."},
			{"completions", `{"prompt":"x","max_tokens":5,"min_tokens":6}`, 400, "min_tokens must be less than or equal to max_tokens=5, got 6."},
			{"completions", `{"model":"other","prompt":"x"}`, 404, "The model `other` does not exist. Valid aliases: m."},
			{"completions", `{"prompt":""}`, 400, "The decoder prompt cannot be empty"},
			{"completions", `{"prompt":[1,99999999]}`, 400, "Token id 99999999 is out of vocabulary"},
			{"completions", `{"prompt":[1,-1]}`, 400, "Token id -1 is out of vocabulary"},
			{"completions", `{"prompt":[1,"x"]}`, 400, "valid integer"},
			{"completions", `{"prompt":["a","b"]}`, 400, "one prompt"},
			{"completions", `{"prompt":"x","n":2}`, 400, "n must be 1"},
			{"completions", `{"prompt":"x","echo":true}`, 400, "echo"},
			{"completions", `{}`, 400, "Field required"},
			{"chat/completions", `{}`, 400, "Field required"},
			{"chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "text only"},
			{"chat/completions", `{"messages":[{"role":"user","content":7}]}`, 400, "validation error"},
			{"completions", `{"prompt":"x","stream_options":{"include_usage":true}}`, 400, "Stream options can only be defined when `stream=True`."},
			{"completions", `{"prompt":"x","max_tokens":"many"}`, 400, "1 validation error"},
			{"completions", `{"prompt":`, 400, "JSON decode error"},
			{"completions", ``, 400, "JSON decode error"},
		} {
			a := c.call(post("/v1/"+q.path, q.body))
			n++
			var got struct {
				Error struct {
					Message, Type string
					Code          int
				}
			}
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != q.status || got.Error.Code != q.status ||
				got.Error.Type == "" || !strings.Contains(got.Error.Message, q.message) || !a.keep || a.header.Get("X-Prony-Request") != fmt.Sprint(n) {
				t.Errorf("%s %s: %d %s", q.path, q.body, a.status, a.body)
			}
		}
		plain := "POST /v1/completions HTTP/1.1\r\nHost: s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 2\r\n\r\n{}"
		if a := c.call(plain); a.status != 400 || !strings.Contains(a.body, "Unsupported Media Type: Only 'application/json' is allowed") {
			t.Errorf("%+v", a)
		}
		for _, q := range []struct {
			request string
			status  int
		}{
			{get("/v1/completions"), 405}, {get("/v2"), 404}, {get("/tokenize"), 405}, {post("/health", ""), 405}, {post("/truth", ""), 405},
			{get("/truth?since=x"), 400},
		} {
			if a := c.call(q.request); a.status != q.status || !a.keep {
				t.Errorf("%.30q: %d %s", q.request, a.status, a.body)
			}
		}
		c.nc.Close()
		r.stop()
		truth := r.s.Truth()
		if len(truth) != n+1 || truth[0].Status != 400 || truth[7].Status != 404 || truth[0].Outcome != Complete {
			t.Errorf("%d records of %d, %+v", len(truth), n+1, truth[0])
		}
	})
}

// What is accepted: prompts in every form, sampling parameters, the client's request id.
func TestAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Model: "m", APIKey: "key"})
		c := r.dial()
		auth := func(path, body, more string) string {
			return strings.Replace(post(path, body), "Host: sim\r\n", "Host: sim\r\nAuthorization: Bearer key\r\n"+more, 1)
		}
		for _, q := range []struct {
			path, body string
			prompt     int
		}{
			{"completions", `{"prompt":"a b c","max_tokens":2}`, 3},
			{"completions", `{"prompt":["a b c"],"max_tokens":2}`, 3},
			{"completions", `{"prompt":[ 600, 601 ,602,603],"max_tokens":2}`, 4},
			{"completions", `{"prompt":[[600,601]],"max_tokens":2}`, 2},
			{"chat/completions", `{"messages":[{"role":"user","content":[{"type":"text","text":"a b"},{"type":"text","text":"c"}]}],` +
				`"max_tokens":2}`, 4 + 4 + 3},
			{"chat/completions", `{"messages":[{"role":"assistant","content":null},{"role":"user","content":"a"}],"max_tokens":2}`, 4 + 5 + 3},
			{"completions", `{"model":"m","prompt":"a","max_tokens":2,"temperature":0.7,"top_p":0.9,"top_k":5,"seed":-3,"stop":["x"],` +
				`"logprobs":2,"unknown":[]}`, 1},
		} {
			a := c.call(auth("/v1/"+q.path, q.body, "X-Request-Id: mine-7\r\n"))
			var got struct {
				ID    string
				Usage struct {
					Prompt int `json:"prompt_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 || got.Usage.Prompt != q.prompt ||
				!strings.HasSuffix(got.ID, "cmpl-mine-7") {
				t.Errorf("%s: %d %s", q.body, a.status, a.body)
			}
		}
		for _, wrong := range []string{post("/v1/completions", `{}`),
			strings.Replace(auth("/v1/completions", "{}", ""), "Bearer key", "Bearer keys", 1),
			strings.Replace(auth("/v1/models", "{}", ""), "Bearer key", "Basic key", 1)} {
			if a := c.call(wrong); a.status != 401 || a.body != `{"error":"Unauthorized"}` || !a.keep {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
		if a := c.call(get("/health")); a.status != 200 {
			t.Error("health needs no key")
		}
		c.nc.Close()
		r.stop()
		if truth := r.s.Truth(); len(truth) != 7 || truth[0].Client != "mine-7" {
			t.Errorf("%+v", truth)
		}
	})
}

// The same prompt and seed give the same text in chat, stream and engine mode; another seed another text.
func TestSameText(t *testing.T) {
	text := func(cfg Config, rest string) string {
		var out strings.Builder
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, cfg)
			c := r.dial()
			a := c.call(post("/v1/completions", `{"prompt":"once upon a time","max_tokens":9`+rest+`}`))
			c.nc.Close()
			r.stop()
			bodies := []string{a.body}
			if strings.Contains(rest, "stream") {
				bodies = nil
				for _, e := range a.events() {
					bodies = append(bodies, e.data)
				}
			}
			for _, b := range bodies {
				var got struct{ Choices []struct{ Text string } }
				if b == "[DONE]" {
					continue
				}
				if err := json.Unmarshal([]byte(b), &got); err != nil {
					t.Error(err)
				}
				out.WriteString(got.Choices[0].Text)
			}
		})
		return out.String()
	}
	exact := Config{Mode: ModeExact, Seed: 1}
	want := text(exact, "")
	if len(strings.Fields(want)) != 9 {
		t.Errorf("%q", want)
	}
	for _, same := range []string{text(exact, `,"stream":true`), text(Config{Mode: ModeEngine, Seed: 1}, `,"stream":true`)} {
		if same != want {
			t.Errorf("%q, want %q", same, want)
		}
	}
	seeded := text(exact, `,"seed":5`)
	other := text(Config{Mode: ModeExact, Seed: 2}, "")
	if seeded == want || other == want || seeded != text(exact, `,"seed":5,"stream":true`) {
		t.Errorf("%q, with a seed %q, of another server %q", want, seeded, other)
	}
}

func TestTokenizeEndpoints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Model: "m", MaxModelLen: 512})
		c := r.dial()
		a := c.call(post("/tokenize", `{"model":"m","prompt":" bababa bababe","return_token_strs":true,"add_special_tokens":false}`))
		if a.body != `{"count":2,"max_model_len":512,"tokens":[512,513],"token_strs":[" bababa"," bababe"]}` {
			t.Error(a.body)
		}
		var got struct{ Tokens []int32 }
		if err := json.Unmarshal([]byte(a.body), &got); err != nil {
			t.Fatal(err)
		}
		if b := c.call(post("/detokenize", fmt.Sprintf(`{"tokens":%s}`, appendIDs(nil, got.Tokens)))); b.body != `{"prompt":" bababa bababe"}` {
			t.Error(b.body)
		}
		usage := c.call(post("/v1/chat/completions", chat("m", "hello there", `,"max_tokens":1`))).body
		a = c.call(post("/tokenize", chat("m", "hello there", "")))
		if !strings.HasPrefix(a.body, `{"count":9,`) || !strings.Contains(usage, `"prompt_tokens":9`) {
			t.Errorf("%s, %s", a.body, usage)
		}
		if a := c.call(post("/tokenize", chat("m", "hello there", `,"add_generation_prompt":false`))); !strings.HasPrefix(a.body, `{"count":6,`) {
			t.Error(a.body)
		}
		for _, bad := range []string{`{}`, `{"model":"x","prompt":"a"}`, `[`} {
			if a := c.call(post("/tokenize", bad)); a.status < 400 {
				t.Errorf("%s: %d", bad, a.status)
			}
		}
		if a := c.call(post("/detokenize", `{"tokens":"x"}`)); a.status != 400 {
			t.Error(a.body)
		}
		c.nc.Close()
		r.stop()
	})
}
