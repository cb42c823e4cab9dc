package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// responseDecoder reads one response. It remembers the calls of tools, because llama.cpp does not number its items: they are told apart
// by their ids.
type responseDecoder struct {
	calls map[string]int // the numbers of the items by id
	last  opt.Of[int]    // that of the last one
}

// typedEvent is an event of the Responses API. What its type has no use for may be of any form.
type typedEvent struct {
	Type     string          `json:"type"`
	Error    json.RawMessage `json:"error"`
	Index    json.RawMessage `json:"output_index"`
	ItemID   json.RawMessage `json:"item_id"`
	Delta    json.RawMessage `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response json.RawMessage `json:"response"`
	Timings  json.RawMessage `json:"timings"` // llama.cpp
}

// Event implements dialect.Decoder.
func (d *responseDecoder) Event(ev wire.Event, to *dialect.Delta) error {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0:
		return nil
	case string(data) == "[DONE]": // no server of this API is known to send it, but many of the others do
		to.Done = true
		return nil
	}
	var e typedEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("event is no valid event of the Responses API (%v): %s", err, wire.Excerpt(data))
	}
	switch kind := cmp.Or(e.Type, string(ev.Name)); {
	case kind == "error", len(e.Error) > 0 && string(e.Error) != "null":
		return failure(data, to)
	case kind == "":
		return fmt.Errorf("no field \"type\" in %s", wire.Excerpt(data))
	default:
		return d.fill(&e, kind, to, data)
	}
}

// failure reads an event that is an error.
func failure(data []byte, to *dialect.Delta) error {
	var f dialect.Failure
	if err := json.Unmarshal(data, &f); err != nil {
		to.Error = "error event: " + wire.Excerpt(data)
		return nil
	}
	f.Object = "error"
	to.Error = f.Words(false)
	return nil
}

// fill reads an event by its kind. One that is not known says nothing of interest: a new one brings no harm.
func (d *responseDecoder) fill(e *typedEvent, kind string, to *dialect.Delta, raw []byte) error {
	switch kind {
	case "response.output_text.delta", "response.refusal.delta":
		return e.text(raw, func(s string) { to.Output(0).Text = s })
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		return e.text(raw, func(s string) { to.Output(0).Reasoning = s })
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta", "response.mcp_call_arguments.delta":
		index, err := d.index(e, raw)
		if err != nil {
			return err
		}
		return e.text(raw, func(s string) {
			out := to.Output(0)
			out.Tools = append(out.Tools, dialect.ToolPiece{Index: index, Arguments: s})
		})
	case "response.output_item.added":
		return d.added(e, to, raw)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return e.ended(to, raw)
	}
	return nil
}

// text reads the piece of text that an event brings.
func (e *typedEvent) text(raw []byte, take func(string)) error {
	if len(e.Delta) == 0 || string(e.Delta) == "null" {
		return fmt.Errorf("no field \"delta\" in %s", wire.Excerpt(raw))
	}
	var s string
	if err := json.Unmarshal(e.Delta, &s); err != nil {
		return fmt.Errorf("field \"delta\" is no text in %s", wire.Excerpt(raw))
	}
	take(s)
	return nil
}

// index is the number of the call that an event is a piece of.
func (d *responseDecoder) index(e *typedEvent, raw []byte) (n int, err error) {
	if len(e.Index) > 0 {
		if json.Unmarshal(e.Index, &n) != nil || n < 0 || n > maxItems {
			return 0, fmt.Errorf("field \"output_index\" is no index in %s", wire.Excerpt(raw))
		}
		return n, nil
	}
	var id string
	if len(e.ItemID) > 0 && json.Unmarshal(e.ItemID, &id) == nil {
		if n, ok := d.calls[id]; ok {
			return n, nil
		}
	}
	n, ok := d.last.Get()
	if !ok {
		return 0, fmt.Errorf("no field \"output_index\" in %s", wire.Excerpt(raw))
	}
	return n, nil
}

// maxItems bounds the output items of an answer.
const maxItems = 1 << 16

// added reads the begin of an output item. A call of a tool begins with its name; anything else begins empty.
func (d *responseDecoder) added(e *typedEvent, to *dialect.Delta, raw []byte) error {
	if len(e.Item) == 0 {
		return fmt.Errorf("no field \"item\" in %s", wire.Excerpt(raw))
	}
	var i item
	if json.Unmarshal(e.Item, &i.itemType) != nil || !i.call() {
		return nil
	}
	if err := json.Unmarshal(e.Item, &i); err != nil {
		return fmt.Errorf("item is no valid call of a tool (%v): %s", err, wire.Excerpt(raw))
	}
	index := 0
	if len(e.Index) > 0 {
		var err error
		if index, err = d.index(e, raw); err != nil {
			return err
		}
	} else if index = d.last.Or(-1) + 1; index > maxItems {
		return fmt.Errorf("more than %d calls of tools", maxItems)
	}
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[i.ID], d.calls[i.CallID], d.last = index, index, opt.Some(index)
	out := to.Output(0)
	out.Tools = append(out.Tools, dialect.ToolPiece{Index: index, ID: cmp.Or(i.CallID, i.ID), Name: i.Name})
	return nil
}

// ended reads the last event. Its name says less than the status in it: vLLM completes an answer that is incomplete.
func (e *typedEvent) ended(to *dialect.Delta, raw []byte) error {
	to.Done = true
	if len(e.Response) == 0 || string(e.Response) == "null" {
		return fmt.Errorf("no field \"response\" in %s", wire.Excerpt(raw))
	}
	var r response
	if err := json.Unmarshal(e.Response, &r); err != nil {
		return fmt.Errorf("the response is no valid JSON of the Responses API (%v): %s", err, wire.Excerpt(raw))
	}
	if err := r.end(to, to.Output(0), raw); err != nil {
		return err
	}
	var t timings
	if len(e.Timings) > 0 && json.Unmarshal(e.Timings, &t) == nil { // those of another form are another server's
		t.fill(to)
	}
	return nil
}

// response is an answer, in the last event or as a body.
type response struct {
	Status     *string           `json:"status"`
	Error      json.RawMessage   `json:"error"`
	Output     []json.RawMessage `json:"output"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input     *int `json:"input_tokens"`
		Output    *int `json:"output_tokens"`
		InputInfo *struct {
			Cached *int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputInfo *struct {
			Reasoning *int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// end reads how an answer ended, and the counts.
func (r *response) end(to *dialect.Delta, out *dialect.Output, raw []byte) error {
	if r.Status == nil {
		return fmt.Errorf("no field \"status\" in %s", wire.Excerpt(raw))
	}
	switch out.Finish = *r.Status; out.Finish {
	case "failed", "cancelled":
		f := dialect.Failure{Object: "error", Error: r.Error, Message: "the server ended the response as " + *r.Status}
		to.Error = f.Words(false)
		return nil
	case "incomplete":
		if r.Incomplete != nil && r.Incomplete.Reason != "" {
			out.Finish += ":" + r.Incomplete.Reason
		}
	case "completed":
		for _, o := range r.Output {
			var i itemType
			if json.Unmarshal(o, &i) == nil && i.call() {
				out.Finish = "function_call"
			}
		}
	}
	if u := r.Usage; u != nil {
		tell(&to.Prompt, u.Input)
		tell(&to.Completion, u.Output)
		if u.InputInfo != nil {
			tell(&to.Cached, u.InputInfo.Cached)
		}
		if u.OutputInfo != nil {
			tell(&to.Reasoning, u.OutputInfo.Reasoning)
		}
	}
	return nil
}

// tell takes a count that is told.
func tell(to *opt.Of[int], v *int) {
	if v != nil {
		*to = opt.Some(*v)
	}
}

// itemType is the type of an output item. It is read alone first: an item of a new type may have any form.
type itemType struct {
	Type string `json:"type"`
}

// call tells whether an item is the call of a tool.
func (i itemType) call() bool {
	return i.Type == "function_call" || i.Type == "custom_tool_call" || i.Type == "mcp_call"
}

// item is an output item: a message, reasoning, or the call of a tool.
type item struct {
	itemType
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Input     string `json:"input"` // of a tool that takes a text
	Content   []part `json:"content"`
	Summary   []part `json:"summary"`
}

type part struct {
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// Body implements dialect.Decoder.
func (d *responseDecoder) Body(b []byte, to *dialect.Delta) error {
	var f dialect.Failure
	if json.Unmarshal(b, &f) == nil {
		if words := f.Words(f.Object == "response"); words != "" {
			to.Error = words
			return nil
		}
	}
	var r response
	if err := json.Unmarshal(b, &r); err != nil {
		return fmt.Errorf("body is no valid JSON of the Responses API (%v): %s", err, wire.Excerpt(b))
	}
	if r.Output == nil {
		return fmt.Errorf("no field \"output\" in %s", wire.Excerpt(b))
	}
	out := to.Output(0)
	for index, o := range r.Output {
		var i item
		if json.Unmarshal(o, &i.itemType) != nil || !i.call() && i.Type != "message" && i.Type != "reasoning" {
			continue // of a type that brings no output of the model
		}
		if err := json.Unmarshal(o, &i); err != nil {
			return fmt.Errorf("item %d is no valid %s (%v): %s", index, i.Type, err, wire.Excerpt(b))
		}
		i.add(index, out)
	}
	return r.end(to, out, b)
}

// add adds a whole item to an output.
func (i *item) add(index int, out *dialect.Output) {
	switch {
	case i.Type == "message":
		for _, p := range i.Content {
			out.Text += p.Text + p.Refusal
		}
	case i.Type == "reasoning":
		parts := i.Content
		if len(parts) == 0 {
			parts = i.Summary
		}
		for _, p := range parts {
			out.Reasoning += p.Text
		}
	case i.call():
		out.Tools = append(out.Tools, dialect.ToolPiece{Index: index, ID: cmp.Or(i.CallID, i.ID), Name: i.Name, Arguments: i.Arguments + i.Input})
	}
}
