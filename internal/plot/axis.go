package plot

import (
	"iter"
	"math"
	"strconv"
	"strings"
)

// Axis is one axis of a chart.
type Axis struct {
	Label string // what it shows; empty where the figure's neighbours say it
	Unit  string
	// From and To are the ends of the axis. Equal ones mean that the data give them: from 0 where no value is below.
	From, To float64
	// Log asks for a logarithmic axis. It is linear after all where a value is not above 0.
	Log bool
	// Whole asks for ticks at whole numbers only, as counts have.
	Whole bool
}

// words names an axis with its unit.
func (a Axis) words() string {
	switch {
	case a.Label == "":
		return a.Unit
	case a.Unit == "":
		return a.Label
	}
	return a.Label + ", " + a.Unit
}

// scale maps values to positions.
type scale struct {
	from, to float64 // values
	a, b     float64 // positions
	log      bool
	ticks    []float64
	step     float64 // of linear ticks; decides how many decimals they have
}

// newScale makes the scale of an axis over data between lo and hi, with at most so many ticks. Rounded ends lie on ticks.
func newScale(axis Axis, lo, hi float64, most int, rounded bool) scale {
	if axis.From < axis.To && finite(axis.From) && finite(axis.To) {
		lo, hi = axis.From, axis.To
	} else if lo >= 0 && !axis.Log {
		lo = 0
	}
	if axis.Log && lo > 0 {
		s := scale{log: true}
		s.from, s.to = floor125(lo), ceil125(hi)
		if s.from == s.to {
			s.to = ceil125(s.to * 1.5)
		}
		s.ticks = logTicks(s.from, s.to, most)
		return s
	}
	if hi-lo <= narrowest*max(math.Abs(lo), math.Abs(hi)) {
		hi = lo + max(1, math.Abs(lo)*0.1)
	}
	s := scale{from: lo, to: hi}
	s.ticks, s.step = linearTicks(lo, hi, most)
	if axis.Whole && s.step < 1 {
		s.ticks, s.step = multiples(1, lo, hi), 1
	}
	if rounded && s.step > 0 {
		if n := len(s.ticks); n == 0 || s.ticks[n-1] < hi {
			hi = math.Ceil(hi/s.step) * s.step
		}
		if n := len(s.ticks); n == 0 || s.ticks[0] > lo {
			lo = math.Floor(lo/s.step) * s.step
		}
		s.from, s.to = lo, hi
		s.ticks = multiples(s.step, lo, hi)
	}
	return s
}

// place puts the scale between two positions.
func (s scale) place(a, b float64) scale {
	s.a, s.b = a, b
	return s
}

// at returns the position of a value; a value beyond the axis is put at its end.
func (s scale) at(v float64) float64 {
	from, to := s.from, s.to
	v = min(max(v, from), to)
	if s.log {
		v, from, to = math.Log(v), math.Log(from), math.Log(to)
	}
	return s.a + (v-from)/(to-from)*(s.b-s.a)
}

// within tells whether the axis reaches a value.
func (s scale) within(v float64) bool { return v >= s.from && v <= s.to }

// linearTicks returns the multiples of 1, 2 or 5 times a power of ten between lo and hi, the finest that are at most so many.
func linearTicks(lo, hi float64, most int) (ticks []float64, step float64) {
	if !finite(lo) || !finite(hi) || hi <= lo || most < 1 {
		return nil, 0
	}
	exp := int(math.Floor(math.Log10((hi-lo)/float64(most)))) - 1
	for ; ; exp++ {
		for _, m := range []float64{1, 2, 5} {
			step = decimal(m, exp)
			if math.Floor(hi/step+grain)-math.Ceil(lo/step-grain)+1 <= float64(most) {
				return multiples(step, lo, hi), step
			}
		}
	}
}

// narrowest is the least span of an axis as a share of its values: below, ticks would differ in digits that a float64 has not.
const narrowest = 1e-6

// grain is the share of a step by which a tick may miss the end of its axis, for rounding.
const grain = 1e-9

// multiples returns the multiples of a step from lo to hi.
func multiples(step, lo, hi float64) []float64 {
	var out []float64
	first, last := math.Ceil(lo/step-grain), math.Floor(hi/step+grain)
	inverse := math.Round(1 / step)
	for i := first; i <= last; i++ {
		v := i * step
		if step < 1 && math.Abs(inverse*step-1) < grain {
			v = i / inverse // rounded once, as in decimal
		}
		out = append(out, v+0) // never -0
	}
	return out
}

// decimal is m times 10^e, rounded once: 3 * 0.1 is not the number nearest to 0.3.
func decimal(m float64, e int) float64 {
	if e < 0 {
		return m / math.Pow10(-e)
	}
	return m * math.Pow10(e)
}

// steps125 gives 1, 2 and 5 times the powers of ten, rising, from below a positive value on.
func steps125(v float64) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for e := int(math.Floor(math.Log10(v))) - 1; ; e++ {
			for _, m := range []float64{1, 2, 5} {
				if !yield(decimal(m, e)) {
					return
				}
			}
		}
	}
}

// floor125 and ceil125 return the nearest 1, 2 or 5 times a power of ten at or below, and at or above, a positive value.
func floor125(v float64) (out float64) {
	for x := range steps125(v) {
		if x > v*(1+grain) {
			break
		}
		out = x
	}
	return out
}

func ceil125(v float64) (out float64) {
	for x := range steps125(v) {
		if out = x; x >= v*(1-grain) {
			break
		}
	}
	return out
}

// logTicks returns the 1-2-5 steps from lo to hi, or the powers of ten, or every n-th of these, so that they are at most so many.
func logTicks(lo, hi float64, most int) []float64 {
	var all, tens []float64
	for x := range steps125(lo) {
		if x > hi*(1+grain) {
			break
		}
		if x < lo*(1-grain) {
			continue
		}
		all = append(all, x)
		if l := math.Log10(x); math.Abs(l-math.Round(l)) < grain {
			tens = append(tens, x)
		}
	}
	if len(all) <= most {
		return all
	}
	every := max(1, (len(tens)+most-1)/max(1, most))
	var out []float64
	for i := 0; i < len(tens); i += every {
		out = append(out, tens[i])
	}
	return out
}

// label writes a tick. All ticks of a linear axis have the same decimals.
func (s scale) label(v float64) string {
	step := s.step
	if s.log || step == 0 {
		step = math.Abs(v)
		if step == 0 {
			return "0"
		}
	}
	most := max(math.Abs(s.from), math.Abs(s.to))
	unit := ""
	for _, u := range []struct {
		size float64
		name string
	}{{1e12, " T"}, {1e9, " G"}, {1e6, " M"}} {
		if most >= u.size && (!s.log || math.Abs(v) >= u.size) {
			v, step, unit = v/u.size, step/u.size, u.name
			break
		}
	}
	if v == 0 {
		unit = "" // 0.0, not 0.0 M
	}
	digits := max(0, -int(math.Floor(math.Log10(step)+grain)))
	if digits > 9 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return Thousands(strconv.FormatFloat(v, 'f', digits, 64)) + unit
}

// Thousands puts a comma between the thousands of a decimal number.
func Thousands(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, rest, dot := strings.Cut(s, ".")
	var out strings.Builder
	for i := 0; i < len(whole); i++ {
		if i > 0 && (len(whole)-i)%3 == 0 {
			out.WriteByte(',')
		}
		out.WriteByte(whole[i])
	}
	if dot {
		out.WriteString("." + rest)
	}
	return sign + out.String()
}
