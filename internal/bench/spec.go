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

	// How prompts of a wanted length were made: `ids`, `text aligned by /tokenize`, `text aligned by prompt_tokens` or an estimate.
	PromptSource string `json:"prompt_source,omitempty"`
	// Requests that were sent before the run to find that out, and the tokens that they cost the server.
	Probes         int `json:"probes,omitempty"`
	ProbeTokensIn  int `json:"probe_input_tokens,omitempty"`
	ProbeTokensOut int `json:"probe_output_tokens,omitempty"`
	// Whether the server was told to produce exactly the asked output length.
	ForceLength bool `json:"force_length"`
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
	Name string `json:"name"` // Warmup or Measure
	Load Load   `json:"load"`
	Stop Stop   `json:"stop"`
}

// Names of phases.
const (
	Warmup  = "warmup"
	Measure = "measure"
)

// Shape is the law of the arrivals.
type Shape string

// The shapes of a load.
const (
	Closed   Shape = "closed"   // the next request when one ends: Concurrency users without think time
	Constant Shape = "constant" // one every 1/rate
	Poisson  Shape = "poisson"  // exponential gaps
	Gamma    Shape = "gamma"    // gamma gaps with shape Burstiness: below 1 burstier, above 1 smoother than Poisson
	Inf      Shape = "inf"      // everything at once, or as fast as the cap lets it
)

// Load is when requests are sent.
type Load struct {
	Shape       Shape   `json:"shape"`
	Concurrency int     `json:"concurrency,omitempty"` // of a closed loop
	Rate        float64 `json:"rate,omitempty"`        // requests/s of an open loop with a rate
	Burstiness  float64 `json:"burstiness,omitempty"`  // shape of the gamma law; 1 = Poisson
	Cap         int     `json:"cap,omitempty"`         // at most so many in flight; 0 = no cap
}

// Open tells whether arrivals do not wait for answers.
func (l Load) Open() bool { return l.Shape != Closed }

// Paced tells whether the schedule gives each request a due time of its own.
func (l Load) Paced() bool { return l.Shape == Constant || l.Shape == Poisson || l.Shape == Gamma }

// InFlightLimit is the number of requests that may be in flight at once; 0 = any.
func (l Load) InFlightLimit() int {
	if l.Shape == Closed {
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
