package dialecttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
)

// File is an entry of testdata/wire/manifest.json: a golden stream and what it must fold to.
type File struct {
	File, Protocol, Content, Reasoning string
	Prompt                             *int           `json:"prompt_tokens"`
	Output                             *int           `json:"output_tokens"`
	Thought                            *int           `json:"reasoning_tokens"`
	Cached                             *int           `json:"cached_tokens"`
	First                              *int           `json:"first_token_event"`
	FirstContent                       *int           `json:"first_content_event"`
	Finish                             *string        `json:"finish_reason"`
	From                               *string        `json:"tokens_from"`
	TokenIDs                           []int          `json:"token_ids"`
	PerEvent                           map[string]int `json:"tokens_per_event"`
	Tools                              []call         `json:"tool_calls"`
	Error                              *struct{ Message string }
}

// Golden folds the golden streams of some protocols, each by an endpoint that speaks it, and holds them against the manifest in the
// directory dir, in any reads. There must be n of them.
func Golden(t *testing.T, dir string, n int, protocols map[string]dialect.Endpoint) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []File
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, g := range all {
		ep, ok := protocols[g.Protocol]
		if !ok || g.First == nil { // a body that is no stream
			continue
		}
		seen++
		body, err := os.ReadFile(filepath.Join(dir, g.File))
		if err != nil {
			t.Fatal(err)
		}
		t.Run(g.File, func(t *testing.T) { g.check(t, ep, body) })
	}
	if seen != n {
		t.Errorf("%d golden streams of these protocols, want %d", seen, n)
	}
}

func (g *File) check(t *testing.T, ep dialect.Endpoint, body []byte) {
	p := Protocol{Endpoint: ep, Lines: strings.HasSuffix(g.File, ".ndjson")}
	tr := Transcript(p.contentType(), body)
	r := p.fold(true, tr)
	p.anySplit(t, true, tr, &r)
	if g.Error != nil {
		if r.Outcome != bench.StreamError || !strings.Contains(r.Error, g.Error.Message) {
			t.Errorf("outcome %s: %s", r.Outcome, r.Error)
		}
	} else if r.Outcome != bench.OK {
		t.Errorf("outcome %s: %s", r.Outcome, r.Error)
	}
	if r.Text != g.Content || r.Thinking != g.Reasoning {
		t.Errorf("text %q, reasoning %q", r.Text, r.Thinking)
	}
	at := func(event int) time.Duration { return time.Duration(event+1) * time.Millisecond }
	if r.First.Or(-1) != at(*g.First) {
		t.Errorf("first token at %v, want %v", r.First, at(*g.First))
	}
	if g.FirstContent != nil && len(g.TokenIDs) == 0 && r.FirstAnswer.Or(-1) != at(*g.FirstContent) {
		t.Errorf("first answer at %v, want %v", r.FirstAnswer, at(*g.FirstContent))
	}
	count := func(name string, got opt.Of[int], want *int) {
		if want != nil && got.Or(-1) != *want {
			t.Errorf("%s %v, want %d", name, got, *want)
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
	g.source(t, &r)
	if g.Error == nil && g.Finish != nil && r.Finish != dialect.NormalFinish(*g.Finish) {
		t.Errorf("finish %s", r.Finish)
	}
	g.perEvent(t, &r, at)
	if len(g.Tools) > 0 {
		var got []call
		if err := json.Unmarshal(r.ToolCalls, &got); err != nil || fmt.Sprint(got) != fmt.Sprint(g.Tools) {
			t.Errorf("tool calls %s", r.ToolCalls)
		}
	}
}

// source holds the source of the number of output tokens against the place that the manifest names.
func (g *File) source(t *testing.T, r *bench.Record) {
	want := bench.FromCount
	switch {
	case g.Error != nil:
		return
	case g.From == nil:
		want = bench.FromEstimate
	case len(g.TokenIDs) > 0:
		want = bench.FromIDs
		if r.OSL.Or(0) != len(g.TokenIDs) {
			t.Errorf("%v tokens of %d ids", r.OSL, len(g.TokenIDs))
		}
	case strings.Contains(*g.From, "usage") && len(g.PerEvent) == 0:
		want = bench.FromUsage
	}
	if r.OSLSource != want {
		t.Errorf("output tokens from %s, want %s", r.OSLSource, want)
	}
}

func (g *File) perEvent(t *testing.T, r *bench.Record, at func(int) time.Duration) {
	if g.PerEvent == nil {
		return
	}
	events := map[int]int{}
	for k, tokens := range g.PerEvent {
		n, err := strconv.Atoi(k)
		if err != nil {
			t.Fatal(err)
		}
		events[n] = tokens
	}
	var want []int
	var times []time.Duration
	for _, k := range slices.Sorted(maps.Keys(events)) {
		want, times = append(want, events[k]), append(times, at(k))
	}
	if fmt.Sprint(r.EventTokens) != fmt.Sprint(want) || fmt.Sprint(r.Events) != fmt.Sprint(times) {
		t.Errorf("tokens per event %v at %v, want %v at %v", r.EventTokens, r.Events, want, times)
	}
}
