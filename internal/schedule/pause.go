package schedule

import (
	"math"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/rng"
)

// Pause is a law of times between requests: how long somebody thinks.
type Pause struct {
	law  string // "", exp, uniform, normal or lognormal
	a, b float64
}

const pauseForms = "forms: 2s, exp:MEAN, uniform:A,B, normal:MEAN,SD, lognormal:MEAN,SD, with times such as 500ms or 2s"

// ParsePause reads a law of pauses; the empty text is none.
func ParsePause(s string) (Pause, error) {
	if s == "" {
		return Pause{}, nil
	}
	name, rest, has := strings.Cut(strings.TrimSpace(s), ":")
	if !has {
		name, rest = "", name
	}
	var v []float64
	for _, a := range strings.Split(rest, ",") {
		d, err := profile.ParseTime(strings.TrimSpace(a))
		if err != nil {
			return Pause{}, fault.Usagef(pauseForms, "pause %q: %v", s, err)
		}
		v = append(v, d.Seconds())
	}
	want, known := map[string]int{"": 1, "exp": 1, "uniform": 2, "normal": 2, "lognormal": 2}[name]
	switch {
	case !known:
		return Pause{}, fault.Usagef(pauseForms, "pause %q: unknown law", s)
	case len(v) != want:
		return Pause{}, fault.Usagef(pauseForms, "pause %q: %d times where there are %d", s, want, len(v))
	case name == "uniform" && v[1] < v[0]:
		return Pause{}, fault.Usagef(pauseForms, "pause %q: the second time is the longer one", s)
	case name == "lognormal" && v[0] == 0:
		return Pause{}, fault.Usagef(pauseForms, "pause %q: the mean is above 0", s)
	}
	p := Pause{law: name, a: v[0]}
	if want == 2 {
		p.b = v[1]
	}
	if name == "lognormal" { // parameters of the logarithm
		vv := rng.Log(1 + float64(p.b/p.a)*(p.b/p.a))
		p.a, p.b = rng.Log(p.a)-vv/2, math.Sqrt(vv)
	}
	return p, nil
}

// Draw returns one pause.
func (p Pause) Draw(r *rng.Stream) time.Duration {
	x := p.a
	switch p.law {
	case "exp":
		x = p.a * r.Exp()
	case "uniform":
		x = p.a + float64((p.b-p.a)*r.Float64())
	case "normal": // redrawn until it is not below 0: at least half of the draws are not
		for x = -1; x < 0; {
			x = p.a + float64(p.b*r.Normal())
		}
	case "lognormal":
		x = rng.Exp(p.a + float64(p.b*r.Normal()))
	}
	return seconds(x)
}
