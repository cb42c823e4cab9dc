package openai

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// chunks makes a stream of chunks of completions, each given by its choices and what stands beside them.
func chunks(events ...string) *wire.Transcript {
	var b strings.Builder
	for _, e := range events {
		choices, rest, _ := strings.Cut(e, "|")
		fmt.Fprintf(&b, "data: {\"choices\":[%s]%s}\n\n", choices, rest)
	}
	b.WriteString("data: [DONE]\n\n")
	return timed([]byte(b.String()))
}

// Of what came before the second choice it is known whose it was.
func TestChoiceOfEvents(t *testing.T) {
	r := fold("/v1/completions", true, 0, 0, nil, chunks(`{"index":4,"text":"a"}`, `{"index":4,"text":"b"}`, `{"index":2,"text":"c","finish_reason":"stop"}`,
		`{"index":4,"text":"","finish_reason":"length"}`))
	if r.Outcome != bench.OK || r.Choices != 2 || fmt.Sprint(r.EventChoice) != "[4 4 2]" || r.Finish != bench.FinishLength {
		t.Errorf("%s %d choices, events of %v, finish %s", r.Outcome, r.Choices, r.EventChoice, r.Finish)
	}
	// the second choice gives no output
	r = fold("/v1/completions", true, 0, 0, nil, chunks(`{"index":0,"text":"a"}`, `{"index":1,"text":"","finish_reason":"stop"},{"index":0,"text":"","finish_reason":"stop"}`))
	if r.Choices != 2 || fmt.Sprint(r.EventChoice) != "[0]" {
		t.Errorf("%d choices, events of %v", r.Choices, r.EventChoice)
	}
	if r = fold("/v1/completions", true, 0, 0, nil, chunks(`{"text":"a","finish_reason":"stop"}`)); r.Choices != 0 || r.EventChoice != nil {
		t.Errorf("%d choices, events of %v", r.Choices, r.EventChoice)
	}
}

// The tokens of events are told only when each event tells them.
func TestTokensOfEvents(t *testing.T) {
	total := func(n int) string { return fmt.Sprintf(`{"text":"a"}|,"usage":{"completion_tokens":%d}`, n) }
	end := `{"text":"","finish_reason":"stop"}`
	for _, c := range []struct {
		name   string
		events []string
		want   string
		osl    int
		source bench.Source
	}{
		{"totals", []string{total(1), total(3), total(4), end}, "[1 2 1]", 4, bench.FromCount},
		{"a total missing in the middle", []string{total(1), `{"text":"a"}`, total(4), end}, "[]", 4, bench.FromCount},
		{"a total missing at the start", []string{`{"text":"a"}`, total(2), total(4), end}, "[]", 4, bench.FromCount},
		{"a total that stands still", []string{total(1), total(1), total(4), end}, "[]", 4, bench.FromCount},
		{"zeros", []string{total(0), total(0), end + `|,"usage":{"completion_tokens":2}`}, "[]", 2, bench.FromUsage},
		{"ids", []string{`{"text":"a","token_ids":[1]}`, `{"text":"","token_ids":[2,3]}`, end}, "[1 2]", 3, bench.FromIDs},
		{"ids missing", []string{`{"text":"a","token_ids":[1]}`, `{"text":"b"}`, end}, "[]", 2, bench.FromEstimate},
	} {
		r := fold("/v1/completions", true, 0, 0, nil, chunks(c.events...))
		if r.Outcome != bench.OK || fmt.Sprint(r.EventTokens) != c.want || r.OSL.Or(-1) != c.osl || r.OSLSource != c.source {
			t.Errorf("%s: %s, tokens %v, osl %v from %s", c.name, r.Outcome, r.EventTokens, r.OSL, r.OSLSource)
		}
	}
}

// A stream whose events come in bunches is flagged from 8 gaps, half of them inside a read, on.
func TestClumped(t *testing.T) {
	for _, c := range []struct {
		reads   []int // events of each
		clumped bool
	}{{[]int{1, 1, 1, 1, 1, 1, 1, 1, 1}, false}, {[]int{5, 1, 1, 1, 1}, true}, {[]int{4, 1, 1, 1, 1, 1}, false}, {[]int{2, 2, 2, 3}, true}, {[]int{2, 2, 2, 2}, false}} {
		tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Sent: opt.Some(time.Duration(0))}
		for i, n := range c.reads {
			tr.Raw = append(tr.Raw, strings.Repeat("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n", n)...)
			tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: time.Duration(i) * 10 * time.Millisecond})
		}
		r := fold("/v1/completions", true, 0, 0, nil, tr)
		if r.Outcome != bench.OK || r.Has(bench.Clumped) != c.clumped || r.Has(bench.AllAtOnce) {
			t.Errorf("%v: %s, flags %v", c.reads, r.Outcome, r.Flags)
		}
	}
}

// A quick decoder is used for all of a common stream but its terminator, and nothing is misread.
func TestTally(t *testing.T) {
	tr := read(long(sseEvents(t, streams[0].file), 200), 1, true)
	d := engine("vllm")
	f := dialect.NewFold(d.Endpoints()[0], &bench.Request{}, &dialect.Options{Stream: true})
	f.End(tr)
	if got, want := f.Tally(), (dialect.Tally{Quick: 199, Checked: 4, Strict: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Two choices whose events come together are as smooth as one, and their lengths are those asked of each.
func TestChoicesTogether(t *testing.T) {
	tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Sent: opt.Some(time.Duration(0))}
	event := func(choice int, finish string) {
		tr.Raw = append(tr.Raw, fmt.Sprintf("data: {\"choices\":[{\"index\":%d,\"text\":\"a\",\"finish_reason\":%s}],\"usage\":{\"completion_tokens\":20}}\n\n", choice, finish)...)
	}
	for i := range 10 {
		finish := map[bool]string{true: `"length"`, false: "null"}[i == 9]
		event(0, finish)
		event(1, finish)
		tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: time.Duration(i) * 10 * time.Millisecond})
	}
	r := fold("/v1/completions", true, 0, 10, nil, tr)
	if r.Outcome != bench.OK || r.Choices != 2 || r.Has(bench.Clumped) || r.Has(bench.AllAtOnce) || r.Has(bench.OutputLonger) || r.Merged != 20 {
		t.Errorf("%s, %d choices, %d merged, flags %v", r.Outcome, r.Choices, r.Merged, r.Flags)
	}
}

// Events that share a read are counted once each.
func TestMerged(t *testing.T) {
	tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Sent: opt.Some(time.Duration(0))}
	for i, n := range []int{1, 3, 1, 2, 2, 1} {
		tr.Raw = append(tr.Raw, strings.Repeat("data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n", n)...)
		tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: time.Duration(i) * 10 * time.Millisecond})
	}
	if r := fold("/v1/completions", true, 0, 0, nil, tr); r.Merged != 7 || r.OutEvents != 10 {
		t.Errorf("%d of %d merged", r.Merged, r.OutEvents)
	}
}

// Counts that cannot be are none: negative ones, and zero beside output. One below the number of events is flagged.
func TestImpossibleCounts(t *testing.T) {
	for _, c := range []struct {
		usage  string
		osl    int
		source bench.Source
		fewer  bool
	}{
		{`{"prompt_tokens":-8,"completion_tokens":-2980}`, 3, bench.FromEstimate, false},
		{`{"prompt_tokens":5,"completion_tokens":0}`, 3, bench.FromEstimate, false},
		{`{"prompt_tokens":5,"completion_tokens":2}`, 2, bench.FromUsage, true},
		{`{"prompt_tokens":5,"completion_tokens":3}`, 3, bench.FromUsage, false},
	} {
		r := fold("/v1/completions", true, 0, 0, nil, chunks(`{"text":"a"}`, `{"text":"b"}`, `{"text":"c"}`, `{"text":"","finish_reason":"stop"}|,"usage":`+c.usage))
		if r.Outcome != bench.OK || r.OSL.Or(-1) != c.osl || r.OSLSource != c.source || r.Has(bench.FewerTokensThanEvents) != c.fewer || r.ISL.Or(0) < 0 {
			t.Errorf("%s: osl %v from %s, isl %v, flags %v", c.usage, r.OSL, r.OSLSource, r.ISL, r.Flags)
		}
	}
}
