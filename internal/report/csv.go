package report

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
)

// CSV is a table of all metrics for other programs: one row each, all digits. A single value stands under mean, without n; what is not
// defined is empty.
type CSV struct{}

// Name is csv.
func (CSV) Name() string { return "csv" }

// Render writes the table.
func (CSV) Render(w io.Writer, m *Model) error {
	out := csv.NewWriter(w)
	var percentiles []float64
	for _, x := range m.Summary.Metrics {
		if x.Dist != nil {
			for _, q := range x.Dist.Quantiles {
				percentiles = append(percentiles, q.P)
			}
		}
	}
	slices.Sort(percentiles)
	percentiles = slices.Compact(percentiles)
	head := []string{"key", "unit", "n", "mean", "sd", "min"}
	for _, p := range percentiles {
		head = append(head, bench.PercentileKey(p))
	}
	out.Write(append(head, "max", "ci95_low", "ci95_high")) // the writer keeps its error for Error
	for _, x := range m.Summary.Metrics {
		row := make([]string, len(head)+3)
		row[0] = x.Key
		if d, ok := metrics.Lookup(x.Key); ok {
			row[1] = d.Unit
		}
		switch {
		case x.Scalar != nil:
			row[3] = exact(x.Scalar.Value)
		case x.Dist != nil:
			d := x.Dist
			row[2], row[3], row[4], row[5] = strconv.Itoa(d.N), exact(opt.Some(d.Mean)), exact(d.SD), exact(opt.Some(d.Min))
			for i, p := range percentiles {
				if v, ok := d.P(p); ok {
					row[6+i] = exact(opt.Some(v))
				}
			}
			row[len(head)] = exact(opt.Some(d.Max))
			if ci, ok := d.CI["mean"]; ok {
				row[len(head)+1], row[len(head)+2] = exact(opt.Some(ci[0])), exact(opt.Some(ci[1]))
			}
		}
		out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// exact writes all digits of a value, or nothing.
func exact(v opt.Of[float64]) string {
	if x, ok := v.Get(); ok {
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return ""
}
