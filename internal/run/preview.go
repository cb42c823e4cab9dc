package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/wire"
	"github.com/prony-bench/prony/internal/workload"
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

// Bounds of what a preview looks at.
const (
	previewSample   = 1000      // requests whose lengths are looked at
	previewTokens   = 4_000_000 // of random prompts
	previewRequests = 100_000   // beyond which time and number follow from the rate alone
)

// What a line of the journal takes, in bytes, measured on runs of 16 to 400 tokens that lasted up to some seconds each.
const (
	wholeBytes  = 410 // of an answer that was not streamed
	streamBytes = 500
	eventBytes  = 10 // the time of one event
)

// Preview looks at the first requests of the measured phase, however many it has and however long they are, and estimates time and
// size. Nothing is sent.
func (p *Plan) Preview(show int) (*Preview, error) {
	ph := p.Spec.Phases[len(p.Spec.Phases)-1]
	most := previewRequests
	if mean, known := workload.PromptMean(p.Spec.Workload); known {
		most = max(show, min(most, int(previewTokens/mean)))
	}
	all := float64(ph.Stop.Requests) // 0: as many as fit
	if ph.Load.Paced() && all == 0 {
		all = p.expected(ph)
	}
	looked := ph
	if all > float64(most) || all == 0 {
		looked.Stop = bench.Stop{Requests: most}
	}
	out, err := p.previewOf(looked, show)
	if err != nil {
		return nil, err
	}
	switch {
	case all == 0:
		s := ph.Stop.Duration.Seconds()
		out.Requests, out.Seconds = nil, &s
		return out, nil
	case all > float64(most):
		k := int(all)
		out.Requests = &k
		if ph.Load.Paced() {
			s := cmp.Or(ph.Stop.Duration.Seconds(), p.expectedTime(ph, all))
			out.Seconds = &s
		}
	}
	size := journalBytes(&p.Spec, float64(*out.Requests), out.OSLMean)
	out.JournalBytes = &size
	return out, nil
}

// journalBytes estimates the size of the journal.
func journalBytes(s *bench.Spec, requests, osl float64) int64 {
	line := float64(wholeBytes)
	if s.Target.Stream {
		line = streamBytes
		if s.Keep.Events {
			line += osl * eventBytes
		}
	}
	return int64(min(requests*line, 1<<62))
}

// previewOf looks at all arrivals of a phase, and at its first requests.
func (p *Plan) previewOf(ph bench.Phase, show int) (*Preview, error) {
	seq, err := p.open(ph)
	if err != nil {
		return nil, err
	}
	out := &Preview{}
	n := ph.Stop.Requests
	if ph.Load.Paced() {
		k, last := 0, time.Duration(0)
		for at, err := range p.arrivals(ph) {
			if err != nil {
				return nil, err
			}
			if n > 0 && k >= n || ph.Stop.Duration > 0 && at >= ph.Stop.Duration {
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
	return out, nil
}

func (p *Plan) previewCall(out *Preview, k int, q bench.Request) error {
	q.ID = k
	call, err := p.Endpoint.Codec.Encode(p.Endpoint, &q, &p.Options)
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
		if slices.ContainsFunc(p.Options.Header, func(f wire.Field) bool { return strings.EqualFold(f.Name, h.Name) }) {
			h.Value = "REDACTED"
		}
		c.Header = append(c.Header, h)
	}
	return nil
}
