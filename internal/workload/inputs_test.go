package workload

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
)

// The same seed gives the same texts, in every version.
func TestBatchesGolden(t *testing.T) {
	for _, c := range []struct {
		task  bench.Task
		query int
		want  uint64
	}{{bench.Embed, 0, 0xe8d34088dc0440ae}, {bench.Rerank, 16, 0x264b9546057e3e73}} {
		h := fnv.New64a()
		m := text
		m.Query = c.query
		for _, q := range take(t, Random{}, Config{Spec: bench.Workload{ISL: "lognormal:100,50", Batch: 3}, Seed: 7, Maker: m, Task: opt.Some(c.task)}, 100) {
			fmt.Fprintf(h, "%q %q %d %d\n", q.Query, q.Inputs, q.ISL, q.OSL)
		}
		if h.Sum64() != c.want {
			t.Errorf("%s: hash %#x, want %#x", c.task, h.Sum64(), c.want)
		}
	}
}

// Each text has the asked length and begins as no other does; a ranking has one query of its own length.
func TestBatches(t *testing.T) {
	c := Config{Spec: bench.Workload{ISL: "uniform:30,50", OSL: "", Batch: 4}, Seed: 3, Maker: text, Task: opt.Some(bench.Embed)}
	warm := c
	warm.Phase = bench.Warmup
	first := map[string]bool{}
	for _, q := range append(take(t, Random{}, c, 150), take(t, Random{}, warm, 50)...) {
		words := 0
		for _, in := range q.Inputs {
			w := strings.Fields(in)
			if words += len(w); first[w[0]] {
				t.Fatal("two texts begin alike")
			}
			first[w[0]] = true
		}
		if len(q.Inputs) != 4 || q.ISL != words+4*text.Overhead || q.OSL != 0 || q.Prompt != "" || q.Query != "" {
			t.Fatalf("%d texts of %d words for %d tokens: %+v", len(q.Inputs), words, q.ISL, q)
		}
	}
	m := text
	m.Query = 16
	c.Maker, c.Task, c.Spec.Batch = m, opt.Some(bench.Rerank), 0
	queries := map[string]bool{}
	for _, q := range take(t, Random{}, c, 50) {
		if len(strings.Fields(q.Query)) != 16 || len(q.Inputs) != 1 {
			t.Fatalf("%+v", q)
		}
		queries[q.Query] = true
	}
	if len(queries) != 50 {
		t.Errorf("%d queries in 50 requests", len(queries))
	}
}

func TestInputRows(t *testing.T) {
	for _, c := range []struct {
		row  string
		task opt.Of[bench.Task]
		want string // the request, or the words of the fault
	}{
		{`{"input":"a"}`, opt.Some(bench.Embed), `[a] ""`},
		{`{"input":["a","b"]}`, opt.Some(bench.Embed), `[a b] ""`},
		{`{"inputs":["a","b"],"extra_body":{"dimensions":8}}`, opt.Some(bench.Embed), `[a b] ""`},
		{`{"query":"q","documents":["a","b"]}`, opt.Some(bench.Rerank), `[a b] "q"`},
		{`{"query":"q","documents":["a","b"]}`, opt.Of[bench.Task]{}, `[a b] "q"`},
		{`{"input":"a"}`, opt.Of[bench.Task]{}, `[a] ""`},
		{`{"input":"a"}`, opt.Some(bench.Generate), "cannot be sent to an endpoint that generates"},
		{`{"input":"a"}`, opt.Some(bench.Rerank), "needs a query and its documents"},
		{`{"prompt":"a"}`, opt.Some(bench.Embed), "needs exactly one of input, inputs to embed"},
		{`{"query":"q","documents":["a"]}`, opt.Some(bench.Embed), "needs exactly one of input, inputs to embed"},
		{`{"query":"q"}`, opt.Some(bench.Rerank), "needs a query and its documents"},
		{`{"documents":["a"]}`, opt.Of[bench.Task]{}, "needs a query and its documents"},
		{`{"query":"","documents":["a"]}`, opt.Some(bench.Rerank), "needs a query and its documents"},
		{`{"input":"a","inputs":["b"]}`, opt.Some(bench.Embed), "needs exactly one of input, inputs to embed"},
		{`{"input":"a","prompt":"b"}`, opt.Of[bench.Task]{}, "needs exactly one of prompt"},
		{`{"input":[]}`, opt.Some(bench.Embed), "the list of texts is empty"},
		{`{"input":["a",""]}`, opt.Some(bench.Embed), "text 1 is empty"},
		{`{"input":[1]}`, opt.Some(bench.Embed), "input is a list, not a string or a list of strings"},
		{`{"input":"a","output_tokens":4}`, opt.Some(bench.Embed), "output_tokens has no meaning"},
		{`{"input":"a","extra_body":[]}`, opt.Some(bench.Embed), "extra_body is a list, not a JSON object"},
	} {
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		if err := os.WriteFile(path, []byte(c.row+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Spec: bench.Workload{Path: path, OSL: "8"}, Task: c.task}
		got := ""
		if seq, err := (JSONL{}).Open(cfg); err != nil {
			if got = err.Error(); fault.HintOf(err) == "" || !strings.Contains(got, "rows.jsonl:1") {
				t.Errorf("%s: %v without a line or a hint", c.row, err)
			}
		} else {
			for q := range seq {
				got = fmt.Sprintf("%v %q", q.Inputs, q.Query)
				break
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s for %v gives %s, want %s", c.row, c.task, got, c.want)
		}
	}
}

// Lines are texts to embed; to rank, they lack a query.
func TestInputLines(t *testing.T) {
	c := Config{Spec: bench.Workload{Prompt: "a b"}, Task: opt.Some(bench.Embed)}
	if q := take(t, Lines{}, c, 1)[0]; len(q.Inputs) != 1 || q.Inputs[0] != "a b" || q.Prompt != "" {
		t.Errorf("%+v", q)
	}
	c.Task = opt.Some(bench.Rerank)
	if _, err := (Lines{}).Open(c); fault.CodeOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
	c = Config{Spec: bench.Workload{Prompt: "a", Batch: 2}, Task: opt.Some(bench.Embed)}
	if _, err := (Lines{}).Open(c); fault.CodeOf(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}
