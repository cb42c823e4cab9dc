package workload

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// What is exported is read back as the same requests at the same times.
func TestExportIsReadBack(t *testing.T) {
	for _, c := range []struct {
		d Dataset
		c Config
	}{
		{Random{}, Config{Spec: bench.Workload{Mix: "100,20:0.7;400,50:0.3"}, Maker: text}},
		{RandomIDs{}, Config{Spec: bench.Workload{ISL: "uniform:1,40", OSL: "9"}, Maker: ids}},
		{Random{}, Config{Spec: bench.Workload{ISL: "20", Batch: 3}, Maker: text, Task: opt.Some(bench.Embed)}},
		{Random{}, Config{Spec: bench.Workload{ISL: "20", Batch: 3}, Maker: Text{Words: Words(), PerWord: 1, Query: 5}, Task: opt.Some(bench.Rerank)}},
		{Mooncake(), Config{Spec: bench.Workload{Path: file(t, mooncakeRows)}, Maker: ids}},
		{ShareGPT{}, Config{Spec: bench.Workload{MultiTurn: true, Path: file(t, `{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c <&>"},{"from":"gpt","value":"d"}]}`)}}},
		{JSONL{}, Config{Spec: bench.Workload{OSL: "4", Path: file(t, `{"prompt":"a","extra_body":{"x":1},"class":"k"}`)}}},
	} {
		c.c.Seed = 5
		want := take(t, c.d, c.c, 20)
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if c.d.Name() == "sharegpt" {
				want[i].Conversation = 1 // which the file's session is
			}
			row, err := Row(&want[i], time.Duration(i)*1_234_567, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		back := Config{Spec: bench.Workload{Path: path, OSL: "1"}, Task: c.c.Task}
		if got := take(t, JSONL{}, back, len(want)); !reflect.DeepEqual(got, want) {
			for i := range got {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Errorf("%s: request %d is\n%+v, want\n%+v", c.d.Name(), i, got[i], want[i])
					break
				}
			}
		}
		for i, at := range times(t, JSONL{}, back) {
			if at != time.Duration(i)*1_234_567 {
				t.Fatalf("%s: request %d is at %v", c.d.Name(), i, at)
			}
		}
	}
}

// Shared prefixes, arrivals and lengths are told as they are.
func TestView(t *testing.T) {
	var v View
	for i := range 10 {
		q := bench.Request{Tokens: make([]int, 32), ISL: 32, OSL: 1 + i, Class: "a"}
		q.Tokens[31] = i
		v.Add(&q, time.Duration(i)*time.Second, true)
	}
	v.Close()
	if v.Requests != 10 || v.In.Mean != 32 || v.Out.P50 != 5.5 || v.Shared != 9.0/20 || v.Classes["a"] != 10 || v.InEstimated {
		t.Errorf("%+v", v)
	}
	if a := v.Arrivals; a.Rate != 1 || a.GapCV != 0 || a.Distinct != 10 || a.Span != 9 {
		t.Errorf("%+v", a)
	}
}
