package tei

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect/dialecttest"
)

func TestListsConform(t *testing.T) {
	write := func(form func(k int, value string) string) func([]int, string, int) (http.Header, string) {
		return func(inputs []int, value string, tokens int) (http.Header, string) {
			var all []string
			for _, k := range inputs {
				all = append(all, form(k, value))
			}
			return http.Header{"X-Compute-Tokens": {fmt.Sprint(tokens)}}, "[" + strings.Join(all, ",") + "]"
		}
	}
	refusal := func(words string) string {
		return `{"error":` + dialecttest.JSON(words) + `,"error_type":"Backend"}`
	}
	t.Run("embed", func(t *testing.T) {
		dialecttest.ConformLists(t, dialecttest.Lists{Endpoint: EmbedEndpoint(), Value: "[0.5,-1]", Ordered: true, Prompt: bench.FromCount, Refusal: refusal,
			Write: write(func(_ int, value string) string { return value })})
	})
	t.Run("rerank", func(t *testing.T) {
		dialecttest.ConformLists(t, dialecttest.Lists{Endpoint: RerankEndpoint(), Value: "0.5", Prompt: bench.FromCount, Refusal: refusal,
			Write: write(func(k int, value string) string { return fmt.Sprintf(`{"index":%d,"score":%s}`, k, value) })})
	})
}
