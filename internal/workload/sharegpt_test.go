package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Case c40: pairs of a human and its reply are kept, and what has none is skipped and counted by reason.
func TestShareGPTCase(t *testing.T) {
	var x struct {
		Data   json.RawMessage
		Expect struct {
			Single struct {
				Kept    map[string][2]string
				Skipped map[string]string
			} `json:"single_turn"`
			Multi struct{ Turns map[string]int } `json:"multi_turn"`
		}
	}
	b, err := os.ReadFile("../../testdata/cases/c40-sharegpt-rows.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	var each []json.RawMessage
	if err := json.Unmarshal(x.Data, &each); err != nil {
		t.Fatal(err)
	}
	lines := ""
	for _, e := range each {
		lines += "  " + strings.ReplaceAll(string(e), "\n", " ") + "\n"
	}
	for _, body := range []string{string(x.Data), lines, utf8BOM + "\n" + string(x.Data)} {
		var rows bench.Rows
		c := Config{Spec: bench.Workload{Path: file(t, body)}, Rows: &rows}
		got := take(t, ShareGPT{}, c, len(x.Expect.Single.Kept)+1)
		i := 0
		for _, id := range []string{"a", "c", "d"} {
			want := x.Expect.Single.Kept[id]
			if q := got[i]; q.Prompt != want[0] || q.OSL != (len(want[1])+3)/4 {
				t.Errorf("%s: %+v, want %q", id, q, want)
			}
			i++
		}
		if got[i].Prompt != got[0].Prompt {
			t.Error("the file is not begun anew")
		}
		reasons := map[string]bool{}
		for _, s := range rows.Skipped {
			reasons[s.Reason] = s.Rows == 1
		}
		if rows.Kept != len(x.Expect.Single.Kept) || len(reasons) != len(x.Expect.Single.Skipped) {
			t.Errorf("%s", Describe(&rows))
		}
		for id, why := range x.Expect.Single.Skipped {
			if !reasons[why] {
				t.Errorf("row %s is not skipped as %q: %s", id, why, Describe(&rows))
			}
		}
		c.Spec.MultiTurn = true
		turns := ""
		for _, q := range take(t, ShareGPT{}, c, 4) {
			var last string
			if err := json.Unmarshal(q.Messages[len(q.Messages)-1].Content, &last); err != nil {
				t.Fatal(err)
			}
			turns += fmt.Sprintf("%d.%d %d %s; ", q.Conversation, q.Turn, len(q.Messages), last)
		}
		if turns != "1.0 1 What is 2+2?; 2.0 1 Name a colour.; 3.0 1 First?; 3.1 3 Second?; " {
			t.Error(turns)
		}
		c.Spec.Strict = true
		if _, err := (ShareGPT{}).Open(c); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), ": empty") || fault.HintOf(err) == "" {
			t.Errorf("strict: %v", err)
		}
	}
	for _, c := range []struct{ body, want string }{
		{`[{"conversations":[]}`, ":1: the list does not end"}, {`[]`, "holds no request"}, {`[1,2]`, ":1: the row is 1, not a JSON object"},
		{"[\n{\"conversations\":5}\n]", ":2: conversations is no list"}, {`[{"conversations":[{"from":"human","value":"x"},{"from":"gpt","value":" "}]}]`, "no reply"},
	} {
		if _, err := (ShareGPT{}).Open(Config{Spec: bench.Workload{Path: file(t, c.body)}}); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.body, err)
		}
	}
}

// Rows of other tools are read as what they mean there.
func TestForeignRows(t *testing.T) {
	for _, c := range []struct{ row, want string }{
		{`{"prompt":"a","output_tokens":7}`, `a [] [] 7 0.0`},                                               // vLLM custom
		{`{"type":"single_turn","text":"a"}`, `a [] [] 9 0.0`},                                              // AIPerf
		{`{"text":"a","role":"system"}`, ` [system "a"] [] 9 0.0`},                                          //
		{`{"texts":["a","b"]}`, ` [user [{"text":"a","type":"text"},{"text":"b","type":"text"}]] [] 9 0.0`}, //
		{`{"text":"a","images":["https://x/y.png"]}`, ` [user [{"text":"a","type":"text"},{"image_url":{"url":"https://x/y.png"},"type":"image_url"}]] [] 9 0.0`},
		{`{"texts":[{"name":"q","contents":["a"]}]}`, `a [] [] 9 0.0`},
		{`{"type":"multi_turn","session_id":"s","turns":[{"text":"a"},{"text":"b","role":"assistant"},{"text":"c","delay":5,"output_tokens":3}]}`,
			` [user "a"] [] 9 1.0;  [user "a" assistant "b" user "c"] [] 3 1.1`},
		{`{"task_id":1,"prompt":"a","output_tokens":5}`, `a [] [] 5 0.0`}, // trtllm-bench
		{`{"task_id":"x","input_ids":[1,2],"output_tokens":5}`, ` [] [1 2] 5 0.0`},
		{`{"task_id":1,"logits":[1,2],"output_tokens":5}`, ` [] [1 2] 5 0.0`},
		{`{"prompt":"a","session_id":"s","turn":4,"class":"x"}`, `a [] [] 9 1.4`},
		{`{"text":"a","prompt":"b"}`, "text and image exclude prompt"},
		{`{"text":""}`, "the text is empty"},
		{`{"text":"a","texts":["b"]}`, "texts and its singular exclude each other"},
		{`{"text":"a","image":"cat.png"}`, "an image is no URL"},
		{`{"turns":[{"role":"assistant","text":"a"}]}`, "turns has no turn of a user"},
		{`{"turns":[{"words":"a"}]}`, "the field words of turns[0] is not known"},
		{`{"turns":[{}]}`, "turns[0]: there is neither text nor image"},
		{`{"prompt":"a","audio":"x"}`, "the field audio is not known"},
		{`{"prompt":"a","input_tokens":0}`, "input_tokens is 0"},
		{`{"prompt":"a","timestamp":"x"}`, "timestamp is the string \"x\", not a number"},
	} {
		cfg := Config{Spec: bench.Workload{Path: file(t, c.row), OSL: "9"}}
		got := ""
		if _, err := (JSONL{}).Open(cfg); err != nil {
			got = err.Error()
		} else {
			for i, q := range take(t, JSONL{}, cfg, 1+strings.Count(c.want, ";")) {
				if i > 0 {
					got += "; "
				}
				var ms []string
				for _, m := range q.Messages {
					ms = append(ms, m.Role+" "+string(m.Content))
				}
				got += fmt.Sprintf("%s %v %v %d %d.%d", q.Prompt, ms, q.Tokens, q.OSL, q.Conversation, q.Turn)
			}
		}
		if got != c.want && !(strings.HasPrefix(got, "/") && strings.Contains(got, c.want)) {
			t.Errorf("%s\ngives %s\nwant  %s", c.row, got, c.want)
		}
	}
}

// Rows with times are replayed in their order.
func TestTimedRows(t *testing.T) {
	c := Config{Spec: bench.Workload{OSL: "1", Path: file(t, `{"prompt":"b","timestamp":1500.5}`+"\n"+`{"prompt":"a","timestamp":1000}`+"\n")}}
	q := take(t, JSONL{}, c, 2)
	if at := times(t, JSONL{}, c); fmt.Sprint(at) != "[0s 500.5ms]" || q[0].Prompt != "a" || q[1].Prompt != "b" {
		t.Error(at, q)
	}
	c.Spec.Path = file(t, `{"prompt":"b","timestamp":1500.5}`+"\n"+`{"prompt":"a"}`+"\n")
	if _, err := (JSONL{}).Times(c); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "1 of 2 rows") {
		t.Error(err)
	}
}
