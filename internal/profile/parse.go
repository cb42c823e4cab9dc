package profile

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Forms are the ways to write a profile, for hints.
const Forms = "forms: linear:FROM,TO,TIME, exp:FROM,TO,TIME, steps:A,B,C.../TIME, bursts:HIGH,TIME,LOW,TIME, sine:MEAN,AMPLITUDE,PERIOD, pieces:TIME=LEVEL,..., file:PATH"

// Bounds of a profile.
const (
	MostPieces = 100_000
	MostLevel  = 1e7
	shortest   = time.Millisecond // of a piece
	longest    = 100 * 365 * 24 * time.Hour
)

// Is tells whether a text is a profile, and no plain number.
func Is(s string) bool { return strings.Contains(s, ":") }

// Parse reads a profile. A file has been read into pieces by then (see FromFile).
func Parse(s string) (Profile, error) {
	name, rest, ok := strings.Cut(strings.TrimSpace(s), ":")
	if !ok {
		v, err := level(name)
		return Flat(v), err
	}
	canonical := name + ":" + strings.ReplaceAll(rest, " ", "")
	args := strings.Split(strings.ReplaceAll(rest, " ", ""), ",")
	p, err := parse(name, args, canonical)
	if err != nil {
		return Profile{}, err
	}
	if !(p.Peak() > 0) {
		return Profile{}, fmt.Errorf("it is 0 all the time")
	}
	return p, nil
}

func parse(name string, args []string, text string) (none Profile, err error) {
	var v []float64
	read := func(n int, what string, pos ...int) error { // levels at the given places, times at the others
		if len(args) != n {
			return fmt.Errorf("%s has %s", name, what)
		}
		isLevel := map[int]bool{}
		for _, i := range pos {
			isLevel[i] = true
		}
		for i, a := range args {
			var x float64
			var err error
			if isLevel[i] {
				x, err = level(a)
			} else {
				x, err = span(a)
			}
			if err != nil {
				return err
			}
			v = append(v, x)
		}
		return nil
	}
	forever := func(l float64) piece { return piece{length: math.Inf(1), a: l, b: l} }
	switch name {
	case "linear":
		if err := read(3, "a first level, a last one and the time between them", 0, 1); err != nil {
			return none, err
		}
		return build(text, false, piece{form: linear, length: v[2], a: v[0], b: v[1]}, forever(v[1])), nil
	case "exp":
		if err := read(3, "a first level, a last one and the time between them", 0, 1); err != nil {
			return none, err
		}
		if v[0] == 0 || v[1] == 0 {
			return none, fmt.Errorf("no factor leads to 0 or away from it")
		}
		return build(text, false, piece{form: exponential, length: v[2], a: v[0], b: v[1]}, forever(v[1])), nil
	case "steps":
		return parseSteps(args, text)
	case "bursts":
		if err := read(4, "a high level, its time, a low level and its time", 0, 2); err != nil {
			return none, err
		}
		return build(text, true, piece{length: v[1], a: v[0], b: v[0]}, piece{length: v[3], a: v[2], b: v[2]}), nil
	case "sine":
		if err := read(3, "a mean, an amplitude and a period", 0, 1); err != nil {
			return none, err
		}
		if v[1] > v[0] {
			return none, fmt.Errorf("the amplitude is above the mean: the level would fall below 0")
		}
		return build(text, true, piece{form: sine, length: v[2], a: v[0], b: v[1]}), nil
	case "pieces":
		return parsePieces(args, text)
	}
	return none, fmt.Errorf("%q is no form of a profile", name)
}

// parseSteps reads levels of one length: A,B,C/TIME.
func parseSteps(args []string, text string) (none Profile, err error) {
	last, length, ok := strings.Cut(args[len(args)-1], "/")
	if !ok {
		return none, fmt.Errorf("steps end with / and the time of each")
	}
	args[len(args)-1] = last
	each, err := span(length)
	if err != nil {
		return none, err
	}
	if len(args) > MostPieces {
		return none, fmt.Errorf("more than %d steps", MostPieces)
	}
	var pieces []piece
	for i, a := range args {
		v, err := level(a)
		if err != nil {
			return none, err
		}
		pieces = append(pieces, piece{length: each, a: v, b: v})
		if i == len(args)-1 {
			pieces[i].length = math.Inf(1)
		}
	}
	return build(text, false, pieces...), nil
}

// parsePieces reads TIME=LEVEL: from that time on.
func parsePieces(args []string, text string) (none Profile, err error) {
	if len(args) > MostPieces {
		return none, fmt.Errorf("more than %d pieces", MostPieces)
	}
	var pieces []piece
	before := 0.0
	for i, a := range args {
		at, lv, ok := strings.Cut(a, "=")
		if !ok {
			return none, fmt.Errorf("%q is not TIME=LEVEL", a)
		}
		t := 0.0
		if i > 0 || at != "0" {
			if d, err := ParseTime(at); err != nil {
				return none, err
			} else {
				t = d.Seconds()
			}
		}
		v, err := level(lv)
		switch {
		case err != nil:
			return none, err
		case i == 0 && t != 0:
			return none, fmt.Errorf("the first piece begins at 0, not at %s", at)
		case i > 0 && t <= before:
			return none, fmt.Errorf("the piece at %s does not come after the one before it", at)
		case i > 0:
			pieces[i-1].length = t - before
		}
		before = t
		pieces = append(pieces, piece{length: math.Inf(1), a: v, b: v})
	}
	return build(text, false, pieces...), nil
}

// FromFile reads lines `time,level` (comma, tab or spaces; # begins a remark; a head line is passed over) into a profile's text. A time
// without a unit is in seconds.
func FromFile(r io.Reader) (string, error) {
	var b strings.Builder
	b.WriteString("pieces:")
	sc := bufio.NewScanner(r)
	n, rows := 0, 0
	for sc.Scan() {
		n++
		line, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == ';' })
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 {
			return "", fmt.Errorf("line %d has %d fields, and not a time and a level", n, len(f))
		}
		d, err := ParseTime(f[0])
		if err != nil && rows == 0 && n == 1 {
			continue // names of the columns
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		if _, err := level(f[1]); err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		if rows++; rows > MostPieces {
			return "", fmt.Errorf("line %d: more than %d pieces", n, MostPieces)
		}
		if rows > 1 {
			b.WriteByte(',')
		}
		b.WriteString(d.String() + "=" + f[1])
	}
	if err := sc.Err(); err != nil {
		return "", fmt.Errorf("line %d: %w", n+1, err)
	}
	if rows == 0 {
		return "", fmt.Errorf("it has no line with a time and a level")
	}
	return b.String(), nil
}

// ParseTime reads 90s, 10m, or a number of seconds.
func ParseTime(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		x, nerr := strconv.ParseFloat(s, 64)
		if nerr != nil || !(math.Abs(x) <= longest.Seconds()) {
			return 0, fmt.Errorf("%q is no time such as 90s or 10m", s)
		}
		d = time.Duration(math.Round(x * 1e9))
	}
	if d < 0 || d > longest {
		return 0, fmt.Errorf("the time %s is not between 0 and 100 years", s)
	}
	return d, nil
}

// span reads the length of a piece, in seconds.
func span(s string) (float64, error) {
	d, err := ParseTime(s)
	if err == nil && d < shortest {
		err = fmt.Errorf("the time %s is shorter than %v", s, shortest)
	}
	return d.Seconds(), err
}

func level(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= MostLevel) {
		return 0, fmt.Errorf("%q is no level between 0 and %.0f", s, float64(MostLevel))
	}
	return v, nil
}
