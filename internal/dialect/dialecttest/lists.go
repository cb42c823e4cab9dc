package dialecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Lists describes a protocol that embeds or ranks: an answer is a plain body with one result for each input.
type Lists struct {
	Endpoint dialect.Endpoint
	// Write writes an answer with the results of these inputs, each of a value in JSON, and the count of the prompt.
	Write   func(inputs []int, value string, tokens int) (head http.Header, body string)
	Value   string       // a right one
	Ordered bool         // results stand in the order of the inputs, and do not say of which they are
	Prompt  bench.Source // where the count of the prompt comes from; "" when the protocol never tells
	Refusal func(words string) string
}

// ConformLists holds a codec against what its protocol writes.
func ConformLists(t *testing.T, l Lists) {
	t.Run("answers", l.answers)
	t.Run("wrong", l.wrong)
	t.Run("refusals", l.refusals)
	t.Run("cut", l.cut)
	t.Run("split", func(t *testing.T) { rapid.Check(t, l.split) })
	t.Run("request", l.request)
}

const listTokens = 17

func (l *Lists) fold(inputs int, tr *wire.Transcript) bench.Record {
	req := &bench.Request{Query: "q", ISL: listTokens}
	for i := range inputs {
		req.Inputs = append(req.Inputs, fmt.Sprint("text ", i))
	}
	return dialect.NewFold(l.Endpoint, req, &dialect.Options{}).End(tr)
}

// transcript is an answer that comes in two reads.
func (l *Lists) transcript(inputs []int, value string) *wire.Transcript {
	head, body := l.Write(inputs, value, listTokens)
	tr := transcript("application/json", []string{body[:len(body)/2], body[len(body)/2:]})
	for k, v := range head {
		tr.Header[k] = v
	}
	return tr
}

// right says what is wrong with the record of a right answer.
func (l *Lists) right(r *bench.Record, inputs int, tr *wire.Transcript) error {
	tokens := opt.Of[int]{}
	if l.Prompt != "" {
		tokens = opt.Some(listTokens)
	}
	switch {
	case r.Outcome != bench.OK || len(r.Flags) > 0:
		return fmt.Errorf("%s (%s), flags %v", r.Outcome, r.Error, r.Flags)
	case r.ISL != tokens || r.ISLSource != l.Prompt || r.Inputs != inputs || r.OSL.Defined():
		return fmt.Errorf("%v tokens by %q of %d inputs, %v output tokens", r.ISL, r.ISLSource, r.Inputs, r.OSL)
	case r.First.Defined() || r.Last != tr.Ended || len(r.Events) > 0:
		return fmt.Errorf("first %v, last %v, %d events", r.First, r.Last, len(r.Events))
	case (r.Dimensions > 0) != (l.Endpoint.Task == bench.Embed):
		return fmt.Errorf("%d dimensions", r.Dimensions)
	}
	return nil
}

func (l *Lists) answers(t *testing.T) {
	orders := [][]int{{0}, {0, 1, 2}}
	if !l.Ordered {
		orders = append(orders, []int{2, 0, 1})
	}
	for _, inputs := range orders {
		tr := l.transcript(inputs, l.Value)
		r := l.fold(len(inputs), tr)
		if err := l.right(&r, len(inputs), tr); err != nil {
			t.Errorf("%s: %v", tr.Raw, err)
		}
		if strange := strangeFields(string(tr.Raw)); strange != string(tr.Raw) {
			other := transcript("application/json", []string{strange})
			for k, v := range tr.Header {
				other.Header[k] = v
			}
			r := l.fold(len(inputs), other)
			if err := l.right(&r, len(inputs), other); err != nil {
				t.Errorf("%s: %v", strange, err)
			}
		}
	}
}

// wrong are answers whose results are not those of the inputs, or no numbers.
func (l *Lists) wrong(t *testing.T) {
	check := func(inputs []int, value, words string) {
		t.Helper()
		tr := l.transcript(inputs, value)
		if r := l.fold(2, tr); r.Outcome != bench.Malformed || !strings.Contains(r.Error, words) || r.Last.Defined() {
			t.Errorf("%s gives %s (%s), want malformed: %s", tr.Raw, r.Outcome, r.Error, words)
		}
	}
	check(nil, l.Value, "0 ")
	check([]int{0}, l.Value, "1 ")
	check([]int{0, 1, 2}, l.Value, "3 ")
	if !l.Ordered {
		check([]int{1, 1}, l.Value, "input 1")
		check([]int{0, 2}, l.Value, "input 2")
		check([]int{-1, 0}, l.Value, "input -1")
	}
	for _, value := range []string{"null", "{}", "true", `"*"`, "[null]", "[[0.5]]", "1e999", "[1e999]"} {
		check([]int{0, 1}, value, "")
	}
	for kind, body := range map[string]string{"application/json": "{}", "text/html": "<html>busy</html>", "": "", "text/plain": "busy",
		"text/event-stream": "data: {}\n\n"} {
		if r := l.fold(1, transcript(kind, []string{body})); r.Outcome != bench.Malformed || r.Error == "" {
			t.Errorf("%q gives %s (%s)", body, r.Outcome, r.Error)
		}
	}
}

func (l *Lists) refusals(t *testing.T) {
	body := l.Refusal("the model is tired")
	for status, want := range map[int]bench.Outcome{200: bench.StreamError, 400: bench.Rejected, 404: bench.Rejected, 429: bench.Throttled, 500: bench.ServerError, 503: bench.ServerError} {
		tr := transcript("application/json", []string{body})
		tr.Status = status
		if r := l.fold(1, tr); r.Outcome != want || !strings.Contains(r.Error, "the model is tired") || strings.Contains(r.Error, "{") {
			t.Errorf("status %d gives %s (%s), want %s", status, r.Outcome, r.Error, want)
		}
	}
}

// cut ends an answer after each of its bytes: none of them is right.
func (l *Lists) cut(t *testing.T) {
	all := l.transcript([]int{0, 1}, l.Value)
	for k := range len(bytes.TrimRight(all.Raw, " \n")) {
		part := transcript("application/json", []string{string(all.Raw[:k])})
		if r := l.fold(2, part); r.Outcome != bench.Malformed {
			t.Errorf("ended after byte %d: %s", k, r.Outcome)
		}
		part.Fail, part.Cause = wire.FailReset, wire.ErrCut.Error()
		if r := l.fold(2, part); r.Outcome != bench.Reset {
			t.Errorf("broken after byte %d: %s", k, r.Outcome)
		}
	}
}

// split brings an answer in any reads.
func (l *Lists) split(t *rapid.T) {
	n := rapid.IntRange(1, 5).Draw(t, "inputs")
	inputs := make([]int, n)
	for i := range inputs {
		inputs[i] = i
	}
	all := l.transcript(inputs, l.Value)
	want := l.fold(n, all)
	tr := split(t, all)
	got := l.fold(n, tr)
	if err := l.right(&got, n, tr); err != nil || got.Dimensions != want.Dimensions {
		t.Fatalf("%v", err)
	}
}

// request holds what is sent: every text, once, with the fields of the user's own; a request without texts is refused.
func (l *Lists) request(t *testing.T) {
	req := &bench.Request{ID: 3, Inputs: []string{"the sea \"é\"", "a\nsky"}, Query: "which?", ISL: 9, Extra: json.RawMessage(`{"zz":1}`)}
	o := &dialect.Options{Model: "m", Extra: json.RawMessage(`{"yy":{"a":2}}`)}
	call, err := l.Endpoint.Codec.Encode(l.Endpoint, req, o)
	again, err2 := l.Endpoint.Codec.Encode(l.Endpoint, req, o)
	if err != nil || err2 != nil || !bytes.Equal(call.Body, again.Body) || call.Path != l.Endpoint.Path || call.Until != nil {
		t.Fatalf("%s %s, then %s (%v, %v)", call.Path, call.Body, again.Body, err, err2)
	}
	var fields map[string]any
	if err := json.Unmarshal(call.Body, &fields); err != nil || fields["zz"] != 1.0 || fields["yy"] == nil || fields["stream"] != nil {
		t.Errorf("%s (%v)", call.Body, err)
	}
	for _, text := range req.Inputs {
		if n := bytes.Count(call.Body, []byte(JSON(text))); n != 1 {
			t.Errorf("%s holds %s %d times", call.Body, JSON(text), n)
		}
	}
	if has := bytes.Contains(call.Body, []byte("which?")); has != (l.Endpoint.Task == bench.Rerank) {
		t.Errorf("the query in %s: %v", call.Body, has)
	}
	if _, err := l.Endpoint.Codec.Encode(l.Endpoint, &bench.Request{Prompt: "a", Query: "q"}, o); err == nil {
		t.Error("a request without texts is taken")
	}
}
