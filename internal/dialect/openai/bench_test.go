package openai

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// benchEvents is the length of a benchmark's streams, that of a common answer.
const benchEvents = 256

// streams are what the engines send, real where it was recorded.
var streams = []struct{ name, path, file string }{
	{"vllm-chat", "/v1/chat/completions", "recorded/vllm-chat-stream.response.http"},
	{"vllm-chat-usage", "/v1/chat/completions", "recorded/vllm-chat-stream-continuous-usage.response.http"},
	{"vllm-chat-ids", "/v1/chat/completions", "vllm-chat.sse"},
	{"vllm-chat-n2", "/v1/chat/completions", "recorded/vllm-chat-n2-stream.response.http"},
	{"vllm-reasoning", "/v1/chat/completions", "vllm-chat-reasoning.sse"},
	{"vllm-completions", "/v1/completions", "recorded/vllm-completions-stream.response.http"},
	{"vllm-completions-ids", "/v1/completions", "recorded/vllm-completions-token-ids.response.http"},
	{"sglang-chat", "/v1/chat/completions", "sglang-chat.sse"},
	{"llamacpp-chat", "/v1/chat/completions", "recorded/llamacpp-chat-stream.response.http"},
	{"llamacpp-chat-timings", "/v1/chat/completions", "recorded/llamacpp-chat-stream-timings.response.http"},
	{"llamacpp-completions", "/v1/completions", "recorded/llamacpp-v1-completions-stream.response.http"},
	{"llamacpp-utf8", "/v1/completions", "recorded/llamacpp-v1-completions-utf8-stream.response.http"},
	{"ollama-chat", "/v1/chat/completions", "recorded/ollama-v1-chat-stream.response.http"},
	{"ollama-completions", "/v1/completions", "recorded/ollama-v1-completions-stream.response.http"},
	{"trtllm-chat", "/v1/chat/completions", "trtllm-chat.sse"},
	{"trtllm-completions-ids", "/v1/completions", "trtllm-completions-ids.sse"},
	{"openai-chat", "/v1/chat/completions", "openai-chat.sse"},
	{"openai-completions", "/v1/completions", "openai-completions.sse"},
	{"openai-tools", "/v1/chat/completions", "openai-chat-tools.sse"},
	{"dynamo-chat", "/v1/chat/completions", "dynamo-chat.sse"},
	{"lmdeploy-chat", "/v1/chat/completions", "lmdeploy-chat.sse"},
}

// sseEvents returns the events of a stream, each with its blank line, and without a head.
func sseEvents(t testing.TB, file string) (out [][]byte) {
	b, err := os.ReadFile(filepath.Join(wireDir, file))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(file, ".http") {
		_, b, _ = bytes.Cut(b, []byte("\r\n\r\n"))
	}
	for _, e := range bytes.SplitAfter(b, []byte("\n\n")) {
		if bytes.HasPrefix(e, []byte("data: ")) {
			out = append(out, e)
		}
	}
	return out
}

// long makes a stream of n events out of a short one: its first event, those between in turn, its last three.
func long(events [][]byte, n int) (out [][]byte) {
	end := len(events) - 3
	out = append(out, events[0])
	for i := 0; len(out) < n-3; i++ {
		out = append(out, events[1+i%(end-1)])
	}
	return append(out, events[end:]...)
}

// read builds a transcript in which so many events come in a read, a millisecond apart.
func read(events [][]byte, each int, chunked bool) *wire.Transcript {
	tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Sent: opt.Some(time.Duration(0)), Stamp: wire.StampSocket}
	if chunked {
		tr.Framed = true
		tr.Raw = []byte("HTTP/1.1 200 OK\r\ndate: Sun, 29 Nov 2026 15:10:16 GMT\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")
	}
	for i, e := range events {
		if chunked {
			tr.Raw = fmt.Appendf(tr.Raw, "%x\r\n%s\r\n", len(e), e)
		} else {
			tr.Raw = append(tr.Raw, e...)
		}
		if i%each == each-1 || i == len(events)-1 {
			tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: time.Duration(i) * time.Millisecond})
		}
	}
	if chunked {
		tr.Raw = append(tr.Raw, "0\r\n\r\n"...)
		tr.Marks[len(tr.Marks)-1].End = len(tr.Raw)
	}
	tr.Bytes, tr.Ended = len(tr.Raw), opt.Some(time.Second)
	return tr
}

func benchFold(b *testing.B, ep dialect.Endpoint, o dialect.Options, tr *wire.Transcript) {
	req := &bench.Request{OSL: benchEvents, Phase: bench.Measure}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if r := dialect.NewFold(ep, req, &o).End(tr); r.Outcome != bench.OK {
			b.Fatal(r.Outcome, r.Error)
		}
	}
	runtime.ReadMemStats(&after)
	events := float64(b.N) * benchEvents
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events, "ns/event")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/events, "allocs/event")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/events, "B/event")
	b.ReportMetric(0, "ns/op")
}

// What a whole response costs to fold, by engine, as an event of it.
func BenchmarkFold(b *testing.B) {
	for _, s := range streams {
		events := long(sseEvents(b, s.file), benchEvents)
		b.Run(s.name, func(b *testing.B) {
			benchFold(b, endpoint(engine("openai"), s.path), dialect.Options{Stream: true}, read(events, 1, false))
		})
	}
}

// A stream of one form, as a floor.
func BenchmarkFoldChunk(b *testing.B) {
	body := []byte(strings.Repeat("data: {\"id\":\"chatcmpl-7f3a9c1e5b2d4860\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"llama-3-8b\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n", 1000))
	tr := timed(body)
	d := engine("openai")
	b.ReportAllocs()
	for b.Loop() {
		dialect.NewFold(d.Endpoints()[0], &bench.Request{}, &dialect.Options{Stream: true, KeepText: true}).End(tr)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/event")
}

// What one event costs to decode: of the form of the one before, of another form, and strictly.
func BenchmarkDecode(b *testing.B) {
	var data [][]byte
	for _, e := range sseEvents(b, streams[0].file)[1:6] {
		data = append(data, bytes.TrimSpace(e[len("data: "):]))
	}
	d := shared.Decoder(engine("openai").Endpoints()[0]).(*decoder)
	var delta dialect.Delta
	quick := func(e []byte) {
		delta.Outputs = delta.Outputs[:0]
		if !d.Quick(e, &delta) {
			b.Fatal("not quick")
		}
	}
	for _, way := range []struct {
		name string
		read func([]byte)
	}{
		{"same-form", quick},
		{"other-form", func(e []byte) { d.form.forget(); quick(e) }},
		{"strict", func(e []byte) { delta.Outputs = delta.Outputs[:0]; d.Event(wire.Event{Data: e}, &delta) }},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				way.read(data[i%len(data)])
			}
		})
	}
}

// One stream in the ways that it can come: so many events a read, with and without HTTP's chunks, and with its text kept.
func BenchmarkFoldWays(b *testing.B) {
	events := long(sseEvents(b, streams[0].file), benchEvents)
	quick, strict := endpoint(engine("openai"), streams[0].path), slowly(endpoint(engine("openai"), streams[0].path))
	for _, w := range []struct {
		name    string
		ep      dialect.Endpoint
		each    int
		chunked bool
		text    bool
	}{
		{"sse-1", quick, 1, false, false}, {"sse-4", quick, 4, false, false}, {"sse-1-text", quick, 1, false, true}, {"sse-1-strict", strict, 1, false, false},
		{"http-1", quick, 1, true, false}, {"http-4", quick, 4, true, false}, {"http-1-text", quick, 1, true, true},
	} {
		b.Run(w.name, func(b *testing.B) {
			benchFold(b, w.ep, dialect.Options{Stream: true, KeepText: w.text}, read(events, w.each, w.chunked))
		})
	}
}

// An answer of 32 vectors of 1,024 numbers.
func BenchmarkEmbeddings(b *testing.B) {
	vector := "[" + strings.Repeat("-0.0123456789,", 1023) + "0.5]"
	inputs := make([]int, 32)
	for i := range inputs {
		inputs[i] = i
	}
	body := []byte(`{"data":` + results(inputs, `{"index":%d,"embedding":%s}`, vector) + `,"usage":{"prompt_tokens":9}}`)
	b.SetBytes(int64(len(body)))
	var d dialect.Delta
	for b.Loop() {
		d.Results = d.Results[:0]
		if err := (embeddings{}).Body(body, &d); err != nil {
			b.Fatal(err)
		}
	}
}
