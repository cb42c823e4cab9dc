// Package builtin is the one visible list of everything that can be chosen by name.
package builtin

import (
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/anthropic"
	"github.com/prony-bench/prony/internal/dialect/llamacpp"
	"github.com/prony-bench/prony/internal/dialect/lmdeploy"
	"github.com/prony-bench/prony/internal/dialect/ollama"
	"github.com/prony-bench/prony/internal/dialect/openai"
	"github.com/prony-bench/prony/internal/dialect/sglang"
	"github.com/prony-bench/prony/internal/dialect/tei"
	"github.com/prony-bench/prony/internal/dialect/tgi"
	"github.com/prony-bench/prony/internal/dialect/triton"
	"github.com/prony-bench/prony/internal/dialect/vllm"
	"github.com/prony-bench/prony/internal/workload"
)

// Engines are the words for --engine. The abilities are those of the engines' own sources; an engine that is not known by name gets
// only what the API itself promises.
func Engines() catalog.Catalog[dialect.Engine] {
	usage := dialect.Abilities{Usage: true}
	forced := dialect.Abilities{Usage: true, IgnoreEOS: true, MinTokens: true}
	with := func(a dialect.Abilities, more ...func(*dialect.Abilities)) dialect.Abilities {
		for _, f := range more {
			f(&a)
		}
		return a
	}
	exact := with(forced, func(a *dialect.Abilities) { a.IDsOut, a.EventUsage = true, true })
	priority := func(a *dialect.Abilities) { a.Priority = true }
	scheduled := with(exact, priority)
	idsIn := func(a *dialect.Abilities) { a.IDsIn = true }
	formed := func(a *dialect.Abilities) { a.Format = true }
	ignoreEOS := dialect.Abilities{Usage: true, IgnoreEOS: true}
	timed := dialect.Abilities{Usage: true, IgnoreEOS: true, ServerTimings: true}
	timedForced := with(forced, func(a *dialect.Abilities) { a.ServerTimings = true })
	fronts := func(chat, completions dialect.Abilities, more ...dialect.Endpoint) []dialect.Endpoint {
		return append([]dialect.Endpoint{openai.ChatEndpoint(chat), openai.CompletionsEndpoint(completions)}, more...)
	}
	openaiChat := openai.ChatEndpoint(usage) // of an engine whose own chat is another one
	openaiChat.Name = "openai-chat"
	responses, messages := openai.ResponsesEndpoint, anthropic.MessagesEndpoint
	form := dialect.Abilities{Usage: true, Format: true}
	embeddings, rerank := openai.EmbeddingsEndpoint(dialect.Abilities{}), openai.RerankEndpoint()
	return catalog.New(
		dialect.NewEngine("openai", fronts(usage, usage, responses(form), embeddings, rerank)...),
		dialect.NewEngine("vllm", fronts(scheduled, with(scheduled, idsIn, formed),
			responses(with(ignoreEOS, priority, formed)), messages(form), embeddings, rerank, vllm.GenerateEndpoint())...),
		dialect.NewEngine("sglang", fronts(scheduled, with(scheduled, idsIn, formed),
			responses(with(usage, priority)), messages(usage), embeddings, rerank, sglang.GenerateEndpoint())...),
		dialect.NewEngine("trtllm", fronts(forced, with(forced, idsIn))...),
		dialect.NewEngine("nim", fronts(scheduled, with(scheduled, idsIn), embeddings)...),
		dialect.NewEngine("dynamo", openai.Dynamo(openai.ChatEndpoint(timedForced)), openai.Dynamo(openai.CompletionsEndpoint(timedForced)), embeddings),
		dialect.NewEngine("lmdeploy", fronts(ignoreEOS, ignoreEOS, lmdeploy.GenerateEndpoint())...),
		dialect.NewEngine("llamacpp", fronts(timed, with(timed, idsIn), responses(timed), messages(usage), llamacpp.CompletionEndpoint(), embeddings, rerank)...),
		dialect.NewEngine("ollama", ollama.ChatEndpoint(), ollama.GenerateEndpoint(), openaiChat, openai.CompletionsEndpoint(usage),
			responses(form), messages(usage), embeddings, ollama.EmbedEndpoint()),
		dialect.NewEngine("anthropic", messages(form)),
		dialect.NewEngine("tgi", fronts(usage, usage, tgi.GenerateEndpoint())...),
		dialect.NewEngine("triton", fronts(usage, usage, triton.GenerateEndpoint(), triton.GenerateVLLMEndpoint(), triton.InferEndpoint())...),
		dialect.NewEngine("tei", tei.EmbedEndpoint(), tei.RerankEndpoint(), embeddings),
		dialect.NewEngine("prony-sim", fronts(exact, with(exact, idsIn))...),
	)
}

// Datasets are the words for --dataset.
func Datasets() catalog.Catalog[workload.Dataset] {
	return catalog.New[workload.Dataset](
		workload.Random{},
		workload.RandomIDs{},
		workload.Prefix{},
		workload.Images{},
		workload.LongContext{},
		workload.Lines{},
		workload.JSONL{},
		workload.ShareGPT{},
		workload.Mooncake(),
		workload.Azure(),
		workload.BurstGPT(),
		workload.Bailian(),
		workload.ServeGen{},
	)
}
