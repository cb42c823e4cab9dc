package report

import (
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

func TestDeviationWords(t *testing.T) {
	for _, c := range []struct {
		mean, worst opt.Of[float64]
		want        string
	}{
		{opt.Of[float64]{}, opt.Of[float64]{}, ""},
		{opt.Some(0.0), opt.Some(0.0), "all as asked"},
		{opt.Some(0.014), opt.Some(0.014), "off by 1.4 %"},
		{opt.Some(0.014), opt.Some(0.2), "off by 1.4 % on average and 20.0 % at most"},
	} {
		if got := deviationWords(bench.TokenReport{ISLDeviation: c.mean, ISLWorst: c.worst}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestSourceWords(t *testing.T) {
	for _, c := range []struct {
		from map[bench.Source]int
		want string
	}{
		{nil, ""},
		{map[bench.Source]int{bench.FromUsage: 200}, "usage"},
		{map[bench.Source]int{bench.FromEstimate: 3, bench.FromUsage: 1197}, "usage (1,197), estimate (3)"},
	} {
		if got := sourceWords(c.from); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
