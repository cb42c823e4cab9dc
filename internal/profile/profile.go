// Package profile holds levels that change with time: a rate in requests/s, or a number of requests in flight.
//
// A profile is a row of pieces. Its last level holds for ever, or its pieces repeat. It knows its area, which is the expected number of
// arrivals, and the inverse of that: the arrivals of a changing rate are those of rate 1, moved to where the area is theirs.
package profile

import (
	"math"
	"sort"
	"time"

	"github.com/prony-bench/prony/internal/rng"
)

// Profile is a level over time, counted from the begin of a phase.
type Profile struct {
	pieces []piece
	period float64 // s after which the pieces repeat; 0 = the last one has no end
	area   float64 // of one period
	text   string
}

// form is how the level goes inside a piece.
type form byte

const (
	linear      form = iota // from a to b in a line
	exponential             // from a to b by equal factors in equal times
	sine                    // a + b sin(2 pi t / length)
)

// piece is a stretch of one form.
type piece struct {
	form   form
	from   float64 // s
	length float64 // s; +Inf of the last one
	a, b   float64
	before float64 // area before it
}

// build joins pieces, setting their begins and areas.
func build(text string, repeat bool, pieces ...piece) Profile {
	p := Profile{pieces: pieces, text: text}
	at := 0.0
	for i := range pieces {
		q := &pieces[i]
		q.from, q.before = at, p.area
		at += q.length
		p.area += q.areaUpTo(q.length)
	}
	if repeat {
		p.period = at
	}
	return p
}

// Flat is one level for ever.
func Flat(level float64) Profile {
	return build("", false, piece{length: math.Inf(1), a: level, b: level})
}

func (p Profile) String() string { return p.text }

// split returns the area or time of the whole periods before a time, and what is left.
func (p Profile) split(t float64) (periods, rest float64) {
	if p.period == 0 {
		return 0, t
	}
	periods = math.Floor(t / p.period)
	return periods, math.Max(0, t-float64(periods*p.period))
}

// pieceAt returns the piece that a time of the first period lies in.
func (p Profile) pieceAt(t float64) *piece {
	i := sort.Search(len(p.pieces), func(i int) bool { return p.pieces[i].from > t }) - 1
	return &p.pieces[max(0, i)]
}

// At returns the level at a time.
func (p Profile) At(t time.Duration) float64 {
	_, s := p.split(t.Seconds())
	q := p.pieceAt(s)
	return q.at(s - q.from)
}

// Area returns the area up to a time.
func (p Profile) Area(t time.Duration) float64 {
	n, s := p.split(t.Seconds())
	q := p.pieceAt(s)
	return float64(n*p.area) + q.before + q.areaUpTo(s-q.from)
}

// When returns the first time, in seconds, up to which there is so much area; +Inf when there never is.
func (p Profile) When(area float64) float64 {
	base := 0.0
	if p.period > 0 {
		n := math.Floor(area / p.area)
		base, area = n*p.period, math.Max(0, area-float64(n*p.area))
	}
	i := sort.Search(len(p.pieces), func(i int) bool { return p.pieces[i].before > area }) - 1
	for i = max(0, i); i < len(p.pieces); i++ {
		q := &p.pieces[i]
		rest := area - q.before
		switch {
		case math.IsInf(q.length, 1):
			if q.a == 0 {
				return math.Inf(1)
			}
			return base + q.from + rest/q.a
		case q.areaUpTo(q.length) > rest:
			return base + q.from + q.when(rest)
		}
	}
	return base + p.period // rounding: at the very end of the period
}

// Peak returns the highest level.
func (p Profile) Peak() float64 {
	top := 0.0
	for _, q := range p.pieces {
		if top = max(top, q.a, q.b); q.form == sine {
			top = max(top, q.a+q.b)
		}
	}
	return top
}

// Begin is the level at the begin.
func (p Profile) Begin() float64 { return p.At(0) }

// End returns when the last level is reached for ever; ok is false where the pieces repeat.
func (p Profile) End() (t time.Duration, ok bool) {
	last := p.pieces[len(p.pieces)-1]
	return duration(last.from), p.period == 0
}

// Reaches returns the first time not before a given one at which the level is at least so high. It may be never.
func (p Profile) Reaches(from time.Duration, level float64) (time.Duration, bool) {
	n, s := p.split(from.Seconds())
	last := 2 * len(p.pieces) // the rest of this period, and one more
	for i := range last {
		q := &p.pieces[i%len(p.pieces)]
		base := (n + float64(i/len(p.pieces))) * p.period
		if i >= len(p.pieces) {
			if p.period == 0 {
				break
			}
			s = 0
		}
		if q.from+q.length <= s {
			continue
		}
		if t, ok := q.reaches(max(0, s-q.from), level); ok {
			return max(from, duration(base+q.from+t)), true
		}
	}
	return 0, false
}

// at is the level inside a piece.
func (q *piece) at(t float64) float64 {
	switch {
	case math.IsInf(q.length, 1) || q.a == q.b && q.form != sine:
		return q.a
	case q.form == linear:
		return q.a + float64((q.b-q.a)*(t/q.length))
	case q.form == exponential:
		return q.a * rng.Exp(float64(rng.Log(q.b/q.a)*(t/q.length)))
	}
	return q.a + float64(q.b*math.Sin(float64(2*math.Pi*(t/q.length))))
}

// areaUpTo is the area of the first t seconds of a piece; 0 of a piece without an end, whose area is never all.
func (q *piece) areaUpTo(t float64) float64 {
	switch {
	case math.IsInf(t, 1):
		return 0
	case math.IsInf(q.length, 1) || q.a == q.b && q.form != sine:
		return q.a * t
	case q.form == linear:
		return float64(q.a*t) + float64(float64((q.b-q.a)*t)*(t/q.length))/2
	case q.form == exponential:
		g := rng.Log(q.b/q.a) / q.length
		return q.a * (rng.Exp(float64(g*t)) - 1) / g
	}
	w := 2 * math.Pi / q.length
	return float64(q.a*t) + float64(q.b*(1-math.Cos(float64(w*t))))/w
}

// when is the inverse of areaUpTo inside a piece that has at least so much.
func (q *piece) when(area float64) float64 {
	switch {
	case area <= 0:
		return 0
	case q.a == q.b && q.form != sine:
		return area / q.a
	case q.form == linear:
		// a t + g t²/2 = area, in the form that loses no digits
		g := (q.b - q.a) / q.length
		return 2 * area / (q.a + math.Sqrt(math.Max(0, float64(q.a*q.a)+float64(2*float64(g*area)))))
	case q.form == exponential:
		g := rng.Log(q.b/q.a) / q.length
		return rng.Log(1+float64(g*area)/q.a) / g
	}
	low, high := 0.0, q.length // the area of a sine has no inverse in closed form
	for range 100 {
		if mid := (low + high) / 2; mid == low || mid == high {
			break
		} else if q.areaUpTo(mid) < area {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// reaches returns when the level of a piece is first so high, from a time of it on.
func (q *piece) reaches(from, level float64) (float64, bool) {
	if q.at(from) >= level {
		return from, true
	}
	var t float64
	switch {
	case math.IsInf(q.length, 1) || q.a == q.b && q.form != sine:
		return 0, false
	case q.form == linear:
		t = (level - q.a) / (q.b - q.a) * q.length
	case q.form == exponential:
		t = rng.Log(level/q.a) / rng.Log(q.b/q.a) * q.length
	default:
		s := (level - q.a) / q.b
		if s > 1 {
			return 0, false
		}
		if t = math.Asin(s) / (2 * math.Pi) * q.length; t < from {
			t += q.length
		}
	}
	return t, t >= from && t <= q.length
}

// duration rounds seconds up to whole nanoseconds, so that a level has been reached by then.
func duration(s float64) time.Duration {
	ns := math.Ceil(s*1e9 - 1e-3)
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
