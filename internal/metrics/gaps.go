package metrics

import (
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// gap is the time between two neighbouring output events of one choice of a response.
type gap struct {
	at     time.Duration // of the later event, since the epoch
	length time.Duration
	tokens int // of the later event; 0 where the stream does not tell
}

// gapReader walks over the gaps of a record in the order of its events.
type gapReader struct {
	gap // the newest, after next has returned true

	r      *bench.Record
	place  int                   // of the record among all, for gaps at one moment
	event  int                   // to look at next
	before map[int]time.Duration // the newest event of each choice, where there are several
}

func newGapReader(r *bench.Record, place int) *gapReader {
	g := &gapReader{r: r, place: place}
	if len(r.EventChoice) == len(r.Events) {
		g.before = map[int]time.Duration{}
	} else {
		g.event = 1
	}
	return g
}

// next goes to the next gap. It returns false at the end.
func (g *gapReader) next() bool {
	for ; g.event < len(g.r.Events); g.event++ {
		at := g.r.Events[g.event]
		var last time.Duration
		if g.before == nil {
			last = g.r.Events[g.event-1]
		} else {
			choice, known := g.r.EventChoice[g.event], false
			last, known = g.before[choice]
			g.before[choice] = at
			if !known {
				continue
			}
		}
		g.gap = gap{at: g.r.Sent.Or(0) + at, length: at - last}
		if len(g.r.EventTokens) == len(g.r.Events) {
			g.tokens = g.r.EventTokens[g.event]
		}
		g.event++
		return true
	}
	return false
}

// gaps gives the gaps of one record.
func gaps(r *bench.Record, give func(gap)) {
	for g := newGapReader(r, 0); g.next(); {
		give(g.gap)
	}
}

// gapsInTime gives the gaps of all streams in the order of their later events. Requests that are decoded together share what delays a
// step, which only shows when their gaps stand beside each other. It merges the records, so that memory is that of the streams that are
// open at one time.
func (x *Context) gapsInTime(give func(gap)) {
	var open openGaps
	for next := 0; ; {
		for ; next < len(x.Records); next++ {
			r := x.Records[next]
			if len(open) > 0 && r.Sent.Or(0) > open[0].at {
				break // its events come later than the next one
			}
			if !r.Sent.Defined() || !OfStreams.Has(r) {
				continue
			}
			if g := newGapReader(r, next); g.next() {
				open.push(g)
			}
		}
		if len(open) == 0 {
			return
		}
		give(open[0].gap)
		if !open[0].next() {
			last := len(open) - 1
			open[0], open[last] = open[last], nil
			open = open[:last]
		}
		open.settle()
	}
}

// openGaps is a heap of streams by the time of their next gap. It is written out, since that of the library takes twice as long.
type openGaps []*gapReader

func (o openGaps) before(i, j int) bool {
	return o[i].at < o[j].at || o[i].at == o[j].at && o[i].place < o[j].place
}

// push adds a stream.
func (o *openGaps) push(g *gapReader) {
	*o = append(*o, g)
	h := *o
	for i := len(h) - 1; i > 0 && h.before(i, (i-1)/2); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

// settle moves the first stream, whose time has grown, to its place.
func (o openGaps) settle() {
	for i := 0; ; {
		least := 2*i + 1
		if least >= len(o) {
			return
		}
		if least+1 < len(o) && o.before(least+1, least) {
			least++
		}
		if !o.before(least, i) {
			return
		}
		o[i], o[least] = o[least], o[i]
		i = least
	}
}
