package workload

import (
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

func servegen(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Each window has its rate, each client its lengths, and all of it comes in the order of time, the same again.
func TestServeGen(t *testing.T) {
	dir := servegen(t, map[string]string{
		"chunk-0-trace.csv":    "0,5,1,Gamma,0.25,0.8\n600,0,0,,0,0\n1200,10,1,Weibull,2,0.1\n",
		"chunk-0-dataset.json": `{"0":{"input_tokens":"{100: 0.5, 200: 0.5}","output_tokens":"{10: 1.0}"},"1200":{"input_tokens":"{300: 1}","output_tokens":"{20: 1.0}"}}`,
		"chunk-1-trace.csv":    "0,1,1,,0,0\n600,1,1,,0,0\n",
		"chunk-1-dataset.json": `{"0":{"input_tokens":"{7: 1}","output_tokens":"{8: 1}"}}`,
	})
	var rows bench.Rows
	c := Config{Spec: bench.Workload{Path: dir}, Seed: 3, Maker: joinless{}, Rows: &rows, Phase: bench.Measure}
	at := times(t, ServeGen{}, c)
	if !slices.IsSorted(at) || at[0] != 0 || !slices.Equal(at, times(t, ServeGen{}, c)) {
		t.Fatal("the times are not sorted, or not the same again")
	}
	count := map[string]int{}
	for i, q := range take(t, ServeGen{}, c, len(at)) {
		w := int(at[i] / (600 * time.Second))
		key := fmt.Sprintf("%s/%d %d", q.Class, w, q.OSL)
		if q.Class == "chunk-0" && w == 0 {
			key = fmt.Sprintf("%s in %d", key, q.ISL)
		}
		count[key]++
	}
	near := func(key string, want float64, sd float64) {
		if got := float64(count[key]); math.Abs(got-want) > 5*sd+3 {
			t.Errorf("%s: %v requests, want about %v; all: %v", key, got, want, count)
		}
	}
	near("chunk-0/0 10 in 100", 1500, 2*math.Sqrt(3000))
	near("chunk-0/0 10 in 200", 1500, 2*math.Sqrt(3000))
	near("chunk-0/1 10", 0, 0)
	near("chunk-0/2 20", 6000, math.Sqrt(6000))
	near("chunk-1/0 8", 600, math.Sqrt(600))
	if rows.Kept != 5 || !strings.Contains(Describe(&rows), "2 clients") {
		t.Error(Describe(&rows))
	}
	one := c
	one.Spec.Path = filepath.Join(dir, "chunk-1-trace.csv")
	h := fnv.New64a()
	for i, d := range times(t, ServeGen{}, one) {
		if i < 100 {
			fmt.Fprintln(h, d)
		}
	}
	one.Maker = ids
	for _, q := range take(t, ServeGen{}, one, 100) {
		fmt.Fprintln(h, q.Tokens, q.OSL)
	}
	if h.Sum64() != 0x137cf230bfe64d25 {
		t.Errorf("hash %#x", h.Sum64())
	}
}

// joinless makes no prompts.
type joinless struct{ IDs }

func (joinless) Offset(*rng.Stream) int { return 0 }

func (joinless) Make(*bench.Request, int, int, *rng.Stream) {}

func TestBadServeGen(t *testing.T) {
	good := `{"0":{"input_tokens":"{7: 1}","output_tokens":"{8: 1}"}}`
	for _, c := range []struct{ trace, lengths, want string }{
		{"0,1\n", good, "-trace.csv:1: there are 2 columns, not 6"},
		{"0,x,1,,0,0\n", good, "the rate is x, not a number"},
		{"0,1,1,Pareto,0,0\n", good, "the law Pareto is not known"},
		{"0,1,1,Gamma,0,0\n", good, "the shape is 0"},
		{"0,1,1,,0,0\n", `[]`, "no JSON object of windows"},
		{"0,1,1,,0,0\n", `{"x":{}}`, "does not begin with seconds"},
		{"0,1,1,,0,0\n", `{"0":{"input_tokens":"{a: 1}"}}`, "a: 1 is no length with its share"},
		{"0,1,1,,0,0\n", `{"0":{"input_tokens":"{7: 1}"}}`, "has no window with input_tokens and output_tokens"},
		{"", good, "has no window"},
	} {
		dir := servegen(t, map[string]string{"chunk-0-trace.csv": c.trace, "chunk-0-dataset.json": c.lengths})
		_, err := (ServeGen{}).Open(Config{Spec: bench.Workload{Path: dir, Strict: true}})
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.want) || fault.HintOf(err) == "" {
			t.Errorf("%q, %s: %v", c.trace, c.lengths, err)
		}
	}
	if _, err := (ServeGen{}).Open(Config{Spec: bench.Workload{Path: t.TempDir()}}); fault.CodeOf(err) != fault.Usage {
		t.Error(err)
	}
}
