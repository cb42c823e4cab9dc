package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

const wireDir = "../../../testdata/wire"

// golden is an entry of testdata/wire/manifest.json.
type golden struct {
	File, Protocol, Content, Reasoning string
	Prompt                             *int           `json:"prompt_tokens"`
	Output                             *int           `json:"output_tokens"`
	Thought                            *int           `json:"reasoning_tokens"`
	Cached                             *int           `json:"cached_tokens"`
	First                              int            `json:"first_token_event"`
	FirstContent                       *int           `json:"first_content_event"`
	Finish                             *string        `json:"finish_reason"`
	From                               *string        `json:"tokens_from"`
	TokenIDs                           []int          `json:"token_ids"`
	PerEvent                           map[string]int `json:"tokens_per_event"`
	Tools                              []toolOut      `json:"tool_calls"`
	Error                              *struct{ Message string }
	DataEvents                         int `json:"data_events"`
}

type toolOut struct{ ID, Name, Arguments string }

// timed gives each data event of a body one read and a time of its own: event i arrives at (i+1) ms.
func timed(body []byte) *wire.Transcript {
	tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Sent: opt.Some(time.Duration(0)), Raw: body, Bytes: len(body)}
	var s wire.SSE
	n := 0
	for i := range body {
		s.Feed(body[i:i+1], func(ev wire.Event) {
			if ev.Data != nil {
				n++
				tr.Marks = append(tr.Marks, wire.Mark{End: i + 1, At: time.Duration(n) * time.Millisecond})
			}
		})
	}
	if k := len(tr.Marks); k == 0 || tr.Marks[k-1].End < len(body) {
		tr.Marks = append(tr.Marks, wire.Mark{End: len(body), At: time.Duration(n+1) * time.Millisecond})
	}
	tr.Ended = opt.Some(tr.Marks[len(tr.Marks)-1].At)
	return tr
}

// Every golden stream of the OpenAI protocols folds to what the manifest says.
func TestGoldenStreams(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(wireDir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, g := range all {
		path := map[string]string{"openai-chat": "/v1/chat/completions", "openai-completions": "/v1/completions"}[g.Protocol]
		if path == "" {
			continue
		}
		seen++
		body, err := os.ReadFile(filepath.Join(wireDir, g.File))
		if err != nil {
			t.Fatal(err)
		}
		check := func(format string, args ...any) { t.Helper(); t.Errorf(g.File+": "+format, args...) }
		r := fold(path, true, 0, 0, nil, timed(body))
		if g.Error != nil {
			if r.Outcome != bench.StreamError {
				check("outcome %s", r.Outcome)
			}
			if !strings.Contains(r.Error, g.Error.Message) {
				check("error %q", r.Error)
			}
		} else if r.Outcome != bench.OK {
			check("outcome %s: %s", r.Outcome, r.Error)
		}
		if r.Text != g.Content || r.Thinking != g.Reasoning {
			check("text %q, reasoning %q", r.Text, r.Thinking)
		}
		if want := time.Duration(g.First+1) * time.Millisecond; r.First.Or(-1) != want {
			check("first token at event %v, want %v", r.First, want)
		}
		if g.FirstContent != nil && len(g.TokenIDs) == 0 {
			if want := time.Duration(*g.FirstContent+1) * time.Millisecond; r.FirstAnswer.Or(-1) != want {
				check("first answer %v, want %v", r.FirstAnswer, want)
			}
		}
		count := func(name string, got opt.Of[int], want *int) {
			if want != nil && got.Or(-1) != *want {
				check("%s %v, want %d", name, got, *want)
			}
		}
		if g.Error == nil && g.From != nil {
			count("prompt tokens", r.ISL, g.Prompt)
			count("output tokens", r.OSL, g.Output)
			count("cached tokens", r.Cached, g.Cached)
			if g.Thought != nil && *g.Thought > 0 {
				count("reasoning tokens", r.Reasoning, g.Thought)
			}
		}
		if g.From == nil && g.Error == nil && r.OSLSource != bench.FromEstimate {
			check("source %s, want an estimate", r.OSLSource)
		}
		if len(g.TokenIDs) > 0 && (r.OSLSource != bench.FromIDs || r.OSL.Or(0) != len(g.TokenIDs)) {
			check("%v ids from %s", r.OSL, r.OSLSource)
		}
		if g.Finish != nil && r.Finish != dialect.NormalFinish(*g.Finish) {
			check("finish %s", r.Finish)
		}
		if g.PerEvent != nil {
			keys := make([]int, 0, len(g.PerEvent))
			for k := range g.PerEvent {
				n, _ := strconv.Atoi(k)
				keys = append(keys, n)
			}
			sort.Ints(keys)
			var want []int
			var times []time.Duration
			for _, k := range keys {
				want = append(want, g.PerEvent[strconv.Itoa(k)])
				times = append(times, time.Duration(k+1)*time.Millisecond)
			}
			if fmt.Sprint(r.EventTokens) != fmt.Sprint(want) || fmt.Sprint(r.Events) != fmt.Sprint(times) {
				check("tokens per event %v at %v, want %v at %v", r.EventTokens, r.Events, want, times)
			}
		}
		if len(g.Tools) > 0 {
			var got []toolOut
			if err := json.Unmarshal(r.ToolCalls, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(g.Tools) {
				check("tool calls %s", r.ToolCalls)
			}
		}
	}
	if seen != 23 {
		t.Errorf("%d golden streams of these protocols, want 23", seen)
	}
}

// Real answers of real engines fold to what their text shows. The recorder took the chunked coding off.
func TestRecorded(t *testing.T) {
	const chat, text = "/v1/chat/completions", "/v1/completions"
	for _, c := range []struct {
		name, path       string
		outcome          bench.Outcome
		isl, osl, events int
		source           bench.Source
		text, words      string
	}{
		{"vllm-chat-stream", chat, bench.OK, 8, 8, 8, bench.FromUsage, "ation preventation preventation preventation prevent", ""},
		{"vllm-chat-stream-continuous-usage", chat, bench.OK, 8, 4, 4, bench.FromCount, "ation preventation prevent", ""},
		{"vllm-chat-n2-stream", chat, bench.OK, 8, 6, 6, bench.FromUsage, " Greyn30bdlentSH", ""},
		{"vllm-completions-stream", text, bench.OK, 5, 8, 8, bench.FromUsage, "unlockedldunlockedldunlockedldunlockedld", ""},
		{"vllm-completions-token-ids", text, bench.OK, 4, 4, 4, bench.FromIDs, "just worjust wor", ""},
		{"vllm-completions-nonstream", text, bench.OK, 5, 4, 0, bench.FromUsage, "unlockedldunlockedld", ""},
		{"vllm-chat-too-long", chat, bench.Rejected, -1, -1, 0, "", "", "cannot be greater than max_model_len=2048"},
		{"vllm-chat-unknown-model", chat, bench.Rejected, -1, -1, 0, "", "", "The model `nope` does not exist"},
		{"llamacpp-chat-stream", chat, bench.OK, 29, 8, 8, bench.FromUsage, "<|im_end|>\n<", ""},
		{"llamacpp-chat-stream-timings", chat, bench.OK, 29, 4, 4, bench.FromCount, "<|im_", ""},
		{"llamacpp-v1-completions-stream", text, bench.OK, 6, 8, 8, bench.FromUsage, " the capital of the country of France.", ""},
		{"llamacpp-v1-completions-utf8-stream", text, bench.OK, 21, 24, 24, bench.FromUsage, " 謝謝你. Translate to English: good morning = 早上好. Translate to French: bonne journée = 早上", ""},
		{"llamacpp-too-long", text, bench.Rejected, -1, -1, 0, "", "", "exceeds the available context size"},
		{"llamacpp-malformed", text, bench.ServerError, -1, -1, 0, "", "", "parse error"},
		{"ollama-v1-chat-stream", chat, bench.OK, 6, 6, 6, bench.FromUsage, " the capital of the country of", ""},
		{"ollama-v1-completions-stream", text, bench.OK, 6, 6, 6, bench.FromUsage, " the capital of the country of", ""}, // zeros in every chunk
	} {
		raw, err := os.ReadFile(filepath.Join(wireDir, "recorded", c.name+".response.http"))
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		status, _ := strconv.Atoi(string(head[9:12]))
		kind := "application/json"
		if bytes.Contains(head, []byte("text/event-stream")) {
			kind = "text/event-stream"
		}
		tr := timed(body)
		tr.Status, tr.Header = status, map[string][]string{"Content-Type": {kind}}
		r := fold(c.path, kind != "application/json" || status != 200, 0, 0, nil, tr)
		if r.Outcome != c.outcome || r.Text != c.text || r.OutEvents != c.events || r.OSLSource != c.source || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl ||
			!strings.Contains(r.Error, c.words) {
			t.Errorf("%s: %s %q, text %q, %d events, osl %v from %q, isl %v", c.name, r.Outcome, r.Error, r.Text, r.OutEvents, r.OSL, r.OSLSource, r.ISL)
		}
		if r.Outcome == bench.OK && r.Finish != bench.FinishLength {
			t.Errorf("%s: finish %s", c.name, r.Finish)
		}
		if strings.HasSuffix(c.name, "n2-stream") && (!r.Has(bench.NGreater1) || r.Choices != 2 || fmt.Sprint(r.EventChoice) != "[0 1 0 1 0 1]") {
			t.Errorf("%s: %d choices, events of %v", c.name, r.Choices, r.EventChoice)
		}
		if (len(r.EventTokens) > 0) != (strings.Contains(c.name, "continuous") || strings.Contains(c.name, "ids") || strings.Contains(c.name, "timings")) {
			t.Errorf("%s: tokens per event %v", c.name, r.EventTokens)
		}
	}
}
