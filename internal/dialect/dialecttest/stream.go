package dialecttest

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Transcript is a response without framing whose events come in a read each, event i at i+1 ms. An event here is one with data, or a
// line of application/x-ndjson.
func Transcript(contentType string, body []byte) *wire.Transcript {
	tr := transcript(contentType, nil)
	tr.Raw, tr.Bytes = body, len(body)
	var framer wire.Framer = &wire.SSE{}
	if strings.HasPrefix(contentType, "application/x-ndjson") {
		framer = &wire.Lines{}
	}
	n := 0
	for i := range body {
		framer.Feed(body[i:i+1], func(ev wire.Event) {
			if ev.Data != nil {
				n++
				tr.Marks = append(tr.Marks, wire.Mark{End: i + 1, At: time.Duration(n) * time.Millisecond})
			}
		})
	}
	if k := len(tr.Marks); k == 0 || tr.Marks[k-1].End < len(body) {
		tr.Marks = append(tr.Marks, wire.Mark{End: len(body), At: time.Duration(n+1) * time.Millisecond})
	}
	tr.Ended = opt.Some(tr.Marks[len(tr.Marks)-1].At)
	return tr
}

// transcript is a response without framing, whose pieces come in a read each, piece i at 10 (i+1) ms.
func transcript(contentType string, pieces []string) *wire.Transcript {
	tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {contentType}}, Sent: opt.Some(time.Duration(0)), Stamp: wire.StampSocket}
	at := time.Duration(0)
	for i, piece := range pieces {
		at = time.Duration(i+1) * 10 * time.Millisecond
		tr.Raw = append(tr.Raw, piece...)
		tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: at})
	}
	tr.Bytes, tr.Ended = len(tr.Raw), opt.Some(at)
	return tr
}

// split gives the bytes of a transcript other reads.
func split(t *rapid.T, tr *wire.Transcript) *wire.Transcript {
	out := *tr
	out.Marks = nil
	most := rapid.IntRange(1, max(1, len(tr.Raw))).Draw(t, "longest read")
	for off, at := 0, time.Duration(0); off < len(tr.Raw); {
		off = min(len(tr.Raw), off+rapid.IntRange(1, most).Draw(t, "read"))
		at += time.Duration(rapid.IntRange(1, 5_000_000).Draw(t, "gap"))
		out.Marks = append(out.Marks, wire.Mark{End: off, At: at})
		out.Ended = opt.Some(at)
	}
	return &out
}

// whole is the time of the read that completed the first n bytes.
func whole(tr *wire.Transcript, n int) time.Duration {
	for _, m := range tr.Marks {
		if m.End >= n {
			return m.At
		}
	}
	return -1
}

// stream is a streamed answer: its parts, and each one as it is written.
type stream struct {
	parts  []Part
	pieces []string
	loose  bool // an event may be whole before its last byte
}

func (p *Protocol) stream(parts ...Part) stream {
	s := stream{parts: p.fill(parts...)}
	for _, part := range s.parts {
		s.pieces = append(s.pieces, p.Write(part))
	}
	return s
}

// with returns the stream in another spelling.
func (s stream) with(loose bool, change func(string) string) stream {
	out := stream{parts: s.parts, loose: loose}
	for _, piece := range s.pieces {
		out.pieces = append(out.pieces, change(piece))
	}
	return out
}

// place returns where the first part of a kind lies in the bytes; -1 when there is none.
func (s stream) place(k Kind) (from, to int) {
	for i, part := range s.parts {
		from, to = to, to+len(s.pieces[i])
		if part.Kind == k {
			return from, to
		}
	}
	return -1, -1
}

// tokens is how many tokens the answer has.
func (s stream) tokens() int {
	if len(s.parts) == 0 {
		return 0
	}
	return s.parts[len(s.parts)-1].Tokens
}

// outputs holds the output events of a record against the parts: each came with the read that completed its part.
func (p *Protocol) outputs(s stream, tr *wire.Transcript, r *bench.Record) error {
	var told []int
	n, off, answered := 0, 0, false
	for i := range s.parts {
		part, from, to := &s.parts[i], off, off+len(s.pieces[i])
		off = to
		if !part.output() && part.N == 0 {
			continue
		}
		if n == len(r.Events) {
			return fmt.Errorf("%d output events, the %s part %q is missing", n, part.Kind, s.pieces[i])
		}
		at, first, last := r.Events[n]+r.Sent.Or(0), whole(tr, from+1), whole(tr, to)
		if strings.Count(s.pieces[i], p.lineEnd()) == 1 && !s.loose {
			first = last
		}
		if at < first || at > last {
			return fmt.Errorf("output event %d came at %v, its part %q between %v and %v", n, at, s.pieces[i], first, last)
		}
		if n == 0 && r.First.Or(-1) != at {
			return fmt.Errorf("first %v, want %v", r.First, at)
		}
		if part.Kind != Reasoning && !answered {
			answered = true
			if r.FirstAnswer.Or(-1) != at {
				return fmt.Errorf("first answer %v, want %v", r.FirstAnswer, at)
			}
		}
		if r.Outcome == bench.OK && n == len(r.Events)-1 && r.Last.Or(-1) != at {
			return fmt.Errorf("last %v, want %v", r.Last, at)
		}
		told = append(told, part.N)
		n++
	}
	if n != len(r.Events) || n != r.OutEvents {
		return fmt.Errorf("%d output events of %d kept, want %d", r.OutEvents, len(r.Events), n)
	}
	if n == 0 && (r.First.Defined() || r.FirstAnswer.Defined()) {
		return fmt.Errorf("first %v of no output", r.First)
	}
	if p.PerEvent && n > 0 && fmt.Sprint(r.EventTokens) != fmt.Sprint(told) {
		return fmt.Errorf("tokens per event %v, want %v", r.EventTokens, told)
	}
	return nil
}

func (p *Protocol) fold(stream bool, tr *wire.Transcript) bench.Record {
	o := &dialect.Options{Stream: stream, KeepText: true, Verify: true, Usage: true}
	return dialect.NewFold(p.Endpoint, &bench.Request{Phase: bench.Measure}, o).End(tr)
}

// strangeFields puts fields that nobody knows at the start and the end of every JSON object of a piece.
func strangeFields(piece string) string {
	var out strings.Builder
	inside, escaped := false, false
	for i := range len(piece) {
		c := piece[i]
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && c == '}':
			out.WriteString(`,"zz_after":{"b":[null,{"c":"}"}]}`)
		}
		out.WriteByte(c)
		if !inside && c == '{' {
			out.WriteString(`"zz_before":[1,{"a":"{"}]`)
			if piece[i+1] != '}' {
				out.WriteByte(',')
			}
		}
	}
	return out.String()
}
