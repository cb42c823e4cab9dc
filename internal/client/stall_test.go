package client

import (
	"slices"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

func TestStalls(t *testing.T) {
	const ms = time.Millisecond
	var s stalls
	last := s.came(0, 5*ms, true)
	last = s.came(last, 20*ms, true)    // 15 ms: late by half a beat
	last = s.came(last, 60*ms, true)    // 40 ms
	last = s.came(last, 1000*ms, false) // nothing to do
	s.came(last, 1021*ms, true)         // another thread's
	s.came(1000*ms, 1030*ms, true)
	want := []bench.Span{{From: 30 * ms, To: 60 * ms}, {From: 1010 * ms, To: 1030 * ms}}
	if got := s.merged(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range 2 * mostStalls {
		s.add(time.Duration(2+i)*time.Second, time.Duration(2+i)*time.Second+ms)
	}
	if got := s.merged(); len(got) > mostStalls || got[len(got)-1].To != time.Duration(2*mostStalls+1)*time.Second+ms {
		t.Errorf("%d stretches until %v", len(got), got[len(got)-1].To)
	}
}
