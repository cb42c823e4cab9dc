package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want string
	}{
		{0, "0"}, {83.12, "83.1"}, {101.4, "101"}, {12_590, "12,600"}, {2_530.4, "2,530"}, {999.6, "1,000"}, {99.96, "100"}, {9.996, "10.0"}, {0.9996, "1.00"},
		{0.0213, "0.0213"}, {0.00123, "0.0012"}, {0.00005, "0.0001"}, {0.00004, "<0.0001"}, {-0.5, "-0.500"}, {-1234.5, "-1,230"}, {1_234_567, "1,230,000"},
		{1e15, ">1,000,000,000,000,000"}, {math.NaN(), "-"}, {math.Inf(1), "-"},
	} {
		if got := number(c.in); got != c.want {
			t.Errorf("number(%v) is %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 25_400: "25,400", 1_234_567: "1,234,567", -1000: "-1,000"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) is %q, want %q", n, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		in   float64
		want string
	}{
		{0, "0 %"}, {1, "100 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}, {0.99999, ">99.99 %"}, {0.0004, "0.04 %"}, {0.00001, "<0.01 %"}, {0.9996, "99.96 %"},
		{0.5, "50.0 %"}, {1.00001, "100.0 %"}, {1.25, "125.0 %"}, {-0.1, "-10.0 %"}, {20, "2,000.0 %"}, {math.NaN(), "-"},
	} {
		if got := percent(c.in); got != c.want {
			t.Errorf("percent(%v) is %q, want %q", c.in, got, c.want)
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{millis(81.23), "81.2 ms"}, {millis(1590), "1,590 ms"}, {millis(9_999), "10,000 ms"}, {millis(10_000), "10.0 s"}, {millis(12_345), "12.3 s"}, {millis(0), "0 ms"},
		{seconds(10.05), "10.1 s"}, {seconds(1241), "1,240 s"},
		{limitWords(200 * time.Millisecond), "200 ms"}, {limitWords(12500 * time.Microsecond), "12.5 ms"}, {limitWords(5 * time.Second), "5,000 ms"}, {limitWords(30 * time.Second), "30 s"},
		{span(10 * time.Minute), "10m"}, {span(90 * time.Second), "1m30s"}, {span(2 * time.Hour), "2h"}, {span(30 * time.Second), "30s"},
		{percentileName(99), "p99"}, {percentileName(99.9), "p99.9"},
		{interval(81.04, 85.16), "81.0 .. 85.2"}, {interval(1557.2, 1564.9), "1,557 .. 1,565"}, {interval(5, 5), "5.00 .. 5.00"}, {interval(0, 0), "0 .. 0"},
		{plural(1, "request", "requests"), "1 request"}, {plural(1200, "request", "requests"), "1,200 requests"}, {gibibytes(128 << 30), "128 GiB"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// Numbers have at most three digits that are not 0, whatever their size, and at most four decimals.
func TestNumberDigits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e14, 1e14).Draw(t, "v") * math.Pow(10, -float64(rapid.IntRange(0, 20).Draw(t, "down")))
		s := strings.TrimLeft(strings.TrimPrefix(strings.ReplaceAll(number(v), ",", ""), "-"), "<")
		digits := strings.TrimRight(strings.TrimLeft(strings.ReplaceAll(s, ".", ""), "0"), "0")
		if len(digits) > 3 {
			t.Errorf("number(%v) is %s", v, number(v))
		}
		if _, after, _ := strings.Cut(s, "."); len(after) > decimalsMost {
			t.Errorf("number(%v) is %s", v, number(v))
		}
	})
}

// Two ends of an interval that differ by more than a millionth are shown as different.
func TestIntervalTellsEndsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Float64Range(1, 1e6).Draw(t, "lo")
		hi := lo * (1 + rapid.Float64Range(1e-4, 1).Draw(t, "more"))
		a, b, _ := strings.Cut(interval(lo, hi), " .. ")
		if a == b {
			t.Errorf("interval(%v, %v) is %s", lo, hi, interval(lo, hi))
		}
	})
}
