// Package builtin is the one visible list of everything that can be chosen by name.
package builtin

import (
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/dialect/openai"
	"github.com/prony-bench/prony/internal/workload"
)

// Dialects are the words for --engine.
func Dialects() catalog.Catalog[dialect.Dialect] {
	return catalog.New(openai.Engines()...)
}

// Datasets are the words for --dataset.
func Datasets() catalog.Catalog[workload.Dataset] {
	return catalog.New[workload.Dataset](
		workload.Random{},
		workload.Lines{},
		workload.JSONL{},
	)
}
