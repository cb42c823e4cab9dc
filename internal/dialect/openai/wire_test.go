package openai

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
	"github.com/prony-bench/prony/internal/wire"
)

const wireDir = "../../../testdata/wire"

// timed gives each data event of a body one read and a time of its own: event i arrives at (i+1) ms.
func timed(body []byte) *wire.Transcript { return dialecttest.Transcript("text/event-stream", body) }

// Real answers of real engines fold to what their text shows. The recorder took the chunked coding off.
func TestRecorded(t *testing.T) {
	const chat, text = "/v1/chat/completions", "/v1/completions"
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
		{"llamacpp-chat-stream", chat, bench.OK, 29, 8, 8, bench.FromUsage, "<|im_end|>\n<", ""},
		{"llamacpp-chat-stream-timings", chat, bench.OK, 29, 4, 4, bench.FromCount, "<|im_", ""},
		{"llamacpp-v1-completions-stream", text, bench.OK, 6, 8, 8, bench.FromUsage, " the capital of the country of France.", ""},
		{"llamacpp-v1-completions-utf8-stream", text, bench.OK, 21, 24, 24, bench.FromUsage, " 謝謝你. Translate to English: good morning = 早上好. Translate to French: bonne journée = 早上", ""},
		{"llamacpp-too-long", text, bench.Rejected, -1, -1, 0, "", "", "exceeds the available context size"},
		{"llamacpp-malformed", text, bench.ServerError, -1, -1, 0, "", "", "parse error"},
		{"ollama-v1-chat-stream", chat, bench.OK, 6, 6, 6, bench.FromUsage, " the capital of the country of", ""},
		{"ollama-v1-completions-stream", text, bench.OK, 6, 6, 6, bench.FromUsage, " the capital of the country of", ""}, // zeros in every chunk
	} {
		raw, err := os.ReadFile(filepath.Join(wireDir, "recorded", c.name+".response.http"))
		if err != nil {
			t.Fatal(err)
		}
		head, body, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
		status, _ := strconv.Atoi(string(head[9:12]))
		kind := "application/json"
		if bytes.Contains(head, []byte("text/event-stream")) {
			kind = "text/event-stream"
		}
		tr := timed(body)
		tr.Status, tr.Header = status, map[string][]string{"Content-Type": {kind}}
		r := fold(c.path, kind != "application/json" || status != 200, 0, 0, nil, tr)
		if r.Outcome != c.outcome || r.Text != c.text || r.OutEvents != c.events || r.OSLSource != c.source || r.ISL.Or(-1) != c.isl || r.OSL.Or(-1) != c.osl ||
			!strings.Contains(r.Error, c.words) {
			t.Errorf("%s: %s %q, text %q, %d events, osl %v from %q, isl %v", c.name, r.Outcome, r.Error, r.Text, r.OutEvents, r.OSL, r.OSLSource, r.ISL)
		}
		if r.Outcome == bench.OK && r.Finish != bench.FinishLength {
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
