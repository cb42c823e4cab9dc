package report

import (
	"math"
	"time"

	"github.com/prony-bench/prony/internal/plot"
	"github.com/prony-bench/prony/internal/stats"
)

// Bounds of the distributions.
const (
	histogramLeast = 5   // samples; fewer have no shape
	binsMost       = 32  // and at most 2 sqrt(n)
	ecdfPoints     = 400 // corners of a curve: one a pixel of a small figure
)

// histogram draws how a metric is distributed.
func (b *builder) histogram(m *Model, key string) {
	values, unit, size := b.sorted(key)
	if len(values) < histogramLeast {
		return
	}
	d := b.def(key)
	p50, _ := stats.Quantile(values, 50)
	log := values[0] > 0 && values[len(values)-1] > logFrom*p50
	scaled := make([]float64, len(values))
	for i, v := range values {
		scaled[i] = v / size
	}
	bins := plot.Histogram(scaled, min(binsMost, int(2*math.Sqrt(float64(len(values))))), log)
	c := &plot.Chart{X: plot.Axis{Label: d.Short, Unit: unit, Log: log}, Y: plot.Axis{Label: "requests", Whole: true}, Height: 130,
		Series: []plot.Series{{Form: plot.Bars, Color: plot.Tint, Bins: bins}}}
	if len(bins) > 0 {
		c.X.From, c.X.To = bins[0].From, bins[len(bins)-1].To
	}
	if len(values) >= findingLeast {
		c.Rules = append(c.Rules, plot.Rule{Label: "p50", At: p50 / size})
		if len(values) >= tailLeast {
			p99, _ := stats.Quantile(values, 99)
			c.Rules = append(c.Rules, plot.Rule{Label: "p99", At: p99 / size})
		}
	}
	c.Title = shape(d.Short, d.Short+" of "+plural(len(values), "request", "requests"), millis, values)
	c.Alt = "histogram of " + d.Name + " in " + unit
	f := Figure{Name: key[:len(key)-3] + "-histogram", Title: c.Title, Plot: c}
	if log {
		f.Note = "logarithmic"
	}
	m.Shapes = append(m.Shapes, f)
}

// limited draws the share of requests within each limit.
func (b *builder) limited(m *Model) {
	for _, l := range b.man.Spec.SLO {
		key := l.Metric + "_ms"
		if b.measure.Load.Open() && (l.Metric == "ttft" || l.Metric == "e2el") {
			key = l.Metric + "_from_due_ms"
		}
		if l.Metric == "itl" {
			continue // judged by the longest gap of a request, which is no metric of its own
		}
		values, unit, size := b.sorted(key)
		if len(values) == 0 {
			continue
		}
		d := b.def(key)
		limit := float64(l.Max) / float64(time.Millisecond)
		within := 0
		for _, v := range values {
			if v <= limit {
				within++
			}
		}
		scaled := make([]float64, len(values))
		for i, v := range values {
			scaled[i] = v / size
		}
		points := plot.ECDF(scaled, ecdfPoints)
		for i := range points {
			points[i].Y *= 100
		}
		p50, _ := stats.Quantile(values, 50)
		c := &plot.Chart{X: plot.Axis{Label: d.Short, Unit: unit, Log: values[0] > 0 && values[len(values)-1] > logFrom*p50},
			Y:      plot.Axis{Label: "requests within", Unit: "%", From: 0, To: 100},
			Height: 130, Series: []plot.Series{{Form: plot.Step, Color: plot.Accent, Points: points}}}
		c.X.From, c.X.To = scaled[0], scaled[len(scaled)-1]
		if limit <= limitNear*values[len(values)-1] {
			c.Rules = []plot.Rule{{Label: "limit " + limitWords(l.Max), At: limit / size}}
			c.X.From, c.X.To = min(c.X.From, limit/size), max(c.X.To, limit/size)
		}
		c.Title = percent(float64(within)/float64(len(values))) + " of the answered requests have " + d.Short + " within " + limitWords(l.Max)
		c.Alt = "cumulative share of requests by " + d.Name
		m.Limited = append(m.Limited, Figure{Name: l.Metric + "-limit", Title: c.Title, Plot: c})
	}
}
