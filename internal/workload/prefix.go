package workload

import (
	"iter"
	"slices"
	"strconv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Prefix is the data set `prefix`: prompts that begin alike. All begin with a system prompt of --system-len tokens; then comes one of
// --prefixes prefixes of --prefix-len tokens; then what is the prompt's own, of --isl tokens. It is vLLM's prefix_repetition, and with
// groups for prefixes SGLang's generated-shared-prefix.
type Prefix struct{}

// Name implements Dataset.
func (Prefix) Name() string { return "prefix" }

// Invents implements Inventor.
func (Prefix) Invents() {}

// mostPrefixes bounds the prefixes of a run.
const mostPrefixes = 1_000_000

// Open implements Dataset.
func (Prefix) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	w := c.Spec
	switch {
	case w.Path != "" || w.Prompt != "":
		return nil, fault.New(fault.Usage, "the data set prefix takes neither a file nor a prompt", "give --system-len, or --prefixes with --prefix-len")
	case c.inputs():
		return nil, fault.New(fault.Usage, "the data set prefix is of requests that generate", "use --dataset random")
	case w.SystemLen < 0 || w.PrefixLen < 0 || w.Prefixes < 0 || w.SystemLen > maxLength || w.PrefixLen > maxLength || w.Prefixes > mostPrefixes:
		return nil, fault.Usagef("such as --prefixes 10 --prefix-len 1024", "--system-len %d, --prefixes %d, --prefix-len %d: out of range", w.SystemLen, w.Prefixes, w.PrefixLen)
	case (w.Prefixes > 0) != (w.PrefixLen > 0):
		return nil, fault.New(fault.Usage, "--prefixes and --prefix-len belong together", "such as --prefixes 10 --prefix-len 1024")
	case w.SystemLen == 0 && w.Prefixes == 0:
		return nil, fault.New(fault.Usage, "the data set prefix needs to know what prompts share", "give --system-len 512, or --prefixes 10 --prefix-len 1024, or both")
	}
	law, err := pairs(c)
	if err != nil {
		return nil, err
	}
	return func(yield func(bench.Request, error) bool) {
		r := c.stream()
		offset := c.offset()
		order := rng.New(c.Seed, c.stretch("workload/order"))
		var left []int
		for i := 0; ; i++ {
			n, out, class := law.Draw(r)
			q := bench.Request{ISL: w.SystemLen + w.PrefixLen + n, OSL: out, Class: class}
			var parts []Part
			if w.SystemLen > 0 {
				parts = append(parts, Part{c.number(offset, 0), w.SystemLen, rng.New(c.Seed, c.stretch("workload/system"))})
			}
			if w.Prefixes > 0 {
				// every prefix once, in a random order, then all again: each has as many prompts
				if len(left) == 0 {
					left = permutation(w.Prefixes, order)
				}
				k := left[0]
				left = left[1:]
				parts = append(parts, Part{c.number(offset, 1+k), w.PrefixLen, rng.New(c.Seed, c.stretch("workload/prefixes")+"/"+strconv.Itoa(k))})
			}
			parts = append(parts, Part{c.number(offset, 1+w.Prefixes+i), n, r})
			c.Maker.Join(&q, parts)
			if !yield(q, nil) {
				return
			}
		}
	}, nil
}

// permutation returns the numbers below n in a random order.
func permutation(n int, r *rng.Stream) []int {
	out := slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})
	for i := n - 1; i > 0; i-- {
		k := r.IntN(i + 1)
		out[i], out[k] = out[k], out[i]
	}
	return out
}
