package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// CurveCSV writes a sweep as a table for other programs: a row for each figure of each level, all digits. What is not defined is empty.
func CurveCSV(w io.Writer, c *bench.Curve) error {
	out := csv.NewWriter(w)
	number := func(v opt.Of[float64]) string {
		if x, ok := v.Get(); ok {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
		return ""
	}
	out.Write([]string{string(c.Plan.Axis), "key", "unit", "mean", "ci95_low", "ci95_high", "rounds"}) // the writer keeps its error for Error
	for _, l := range c.Levels {
		for _, m := range l.Metrics {
			n := 0
			for _, v := range m.Rounds {
				if v.Defined() {
					n++
				}
			}
			out.Write([]string{strconv.FormatFloat(l.Load, 'g', -1, 64), m.Key, m.Unit, number(m.Mean), number(m.Low), number(m.High), strconv.Itoa(n)})
		}
	}
	out.Flush()
	return out.Error()
}
