package workload

import (
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

func TestLawsMoments(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		law      string
		mean, sd float64
		lo, hi   int
	}{
		{"512", 512, 0, 512, 512},
		{"uniform:10,20", 15, math.Sqrt(120.0 / 12), 10, 20},
		{"normal:500,100", 500, 100, 1, 1200},
		{"truncnormal:128,32,16,256", 128, 31.93, 16, 256},
		{"truncnormal:100,50,100,150", 119, -1, 100, 150}, // the mean is the formula's
		{"lognormal:512,256", 512, 256, 1, math.MaxInt32},
		{"lognormal:512,512,1024", -1, -1, 1, 1024},
		{"gamma:512,256", 512, 256, 1, math.MaxInt32},
		{"gamma:100,200", 100, 200, 1, math.MaxInt32},
		{"zipf:1.2,1,1000", -1, -1, 1, 1000},
		{"zipf:1,10,12", (10.0/10 + 11.0/11 + 12.0/12) / (0.1 + 1/11.0 + 1/12.0), -1, 10, 12},
	} {
		l, err := ParseLaw(c.law)
		if err != nil {
			t.Fatal(err)
		}
		if l.String() != c.law {
			t.Errorf("%s is written %s", c.law, l)
		}
		r := rng.New(5, c.law)
		var sum, sq float64
		lo, hi := math.MaxInt, 0
		for range n {
			x := l.Draw(r)
			sum += float64(x)
			sq += float64(x) * float64(x)
			lo, hi = min(lo, x), max(hi, x)
		}
		mean := sum / n
		sd := math.Sqrt(max(0, sq/n-mean*mean))
		if lo < c.lo || hi > c.hi {
			t.Errorf("%s: drawn %d..%d", c.law, lo, hi)
		}
		if math.Abs(mean-l.Mean()) > 6*sd/math.Sqrt(n)+0.01 {
			t.Errorf("%s: mean %v, said to be %v", c.law, mean, l.Mean())
		}
		if c.mean > 0 && c.sd >= 0 && math.Abs(mean-c.mean) > 6*c.sd/math.Sqrt(n)+0.01 {
			t.Errorf("%s: mean %v, want %v", c.law, mean, c.mean)
		}
		if c.sd > 0 && math.Abs(sd/c.sd-1) > 0.05 {
			t.Errorf("%s: sd %v, want %v", c.law, sd, c.sd)
		}
	}
}

func TestBadLaws(t *testing.T) {
	for _, s := range []string{"", "0", "-3", "x", "1.5", "uniform:5", "uniform:5,4", "uniform:0,4", "uniform:1.5,4", "normal:5", "normal:0,1", "normal:5,-1",
		"truncnormal:5,1,1", "truncnormal:5,1,100,200", "truncnormal:5,1,9,3", "lognormal:0,1", "lognormal:500,10,20", "zipf:2", "zipf:0,1,2", "zipf:1,5,4", "zipf:1,1,99999999", "gamma:5", "gamma:5,0", "gamma:100,5,10", "normal:nan,1", "normal:inf,1", "999999999999"} {
		if l, err := ParseLaw(s); err == nil || fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%q gives %v, %v", s, l, err)
		}
	}
}

func TestRangeRatio(t *testing.T) {
	l, err := WithRange(Fixed(100), 0.25)
	if err != nil || l.String() != "uniform:75,125" {
		t.Error(l, err)
	}
	if l, _ := WithRange(Fixed(1), 0.9); l.String() != "uniform:1,2" {
		t.Error(l)
	}
	for _, r := range []float64{1, -0.1, math.NaN()} {
		if _, err := WithRange(Fixed(100), r); err == nil {
			t.Errorf("%v is taken", r)
		}
	}
	if _, err := WithRange(Uniform{1, 2}, 0.5); err == nil {
		t.Error("a range around a law is taken")
	}
}

func take(t testing.TB, d Dataset, c Config, n int) (out []bench.Request) {
	t.Helper()
	seq, err := d.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for q, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		if out = append(out, q); len(out) == n {
			return out
		}
	}
	return out
}

var text = Text{Words: Words(), PerWord: 1, Overhead: 9, How: "test"}
var ids = IDs{Low: 1000, High: 20_000}

// The same seed gives the same bytes, in every version.
func TestRandomGolden(t *testing.T) {
	for _, c := range []struct {
		m    Maker
		want uint64
	}{{text, goldenText}, {ids, goldenIDs}} {
		h := fnv.New64a()
		for _, q := range take(t, Random{}, Config{Spec: bench.Workload{ISL: "lognormal:200,100", OSL: "truncnormal:64,16,1,128"}, Seed: 7, Maker: c.m}, 200) {
			fmt.Fprintf(h, "%q %v %d %d\n", q.Prompt, q.Tokens, q.ISL, q.OSL)
		}
		if h.Sum64() != c.want {
			t.Errorf("%s: hash %#x, want %#x", c.m.Source(), h.Sum64(), c.want)
		}
	}
}

// No two prompts begin with the same token, as long as there are tokens; lengths are exact; warm-up has prompts of its own.
func TestRandomPrompts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		n := rapid.IntRange(1, 60).Draw(t, "isl")
		c := Config{Spec: bench.Workload{ISL: Fixed(n).String(), OSL: "5"}, Seed: seed, Maker: ids}
		seen := map[int]bool{}
		measured, warm := takeR(t, Random{}, c, 700), c
		warm.Phase = bench.Warmup
		for _, q := range append(measured, takeR(t, Random{}, warm, 300)...) {
			if len(q.Tokens) != n || q.ISL != n || q.OSL != 5 {
				t.Fatalf("%d ids for %d tokens", len(q.Tokens), n)
			}
			if seen[q.Tokens[0]] {
				t.Fatal("two prompts begin alike")
			}
			seen[q.Tokens[0]] = true
		}
		c.Maker = text
		first := map[string]bool{}
		for _, q := range takeR(t, Random{}, c, 1000) {
			words := strings.Fields(q.Prompt)
			if len(words) != max(1, n-9) {
				t.Fatalf("%d words for %d tokens", len(words), n)
			}
			if first[words[0]] {
				t.Fatal("two prompts begin alike")
			}
			first[words[0]] = true
		}
	})
}

func takeR(t *rapid.T, d Dataset, c Config, n int) (out []bench.Request) {
	seq, err := d.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	for q := range seq {
		if out = append(out, q); len(out) == n {
			break
		}
	}
	return out
}

// Other seeds give other prompts; the measured prompts do not depend on the warm-up's.
func TestSeeds(t *testing.T) {
	c := Config{Spec: bench.Workload{ISL: "30", OSL: "5"}, Seed: 1, Maker: text}
	a := take(t, Random{}, c, 50)
	c.Seed = 2
	for i, q := range take(t, Random{}, c, 50) {
		if q.Prompt == a[i].Prompt {
			t.Fatal("two seeds, one prompt")
		}
	}
}

func TestIDsWithAddedToken(t *testing.T) {
	m := ids
	m.Added = 1
	for _, n := range []int{1, 2, 100} {
		var q bench.Request
		m.Make(&q, n, 12345, rng.New(1, "x"))
		if len(q.Tokens) != max(1, n-1) {
			t.Errorf("%d ids for %d", len(q.Tokens), n)
		}
		for _, id := range q.Tokens {
			if id < m.Low || id >= m.High {
				t.Errorf("id %d", id)
			}
		}
	}
}

func TestWordList(t *testing.T) {
	w := Words()
	seen := map[string]bool{}
	for _, x := range w {
		if seen[x] || strings.Trim(x, "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("word %q", x)
		}
		seen[x] = true
	}
	if len(w) != 1024 {
		t.Errorf("%d words", len(w))
	}
}

func file(t *testing.T, s string) string {
	p := filepath.Join(t.TempDir(), "d.jsonl")
	if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestText(t *testing.T) {
	q := take(t, Lines{}, Config{Spec: bench.Workload{Path: file(t, "one\n\n two \r\nthree"), OSL: "7"}}, 4)
	if q[0].Prompt != "one" || q[1].Prompt != "two" || q[2].Prompt != "three" || q[3].Prompt != "one" || q[0].OSL != 7 {
		t.Errorf("%+v", q)
	}
	w := take(t, Lines{}, Config{Spec: bench.Workload{Path: file(t, "one\ntwo\nthree"), OSL: "7"}, Phase: bench.Warmup}, 2)
	if w[0].Prompt != "three" || w[1].Prompt != "two" {
		t.Errorf("%+v", w)
	}
	p := take(t, Lines{}, Config{Spec: bench.Workload{Prompt: "hi", OSL: "7"}}, 2)
	if p[0].Prompt != "hi" || p[1].Prompt != "hi" {
		t.Errorf("%+v", p)
	}
}

func TestJSONL(t *testing.T) {
	q := take(t, JSONL{}, Config{Spec: bench.Workload{OSL: "9", Path: file(t, `{"prompt":"a","output_tokens":3}
{"messages":[{"role":"user","content":"b"},{"role":"assistant","content":[{"type":"text","text":"c"}]}],"extra_body":{"x":1}}
{"input_ids":[1,2,3]}
`)}}, 3)
	if q[0].Prompt != "a" || q[0].OSL != 3 || len(q[1].Messages) != 2 || string(q[1].Extra) != `{"x":1}` || q[1].OSL != 9 || len(q[2].Tokens) != 3 || q[2].ISL != 3 {
		t.Errorf("%+v", q)
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"{\"prompt\":\"a\"}\nnonsense\n", `.jsonl:2: the line is no JSON (`},
		{"{\"prompt\":\"a\"}\n\n{\"prompt\":\"\"}\n", `.jsonl:3: the prompt is empty`},
		{`[1]`, `the line is a list, not a JSON object`},
		{`7`, `the line is 7, not a JSON object`},
		{`{"prompt":"a"} {"prompt":"b"}`, `more than one JSON value`},
		{`{"prompt":"a","messages":[{"role":"user","content":"b"}]}`, "exactly one of"},
		{`{}`, "exactly one of"},
		{`{"prompt":null}`, "exactly one of"},
		{`{"prompt":["a"]}`, "prompt is a list, not a string"},
		{`{"messages":[]}`, "messages is empty"},
		{`{"messages":"hi"}`, `messages is the string "hi", not a list`},
		{`{"messages":["hi"]}`, `messages[0] is the string "hi", not an object`},
		{`{"messages":[{"content":"a"}]}`, "messages[0] has no role"},
		{`{"messages":[{"role":1,"content":"a"}]}`, "the role of messages[0] is 1, not a string"},
		{`{"messages":[{"role":"user"}]}`, "messages[0] has no content"},
		{`{"messages":[{"role":"user","content":{}}]}`, "the content of messages[0] is an object, not a string or a list of parts"},
		{`{"messages":[{"role":"user","content":"a","tool_calls":[]}]}`, "the field tool_calls of messages[0] is not known"},
		{`{"input_ids":[]}`, "input_ids is empty"},
		{`{"input_ids":[1,2.5]}`, "input_ids[1] is 2.5, not a token id"},
		{`{"input_ids":[1,-2]}`, "input_ids[1] is -2, no token id"},
		{`{"input_ids":5}`, "input_ids is 5, not a list"},
		{`{"prompt":"a","output_tokens":0}`, "output_tokens is 0, must be between 1 and"},
		{`{"prompt":"a","output_tokens":"x"}`, `output_tokens is the string "x", not a whole number`},
		{`{"prompt":"a","output_tokens":1e99}`, `output_tokens is 1e99, not a whole number`},
		{`{"prompt":"a","output_len":5}`, "the field output_len is not known, did you mean output_tokens? (there are: prompt, messages"},
		{`{"prompt":"a","extra_body":[1]}`, "extra_body is a list, not a JSON object"},
		{`{"prompt":"a","extra_body":null}`, "extra_body is null, not a JSON object"},
		{"{\"prompt\":\"a\"}\n{\"prompt\":\"\xff\xfe\"}", ".jsonl:2: not UTF-8"},
		{"\n\n", "holds no request"},
		{"", "holds no request"},
	} {
		_, err := JSONL{}.Open(Config{Spec: bench.Workload{Path: file(t, c.body), OSL: "1", Strict: true}})
		if err == nil || fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || fault.HintOf(err) == "" {
			t.Errorf("%q: %v, hint %q", c.body, err, fault.HintOf(err))
		}
		if err != nil && (strings.Contains(err.Error(), "Go ") || strings.Contains(err.Error(), "workload.") || strings.Contains(err.Error(), "json:")) {
			t.Errorf("%q: the message speaks of the program's inside: %v", c.body, err)
		}
	}
	for _, body := range []string{"ok\nb\xe9b\n", "\xff\xfea\x00b\x00"} {
		if _, err := (Lines{}).Open(Config{Spec: bench.Workload{Path: file(t, body), OSL: "1", Strict: true}}); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%q: %v", body, err)
		}
	}
	for _, w := range []bench.Workload{
		{OSL: "1"}, {OSL: "1", Path: "/no/such/file"}, {OSL: "1", Path: t.TempDir()}, {OSL: "1", ISL: "5", Path: "x"}, {OSL: "bad", Path: "x"},
		{OSL: "1", Prompt: "x", Path: "y"},
	} {
		for _, d := range []Dataset{Lines{}, JSONL{}} {
			if _, err := d.Open(Config{Spec: w}); err == nil || fault.CodeOf(err) != fault.Usage {
				t.Errorf("%s %+v: %v", d.Name(), w, err)
			}
		}
	}
	for _, w := range []bench.Workload{{ISL: "5", OSL: "5", Path: "x"}, {ISL: "5", OSL: "5", Prompt: "x"}, {ISL: "", OSL: "5"}, {ISL: "5"}, {ISL: "uniform:1,2", OSL: "5", RangeRatio: 0.5}} {
		if _, err := (Random{}).Open(Config{Spec: w, Maker: text}); err == nil {
			t.Errorf("%+v is taken", w)
		}
	}
}

// What the endpoint cannot take is refused by its line.
func TestEndpointTakes(t *testing.T) {
	ids, msgs, text := `{"input_ids":[1]}`, `{"messages":[{"role":"user","content":"a"}]}`, `{"prompt":"a"}`
	for _, c := range []struct {
		row        string
		chat, text bool
		want       string
	}{{ids, true, false, "to the chat endpoint"}, {ids, false, true, ""}, {ids, false, false, ""}, {msgs, true, false, ""}, {msgs, false, true, "to the completions endpoint"},
		{msgs, false, false, ""}, {text, true, false, ""}, {text, false, true, ""}} {
		_, err := JSONL{}.Open(Config{Spec: bench.Workload{Path: file(t, text+"\n"+c.row), OSL: "1"}, Chat: c.chat, Text: c.text})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), ".jsonl:2:") || !strings.Contains(err.Error(), c.want) || !strings.Contains(fault.HintOf(err), "--endpoint")) {
			t.Errorf("%s, chat %v, text %v: %v", c.row, c.chat, c.text, err)
		}
	}
}

// The mark that some editors put before a UTF-8 text is no part of it.
func TestByteOrderMark(t *testing.T) {
	q := take(t, Lines{}, Config{Spec: bench.Workload{Path: file(t, "\xef\xbb\xbfone\ntwo"), OSL: "7"}}, 1)
	j := take(t, JSONL{}, Config{Spec: bench.Workload{Path: file(t, "\xef\xbb\xbf{\"prompt\":\"one\"}"), OSL: "7"}}, 1)
	if q[0].Prompt != "one" || j[0].Prompt != "one" {
		t.Errorf("%q %q", q[0].Prompt, j[0].Prompt)
	}
}

// The least length is never undercut.
func TestLeast(t *testing.T) {
	for law, want := range map[string]int{"5": 5, "uniform:3,9": 3, "normal:50,10": 1, "normal:50,0": 50, "truncnormal:50,10,40,60": 40, "lognormal:50,20": 1, "lognormal:50,0": 50} {
		l, err := ParseLaw(law)
		if err != nil || l.Least() != want {
			t.Errorf("%s: %v, %v", law, l, err)
		}
		r := rng.New(3, law)
		for range 1000 {
			if x := l.Draw(r); x < want {
				t.Errorf("%s: %d is drawn", law, x)
			}
		}
	}
}

func BenchmarkRandomIDs(b *testing.B) {
	b.ReportAllocs()
	seq, _ := Random{}.Open(Config{Spec: bench.Workload{ISL: "1000", OSL: "5"}, Maker: ids})
	n := 0
	for range seq {
		if n++; n > b.N {
			break
		}
	}
}

const (
	goldenText = 0xc6bb3e501d6f5fb4
	goldenIDs  = 0x585ac0bf78aad73e
)
