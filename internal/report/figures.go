package report

import (
	"math"
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/plot"
	"github.com/prony-bench/prony/internal/stats"
)

// Bounds of the figures.
const (
	dotsMost       = 600 // above, a band and the extremes stand for single requests
	histogramLeast = 5   // samples; fewer have no shape
	binsMost       = 32  // and at most 2 sqrt(n)
	ecdfPoints     = 400
	timeBuckets    = 48 // parts of the window for medians over time, at most
	bucketMean     = 6  // samples a part, on average and at least
	bucketLeast    = 3  // samples of a part that has a median
	bandLeast      = 8  // and of one that has a band
	thinColumns    = 900
	levelSamples   = 500  // times at which the number in flight is read for its finding
	logFrom        = 20.0 // an axis is logarithmic when its greatest value is above so many medians
	limitNear      = 2.0  // a limit is drawn when it is below so many times the greatest value
)

// figures draws the run.
func (b *builder) figures(m *Model) {
	if b.ctx == nil || !b.ctx.Sent {
		return
	}
	w := (b.ctx.To - b.ctx.From).Seconds()
	if w > 0 {
		t := timeFigures{b: b, window: w, sends: b.lastSend()}
		if b.stream() {
			t.latency(m, "ttft_ms", "TTFT", b.timed("ttft_ms"))
			t.latency(m, "itl_ms", "ITL", b.timedGaps())
		} else {
			t.latency(m, "e2el_ms", "E2E", b.timed("e2el_ms"))
		}
		t.inFlight(m)
		t.throughput(m)
	}
	keys := []string{"e2el_ms"}
	if b.stream() {
		keys = []string{"ttft_ms", "tpot_ms", "e2el_ms"}
	}
	for _, key := range keys {
		b.histogram(m, key)
	}
	b.limited(m)
	b.waterfalls(m)
	b.comparison(m)
}

// series are samples with their times in s from the begin of the window.
type series struct{ times, values []float64 }

// samples gives the samples of a metric, with their requests.
func (b *builder) samples(key string, give func(r *bench.Record, v float64)) {
	d := b.def(key)
	if d.Sample == nil {
		return
	}
	for _, r := range b.ctx.Records {
		if r.Outcome != bench.OK || d.Of == metrics.OfStreams && r.Has(bench.AllAtOnce) {
			continue
		}
		d.Sample(r, b.ctx, func(v float64) { give(r, v) })
	}
}

// timed are the samples of a metric at the time of sending.
func (b *builder) timed(key string) (s series) {
	b.samples(key, func(r *bench.Record, v float64) {
		s.times = append(s.times, (r.Sent.Or(b.ctx.From) - b.ctx.From).Seconds())
		s.values = append(s.values, v)
	})
	return s
}

// timedGaps are the gaps between output events, at the time of the later one.
func (b *builder) timedGaps() (s series) {
	for _, r := range b.ctx.Records {
		if r.Outcome != bench.OK || r.Has(bench.AllAtOnce) {
			continue
		}
		sent := r.Sent.Or(b.ctx.From) - b.ctx.From
		before := map[int]time.Duration{} // by choice
		for i, at := range r.Events {
			choice := 0
			if len(r.EventChoice) == len(r.Events) {
				choice = r.EventChoice[i]
			}
			if last, ok := before[choice]; ok {
				s.times = append(s.times, (sent + at).Seconds())
				s.values = append(s.values, float64(at-last)/float64(time.Millisecond))
			}
			before[choice] = at
		}
	}
	return s
}

// lastSend is the time from the begin of the window to the last send, in s: what comes after is the drain.
func (b *builder) lastSend() float64 {
	last := b.ctx.From
	for _, r := range b.ctx.Records {
		last = max(last, r.Sent.Or(last))
	}
	return (last - b.ctx.From).Seconds()
}

// timeFigures share one axis.
type timeFigures struct {
	b      *builder
	window float64 // its length in s
	sends  float64 // time of the last send
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

// unit is the unit of a figure of times, and the writer of its values.
func unitOf(values []float64) (unit string, size float64) {
	if len(values) == 0 {
		return "ms", 1
	}
	return timeUnit(slices.Max(values))
}

// latency draws single requests, or where these are many a band and the extremes, with the median over time.
func (t *timeFigures) latency(m *Model, key, name string, s series) {
	if len(s.values) == 0 {
		return
	}
	unit, size := unitOf(s.values)
	c := &plot.Chart{X: t.axis(), Y: plot.Axis{Label: name, Unit: unit}, Spans: t.outside()}
	note := ""
	if len(m.OverTime) == 0 && len(c.Spans) > 0 {
		note = "shaded: outside of the plateau"
	}
	parts := make([][]float64, max(1, min(timeBuckets, len(s.values)/bucketMean)))
	for i, at := range s.times {
		k := max(0, min(int(at/t.window*float64(len(parts))), len(parts)-1))
		parts[k] = append(parts[k], s.values[i]/size)
	}
	var middle, low, high []plot.Point
	for k, p := range parts {
		slices.Sort(p)
		at := (float64(k) + 0.5) / float64(len(parts)) * t.window
		if v, ok := stats.Quantile(p, 50); ok && len(p) >= bucketLeast {
			middle = append(middle, plot.Point{X: at, Y: v})
		}
		if len(p) >= bandLeast {
			lo, _ := stats.Quantile(p, 10)
			hi, _ := stats.Quantile(p, 90)
			low, high = append(low, plot.Point{X: at, Y: lo}), append(high, plot.Point{X: at, Y: hi})
		}
	}
	thin := plot.NewThin(0, t.window, thinColumns)
	for i := range s.times {
		thin.Add(s.times[i], s.values[i]/size)
	}
	each := map[string]string{"itl_ms": "each gap"}[key]
	if each == "" {
		each = "each request"
	}
	if len(s.values) <= dotsMost {
		points := make([]plot.Point, len(s.times))
		for i := range s.times {
			points[i] = plot.Point{X: s.times[i], Y: s.values[i] / size}
		}
		c.Series = append(c.Series, plot.Series{Name: each, Form: plot.Dots, Color: plot.Accent, Points: points})
	} else {
		c.Series = append(c.Series, plot.Series{Name: "extremes", Form: plot.Dots, Color: plot.Accent, Points: thin.Extremes()},
			plot.Series{Name: "p10 to p90", Form: plot.Band, Color: plot.Accent, Points: high, Low: low})
		note = joined("; ", "of "+count(len(s.values))+" values only the extremes are dots", note)
	}
	if len(middle) > 1 {
		c.Series = append(c.Series, plot.Series{Name: "median", Form: plot.Line, Color: plot.Accent, Points: middle})
	}
	if key != "itl_ms" {
		c.Series = append(c.Series, t.failed()...)
	}
	sorted := slices.Sorted(slices.Values(s.values))
	p50, _ := stats.Quantile(sorted, 50)
	c.Y.Log = sorted[0] > 0 && sorted[len(sorted)-1] > logFrom*p50
	if limit, ok := t.b.limitOf(key); ok && limit <= limitNear*sorted[len(sorted)-1] {
		c.Rules = append(c.Rules, plot.Rule{Label: "limit " + millis(limit), At: limit / size, Flat: true})
	}
	if c.Y.Log {
		note = joined("; ", "logarithmic", note)
	}
	until := t.sends
	if key == "itl_ms" && until < t.window/2 {
		until = t.window // all was sent early
	}
	if until < t.window/findingTenths {
		until = 0 // there is no time to go over
	}
	c.Title = overTime(name, name+" of "+each+" over time", millis, s, overTimeLeast, 0, until)
	c.Alt = name + " in " + unit + " over the time in s since the first request"
	m.OverTime = append(m.OverTime, Figure{Name: key[:len(key)-3] + "-over-time", Title: c.Title, Note: note, Plot: c})
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
		for next := t.window * float64(len(s.times)) / levelSamples; next < at; next = t.window * float64(len(s.times)) / levelSamples {
			s.times, s.values = append(s.times, next), append(s.values, before) // the level held until now
		}
		thin.Add(at, float64(level))
		before = float64(level)
	}
	c := &plot.Chart{X: t.axis(), Y: plot.Axis{Label: "requests in flight", Whole: true}, Height: 100, Spans: t.outside(),
		Series: []plot.Series{{Form: plot.StepArea, Color: plot.Accent, Points: thin.Points()}}}
	limit := t.b.measure.Load.InFlightLimit()
	if limit > 0 && t.b.measure.Load.Open() {
		c.Rules = append(c.Rules, plot.Rule{Label: "at most " + count(limit), At: float64(limit), Flat: true})
	}
	most := "At most " + plural(peak, "request", "requests") + " in flight"
	c.Title = overTime("Concurrency", most, func(v float64) string { return significant(v, 2) }, s, overTimeLeast, t.filled(), t.sends)
	if peak == limit && t.b.measure.Load.Shape == bench.Closed && len(s.values) >= findingLeast {
		c.Title = "The closed loop is full: " + count(limit) + " in flight"
	}
	note := "at most " + count(peak)
	if c.Title == most {
		note = ""
	}
	c.Alt = "requests in flight over the time in s since the first request; the most is " + count(peak)
	m.OverTime = append(m.OverTime, Figure{Name: "in-flight", Title: c.Title, Note: note, Plot: c})
}

// filled is when the first request ended: before that the number of requests in flight and the output can only rise, which is no
// finding.
func (t *timeFigures) filled() float64 {
	first := t.window
	for _, r := range t.b.ctx.Records {
		if r.Sent.Defined() {
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
	c.X.Label = "time since the first request"
	rate := func(v float64) string { return number(v) + " tok/s" }
	c.Title = overTime("Output", "Output peaks at "+rate(slices.Max(s.values)), rate, s, secondsLeast, t.filled(), t.sends-1)
	c.Alt = "output tokens/s over the time in s since the first request"
	m.OverTime = append(m.OverTime, Figure{Name: "throughput", Title: c.Title, Note: "by the second", Plot: c})
}

// limitOf is the limit of a metric in ms.
func (b *builder) limitOf(key string) (float64, bool) {
	for _, l := range b.man.Spec.SLO {
		if l.Metric+"_ms" == key {
			return float64(l.Max) / float64(time.Millisecond), true
		}
	}
	return 0, false
}

// sorted are the samples of a metric, ascending, in the unit that reads best.
func (b *builder) sorted(key string) (values []float64, unit string, size float64) {
	b.samples(key, func(_ *bench.Record, v float64) { values = append(values, v) })
	slices.Sort(values)
	unit, size = unitOf(values)
	return values, unit, size
}

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

// comparison draws several targets beside each other.
func (b *builder) comparison(m *Model) {
	of, name := func(t *bench.TargetResult) *bench.Dist { return t.TTFT }, "TTFT"
	if !b.stream() {
		of, name = func(t *bench.TargetResult) *bench.Dist { return t.E2EL }, "E2E"
	}
	var all []float64
	for i := range b.sum.Targets {
		if d := of(&b.sum.Targets[i]); d != nil {
			all = append(all, d.Max)
		}
	}
	if len(all) < 2 {
		return
	}
	unit, size := unitOf(all)
	f := &plot.Percentiles{X: plot.Axis{Unit: unit}, Key: "tick: p50; bar: p50 to p90; line: least to p99"}
	var names []string
	var medians []float64
	for i := range b.sum.Targets {
		t := &b.sum.Targets[i]
		d := of(t)
		if d == nil {
			continue
		}
		at := func(p, otherwise float64) float64 {
			if v, ok := d.P(p); ok {
				return v / size
			}
			return otherwise / size
		}
		p50, p90, p99 := at(50, d.Mean), at(90, d.Mean), at(99, d.Max)
		f.Rows = append(f.Rows, plot.Spread{Name: clean(t.URL), Tip: clean(t.URL) + ": p50 " + millis(p50*size) + ", p99 " + millis(p99*size),
			Line: [2]float64{d.Min / size, p99}, Bar: [2]float64{p50, max(p50, p90)}, Tick: p50})
		names, medians = append(names, clean(t.URL)), append(medians, p50)
	}
	f.Title = compared(name+" p50", names, medians)
	f.Alt = name + " of each target in " + unit
	m.Comparison = append(m.Comparison, Figure{Name: "targets", Title: f.Title, Plot: f})
}
