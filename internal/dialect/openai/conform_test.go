package openai

import (
	"fmt"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
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

func TestConform(t *testing.T) {
	can := dialect.Abilities{Usage: true, IDsIn: true, IDsOut: true, IgnoreEOS: true, MinTokens: true}
	common := dialecttest.Protocol{
		Stop: "stop", Length: "length", Tool: "tool_calls", Terminator: dialecttest.End,
		Tokens: bench.FromUsage, PlainTokens: bench.FromUsage, Prompt: bench.FromUsage,
		Missing: map[string]string{"choices": dialecttest.Data(`{"id":"a","created":17,"model":"demo"}`)},
	}
	t.Run("chat", func(t *testing.T) {
		p := common
		p.Endpoint, p.Write = ChatEndpoint(can), writeChat
		p.Request = bench.Request{Prompt: "What color is the sky?"}
		dialecttest.Conform(t, p)
	})
	t.Run("completions", func(t *testing.T) {
		p := common
		p.Endpoint, p.Write = CompletionsEndpoint(can), writeCompletions
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

// Every golden stream of the OpenAI protocols folds to what the manifest says.
func TestGoldenStreams(t *testing.T) {
	can := dialect.Abilities{Usage: true}
	dialecttest.Golden(t, wireDir, 23, map[string]dialect.Endpoint{"openai-chat": ChatEndpoint(can), "openai-completions": CompletionsEndpoint(can)})
}
