package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prony-bench/prony/internal/bench"
)

// failing is a run whose requests all failed, each with its words.
func failing(outcome bench.Outcome, words ...string) *Context {
	m := &bench.Manifest{}
	var records []bench.Record
	for i, w := range words {
		records = append(records, bench.Record{ID: i, Phase: bench.Measure, Outcome: outcome, Status: 500, Error: w})
	}
	return NewContext(m, records)
}

// Ids, ports, times and other words with digits tell no failures apart; what differs is left open, what does not is told.
func TestErrorsAreGroupedByWords(t *testing.T) {
	var words []string
	for i := range 1000 {
		words = append(words,
			fmt.Sprintf("request req-%08x-ab of model qwen3-8b failed after 30 s", i*7919),
			fmt.Sprintf("read tcp 127.0.0.1:%d->127.0.0.1:8000: connection reset", 30_000+i),
			fmt.Sprintf(`{"error":{"id":"%08x-dead-4bee-8bad-%012d","message":"overloaded","code":503}}`, i, i))
	}
	words = append(words, "overloaded", "too many requests")
	got, others := failing(bench.ServerError, words...).errors()
	want := []bench.ErrorCount{
		{Outcome: bench.ServerError, Status: 500, N: 1000, Text: "read tcp 127.0.0.1:…->127.0.0.1:8000: connection reset"},
		{Outcome: bench.ServerError, Status: 500, N: 1000, Text: "request … of model qwen3-8b failed after 30 s"},
		{Outcome: bench.ServerError, Status: 500, N: 1000, Text: `{"error":{"id":"…","message":"overloaded","code":503}}`},
		{Outcome: bench.ServerError, Status: 500, N: 1, Text: "overloaded"},
		{Outcome: bench.ServerError, Status: 500, N: 1, Text: "too many requests"},
	}
	if d := cmp.Diff(want, got); d != "" || others != 0 {
		t.Error(others, d)
	}
}

// The number of groups is bounded; every failure with words is in a group or counted as another.
func TestErrorGroupsAreBounded(t *testing.T) {
	letters := func(i int) string {
		return strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprintf("%06d", i))
	}
	var words []string
	for i := range 3 * groupsMost {
		words = append(words, letters(i))
	}
	words = append(words, letters(0), letters(0), "")
	got, others := failing(bench.Timeout, words...).errors()
	listed := 0
	for _, e := range got {
		listed += e.N
	}
	if len(got) != maxErrors || got[0].N != 3 || listed+others != 3*groupsMost+2 {
		t.Errorf("%d groups, the greatest of %d, %d listed and %d others", len(got), got[0].N, listed, others)
	}
	long, _ := failing(bench.Timeout, strings.Repeat("x", 3*groupedText)).errors()
	if len(long[0].Text) != groupedText {
		t.Errorf("a text of %d bytes", len(long[0].Text))
	}
}
