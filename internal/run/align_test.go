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
		err := unusableFault(target, dialect.Endpoint{Path: "/v1/chat/completions"}, c.status, c.words)
		if fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), c.hint) || strings.HasSuffix(err.Error(), ": ") {
			t.Errorf("%d %q: %v (%s)", c.status, c.words, err, fault.HintOf(err))
		}
	}
	for _, status := range []int{404, 405, 501} {
		err := unusableFault(target, dialect.Endpoint{Path: "/v1/embeddings", Task: bench.Embed}, status, "Not Found")
		if fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), "a model for that task") {
			t.Errorf("%d: %v (%s)", status, err, fault.HintOf(err))
		}
	}
}
