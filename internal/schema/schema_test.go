package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
)

var update = flag.Bool("update", false, "write the schemas")

// object is a JSON object whose keys keep their order.
type object struct {
	keys   []string
	values map[string]any
}

func (o *object) set(k string, v any) *object {
	if o.values == nil {
		o.values = map[string]any{}
	}
	if _, ok := o.values[k]; !ok {
		o.keys = append(o.keys, k)
	}
	o.values[k] = v
	return o
}

func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, k := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		key, _ := json.Marshal(k)
		v, err := json.Marshal(o.values[k])
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// comments are the doc and line comments of types and fields: "Type" and "Type.Field".
func comments(t *testing.T, dirs ...string) map[string]string {
	out := map[string]string{}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, s := range g.Specs {
					spec, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					doc := spec.Doc
					if doc == nil {
						doc = g.Doc
					}
					out[spec.Name.Name] = strings.Join(strings.Fields(doc.Text()), " ")
					st, ok := spec.Type.(*ast.StructType)
					if !ok {
						continue
					}
					for _, field := range st.Fields.List {
						text := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
						for _, n := range field.Names {
							out[spec.Name.Name+"."+n.Name] = text
						}
					}
				}
			}
		}
	}
	return out
}

// generator turns Go types into schemas.
type generator struct {
	doc   map[string]string
	enums map[string][]string
	defs  *object
}

// enums are the closed lists of words.
func enums() map[string][]string {
	out := map[string][]string{
		"Verdict": {"valid", "doubtful", "void"}, "Severity": {"void", "warn", "cell", "note"}, "State": {"running", "complete", "interrupted", "stopped"},
		"Stamp": {"wire", "socket", "user"}, "Source": {"ids", "count", "usage", "tokenizer", "estimate"}, "LoadAxis": {"concurrency", "request_rate"}, "Shape": {"closed", "constant", "poisson", "gamma", "inf"},
	}
	for _, o := range bench.Outcomes {
		out["Outcome"] = append(out["Outcome"], string(o))
	}
	return out
}

func (g *generator) of(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[time.Time]():
		return new(object).set("type", "string").set("format", "date-time")
	case reflect.TypeFor[time.Duration]():
		return new(object).set("type", "integer")
	case reflect.TypeFor[json.RawMessage]():
		return true
	case reflect.TypeFor[bench.Metrics]():
		return g.metrics()
	case reflect.TypeFor[bench.Dist]():
		return g.ref("Dist", g.dist)
	}
	if strings.HasPrefix(t.String(), "opt.Of[") {
		m, _ := t.MethodByName("Get")
		return g.nullable(m.Type.Out(0))
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.nullable(t.Elem())
	case reflect.String:
		s := new(object).set("type", "string")
		if e := g.enums[t.Name()]; e != nil {
			s.set("enum", e)
		}
		return s
	case reflect.Bool:
		return new(object).set("type", "boolean")
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return new(object).set("type", "integer")
	case reflect.Float64:
		return new(object).set("type", "number")
	case reflect.Slice:
		return new(object).set("type", []string{"array", "null"}).set("items", g.of(t.Elem()))
	case reflect.Map:
		return new(object).set("type", []string{"object", "null"}).set("additionalProperties", g.of(t.Elem()))
	case reflect.Struct:
		return g.ref(t.Name(), func() any { return g.structure(t) })
	}
	panic("no schema for " + t.String())
}

func (g *generator) nullable(t reflect.Type) any {
	return new(object).set("anyOf", []any{g.of(t), new(object).set("type", "null")})
}

func (g *generator) ref(name string, make func() any) any {
	if _, ok := g.defs.values[name]; !ok {
		g.defs.set(name, true) // against recursion
		g.defs.set(name, make())
	}
	return new(object).set("$ref", "#/$defs/"+name)
}

func (g *generator) structure(t reflect.Type) any {
	props, required := new(object), []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" || name == "" {
			continue
		}
		s := g.of(f.Type)
		if doc := g.doc[t.Name()+"."+f.Name]; doc != "" {
			if o, ok := s.(*object); ok && o.values["$ref"] == nil {
				o.set("description", doc)
			} else {
				s = new(object).set("description", doc).set("allOf", []any{s})
			}
		}
		props.set(name, s)
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return new(object).set("description", g.doc[t.Name()]).set("type", "object").set("properties", props).set("required", required)
}

func number() *object { return new(object).set("type", "number") }

func (g *generator) dist() any {
	p := new(object).set("n", new(object).set("type", "integer").set("description", "samples")).set("mean", number()).
		set("sd", new(object).set("type", []string{"number", "null"}).set("description", "of the sample (n - 1); null below 2 samples")).
		set("min", number()).set("max", number()).
		set("ci95", new(object).set("type", "object").set("description", "95 % intervals by the name of the statistic").
			set("additionalProperties", new(object).set("type", "array").set("items", number()).set("minItems", 2).set("maxItems", 2))).
		set("ci_method", new(object).set("type", "string").set("description", "how the intervals were made, or why there are none")).
		set("n_eff", number().set("description", "effective number of independent samples"))
	return new(object).set("description", "The distribution of a metric over its samples; percentiles are p50, p99, p99_9, ...").set("type", "object").
		set("properties", p).set("patternProperties", new(object).set("^p[0-9]+(_[0-9]+)?$", number())).set("required", []string{"n", "mean", "sd", "min", "max", "ci95"})
}

func (g *generator) metrics() any {
	props := new(object)
	for _, d := range metrics.Table() {
		var s any = new(object).set("anyOf", []any{g.of(reflect.TypeFor[bench.Dist]()), new(object).set("type", "null")})
		if d.Sample == nil {
			s = g.of(reflect.TypeFor[bench.Scalar]())
		}
		props.set(d.Key, new(object).set("description", d.Name+", "+d.Unit+": "+d.Definition).set("allOf", []any{s}))
	}
	return new(object).set("type", "object").set("properties", props)
}

func generate(t *testing.T, title, id string, of reflect.Type) []byte {
	g := &generator{enums: enums(), doc: comments(t, "../bench", "../wire"), defs: new(object)}
	root := g.of(of)
	out := new(object).set("$schema", "https://json-schema.org/draft/2020-12/schema").set("$id", id).set("title", title).
		set("$ref", root.(*object).values["$ref"]).set("$defs", g.defs)
	b, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

// The schemas are those of the types as they are.
func TestSchemas(t *testing.T) {
	for _, s := range []struct {
		name, title, id string
		of              reflect.Type
	}{
		{"journal", "a line of requests.jsonl", bench.JournalSchema, reflect.TypeFor[bench.Record]()},
		{"manifest", "manifest.json", bench.ManifestSchema, reflect.TypeFor[bench.Manifest]()},
		{"summary", "summary.json", bench.SummarySchema, reflect.TypeFor[bench.Summary]()},
		{"curve", "sweep.json", bench.CurveSchema, reflect.TypeFor[bench.Curve]()},
	} {
		want := generate(t, s.title, s.id, s.of)
		if *update {
			if err := os.WriteFile(s.name+".schema.json", want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := All().Get(s.name)
		if err != nil || !bytes.Equal(have.JSON, want) {
			t.Errorf("%s.schema.json is not that of the types: go generate ./internal/schema", s.name)
		}
	}
}

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	s, err := All().Get(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.JSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	out, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func check(t *testing.T, s *jsonschema.Schema, v any) error {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// What is written is what the schemas say, with and without values; what is wrong is refused.
func TestFilesFollowSchemas(t *testing.T) {
	m := &bench.Manifest{Schema: bench.ManifestSchema, Journal: bench.JournalSchema, State: bench.Complete, Verdict: bench.Valid,
		Spec: bench.Spec{Phases: []bench.Phase{{Name: bench.Measure, Load: bench.Load{Shape: bench.Poisson, Rate: 5}, Stop: bench.Stop{Requests: 3}}}}}
	full := bench.Record{ID: 1, Phase: bench.Measure, Outcome: bench.OK, Due: opt.Some(time.Duration(1)), Sent: opt.Some(time.Duration(1)), First: opt.Some(time.Duration(5)),
		Last: opt.Some(time.Duration(9)), End: opt.Some(time.Duration(9)), Events: []time.Duration{4, 8}, OutEvents: 2, OSL: opt.Some(2), OSLSource: bench.FromUsage, Stamp: "socket"}
	bare := bench.Record{ID: 2, Phase: bench.Measure, Outcome: bench.Refused, Error: "no"}
	for name, v := range map[string][]any{
		"journal":  {full, bare},
		"manifest": {m, &bench.Manifest{State: bench.Running, Verdict: bench.Void}},
		"summary":  {metrics.Summarize(m, []bench.Record{full, bare}), metrics.Summarize(m, nil)},
		"curve": {&bench.Curve{Schema: bench.CurveSchema, State: bench.Running, Plan: bench.SweepPlan{Axis: bench.ByRate, Loads: []float64{1}, StopOn: []string{}},
			Levels:   []bench.CurveLevel{{Load: 1, Breaks: []string{}, Metrics: []bench.CurveMetric{}, Runs: []bench.CurveRun{{Verdict: bench.Valid, Saturated: []string{}, Caveats: []string{}}}}},
			Frontier: []bench.FrontierStep{}, Caveats: []bench.Caveat{}}},
	} {
		s := compile(t, name)
		for _, x := range v {
			if err := check(t, s, x); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := check(t, s, map[string]any{"id": "x", "state": 5, "verdict": "fine"}); err == nil {
			t.Errorf("%s takes anything", name)
		}
	}
}
