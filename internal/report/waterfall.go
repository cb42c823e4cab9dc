package report

import (
	"slices"
	"sort"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

// Bounds of the request waterfalls.
const (
	firstMost   = 40
	slowestMost = 20
	visible     = 0.001 // share of the time from which on a stage is in the legend
)

// stages are the parts of a request's time: the first three while it is streamed, the fourth where there is no first event.
var stages = []struct {
	name  string
	color plot.Color
}{{"waiting to be sent", plot.Quiet}, {"waiting for the first token", plot.Accent}, {"decoding", plot.Tint}, {"waiting for the answer", plot.Accent}}

// waterfalls draws the first requests and the slowest ones.
func (b *builder) waterfalls(m *Model) {
	var sent []*bench.Record
	for _, r := range b.ctx.Records {
		if r.Sent.Defined() {
			sent = append(sent, r)
		}
	}
	if len(sent) == 0 {
		return
	}
	first := sent[:min(len(sent), firstMost)]
	m.Waterfalls = append(m.Waterfalls, b.waterfall("first-requests", whichFirst(len(first), len(sent)), first, false))
	slowest := slices.Clone(sent)
	sort.SliceStable(slowest, func(i, j int) bool { return b.took(slowest[i]) > b.took(slowest[j]) })
	if slowest = slowest[:min(len(slowest), slowestMost)]; len(sent) > len(slowest) {
		m.Waterfalls = append(m.Waterfalls, b.waterfall("slowest-requests", "the "+count(len(slowest))+" slowest requests", slowest, true))
	}
}

func whichFirst(n, all int) string {
	switch {
	case all == 1:
		return "the one request"
	case n == all:
		return "all " + count(n) + " requests"
	}
	return "the first " + count(n) + " requests"
}

// begun is when the time of a request begins: when it was due, or sent.
func begun(r *bench.Record) time.Duration {
	sent := r.Sent.Or(0)
	return min(sent, r.Due.Or(sent))
}

// ended is when it ended.
func ended(r *bench.Record) time.Duration {
	sent := r.Sent.Or(0)
	return max(sent, r.Last.Or(r.End.Or(sent)))
}

func (b *builder) took(r *bench.Record) time.Duration { return ended(r) - begun(r) }

// waterfall draws requests below each other, on the axis of the run or each from its own begin.
func (b *builder) waterfall(name, which string, rs []*bench.Record, aligned bool) Figure {
	f := &plot.Timeline{X: plot.Axis{Unit: "s", Label: "time since the first request"}}
	if aligned {
		f.X.Label = "time since each was due, or sent"
	}
	sums := make([]float64, len(stages))
	for _, r := range rs {
		zero := b.ctx.From
		if aligned {
			zero = begun(r)
		}
		row := plot.Row{Name: "#" + plain(float64(r.ID)), Tip: tip(r)}
		if r.Outcome != bench.OK {
			row.Note = clean(string(r.Outcome))
		}
		put := func(stage int, from, to time.Duration) {
			if to > from {
				row.Stretches = append(row.Stretches, plot.Stretch{From: (from - zero).Seconds(), To: (to - zero).Seconds(), Color: stages[stage].color})
				if r.Outcome == bench.OK {
					sums[stage] += (to - from).Seconds()
				}
			}
		}
		sent := r.Sent.Or(0)
		put(0, begun(r), sent)
		switch head, streamed := r.First.Get(); {
		case r.Outcome != bench.OK:
			row.Stretches = append(row.Stretches, plot.Stretch{From: (sent - zero).Seconds(), To: (ended(r) - zero).Seconds(), Color: plot.Bad})
		case streamed:
			put(1, sent, head)
			put(2, head, ended(r))
		default:
			put(3, sent, ended(r))
		}
		f.Rows = append(f.Rows, row)
	}
	total := 0.0
	for _, s := range sums {
		total += s
	}
	var names []string
	for i, s := range stages {
		names = append(names, s.name)
		if sums[i] > 0 && sums[i] >= visible*total {
			f.Keys = append(f.Keys, plot.Key{Name: s.name, Color: s.color})
		}
	}
	if slices.ContainsFunc(rs, func(r *bench.Record) bool { return r.Outcome != bench.OK }) {
		f.Keys = append(f.Keys, plot.Key{Name: "not ok", Color: plot.Bad})
	}
	f.Title = spent(which, names, sums)
	f.Alt = "one row a request, with its waits one after the other"
	return Figure{Name: name, Title: f.Title, Plot: f}
}

// tip tells the times of one request.
func tip(r *bench.Record) string {
	out := "#" + plain(float64(r.ID)) + " " + clean(string(r.Outcome))
	sent := r.Sent.Or(0)
	ms := func(d time.Duration) string { return millis(float64(d) / float64(time.Millisecond)) }
	if due, ok := r.Due.Get(); ok && sent > due {
		out += ", sent " + ms(sent-due) + " after due"
	}
	if first, ok := r.First.Get(); ok {
		out += ", TTFT " + ms(first-sent)
	}
	if last, ok := r.Last.Get(); ok {
		out += ", E2E " + ms(last-sent)
	}
	if n, ok := r.OSL.Get(); ok {
		out += ", " + plural(n, "token", "tokens")
	}
	return out
}
