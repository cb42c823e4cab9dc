package metrics

import (
	"fmt"

	"github.com/prony-bench/prony/internal/bench"
)

// What counts as a long tail: p99 above so many medians.
const (
	tailLong  = 3.0
	tailShort = 1.5
)

// tailSamples is the least number of samples of which a tail is read.
const tailSamples = 100

// readTail says what the shape of the tail tells of the server.
func readTail(s *bench.Summary) []string {
	ratio := func(key string, hi float64) (float64, bool) {
		d := s.Metrics.Dist(key)
		if d == nil || d.N < tailSamples {
			return 0, false
		}
		p50, ok := d.P(50)
		p, ok2 := d.P(hi)
		return p / p50, ok && ok2 && p50 > 0
	}
	ttft, hasTTFT := ratio("ttft_ms", 99)
	tpot, hasTPOT := ratio("tpot_ms", 99)
	itl, hasITL := ratio("itl_ms", 99)
	var out []string
	switch {
	case hasTTFT && hasTPOT && ttft > tailLong && tpot > tailLong:
		out = append(out, fmt.Sprintf("TTFT p99 is %.1f x and TPOT p99 %.1f x its median: the server is saturated", ttft, tpot))
	case hasTTFT && hasTPOT && ttft > tailLong && tpot < tailShort:
		out = append(out, fmt.Sprintf("TTFT p99 is %.1f x its median while TPOT is steady: prefill or the admission queue", ttft))
	}
	if s.Load.InFlight.Peak > 1 && hasITL && hasTPOT && itl > tailShort && tpot < tailShort {
		out = append(out, fmt.Sprintf("ITL p99 is %.1f x its median while TPOT is steady: prefills or preemptions interrupt decoding (see chunked prefill)", itl))
	}
	if d := s.Metrics.Dist("ttft_ms"); d != nil && d.N >= tailSamples {
		p95, ok := d.P(95)
		p99, ok2 := d.P(99)
		if ok && ok2 && p95 > 0 && p99/p95 > 2 {
			out = append(out, fmt.Sprintf("TTFT p99 is %.1f x p95: bursts, long inputs or throttling", p99/p95))
		}
	}
	if s.Steady.Word == wordUp && s.Load.Asked.Defined() {
		out = append(out, "latency rises with time at a fixed rate: the load is beyond the server's capacity")
	}
	return out
}
