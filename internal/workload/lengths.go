package workload

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Pair is a law of two lengths that belong together: of a prompt, and of its answer.
type Pair interface {
	// Draw returns both lengths, and the class of the request: the part of a mixture, or "".
	Draw(r *rng.Stream) (in, out int, class string)
	// Mean is the expected length of a prompt.
	Mean() float64
}

// pairs reads the laws of a spec's lengths.
func pairs(c Config) (Pair, error) {
	w := c.Spec
	given := 0
	for _, s := range []string{w.ISL, w.Mix, w.Lengths} {
		if s != "" {
			given++
		}
	}
	if given > 1 || given == 1 && w.ISL == "" && w.OSL != "" {
		return nil, fault.New(fault.Usage, "--isl with --osl, --mix and --lengths exclude each other", "each says how long prompts and answers are")
	}
	if given == 1 && w.ISL == "" && w.RangeRatio != 0 {
		return nil, fault.New(fault.Usage, "--range-ratio spreads a fixed length, but a mixture or a file is given", "put the spread into the laws: uniform:a,b")
	}
	switch {
	case w.Mix != "":
		return ParseMix(w.Mix)
	case w.Lengths != "":
		return cached(c, "lengths\x00"+w.Lengths, func() (Pair, error) { return readLengths(c, w.Lengths) })
	}
	isl, osl, err := lengths(c)
	return independent{isl, osl}, err
}

// PromptMean is the expected length of a workload's prompts, as far as its laws tell.
func PromptMean(w bench.Workload) (float64, bool) {
	switch {
	case w.Mix != "":
		m, err := ParseMix(w.Mix)
		return m.Mean(), err == nil
	case w.ISL != "":
		l, err := ParseLaw(w.ISL)
		if err != nil {
			return 0, false
		}
		return l.Mean() + float64(w.SystemLen+w.PrefixLen), true
	}
	return 0, false
}

// independent draws both lengths by laws of their own.
type independent struct{ in, out Law }

func (p independent) Draw(r *rng.Stream) (int, int, string) {
	n := p.in.Draw(r)
	return n, p.out.Draw(r), ""
}

func (p independent) Mean() float64 { return p.in.Mean() }

// Mix is a mixture of pairs of laws.
type Mix []MixPart

// MixPart is one part of a mixture.
type MixPart struct {
	In, Out Law
	Weight  float64 // of all parts together: any sum
	Class   string
}

const mixForm = `such as --mix "512,128:0.7;4096,512:0.3": input, output : weight; between laws with arguments write /, as in "lognormal:800,400/128:1"`

// ParseMix reads a mixture.
func ParseMix(s string) (Mix, error) {
	var m Mix
	sum := 0.0
	for _, part := range strings.Split(s, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		bad := func(format string, a ...any) (Mix, error) {
			return nil, fault.Usagef(mixForm, "--mix %q: %s", part, fmt.Sprintf(format, a...))
		}
		i := strings.LastIndexByte(part, ':')
		if i < 0 {
			return bad("it has no weight")
		}
		weight, err := strconv.ParseFloat(strings.TrimSpace(part[i+1:]), 64)
		if err != nil {
			return bad("%s is no weight", part[i+1:])
		}
		if !(weight > 0 && weight <= 1e9) {
			return bad("the weight must be above 0")
		}
		laws := strings.Split(part[:i], "/")
		if len(laws) == 1 {
			laws = strings.Split(part[:i], ",")
		}
		if len(laws) != 2 {
			return bad("it is not two lengths")
		}
		p := MixPart{Weight: weight, Class: part[:i]}
		if p.In, err = ParseLaw(laws[0]); err != nil {
			return nil, err
		}
		if p.Out, err = ParseLaw(laws[1]); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(m, func(o MixPart) bool { return o.Class == p.Class }) {
			return bad("it is given twice")
		}
		m = append(m, p)
		sum += weight
	}
	if len(m) == 0 {
		return nil, fault.New(fault.Usage, "--mix is empty", mixForm)
	}
	return m, nil
}

// Draw implements Pair.
func (m Mix) Draw(r *rng.Stream) (int, int, string) {
	sum := 0.0
	for _, p := range m {
		sum += p.Weight
	}
	x := float64(sum * r.Float64())
	k := 0
	for ; k < len(m)-1 && x >= m[k].Weight; k++ {
		x -= m[k].Weight
	}
	n := m[k].In.Draw(r)
	return n, m[k].Out.Draw(r), m[k].Class
}

// Mean implements Pair.
func (m Mix) Mean() float64 {
	sum, weights := 0.0, 0.0
	for _, p := range m {
		sum += p.Weight * p.In.Mean()
		weights += p.Weight
	}
	return sum / weights
}

// observed draws rows of two columns of a file: both lengths of one row together.
type observed [][2]int32

func (o observed) Draw(r *rng.Stream) (int, int, string) {
	x := o[r.IntN(len(o))]
	return int(x[0]), int(x[1]), ""
}

func (o observed) Mean() float64 {
	sum := 0.0
	for _, x := range o {
		sum += float64(x[0])
	}
	return sum / float64(len(o))
}

// readLengths reads FILE:COLUMN,COLUMN of a CSV file, the columns by name or by number from 1.
func readLengths(c Config, s string) (Pair, error) {
	const form = "such as --lengths requests.csv:prompt_tokens,output_tokens, or columns by number: requests.csv:1,2"
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return nil, fault.Usagef(form, "--lengths %q names no columns", s)
	}
	path := s[:i]
	names := strings.Split(s[i+1:], ",")
	if len(names) != 2 {
		return nil, fault.Usagef(form, "--lengths %q does not name two columns", s)
	}
	count := &tally{path: path, strict: c.Spec.Strict, hint: form}
	var columns [2]int
	begun := false
	var out observed
	var fields [][]byte
	err := eachLine(path, func(at piece, line []byte) (err error) {
		if fields, err = fieldsOf(line, fields[:0]); err != nil {
			return count.row(at.line, err)
		}
		if !begun {
			begun = true
			byName := false
			for k, name := range names {
				name = strings.TrimSpace(name)
				columns[k] = slices.IndexFunc(fields, func(f []byte) bool { return strings.EqualFold(string(bytes.TrimSpace(f)), name) })
				if byName = byName || columns[k] >= 0; columns[k] >= 0 {
					continue
				}
				n, err := strconv.Atoi(name)
				if err != nil || n < 1 || n > len(fields) {
					return fault.Usagef(form, "%s:%d: there is no column %s", path, at.line, name)
				}
				columns[k] = n - 1
			}
			if _, err := strconv.ParseFloat(string(fields[columns[0]]), 64); byName || err != nil {
				return nil // a heading
			}
		}
		var x [2]int32
		for k, col := range columns {
			if col >= len(fields) {
				return count.row(at.line, fmt.Errorf("there are %d columns", len(fields)))
			}
			n, err := whole(strings.TrimSpace(names[k]), fields[col])
			if err == nil && n == 0 {
				err = fmt.Errorf("%s is 0", names[k])
			}
			if err != nil {
				return count.row(at.line, err)
			}
			x[k] = int32(n)
		}
		out = append(out, x)
		return count.row(at.line, nil)
	})
	if err != nil {
		return nil, err
	}
	rows, err := count.done()
	if err != nil {
		return nil, err
	}
	c.tell(rows)
	return out, nil
}

// GammaLaw is a gamma law with the given mean and standard deviation, rounded.
type GammaLaw struct {
	M, SD float64
	Max   int
}

// Draw implements Law.
func (g GammaLaw) Draw(r *rng.Stream) int {
	k := float64(g.M/g.SD) * (g.M / g.SD)
	for {
		if x := math.Round(float64(r.Gamma(k) * (g.M / k))); x <= float64(g.Max) {
			return max(1, int(x))
		}
	}
}

// Mean implements Law: without regard to the maximum.
func (g GammaLaw) Mean() float64 { return g.M }

// Least implements Law.
func (GammaLaw) Least() int { return 1 }

func (g GammaLaw) String() string {
	if g.Max == math.MaxInt32 {
		return fmt.Sprintf("gamma:%g,%g", g.M, g.SD)
	}
	return fmt.Sprintf("gamma:%g,%g,%d", g.M, g.SD, g.Max)
}

// Zipf is Zipf's law: the length k has a share proportional to k^-S, for k from Min to Max.
type Zipf struct {
	S        float64
	Min, Max int
	sums     []float64 // of the shares up to each length
	mean     float64
}

// mostZipf bounds the lengths of a Zipf law: each has an entry in a table.
const mostZipf = 1 << 20

// NewZipf returns the law.
func NewZipf(s float64, least, most int) Zipf {
	z := Zipf{S: s, Min: least, Max: most, sums: make([]float64, 0, most-least+1)}
	sum, weighted := 0.0, 0.0
	for k := least; k <= most; k++ {
		p := rng.Exp(-float64(s * rng.Log(float64(k)/float64(least))))
		sum += p
		weighted += float64(p * float64(k))
		z.sums = append(z.sums, sum)
	}
	z.mean = weighted / sum
	return z
}

// Draw implements Law.
func (z Zipf) Draw(r *rng.Stream) int {
	x := float64(r.Float64() * z.sums[len(z.sums)-1])
	i, _ := slices.BinarySearchFunc(z.sums, x, func(s, x float64) int {
		if s <= x {
			return -1
		}
		return cmp.Compare(s, x)
	})
	return z.Min + min(i, len(z.sums)-1)
}

// Mean implements Law.
func (z Zipf) Mean() float64 { return z.mean }

// Least implements Law.
func (z Zipf) Least() int { return z.Min }

func (z Zipf) String() string { return fmt.Sprintf("zipf:%g,%d,%d", z.S, z.Min, z.Max) }
