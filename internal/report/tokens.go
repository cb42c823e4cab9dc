package report

import (
	"strings"

	"github.com/prony-bench/prony/internal/bench"
)

// tokens fills in how the token counts fit what was asked, and where they come from.
func (b *builder) tokens(m *Model) {
	s, w := b.sum, b.man.Spec.Workload
	var f facts
	t := s.Tokens
	delivered := func(key string) string {
		if d := s.Metrics.Dist(key); d != nil {
			return number(d.Mean) + " delivered"
		}
		return "delivered: not known"
	}
	if s.Requests.OK > 0 {
		f.add("input tokens", joined(", ", prefixed(number, t.ISLAskedMean, " asked"), delivered("isl"), deviationWords(t), prefix("counted by ", sourceWords(t.ISLSource))))
		if n := s.Metrics.Dist("inputs"); n != nil {
			f.add("inputs", joined(", ", amount(n.Mean)+" a request", prefix("vectors of ", b.dimensions())))
		}
		f.addIf(b.generates(), "output tokens", joined(", ", prefixed(number, t.OSLAskedMean, " asked"), delivered("osl"), worded(w.ForceLength, "length forced"),
			worded(t.LengthLimited.Or(0) > 0 && !w.ForceLength, prefixed(percent, t.LengthLimited, " cut off by the limit")), prefix("counted by ", sourceWords(t.OSLSource))))
		if o := s.Form; o != nil {
			f.add("answers as JSON", joined(", ", count(o.Valid)+" valid", worded(o.Invalid > 0, count(o.Invalid)+" not"), worded(o.CutOff > 0, count(o.CutOff)+" cut off by the limit")))
		}
		f.add("prefix cache", prefixed(percent, t.CachedShare, " of the prompt tokens came from it"))
	}
	f.add("prompts", joined(", ", joined(": ", w.Dataset, w.PromptSource), "seed "+b.seedWords()))
	m.Tokens = f
}

// dimensions are those of the vectors that came.
func (b *builder) dimensions() string {
	d := b.sum.Metrics.Dist("dimensions")
	switch {
	case d == nil:
		return ""
	case d.Min < d.Max:
		return amount(d.Min) + " to " + amount(d.Max) + " dimensions"
	}
	return amount(d.Mean) + " dimensions"
}

// amount writes a mean of whole numbers.
func amount(v float64) string {
	if n := int(v); float64(n) == v {
		return count(n)
	}
	return number(v)
}

// deviationWords says how far prompt lengths are off.
func deviationWords(t bench.TokenReport) string {
	mean, worst := prefixed(percent, t.ISLDeviation, ""), prefixed(percent, t.ISLWorst, "")
	switch {
	case mean == "":
		return ""
	case t.ISLWorst.Or(0) == 0:
		return "all as asked"
	case mean == worst:
		return "off by " + mean
	}
	return "off by " + mean + " on average and " + worst + " at most"
}

// sourceWords lists the sources of counts, the most trusted first; the number of requests only where there are several.
func sourceWords(from map[bench.Source]int) string {
	var parts []string
	for _, src := range []bench.Source{bench.FromIDs, bench.FromCount, bench.FromUsage, bench.FromTokenizer, bench.FromEstimate} {
		switch n := from[src]; {
		case n > 0 && len(from) == 1:
			parts = append(parts, string(src))
		case n > 0:
			parts = append(parts, string(src)+" ("+count(n)+")")
		}
	}
	return strings.Join(parts, ", ")
}
