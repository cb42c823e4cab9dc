package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prony-bench/prony/internal/fault"
)

// mostLevels bounds a ladder.
const mostLevels = 1000

const ladderHint = "such as 1..256x2 (times 2), 10..100+10 (plus 10), or a list: 1,8,64"

// ParseLadder reads loads: a list of numbers and of ranges FROM..TOxFACTOR or FROM..TO+STEP; a range without a step doubles. The end of
// a range belongs to it when a step hits it. The result ascends.
func ParseLadder(s string) ([]float64, error) {
	var out []float64
	for _, part := range strings.Split(s, ",") {
		from, rest, isRange := strings.Cut(strings.TrimSpace(part), "..")
		first, err := loadOf(from)
		if err != nil {
			return nil, err
		}
		if !isRange {
			out = append(out, first)
			continue
		}
		next := func(v float64) float64 { return 2 * v }
		if i := strings.IndexAny(rest, "x+"); i >= 0 {
			step, err := loadOf(rest[i+1:])
			if err != nil {
				return nil, err
			}
			if rest[i] == '+' {
				next = func(v float64) float64 { return v + step }
			} else if next = func(v float64) float64 { return v * step }; step <= 1 {
				return nil, fault.Usagef(ladderHint, "the factor of %q does not grow", part)
			}
			rest = rest[:i]
		}
		last, err := loadOf(rest)
		if err != nil {
			return nil, err
		}
		if last < first {
			return nil, fault.Usagef(ladderHint, "%q ends below its begin", part)
		}
		for v := first; v <= last*(1+1e-9); v = next(v) {
			if out = append(out, rounded(v)); len(out) > mostLevels {
				return nil, fault.Usagef("take larger steps", "%q has more than %d levels", s, mostLevels)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func loadOf(s string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || !(v > 0 && v <= 1e6) {
		return 0, fault.Usagef(ladderHint, "%q is no load", s)
	}
	return v, nil
}

// rounded takes the dust of repeated steps away.
func rounded(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-9)
	if unit < 1 {
		return math.Round(v/unit) / math.Round(1/unit)
	}
	return math.Round(v/unit) * unit
}

// geometric tells whether a ladder grows by factors rather than by steps: its curve is then looked at over logarithms.
func geometric(loads []float64) bool {
	if len(loads) < 3 {
		return false
	}
	first, last := loads[1]-loads[0], loads[len(loads)-1]-loads[len(loads)-2]
	return last > 1.5*first
}

// loadText writes a load as it is in names of directories and in texts.
func loadText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
