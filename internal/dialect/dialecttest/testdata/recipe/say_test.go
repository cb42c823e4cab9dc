package say

import (
	"fmt"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

func TestConform(t *testing.T) {
	dialecttest.Conform(t, dialecttest.Protocol{
		Endpoint: SayEndpoint(), Request: bench.Request{Prompt: "What color is the sky?"}, Lines: true,
		Stop: "stop", Length: "length", Terminator: dialecttest.Finish,
		Tokens: bench.FromCount, PlainTokens: bench.FromCount, Prompt: bench.FromCount,
		Missing: map[string]string{"piece": `{"pieces":["a"]}` + "\n"},
		Without: map[dialecttest.Kind]string{
			dialecttest.Open:      "a stream begins with its text",
			dialecttest.Reasoning: "there is one text",
			dialecttest.Call:      "it has no tools",
			dialecttest.Arguments: "it has no tools",
			dialecttest.Usage:     "the counts are in the end",
			dialecttest.End:       "the finish is the end",
			dialecttest.Strange:   "events have no types",
		},
		Write: func(p dialecttest.Part) string {
			text, end := dialecttest.JSON(p.Text), fmt.Sprintf(`"end":%q,"in":%d,"out":%d`, p.Reason, p.Prompt, p.Tokens)
			switch p.Kind {
			case dialecttest.Text:
				return fmt.Sprintf("{\"piece\":%s}\n", text)
			case dialecttest.Finish:
				return fmt.Sprintf("{%s}\n", end)
			case dialecttest.Body:
				return fmt.Sprintf(`{"piece":%s,%s}`, text, end)
			case dialecttest.Error:
				return fmt.Sprintf("{\"error\":%s}\n", text)
			case dialecttest.Refusal:
				return fmt.Sprintf(`{"error":%s}`, text)
			}
			return ""
		},
	})
}

func TestGoldenStreams(t *testing.T) {
	dialecttest.Golden(t, "../../../testdata/wire", 1, map[string]dialect.Endpoint{"say": SayEndpoint()})
}
