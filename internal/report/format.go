package report

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/plot"
)

// dash stands for what is not defined.
const dash = "-"

// decimalsMost bounds the decimals of a number; smaller ones are given as a bound.
const decimalsMost = 4

// greatest bounds a number that is written out; greater ones are given as a bound.
const greatest = 1e15

// number writes a value with three significant digits and commas between thousands: 83.1, 12,600, 0.0213.
func number(v float64) string { return significant(v, 3) }

func significant(v float64, digits int) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return dash
	case a == 0:
		return "0"
	case a < 0.5*math.Pow10(-decimalsMost):
		return "<0.0001"
	case a >= greatest:
		return map[bool]string{true: "<-", false: ">"}[v < 0] + plot.Thousands(strconv.FormatFloat(greatest, 'f', 0, 64))
	}
	exp := exponent(a, digits)
	decimals := digits - 1 - exp
	if decimals < 0 {
		unit := math.Pow10(-decimals)
		return plot.Thousands(strconv.FormatFloat(math.Round(v/unit)*unit, 'f', 0, 64))
	}
	return plot.Thousands(strconv.FormatFloat(v, 'f', min(decimals, decimalsMost), 64))
}

// exponent is the power of ten of the first digit that is left after rounding: 1 for 99.94, 2 for 99.97 with three digits.
func exponent(a float64, digits int) int {
	s := strconv.FormatFloat(a, 'e', digits-1, 64)
	_, e, _ := strings.Cut(s, "e")
	n, _ := strconv.Atoi(e) // FormatFloat writes an integer
	return n
}

// optional writes a value, or a dash.
func optional(v opt.Of[float64]) string {
	if x, ok := v.Get(); ok {
		return number(x)
	}
	return dash
}

// count writes a whole number with commas between thousands.
func count(n int) string { return plot.Thousands(strconv.Itoa(n)) }

// percent writes a share as per cent with one decimal, or with two where these tell it from 0 and from 100.
func percent(share float64) string {
	p := 100 * share
	switch {
	case math.IsNaN(p) || math.IsInf(p, 0):
		return dash
	case p == 0 || p == 100:
		return strconv.Itoa(int(p)) + " %"
	case p > 0 && p < 0.005:
		return "<0.01 %"
	case p > 99.995 && p < 100:
		return ">99.99 %"
	}
	s := strconv.FormatFloat(p, 'f', 1, 64)
	if s == "0.0" || s == "100.0" && p < 100 {
		s = strconv.FormatFloat(p, 'f', 2, 64)
	}
	return plot.Thousands(s) + " %"
}

// longMS is where times change from ms to s.
const longMS = 10_000

// timeUnit is the unit in which a group of times reads best, and how many ms it has: s where one of them is 10 s or more.
func timeUnit(ms ...float64) (unit string, size float64) {
	for _, v := range ms {
		if v >= longMS {
			return "s", 1000
		}
	}
	return "ms", 1
}

// millis writes a time with its unit.
func millis(ms float64) string {
	unit, size := timeUnit(ms)
	return number(ms/size) + " " + unit
}

// limitWords writes a limit as it was given, with all its digits.
func limitWords(d time.Duration) string {
	if d >= longMS*time.Millisecond {
		return plot.Thousands(plain(d.Seconds())) + " s"
	}
	return plot.Thousands(plain(float64(d)/float64(time.Millisecond))) + " ms"
}

// seconds writes a stretch of a run.
func seconds(s float64) string { return number(s) + " s" }

// interval writes the ends of an interval, with as many digits (three to six) as tell them apart.
func interval(lo, hi float64) string {
	for digits := 3; ; digits++ {
		a, b := significant(lo, digits), significant(hi, digits)
		if a != b || digits == 6 || lo == hi {
			return a + " .. " + b
		}
	}
}

// span writes a duration of a flag: 10m, not 10m0s.
func span(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// gibibytes writes an amount of memory.
func gibibytes(n float64) string { return number(n/(1<<30)) + " GiB" }

// plain writes a setting as it was given: all its digits, without commas.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// times writes a ratio.
func times(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// percentileName writes 99 as p99 and 99.9 as p99.9.
func percentileName(p float64) string { return "p" + plain(p) }

// plural writes a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}
