package dialect

import (
	"testing"

	"github.com/prony-bench/prony/internal/bench"
)

// The name of a model is one element of a path, whatever is in it.
func TestModelInPath(t *testing.T) {
	for model, want := range map[string]string{
		"ensemble": "/v2/models/ensemble/generate", "org/model:8b": "/v2/models/org%2Fmodel:8b/generate", "../a b?c#d%": "/v2/models/..%2Fa%20b%3Fc%23d%25/generate",
	} {
		if got := (Endpoint{Path: "/v2/models/{model}/generate"}).At(model); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Extra fields are added to objects that are there, and null removes a field inside them too.
func TestMergeObjects(t *testing.T) {
	b := &Object{}
	b.Set("model", "m")
	b.Raw("options", []byte(`{"num_predict":8,"seed":7}`))
	for _, extra := range []string{`{"options":{"num_ctx":8192,"seed":null},"model":{"a":1}}`, `{"options":{"num_ctx":{"b":2}},"keep":null}`, `{"keep":1,"model":null}`, `{"keep":2,"model":"n"}`} {
		if err := b.Merge([]byte(extra)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := string(b.Bytes()), `{"model":"n","options":{"num_predict":8,"num_ctx":{"b":2}},"keep":2}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSchema(t *testing.T) {
	for format, want := range map[string]string{
		"": "", `{"type":"text"}`: "", `{"type":"json_object"}`: `{"type":"object"}`,
		`{"type":"json_schema","json_schema":{"name":"a","schema":{"type":"array"}}}`: `{"type":"array"}`,
	} {
		if got, err := Schema([]byte(format)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", format, got, err)
		}
	}
	for _, format := range []string{`{}`, `{"type":"json_schema"}`, `{"type":"verse"}`, `[`} {
		if got, err := Schema([]byte(format)); err == nil {
			t.Errorf("%s: %s", format, got)
		}
	}
}

// An endpoint for texts refuses what it cannot take before anything is sent.
func TestPlain(t *testing.T) {
	text, ids := Endpoint{Name: "generate"}, Endpoint{Name: "completion", Can: Abilities{IDsIn: true}}
	for _, c := range []struct {
		ep    Endpoint
		q     bench.Request
		o     Options
		taken bool
	}{
		{text, bench.Request{Prompt: "hi"}, Options{}, true},
		{text, bench.Request{Tokens: []int{1}}, Options{}, false},
		{ids, bench.Request{Tokens: []int{1}}, Options{}, true},
		{ids, bench.Request{Tokens: []int{1}}, Options{Tools: []byte(`[]`)}, false},
		{ids, bench.Request{Messages: []bench.Message{{Role: "user"}}}, Options{}, false},
	} {
		if prompt, err := c.ep.Plain(&c.q, &c.o); (err == nil) != c.taken {
			t.Errorf("%+v: %v, %v", c.q, prompt, err)
		}
	}
}
