// Package dialect is the codec of an engine's protocol: a request becomes a wire.Call, what came back becomes a bench.Record.
//
// A dialect is pure. It sees bytes and offsets, has no socket, clock or goroutine, and runs off the read path, so that an expensive
// or wrong one can never change a latency. It says what each event means (Delta); the rules of counting and timing are in one
// place, Fold, for all of them.
package dialect

import (
	"encoding/json"
	"net/http"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Engine is a serving system with the ways to ask it.
type Engine struct {
	name      string
	endpoints []Endpoint
}

// NewEngine returns the engine of a name, the word for --engine, with its endpoints, the default first.
func NewEngine(name string, endpoints ...Endpoint) Engine { return Engine{name, endpoints} }

// Name implements catalog.Named.
func (e Engine) Name() string { return e.name }

// Endpoints lists the ways to ask it, the default first.
func (e Engine) Endpoints() []Endpoint { return e.endpoints }

// Endpoint returns the endpoint of a name, and whether there is one.
func (e Engine) Endpoint(name string) (Endpoint, bool) {
	for _, ep := range e.endpoints {
		if ep.Name == name {
			return ep, true
		}
	}
	return Endpoint{}, false
}

// Endpoint is one way to ask an engine.
type Endpoint struct {
	Name  string // the word for --endpoint
	Path  string // {model} in it stands for the model's name
	Task  bench.Task
	Chat  bool // takes messages; a text becomes one
	Can   Abilities
	Codec Codec
}

// Codec speaks the protocol of an endpoint. It holds no state of a request, and may be used by several goroutines.
type Codec interface {
	// Encode turns a request into a call. An error says what the endpoint cannot send.
	Encode(ep Endpoint, r *bench.Request, o *Options) (wire.Call, error)
	// Decoder returns a reader for one response.
	Decoder(ep Endpoint) Decoder
}

// Stateless is a Codec whose decoders hold nothing of a response: one of them may read all those of a goroutine.
type Stateless interface {
	Codec
	Stateless()
}

// Abilities say what an endpoint offers beyond text in and text out.
type Abilities struct {
	IDsIn         bool // takes a prompt as exact token ids
	IDsOnly       bool // takes nothing else
	IDsOut        bool // can return token ids
	IgnoreEOS     bool // can be told to go on after the end token
	MinTokens     bool // can be told a least number of tokens
	Usage         bool // counts tokens in the stream when asked
	ServerTimings bool // tells its own times
	EventUsage    bool // counts tokens in each event when asked
	PerEvent      bool // tells the tokens of each event unasked, by their ids or by a count
	Whole         bool // answers in one piece alone
	Priority      bool // takes a priority
	Format        bool // takes a form of the answer, where the protocol alone promises none
	NoFinish      bool // never tells why an answer ended: the end of the body is the end
}

// Options are the conditions that are equal for all requests of a run.
type Options struct {
	Model          string
	Stream         bool
	Usage          bool // ask for token counts in the stream
	EventUsage     bool // ask for them in each event
	TokenIDs       bool // ask for the ids of the generated tokens
	Priority       *int // of each request; nil = that of the server
	MaxTokensField string
	Sampling       bench.Sampling
	Tools          json.RawMessage // the list of tools, in the form of the OpenAI API; nil = none
	ToolChoice     json.RawMessage // which of them is to be called, in the same form; nil = that of the server
	ResponseFormat json.RawMessage // the form that the answer must have, as response_format of the OpenAI API; nil = none
	ForceLength    bool            // the answer should have exactly the asked length, where the endpoint can
	Extra          json.RawMessage
	Header         []wire.Field // authorisation and the user's own
	KeepText       bool
	Count          func(text string) int // tokens of a text, where the server tells no count; nil = nobody knows

	// Verify decodes every event in both ways, where the dialect has two, and panics when they differ. It is for tests.
	Verify bool
}

// Decoder reads one response.
type Decoder interface {
	// Event reads one stream event into d, which is empty. An error means that it is not what the protocol says.
	Event(ev wire.Event, d *Delta) error
	// Body reads the whole body of a response that is no stream.
	Body(body []byte, d *Delta) error
}

// Headed is a Decoder that also reads the head of a plain answer: counts and times that stand nowhere else.
type Headed interface {
	Decoder
	Head(h http.Header, d *Delta)
}

// Quick is a Decoder with a second way to read the events of the common forms, which allocates nothing.
type Quick interface {
	Decoder
	// Quick reads the data of a stream event into d, which is empty. It reports false when the event is out of the ordinary: then
	// d holds nothing of use, and Event is to read it. Where it reports true, Event would have said the same.
	Quick(data []byte, d *Delta) bool
}

// Unread stands for a text that is not empty and that nobody wants to read.
const Unread = "\u2026"

// Delta is what one event says, in words common to all engines.
type Delta struct {
	// Texts asks for the texts of the outputs. Without it a decoder may put Unread in the place of one that is not empty. It is
	// the only field that is set before decoding.
	Texts bool

	Outputs []Output // to be added to by Output

	// Running totals, as far as the event tells them.
	Prompt     opt.Of[int] // prompt tokens, cached ones included
	Completion opt.Of[int] // generated tokens, reasoning included
	Cached     opt.Of[int]
	Reasoning  opt.Of[int]
	Native     bool // the totals are a count of the engine's own protocol and no usage block

	Results    []int // of an endpoint that embeds or ranks: the input that each vector or score is of
	Dimensions int   // numbers in a vector

	Error string // the server's words when the event is an error
	Done  bool   // the terminator

	Server []ServerTime // the server's own times
}

// ServerTime is a time that the server tells of itself, or what it bills, with its key in the record.
type ServerTime struct {
	Key   string
	Value float64
}

// Time adds one of the server's own times, unless it is not told.
func (d *Delta) Time(key string, v *float64) {
	if v != nil {
		d.Server = append(d.Server, ServerTime{key, *v})
	}
}

// reset empties a delta, keeping its memory. It is written field by field because the compiler makes that twice as fast.
func (d *Delta) reset(texts bool) {
	d.Texts = texts
	d.Outputs, d.Server = d.Outputs[:0], d.Server[:0]
	d.Prompt, d.Completion, d.Cached, d.Reasoning = opt.Of[int]{}, opt.Of[int]{}, opt.Of[int]{}, opt.Of[int]{}
	d.Native, d.Error, d.Done = false, "", false
	d.Results, d.Dimensions = d.Results[:0], 0
}

// Output adds an empty output of a choice and returns it. It is valid until the next one is added.
func (d *Delta) Output(choice int) *Output {
	n := len(d.Outputs)
	if n == cap(d.Outputs) {
		d.Outputs = append(d.Outputs, Output{})
	}
	d.Outputs = d.Outputs[:n+1]
	o := &d.Outputs[n]
	o.Choice, o.IDs = choice, 0
	o.Text, o.Reasoning, o.Finish = "", "", ""
	o.Tools = o.Tools[:0]
	return o
}

// Output is what one event adds to one choice.
type Output struct {
	Choice    int
	Text      string
	Reasoning string
	Tools     []ToolPiece
	IDs       int    // number of token ids
	Finish    string // the raw reason, when the choice has ended
}

// ToolPiece is a fragment of a tool call.
type ToolPiece struct {
	Index     int
	ID        string
	Name      string
	Arguments string
}

// generated tells whether the output carries anything that the model made.
func (o *Output) generated() bool {
	if o.Text != "" || o.Reasoning != "" || o.IDs > 0 {
		return true
	}
	return o.calls()
}

func (o *Output) calls() bool {
	for _, t := range o.Tools {
		if t.Name != "" || t.Arguments != "" {
			return true
		}
	}
	return false
}

// NormalFinish puts an engine's finish reason into the words that all share.
func NormalFinish(raw string) bench.Finish {
	switch raw {
	case "":
		return ""
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "word", "completed":
		return bench.FinishStop
	case "length", "max_tokens", "limit", "max_output_tokens", "incomplete:max_output_tokens", "model_context_window_exceeded":
		return bench.FinishLength
	case "tool_calls", "tool_use", "function_call":
		return bench.FinishTool
	case "abort", "error", "failed":
		return bench.FinishFailed
	default:
		return bench.FinishOther
	}
}
