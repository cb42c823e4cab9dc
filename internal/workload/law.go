package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Law is a distribution of lengths in tokens. Every draw is at least 1.
type Law interface {
	Draw(r *rng.Stream) int
	// Mean is the expected length, for estimates.
	Mean() float64
	// Least is the shortest length that can be drawn.
	Least() int
	String() string
}

// lawForms are shown in hints.
const lawForms = "forms: N, uniform:a,b, normal:mean,sd, truncnormal:mean,sd,min,max, lognormal:mean,sd[,max], gamma:mean,sd[,max], zipf:exponent,min,max"

// ParseLaw reads a law of lengths.
func ParseLaw(s string) (Law, error) {
	name, args, hasArgs := strings.Cut(strings.TrimSpace(s), ":")
	bad := func(format string, a ...any) (Law, error) {
		return nil, fault.Usagef(lawForms, "length %q: %s", s, fmt.Sprintf(format, a...))
	}
	if !hasArgs {
		n, err := strconv.Atoi(name)
		if err != nil {
			return bad("no number and no law")
		}
		if n < 1 || n > maxLength {
			return bad("must be between 1 and %d", maxLength)
		}
		return Fixed(n), nil
	}
	var v []float64
	for _, a := range strings.Split(args, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(a), 64)
		if err != nil || math.IsNaN(x) || math.Abs(x) > maxLength {
			return bad("%q is no number below %d", a, maxLength)
		}
		v = append(v, x)
	}
	switch {
	case name == "uniform" && len(v) == 2:
		u := Uniform{int(v[0]), int(v[1])}
		if float64(u.A) != v[0] || float64(u.B) != v[1] || u.A < 1 || u.B < u.A {
			return bad("needs whole numbers with 1 <= a <= b")
		}
		return u, nil
	case name == "normal" && len(v) == 2:
		if v[0] < 1 || v[1] < 0 {
			return bad("needs a mean of at least 1 and an sd of at least 0")
		}
		return Normal{v[0], v[1], 1, math.MaxInt32, false}, nil
	case name == "truncnormal" && len(v) == 4:
		n := Normal{v[0], v[1], int(v[2]), int(v[3]), true}
		if v[1] < 0 || n.Min < 1 || n.Max < n.Min {
			return bad("needs sd >= 0 and 1 <= min <= max")
		}
		if n.mass() < minMass {
			return bad("less than %g of the normal law lies between min and max", minMass)
		}
		return n, nil
	case name == "lognormal" && (len(v) == 2 || len(v) == 3):
		if v[0] < 1 || v[1] < 0 {
			return bad("needs a mean of at least 1 and an sd of at least 0")
		}
		l := NewLogNormal(v[0], v[1], math.MaxInt32)
		if len(v) == 3 {
			l = NewLogNormal(v[0], v[1], int(v[2]))
			if v[2] < 1 || l.mass() < minMass {
				return bad("less than %g of the log-normal law lies below max", minMass)
			}
		}
		return l, nil
	case name == "gamma" && (len(v) == 2 || len(v) == 3):
		g := GammaLaw{v[0], v[1], math.MaxInt32}
		if v[0] < 1 || v[1] <= 0 || v[1] > 100*v[0] {
			return bad("needs a mean of at least 1 and an sd above 0, at most 100 times the mean")
		}
		if len(v) == 3 {
			if g.Max = int(v[2]); v[2] < v[0] {
				return bad("max is below the mean: most draws would be thrown away")
			}
		}
		return g, nil
	case name == "zipf" && len(v) == 3:
		least, most := int(v[1]), int(v[2])
		if !(v[0] > 0 && v[0] <= 20) || float64(least) != v[1] || float64(most) != v[2] || least < 1 || most < least || most-least >= mostZipf {
			return bad("needs an exponent in (0, 20] and whole numbers with 1 <= min <= max, at most %d apart", mostZipf)
		}
		return NewZipf(v[0], least, most), nil
	}
	return bad("unknown law or wrong number of arguments")
}

const (
	maxLength = 100_000_000 // tokens; far above any context
	minMass   = 0.001       // of a law inside its bounds: redrawing ends after 1,000 draws on the average
)

// WithRange spreads a fixed length by vLLM's --random-range-ratio r in [0, 1): uniform between len*(1-r) and len*(1+r).
func WithRange(l Law, r float64) (Law, error) {
	if r == 0 {
		return l, nil
	}
	if !(r > 0 && r < 1) {
		return nil, fault.Usagef("0.2 draws lengths between 80 % and 120 %, as vLLM's Python bench does; other tools mean something else by it", "--range-ratio must be in [0, 1), not %v", r)
	}
	n, ok := l.(Fixed)
	if !ok {
		return nil, fault.New(fault.Usage, "--range-ratio spreads a fixed length, but a law is given", "give a number, or put the spread into the law: uniform:a,b")
	}
	return Uniform{max(1, int(math.Floor(float64(n)*(1-r)))), int(math.Ceil(float64(n) * (1 + r)))}, nil
}

// Fixed is always the same length.
type Fixed int

// Draw implements Law.
func (f Fixed) Draw(*rng.Stream) int { return int(f) }

// Mean implements Law.
func (f Fixed) Mean() float64 { return float64(f) }

// Least implements Law.
func (f Fixed) Least() int { return int(f) }

func (f Fixed) String() string { return strconv.Itoa(int(f)) }

// Uniform is every whole number from A to B, both included.
type Uniform struct{ A, B int }

// Draw implements Law.
func (u Uniform) Draw(r *rng.Stream) int { return u.A + r.IntN(u.B-u.A+1) }

// Mean implements Law.
func (u Uniform) Mean() float64 { return float64(u.A+u.B) / 2 }

// Least implements Law.
func (u Uniform) Least() int { return u.A }

func (u Uniform) String() string { return fmt.Sprintf("uniform:%d,%d", u.A, u.B) }

// Normal is a normal law, rounded. Truncated: redrawn until it lies between Min and Max; else what lies below 1 counts as 1.
type Normal struct {
	M, SD     float64
	Min, Max  int
	Truncated bool
}

// Draw implements Law.
func (n Normal) Draw(r *rng.Stream) int {
	for {
		x := int(math.Round(n.M + float64(n.SD*r.Normal())))
		if !n.Truncated {
			return max(1, x)
		}
		if x >= n.Min && x <= n.Max {
			return x
		}
	}
}

// Mean implements Law: of the truncated law by its formula.
func (n Normal) Mean() float64 {
	if !n.Truncated || n.SD == 0 {
		return n.M
	}
	a, b := (float64(n.Min)-0.5-n.M)/n.SD, (float64(n.Max)+0.5-n.M)/n.SD
	return n.M + n.SD*(density(a)-density(b))/n.mass()
}

// Least implements Law.
func (n Normal) Least() int {
	if n.SD == 0 {
		return max(1, int(math.Round(n.M)))
	}
	return n.Min
}

// mass is the share of the law between the bounds.
func (n Normal) mass() float64 {
	if n.SD == 0 {
		if n.M >= float64(n.Min) && n.M <= float64(n.Max) {
			return 1
		}
		return 0
	}
	return cdf((float64(n.Max)+0.5-n.M)/n.SD) - cdf((float64(n.Min)-0.5-n.M)/n.SD)
}

func (n Normal) String() string {
	if n.Truncated {
		return fmt.Sprintf("truncnormal:%g,%g,%d,%d", n.M, n.SD, n.Min, n.Max)
	}
	return fmt.Sprintf("normal:%g,%g", n.M, n.SD)
}

func density(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

func cdf(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// LogNormal is a log-normal law with the given mean and standard deviation of the length itself, redrawn above Max.
type LogNormal struct {
	M, SD     float64
	Max       int
	mu, sigma float64
}

// NewLogNormal returns the law. Its logarithm is normal with variance log(1 + sd²/m²) and mean log m - variance/2.
func NewLogNormal(m, sd float64, most int) LogNormal {
	v := rng.Log(1 + float64(sd/m)*(sd/m))
	return LogNormal{M: m, SD: sd, Max: most, mu: rng.Log(m) - v/2, sigma: math.Sqrt(v)}
}

// Draw implements Law.
func (l LogNormal) Draw(r *rng.Stream) int {
	for {
		x := math.Round(rng.Exp(l.mu + float64(l.sigma*r.Normal())))
		if x <= float64(l.Max) {
			return max(1, int(x))
		}
	}
}

// Mean implements Law: of the truncated law by its formula.
func (l LogNormal) Mean() float64 {
	if l.sigma == 0 || l.Max == math.MaxInt32 {
		return l.M
	}
	z := (math.Log(float64(l.Max)+0.5) - l.mu) / l.sigma
	return l.M * cdf(z-l.sigma) / cdf(z)
}

// Least implements Law.
func (l LogNormal) Least() int {
	if l.sigma == 0 {
		return max(1, int(math.Round(l.M)))
	}
	return 1
}

func (l LogNormal) mass() float64 {
	if l.sigma == 0 {
		if l.M <= float64(l.Max) {
			return 1
		}
		return 0
	}
	return cdf((math.Log(float64(l.Max)+0.5) - l.mu) / l.sigma)
}

func (l LogNormal) String() string {
	if l.Max == math.MaxInt32 {
		return fmt.Sprintf("lognormal:%g,%g", l.M, l.SD)
	}
	return fmt.Sprintf("lognormal:%g,%g,%d", l.M, l.SD, l.Max)
}
