package openai

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

// results writes a list of results with their indices.
func results(inputs []int, format string, value string) string {
	var all []string
	for _, k := range inputs {
		all = append(all, fmt.Sprintf(format, k, value))
	}
	return "[" + strings.Join(all, ",") + "]"
}

func TestListsConform(t *testing.T) {
	refusal := func(words string) string {
		return `{"error":{"message":` + dialecttest.JSON(words) + `,"type":"server_error"}}`
	}
	usage := `"usage":{"prompt_tokens":%d,"total_tokens":%[1]d}`
	embeddings := dialecttest.Lists{Endpoint: EmbeddingsEndpoint(dialect.Abilities{}), Value: "[0.5,-1e-3,0]", Prompt: bench.FromUsage, Refusal: refusal,
		Write: func(inputs []int, value string, tokens int) (http.Header, string) {
			return nil, `{"object":"list","data":` + results(inputs, `{"object":"embedding","index":%d,"embedding":%s}`, value) + `,"model":"m",` +
				fmt.Sprintf(usage, tokens) + `}`
		}}
	t.Run("embeddings", func(t *testing.T) { dialecttest.ConformLists(t, embeddings) })
	embeddings.Value = `"AACAPgAAAL8="`
	t.Run("base64", func(t *testing.T) { dialecttest.ConformLists(t, embeddings) })
	rerank := dialecttest.Lists{Endpoint: RerankEndpoint(), Value: "-7.4", Prompt: bench.FromUsage, Refusal: refusal,
		Write: func(inputs []int, value string, tokens int) (http.Header, string) {
			return nil, `{"id":"a",` + fmt.Sprintf(usage, tokens) + `,"results":` + results(inputs, `{"index":%d,"document":{"text":"x"},"relevance_score":%s}`, value) + `}`
		}}
	t.Run("rerank", func(t *testing.T) { dialecttest.ConformLists(t, rerank) })
	rerank.Prompt, rerank.Write = "", func(inputs []int, value string, _ int) (http.Header, string) {
		return nil, `{"results":` + results(inputs, `{"index":%d,"relevance_score":%s}`, value) + `,"meta":{"billed_units":{"search_units":1}}}`
	}
	t.Run("cohere", func(t *testing.T) { dialecttest.ConformLists(t, rerank) })
}
