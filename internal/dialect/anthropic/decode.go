package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// decoder reads one answer. It remembers the counts, of which each event tells only those that changed.
type decoder struct {
	usage usage
	told  bool // the number of output tokens has been told
}

// event is an event of a stream. What its type has no use for may be of any form.
type event struct {
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`
	Message json.RawMessage `json:"message"`       // of message_start
	Index   json.RawMessage `json:"index"`         // of the events of a block
	Block   json.RawMessage `json:"content_block"` // of content_block_start
	Delta   json.RawMessage `json:"delta"`         // of content_block_delta and message_delta
	Usage   json.RawMessage `json:"usage"`         // of message_delta
}

// usage are the counts so far. The prompt is the sum of three: tokens read from a cache, and written to one, are not in the first.
type usage struct {
	Input    *int `json:"input_tokens"`
	Read     *int `json:"cache_read_input_tokens"`
	Creation *int `json:"cache_creation_input_tokens"`
	Output   *int `json:"output_tokens"`
	Details  *struct {
		Thinking *int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// Event implements dialect.Decoder.
func (d *decoder) Event(ev wire.Event, to *dialect.Delta) error {
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 {
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("event is no valid event of the Messages API (%v): %s", err, wire.Excerpt(data))
	}
	e.Type = cmp.Or(e.Type, string(ev.Name))
	switch {
	case e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null":
		f := dialect.Failure{Object: "error", Error: e.Error}
		json.Unmarshal(e.Message, &f.Message) // of an error without a wrapper; else it stays empty
		to.Error = f.Words(false)
		return nil
	case e.Type == "":
		return missing("type", data)
	}
	return d.fill(&e, to, data)
}

func missing(field string, raw []byte) error {
	return fmt.Errorf("no field %q in %s", field, wire.Excerpt(raw))
}

// fill reads an event by its type: a ping, the end of a block and what is not known say nothing of interest.
func (d *decoder) fill(e *event, to *dialect.Delta, raw []byte) error {
	switch e.Type {
	case "message_start":
		return d.start(e, to, raw)
	case "content_block_start":
		return e.begin(to, raw)
	case "content_block_delta":
		return e.piece(to, raw)
	case "message_delta":
		return d.change(e, to, raw)
	case "message_stop":
		to.Done = true
		d.total(to)
	}
	return nil
}

// start reads the prompt's counts. That of the output is none of tokens that have come.
func (d *decoder) start(e *event, to *dialect.Delta, raw []byte) error {
	if len(e.Message) == 0 {
		return missing("message", raw)
	}
	var m struct {
		Usage *usage `json:"usage"`
	}
	if err := json.Unmarshal(e.Message, &m); err != nil {
		return fmt.Errorf("field \"message\" is no message (%v): %s", err, wire.Excerpt(raw))
	}
	d.usage.merge(m.Usage)
	d.usage.Output = nil
	d.usage.prompt(to)
	return nil
}

// begin reads the begin of a block. A call of a tool begins with its name; a text begins empty, but need not.
func (e *event) begin(to *dialect.Delta, raw []byte) error {
	if len(e.Block) == 0 {
		return missing("content_block", raw)
	}
	var k kind
	if json.Unmarshal(e.Block, &k) != nil || !k.known() {
		return nil
	}
	c := content{kind: k}
	if err := json.Unmarshal(e.Block, &c); err != nil {
		return fmt.Errorf("field \"content_block\" is no valid block (%v): %s", err, wire.Excerpt(raw))
	}
	index, err := e.index(raw)
	if err != nil {
		return err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(c.Input, &object) == nil && len(object) == 0 {
		c.Input = nil // its pieces follow
	}
	c.add(index, to.Output(0))
	return nil
}

// index reads the number of the block that an event belongs to.
func (e *event) index(raw []byte) (n int, err error) {
	if len(e.Index) == 0 {
		return 0, missing("index", raw)
	}
	if json.Unmarshal(e.Index, &n) != nil || n < 0 || n > maxBlocks {
		return 0, fmt.Errorf("field \"index\" is no index in %s", wire.Excerpt(raw))
	}
	return n, nil
}

// maxBlocks bounds the blocks of an answer.
const maxBlocks = 1 << 16

// piece reads a piece of a block. Signatures and citations are no output of the model.
func (e *event) piece(to *dialect.Delta, raw []byte) error {
	if len(e.Delta) == 0 {
		return missing("delta", raw)
	}
	var d struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		Thinking *string `json:"thinking"`
		Partial  *string `json:"partial_json"`
	}
	var k kind
	if json.Unmarshal(e.Delta, &k) != nil {
		return nil // of a new type
	}
	field, value := "", (**string)(nil)
	switch k.Type {
	case "text_delta":
		field, value = "text", &d.Text
	case "thinking_delta":
		field, value = "thinking", &d.Thinking
	case "input_json_delta":
		field, value = "partial_json", &d.Partial
	default:
		return nil
	}
	if err := json.Unmarshal(e.Delta, &d); err != nil {
		return fmt.Errorf("field \"delta\" is no valid %s (%v): %s", k.Type, err, wire.Excerpt(raw))
	}
	if *value == nil {
		return missing(field, raw)
	}
	switch field {
	case "text":
		to.Output(0).Text = **value
	case "thinking":
		to.Output(0).Reasoning = **value
	default:
		index, err := e.index(raw)
		if err != nil {
			return err
		}
		out := to.Output(0)
		out.Tools = append(out.Tools, dialect.ToolPiece{Index: index, Arguments: **value})
	}
	return nil
}

// change reads how the answer ended, and the counts so far. Only the last of several such events has a reason.
func (d *decoder) change(e *event, to *dialect.Delta, raw []byte) error {
	if len(e.Delta) == 0 {
		return missing("delta", raw)
	}
	var m struct {
		Reason *string `json:"stop_reason"`
	}
	if err := json.Unmarshal(e.Delta, &m); err != nil {
		return fmt.Errorf("field \"delta\" is no change of a message (%v): %s", err, wire.Excerpt(raw))
	}
	var counts *usage
	if len(e.Usage) > 0 {
		if err := json.Unmarshal(e.Usage, &counts); err != nil {
			return fmt.Errorf("field \"usage\" is no usage (%v): %s", err, wire.Excerpt(raw))
		}
	}
	d.usage.merge(counts)
	d.usage.prompt(to)
	if m.Reason != nil {
		to.Output(0).Finish = *m.Reason
		d.total(to)
	}
	return nil
}

// total tells the number of output tokens once: a total that grows would tell of tokens in its event.
func (d *decoder) total(to *dialect.Delta) {
	if d.told || d.usage.Output == nil {
		return
	}
	d.told = true
	to.Completion = opt.Some(*d.usage.Output)
	if d.usage.Details != nil && d.usage.Details.Thinking != nil {
		to.Reasoning = opt.Some(*d.usage.Details.Thinking)
	}
}

// merge takes the counts that are told over those from before.
func (u *usage) merge(more *usage) {
	if more == nil {
		return
	}
	u.Input, u.Read, u.Creation = cmp.Or(more.Input, u.Input), cmp.Or(more.Read, u.Read), cmp.Or(more.Creation, u.Creation)
	u.Output, u.Details = cmp.Or(more.Output, u.Output), cmp.Or(more.Details, u.Details)
}

// prompt tells the number of prompt tokens, and of those that came from a cache.
func (u *usage) prompt(to *dialect.Delta) {
	if u.Input == nil {
		return
	}
	sum := *u.Input
	for _, n := range []*int{u.Read, u.Creation} {
		if n != nil {
			sum += *n
		}
	}
	to.Prompt = opt.Some(sum)
	if u.Read != nil {
		to.Cached = opt.Some(*u.Read)
	}
}

// kind is the type of a block or of a piece. It is read alone first: one of a new type may have any form.
type kind struct {
	Type string `json:"type"`
}

// known tells whether the block is output of the model.
func (k kind) known() bool { return k.Type == "text" || k.Type == "thinking" || k.call() }

// call tells whether it is the call of a tool.
func (k kind) call() bool {
	return k.Type == "tool_use" || k.Type == "server_tool_use" || k.Type == "mcp_tool_use"
}

// content is a block of an answer.
type content struct {
	kind
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"` // an object
}

// add adds a block, or its begin, to an output.
func (c *content) add(index int, out *dialect.Output) {
	switch {
	case c.Type == "text":
		out.Text += c.Text
	case c.Type == "thinking":
		out.Reasoning += c.Thinking
	case c.call():
		out.Tools = append(out.Tools, dialect.ToolPiece{Index: index, ID: c.ID, Name: c.Name, Arguments: string(c.Input)})
	}
}

// Body implements dialect.Decoder.
func (d *decoder) Body(b []byte, to *dialect.Delta) error {
	var f dialect.Failure
	if err := json.Unmarshal(b, &f); err == nil {
		if words := f.Words(f.Type == "message"); words != "" {
			to.Error = words
			return nil
		}
	}
	var m struct {
		Content []json.RawMessage `json:"content"`
		Reason  *string           `json:"stop_reason"`
		Usage   *usage            `json:"usage"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("body is no valid JSON of the Messages API (%v): %s", err, wire.Excerpt(b))
	}
	if m.Content == nil {
		return missing("content", b)
	}
	out := to.Output(0)
	for i, raw := range m.Content {
		var c content
		if json.Unmarshal(raw, &c.kind) != nil || !c.known() {
			continue
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return fmt.Errorf("block %d is no valid %s (%v): %s", i, c.Type, err, wire.Excerpt(b))
		}
		c.add(i, out)
	}
	if m.Reason != nil {
		out.Finish = *m.Reason
	}
	d.usage.merge(m.Usage)
	d.usage.prompt(to)
	d.total(to)
	return nil
}
