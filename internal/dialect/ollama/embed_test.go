package ollama

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

func TestEmbed(t *testing.T) {
	ep, req := EmbedEndpoint(), &bench.Request{Inputs: []string{"a b", "c"}}
	call, err := ep.Codec.Encode(ep, req, &dialect.Options{Model: "m"})
	if got := call.Path + " " + string(call.Body); err != nil || got != `/api/embed {"model":"m","input":["a b","c"]}` {
		t.Errorf("%s (%v)", got, err)
	}
	for _, c := range []struct {
		status int
		body   string
		want   bench.Outcome
		words  string
	}{
		{200, `{"model":"m","embeddings":[[0.5,1],[0,-1]],"total_duration":3000000,"load_duration":1000000,"prompt_eval_count":6}`, bench.OK, ""},
		{200, `{"model":"m","embeddings":[[0.5,1]]}`, bench.Malformed, "1 vectors came for 2 inputs"},
		{200, `{"model":"m"}`, bench.Malformed, `no field "embeddings"`},
		{200, `{"error":"it broke"}`, bench.StreamError, "it broke"},
		{501, `{"error":"this model does not support embeddings"}`, bench.ServerError, "does not support embeddings"}, // of 0.17.4
	} {
		tr := &wire.Transcript{Status: c.status, Header: http.Header{"Content-Type": {"application/json"}}, Sent: opt.Some(time.Duration(0)),
			Ended: opt.Some(time.Millisecond), Raw: []byte(c.body), Bytes: len(c.body), Marks: []wire.Mark{{End: len(c.body), At: time.Millisecond}}}
		r := dialect.NewFold(ep, req, &dialect.Options{}).End(tr)
		if r.Outcome != c.want || !strings.Contains(r.Error, c.words) {
			t.Errorf("%s gives %s: %s; want %s: %s", c.body, r.Outcome, r.Error, c.want, c.words)
		}
		if c.want == bench.OK && (r.ISL.Or(0) != 6 || r.ISLSource != bench.FromCount || r.Dimensions != 2 || r.Server["server_total_ms"] != 3 || r.Server["server_load_ms"] != 1) {
			t.Errorf("%+v", r)
		}
	}
}

func TestEmbedConforms(t *testing.T) {
	dialecttest.ConformLists(t, dialecttest.Lists{Endpoint: EmbedEndpoint(), Value: "[0.5,-1]", Ordered: true, Prompt: bench.FromCount,
		Refusal: func(words string) string { return `{"error":` + dialecttest.JSON(words) + `}` },
		Write: func(inputs []int, value string, tokens int) (http.Header, string) {
			vectors := strings.Join(slices.Repeat([]string{value}, len(inputs)), ",")
			return nil, fmt.Sprintf(`{"model":"m","embeddings":[%s],"total_duration":3000000,"prompt_eval_count":%d}`, vectors, tokens)
		}})
}
