package run

import (
	"context"
	"errors"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// Probed is one request looked at event by event.
type Probed struct {
	Call   wire.Call
	URL    string
	Events []ProbedEvent
	Record bench.Record
	Body   []byte // of an answer that is no stream, its first bytes
	Header map[string][]string
}

// ProbedEvent is one event of the stream.
type ProbedEvent struct {
	At        time.Duration // since the request was sent
	Read      int           // events of one read came together
	Bytes     int
	Output    bool
	Text      string
	Reasoning string
	Tool      bool
	IDs       int
	Finish    string
	Prompt    int // -1 = not told
	Total     int // running total of output tokens; -1 = not told
	Done      bool
	Error     string
	Raw       string // first bytes
}

// most of an answer's body that a probe keeps.
const probedBody = 2000

// Probe sends one request of the plan and returns what came back, event by event.
func Probe(ctx context.Context, p *Plan) (*Probed, error) {
	seq, err := p.dataset.Open(p.config(bench.Measure))
	if err != nil {
		return nil, err
	}
	var q bench.Request
	for x, err := range seq {
		if err != nil {
			return nil, err
		}
		q = x
		break
	}
	q.Phase = bench.Measure
	o := p.Options
	o.KeepText = true
	call, err := p.Endpoint.Codec.Encode(p.Endpoint, &q, &o)
	if err != nil {
		return nil, err
	}
	out := &Probed{Call: call, URL: p.Targets[0].Name(call.Path)}
	s := &probeSink{end: make(chan *wire.Transcript, 1)}
	e, err := p.newEngine(time.Now(), s)
	if err != nil {
		return nil, err
	}
	e.Submit(&client.Job{Call: call})
	var tr *wire.Transcript
	select {
	case tr = <-s.end:
	case <-ctx.Done():
		e.Cut()
		tr = <-s.end
	}
	e.Close()
	fold := dialect.NewFold(p.Endpoint, &q, &o)
	sent := tr.Sent.Or(0)
	fold.Watch = func(v dialect.Seen) { out.Events = append(out.Events, probed(v, sent)) }
	for _, part := range s.parts {
		fold.Feed(part)
	}
	out.Record = fold.End(tr)
	body := wire.NewBody(tr.Framed, tr.Status, tr.Header)
	keep := func(b wire.Piece) error {
		if len(out.Body) < probedBody {
			out.Body = append(out.Body, b.Bytes[:min(len(b.Bytes), probedBody-len(out.Body))]...)
		}
		return nil
	}
	for _, part := range s.parts {
		body.Feed(part.Raw, part.Marks, keep)
	}
	body.Feed(tr.Raw, tr.Marks, keep)
	out.Header = body.Header()
	p.concealProbed(out)
	if ctx.Err() != nil {
		return out, errors.New("interrupted")
	}
	return out, nil
}

func probed(v dialect.Seen, sent time.Duration) ProbedEvent {
	e := ProbedEvent{At: v.At - sent, Read: v.Read, Bytes: len(v.Event.Data), Output: v.Output, Done: v.Delta.Done, Error: v.Delta.Error,
		Prompt: v.Delta.Prompt.Or(-1), Total: v.Delta.Completion.Or(-1), Raw: string(v.Event.Data[:min(len(v.Event.Data), 160)])}
	for _, o := range v.Delta.Outputs {
		e.Text += o.Text
		e.Reasoning += o.Reasoning
		e.IDs += o.IDs
		e.Tool = e.Tool || len(o.Tools) > 0
		if o.Finish != "" {
			e.Finish = o.Finish
		}
	}
	return e
}

// probeSink keeps everything of one job.
type probeSink struct {
	parts []wire.Part
	end   chan *wire.Transcript
}

func (s *probeSink) Part(_ *client.Job, p wire.Part)         { s.parts = append(s.parts, p) }
func (s *probeSink) Done(_ *client.Job, tr *wire.Transcript) { s.end <- tr }
