// Package bench holds the nouns: what is asked (Spec, Request), what happened (Record), what it means (Summary, Caveat, Verdict).
//
// It has no behaviour beyond reading and writing itself, and no I/O. Durations are time.Duration in memory and integers in ns on disk.
package bench

import (
	"encoding/json"
	"time"
)

// Spec is every condition of a run. It is stored in the manifest; the same Spec and seed send the same bytes.
type Spec struct {
	Label    string            `json:"label,omitempty"`
	Metadata map[string]string `json:"metadata,omitempty"`

	Seed      uint64 `json:"seed"`       // of workload and schedule; never sent to the server
	SeedGiven bool   `json:"seed_given"` // else drawn anew for this run, so that no two runs send the same prompts

	Target   Target   `json:"target"`
	Workload Workload `json:"workload"`
	Sampling Sampling `json:"sampling"`
	Phases   []Phase  `json:"phases"` // in order; warm-up phases come first
	SLO      []Limit  `json:"slo,omitempty"`
	Client   Client   `json:"client"`
	Keep     Keep     `json:"keep"`

	Percentiles  []float64 `json:"percentiles"`    // of every distribution, in (0, 100)
	MaxErrorRate float64   `json:"max_error_rate"` // the run stops when more than this share failed; 1 = never
}

// Target is the server under test and how it is spoken to.
type Target struct {
	URLs     []string `json:"urls"`     // used round robin
	Engine   string   `json:"engine"`   // name of the dialect, or "auto"
	Endpoint string   `json:"endpoint"` // name of the endpoint
	Path     string   `json:"path,omitempty"`
	Task     Task     `json:"task,omitempty"` // what the endpoint is asked for
	Model    string   `json:"model"`
	Headers  []string `json:"headers,omitempty"` // names only: values may be secret
	HasKey   bool     `json:"has_api_key"`
	Auth     string   `json:"auth,omitempty"` // header of the key, where it was chosen

	Stream         bool            `json:"stream"`
	Usage          bool            `json:"usage"`                      // ask for token counts in the stream
	EventUsage     bool            `json:"continuous_usage,omitempty"` // ask for token counts in each event
	TokenIDs       bool            `json:"token_ids,omitempty"`        // ask for the ids of the generated tokens
	Priority       *int            `json:"priority,omitempty"`         // priority of each request, as the server's scheduler takes it
	MaxTokensField string          `json:"max_tokens_field,omitempty"`
	ExtraBody      json.RawMessage `json:"extra_body,omitempty"` // merged into every request body
	Tools          json.RawMessage `json:"tools,omitempty"`      // that the model may call, in the form of the OpenAI API like the next two
	ToolChoice     json.RawMessage `json:"tool_choice,omitempty"`
	ResponseFormat json.RawMessage `json:"response_format,omitempty"` // form that answers must have
}

// Task is what an endpoint is asked for. It decides which metrics there are.
type Task string

// The tasks.
const (
	Generate Task = ""       // text, token by token
	Embed    Task = "embed"  // vectors of texts
	Rerank   Task = "rerank" // documents in the order of their relevance to a query
)

// Workload is what is sent: a data set and the laws of its lengths.
type Workload struct {
	Dataset    string  `json:"dataset"`
	Path       string  `json:"path,omitempty"`
	Prompt     string  `json:"prompt,omitempty"`
	ISL        string  `json:"isl,omitempty"` // law of the input length in tokens
	OSL        string  `json:"osl,omitempty"` // law of the output length in tokens
	RangeRatio float64 `json:"range_ratio,omitempty"`
	Batch      int     `json:"batch,omitempty"` // texts to embed or documents to rank in one request, where the data set makes them

	Mix        string        `json:"mix,omitempty"`            // mixture of pairs of laws, in place of ISL and OSL: "512,128:0.7;4096,512:0.3"
	Lengths    string        `json:"lengths,omitempty"`        // file and columns whose rows are drawn as pairs of lengths: "file.csv:in,out"
	Strict     bool          `json:"strict,omitempty"`         // a bad row refuses the file; else it is skipped and counted
	MultiTurn  bool          `json:"multi_turn,omitempty"`     // every turn of a conversation, with the turns before it
	TimeUnit   string        `json:"time_unit,omitempty"`      // of a trace's timestamps: s or ms, where it is not the format's own
	TickSpread time.Duration `json:"tick_spread_ns,omitempty"` // over which requests of one timestamp are spread
	SystemLen  int           `json:"system_len,omitempty"`     // tokens that all prompts of the data set prefix begin with
	Prefixes   int           `json:"prefixes,omitempty"`       // number of prefixes after them, each shared by as many prompts
	PrefixLen  int           `json:"prefix_len,omitempty"`     // tokens of a prefix
	Images     string        `json:"images,omitempty"`         // law of the number of pictures in a request
	ImageSize  string        `json:"image_size,omitempty"`     // laws of width x height, in pixels
	ImageType  string        `json:"image_type,omitempty"`     // png or jpeg
	Mask       bool          `json:"mask,omitempty"`           // personal data and keys are replaced before anything is sent or stored
	Rows       *Rows         `json:"rows,omitempty"`           // what was found in the file

	// What counts tokens: a file, ORG/NAME or builtin:NAME; "" = the server alone, `none` = nobody.
	Tokenizer    string `json:"tokenizer,omitempty"`
	TokenizerSHA string `json:"tokenizer_sha256,omitempty"` // of its file

	// How prompts of a wanted length were made: `ids`, `text aligned by /tokenize`, `text aligned by prompt_tokens` or an estimate.
	PromptSource string `json:"prompt_source,omitempty"`
	// Requests that were sent before the run to find that out, and the tokens that they cost the server.
	Probes         int `json:"probes,omitempty"`
	ProbeTokensIn  int `json:"probe_input_tokens,omitempty"`
	ProbeTokensOut int `json:"probe_output_tokens,omitempty"`
	// Whether the server was told to produce exactly the asked output length.
	ForceLength bool `json:"force_length"`
}

// Rows is what a data set found in its file.
type Rows struct {
	Read     int           `json:"read"`
	Kept     int           `json:"kept"`
	Skipped  []Skipped     `json:"skipped,omitempty"` // by reason, the most frequent first
	Masked   []Masked      `json:"masked,omitempty"`  // by kind
	Unit     string        `json:"time_unit,omitempty"`
	Unsorted int           `json:"out_of_order,omitempty"` // rows whose timestamp is before that of the row above; they were sorted
	Span     time.Duration `json:"span_ns,omitempty"`      // from the first timestamp to the last
	Notes    []string      `json:"notes,omitempty"`        // what else was decided about the file, a sentence each
}

// Skipped is how many rows of a file were left out for one reason.
type Skipped struct {
	Reason string `json:"reason"`
	Rows   int    `json:"rows"`
	Line   int    `json:"first_line"`
}

// Masked is how many pieces of one kind were replaced in a data set's texts.
type Masked struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
}

// Sampling is how the model picks tokens. Undefined fields are not sent: the server's own defaults then hold, and the report says so.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	IgnoreEOS   bool     `json:"ignore_eos"`
	MinTokens   int      `json:"min_tokens,omitempty"`
	Logprobs    *int     `json:"logprobs,omitempty"`
}

// Phase is one stretch of load.
type Phase struct {
	Name     string    `json:"name"` // Warmup, Measure, or the name of one of several that are measured
	Load     Load      `json:"load"`
	Stop     Stop      `json:"stop"`
	Workload *Workload `json:"workload,omitempty"` // of this phase alone; nil = the run's
}

// Names of phases. Every phase that is no warm-up is measured.
const (
	Warmup  = "warmup"
	Measure = "measure"
)

// Warm tells whether a phase is a warm-up, whose requests are not counted.
func (p Phase) Warm() bool { return p.Name == Warmup }

// Measured are the phases that are measured.
func (s *Spec) Measured() []Phase {
	var out []Phase
	for _, p := range s.Phases {
		if !p.Warm() {
			out = append(out, p)
		}
	}
	return out
}

// Shape is the law of the arrivals.
type Shape string

// The shapes of a load.
const (
	Closed   Shape = "closed"   // the next request when one ends: Concurrency places, or Profile's; after Think, where that is given
	Users    Shape = "users"    // Concurrency users, each with a conversation of its own: it thinks after an answer, and keeps its pace
	Prefill  Shape = "prefill"  // the next request when one has its first token: Concurrency places
	Constant Shape = "constant" // one every 1/rate
	Poisson  Shape = "poisson"  // exponential gaps
	Gamma    Shape = "gamma"    // gamma gaps with shape Burstiness: below 1 burstier, above 1 smoother than Poisson
	Weibull  Shape = "weibull"  // Weibull gaps with shape Burstiness
	Trace    Shape = "trace"    // at timestamps: of the data set, or of a file
	Inf      Shape = "inf"      // everything at once, or as fast as the cap lets it
	Phases   Shape = "phases"   // several measured phases, seen together
)

// Load is when requests are sent.
type Load struct {
	Shape       Shape   `json:"shape"`
	Concurrency int     `json:"concurrency,omitempty"` // of a closed loop; with a profile its highest
	Rate        float64 `json:"rate,omitempty"`        // requests/s of an open loop with a rate; with a profile its highest
	Burstiness  float64 `json:"burstiness,omitempty"`  // shape of the gamma or Weibull law; 1 = Poisson
	Cap         int     `json:"cap,omitempty"`         // at most so many in flight; 0 = no cap

	// How the rate of an open loop or the concurrency of a closed one goes with time (package profile); "" = it stays.
	Profile string `json:"profile,omitempty"`
	Think   string `json:"think,omitempty"` // law of the time from an answer to the next request at its place
	Pace    string `json:"pace,omitempty"`  // law of the least time from one request of a user to its next

	Times   string        `json:"timestamps,omitempty"` // file of a trace's timestamps; "" = the data set has them
	Speedup float64       `json:"speedup,omitempty"`    // of a trace: its time runs so much faster; 0 = as it was
	From    time.Duration `json:"from_ns,omitempty"`    // first moment of a trace that is sent, in its own time
	To      time.Duration `json:"to_ns,omitempty"`      // its end; 0 = all
	Offset  time.Duration `json:"offset_ns,omitempty"`  // from the begin of the phase to From

	CancelRate  float64       `json:"cancel_rate,omitempty"`     // share of the requests that the client gives up
	CancelAfter time.Duration `json:"cancel_after_ns,omitempty"` // after so long from the sending
}

// Open tells whether arrivals do not wait for answers.
func (l Load) Open() bool { return l.Shape != Closed && l.Shape != Users && l.Shape != Prefill }

// Paced tells whether the schedule gives each request a due time of its own.
func (l Load) Paced() bool {
	switch l.Shape {
	case Constant, Poisson, Gamma, Weibull, Trace:
		return true
	}
	return false
}

// Gated tells whether a place is taken again at another moment than the end of the request before, or places come and go.
func (l Load) Gated() bool {
	return !l.Open() && (l.Shape != Closed || l.Think != "" || l.Profile != "")
}

// InFlightLimit is the number of requests that may be in flight at once; 0 = any.
func (l Load) InFlightLimit() int {
	if l.Shape == Closed || l.Shape == Users {
		return l.Concurrency
	}
	return l.Cap
}

// Stop is when a phase ends: after so many requests, or after so long.
type Stop struct {
	Requests int           `json:"requests,omitempty"`
	Duration time.Duration `json:"duration_ns,omitempty"`
	Grace    time.Duration `json:"grace_ns"` // for what is in flight when the duration is over
}

// Limit is one service level objective: a request is good when Metric <= Max.
type Limit struct {
	Metric string        `json:"metric"` // ttft, tpot, itl or e2el
	Max    time.Duration `json:"max_ns"`
}

// Client is how the client works.
type Client struct {
	Timeout        time.Duration `json:"timeout_ns"` // of one request, from sent to its end
	ConnectTimeout time.Duration `json:"connect_timeout_ns"`
	Connection     string        `json:"connection"`              // reuse or new
	HTTP           string        `json:"http"`                    // 1.1 or 2
	Stamps         string        `json:"stamps"`                  // the best grade to use: auto, wire, socket or user
	Engines        int           `json:"engines"`                 // engine threads; 0 = by the load
	Proxy          string        `json:"proxy,omitempty"`         // before the targets, without its credentials
	RequestID      string        `json:"request_id,omitempty"`    // prefix of the X-Request-Id of each request; "" = none is sent
	Isolate        bool          `json:"isolate,omitempty"`       // the engine is a process of its own
	Insecure       bool          `json:"insecure,omitempty"`      // no certificate of the server was checked
	OwnAuthority   bool          `json:"own_authority,omitempty"` // certificates were trusted besides the system's
	Certificate    bool          `json:"client_certificate,omitempty"`
}

// Keep is what is stored beyond the journal's numbers.
type Keep struct {
	Events      bool `json:"events"` // the times of every output event
	Text        bool `json:"text"`   // answers and tool calls
	Transcripts bool `json:"transcripts"`
}

// Request is one request of a workload, in words that any dialect can encode.
type Request struct {
	ID           int
	Phase        string
	Conversation int
	Turn         int
	Class        string // part of a mixture, kind of a trace's row, or the like; "" = there are none

	Messages []Message // a chat; or
	Prompt   string    // a text; or
	Tokens   []int     // exact token ids; or
	Inputs   []string  // texts to embed, or documents to rank
	Query    string    // what the documents are ranked by

	ISL   int             // tokens that the workload wanted in the prompt; 0 = not said
	OSL   int             // tokens that it wanted in the answer; 0 = not said
	Extra json.RawMessage // body fields of this request alone, or nil
}

// Message is one message of a chat.
type Message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string or a list of parts
}
