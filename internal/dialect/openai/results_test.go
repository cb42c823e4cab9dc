package openai

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// foldResults folds an answer to a request with so many inputs.
func foldResults(ep dialect.Endpoint, inputs int, status int, body string) bench.Record {
	req := &bench.Request{Inputs: make([]string, inputs), Query: "q"}
	tr := &wire.Transcript{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Sent: opt.Some(time.Duration(0)),
		Ended: opt.Some(5 * time.Millisecond), Raw: []byte(body), Bytes: len(body), Marks: []wire.Mark{{End: len(body), At: 5 * time.Millisecond}}}
	return dialect.NewFold(ep, req, &dialect.Options{}).End(tr)
}

// The golden answers fold to what testdata/wire/README.md says of them.
func TestGoldenResults(t *testing.T) {
	embed, rank := EmbeddingsEndpoint(dialect.Abilities{}), RerankEndpoint()
	for _, g := range []struct {
		file                       string
		ep                         dialect.Endpoint
		inputs, tokens, dimensions int
		units                      float64
	}{
		{"openai-embeddings.json", embed, 2, 11, 4, 0},
		{"openai-embeddings-base64.json", embed, 1, 5, 4, 0},
		{"vllm-rerank.json", rank, 2, 44, 0, 0},
		{"llamacpp-rerank.json", rank, 2, 44, 0, 0},
		{"cohere-v2-rerank.json", rank, 2, -1, 0, 1},
	} {
		body, err := os.ReadFile(filepath.Join(wireDir, g.file))
		if err != nil {
			t.Fatal(err)
		}
		r := foldResults(g.ep, g.inputs, 200, string(body))
		if r.Outcome != bench.OK || r.Inputs != g.inputs || r.ISL.Or(-1) != g.tokens || r.Dimensions != g.dimensions || r.Server[unitsKey] != g.units {
			t.Errorf("%s: %+v", g.file, r)
		}
		if r.First.Defined() || r.OSL.Defined() || r.Last.Or(0) != 5*time.Millisecond || g.tokens >= 0 && r.ISLSource != bench.FromUsage {
			t.Errorf("%s: %+v", g.file, r)
		}
		if r := foldResults(g.ep, g.inputs+1, 200, string(body)); r.Outcome != bench.Malformed || !strings.Contains(r.Error, "came for") {
			t.Errorf("%s: an input too many gives %s: %s", g.file, r.Outcome, r.Error)
		}
	}
}

// What the protocol does not say is malformed, with the name of the field; an error keeps the server's words.
func TestOddResults(t *testing.T) {
	embed, rank := EmbeddingsEndpoint(dialect.Abilities{}), RerankEndpoint()
	for _, c := range []struct {
		ep     dialect.Endpoint
		status int
		body   string
		want   bench.Outcome
		words  string
	}{
		{embed, 200, `{"data":[{"embedding":[1,2],"new":1}],"usage":{"total_tokens":3},"more":{}}`, bench.OK, ""},
		{embed, 200, `{"object":"list"}`, bench.Malformed, `no field "data" in "{\"object\":\"list\"}"`},
		{embed, 200, `[[1,2]]`, bench.Malformed, "body is no list of embeddings"},
		{embed, 200, `{"data":[{"index":0}]}`, bench.Malformed, "vector 0 is no list of numbers"},
		{embed, 200, `{"data":[{"index":0,"embedding":[1,null]}]}`, bench.Malformed, "vector 0 has no number at place 1"},
		{embed, 200, `{"data":[{"index":0,"embedding":[[1],[2]]}]}`, bench.Malformed, "vector 0 has no number at place 0"},
		{embed, 200, `{"error":{"message":"out of memory","code":500}}`, bench.StreamError, "out of memory"},
		{embed, 404, `{"detail":"Not Found"}`, bench.Rejected, "Not Found"},
		{embed, 501, `{"error":{"code":501,"message":"This server does not support embeddings","type":"not_supported_error"}}`, bench.ServerError, "does not support embeddings"},
		{embed, 200, "data: {}\n\n", bench.Malformed, "an event stream came"},
		{rank, 200, `[{"score":0.5,"document":"a","index":0,"meta_info":{"prompt_tokens":3}}]`, bench.OK, ""},
		{rank, 200, `[{"score":0.5}]`, bench.Malformed, `no field "index" in result 0`},
		{rank, 200, `[{"index":0}]`, bench.Malformed, `no number "score" in result 0`},
		{rank, 200, `{"results":[{"relevance_score":1}]}`, bench.Malformed, `no field "index" in result 0`},
		{rank, 200, `{"results":[{"index":0,"relevance_score":null}]}`, bench.Malformed, `no number "relevance_score" in result 0`},
		{rank, 200, `{"results":[{"index":0,"relevance_score":1e999}]}`, bench.Malformed, "body is no ranking"},
		{rank, 200, `{"message":"invalid api token"}`, bench.StreamError, "invalid api token"},
		{rank, 200, `<html>`, bench.Malformed, "an HTML page"},
		{rank, 200, ``, bench.Malformed, "an empty body"},
	} {
		r := foldResults(c.ep, 1, c.status, c.body)
		if r.Outcome != c.want || !strings.Contains(r.Error, c.words) {
			t.Errorf("%s gives %s: %s; want %s: %s", c.body, r.Outcome, r.Error, c.want, c.words)
		}
	}
}

// vLLM does not register the path when its model cannot embed.
func TestUnsupportedEmbeddings(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(wireDir, "recorded/vllm-embeddings-unsupported.response.http"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n\n")
	if r := foldResults(EmbeddingsEndpoint(dialect.Abilities{}), 1, 404, body); r.Outcome != bench.Rejected || r.Error != "Not Found" {
		t.Errorf("%s: %q", r.Outcome, r.Error)
	}
}

func TestEncodeResults(t *testing.T) {
	o := &dialect.Options{Model: "m", Extra: json.RawMessage(`{"encoding_format":"base64","dimensions":64}`), Stream: true, ForceLength: true}
	r := &bench.Request{Inputs: []string{"a b", "c"}, Query: "which?", OSL: 9, Extra: json.RawMessage(`{"top_n":1}`)}
	for _, c := range []struct {
		ep   dialect.Endpoint
		want string
	}{
		{EmbeddingsEndpoint(dialect.Abilities{}), `/v1/embeddings {"model":"m","input":["a b","c"],"encoding_format":"base64","top_n":1,"dimensions":64}`},
		{RerankEndpoint(), `/v1/rerank {"model":"m","query":"which?","documents":["a b","c"],"top_n":1,"encoding_format":"base64","dimensions":64}`},
	} {
		call, err := c.ep.Codec.Encode(c.ep, r, o)
		if got := call.Path + " " + string(call.Body); err != nil || got != c.want || call.Until != nil {
			t.Errorf("%s (%v), want %s", got, err, c.want)
		}
		if _, err := c.ep.Codec.Encode(c.ep, &bench.Request{Prompt: "a"}, o); err == nil {
			t.Errorf("%s takes a prompt", c.ep.Name)
		}
	}
}
