package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
	"github.com/prony-bench/prony/internal/wire"
)

const wireDir = "../../../testdata/wire"

// timed gives each data event of a body one read and a time of its own: event i arrives at (i+1) ms.
func timed(body []byte) *wire.Transcript { return dialecttest.Transcript("text/event-stream", body) }

// Real answers of real engines fold to what their text shows, in any reads.
func TestRecorded(t *testing.T) {
	const chat, text, responses = "/v1/chat/completions", "/v1/completions", "/v1/responses"
	for _, c := range []struct {
		name, path       string
		outcome          bench.Outcome
		isl, osl, events int
		source           bench.Source
		text, words      string
	}{
		{"vllm-chat-stream", chat, bench.OK, 8, 8, 8, bench.FromUsage, "ation preventation preventation preventation prevent", ""},
		{"vllm-chat-stream-continuous-usage", chat, bench.OK, 8, 4, 4, bench.FromCount, "ation preventation prevent", ""},
		{"vllm-chat-n2-stream", chat, bench.OK, 8, 6, 6, bench.FromUsage, " Greyn30bdlentSH", ""},
		{"vllm-completions-stream", text, bench.OK, 5, 8, 8, bench.FromUsage, "unlockedldunlockedldunlockedldunlockedld", ""},
		{"vllm-completions-token-ids", text, bench.OK, 4, 4, 4, bench.FromIDs, "just worjust wor", ""},
		{"vllm-completions-nonstream", text, bench.OK, 5, 4, 0, bench.FromUsage, "unlockedldunlockedld", ""},
		{"vllm-chat-too-long", chat, bench.Rejected, -1, -1, 0, "", "", "cannot be greater than max_model_len=2048"},
		{"vllm-chat-unknown-model", chat, bench.Rejected, -1, -1, 0, "", "", "The model `nope` does not exist"},
		{"vllm-responses-stream", responses, bench.OK, 8, 6, 4, bench.FromUsage, "ation preventation preventation prevent", ""},
		{"llamacpp-responses-stream", responses, bench.OK, 29, 6, 6, bench.FromUsage, "<|im_end|>", ""},
		{"llamacpp-chat-stream", chat, bench.OK, 29, 8, 8, bench.FromUsage, "<|im_end|>\n<", ""},
		{"llamacpp-chat-stream-timings", chat, bench.OK, 29, 4, 4, bench.FromCount, "<|im_", ""},
		{"llamacpp-v1-completions-stream", text, bench.OK, 6, 8, 8, bench.FromUsage, " the capital of the country of France.", ""},
		{"llamacpp-v1-completions-utf8-stream", text, bench.OK, 21, 24, 24, bench.FromUsage, " 謝謝你. Translate to English: good morning = 早上好. Translate to French: bonne journée = 早上", ""},
		{"llamacpp-too-long", text, bench.Rejected, -1, -1, 0, "", "", "exceeds the available context size"},
		{"llamacpp-malformed", text, bench.ServerError, -1, -1, 0, "", "", "parse error"},
		{"ollama-v1-chat-stream", chat, bench.OK, 6, 6, 6, bench.FromUsage, " the capital of the country of", ""},
		{"ollama-v1-completions-stream", text, bench.OK, 6, 6, 6, bench.FromUsage, " the capital of the country of", ""}, // zeros in every chunk
	} {
		r := dialecttest.Recorded(t, wireDir+"/recorded", c.name, endpoint(engine("openai"), c.path))
		if r.Outcome != c.outcome || r.Text != c.text || r.OutEvents != c.events || r.OSLSource != c.source || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl ||
			!strings.Contains(r.Error, c.words) {
			t.Errorf("%s: %s %q, text %q, %d events, osl %v from %q, isl %v", c.name, r.Outcome, r.Error, r.Text, r.OutEvents, r.OSL, r.OSLSource, r.ISL)
		}
		finish := bench.FinishLength
		if c.name == "llamacpp-responses-stream" {
			finish = bench.FinishStop // it says completed, whatever the reason
		}
		if r.Outcome == bench.OK && r.Finish != finish {
			t.Errorf("%s: finish %s", c.name, r.Finish)
		}
		if strings.HasSuffix(c.name, "n2-stream") && (!r.Has(bench.NGreater1) || r.Choices != 2 || fmt.Sprint(r.EventChoice) != "[0 1 0 1 0 1]") {
			t.Errorf("%s: %d choices, events of %v", c.name, r.Choices, r.EventChoice)
		}
		if (len(r.EventTokens) > 0) != (strings.Contains(c.name, "continuous") || strings.Contains(c.name, "ids") || strings.Contains(c.name, "timings")) {
			t.Errorf("%s: tokens per event %v", c.name, r.EventTokens)
		}
	}
}
