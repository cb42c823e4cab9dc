package sglang

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// answer is an event, a whole answer or an error.
type answer struct {
	dialect.Failure
	Index int     `json:"index"` // of several answers to one request
	Text  *string `json:"text"`
	IDs   []int   `json:"output_ids"`
	Meta  *meta   `json:"meta_info"`
}

type meta struct {
	Finish     json.RawMessage `json:"finish_reason"` // null, a word in old versions, else an object
	Prompt     *int            `json:"prompt_tokens"`
	Completion *int            `json:"completion_tokens"`
	Cached     *int            `json:"cached_tokens"`
	Reasoning  *int            `json:"reasoning_tokens"`

	// Times in seconds: the first at the end, the others of a server with --enable-metrics.
	Latency    *float64 `json:"e2e_latency"`
	Queue      *float64 `json:"queue_time"`
	FirstToken *float64 `json:"first_token_latency"`
}

type finish struct {
	Type    string          `json:"type"`
	Message string          `json:"message"`
	Status  json.RawMessage `json:"status_code"`
}

// decoder reads the answers to one request. A server sends either all that there is so far in each event (its default), or what is
// new (--incremental-streaming-output), and does not say which; the number of tokens is that of all in both.
type decoder struct {
	choices map[int]*progress
}

// progress is what is known of an answer.
type progress struct {
	mode  mode
	text  string // of all events in cumulative mode; of the one before while the mode is unknown
	ids   int    // likewise
	total int    // completion_tokens
}

type mode uint8

const (
	unknown mode = iota
	cumulative
	incremental
)

// add adds an event or a whole answer to a delta.
func (d *decoder) add(a *answer, to *dialect.Delta, raw []byte) error {
	if words := a.Words(a.Meta != nil); words != "" {
		to.Error = words
		return nil
	}
	switch {
	case a.Meta == nil && a.Text == nil && a.IDs == nil && a.Type != "":
		return nil // an event of a kind that is not ours
	case a.Meta == nil:
		return fmt.Errorf("no field \"meta_info\" in %s", wire.Excerpt(raw))
	case a.Text == nil && a.IDs == nil:
		return fmt.Errorf("no field \"text\" and no \"output_ids\" in %s", wire.Excerpt(raw))
	}
	m := a.Meta
	ended := len(m.Finish) > 0 && string(m.Finish) != "null"
	if m.Completion == nil && !ended {
		return fmt.Errorf("no field \"completion_tokens\" in %s", wire.Excerpt(raw))
	}
	out := to.Output(a.Index)
	out.Text, out.IDs = d.progress(a.Index).news(a)
	d.counts(m, to)
	to.Time("server_e2e_ms", millis(m.Latency))
	to.Time("server_queue_ms", millis(m.Queue))
	to.Time("server_ttft_ms", millis(m.FirstToken))
	if !ended {
		return nil
	}
	var f finish
	if json.Unmarshal(m.Finish, &f.Type) != nil {
		if err := json.Unmarshal(m.Finish, &f); err != nil {
			return fmt.Errorf("field \"finish_reason\" is neither a word nor an object (%v): %s", err, wire.Excerpt(raw))
		}
	}
	if out.Finish = f.Type; f.Type == "abort" {
		failure := dialect.Failure{Object: "error", Message: cmp.Or(f.Message, "the server aborted the request"), Code: f.Status}
		to.Error = failure.Words(false)
	}
	return nil
}

// millis turns seconds into milliseconds.
func millis(s *float64) *float64 {
	if s == nil {
		return nil
	}
	ms := *s * 1e3
	return &ms
}

// counts takes the counts of an event. Each answer counts its own tokens.
func (d *decoder) counts(m *meta, to *dialect.Delta) {
	to.Native = true
	for _, c := range []struct {
		from *int
		to   *opt.Of[int]
	}{{m.Prompt, &to.Prompt}, {m.Cached, &to.Cached}, {m.Reasoning, &to.Reasoning}} {
		if c.from != nil {
			*c.to = opt.Some(*c.from)
		}
	}
	if m.Completion == nil {
		return
	}
	sum := 0
	for _, p := range d.choices {
		sum += p.total
	}
	to.Completion = opt.Some(sum)
}

func (d *decoder) progress(index int) *progress {
	p := d.choices[index]
	if p == nil {
		if d.choices == nil {
			d.choices = map[int]*progress{}
		}
		p = &progress{}
		d.choices[index] = p
	}
	return p
}

// news returns what an event adds: text, and a number of token ids.
func (p *progress) news(a *answer) (string, int) {
	var text string
	if a.Text != nil {
		text = *a.Text
	}
	ids, total := len(a.IDs), p.total
	if a.Meta.Completion != nil {
		total = *a.Meta.Completion
	}
	if p.mode == unknown && (p.text != "" || p.ids > 0) {
		// a second event that is not empty settles it: all so far holds what was there, and as many ids as are counted
		p.mode = incremental
		if strings.HasPrefix(text, p.text) && (ids == total || a.IDs == nil && total > 0) {
			p.mode = cumulative
		}
	}
	p.total = total
	if p.mode == incremental {
		return text, ids
	}
	kept := common(p.text, text)
	if len(text) < len(p.text) && kept == len(text) { // a stop word was taken off again
		p.ids, ids = max(p.ids, ids), max(0, ids-p.ids)
		return "", ids
	}
	news := max(0, ids-p.ids)
	p.text, p.ids = text, max(p.ids, ids)
	return text[kept:], news
}

// common returns how many bytes two texts have in common at their start, in whole characters.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}
