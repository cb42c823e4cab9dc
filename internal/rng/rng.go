// Package rng draws random numbers that are the same on every machine.
//
// Each purpose has a stream of its own (workload, schedule, sampling), so that a change in one leaves the others as they were.
// The arithmetic is pinned: every product is rounded before it is added (a compiler may otherwise fuse the two on some
// processors), and logarithm and exponential are computed here, since those of package math differ between processors in the last bit.
package rng

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Stream is one sequence of random numbers. It is used by one goroutine at a time.
type Stream struct {
	src   *rand.PCG
	spare float64 // second value of the last polar draw
	has   bool
}

// New returns the stream of a seed that has the given name. Streams with different names are independent.
func New(seed uint64, name string) *Stream {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash never fails to write
	return &Stream{src: rand.NewPCG(seed, h.Sum64())}
}

// Uint64 returns 64 random bits.
func (s *Stream) Uint64() uint64 { return s.src.Uint64() }

// Float64 returns a number in [0, 1) with 53 random bits.
func (s *Stream) Float64() float64 { return float64(s.src.Uint64()>>11) / (1 << 53) }

// IntN returns a number in [0, n), without bias. It panics when n < 1.
func (s *Stream) IntN(n int) int {
	if n < 1 {
		panic("rng: IntN needs n >= 1")
	}
	u := uint64(n)
	for limit := math.MaxUint64 - math.MaxUint64%u; ; {
		if v := s.src.Uint64(); v < limit {
			return int(v % u)
		}
	}
}

// Exp returns an exponential variate with mean 1.
func (s *Stream) Exp() float64 { return -Log(1 - s.Float64()) }

// Normal returns a normal variate with mean 0 and standard deviation 1 (Marsaglia's polar method).
func (s *Stream) Normal() float64 {
	if s.has {
		s.has = false
		return s.spare
	}
	for {
		u, v := 2*s.Float64()-1, 2*s.Float64()-1
		uu, vv := float64(u*u), float64(v*v)
		q := uu + vv
		if q >= 1 || q == 0 {
			continue
		}
		f := math.Sqrt(float64(-2*Log(q)) / q)
		s.spare, s.has = float64(v*f), true
		return float64(u * f)
	}
}

// Gamma returns a gamma variate with shape k > 0 and mean k (Marsaglia and Tsang 2000).
func (s *Stream) Gamma(k float64) float64 {
	if k < 1 {
		// G(k) = G(k+1) * U^(1/k)
		return float64(s.Gamma(k+1) * Exp(Log(1-s.Float64())/k))
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(float64(9*d))
	for {
		x := s.Normal()
		t := 1 + float64(c*x)
		if t <= 0 {
			continue
		}
		v := float64(float64(t*t) * t)
		rhs := float64(0.5*float64(x*x)) + d - float64(d*v) + float64(d*Log(v))
		if Log(1-s.Float64()) < rhs {
			return float64(d * v)
		}
	}
}

// Log is the natural logarithm, accurate to about 1e-15 and equal on every machine. It is -Inf at 0 and NaN below.
func Log(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	m, e := math.Frexp(x) // x = m * 2^e, m in [0.5, 1)
	if m < math.Sqrt2/2 {
		m, e = m*2, e-1
	}
	// log m = 2 artanh(f), f = (m-1)/(m+1), |f| < 0.172: 12 terms reach 2^-53
	f := (m - 1) / (m + 1)
	ff := float64(f * f)
	sum := 0.0
	for k := 25; k >= 1; k -= 2 {
		sum = float64(sum*ff) + 1/float64(k)
	}
	return float64(float64(e)*math.Ln2) + float64(2*float64(f*sum))
}

// Exp is e^x, accurate to about 1e-15 (relative) and equal on every machine.
func Exp(x float64) float64 {
	if math.IsNaN(x) || x > 700 || x < -700 {
		return math.Exp(x)
	}
	n := math.Floor(x/math.Ln2 + 0.5)
	r := x - float64(n*0x1.62e42fee00000p-1) - float64(n*0x1.a39ef35793c76p-33) // ln 2 in two parts
	sum := 1.0
	for k := 18; k >= 1; k-- {
		sum = 1 + float64(float64(r/float64(k))*sum)
	}
	return math.Ldexp(sum, int(n))
}
