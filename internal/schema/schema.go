// Package schema holds the JSON Schemas of a run directory's files, made from the types of package bench and their comments.
package schema

import (
	_ "embed"

	"github.com/prony-bench/prony/internal/catalog"
)

//go:generate go test -run TestSchemas . -update

//go:embed journal.schema.json
var journal []byte

//go:embed manifest.schema.json
var manifest []byte

//go:embed summary.schema.json
var summary []byte

//go:embed curve.schema.json
var curve []byte

// Schema is the JSON Schema (draft 2020-12) of one file.
type Schema struct {
	name string
	JSON []byte
}

// Name is the word for `prony schema`.
func (s Schema) Name() string { return s.name }

// All lists the schemas.
func All() catalog.Catalog[Schema] {
	return catalog.New(Schema{"journal", journal}, Schema{"manifest", manifest}, Schema{"summary", summary}, Schema{"curve", curve})
}
