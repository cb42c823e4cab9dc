package report

import (
	"math"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/stats"
)

// Findings are the titles of figures. They state what the data show by the rules in this file, and say plainly what is drawn where no
// rule holds.

// Bounds of the rules over time.
const (
	findingTenths  = 10   // parts of the time that are compared by their medians
	findingParts   = 5    // parts with samples; below nothing is claimed
	overTimeLeast  = 50   // samples of requests; below nothing is claimed
	secondsLeast   = 15   // the same for values that are sums over a second
	changeFactor   = 1.5  // a step or a climb is claimed from here on
	nearShare      = 0.15 // parts within this share of the median are near it
	nearParts      = 0.8  // so many parts have to be, for "stays near"
	climbingSteps  = 0.75 // share of steps between neighbouring parts that go up, for "climbs all the time"
	peakWorthTells = 1.15 // two values closer than this factor are not told apart
)

// tenths returns the median of each tenth of [from, to] that has samples, where the tenth begins, and the number of samples.
func tenths(s series, from, to float64) (begins, medians []float64, n int) {
	parts := make([][]float64, findingTenths)
	for i, t := range s.times {
		if to > from && t >= from && t <= to {
			k := min(int((t-from)/(to-from)*findingTenths), findingTenths-1)
			parts[k] = append(parts[k], s.values[i])
			n++
		}
	}
	for k, p := range parts {
		slices.Sort(p)
		if m, ok := stats.Quantile(p, 50); ok {
			begins, medians = append(begins, from+float64(k)/findingTenths*(to-from)), append(medians, m)
		}
	}
	return begins, medians, n
}

// overTime states how a quantity went over a stretch of the run. The first rule that holds gives the words:
// fewer samples than least or fewer than 5 tenths with any: nothing is claimed; the tenths climb (fall) from begin to end, and by a
// factor of 1.5 or more; from some moment on all tenths are 1.5 times above (below) the median before it, and beyond every tenth before
// it; 8 of 10 tenths are within 15 % of their median, which is not 0; else the range is given.
func overTime(name, otherwise string, write func(float64) string, s series, least int, from, to float64) string {
	begins, m, n := tenths(s, from, to)
	if n < least || len(m) < findingParts {
		return otherwise
	}
	first, last := m[0], m[len(m)-1]
	up, down := 0, 0
	for i := 1; i < len(m); i++ {
		if m[i] > m[i-1] {
			up++
		} else if m[i] < m[i-1] {
			down++
		}
	}
	steps := float64(len(m) - 1)
	between := ", from " + write(first) + " to " + write(last)
	switch {
	case first > 0 && last >= changeFactor*first && float64(up) >= climbingSteps*steps:
		return name + " climbs all the time" + between
	case last > 0 && first >= changeFactor*last && float64(down) >= climbingSteps*steps:
		return name + " falls all the time" + between
	}
	if words := stepChange(name, write, begins, m); words != "" {
		return words
	}
	sorted := slices.Sorted(slices.Values(m))
	middle, _ := stats.Quantile(sorted, 50)
	if middle == 0 {
		return otherwise
	}
	near := 0
	for _, v := range m {
		if math.Abs(v-middle) <= nearShare*math.Abs(middle) {
			near++
		}
	}
	if float64(near) >= nearParts*float64(len(m)) {
		return name + " stays near " + write(middle)
	}
	return name + " moves between " + write(sorted[0]) + " and " + write(sorted[len(sorted)-1])
}

// stepChange finds the first moment from which on all tenths, at least two, lie a factor of 1.5 above or below the median before it,
// and beyond all that were before.
func stepChange(name string, write func(float64) string, begins, m []float64) string {
	for k := 1; k < len(m)-1; k++ {
		past, rest := slices.Sorted(slices.Values(m[:k])), slices.Sorted(slices.Values(m[k:]))
		before, _ := stats.Quantile(past, 50)
		after, _ := stats.Quantile(rest, 50)
		if before <= 0 {
			continue
		}
		up := rest[0] >= changeFactor*before && rest[0] > past[len(past)-1]
		down := rest[len(rest)-1] <= before/changeFactor && rest[len(rest)-1] < past[0]
		if up || down {
			return name + " " + changeWords(after/before) + " after " + significant(begins[k], 2) + " s, from " + write(before) + " to " + write(after)
		}
	}
	return ""
}

// changeWords says by how much a quantity changed.
func changeWords(ratio float64) string {
	switch {
	case ratio >= 2.5:
		return "grows " + times(ratio) + "-fold"
	case ratio >= 1.8:
		return "doubles"
	case ratio >= 1:
		return "rises by " + percentWhole(ratio-1)
	case ratio > 0.55:
		return "falls by " + percentWhole(1-ratio)
	case ratio > 0.4:
		return "halves"
	case ratio > 0:
		return "falls to 1/" + times(1/ratio)
	}
	return "falls to nothing"
}

// Bounds of the rules about distributions.
const (
	findingLeast = 20 // samples; below nothing is claimed
	tailLong     = 3.0
	tailTight    = 1.5
	tailLeast    = 100 // samples for p99; below p90 is told
)

// shape states what a distribution of ascending samples looks like: below 20 samples nothing is claimed; p99 of more than 3 medians is
// a long tail, of less than 1.5 a tight one; else median and p99 are told (p90 below 100 samples).
func shape(name, otherwise string, write func(float64) string, sorted []float64) string {
	p50, ok := stats.Quantile(sorted, 50)
	if !ok || len(sorted) < findingLeast {
		return otherwise
	}
	p, high := "p99", 99.0
	if len(sorted) < tailLeast {
		p, high = "p90", 90
	}
	top, _ := stats.Quantile(sorted, high)
	switch ratio := top / p50; {
	case p50 > 0 && ratio > tailLong:
		return name + " has a long tail: " + p + " is " + times(ratio) + " x the median"
	case p50 > 0 && ratio < tailTight:
		return name + " is tight: " + p + " is " + significant(ratio, 3) + " x the median"
	}
	return name + ": half within " + write(p50) + ", " + plain(high) + " % within " + write(top)
}

// spent states where the time of requests goes: the part that takes half of it or more, or all shares. Where there is only one part
// nothing is claimed.
func spent(which string, names []string, sums []float64) string {
	total, most, some := 0.0, 0, 0
	for i, s := range sums {
		total += s
		if s > sums[most] {
			most = i
		}
	}
	for _, s := range sums {
		if s > visible*total {
			some++
		}
	}
	if some < 2 {
		return strings.ToUpper(which[:1]) + which[1:]
	}
	if sums[most] >= total/2 {
		return "In " + which + ", " + names[most] + " takes " + percentWhole(sums[most]/total) + " of the time"
	}
	var shares []string
	for i, s := range sums {
		if s > visible*total {
			shares = append(shares, names[i]+" "+percentWhole(s/total))
		}
	}
	return "In " + which + ", the time is shared: " + strings.Join(shares, ", ")
}

// percentWhole is a share in whole per cent.
func percentWhole(share float64) string { return plain(math.Round(100*share)) + " %" }

// compared states how medians of several things differ: alike within 15 %, else the ratio of the extremes.
func compared(what string, names []string, medians []float64) string {
	lo, hi := 0, 0
	for i, m := range medians {
		if m < medians[lo] {
			lo = i
		}
		if m > medians[hi] {
			hi = i
		}
	}
	if len(medians) < 2 || medians[lo] <= 0 {
		return what
	}
	ratio := medians[hi] / medians[lo]
	if ratio < peakWorthTells {
		return "The targets are alike: their " + what + " differ by less than " + percentWhole(peakWorthTells-1)
	}
	return what + " of " + names[hi] + " is " + times(ratio) + " x that of " + names[lo]
}
