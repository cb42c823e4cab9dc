package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/prony-bench/prony/internal/rng"
)

// Any values are sorted as by comparing: of both signs, of all sizes, equal ones, at the lengths where the way changes.
func TestSort(t *testing.T) {
	s := rng.New(8, "sort")
	draws := map[string]func(i int) float64{
		"near":     func(int) float64 { return 10 + s.Float64() },
		"signs":    func(int) float64 { return s.Normal() },
		"all bits": func(int) float64 { return math.Ldexp(s.Float64()-0.5, int(s.Float64()*2000)-1000) },
		"equal":    func(int) float64 { return 5 },
		"few":      func(i int) float64 { return float64(i%3) - 1 },
		"falling":  func(i int) float64 { return float64(-i) },
		"ends": func(i int) float64 {
			return []float64{math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64}[i%6]
		},
	}
	for name, draw := range draws {
		for _, n := range []int{0, 1, 2, radixLeast - 1, radixLeast, radixLeast + 1, 5000} {
			xs := make([]float64, n)
			for i := range xs {
				xs[i] = draw(i)
			}
			want := slices.Clone(xs)
			slices.Sort(want)
			if Sort(xs); !slices.Equal(xs, want) {
				t.Errorf("%d values, %s: not sorted", n, name)
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	for _, n := range []int{radixLeast, 6000, 400_000} {
		s := rng.New(9, "sort")
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = 10 + s.Exp()
		}
		work := make([]float64, n)
		for name, sort := range map[string]func([]float64){"radix": Sort, "slices": slices.Sort[[]float64]} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				for b.Loop() {
					copy(work, xs)
					sort(work)
				}
			})
		}
	}
}
