package run

import (
	"context"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/token"
	"github.com/prony-bench/prony/internal/workload"
)

// Prompts have the asked length by the tokenizer, that of the server's own tokens taken off, and answers are counted by it where the
// server tells nothing.
func TestTokenizer(t *testing.T) {
	tok, err := token.Builtin("cl100k")
	if err != nil {
		t.Fatal(err)
	}
	virtual(t, exact(10*ms, 2*ms), func(w *world) {
		w.deps.Tokenizer = func(context.Context, string) (*token.Tokenizer, error) { return tok, nil }
		w.spec.Workload.Tokenizer, w.spec.Workload.ISL = "builtin:cl100k", "uniform:20,400"
		w.spec.Target.Usage, w.spec.Keep.Text = false, true
		plan, err := Prepare(context.Background(), w.spec, w.deps, false)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Spec.Workload.Probes != 2 || !strings.Contains(plan.Maker.Source(), "text of exact length by the tokenizer builtin:cl100k (9 tokens of the server's own)") {
			t.Error(plan.Spec.Workload.Probes, plan.Maker.Source())
		}
		var q bench.Request
		for n := 20; n < 1000; n += 97 {
			plan.Maker.Make(&q, n, n, rng.New(1, "workload"))
			if got := tok.Count(q.Prompt) + plan.Maker.(workload.Text).Overhead; got != n {
				t.Errorf("%d tokens in place of %d", got, n)
			}
		}
		for _, r := range w.do().Records {
			if r.OSLSource != bench.FromTokenizer || r.OSL.Or(0) != tok.Count(r.Text) || r.Has(bench.TokenCountEstimated) {
				t.Errorf("%v from %s, and %d in %q", r.OSL, r.OSLSource, tok.Count(r.Text), r.Text)
			}
		}
	})
}
