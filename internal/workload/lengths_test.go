package workload

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// A mixture has the shares of its weights, and a class for each part; lengths of a file stay in pairs.
func TestMix(t *testing.T) {
	const n = 20_000
	c := Config{Spec: bench.Workload{Mix: "512,128:0.7; uniform:10,20/fixed:0.2", OSL: ""}, Seed: 3, Maker: IDs{Low: 1000, High: 20_000}}
	if _, err := (Random{}).Open(c); fault.CodeOf(err) != fault.Usage {
		t.Errorf("a law that is none: %v", err)
	}
	c.Spec.Mix = "512,128:0.7; uniform:10,20/7:0.3"
	classes := map[string]int{}
	m, err := ParseMix(c.Spec.Mix)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(m.Mean()-(0.7*512+0.3*15)) > 1e-9 {
		t.Errorf("mean %v", m.Mean())
	}
	r := c.stream()
	for range n {
		in, out, class := m.Draw(r)
		classes[class]++
		if class == "512,128" && (in != 512 || out != 128) || class == "uniform:10,20/7" && (in < 10 || in > 20 || out != 7) {
			t.Fatal(in, out, class)
		}
	}
	if len(classes) != 2 || math.Abs(float64(classes["512,128"])/n-0.7) > 5*math.Sqrt(0.21/n) {
		t.Error(classes)
	}
	for _, bad := range []string{" ", "512,128", "512:1", "512,128:0", "512,128:x", "1,2,3:1", "512,128:1;512,128:2", "512,128:-1", "lognormal:512,256"} {
		if _, err := ParseMix(bad); fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLengthsOfAFile(t *testing.T) {
	body := "id,prompt,answer\n1,100,1\n2,200,2\n3,300,3\nx,0,5\ny,no,5\n"
	for _, columns := range []string{"prompt,answer", "2,3"} {
		var rows bench.Rows
		c := Config{Spec: bench.Workload{Lengths: file(t, body) + ":" + columns}, Seed: 3, Maker: ids, Rows: &rows}
		seen := map[int]int{}
		for _, q := range take(t, Random{}, c, 300) {
			if q.ISL != 100*q.OSL || len(q.Tokens) != q.ISL {
				t.Fatalf("%d with %d", q.ISL, q.OSL)
			}
			seen[q.OSL]++
		}
		if len(seen) != 3 || seen[1] < 60 || rows.Kept != 3 || rows.Read != 5 {
			t.Error(seen, rows)
		}
	}
	for _, c := range []struct{ lengths, want string }{
		{"nofile", "names no columns"}, {"/no/such:1,2", "no such file"}, {file(t, body) + ":prompt", "two columns"}, {file(t, body) + ":prompt,reply", ":1: there is no column reply"},
		{file(t, "a,b\n0,1\n") + ":a,b", ":2: a is 0"}, {file(t, "a,b\n") + ":1,2", "holds no request"},
	} {
		if _, err := (Random{}).Open(Config{Spec: bench.Workload{Lengths: c.lengths}}); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.lengths, err)
		}
	}
}

// Prompts share what they are to share and nothing else, and each prefix has as many prompts.
func TestPrefix(t *testing.T) {
	c := Config{Spec: bench.Workload{ISL: "50", OSL: "5", SystemLen: 100, Prefixes: 4, PrefixLen: 60}, Seed: 3}
	for _, m := range []Maker{ids, Text{Words: Words(), PerWord: 1}} {
		c.Maker = m
		words := func(q bench.Request) []string {
			if q.Prompt != "" {
				return strings.Fields(q.Prompt)
			}
			return strings.Fields(strings.Trim(fmt.Sprint(q.Tokens), "[]"))
		}
		groups := map[int]int{}
		reqs := take(t, Prefix{}, c, 40)
		for _, a := range reqs {
			if len(words(a)) != 210 || a.ISL != 210 {
				t.Fatalf("%d words, %d tokens", len(words(a)), a.ISL)
			}
			same := 0
			for _, b := range reqs {
				switch n := alike(words(a), words(b)); n {
				case 210, 100: // itself, or another group
				case 160:
					same++
				default:
					t.Fatalf("%d words are shared", n)
				}
			}
			groups[same]++
		}
		if groups[9] != 40 {
			t.Errorf("groups %v, want ten prompts for each prefix", groups)
		}
		c.Phase = bench.Warmup
		if w := take(t, Prefix{}, c, 1)[0]; alike(words(w), words(reqs[0])) != 0 {
			t.Error("the warm-up warms the measured prefixes")
		}
		c.Phase = ""
	}
	for _, w := range []bench.Workload{{ISL: "5", OSL: "5"}, {ISL: "5", OSL: "5", Prefixes: 3}, {ISL: "5", OSL: "5", PrefixLen: 3}, {ISL: "5", OSL: "5", SystemLen: -1}, {ISL: "5", OSL: "5", SystemLen: 1, Path: "x"}} {
		if _, err := (Prefix{}).Open(Config{Spec: w}); fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// The same seed gives the same bytes, in every version.
func TestGoldenSets(t *testing.T) {
	csv := file(t, "in,out\n10,1\n20,2\n300,3\n")
	for _, c := range []struct {
		name string
		d    Dataset
		w    bench.Workload
		m    Maker
		want uint64
	}{
		{"random-ids", RandomIDs{}, bench.Workload{ISL: "gamma:100,50", OSL: "zipf:1.1,1,200"}, ids, 0xb5fc3f657bb2fc0c},
		{"mix", Random{}, bench.Workload{Mix: "100,20:0.7;400,50:0.3"}, text, 0x4121f8d4a4b9cfa7},
		{"lengths", Random{}, bench.Workload{Lengths: csv + ":in,out"}, ids, 0xa5be913afc482e0c},
		{"prefix", Prefix{}, bench.Workload{ISL: "50", OSL: "5", SystemLen: 100, Prefixes: 4, PrefixLen: 60}, text, 0x21f06c4783f3a73},
		{"prefix by ids", Prefix{}, bench.Workload{ISL: "50", OSL: "5", Prefixes: 4, PrefixLen: 60}, ids, 0xcc65783af9e4953a},
	} {
		h := fnv.New64a()
		for _, q := range take(t, c.d, Config{Spec: c.w, Seed: 7, Maker: c.m}, 100) {
			fmt.Fprintf(h, "%q %v %d %d %q\n", q.Prompt, q.Tokens, q.ISL, q.OSL, q.Class)
		}
		if h.Sum64() != c.want {
			t.Errorf("%s: hash %#x, want %#x", c.name, h.Sum64(), c.want)
		}
	}
}
