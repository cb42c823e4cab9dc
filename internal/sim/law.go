package sim

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Law is a distribution of durations or of lengths in tokens. The zero Law is undefined.
//
// Its words are `fixed:a`, or `a` alone; `uniform:a,b`; `normal:mean,sd`; `lognormal:mean,sd`. Mean and sd of the lognormal law are
// those of the value itself, not of its logarithm. A draw below 0 is taken as 0.
type Law struct {
	kind lawKind
	a, b float64 // ns or tokens
	text string
}

type lawKind uint8

const (
	noLaw lawKind = iota
	fixedLaw
	uniformLaw
	normalLaw
	lognormalLaw
)

// Fixed is the law of a constant duration.
func Fixed(d time.Duration) Law {
	return Law{kind: fixedLaw, a: float64(d), text: "fixed:" + d.String()}
}

// FixedLength is the law of a constant number of tokens.
func FixedLength(n int) Law {
	return Law{kind: fixedLaw, a: float64(n), text: "fixed:" + strconv.Itoa(n)}
}

// ParseDurationLaw reads a law of durations, such as "lognormal:50ms,10ms".
func ParseDurationLaw(s string) (Law, error) {
	return parseLaw(s, `try "20ms", "uniform:10ms,30ms", "normal:20ms,2ms" or "lognormal:20ms,5ms"`, func(v string) (float64, bool) {
		d, err := time.ParseDuration(v)
		return float64(d), err == nil && d >= 0
	})
}

// ParseLengthLaw reads a law of lengths in tokens, such as "uniform:64,256".
func ParseLengthLaw(s string) (Law, error) {
	return parseLaw(s, `try "128", "uniform:64,256", "normal:128,16" or "lognormal:128,64"`, func(v string) (float64, bool) {
		n, err := strconv.Atoi(v)
		return float64(n), err == nil && n >= 0
	})
}

func parseLaw(s, hint string, value func(string) (float64, bool)) (Law, error) {
	bad := func() (Law, error) { return Law{}, fault.Usagef(hint, "%q is not a law", s) }
	name, args, named := strings.Cut(strings.TrimSpace(s), ":")
	if !named {
		name, args = "fixed", name
	}
	law := Law{text: name + ":" + args}
	want := 2
	switch name {
	case "fixed":
		law.kind, want = fixedLaw, 1
	case "uniform":
		law.kind = uniformLaw
	case "normal":
		law.kind = normalLaw
	case "lognormal":
		law.kind = lognormalLaw
	default:
		return bad()
	}
	parts := strings.Split(args, ",")
	if len(parts) != want {
		return bad()
	}
	for i, p := range parts {
		v, ok := value(strings.TrimSpace(p))
		if !ok {
			return bad()
		}
		if i == 0 {
			law.a = v
		} else {
			law.b = v
		}
	}
	if law.kind == uniformLaw && law.b < law.a || law.kind == lognormalLaw && law.a == 0 {
		return bad()
	}
	return law, nil
}

// Defined tells whether there is a law.
func (l Law) Defined() bool { return l.kind != noLaw }

// String returns the law in the words that the parsers read.
func (l Law) String() string { return l.text }

// duration draws a duration; 0 when undefined.
func (l Law) duration(s *rng.Stream) time.Duration {
	if l.kind == uniformLaw {
		return time.Duration(l.a + float64(math.Floor(float64(s.Float64()*(l.b-l.a+1)))))
	}
	return time.Duration(math.Round(min(l.draw(s), math.MaxInt64/4)))
}

// length draws a number of tokens, at least 1.
func (l Law) length(s *rng.Stream) int {
	if l.kind == uniformLaw {
		return max(1, int(l.a)+s.IntN(int(l.b-l.a)+1))
	}
	return int(max(1, math.Round(min(l.draw(s), math.MaxInt32))))
}

func (l Law) draw(s *rng.Stream) float64 {
	switch l.kind {
	case fixedLaw:
		return l.a
	case normalLaw:
		return max(0, l.a+float64(l.b*s.Normal()))
	case lognormalLaw:
		// sigma^2 = ln(1 + sd^2/mean^2), mu = ln mean - sigma^2/2
		ratio := l.b / l.a
		variance := rng.Log(1 + float64(ratio*ratio))
		mu := rng.Log(l.a) - float64(variance/2)
		return rng.Exp(mu + float64(math.Sqrt(variance)*s.Normal()))
	}
	return 0
}
