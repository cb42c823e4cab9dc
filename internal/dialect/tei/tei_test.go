package tei

import (
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

func fold(ep dialect.Endpoint, inputs, status int, body string) bench.Record {
	head := http.Header{"Content-Type": {"application/json"}, "X-Compute-Tokens": {"12"}, "X-Total-Time": {"7"}, "X-Queue-Time": {"1"}, "X-Inference-Time": {"5"}}
	tr := &wire.Transcript{Status: status, Header: head, Sent: opt.Some(time.Duration(0)), Ended: opt.Some(8 * time.Millisecond), Raw: []byte(body),
		Bytes: len(body), Marks: []wire.Mark{{End: len(body), At: 8 * time.Millisecond}}}
	return dialect.NewFold(ep, &bench.Request{Inputs: make([]string, inputs), Query: "q"}, &dialect.Options{}).End(tr)
}

// The golden answers are bare lists; tokens and times stand in the head.
func TestGolden(t *testing.T) {
	for file, ep := range map[string]dialect.Endpoint{"tei-embed.json": EmbedEndpoint(), "tei-rerank.json": RerankEndpoint()} {
		body, err := os.ReadFile(filepath.Join("../../../testdata/wire", file))
		if err != nil {
			t.Fatal(err)
		}
		r := fold(ep, 2, 200, string(body))
		if r.Outcome != bench.OK || r.ISL.Or(0) != 12 || r.ISLSource != bench.FromCount || r.Inputs != 2 || r.First.Defined() || r.OSL.Defined() {
			t.Errorf("%s: %+v", file, r)
		}
		if r.Server["server_total_ms"] != 7 || r.Server["server_queue_ms"] != 1 || r.Server["server_inference_ms"] != 5 || len(r.Server) != 3 {
			t.Errorf("%s: times %v", file, r.Server)
		}
		if want := map[bench.Task]int{bench.Embed: 4}[ep.Task]; r.Dimensions != want {
			t.Errorf("%s: %d dimensions", file, r.Dimensions)
		}
		if r := fold(ep, 3, 200, string(body)); r.Outcome != bench.Malformed || !strings.Contains(r.Error, "came for 3 inputs") {
			t.Errorf("%s: an input too many gives %s: %s", file, r.Outcome, r.Error)
		}
	}
}

func TestOdd(t *testing.T) {
	for _, c := range []struct {
		ep     dialect.Endpoint
		status int
		body   string
		want   bench.Outcome
		words  string
	}{
		{EmbedEndpoint(), 429, `{"error":"Model is overloaded","error_type":"Overloaded"}`, bench.Throttled, "Model is overloaded (Overloaded)"},
		{EmbedEndpoint(), 424, `{"error":"inference failed","error_type":"Backend"}`, bench.Rejected, "inference failed (Backend)"},
		{EmbedEndpoint(), 200, `{"error":"inference failed"}`, bench.StreamError, "inference failed"},
		{EmbedEndpoint(), 200, `{"vectors":[]}`, bench.Malformed, "body is no list of vectors"},
		{EmbedEndpoint(), 200, `[[0.5,null]]`, bench.Malformed, "vector 0 has no number at place 1"},
		{EmbedEndpoint(), 200, `[[0.5],[0.5,1]]`, bench.Malformed, "vector 1 has 2 numbers, the others 1"},
		{RerankEndpoint(), 200, `[{"score":1}]`, bench.Malformed, `no field "index" in result 0`},
		{RerankEndpoint(), 200, `[{"index":0,"relevance_score":1}]`, bench.Malformed, `no number "score" in result 0`},
		{RerankEndpoint(), 200, `{}`, bench.Malformed, "body is no ranking"},
	} {
		if r := fold(c.ep, 1, c.status, c.body); r.Outcome != c.want || !strings.Contains(r.Error, c.words) {
			t.Errorf("%s gives %s: %s; want %s: %s", c.body, r.Outcome, r.Error, c.want, c.words)
		}
	}
}

func TestEncode(t *testing.T) {
	r := &bench.Request{Inputs: []string{"a b", "c"}, Query: "which?"}
	for want, ep := range map[string]dialect.Endpoint{`/embed {"inputs":["a b","c"]}`: EmbedEndpoint(), `/rerank {"query":"which?","texts":["a b","c"]}`: RerankEndpoint()} {
		call, err := ep.Codec.Encode(ep, r, &dialect.Options{Model: "m"})
		if got := call.Path + " " + string(call.Body); err != nil || got != want {
			t.Errorf("%s (%v), want %s", got, err, want)
		}
	}
}
