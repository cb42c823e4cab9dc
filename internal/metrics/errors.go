package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
)

// Bounds of the failures that are told apart. What is beyond is counted.
const (
	maxErrors   = 20   // groups that a summary lists
	groupsMost  = 1000 // groups that are kept while counting
	textsMost   = 1000 // texts whose group is remembered, which saves to look for it again
	groupedText = 2000 // bytes of a text by which it is grouped
)

// errorKey is what the failures of a group have in common.
type errorKey struct {
	outcome bench.Outcome
	status  int
	words   string // with # for those that hold a digit
}

// errorGroup counts failures with one key. Its words are those of the first; those that differ in another are replaced by "…".
type errorGroup struct {
	errorKey
	parts []string // words and what is between them, in turn
	n     int
}

// errors groups the failures by their words, the most frequent first. Words that hold a digit are often of one request alone (ids, ports,
// times), so that they tell no groups apart. others counts the failures that are in none of the groups listed.
func (x *Context) errors() (out []bench.ErrorCount, others int) {
	groups := map[errorKey]*errorGroup{}
	known := map[errorKey]*errorGroup{} // by the whole text
	for _, r := range x.Records {
		if r.Outcome == bench.OK || r.Error == "" {
			continue
		}
		exact := errorKey{r.Outcome, r.Status, r.Error}
		g := known[exact]
		if g == nil {
			parts := splitWords(r.Error[:min(len(r.Error), groupedText)])
			key := errorKey{r.Outcome, r.Status, maskedWords(parts)}
			if g = groups[key]; g == nil {
				if len(groups) == groupsMost {
					others++
					continue
				}
				g = &errorGroup{errorKey: key, parts: parts}
				groups[key] = g
			}
			g.join(parts)
			if len(known) < textsMost {
				known[exact] = g
			}
		}
		g.n++
	}
	for _, g := range groups {
		out = append(out, bench.ErrorCount{Outcome: g.outcome, Status: g.status, Text: strings.Join(g.parts, ""), N: g.n})
	}
	slices.SortFunc(out, func(a, b bench.ErrorCount) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Status, b.Status))
	})
	for len(out) > maxErrors {
		others += out[len(out)-1].N
		out = out[:len(out)-1]
	}
	return out, others
}

// join replaces the words that differ from those of another text of the group.
func (g *errorGroup) join(parts []string) {
	for i := range g.parts {
		if g.parts[i] != parts[i] {
			g.parts[i] = "…"
		}
	}
}

// splitWords cuts a text into words and what is between them, in turn: the words are at the odd places. A word is made of letters and
// digits of ASCII, and of - and _ between them, so that the whole of an id is one.
func splitWords(s string) []string {
	letter := func(i int) bool {
		return i >= 0 && i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z')
	}
	parts := []string{}
	start, inside := 0, false
	for i := range len(s) {
		joins := (s[i] == '-' || s[i] == '_') && letter(i-1) && letter(i+1)
		if inside != (letter(i) || joins) {
			parts = append(parts, s[start:i])
			start, inside = i, !inside
		}
	}
	return append(parts, s[start:])
}

// maskedWords joins the parts of a text with # for the words that hold a digit.
func maskedWords(parts []string) string {
	var b strings.Builder
	for i, p := range parts {
		if i%2 == 1 && strings.ContainsAny(p, "0123456789") {
			p = "#"
		}
		b.WriteString(p)
	}
	return b.String()
}
