package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
)

// form is what an answer is held against when a JSON schema was asked for. It may be used by several goroutines; nil = any answer.
type form struct {
	schema *jsonschema.Schema
	keep   bool // the text stays in the record
}

// newForm returns the form that a spec asks for.
func newForm(spec *bench.Spec) (*form, error) {
	raw, err := dialect.Schema(spec.Target.ResponseFormat)
	if err != nil || raw == nil {
		return nil, err
	}
	const name, hint = "schema.json", "it must be a JSON Schema; references to other files are not followed"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "the schema of the answer", hint)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err = c.AddResource(name, doc); err == nil {
		var s *jsonschema.Schema
		if s, err = c.Compile(name); err == nil {
			return &form{s, spec.Keep.Text}, nil
		}
	}
	return nil, fault.Wrap(fault.Usage, errors.New(oneLine(err)), "the schema of the answer", hint)
}

// noLoader reads no schema from anywhere.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("it is elsewhere") }

// oneLine puts an error of several lines into one.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// hold raises a flag when the answer of a record has not the form, and takes the text out that is not to be kept.
func (f *form) hold(r *bench.Record) {
	if f == nil {
		return
	}
	if r.Formed() && !f.fits(r.Text) {
		if r.Finish == bench.FinishLength || r.OSLAsked > 0 && r.OSLSource != bench.FromEstimate && r.OSL.Or(0) >= r.OSLAsked {
			r.Raise(bench.CutOffJSON) // some servers say stop also when the limit was reached (llama.cpp's responses)
		} else {
			r.Raise(bench.InvalidJSON)
		}
	}
	if !f.keep {
		r.Text, r.Thinking, r.ToolCalls = "", "", nil
	}
}

// fits tells whether a text is JSON that follows the schema.
func (f *form) fits(text string) bool {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	return err == nil && ordinary(doc) && f.schema.Validate(doc) == nil
}

// mostExponent bounds the exponents of numbers: they are compared exactly, and 1e999999999 has a billion digits.
const mostExponent = 400

// ordinary tells whether all numbers of a document are within bounds.
func ordinary(doc any) bool {
	switch v := doc.(type) {
	case json.Number:
		i := strings.IndexAny(v.String(), "eE")
		if i < 0 {
			return true
		}
		e, err := strconv.Atoi(v.String()[i+1:])
		return err == nil && -mostExponent <= e && e <= mostExponent
	case []any:
		for _, x := range v {
			if !ordinary(x) {
				return false
			}
		}
	case map[string]any:
		for _, x := range v {
			if !ordinary(x) {
				return false
			}
		}
	}
	return true
}
