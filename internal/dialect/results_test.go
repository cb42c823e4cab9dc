package dialect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

func TestVector(t *testing.T) {
	for raw, want := range map[string]int{
		`[0.25,-0.5,0.125,0.0]`:       4,
		`[ 1e-7 , -2.5E+3,` + "\n3]":  3,
		`[5]`:                         1,
		`"AACAPgAAAL8AAAA+AAAAAA=="`:  4,
		`"AACAPgAAAL8AAAA+\/AAAAA=="`: 4, // an escaped slash
	} {
		if n, err := Vector(json.RawMessage(raw)); n != want || err != nil {
			t.Errorf("%s has %d numbers (%v), want %d", raw, n, err, want)
		}
	}
	for raw, want := range map[string]string{
		`[]`:                                 "empty",
		`[ ]`:                                "empty",
		`[0.5,null]`:                         "no number at place 1: \"null",
		`[[0.5],[1]]`:                        "no number at place 0",
		`[0.5,"1"]`:                          "no number at place 1",
		`[1,1e39]`:                           "no finite number at place 1", // beyond a 32-bit float
		`[` + strings.Repeat("9", 400) + `]`: "no finite number at place 0",
		`null`:                               "no list",
		`{}`:                                 "no list",
		`""`:                                 "empty",
		`"AACAPgA="`:                         "no 32-bit floats",
		`"*"`:                                "no base64",
		`"AADAfwAAgD8="`:                     "no finite number at place 0: NaN",
		`"AACAPwAAgP8="`:                     "no finite number at place 1: -Inf",
	} {
		if n, err := Vector(json.RawMessage(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s gives %d, %v; want %q", raw, n, err, want)
		}
	}
}

// answering is a codec whose answers are what a test says.
type answering struct{ delta Delta }

func (a answering) Encode(Endpoint, *bench.Request, *Options) (wire.Call, error) {
	return wire.Call{}, nil
}
func (a answering) Decoder(Endpoint) Decoder       { return a }
func (a answering) Event(wire.Event, *Delta) error { return nil }
func (a answering) Body(_ []byte, d *Delta) error  { *d = a.delta; return nil }

// An answer is right when each input has its result; a list is no stream, whatever was asked.
func TestResults(t *testing.T) {
	three := &bench.Request{Inputs: []string{"a", "b", "c"}, Query: "q"}
	first := &bench.Request{Inputs: []string{"a", "b", "c"}, Query: "q", Extra: json.RawMessage(`{"top_n":2}`)}
	for _, c := range []struct {
		task    bench.Task
		req     *bench.Request
		results []int
		want    bench.Outcome
		words   string
	}{
		{bench.Embed, three, []int{0, 1, 2}, bench.OK, ""},
		{bench.Embed, three, []int{2, 1, 0}, bench.OK, ""},
		{bench.Embed, three, []int{0, 1}, bench.Malformed, "2 vectors came for 3 inputs, not 3"},
		{bench.Embed, three, nil, bench.Malformed, "0 vectors came"},
		{bench.Embed, three, []int{0, 1, 2, 3}, bench.Malformed, "4 vectors came"},
		{bench.Embed, three, []int{0, 1, 1}, bench.Malformed, "vector 2 is of input 1, which has one already"},
		{bench.Embed, three, []int{0, 1, 3}, bench.Malformed, "vector 2 is of input 3, of 3"},
		{bench.Embed, three, []int{0, -1, 2}, bench.Malformed, "vector 1 is of input -1"},
		{bench.Rerank, three, []int{2, 0, 1}, bench.OK, ""},
		{bench.Rerank, three, []int{2, 0}, bench.Malformed, "2 scores came for 3 inputs, not 3"},
		{bench.Rerank, first, []int{2, 0}, bench.OK, ""},
		{bench.Rerank, first, []int{2, 0, 1}, bench.Malformed, "3 scores came for 3 inputs, not 2"},
	} {
		ep := Endpoint{Task: c.task, Codec: answering{delta: Delta{Results: c.results, Dimensions: 4, Prompt: opt.Some(9), Native: true}}}
		body := []byte(`{"list":[]}`)
		tr := &wire.Transcript{Status: 200, Sent: opt.Some(time.Duration(0)), Ended: opt.Some(7 * time.Millisecond), Raw: body, Bytes: len(body),
			Marks: []wire.Mark{{End: len(body), At: 7 * time.Millisecond}}}
		r := NewFold(ep, c.req, &Options{}).End(tr)
		if r.Outcome != c.want || !strings.Contains(r.Error, c.words) {
			t.Errorf("%s %v: %s %q, want %s %q", c.task, c.results, r.Outcome, r.Error, c.want, c.words)
		}
		if r.Inputs != 3 || r.First.Defined() || r.OSL.Defined() || len(r.Flags) > 0 || r.ISL.Or(0) != 9 || r.ISLSource != bench.FromCount {
			t.Errorf("%s %v: %+v", c.task, c.results, r)
		}
		if r.Outcome == bench.OK && (r.Last.Or(0) != 7*time.Millisecond || r.Dimensions != 4) {
			t.Errorf("%s %v: last %v, %d dimensions", c.task, c.results, r.Last, r.Dimensions)
		}
	}
}

func BenchmarkVector(b *testing.B) {
	raw := json.RawMessage("[" + strings.Repeat("-0.012345678,", 4095) + "0.5]")
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		Vector(raw)
	}
}
