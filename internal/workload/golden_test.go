package workload

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prony-bench/prony/internal/bench"
)

// The same file and seed give the same bytes, in every version.
func TestGoldenFiles(t *testing.T) {
	book := file(t, strings.Repeat("It was a bright cold day in April, and the clocks were striking thirteen.\n", 40))
	for _, c := range []struct {
		d    Dataset
		body string
		w    bench.Workload
		want uint64
	}{
		{Lines{}, "one\ntwo\n", bench.Workload{OSL: "uniform:5,50"}, 0x24e34b093e8f1655},
		{JSONL{}, `{"prompt":"a"}` + "\n" + `{"messages":[{"role":"user","content":"b"}],"output_tokens":3}`, bench.Workload{OSL: "uniform:5,50"}, 0x1f74c809bd117782},
		{ShareGPT{}, `[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b c d e f"},{"from":"human","value":"g"},{"from":"gpt","value":"h"}]}]`, bench.Workload{MultiTurn: true}, 0x5aed944b47ae99cd},
		{Azure(), "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n", bench.Workload{}, 0x9f18918deb3b7a41},
		{BurstGPT(), "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n", bench.Workload{}, 0xdce32bbebb349d4e},
		{Bailian(), `{"chat_id":1,"timestamp":1,"input_length":40,"output_length":5,"type":"text","turn":1,"hash_ids":[4,5,6]}`, bench.Workload{}, 0x60f70922f94c5771},
		{LongContext{}, "", bench.Workload{ISL: "uniform:10,2000", OSL: "5"}, 0x7206f4d01e9e67f2},
	} {
		c.w.Path = book
		if c.body != "" {
			c.w.Path = file(t, c.body)
		}
		h := fnv.New64a()
		for _, q := range take(t, c.d, Config{Spec: c.w, Seed: 7, Maker: text}, 20) {
			fmt.Fprintf(h, "%q %v %d %d %q\n", q.Prompt, q.Messages, q.ISL, q.OSL, q.Class)
		}
		if h.Sum64() != c.want {
			t.Errorf("%s: hash %#x, want %#x", c.d.Name(), h.Sum64(), c.want)
		}
	}
}

// Stretches of a text have the asked length, with a tokenizer exactly, and never begin alike.
func TestLongContext(t *testing.T) {
	c := Config{Spec: bench.Workload{ISL: "uniform:20,5000", OSL: "5", Path: file(t, strings.Repeat("Es war ein klarer, kalter Tag im April, und die Uhren schlugen gerade dreizehn, größer als sonst.\n", 30))}, Seed: 3}
	for _, count := range []func(string) int{nil, func(s string) int { return len(strings.Fields(s)) }} {
		c.Count = count
		first := map[string]bool{}
		for _, q := range take(t, LongContext{}, c, 200) {
			off := c.estimate(q.Prompt) - q.ISL
			if off < -5 || off > 1 || !utf8.ValidString(q.Prompt) {
				t.Fatalf("%d tokens asked, off by %d", q.ISL, off)
			}
			head := strings.Fields(q.Prompt)[0]
			if first[head] {
				t.Fatal("two begin alike")
			}
			first[head] = true
		}
	}
}
