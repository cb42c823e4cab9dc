package report

import (
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
)

// Notice is a caveat, or several of one kind in one line.
type Notice struct {
	Severity bench.Severity
	Code     string
	Text     string
	Remedy   string
}

// Grave tells whether it bears on the verdict.
func (n Notice) Grave() bool {
	return n.Severity == bench.SeverityVoid || n.Severity == bench.SeverityWarn
}

// Sign is the mark before a notice: ! bears on the verdict, . does not.
func (n Notice) Sign() string {
	if n.Grave() {
		return "!"
	}
	return "."
}

// severities from the gravest down.
var severities = []bench.Severity{bench.SeverityVoid, bench.SeverityWarn, bench.SeverityCell, bench.SeverityNote}

// notices merges the caveats by code, the gravest first. Caveats about percentiles that no table shows are left out.
func (b *builder) notices(m *Model) {
	type group struct {
		code     string
		severity bench.Severity
	}
	var order []group
	members := map[group][]bench.Caveat{}
	for _, c := range b.sum.Caveats {
		if !b.shows(c) {
			continue
		}
		g := group{c.Code, c.Severity}
		if members[g] == nil {
			order = append(order, g)
		}
		members[g] = append(members[g], c)
	}
	for _, s := range severities {
		for _, g := range order {
			if g.severity == s {
				m.Notices = append(m.Notices, b.merged(members[g]))
			}
		}
	}
}

// shows tells whether what a caveat is about is on the page: a percentile may not be.
func (b *builder) shows(c bench.Caveat) bool {
	_, key, ok := strings.Cut(c.Metric, ".")
	if !ok || c.Severity != bench.SeverityCell {
		return true
	}
	return slices.ContainsFunc(b.columns, func(p float64) bool { return bench.PercentileKey(p) == key })
}

// merged makes one notice of the caveats of one code.
func (b *builder) merged(cs []bench.Caveat) Notice {
	n := Notice{Severity: cs[0].Severity, Code: clean(cs[0].Code), Remedy: clean(cs[len(cs)-1].Remedy)}
	if cs[0].Code == "few_samples" {
		n.Text, n.Remedy = b.fewSamples(cs)
		return n
	}
	var texts, names []string
	for _, c := range cs {
		if t := clean(c.Text); !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
		if c.Metric != "" {
			names = append(names, clean(b.def(c.Metric).Short))
		}
	}
	n.Text = strings.Join(texts, "; ")
	if len(texts) == 1 && len(names) > 0 && cs[0].Severity == bench.SeverityCell {
		n.Text = strings.Join(names, ", ") + ": " + n.Text
	}
	return n
}

// fewSamples names the cells that have too few independent samples, with how many each has where they differ. The remedy is that of the highest
// percentile, which serves the lower ones too.
func (b *builder) fewSamples(cs []bench.Caveat) (text, remedy string) {
	var parts, all []string
	same := true
	for _, p := range b.columns {
		var names []string
		for _, c := range cs {
			key, percentile, _ := strings.Cut(c.Metric, ".")
			if percentile != bench.PercentileKey(p) {
				continue
			}
			name := b.def(key).Short
			all = append(all, clean(name))
			same = same && c.Text == cs[0].Text
			if d := b.sum.Metrics.Dist(key); d != nil {
				if n, ok := d.NEff.Get(); ok {
					name += " (" + count(int(n)) + ")"
				}
			}
			names = append(names, clean(name))
			remedy = clean(c.Remedy)
		}
		if len(names) > 0 {
			parts = append(parts, percentileName(p)+" of "+strings.Join(names, ", "))
		}
	}
	if same {
		return strings.Join(all, ", ") + ": " + clean(cs[0].Text), remedy
	}
	return "too few independent samples (their number): " + strings.Join(parts, "; "), remedy
}

// failuresMost is how many kinds of failure are listed.
const failuresMost = 10

// failures lists the failures with the server's words.
func (b *builder) failures(m *Model) {
	m.ErrorsLeft = b.sum.Others
	for i, e := range b.sum.Errors {
		if i >= failuresMost {
			m.ErrorsLeft += e.N
			continue
		}
		f := Failure{N: e.N, Outcome: clean(strings.ReplaceAll(string(e.Outcome), "_", " ")), Text: clean(e.Text)}
		if e.Status != 0 {
			f.Status = plain(float64(e.Status))
		}
		m.Errors = append(m.Errors, f)
	}
}
