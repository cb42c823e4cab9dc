// Package casetest reads the files of testdata/cases and holds a record against what a case expects. It is for tests.
package casetest

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// File is a file of testdata/cases, of kind http.
type File struct {
	Name, Kind, Endpoint string
	Request              struct {
		Stream                bool
		MaxTokens             int `json:"max_tokens"`
		RequestedPromptTokens int `json:"requested_prompt_tokens"`
	}
	Answer
	Then   []Answer
	Expect map[string]any
}

// Answer is an answer to a later request.
type Answer struct {
	Status  int
	Headers map[string]string
	Events  []Event
	End     string
}

// Event is one write of the server.
type Event struct {
	After float64 `json:"after_ms"`
	Data  []byte  `json:"data_b64"`
}

// Read reads the case files of a directory that are of kind http and speak the OpenAI API.
func Read(t testing.TB, dir string) (out []File) {
	t.Helper()
	for _, c := range readAll(t, dir) {
		if strings.HasPrefix(c.Endpoint, "/v1/c") {
			out = append(out, c)
		}
	}
	if len(out) < 25 {
		t.Fatalf("only %d cases in %s", len(out), dir)
	}
	return out
}

// One reads the case file of kind http with a name.
func One(t testing.TB, dir, name string) File {
	t.Helper()
	for _, c := range readAll(t, dir) {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no case %s in %s", name, dir)
	return File{}
}

// Transcript is what a client that reads each event at its time hands over. t = 0 is 1 s after the epoch.
func (a *Answer) Transcript() *wire.Transcript {
	const zero = time.Second
	tr := &wire.Transcript{Framed: true, Sent: opt.Some(zero), HeadAt: opt.Some(zero), Stamp: wire.StampSocket}
	put := func(b []byte, at time.Duration) {
		tr.Raw = append(tr.Raw, b...)
		tr.Bytes = len(tr.Raw)
		tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: at})
	}
	head := fmt.Sprintf("HTTP/1.1 %d %s\r\nTransfer-Encoding: chunked\r\n", a.Status, http.StatusText(a.Status))
	for k, v := range a.Headers {
		head += k + ": " + v + "\r\n"
	}
	put([]byte(head+"\r\n"), zero)
	at := zero
	for i, e := range a.Events {
		at += time.Duration(e.After * 1e6)
		b := fmt.Appendf(nil, "%x\r\n%s\r\n", len(e.Data), e.Data)
		if i == len(a.Events)-1 && a.End == "clean" {
			b = append(b, "0\r\n\r\n"...)
		}
		put(b, at)
	}
	tr.Ended = opt.Some(at)
	switch a.End {
	case "cut":
		tr.Fail, tr.Cause = wire.FailReset, wire.ErrCut.Error()
	case "hang":
		tr.Fail, tr.Cause = wire.FailTimeout, "no complete response within 1s"
		tr.Ended = opt.Some(at + time.Second)
	}
	return tr
}

func readAll(t testing.TB, dir string) (out []File) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "c*.json"))
	if err != nil || len(files) < 40 {
		t.Fatal("case files are missing in", dir, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c File
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(name, err)
		}
		if c.Kind == "http" {
			out = append(out, c)
		}
	}
	return out
}

func millis(o opt.Of[time.Duration], from time.Duration) any {
	if v, ok := o.Get(); ok {
		return float64(v-from) / 1e6
	}
	return nil
}

// words of the case files for what a record calls otherwise
var classes = map[bench.Outcome]string{bench.Throttled: "rate_limited", bench.Rejected: "http_4xx", bench.ServerError: "http_5xx",
	bench.StreamError: "stream_error", bench.TruncatedStream: "truncated_stream", bench.Reset: "connection", bench.Timeout: "timeout"}

// Compare holds a record against what a case expects. All moments are relative to the sending of the request.
func Compare(t testing.TB, name string, expect map[string]any, r bench.Record) {
	t.Helper()
	zero := r.Sent.Or(0)
	outcome := "ok"
	switch {
	case r.Outcome.Excluded():
		outcome = "excluded"
	case r.Outcome.Failed():
		outcome = "failed"
	}
	if r.Outcome == bench.OK && r.Has(bench.AllAtOnce) {
		outcome = "ok"
	}
	ok := outcome == "ok"
	var gaps []any
	for i := 1; i < len(r.Events); i++ {
		gaps = append(gaps, float64(r.Events[i]-r.Events[i-1])/1e6)
	}
	var tpot any
	if osl, has := r.OSL.Get(); has && osl > 1 && ok && r.First.Defined() {
		tpot = float64(r.Last.Or(0)-r.First.Or(0)) / 1e6 / float64(osl-1)
	}
	optional := func(o opt.Of[int]) any {
		if v, ok := o.Get(); ok {
			return float64(v)
		}
		return nil
	}
	osl := optional(r.OSL)
	if osl == nil {
		osl = 0.0
	}
	source := map[bench.Source]string{bench.FromUsage: "server_usage", bench.FromCount: "server_native", bench.FromIDs: "server_native"}[r.OSLSource]
	e2e := millis(r.Last, zero)
	got := map[string]any{
		"outcome": outcome, "error_class": classes[r.Outcome], "http_status": float64(r.Status), "retry_after_s": r.RetryAfter,
		"ttft_ms": millis(r.First, zero), "first_answer_ms": millis(r.FirstAnswer, zero), "e2e_ms": e2e, "stream_end_ms": millis(r.End, zero),
		"output_tokens": osl, "token_source": source, "prompt_tokens": optional(r.ISL), "chunk_gaps_ms": gaps, "tpot_ms": tpot,
		"text": r.Text, "reasoning_text": r.Thinking, "reasoning_tokens": optional(r.Reasoning), "cached_prompt_tokens": optional(r.Cached),
		"finish_reason": string(r.Finish), "partial_output_events": float64(r.OutEvents), "counts_as_success": ok,
		"server_prefill_ms": r.Server["server_prefill_ms"], "server_decode_ms": r.Server["server_decode_ms"],
		"server_load_ms":          r.Server["server_load_ms"],
		"requested_output_tokens": float64(r.OSLAsked), "requested_prompt_tokens": float64(r.ISLAsked),
	}
	for key, want := range expect {
		switch key {
		case "flags":
			for _, f := range want.([]any) {
				flag := f.(string)
				if flag == "empty_output" {
					if r.Outcome != bench.Empty {
						t.Errorf("%s: outcome %s, want empty", name, r.Outcome)
					}
					continue
				}
				if !r.Has(bench.Flag(flag)) {
					t.Errorf("%s: flag %s is not raised (%v)", name, flag, r.Flags)
				}
			}
			continue
		case "error_text_contains":
			if !strings.Contains(r.Error, want.(string)) {
				t.Errorf("%s: error %q", name, r.Error)
			}
			continue
		case "error_code":
			if !strings.Contains(r.Error, fmt.Sprint(want)) {
				t.Errorf("%s: error %q lacks the code", name, r.Error)
			}
			continue
		case "token_source_not":
			if source == want {
				t.Errorf("%s: token source %s", name, source)
			}
			continue
		case "mode", "alt", "excluded_from", "accept", "accept_instead", "if_fallback", "request_header_check", "requests_seen_by_server", "cached_share",
			"prompt_tokens_deviation", "request_tok_s", "server_decode_tok_s", "server_prefill_tok_s":
			continue // looked at elsewhere, or follows from the others
		}
		have, known := got[key]
		if !known {
			t.Errorf("%s: no check for %q", name, key)
			continue
		}
		if want == nil && (key == "e2e_ms" || key == "ttft_ms") && !ok {
			continue // no sample: a failed or empty request gives none
		}
		if w, isNum := want.(float64); isNum {
			if h, ok := have.(float64); !ok || math.Abs(h-w) > 1e-9*math.Max(1, w) {
				t.Errorf("%s: %s is %v, want %v", name, key, have, want)
			}
			continue
		}
		if g, ok := have.([]any); ok && len(g) == 0 && len(want.([]any)) == 0 {
			continue
		}
		if !reflect.DeepEqual(have, want) {
			t.Errorf("%s: %s is %v, want %v", name, key, have, want)
		}
	}
}
