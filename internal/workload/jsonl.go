package workload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

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

	Tokens  *int     `json:"input_tokens"` // wanted in the prompt, to be compared with what the server counts
	At      *float64 `json:"timestamp"`    // when it was made, in ms
	Class   string   `json:"class"`
	Session texts    `json:"session_id"`
	Turn    int      `json:"turn"`

	foreign // rows of other tools
}

// The fields of a row and of a message.
var (
	rowFields = []string{"prompt", "messages", "input_ids", "input", "inputs", "query", "documents", "output_tokens", "extra_body",
		"input_tokens", "timestamp", "class", "session_id", "turn", "text", "texts", "image", "images", "turns", "type", "role", "delay", "task_id", "logits"}
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
	osl, err := givenLaw(c)
	if err != nil {
		return nil, err
	}
	rows, err := jsonRows(c)
	if err != nil {
		return nil, err
	}
	return repeat(c, osl, rows.requests), nil
}

// Times implements Timed, where every row has a timestamp.
func (JSONL) Times(c Config) (iter.Seq[time.Duration], error) {
	rows, err := jsonRows(c)
	if err != nil {
		return nil, err
	}
	if len(rows.times) < len(rows.requests) {
		return nil, fault.Usagef("give each row a timestamp in ms, or choose a rate with --request-rate", "%d of %d rows of %s have a timestamp",
			len(rows.times), len(rows.requests), c.Spec.Path)
	}
	return slices.Values(rows.times), nil
}

// timedRows are the requests of a file, and where it says so their times from the first on. Where each has one they are in their order.
type timedRows struct {
	requests []bench.Request
	times    []time.Duration
	found    bench.Rows
}

func jsonRows(c Config) (*timedRows, error) {
	if c.Spec.Prompt != "" {
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "use --dataset text --prompt ...")
	}
	unit := cmp.Or(map[string]float64{"s": 1e9, "us": 1e3}[c.Spec.TimeUnit], 1e6)
	rows, err := cached(c, fmt.Sprint("jsonl\x00", c.Spec.Path, c.Spec.Strict, unit, c.Chat, c.Text, c.Task), func() (*timedRows, error) {
		out := &timedRows{}
		var own bench.Rows
		mine := c
		mine.Rows = &own
		sessions := map[string]int{}
		var err error
		out.requests, err = readRows(mine, func(line []byte) ([]bench.Request, error) {
			x, err := parseRow(line)
			if err != nil {
				return nil, err
			}
			qs, err := x.requests(c, sessions)
			if err == nil && x.At != nil {
				at := time.Duration(math.Round(*x.At * unit))
				for range qs {
					out.times = append(out.times, at)
				}
			}
			return qs, err
		})
		if err != nil {
			return nil, err
		}
		out.sort(&own)
		out.found = own
		return out, nil
	})
	if err == nil {
		c.tell(&rows.found)
	}
	return rows, err
}

// sort brings the requests into the order of their times, where all have one.
func (t *timedRows) sort(found *bench.Rows) {
	if len(t.times) == 0 || len(t.times) < len(t.requests) {
		return
	}
	order := make([]int, len(t.times))
	for i := range order {
		if order[i] = i; i > 0 && t.times[i] < t.times[i-1] {
			found.Unsorted++
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(t.times[a], t.times[b]) })
	requests, times := make([]bench.Request, len(order)), make([]time.Duration, len(order))
	for i, k := range order {
		requests[i], times[i] = t.requests[k], t.times[k]-t.times[order[0]]
	}
	t.requests, t.times = requests, times
	found.Span = times[len(times)-1]
	if found.Unit = "ms"; found.Span > 0 {
		found.Notes = append(found.Notes, "the rows have times: --arrivals trace replays them")
	}
}

// request turns a row into a request that the endpoint can take.
func (x *row) request(c Config) (bench.Request, error) {
	q := bench.Request{Messages: x.Messages, Tokens: x.InputIDs, ISL: len(x.InputIDs), Extra: x.Extra, Class: x.Class, Turn: x.Turn}
	if x.Tokens != nil {
		if q.ISL = *x.Tokens; q.ISL < 1 || q.ISL > maxLength {
			return q, fmt.Errorf("input_tokens is %d, must be between 1 and %d", q.ISL, maxLength)
		}
	}
	if x.Turn < 0 {
		return q, fmt.Errorf("turn is %d, must be at least 0", x.Turn)
	}
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
		{"inputs", "a string or a list of strings", new(texts)}, {"documents", "a string or a list of strings", new(texts)}, {"output_tokens", "a whole number", new(int)},
		{"input_tokens", "a whole number", new(int)}, {"turn", "a whole number", new(int)}, {"timestamp", "a number", new(float64)}, {"class", "a string", new(string)},
		{"session_id", "a string", new(string)}, {"text", "a string", new(string)}, {"image", "a string", new(string)}, {"role", "a string", new(string)},
		{"type", "a string", new(string)}, {"delay", "a number", new(float64)}} {
		if v, ok := fields[f.name]; ok && json.Unmarshal(v, f.into) != nil {
			return fmt.Errorf("%s is %s, not %s", f.name, Kind(v), f.want)
		}
	}
	if err := explainTurns(fields["turns"]); err != nil {
		return err
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
