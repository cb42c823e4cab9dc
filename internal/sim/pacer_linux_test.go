package sim

import (
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/rng"
)

// The heap gives the replies in the order of their due times, whatever the order in which they came.
func TestHeap(t *testing.T) {
	const n = 1000
	var p pacer
	draws := rng.New(1, "heap")
	for range n {
		p.insert(&reply{due: time.Duration(draws.IntN(100))})
		if draws.IntN(3) == 0 {
			p.insert(p.pop())
		}
	}
	last := time.Duration(-1)
	for i := range n {
		r := p.pop()
		if r.due < last {
			t.Fatalf("%d: %v after %v", i, r.due, last)
		}
		last = r.due
	}
	if len(p.heap) != 0 {
		t.Errorf("%d left", len(p.heap))
	}
}
