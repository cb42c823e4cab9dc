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
	"github.com/prony-bench/prony/internal/opt"
)

const city = `{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object","properties":{"city":{"type":"string"},"n":{"type":"number","minimum":1}},"required":["city"]}}}`

// An answer is right, wrong or cut off. What is no single answer is not looked at.
func TestForm(t *testing.T) {
	for name, c := range map[string]struct {
		format string
		r      bench.Record
		flags  string
	}{
		"right":                        {city, bench.Record{Text: "\n{\"city\":\"Oslo\"}\n", Finish: bench.FinishStop}, "[]"},
		"right, at the very limit":     {city, bench.Record{Text: `{"city":"Oslo"}`, Finish: bench.FinishLength}, "[]"},
		"a field is missing":           {city, bench.Record{Text: `{"town":"Oslo"}`, Finish: bench.FinishStop}, "[invalid_json]"},
		"of another type":              {city, bench.Record{Text: `{"city":5}`, Finish: bench.FinishStop}, "[invalid_json]"},
		"text around it":               {city, bench.Record{Text: "```json\n{\"city\":\"Oslo\"}\n```", Finish: bench.FinishStop}, "[invalid_json]"},
		"two of them":                  {city, bench.Record{Text: `{"city":"Oslo"}{"city":"Oslo"}`, Finish: bench.FinishStop}, "[invalid_json]"},
		"half of it":                   {city, bench.Record{Text: `{"city":"Os`, Finish: bench.FinishLength}, "[json_cut_off]"},
		"half, and the server says no": {city, bench.Record{Text: `{"city":"Os`, Finish: bench.FinishStop, OSLAsked: 8, OSL: opt.Some(8), OSLSource: bench.FromUsage}, "[json_cut_off]"},
		"half by itself":               {city, bench.Record{Text: `{"city":"Os`, Finish: bench.FinishStop, OSLAsked: 8, OSL: opt.Some(7), OSLSource: bench.FromUsage}, "[invalid_json]"},
		"half by a guess":              {city, bench.Record{Text: `{"city":"Os`, Finish: bench.FinishStop, OSLAsked: 8, OSL: opt.Some(8), OSLSource: bench.FromEstimate}, "[invalid_json]"},
		"nothing but thoughts":         {city, bench.Record{Thinking: "hm", Finish: bench.FinishStop}, "[invalid_json]"},
		"a number of a billion digits": {city, bench.Record{Text: `{"city":"Oslo","n":1e999999999}`, Finish: bench.FinishStop}, "[invalid_json]"},
		"a number below":               {city, bench.Record{Text: `{"city":"Oslo","n":-1e-999999999}`, Finish: bench.FinishStop}, "[invalid_json]"},
		"a number of no int":           {city, bench.Record{Text: `{"city":"Oslo","n":[1e99999999999999999999]}`, Finish: bench.FinishStop}, "[invalid_json]"},
		"a call":                       {city, bench.Record{ToolCalls: json.RawMessage(`[]`), Finish: bench.FinishTool}, "[]"},
		"two choices":                  {city, bench.Record{Text: "ab", Choices: 2, Finish: bench.FinishStop}, "[]"},
		"any object":                   {`{"type":"json_object"}`, bench.Record{Text: `{}`, Finish: bench.FinishStop}, "[]"},
		"a list for an object":         {`{"type":"json_object"}`, bench.Record{Text: `[]`, Finish: bench.FinishStop}, "[invalid_json]"},
	} {
		c.r.Outcome = bench.OK
		for _, keep := range []bool{true, false} {
			f, err := newForm(&bench.Spec{Target: bench.Target{ResponseFormat: json.RawMessage(c.format)}, Keep: bench.Keep{Text: keep}})
			if err != nil {
				t.Fatal(err)
			}
			r := c.r
			f.hold(&r)
			if fmt.Sprint(r.Flags) != c.flags {
				t.Errorf("%s: flags %v, want %s", name, r.Flags, c.flags)
			}
			if kept := r.Text + r.Thinking + string(r.ToolCalls); (kept != "") != keep {
				t.Errorf("%s: kept %q", name, kept)
			}
		}
		f, _ := newForm(&bench.Spec{Target: bench.Target{ResponseFormat: json.RawMessage(c.format)}})
		if c.r.Outcome = bench.TruncatedStream; c.flags != "[]" {
			if f.hold(&c.r); len(c.r.Flags) > 0 {
				t.Errorf("%s, truncated: flags %v", name, c.r.Flags)
			}
		}
	}
}

// What is no schema is refused, and none is read from elsewhere.
func TestFormsThatAreNone(t *testing.T) {
	schema := func(s string) string { return `{"type":"json_schema","json_schema":{"name":"a","schema":` + s + `}}` }
	for _, format := range []string{schema(`{"type":"objekt"}`), schema(`{"$ref":"file:///etc/passwd"}`), schema(`{"$ref":"http://127.0.0.1:1/x"}`), schema(`{"$ref":"other.json"}`),
		schema(`7`), schema(`{"pattern":"("}`), `{"type":"grammar"}`, `{"type":"json_schema"}`, `7`} {
		f, err := newForm(&bench.Spec{Target: bench.Target{ResponseFormat: json.RawMessage(format)}})
		if fault.CodeOf(err) != fault.Usage || f != nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", format, err)
		}
	}
	for _, format := range []string{``, `{"type":"text"}`} {
		if f, err := newForm(&bench.Spec{Target: bench.Target{ResponseFormat: json.RawMessage(format)}}); f != nil || err != nil {
			t.Errorf("%q: %v, %v", format, f, err)
		}
	}
}

// former answers a chat with one of some texts after the other, when the request asks for a form and sends a tool.
type former struct {
	t     *testing.T
	texts []string // with their finish reason behind a bar
	next  int
}

func (f *former) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/chat/completions" {
		fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		return
	}
	var in struct {
		Format json.RawMessage   `json:"response_format"`
		Tools  []json.RawMessage `json:"tools"`
		Choice string            `json:"tool_choice"`
		EOS    bool              `json:"ignore_eos"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		panic(err)
	}
	if string(in.Format) != city || len(in.Tools) != 1 || in.Choice != "auto" || in.EOS {
		f.t.Errorf("the request has %+v", in)
	}
	text, finish, _ := strings.Cut(f.texts[f.next%len(f.texts)], "|")
	f.next++
	w.Header().Set("Content-Type", "text/event-stream")
	content, _ := json.Marshal(text)
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s}}]}\n\n", content)
	w.(http.Flusher).Flush()
	time.Sleep(ms)
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n", finish)
}

// A run that asks for a form counts the answers by it, keeps no text that was not asked for, and says the same when it is folded again.
func TestFormOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	var res *Result
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		ln, err := n.Listen("sim:80")
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: &former{t: t, texts: []string{`{"city":"Oslo"}|stop`, `{"city":"Os|length`, `Oslo|stop`, `{"city":"Rome"}|stop`}}}
		go srv.Serve(ln)
		defer srv.Close()
		spec := testSpec(bench.Load{Shape: bench.Closed, Concurrency: 1}, 20)
		spec.Target.Engine, spec.Target.Endpoint, spec.Target.Stream, spec.Target.Usage = "vllm", "chat", true, true
		spec.Target.ResponseFormat, spec.Target.Tools, spec.Target.ToolChoice = json.RawMessage(city), json.RawMessage(`[{"type":"function","function":{"name":"f"}}]`), json.RawMessage(`"auto"`)
		spec.Workload = bench.Workload{Dataset: "text", Prompt: "a city", OSL: "64"}
		spec.Keep.Transcripts, spec.Client.Stamps = true, "user"
		plan, err := Prepare(context.Background(), spec, testDeps(&n), false)
		if err != nil {
			t.Fatal(err)
		}
		if res, err = Execute(context.Background(), plan, dir, Control{}); err != nil {
			t.Fatal(err)
		}
	})
	s := res.Summary
	if s.Form == nil || *s.Form != (bench.FormReport{Valid: 10, Invalid: 5, CutOff: 5}) || s.Flags[bench.InvalidJSON] != 5 || s.Flags[bench.CutOffJSON] != 5 {
		t.Errorf("%+v, flags %v", s.Form, s.Flags)
	}
	said := map[string]string{}
	for _, c := range s.Caveats {
		said[c.Code] = c.Text
	}
	if !strings.Contains(said["invalid_json"], "5 of 20") || !strings.Contains(said["json_cut_off"], "5 of 20") {
		t.Errorf("%v", said)
	}
	engine, _ := testDeps(nil).Engines.Get("vllm")
	again, err := Refold(res.Dir, res.Manifest, engine.Endpoints()[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range res.Records {
		if r.Text != "" || fmt.Sprint(r.Flags) != fmt.Sprint(again[i].Flags) || again[i].Text != "" {
			t.Errorf("%+v\nagain %+v", r, again[i])
		}
	}
}
