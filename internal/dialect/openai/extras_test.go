package openai

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
)

// What an engine cannot be asked for is not sent to it.
func TestExtras(t *testing.T) {
	priority := -3
	all := dialect.Options{Model: "demo", Stream: true, Usage: true, EventUsage: true, TokenIDs: true, Priority: &priority}
	full := dialect.Abilities{Usage: true, IDsOut: true, EventUsage: true, Priority: true}
	for _, c := range []struct {
		name string
		ep   dialect.Endpoint
		o    dialect.Options
		want string
	}{
		{"all", CompletionsEndpoint(full), all, `"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"return_token_ids":true,"priority":-3`},
		{"none asked", CompletionsEndpoint(full), dialect.Options{Model: "demo", Stream: true, Usage: true}, `"stream":true,"stream_options":{"include_usage":true}`},
		{"none taken", CompletionsEndpoint(dialect.Abilities{Usage: true}), all, `"stream":true,"stream_options":{"include_usage":true}`},
		{"no stream", CompletionsEndpoint(full), dialect.Options{Model: "demo", Usage: true, EventUsage: true, TokenIDs: true}, `"stream":false,"return_token_ids":true`},
		{"Dynamo", Dynamo(CompletionsEndpoint(dialect.Abilities{})), dialect.Options{Model: "demo", Extra: json.RawMessage(`{"a":1}`)}, `"stream":false,"nvext":{"extra_fields":["timing"]},"a":1`},
	} {
		call, err := c.ep.Codec.Encode(c.ep, &bench.Request{Prompt: "a"}, &c.o)
		if want := `{"model":"demo","prompt":"a",` + c.want + `}`; err != nil || string(call.Body) != want {
			t.Errorf("%s: %v\n%s\n%s", c.name, err, call.Body, want)
		}
	}
}

// What a server says of its own times is kept apart.
func TestServerTimes(t *testing.T) {
	for file, want := range map[string]map[string]float64{
		"dynamo-chat.sse": {"server_ttft_ms": 45.2, "server_itl_ms": 12.1},
		"vllm-chat.sse":   {"server_ttft_ms": 31.4, "server_itl_ms": 10, "server_queue_ms": 0.4, "server_decode_ms": 60.2},
	} {
		body, err := os.ReadFile(filepath.Join(wireDir, file))
		if err != nil {
			t.Fatal(err)
		}
		if r := fold("/v1/chat/completions", true, 0, 0, nil, timed(body)); r.Outcome != bench.OK || !reflect.DeepEqual(r.Server, want) {
			t.Errorf("%s: %s, times %v, want %v", file, r.Outcome, r.Server, want)
		}
	}
	for _, strange := range []string{`"nvext":"a"`, `"nvext":{"timing":[1]}`, `"metrics":[1]`, `"metrics":{"queue_time_ms":"a"}`, `"nvext":null,"metrics":null`} {
		r := fold("/v1/completions", true, 0, 0, nil, chunks(`{"text":"a","finish_reason":"stop"}|,`+strange))
		if r.Outcome != bench.OK || len(r.Server) > 0 {
			t.Errorf("%s: %s (%s), times %v", strange, r.Outcome, r.Error, r.Server)
		}
	}
}
