package openai

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

func writeUsage(p dialecttest.Part) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, p.Prompt, p.Tokens, p.Prompt+p.Tokens)
}

// writeCommon writes what chat and completions have in common.
func writeCommon(p dialecttest.Part) string {
	switch p.Kind {
	case dialecttest.Usage:
		return dialecttest.Data(`{"id":"a","choices":[],"usage":%s}`, writeUsage(p))
	case dialecttest.End:
		return dialecttest.Data("[DONE]")
	case dialecttest.Error:
		return dialecttest.Data(`{"error":{"message":%s,"type":"InternalServerError","code":500}}`, dialecttest.JSON(p.Text))
	case dialecttest.Strange:
		return "event: brand_new\n" + dialecttest.Data(`{"type":"brand_new","a":[1,{"choices":"b"}]}`)
	case dialecttest.Refusal:
		return fmt.Sprintf(`{"error":{"message":%s,"type":"BadRequestError","param":null,"code":%d}}`, dialecttest.JSON(p.Text), p.Status)
	}
	return ""
}

func writeChat(p dialecttest.Part) string {
	delta := func(fields, finish string) string {
		return dialecttest.Data(`{"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":{%s},"finish_reason":%s}],"usage":null}`, fields, finish)
	}
	text := dialecttest.JSON(p.Text)
	switch p.Kind {
	case dialecttest.Open:
		return delta(`"role":"assistant","content":""`, "null")
	case dialecttest.Text:
		return delta(`"content":`+text, "null")
	case dialecttest.Reasoning:
		return delta(`"reasoning_content":`+text, "null")
	case dialecttest.Call:
		return delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]`, p.Call, p.ID, p.Name), "null")
	case dialecttest.Arguments:
		return delta(fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, p.Call, text), "null")
	case dialecttest.Finish:
		return delta("", dialecttest.JSON(p.Reason))
	case dialecttest.Body:
		return fmt.Sprintf(`{"id":"a","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":%q}],"usage":%s}`, text, p.Reason, writeUsage(p))
	}
	return writeCommon(p)
}

func writeCompletions(p dialecttest.Part) string {
	text := dialecttest.JSON(p.Text)
	switch p.Kind {
	case dialecttest.Text:
		return dialecttest.Data(`{"id":"a","object":"text_completion","choices":[{"index":0,"text":%s,"finish_reason":null}]}`, text)
	case dialecttest.Finish:
		return dialecttest.Data(`{"id":"a","object":"text_completion","choices":[{"index":0,"text":"","finish_reason":%q}]}`, p.Reason)
	case dialecttest.Body:
		return fmt.Sprintf(`{"id":"a","object":"text_completion","choices":[{"index":0,"text":%s,"finish_reason":%q}],"usage":%s}`, text, p.Reason, writeUsage(p))
	}
	return writeCommon(p)
}

var able = dialect.Abilities{Usage: true, IDsIn: true, IDsOut: true, IgnoreEOS: true, MinTokens: true}

// chat describes chat completions.
func chat() dialecttest.Protocol {
	return dialecttest.Protocol{
		Endpoint: ChatEndpoint(able), Request: bench.Request{Prompt: "What color is the sky?"}, Write: writeChat,
		Stop: "stop", Length: "length", Tool: "tool_calls", Terminator: dialecttest.End,
		Tokens: bench.FromUsage, PlainTokens: bench.FromUsage, Prompt: bench.FromUsage,
		Missing: map[string]string{"choices": dialecttest.Data(`{"id":"a","created":17,"model":"demo"}`)},
	}
}

func TestConform(t *testing.T) {
	t.Run("chat", func(t *testing.T) { dialecttest.Conform(t, chat()) })
	t.Run("completions", func(t *testing.T) {
		p := chat()
		p.Endpoint, p.Write = CompletionsEndpoint(able), writeCompletions
		p.Request = bench.Request{Tokens: []int{128000, 3923, 1933}}
		p.Without = map[dialecttest.Kind]string{
			dialecttest.Open:      "a stream begins with its text",
			dialecttest.Reasoning: "there is one text",
			dialecttest.Call:      "it has no tools",
			dialecttest.Arguments: "it has no tools",
		}
		dialecttest.Conform(t, p)
	})
}

// spoilt is a codec whose deltas are spoilt.
type spoilt struct {
	dialect.Codec
	spoil func(*dialect.Delta)
}

func (s spoilt) Decoder(ep dialect.Endpoint) dialect.Decoder {
	return spoiltDecoder{s.Codec.Decoder(ep), s.spoil}
}

type spoiltDecoder struct {
	dialect.Decoder
	spoil func(*dialect.Delta)
}

func (s spoiltDecoder) Event(ev wire.Event, d *dialect.Delta) error {
	err := s.Decoder.Event(ev, d)
	s.spoil(d)
	return err
}

// The suite finds what codecs get wrong.
func TestSuiteFinds(t *testing.T) {
	each := func(f func(*dialect.Output)) func(*dialect.Delta) {
		return func(d *dialect.Delta) {
			for i := range d.Outputs {
				f(&d.Outputs[i])
			}
		}
	}
	tools := func(f func(*dialect.ToolPiece)) func(*dialect.Delta) {
		return each(func(o *dialect.Output) {
			for i := range o.Tools {
				f(&o.Tools[i])
			}
		})
	}
	for name, c := range map[string]struct {
		spoil func(*dialect.Delta)
		found string // a case that finds it
	}{
		"nothing":                       {func(*dialect.Delta) {}, ""},
		"the role is a token":           {each(func(o *dialect.Output) { o.IDs = 1 }), "an empty answer"},
		"no terminator":                 {func(d *dialect.Delta) { d.Done = false }, "an end of the body after that of the answer"},
		"no reason of the end":          {each(func(o *dialect.Output) { o.Finish = "" }), "an answer"},
		"every reason is the same":      {each(func(o *dialect.Output) { o.Finish = o.Finish[:min(1, len(o.Finish))] }), "cut off by the length"},
		"errors are not seen":           {func(d *dialect.Delta) { d.Error = "" }, "an error in the stream"},
		"the words of errors are lost":  {func(d *dialect.Delta) { d.Error = d.Error[:min(1, len(d.Error))] }, "an error in the stream"},
		"reasoning is text":             {each(func(o *dialect.Output) { o.Text, o.Reasoning = o.Text+o.Reasoning, "" }), "reasoning"},
		"reasoning is not seen":         {each(func(o *dialect.Output) { o.Reasoning = "" }), "reasoning"},
		"text is trimmed":               {each(func(o *dialect.Output) { o.Text = strings.TrimSpace(o.Text) }), "an answer"},
		"tool calls run together":       {tools(func(p *dialect.ToolPiece) { p.Index = 0 }), "tool calls"},
		"tool calls begin with a piece": {tools(func(p *dialect.ToolPiece) { p.Name = "" }), "tool calls"},
		"counts are not seen":           {func(d *dialect.Delta) { d.Completion = opt.Of[int]{} }, "an answer"},
		"events are tokens":             {func(d *dialect.Delta) { d.Completion = opt.Some(len(d.Outputs)) }, "several tokens in an event"},
		"the prompt is not counted":     {func(d *dialect.Delta) { d.Prompt = opt.Of[int]{} }, "an answer"},
	} {
		p := chat()
		p.Endpoint.Codec = spoilt{p.Endpoint.Codec, c.spoil}
		if found := dialecttest.Failures(p); c.found == "" && len(found) > 0 || c.found != "" && !slices.Contains(found, c.found) {
			t.Errorf("%s: found by %q, want %q", name, found, c.found)
		}
	}
}

// Every golden stream of the OpenAI protocols folds to what the manifest says.
func TestGoldenStreams(t *testing.T) {
	can := dialect.Abilities{Usage: true}
	dialecttest.Golden(t, wireDir, 23, map[string]dialect.Endpoint{"openai-chat": ChatEndpoint(can), "openai-completions": CompletionsEndpoint(can)})
}
