package workload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/fault"
)

// JSONL is the data set `jsonl`: one request a line, with its own messages, prompt or token ids.
type JSONL struct{}

// Name implements Dataset.
func (JSONL) Name() string { return "jsonl" }

// row is a line of a jsonl data set. A field that is not listed is refused: what it was meant to do would not happen.
type row struct {
	Prompt   *string         `json:"prompt"`
	Messages []bench.Message `json:"messages"`
	InputIDs []int           `json:"input_ids"`
	Input    texts           `json:"input"`
	Inputs   texts           `json:"inputs"`
	Query    *string         `json:"query"`
	Docs     texts           `json:"documents"`
	Output   *int            `json:"output_tokens"`
	Extra    json.RawMessage `json:"extra_body"`
}

// The fields of a row and of a message.
var (
	rowFields     = []string{"prompt", "messages", "input_ids", "input", "inputs", "query", "documents", "output_tokens", "extra_body"}
	messageFields = []string{"role", "content"}
)

const rowHint = "a line is an object with one of prompt, messages, input_ids, input, or query with documents, and if wanted output_tokens and extra_body; see `prony help datasets`"

// texts is a text or a list of texts.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		*t = texts{""}
		return json.Unmarshal(b, &(*t)[0])
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// Open implements Dataset.
func (JSONL) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	if c.Spec.Prompt != "" {
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "use --dataset text --prompt ...")
	}
	osl, err := givenLaw(c)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(c, func(line []byte) (bench.Request, error) {
		x, err := parseRow(line)
		if err != nil {
			return bench.Request{}, err
		}
		return x.request(c)
	})
	if err != nil {
		return nil, err
	}
	return repeat(c, osl, rows), nil
}

// request turns a row into a request that the endpoint can take.
func (x *row) request(c Config) (bench.Request, error) {
	q := bench.Request{Messages: x.Messages, Tokens: x.InputIDs, ISL: len(x.InputIDs), Extra: x.Extra}
	given := 0
	for _, has := range []bool{x.Prompt != nil, x.Messages != nil, x.InputIDs != nil, x.Input != nil, x.Inputs != nil, x.Query != nil || x.Docs != nil} {
		if has {
			given++
		}
	}
	if given == 1 && x.Prompt == nil && x.Messages == nil && x.InputIDs == nil || c.inputs() {
		return x.inputs(c, q, given)
	}
	switch {
	case given != 1:
		return q, errors.New("needs exactly one of prompt, messages, input_ids, input, inputs, or query with documents")
	case x.Prompt != nil && *x.Prompt == "":
		return q, errors.New("the prompt is empty")
	case x.Messages != nil && len(x.Messages) == 0:
		return q, errors.New("messages is empty")
	case x.InputIDs != nil && len(x.InputIDs) == 0:
		return q, errors.New("input_ids is empty")
	case x.InputIDs != nil && c.Chat:
		return q, fault.New(fault.Usage, "input_ids cannot be sent to the chat endpoint", "use --endpoint completions")
	case x.Messages != nil && c.Text:
		return q, fault.New(fault.Usage, "messages cannot be sent to the completions endpoint", "use --endpoint chat")
	}
	if x.Prompt != nil {
		q.Prompt = *x.Prompt
	}
	for i, m := range x.Messages {
		switch {
		case m.Role == "":
			return q, fmt.Errorf("messages[%d] has no role", i)
		case len(m.Content) == 0:
			return q, fmt.Errorf("messages[%d] has no content", i)
		case m.Content[0] != '"' && m.Content[0] != '[':
			return q, fmt.Errorf("the content of messages[%d] is %s, not a string or a list of parts", i, Kind(m.Content))
		}
	}
	for i, id := range x.InputIDs {
		if id < 0 {
			return q, fmt.Errorf("input_ids[%d] is %d, no token id", i, id)
		}
	}
	if x.Output != nil {
		if *x.Output < 1 || *x.Output > maxLength {
			return q, fmt.Errorf("output_tokens is %d, must be between 1 and %d", *x.Output, maxLength)
		}
		q.OSL = *x.Output
	}
	return q, x.checkExtra()
}

// inputs turns a row into a request to embed or to rank.
func (x *row) inputs(c Config, q bench.Request, given int) (bench.Request, error) {
	q.Inputs = append(append(append(q.Inputs, x.Input...), x.Inputs...), x.Docs...)
	ranks := x.Query != nil || x.Docs != nil
	task, known := c.Task.Get()
	switch {
	case known && task == bench.Generate:
		return q, fault.New(fault.Usage, "input, inputs, query and documents cannot be sent to an endpoint that generates", "use --endpoint embeddings or --endpoint rerank")
	case known && task == bench.Embed && (given != 1 || ranks || len(q.Inputs) == 0 && x.Input == nil && x.Inputs == nil):
		return q, errors.New("needs exactly one of input, inputs to embed")
	case (ranks || known && task == bench.Rerank) && (given != 1 || x.Query == nil || x.Docs == nil || *x.Query == ""):
		return q, errors.New("needs a query and its documents to rank")
	case len(q.Inputs) == 0:
		return q, errors.New("the list of texts is empty")
	case x.Output != nil:
		return q, errors.New("output_tokens has no meaning where nothing is generated")
	}
	for i, text := range q.Inputs {
		if text == "" {
			return q, fmt.Errorf("text %d is empty", i)
		}
	}
	if x.Query != nil {
		q.Query = *x.Query
	}
	return q, x.checkExtra()
}

func (x *row) checkExtra() error {
	if len(x.Extra) > 0 {
		if err := CheckObject(x.Extra); err != nil {
			return fmt.Errorf("extra_body %w", err)
		}
	}
	return nil
}

// parseRow reads a line. The error says what was expected and what is there.
func parseRow(line []byte) (x row, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if dec.Decode(&x) != nil {
		return x, explain(line)
	}
	if _, err := dec.Token(); err != io.EOF {
		return x, errors.New("there is more than one JSON value")
	}
	return x, nil
}

// explain says why a line is no row.
func explain(line []byte) error {
	if err := CheckObject(line); err != nil {
		return fmt.Errorf("the line %w", err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return fmt.Errorf("the line %w", err)
	}
	if err := known("", fields, rowFields); err != nil {
		return err
	}
	for _, f := range []struct {
		name, want string
		into       any
	}{{"prompt", "a string", new(string)}, {"query", "a string", new(string)}, {"input", "a string or a list of strings", new(texts)},
		{"inputs", "a string or a list of strings", new(texts)}, {"documents", "a string or a list of strings", new(texts)}, {"output_tokens", "a whole number", new(int)}} {
		if v, ok := fields[f.name]; ok && json.Unmarshal(v, f.into) != nil {
			return fmt.Errorf("%s is %s, not %s", f.name, Kind(v), f.want)
		}
	}
	if err := explainList("input_ids", fields["input_ids"], func(name string, v json.RawMessage) error {
		if json.Unmarshal(v, new(int)) != nil {
			return fmt.Errorf("%s is %s, not a token id", name, Kind(v))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := explainList("messages", fields["messages"], func(name string, v json.RawMessage) error {
		var m map[string]json.RawMessage
		if json.Unmarshal(v, &m) != nil {
			return fmt.Errorf("%s is %s, not an object", name, Kind(v))
		}
		if role, ok := m["role"]; ok && json.Unmarshal(role, new(string)) != nil {
			return fmt.Errorf("the role of %s is %s, not a string", name, Kind(role))
		}
		return known(name, m, messageFields)
	}); err != nil {
		return err
	}
	return errors.New("the line is no request")
}

func explainList(name string, list json.RawMessage, each func(string, json.RawMessage) error) error {
	if len(list) == 0 {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(list, &items) != nil {
		return fmt.Errorf("%s is %s, not a list", name, Kind(list))
	}
	for i, v := range items {
		if err := each(fmt.Sprintf("%s[%d]", name, i), v); err != nil {
			return err
		}
	}
	return nil
}

// known refuses the first field that is not in the list.
func known(of string, fields map[string]json.RawMessage, names []string) error {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, k) }) {
			continue
		}
		if of != "" {
			of = " of " + of
		}
		return fmt.Errorf("the field %s%s is not known%s (there are: %s)", excerpt([]byte(k)), of, catalog.DidYouMean(k, names), strings.Join(names, ", "))
	}
	return nil
}

// CheckObject tells what a text is when it is no JSON object: the error reads "is a list, not a JSON object".
func CheckObject(text []byte) error {
	var syntax *json.SyntaxError
	var value json.RawMessage
	switch err := json.Unmarshal(text, &value); {
	case errors.As(err, &syntax):
		return fmt.Errorf("is no JSON (%v, byte %d)", syntax, syntax.Offset)
	case err != nil:
		return errors.New("is no JSON")
	case value[0] != '{':
		return fmt.Errorf("is %s, not a JSON object", Kind(value))
	}
	return nil
}

// Kind says in words what a JSON value is: "a list", or the value itself where it is short.
func Kind(v json.RawMessage) string {
	if v = bytes.TrimSpace(v); len(v) == 0 {
		return "nothing"
	}
	switch v[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the string " + excerpt(v)
	}
	return excerpt(v) // a number, true, false or null
}

// excerptLength is how many bytes of somebody's text a message shows.
const excerptLength = 40

// excerpt shows the begin of a text in a message.
func excerpt(b []byte) string {
	s, more := string(b), ""
	if len(s) > excerptLength {
		s, more = s[:excerptLength], "..."
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s) + more
}
