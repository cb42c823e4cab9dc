package metrics

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prony-bench/prony/internal/bench"
)

// mostClasses is how many classes are told apart; the others are told together.
const mostClasses = 50

const otherClasses = "other classes"

// classes describes the requests of each class by itself, and the first turns of conversations apart from later ones.
func (x *Context) classes(noInterval string) []bench.ClassResult {
	var out []bench.ClassResult
	sizes := map[string]int{}
	later := false
	for _, r := range x.Records {
		sizes[r.Class]++
		later = later || r.Turn > 0
	}
	if len(sizes) > 1 || len(sizes) == 1 && sizes[""] == 0 {
		names := slices.SortedFunc(maps.Keys(sizes), func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
		shown := map[string]bool{}
		for _, n := range names[:min(len(names), mostClasses)] {
			shown[n] = true
			out = append(out, x.class("class", n, noInterval, func(r *bench.Record) bool { return r.Class == n }))
		}
		if len(names) > mostClasses {
			out = append(out, x.class("class", otherClasses, noInterval, func(r *bench.Record) bool { return !shown[r.Class] }))
		}
	}
	if later && x.Spec.Load.Shape != bench.Users { // whose requests are numbered, and no conversations
		out = append(out, x.class("turn", "first", noInterval, func(r *bench.Record) bool { return r.Turn == 0 }),
			x.class("turn", "later", noInterval, func(r *bench.Record) bool { return r.Turn > 0 }))
	}
	return out
}

// class describes some of the requests.
func (x *Context) class(of, name, noInterval string, is func(*bench.Record) bool) bench.ClassResult {
	part := &Context{Manifest: x.Manifest, Spec: x.Spec, Counts: bench.Counts{ByOutcome: map[bench.Outcome]int{}}}
	for _, r := range x.Records {
		if is(r) {
			part.Records = append(part.Records, r)
		}
	}
	part.count()
	_, latency := part.latencySeries()
	reason := cmp.Or(noInterval, driftReason(trendWord(latency)))
	c := bench.ClassResult{Of: of, Name: name, Sent: part.Counts.Sent, OK: part.Counts.OK, Failed: part.Counts.Failed}
	for _, d := range Table() {
		if !d.For.Has(x.Spec.Target.Task) || d.Sample == nil {
			continue
		}
		switch d.Key {
		case "ttft_ms":
			c.TTFT = part.describe(d, reason)
		case "tpot_ms":
			c.TPOT = part.describe(d, reason)
		case "e2el_ms":
			c.E2EL = part.describe(d, reason)
		case "isl":
			c.ISL = part.describe(d, reason)
		case "osl":
			c.OSL = part.describe(d, reason)
		}
	}
	return c
}
