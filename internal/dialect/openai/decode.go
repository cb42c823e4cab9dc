package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// decoder reads chat and completions responses, streamed and not: their objects differ in a few fields only.
//
// It has two ways to read an event. Event is the strict one: what it says is right. Quick is for the forms that engines send most.
type decoder struct {
	strict *strictPool

	// the quick way's
	form  form
	chunk chunk
	words words
}

// object is a chunk, a whole response or an error, with the fields that matter.
type object struct {
	dialect.Failure
	Choices []choice `json:"choices"` // nil when absent or null
	Usage   *usage   `json:"usage"`
	Timings *timings `json:"timings"` // llama.cpp

	NVExt   json.RawMessage `json:"nvext"`
	Metrics json.RawMessage `json:"metrics"`

	ReasoningTokens *int `json:"reasoning_tokens"` // SGLang, beside usage
}

type choice struct {
	Index        int     `json:"index"`
	Delta        *delta  `json:"delta"`
	Message      *delta  `json:"message"`
	Text         *string `json:"text"`
	TokenIDs     []int64 `json:"token_ids"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Content          content    `json:"content"`
	Refusal          string     `json:"refusal"`
	Reasoning        content    `json:"reasoning"`
	ReasoningContent content    `json:"reasoning_content"`
	ToolCalls        []toolCall `json:"tool_calls"`
	FunctionCall     *function  `json:"function_call"`
}

type toolCall struct {
	Index    int      `json:"index"`
	ID       string   `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // a string; an object from servers that misread the API
}

func (f function) arguments() string {
	var s string
	if len(f.Arguments) == 0 || json.Unmarshal(f.Arguments, &s) == nil {
		return s
	}
	return string(f.Arguments)
}

// content is a string, null, or a list of parts with texts.
type content string

func (c *content) UnmarshalJSON(b []byte) error {
	*c = ""
	switch {
	case len(b) > 0 && b[0] == '"':
		if inner := b[1 : len(b)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
			*c = content(inner) // b is known to be valid JSON
			return nil
		}
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = content(s)
	case len(b) > 0 && b[0] == '[':
		var parts []struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			*c += content(p.Text)
		}
	case string(b) != "null":
		return errors.New("content is neither a string nor null")
	}
	return nil
}

type usage struct {
	Prompt     *int `json:"prompt_tokens"`
	Completion *int `json:"completion_tokens"`
	Reasoning  *int `json:"reasoning_tokens"`
	PromptInfo *struct {
		Cached *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionInfo *struct {
		Reasoning *int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// timings are llama.cpp's. predicted_ms starts at the first token.
type timings struct {
	CacheN      *int     `json:"cache_n"`
	PromptN     *int     `json:"prompt_n"`
	PromptMS    *float64 `json:"prompt_ms"`
	PredictedN  *int     `json:"predicted_n"`
	PredictedMS *float64 `json:"predicted_ms"`
}

// Event implements dialect.Decoder.
func (d *decoder) Event(ev wire.Event, to *dialect.Delta) error {
	if string(ev.Name) == "error" && ev.Data == nil { // Dynamo: the words are in a comment
		to.Error = "error event: " + string(ev.Comment)
		return nil
	}
	data := bytes.TrimSpace(ev.Data)
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		to.Done = true
		return nil
	}
	s := d.strict.get()
	defer d.strict.put(s)
	if err := s.decode(data); err != nil {
		return fmt.Errorf("event is no valid chunk (%v): %s", err, wire.Excerpt(data))
	}
	return s.object.fill(to, data)
}

// Body implements dialect.Decoder.
func (d *decoder) Body(b []byte, to *dialect.Delta) error {
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("body is no valid JSON (%v): %s", err, wire.Excerpt(b))
	}
	return o.fill(to, b)
}

func (o *object) fill(d *dialect.Delta, raw []byte) error {
	if words := o.Words(o.Choices != nil); words != "" {
		d.Error = words
		return nil
	}
	if o.Usage != nil {
		o.Usage.fill(d)
	}
	if o.ReasoningTokens != nil {
		d.Reasoning = opt.Some(*o.ReasoningTokens)
	}
	if o.Timings != nil {
		o.Timings.fill(d)
	}
	o.toldTimes(d)
	if o.Choices == nil {
		if o.Usage != nil || o.Timings != nil || o.Type != "" || o.Object != "" && o.Object != "chat.completion.chunk" && o.Object != "text_completion" && o.Object != "chat.completion" {
			return nil // counts alone, or an event of a kind that is not ours
		}
		return fmt.Errorf("no field \"choices\" in %s", wire.Excerpt(raw))
	}
	for i := range o.Choices {
		c := &o.Choices[i]
		out := d.Output(c.Index)
		out.IDs = len(c.TokenIDs)
		m := c.Delta
		if m == nil {
			m = c.Message
		}
		if m != nil {
			out.Text = string(m.Content) + m.Refusal
			if out.Reasoning = string(m.Reasoning); out.Reasoning == "" {
				out.Reasoning = string(m.ReasoningContent)
			}
			for _, t := range m.ToolCalls {
				out.Tools = append(out.Tools, dialect.ToolPiece{Index: t.Index, ID: t.ID, Name: t.Function.Name, Arguments: t.Function.arguments()})
			}
			if m.FunctionCall != nil {
				out.Tools = append(out.Tools, dialect.ToolPiece{Name: m.FunctionCall.Name, Arguments: m.FunctionCall.arguments()})
			}
		}
		if c.Text != nil {
			out.Text += *c.Text
		}
		if c.FinishReason != nil {
			out.Finish = *c.FinishReason
		}
	}
	return nil
}

func (u *usage) fill(d *dialect.Delta) {
	set := func(to *opt.Of[int], v *int) {
		if v != nil {
			*to = opt.Some(*v)
		}
	}
	set(&d.Prompt, u.Prompt)
	set(&d.Completion, u.Completion)
	set(&d.Reasoning, u.Reasoning)
	if u.PromptInfo != nil {
		set(&d.Cached, u.PromptInfo.Cached)
	}
	if u.CompletionInfo != nil {
		set(&d.Reasoning, u.CompletionInfo.Reasoning)
	}
}

// fill takes the counts only where usage does not tell them: with cached tokens the prompt is cache_n + prompt_n.
func (t *timings) fill(d *dialect.Delta) {
	if t.PromptN != nil && !d.Prompt.Defined() {
		n := *t.PromptN
		if t.CacheN != nil {
			n += *t.CacheN
		}
		d.Prompt, d.Native = opt.Some(n), true
	}
	if t.PredictedN != nil && !d.Completion.Defined() {
		d.Completion, d.Native = opt.Some(*t.PredictedN), true
	}
	if t.CacheN != nil && !d.Cached.Defined() {
		d.Cached = opt.Some(*t.CacheN)
	}
	if t.PromptMS != nil {
		d.Server = append(d.Server, dialect.ServerTime{Key: prefillKey, Value: *t.PromptMS})
	}
	if t.PredictedMS != nil {
		d.Server = append(d.Server, dialect.ServerTime{Key: decodeKey, Value: *t.PredictedMS})
	}
}

// The keys of llama.cpp's own times in a record.
const (
	prefillKey = "server_prefill_ms"
	decodeKey  = "server_decode_ms"
)
