package sim

import (
	"math"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

func TestLaws(t *testing.T) {
	for _, s := range []string{"", "x", "fixed", "fixed:", "fixed:1ms,2ms", "uniform:1ms", "uniform:2ms,1ms", "normal:1ms", "lognormal:0s,1ms",
		"gamma:1ms,1ms", "-1ms", "fixed:5"} {
		if l, err := ParseDurationLaw(s); fault.CodeOf(err) != fault.Usage || l.Defined() {
			t.Errorf("%q is %v, %v", s, l, err)
		}
	}
	if l := must(ParseDurationLaw(" 20ms ")); l != Fixed(20*time.Millisecond) || l.String() != "fixed:20ms" {
		t.Errorf("%+v", l)
	}
	if l := must(ParseLengthLaw("uniform:3,5")); l.String() != "uniform:3,5" {
		t.Errorf("%+v", l)
	}
	for _, c := range []struct {
		law      Law
		mean, sd float64 // in ms
	}{
		{must(ParseDurationLaw("uniform:10ms,30ms")), 20, 20 / math.Sqrt(12)}, {must(ParseDurationLaw("normal:20ms,3ms")), 20, 3},
		{must(ParseDurationLaw("lognormal:20ms,10ms")), 20, 10}, {Fixed(20 * time.Millisecond), 20, 0},
	} {
		const n = 40_000
		draws, sum, sq := rng.New(1, "test"), 0.0, 0.0
		for range n {
			x := c.law.duration(draws).Seconds()*1e3 - c.mean
			sum, sq = sum+x, sq+x*x
		}
		// five standard errors of the mean; 4 % of the deviation
		if sd := math.Sqrt(sq / n); math.Abs(sum/n) > 5*c.sd/math.Sqrt(n)+1e-9 || math.Abs(sd-c.sd) > 0.04*c.sd {
			t.Errorf("%v: mean off by %g ms, deviation %g", c.law, sum/n, sd)
		}
	}
	seen := map[int]int{}
	draws := rng.New(2, "test")
	for range 3000 {
		seen[must(ParseLengthLaw("uniform:3,5")).length(draws)]++
		if d := must(ParseDurationLaw("normal:1ms,5ms")).duration(draws); d < 0 {
			t.Fatal(d)
		}
	}
	if len(seen) != 3 || seen[3] < 850 || seen[4] < 850 || seen[5] < 850 || FixedLength(0).length(draws) != 1 {
		t.Errorf("lengths %v", seen)
	}
	want := Cost{Base: 5 * time.Millisecond, PerPrefill: 20_000, PerRead: 1}
	if c, err := ParseCost("base=5ms, prefill=20us,read=1ns"); err != nil || *c != want {
		t.Errorf("%+v, %v", c, err)
	}
	for _, s := range []string{"", "base", "base=-1s", "speed=1s", "base=1"} {
		if _, err := ParseCost(s); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q: %v", s, err)
		}
	}
}
