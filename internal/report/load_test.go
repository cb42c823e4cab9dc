package report

import (
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

func TestWordsOfShapes(t *testing.T) {
	for want, l := range map[string]bench.Load{
		"closed loop of 8":                                                                   {Shape: bench.Closed, Concurrency: 8},
		"closed loop of 8, thinking exp:2s":                                                  {Shape: bench.Closed, Concurrency: 8, Think: "exp:2s"},
		"closed loop of 1 to 8 linearly in 10s":                                              {Shape: bench.Closed, Concurrency: 8, Profile: "linear:1,8,10s"},
		"1 user, one request in 5s":                                                          {Shape: bench.Users, Concurrency: 1, Pace: "5s"},
		"4 in prefill, at most 64 in flight":                                                 {Shape: bench.Prefill, Concurrency: 4, Cap: 64},
		"Poisson 1 to 50 req/s exponentially in 1m0s":                                        {Shape: bench.Poisson, Rate: 50, Profile: "exp:1,50,1m0s"},
		"weibull(0.7) 5, 10, 20 req/s for 30s each":                                          {Shape: bench.Weibull, Burstiness: 0.7, Profile: "steps:5,10,20/30s"},
		"constant 9 req/s for 1s, then 0 for 2s, again and again":                            {Shape: bench.Constant, Profile: "bursts:9,1s,0,2s"},
		"gamma(0.5) 20 ± 10 req/s over 24h":                                                  {Shape: bench.Gamma, Burstiness: 0.5, Profile: "sine:20,10,24h"},
		"Poisson 0s=5, 10s=20 req/s":                                                         {Shape: bench.Poisson, Profile: "pieces:0s=5,10s=20"},
		"Poisson 31 pieces req/s":                                                            {Shape: bench.Poisson, Profile: "pieces:0s=5" + strings.Repeat(",10s=20", 30)},
		"at the timestamps of t.txt, 2 times as fast, from 1m0s to 2m0s, beginning after 1s": {Shape: bench.Trace, Times: "t.txt", Speedup: 2, From: time.Minute, To: 2 * time.Minute, Offset: time.Second},
		"all at once, at most 4 in flight, 10.0 % cancelled after 500ms":                     {Shape: bench.Inf, Cap: 4, CancelRate: 0.1, CancelAfter: 500 * time.Millisecond},
		"phases of different loads":                                                          {Shape: bench.Phases},
	} {
		if got := LoadWords(l); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
