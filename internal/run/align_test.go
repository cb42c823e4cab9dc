package run

import (
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
)

// Each status has the hint that helps with it.
func TestUnusableHints(t *testing.T) {
	target, err := client.ParseTarget("http://127.0.0.1:8000")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		status      int
		words, hint string
	}{
		{400, "max_tokens is too large", "the server's words"},
		{400, "max_tokens=99999 cannot be greater than max_model_len=2048.", "--isl"},
		{400, "request (3002 tokens) exceeds the available context size (2048 tokens), try increasing it", "--isl"},
		{400, "This model's maximum context length is 2048 tokens. However, your prompt contains 3002", "--isl"},
		{422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", "--isl"},
		{400, "prompt is too long: 9000 tokens > 8000 maximum", "--isl"},
		{400, "unknown field stream_options", "--no-usage"},
		{401, "", "--api-key"},
		{403, "no", "--api-key"},
		{404, "The model `x` does not exist", "--model"},
		{404, "Not Found", "--endpoint"},
		{405, "", "LLM server"},
		{407, "", "proxy"},
		{422, "", "the server's words"},
		{429, "slow down", "--request-rate"},
		{500, "boom", "log"},
		{501, "", "LLM server"},
		{503, "loading", "--wait-ready"},
		{301, "", "redirect"},
		{302, "", "--url"},
	} {
		err := (&Plan{Endpoint: dialect.Endpoint{Path: "/v1/chat/completions"}}).unusableFault(target, c.status, c.words)
		if fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), c.hint) || strings.HasSuffix(err.Error(), ": ") {
			t.Errorf("%d %q: %v (%s)", c.status, c.words, err, fault.HintOf(err))
		}
	}
	for _, status := range []int{404, 405, 501} {
		err := (&Plan{Endpoint: dialect.Endpoint{Path: "/v1/embeddings", Task: bench.Embed}}).unusableFault(target, status, "Not Found")
		if fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), "a model for that task") {
			t.Errorf("%d: %v (%s)", status, err, fault.HintOf(err))
		}
	}
}
