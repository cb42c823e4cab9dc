package run

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/schedule"
	"github.com/prony-bench/prony/internal/wire"
)

// Preview is what a plan would do.
type Preview struct {
	Requests     *int     // nil: as many as fit into a duration
	Seconds      *float64 // nil: the server decides
	JournalBytes *int64
	ISLMean      float64 // tokens, of the first requests
	OSLMean      float64
	First        []PreviewCall
}

// PreviewCall is one request as it would be sent, without its secrets.
type PreviewCall struct {
	Due    time.Duration
	URL    string
	Header []wire.Field
	Body   json.RawMessage
}

// What a journal line takes: its fixed fields, and each event's time. Measured on runs of 100 to 1,000 tokens.
const (
	recordBytes   = 620
	eventBytes    = 11
	previewSample = 1000 // requests whose lengths are looked at
)

// Preview looks at the first requests of the measured phase and estimates time and size. Nothing is sent.
func (p *Plan) Preview(show int) (*Preview, error) {
	ph := p.Spec.Phases[len(p.Spec.Phases)-1]
	seq, err := p.dataset.Open(p.config(ph.Name))
	if err != nil {
		return nil, err
	}
	out := &Preview{}
	n := ph.Stop.Requests
	if ph.Load.Paced() {
		shape, err := schedule.Of(ph.Load)
		if err != nil {
			return nil, err
		}
		k, last := 0, time.Duration(0)
		for at := range shape.Arrivals(rng.New(p.Spec.Seed, "schedule")) {
			if n > 0 && k >= n || n == 0 && at >= ph.Stop.Duration {
				break
			}
			if k < show {
				out.First = append(out.First, PreviewCall{Due: at})
			}
			last = at
			k++
		}
		n = k
		s := last.Seconds()
		out.Seconds = &s
	}
	if n > 0 {
		out.Requests = &n
	}
	if d := ph.Stop.Duration; d > 0 {
		s := d.Seconds()
		out.Seconds = &s
	}
	k := 0
	for q, err := range seq {
		if err != nil {
			return nil, err
		}
		if n > 0 && k >= n || k >= previewSample {
			break
		}
		out.ISLMean += float64(q.ISL)
		out.OSLMean += float64(q.OSL)
		if k < show {
			if err := p.previewCall(out, k, q); err != nil {
				return nil, err
			}
		}
		k++
	}
	out.ISLMean /= float64(k)
	out.OSLMean /= float64(k)
	if n > 0 {
		size := int64(float64(n) * recordBytes)
		if p.Spec.Keep.Events {
			size += int64(float64(n) * out.OSLMean * eventBytes)
		}
		out.JournalBytes = &size
	}
	return out, nil
}

func (p *Plan) previewCall(out *Preview, k int, q bench.Request) error {
	q.ID = k
	call, err := p.Dialect.Encode(p.Endpoint, &q, &p.Options)
	if err != nil {
		return err
	}
	if k >= len(out.First) {
		out.First = append(out.First, PreviewCall{})
	}
	c := &out.First[k]
	c.URL = p.Targets[k%len(p.Targets)].Name(call.Path)
	c.Body = json.RawMessage(p.conceal(string(call.Body)))
	for _, h := range call.Header {
		if slices.ContainsFunc(p.deps.Header, func(f wire.Field) bool { return strings.EqualFold(f.Name, h.Name) }) {
			h.Value = "REDACTED"
		}
		c.Header = append(c.Header, h)
	}
	return nil
}
