package report

import (
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
	"github.com/prony-bench/prony/internal/stats"
)

// Bounds of the figures over time.
const (
	dotsMost     = 600 // above, a band and the extremes stand for single values
	timeBuckets  = 48  // parts of the window for medians over time, at most
	bucketMean   = 6   // samples a part, on average and at least
	bucketLeast  = 3   // samples of a part that has a median
	bandLeast    = 8   // and of one that has a band
	levelSamples = 500 // times at which the number in flight is read for its finding
)

// timeFigures share one axis.
type timeFigures struct {
	b      *builder
	window float64 // its length in s
	sends  float64 // time of the last send
	last   *plot.Chart
}

func (t *timeFigures) axis() plot.Axis { return plot.Axis{Unit: "s", From: 0, To: t.window} }

// outside are the stretches before and after the plateau.
func (t *timeFigures) outside() []plot.Span {
	from, to, ok := t.b.plateau()
	if !ok {
		return nil
	}
	return []plot.Span{{From: 0, To: from, Label: "before the plateau"}, {From: to, To: t.window, Label: "after the plateau"}}
}

// unitOf is the unit of a figure of times in ms, and how many ms it has.
func unitOf(values []float64) (unit string, size float64) {
	if len(values) == 0 {
		return "ms", 1
	}
	return timeUnit(slices.Max(values))
}

// add puts a figure below the others. The axis is named below the last one.
func (t *timeFigures) add(m *Model, name, note string, c *plot.Chart) {
	if t.last != nil {
		t.last.X.Label = ""
	} else if len(c.Spans) > 0 {
		note = joined("; ", note, "shaded: outside of the plateau")
	}
	c.X.Label = "time since the first request"
	t.last = c
	m.OverTime = append(m.OverTime, Figure{Name: name, Title: c.Title, Note: note, Plot: c})
}

// latency draws single values, or where these are many a band and the extremes, with the median over time. each says what one value is.
func (t *timeFigures) latency(m *Model, key, name, each string, s series) {
	if len(s.values) == 0 {
		return
	}
	unit, size := unitOf(s.values)
	c := &plot.Chart{X: t.axis(), Y: plot.Axis{Label: name, Unit: unit}, Spans: t.outside()}
	note := ""
	middle, low, high := t.medians(s, size)
	if len(s.values) <= dotsMost {
		points := make([]plot.Point, len(s.times))
		for i := range s.times {
			points[i] = plot.Point{X: s.times[i], Y: s.values[i] / size}
		}
		c.Series = append(c.Series, plot.Series{Name: "each " + each, Form: plot.Dots, Color: plot.Accent, Points: points})
	} else {
		thin := plot.NewThin(0, t.window, thinColumns)
		for i := range s.times {
			thin.Add(s.times[i], s.values[i]/size)
		}
		c.Series = append(c.Series, plot.Series{Name: "extremes", Form: plot.Dots, Color: plot.Accent, Points: thin.Extremes()},
			plot.Series{Name: "p10 to p90", Form: plot.Band, Color: plot.Accent, Points: high, Low: low})
		note = "of " + count(len(s.values)) + " values only the extremes are dots"
	}
	if len(middle) > 1 {
		c.Series = append(c.Series, plot.Series{Name: "median", Form: plot.Line, Color: plot.Accent, Points: middle})
	}
	if each == "request" {
		c.Series = append(c.Series, t.failed()...)
	}
	sorted := slices.Sorted(slices.Values(s.values))
	p50, _ := stats.Quantile(sorted, 50)
	if c.Y.Log = sorted[0] > 0 && sorted[len(sorted)-1] > logFrom*p50; c.Y.Log {
		note = joined("; ", "logarithmic", note)
	}
	if limit, ok := t.b.limitOf(key); ok && limit <= limitNear*sorted[len(sorted)-1] {
		c.Rules = append(c.Rules, plot.Rule{Label: "limit " + millis(limit), At: limit / size, Flat: true})
	}
	until := t.sends
	if each != "request" && until < t.window/2 {
		until = t.window // all was sent early, but its events came all the time
	}
	if until < t.window/findingTenths {
		until = 0 // there is no time to go over
	}
	c.Title = overTime(name, name+" of each "+each+" over time", millis, s, overTimeLeast, 0, until)
	c.Alt = name + " in " + unit + " over the time in s since the first request"
	t.add(m, strings.TrimSuffix(key, "_ms")+"-over-time", note, c)
}

// medians returns the median and the edges of the band from p10 to p90 of parts of the window.
func (t *timeFigures) medians(s series, size float64) (middle, low, high []plot.Point) {
	parts := make([][]float64, max(1, min(timeBuckets, len(s.values)/bucketMean)))
	for i, at := range s.times {
		k := max(0, min(int(at/t.window*float64(len(parts))), len(parts)-1))
		parts[k] = append(parts[k], s.values[i]/size)
	}
	for k, p := range parts {
		slices.Sort(p)
		at := (float64(k) + 0.5) / float64(len(parts)) * t.window
		point := func(percentile float64) plot.Point {
			v, _ := stats.Quantile(p, percentile) // there are samples
			return plot.Point{X: at, Y: v}
		}
		if len(p) >= bucketLeast {
			middle = append(middle, point(50))
		}
		if len(p) >= bandLeast {
			low, high = append(low, point(10)), append(high, point(90))
		}
	}
	return middle, low, high
}

// failed marks when failed requests were sent.
func (t *timeFigures) failed() []plot.Series {
	var points []plot.Point
	for _, r := range t.b.ctx.Records {
		if sent, ok := r.Sent.Get(); ok && r.Outcome.Failed() {
			points = append(points, plot.Point{X: (sent - t.b.ctx.From).Seconds()})
		}
	}
	if len(points) == 0 {
		return nil
	}
	return []plot.Series{{Name: "failed", Form: plot.Marks, Color: plot.Bad, Points: points}}
}

// inFlight draws the number of requests in flight.
func (t *timeFigures) inFlight(m *Model) {
	type change struct {
		at time.Duration
		by int
	}
	var changes []change
	for _, r := range t.b.ctx.Records {
		if sent, ok := r.Sent.Get(); ok {
			end := max(sent, r.End.Or(r.Last.Or(sent)))
			changes = append(changes, change{sent, 1}, change{end, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(min(1, max(-1, a.at-b.at)))
		}
		return a.by - b.by // at one moment those that end come first
	})
	thin := plot.NewThin(0, t.window, thinColumns)
	var s series
	level, peak, before := 0, 0, 0.0
	for i, c := range changes {
		level += c.by
		peak = max(peak, level)
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue // only the level after a moment is drawn
		}
		at := (c.at - t.b.ctx.From).Seconds()
		for len(s.times) < levelSamples && t.window*float64(len(s.times))/levelSamples < at {
			s.times = append(s.times, t.window*float64(len(s.times))/levelSamples)
			s.values = append(s.values, before) // the level that held until now
		}
		thin.Add(at, float64(level))
		before = float64(level)
	}
	c := &plot.Chart{X: t.axis(), Y: plot.Axis{Label: "requests in flight", Whole: true}, Height: 100, Spans: t.outside(),
		Series: []plot.Series{{Form: plot.StepArea, Color: plot.Accent, Points: thin.Points()}}}
	limit := t.b.measure.Load.InFlightLimit()
	if limit > 0 && t.b.measure.Load.Open() && float64(limit) <= limitNear*float64(peak) {
		c.Rules = append(c.Rules, plot.Rule{Label: "at most " + count(limit), At: float64(limit), Flat: true})
	}
	most := "At most " + plural(peak, "request", "requests") + " in flight"
	c.Title = overTime("Concurrency", most, func(v float64) string { return significant(v, 2) }, s, overTimeLeast, t.filled(), t.sends)
	if full := t.b.sum.Steady; t.b.measure.Load.Shape == bench.Closed && full.From.Defined() {
		c.Title = "The closed loop of " + count(limit) + " is full from " + significant(full.From.Or(0), 2) + " s to " + significant(full.To.Or(0), 2) + " s"
	}
	note := "at most " + count(peak)
	if c.Title == most {
		note = ""
	}
	c.Alt = "requests in flight over the time in s since the first request; the most is " + count(peak)
	t.add(m, "in-flight", note, c)
}

// filled is when the first ok request ended: before that the number of requests in flight and the output can only rise, which is no
// finding.
func (t *timeFigures) filled() float64 {
	first := t.window
	for _, r := range t.b.ctx.Records {
		if r.Outcome == bench.OK {
			first = min(first, (ended(r) - t.b.ctx.From).Seconds())
		}
	}
	return first
}

// shortLast is the least length of the last second of a run that has a rate, in s.
const shortLast = 0.25

// throughput draws the output tokens of each second.
func (t *timeFigures) throughput(m *Model) {
	var points []plot.Point
	var s series
	for _, sec := range t.b.sum.Series {
		v, ok := sec.Tokens.Get()
		length := min(1, t.window-sec.T)
		if !ok || length < shortLast {
			continue
		}
		points = append(points, plot.Point{X: sec.T, Y: v / length})
		s.times, s.values = append(s.times, sec.T), append(s.values, v/length)
	}
	if len(points) < 2 {
		return
	}
	last := points[len(points)-1]
	points = append(points, plot.Point{X: min(last.X+1, t.window), Y: last.Y})
	c := &plot.Chart{X: t.axis(), Y: plot.Axis{Label: "output", Unit: "tok/s"}, Height: 100, Spans: t.outside(),
		Series: []plot.Series{{Form: plot.StepArea, Color: plot.Accent, Points: points}}}
	rate := func(v float64) string { return number(v) + " tok/s" }
	c.Title = overTime("Output", "Output peaks at "+rate(slices.Max(s.values)), rate, s, secondsLeast, t.filled(), t.sends-1)
	c.Alt = "output tokens/s over the time in s since the first request"
	t.add(m, "throughput", "by the second", c)
}

// lastSend is the time from the begin of the window to the last send, in s: what comes after is the drain.
func (b *builder) lastSend() float64 {
	last := b.ctx.From
	for _, r := range b.ctx.Records {
		last = max(last, r.Sent.Or(last))
	}
	return (last - b.ctx.From).Seconds()
}
