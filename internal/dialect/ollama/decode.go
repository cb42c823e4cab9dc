package ollama

import (
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// decoder reads the lines of one response, or the whole of it, which has the same fields.
type decoder struct {
	chat  bool
	calls int // tool calls so far: each comes whole, and most versions do not number them
}

// answer is a line, a whole response or an error, with the fields that matter. Times are in ns, and zeros are left out.
type answer struct {
	dialect.Failure
	Response *string `json:"response"` // of generate
	Thinking string  `json:"thinking"`
	Message  *struct {
		Content  string `json:"content"`
		Thinking string `json:"thinking"`
		Tools    []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"` // of chat
	Done   bool   `json:"done"`
	Reason string `json:"done_reason"`

	Prompt      *int     `json:"prompt_eval_count"`
	Completion  *int     `json:"eval_count"`
	TotalTime   *float64 `json:"total_duration"`
	LoadTime    *float64 `json:"load_duration"`
	PrefillTime *float64 `json:"prompt_eval_duration"`
	DecodeTime  *float64 `json:"eval_duration"`
}

// Event implements dialect.Decoder.
func (c *decoder) Event(ev wire.Event, d *dialect.Delta) error {
	if len(ev.Data) == 0 {
		return nil
	}
	return c.read(ev.Data, d)
}

// Body implements dialect.Decoder.
func (c *decoder) Body(body []byte, d *dialect.Delta) error { return c.read(body, d) }

func (c *decoder) read(data []byte, d *dialect.Delta) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return fmt.Errorf("no valid JSON (%v): %s", err, wire.Excerpt(data))
	}
	if d.Error = a.Words(a.Message != nil || a.Response != nil); d.Error != "" {
		return nil
	}
	out := d.Output(0)
	switch {
	case c.chat && a.Message != nil:
		out.Text, out.Reasoning = a.Message.Content, a.Message.Thinking
		for _, t := range a.Message.Tools {
			out.Tools = append(out.Tools, dialect.ToolPiece{Index: c.calls, ID: t.ID, Name: t.Function.Name, Arguments: string(t.Function.Arguments)})
			c.calls++
		}
	case !c.chat && a.Response != nil:
		out.Text, out.Reasoning = *a.Response, a.Thinking
	case c.chat:
		return fmt.Errorf("no field %q in %s", "message", wire.Excerpt(data))
	default:
		return fmt.Errorf("no field %q in %s", "response", wire.Excerpt(data))
	}
	if a.Done {
		a.end(d, out)
	}
	return nil
}

// end takes what the last line tells.
func (a *answer) end(d *dialect.Delta, out *dialect.Output) {
	d.Done, d.Native = true, true
	if out.Finish = a.Reason; a.Reason == "" {
		out.Finish = "stop" // of versions that did not tell
	}
	if a.Prompt != nil {
		d.Prompt = opt.Some(*a.Prompt)
	}
	if a.Completion != nil {
		d.Completion = opt.Some(*a.Completion)
	}
	for _, t := range []struct {
		key   string
		nanos *float64
	}{{"server_total_ms", a.TotalTime}, {"server_load_ms", a.LoadTime}, {"server_prefill_ms", a.PrefillTime}, {"server_decode_ms", a.DecodeTime}} {
		if t.nanos != nil {
			ms := *t.nanos / 1e6
			d.Time(t.key, &ms)
		}
	}
}
