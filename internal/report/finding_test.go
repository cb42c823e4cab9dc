package report

import (
	"testing"
)

// spread gives n values a tenth, evenly over 100 s.
func spread(n int, levels ...float64) (s series) {
	for k, v := range levels {
		for i := range n {
			s.times = append(s.times, 100*(float64(k)+(float64(i)+0.5)/float64(n))/float64(len(levels)))
			s.values = append(s.values, v)
		}
	}
	return s
}

func TestOverTime(t *testing.T) {
	ms := func(v float64) string { return number(v) + " ms" }
	for _, c := range []struct {
		name string
		s    series
		want string
	}{
		{"flat", spread(10, 80, 80, 80, 80, 80, 80, 80, 80, 80, 80), "TTFT stays near 80.0 ms"},
		{"one tenth apart", spread(10, 80, 80, 80, 81, 200, 79, 80, 80, 80, 80), "TTFT stays near 80.0 ms"},
		{"doubles", spread(10, 80, 80, 170, 165, 170, 170, 170, 170, 170, 170), "TTFT doubles after 20 s, from 80.0 ms to 170 ms"},
		{"grows", spread(10, 80, 80, 80, 80, 80, 80, 800, 800, 800, 800), "TTFT grows 10.0-fold after 60 s, from 80.0 ms to 800 ms"},
		{"rises", spread(10, 80, 80, 80, 80, 80, 80, 130, 130, 130, 130), "TTFT rises by 63 % after 60 s, from 80.0 ms to 130 ms"},
		{"halves", spread(10, 80, 80, 80, 80, 80, 40, 40, 40, 40, 40), "TTFT halves after 50 s, from 80.0 ms to 40.0 ms"},
		{"falls", spread(10, 100, 100, 100, 100, 100, 60, 60, 60, 60, 60), "TTFT falls by 40 % after 50 s, from 100 ms to 60.0 ms"},
		{"cold start", spread(10, 900, 80, 80, 80, 80, 80, 80, 80, 80, 80), "TTFT falls to 1/11.2 after 10 s, from 900 ms to 80.0 ms"},
		{"to nothing", spread(10, 80, 80, 80, 80, 80, 0, 0, 0, 0, 0), "TTFT falls to nothing after 50 s, from 80.0 ms to 0 ms"},
		{"climbs", spread(10, 80, 100, 120, 140, 160, 180, 200, 220, 240, 260), "TTFT climbs all the time, from 80.0 ms to 260 ms"},
		{"sinks", spread(10, 260, 240, 220, 200, 180, 160, 140, 120, 100, 80), "TTFT falls all the time, from 260 ms to 80.0 ms"},
		{"one high end is no step", spread(10, 80, 80, 80, 80, 80, 80, 80, 80, 80, 200), "TTFT stays near 80.0 ms"},
		{"restless", spread(10, 80, 200, 90, 210, 80, 190, 85, 200, 90, 190), "TTFT moves between 80.0 ms and 210 ms"},
		{"few", spread(2, 80, 80, 80, 80, 80, 80, 800, 800, 800, 800), "nothing"},
		{"all in one tenth", series{make([]float64, 60), make([]float64, 60)}, "nothing"},
		{"zero", spread(10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "nothing"},
		{"none", series{}, "nothing"},
	} {
		if got := overTime("TTFT", "nothing", ms, c.s, overTimeLeast, 0, 100); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	// what lies outside of the stretch does not count
	s := spread(10, 1000, 80, 80, 80, 80, 80, 80, 80, 80, 1000)
	if got := overTime("TTFT", "nothing", ms, s, overTimeLeast, 10, 90); got != "TTFT stays near 80.0 ms" {
		t.Errorf("%q", got)
	}
	if got := overTime("TTFT", "nothing", ms, s, overTimeLeast, 50, 50); got != "nothing" {
		t.Errorf("%q", got)
	}
}

func TestShape(t *testing.T) {
	ramp := func(n int, lo, hi float64) (out []float64) {
		for i := range n {
			out = append(out, lo+(hi-lo)*float64(i)/float64(n-1))
		}
		return out
	}
	tail := append(ramp(190, 80, 90), ramp(10, 500, 900)...)
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{ramp(19, 1, 2), "nothing"},
		{nil, "nothing"},
		{ramp(200, 100, 110), "TTFT is tight: p99 is 1.05 x the median"},
		{ramp(50, 100, 110), "TTFT is tight: p90 is 1.04 x the median"},
		{ramp(200, 100, 400), "TTFT: half within 250 ms, 99 % within 397 ms"},
		{tail, "TTFT has a long tail: p99 is 9.5 x the median"},
		{make([]float64, 200), "TTFT: half within 0 ms, 99 % within 0 ms"},
	} {
		if got := shape("TTFT", "nothing", millis, c.values); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestSpent(t *testing.T) {
	names := []string{"queue", "first", "decode"}
	for _, c := range []struct {
		sums []float64
		want string
	}{
		{[]float64{0, 0, 0}, "The 3 requests"},
		{[]float64{0, 1, 0}, "The 3 requests"},
		{[]float64{0.0000001, 1, 0}, "The 3 requests"},
		{[]float64{1, 1, 8}, "In the 3 requests, decode takes 80 % of the time"},
		{[]float64{3, 3, 4}, "In the 3 requests, the time is shared: queue 30 %, first 30 %, decode 40 %"},
	} {
		if got := spent("the 3 requests", names, c.sums); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestCompared(t *testing.T) {
	for _, c := range []struct {
		medians []float64
		want    string
	}{
		{[]float64{100, 105}, "The targets are alike: their TTFT p50 differ by less than 15 %"},
		{[]float64{100, 180, 120}, "TTFT p50 of b is 1.8 x that of a"},
		{[]float64{100}, "TTFT p50"},
		{[]float64{0, 5}, "TTFT p50"},
	} {
		if got := compared("TTFT p50", []string{"a", "b", "c"}, c.medians); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
