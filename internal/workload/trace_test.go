package workload

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// shared returns the path of one of the project's data files, or skips the test where they are not.
func shared(t testing.TB, name string) string {
	dir := os.Getenv("PRONY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: set PRONY_SHARED to the folder of the shared data", name)
	}
	return path
}

func quantile(s []int, p float64) float64 {
	h := p * float64(len(s)-1)
	i := int(h)
	if i+1 == len(s) {
		return float64(s[i])
	}
	return float64(s[i]) + (h-float64(i))*float64(s[i+1]-s[i])
}

// The real traces have the counts, lengths, times and shared blocks that a second reader found in them.
func TestRealTraces(t *testing.T) {
	var truth map[string]struct {
		Rows        int
		First, Last string
		FirstMS     float64 `json:"first_ms"`
		LastMS      float64 `json:"last_ms"`
		InMean      float64 `json:"in_mean"`
		InP50       float64 `json:"in_p50"`
		InP90       float64 `json:"in_p90"`
		InP99       float64 `json:"in_p99"`
		InMax       float64 `json:"in_max"`
		OutMean     float64 `json:"out_mean"`
		OutP50      float64 `json:"out_p50"`
		OutP99      float64 `json:"out_p99"`
		OutMax      float64 `json:"out_max"`
		Share       float64 `json:"block_reuse_share_infinite_cache"`
		Distinct    int     `json:"distinct_blocks"`
		Blocks      int
	}
	b, err := os.ReadFile(shared(t, "data/traces/trace_stats.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &truth); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		trace      Trace
	}{
		{"azure_2023_code", "data/traces/azure/AzureLLMInferenceTrace_code.csv", Azure()}, {"azure_2023_conv", "data/traces/azure/AzureLLMInferenceTrace_conv.csv", Azure()},
		{"mooncake_conversation", "data/traces/mooncake/conversation_trace.jsonl", Mooncake()}, {"mooncake_synthetic", "data/traces/mooncake/synthetic_trace.jsonl", Mooncake()},
	} {
		want := truth[c.name]
		var rows bench.Rows
		cfg := Config{Spec: bench.Workload{Path: shared(t, c.path)}, Seed: 1, Maker: joined{}, Rows: &rows}
		reqs := take(t, c.trace, cfg, want.Rows)
		if rows.Kept != want.Rows || len(rows.Skipped) > 0 || rows.Unsorted > 0 {
			t.Errorf("%s: %s, want %d rows", c.name, Describe(&rows), want.Rows)
		}
		var in, out []int
		seen := map[int]bool{}
		blocks, again := 0, 0
		for _, q := range reqs {
			in, out = append(in, q.ISL), append(out, q.OSL)
			if want.Blocks == 0 {
				continue
			}
			blocks += len(q.Tokens)
			for _, n := range q.Tokens {
				if seen[n] {
					again++
				}
				seen[n] = true
			}
		}
		slices.Sort(in)
		slices.Sort(out)
		near := func(what string, got, want float64) {
			if math.Abs(got-want) > 1e-9*math.Max(1, want) {
				t.Errorf("%s: %s is %v, want %v", c.name, what, got, want)
			}
		}
		near("mean input", mean(in), want.InMean)
		near("median input", quantile(in, 0.5), want.InP50)
		near("p90 input", quantile(in, 0.9), want.InP90)
		near("p99 input", quantile(in, 0.99), want.InP99)
		near("longest input", quantile(in, 1), want.InMax)
		near("mean output", mean(out), want.OutMean)
		near("median output", quantile(out, 0.5), want.OutP50)
		near("p99 output", quantile(out, 0.99), want.OutP99)
		near("longest output", quantile(out, 1), want.OutMax)
		if blocks != want.Blocks || len(seen) != want.Distinct {
			t.Errorf("%s: %d blocks, %d different ones, want %d, %d", c.name, blocks, len(seen), want.Blocks, want.Distinct)
		}
		if blocks > 0 {
			near("share of blocks seen before", float64(again)/float64(blocks), want.Share)
		}
		span := time.Duration((want.LastMS - want.FirstMS) * 1e6)
		if want.First != "" {
			a, aerr := time.Parse("2006-01-02 15:04:05", want.First)
			z, zerr := time.Parse("2006-01-02 15:04:05", want.Last)
			if aerr != nil || zerr != nil {
				t.Fatal(aerr, zerr)
			}
			span = z.Sub(a)
		}
		times := times(t, c.trace, cfg)
		if len(times) != want.Rows || times[0] != 0 || times[len(times)-1] != span || rows.Span != span {
			t.Errorf("%s: %d times from %v to %v, want %d to %v", c.name, len(times), times[0], times[len(times)-1], want.Rows, span)
		}
	}
}

func mean(s []int) float64 {
	sum := 0
	for _, x := range s {
		sum += x
	}
	return float64(sum) / float64(len(s))
}

func times(t testing.TB, d Timed, c Config) (out []time.Duration) {
	t.Helper()
	seq, err := d.Times(c)
	if err != nil {
		t.Fatal(err)
	}
	for at := range seq {
		out = append(out, at)
	}
	return out
}

// joined notes the numbers of the parts in place of making them.
type joined struct{ IDs }

func (joined) Offset(*rng.Stream) int { return 0 }

func (joined) Join(q *bench.Request, parts []Part) {
	for _, p := range parts {
		q.Tokens = append(q.Tokens, p.Number)
	}
}

// Rows out of order are sorted by time, counted from the earliest, and said to be so. Rows of one time keep the file's order.
func TestTraceOutOfOrder(t *testing.T) {
	var x struct {
		Data   []json.RawMessage
		Expect struct {
			Order []int              `json:"order_by_line"`
			MS    map[string]float64 `json:"offsets_ms_by_line"`
			Span  float64            `json:"span_ms"`
		}
	}
	b, err := os.ReadFile("../../testdata/cases/c41-trace-out-of-order.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &x); err != nil {
		t.Fatal(err)
	}
	var rows bench.Rows
	var body strings.Builder
	for _, r := range x.Data {
		body.WriteString(strings.ReplaceAll(string(r), "\n", "") + "\n")
	}
	c := Config{Spec: bench.Workload{Path: file(t, body.String())}, Maker: ids, Rows: &rows, Seed: 3}
	got := times(t, Mooncake(), c)
	reqs := take(t, Mooncake(), c, len(x.Data))
	for i, line := range x.Expect.Order {
		var row struct {
			In int `json:"input_length"`
		}
		if err := json.Unmarshal(x.Data[line-1], &row); err != nil {
			t.Fatal(err)
		}
		want := time.Duration(x.Expect.MS[fmt.Sprint(line)] * 1e6)
		if got[i] != want || reqs[i].ISL != row.In || len(reqs[i].Tokens) != row.In {
			t.Errorf("request %d is due at %v with %d tokens, want line %d: %v, %d", i, got[i], reqs[i].ISL, line, want, row.In)
		}
	}
	if rows.Unsorted != 1 || rows.Span != time.Duration(x.Expect.Span*1e6) || !strings.Contains(Describe(&rows), "1 out of order") || !strings.Contains(rows.Unit, "ms") {
		t.Errorf("%s, %v", Describe(&rows), rows.Span)
	}
}

const mooncakeRows = `{"timestamp": 0, "input_length": 1030, "output_length": 5, "hash_ids": [7, 8, 9]}
{"timestamp": 0, "input_length": 1536, "output_length": 6, "hash_ids": [7, 8, 10]}
{"timestamp": 3000, "input_length": 600, "output_length": 7, "hash_ids": [7, 11]}
{"timestamp": 3000, "input_length": 700, "output_length": 7}
`

// Blocks of one number are the same tokens or words wherever they stand, and those of different numbers differ from their first on.
func TestTraceBlocks(t *testing.T) {
	c := Config{Spec: bench.Workload{Path: file(t, mooncakeRows)}, Maker: ids, Seed: 3}
	for _, m := range []Maker{ids, text} {
		c.Maker = m
		reqs := take(t, Mooncake(), c, 8)
		tokens := func(q bench.Request) []string {
			if q.Prompt != "" {
				return strings.Fields(q.Prompt)
			}
			return strings.Fields(strings.Trim(fmt.Sprint(q.Tokens), "[]"))
		}
		short := 0
		if _, is := m.(Text); is {
			short = text.Overhead
		}
		a, b, d, e, again := tokens(reqs[0]), tokens(reqs[1]), tokens(reqs[2]), tokens(reqs[3]), tokens(reqs[4])
		if len(a) != 1030-short || len(b) != 1536-short || len(d) != 600-short || len(e) != 700-short {
			t.Fatalf("lengths %d, %d, %d, %d", len(a), len(b), len(d), len(e))
		}
		if n := alike(a, b); n != min(1024, len(a)) {
			t.Errorf("requests 0 and 1 share %d tokens, want 1024", n)
		}
		if n := alike(a, d); n != 512 {
			t.Errorf("requests 0 and 2 share %d tokens, want 512", n)
		}
		if alike(a, e) != 0 || alike(a, again) != 0 {
			t.Error("a request without blocks, or of the second round, begins as another")
		}
		c.Phase = bench.Warmup
		for _, w := range take(t, Mooncake(), c, 4) {
			for _, q := range reqs {
				if alike(tokens(w), tokens(q)) > 0 {
					t.Error("a warm-up prompt begins as a measured one")
				}
			}
		}
		c.Phase = ""
	}
}

func alike(a, b []string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Requests of one tick are spread over it and keep their order; the last ones of a tick never pass the next tick.
func TestTickSpread(t *testing.T) {
	c := Config{Spec: bench.Workload{Path: file(t, mooncakeRows), TickSpread: 10 * time.Second}, Seed: 3}
	got := times(t, Mooncake(), c)
	if !slices.IsSorted(got) || got[1] >= 3*time.Second || got[2] < 3*time.Second || got[3] >= 13*time.Second || got[0] == got[1] || got[2] == got[3] {
		t.Error(got)
	}
	if again := times(t, Mooncake(), c); !slices.Equal(got, again) {
		t.Error("the same seed gives other times")
	}
}

func TestTraceForms(t *testing.T) {
	for _, c := range []struct {
		trace Trace
		body  string
		want  string
	}{
		{BurstGPT(), "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n118.5,GPT-4,417,276,693,API log\n",
			"0s 472/18 ChatGPT; 1m53.5s 417/276 GPT-4; 2 rows of 3, 1 skipped (1 a request that failed (no response tokens), first in line 3); timestamps in s (the format's own)"},
		{BurstGPT(), "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n1,a,0.5,ChatGPT,10,5,15,Conversation log\r\n",
			"0s 10/5 ChatGPT; 1 rows; timestamps in s (the format's own)"},
		{Azure(), "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\nx,1,2\n2023-11-16 18:15:51,0,109\n2023-11-16 18:15:51,7\n",
			"0s 374/44 ; 4.314579s 396/109 ; 2 rows of 5, 3 skipped (1 TIMESTAMP is x, not a date such as 2023-11-16 18:15:46.6805900, first in line 4; 1 the input length is 0, first in line 5; 1 there are 2 columns, not 3, first in line 6)"},
		{Azure(), "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 00:00:00.017335+00:00,2399,6\n", "0s 2162/5 ; 7.405ms 2399/6 ; 2 rows"},
		{Bailian(), `{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 32, "output_length": 521, "type": "text", "turn": 1, "hash_ids": [1089, 1090]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 62.5, "input_length": 35, "output_length": 5, "type": "search", "turn": 2, "hash_ids": [1089, 1090, 1091]}
{"chat_id": 161, "parent_chat_id": -1, "timestamp": 63, "input_length": 16, "output_length": 5, "type": "text", "turn": 1, "hash_ids": [1, 2]}
`, "0s 32/521 text; 1.386s 35/5 search; 2 rows of 3, 1 skipped (1 hash_ids names more blocks of 16 tokens than the input length has, first in line 3); timestamps in s (the format's own)"},
	} {
		var rows bench.Rows
		cfg := Config{Spec: bench.Workload{Path: file(t, c.body)}, Maker: ids, Rows: &rows}
		at := times(t, c.trace, cfg)
		got := ""
		for i, q := range take(t, c.trace, cfg, len(at)) {
			got += fmt.Sprintf("%v %d/%d %s; ", at[i], q.ISL, q.OSL, q.Class)
		}
		if got += Describe(&rows); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.trace.Name(), got, c.want)
		}
		cfg.Spec.Strict = true
		if _, err := c.trace.Open(cfg); (err != nil) != (len(rows.Skipped) > 0) || err != nil && (fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), fmt.Sprintf(".jsonl:%d: ", rows.Skipped[0].Line))) {
			t.Errorf("%s, strict: %v", c.trace.Name(), err)
		}
	}
}

// Seconds are never taken for milliseconds, nor the other way: a rate that no trace has is asked about.
func TestTraceUnit(t *testing.T) {
	trace := func(step float64) string {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, `{"timestamp":%g,"input_length":5,"output_length":5,"hash_ids":[1]}`+"\n", float64(i)*step)
		}
		return file(t, b.String())
	}
	for _, c := range []struct {
		d       Trace
		step    float64
		unit    string
		refused string
		span    time.Duration
	}{
		{Mooncake(), 300, "", "", 59700 * time.Millisecond},
		{Mooncake(), 0.3, "", "are they in s?", 0},
		{Mooncake(), 0.3, "s", "", 59700 * time.Millisecond},
		{Mooncake(), 0.3, "ms", "", 59700 * time.Microsecond},
		{Bailian(), 0.3, "", "", 59700 * time.Millisecond},
		{Bailian(), 300, "", "are they in ms?", 0},
		{Bailian(), 300, "ms", "", 59700 * time.Millisecond},
		{Mooncake(), 1, "min", "--time-unit is s, ms or us", 0},
	} {
		var rows bench.Rows
		_, err := c.d.Open(Config{Spec: bench.Workload{Path: trace(c.step), TimeUnit: c.unit}, Maker: ids, Rows: &rows})
		if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) || rows.Span != c.span {
			t.Errorf("%s, %v, %q: %v, span %v", c.d.Name(), c.step, c.unit, err, rows.Span)
		}
	}
}

// The same seed gives the same prompts, in every version.
func TestTraceGolden(t *testing.T) {
	for _, c := range []struct {
		m    Maker
		want uint64
	}{{text, 0x33fc57b8c8a95428}, {ids, 0xdff546e8b9d7af00}} {
		h := fnv.New64a()
		for _, q := range take(t, Mooncake(), Config{Spec: bench.Workload{Path: file(t, mooncakeRows)}, Seed: 7, Maker: c.m}, 8) {
			fmt.Fprintf(h, "%q %v %d %d\n", q.Prompt, q.Tokens, q.ISL, q.OSL)
		}
		if h.Sum64() != c.want {
			t.Errorf("%s: hash %#x, want %#x", c.m.Source(), h.Sum64(), c.want)
		}
	}
}

// What is no trace is refused in one line with the place.
func TestBadTraces(t *testing.T) {
	for _, c := range []struct {
		d          Trace
		body, want string
	}{
		{Mooncake(), "", "holds no request"},
		{Mooncake(), "nonsense\n", ":1: the line is no JSON object"},
		{Mooncake(), `{"timestamp":1`, ":1: the line is no JSON (byte 15)"},
		{Mooncake(), `{"timestamp":"x","input_length":1,"output_length":1}`, `timestamp is the string "x", not a number`},
		{Mooncake(), `{"input_length":1,"output_length":1}`, "there is no timestamp"},
		{Mooncake(), `{"timestamp":1,"input_length":-1,"output_length":1}`, "input_length is -1, must be"},
		{Mooncake(), `{"timestamp":1,"input_length":1.5,"output_length":1}`, "input_length is 1.5, not a whole number"},
		{Mooncake(), `{"timestamp":1,"input_length":1,"output_length":1,"hash_ids":[1,"a"]}`, "hash_ids is no list of whole numbers"},
		{Mooncake(), `{"timestamp":1e30,"input_length":1,"output_length":1,"hash_ids":[1]}`, "the timestamp is too large"},
		{Azure(), "a,b,c\n1,2,3\n", ":1: the heading has no column TIMESTAMP (a,b,c)"},
		{Azure(), "TIMESTAMP,ContextTokens,GeneratedTokens\n", "holds no request"},
	} {
		_, err := c.d.Open(Config{Spec: bench.Workload{Path: file(t, c.body)}})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || fault.HintOf(err) == "" {
			t.Errorf("%q: %v, hint %q", c.body, err, fault.HintOf(err))
		}
	}
	for _, w := range []bench.Workload{{}, {Path: "/no/such/file"}, {Path: "x", ISL: "5"}, {Path: "x", Prompt: "a"}} {
		if _, err := Mooncake().Open(Config{Spec: w}); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// Requests that are passed over do not change the blocks of those behind them.
func TestTraceSkip(t *testing.T) {
	c := Config{Spec: bench.Workload{Path: file(t, mooncakeRows)}, Maker: ids, Seed: 3}
	all := take(t, Mooncake(), c, 3)
	c.Skip = 2
	if got := take(t, Mooncake(), c, 1)[0]; !slices.Equal(got.Tokens, all[2].Tokens) || got.OSL != all[2].OSL {
		t.Error("the third request is another one where two are passed over")
	}
}
