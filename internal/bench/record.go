package bench

import (
	"encoding/json"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Record is what happened to one request: a line of the journal. Moments are offsets from the run's epoch.
type Record struct {
	ID           int     `json:"id"`
	Phase        string  `json:"phase"`
	Target       int     `json:"target"`
	Conversation int     `json:"conversation"`
	Turn         int     `json:"turn"`
	Class        string  `json:"class,omitempty"` // of the request, where the data set has classes
	Outcome      Outcome `json:"outcome"`
	Status       int     `json:"status,omitempty"` // of HTTP
	Error        string  `json:"error,omitempty"`
	RetryAfter   float64 `json:"retry_after_s,omitempty"`
	Flags        []Flag  `json:"flags,omitempty"`

	Due         opt.Of[time.Duration] `json:"due_ns,omitzero"`          // the schedule wanted it sent (open loop)
	Slot        opt.Of[time.Duration] `json:"slot_ns,omitzero"`         // a place under the cap was free
	Sent        opt.Of[time.Duration] `json:"sent_ns,omitzero"`         // last byte handed to the kernel: its transmit stamp where there is one
	Handed      opt.Of[time.Duration] `json:"handed_ns,omitzero"`       // the same by the client's clock, when Sent is a transmit stamp
	Headers     opt.Of[time.Duration] `json:"headers_ns,omitzero"`      // response head complete
	First       opt.Of[time.Duration] `json:"first_ns,omitzero"`        // first output event
	Second      opt.Of[time.Duration] `json:"second_ns,omitzero"`       // second output event
	FirstAnswer opt.Of[time.Duration] `json:"first_answer_ns,omitzero"` // first output event that is not reasoning
	Last        opt.Of[time.Duration] `json:"last_ns,omitzero"`         // last output event; the end of the body when not streaming
	End         opt.Of[time.Duration] `json:"end_ns,omitzero"`          // terminator or end of the body, whichever is first; or the failure

	Events      []time.Duration `json:"event_ns,omitempty"`     // output events, as offsets from Sent
	EventTokens []int           `json:"event_tokens,omitempty"` // tokens of each, when the stream tells
	EventChoice []int           `json:"event_choice,omitempty"` // choice of each, when there are several

	ISL       opt.Of[int] `json:"isl,omitzero"`
	ISLAsked  int         `json:"isl_asked,omitempty"`
	ISLSource Source      `json:"isl_source,omitempty"`
	OSL       opt.Of[int] `json:"osl,omitzero"`
	OSLAsked  int         `json:"osl_asked,omitempty"`
	OSLSource Source      `json:"osl_source,omitempty"`
	Cached    opt.Of[int] `json:"cached_tokens,omitzero"`
	Reasoning opt.Of[int] `json:"reasoning_tokens,omitzero"` // part of OSL
	Finish    Finish      `json:"finish,omitempty"`
	Choices   int         `json:"choices,omitempty"`       // when more than one
	OutEvents int         `json:"n_events,omitempty"`      // number of output events, also when their times are not kept
	Merged    int         `json:"merged_events,omitempty"` // of them, those that shared a read with another

	Inputs     int `json:"inputs,omitempty"`     // texts to embed or documents to rank that were sent
	Dimensions int `json:"dimensions,omitempty"` // numbers in a vector that came

	Reused  bool                  `json:"connection_reused"`
	Connect opt.Of[time.Duration] `json:"connect_ns,omitzero"`
	TLS     opt.Of[time.Duration] `json:"tls_ns,omitzero"`
	Bytes   int                   `json:"bytes"`
	Stamp   wire.Stamp            `json:"stamp,omitempty"`
	Server  map[string]float64    `json:"server,omitempty"` // what the server says of its own times and bill, e.g. server_prefill_ms

	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"reasoning_text,omitempty"`
	ToolCalls json.RawMessage `json:"tool_calls,omitempty"`
}

// Has tells whether a flag is raised.
func (r *Record) Has(f Flag) bool {
	for _, g := range r.Flags {
		if g == f {
			return true
		}
	}
	return false
}

// Formed tells whether there is one answer that can be held against a form: the call of a tool is none.
func (r *Record) Formed() bool {
	return r.Outcome == OK && r.Choices <= 1 && r.Finish != FinishTool
}

// Raise raises a flag once.
func (r *Record) Raise(f Flag) {
	if !r.Has(f) {
		r.Flags = append(r.Flags, f)
	}
}

// Outcome is how a request ended. The list is closed.
type Outcome string

// The outcomes.
const (
	OK              Outcome = "ok"
	Empty           Outcome = "empty"            // complete, without output
	NotStreamed     Outcome = "not_streamed"     // a stream was asked, a plain body came
	Malformed       Outcome = "malformed"        // not what the protocol says
	Rejected        Outcome = "rejected"         // 4xx, or a redirect
	Throttled       Outcome = "throttled"        // 429
	ServerError     Outcome = "server_error"     // 5xx
	StreamError     Outcome = "stream_error"     // an error inside a 200
	TruncatedStream Outcome = "truncated_stream" // ended cleanly, but not complete
	Timeout         Outcome = "timeout"
	DNS             Outcome = "dns"
	Refused         Outcome = "refused"
	Reset           Outcome = "reset" // the connection broke
	TLSFailed       Outcome = "tls"
	Cancelled       Outcome = "cancelled"  // by the workload's wish
	Incomplete      Outcome = "incomplete" // cut by the end of the run
	Dropped         Outcome = "dropped"    // could never be sent
)

// Outcomes lists them all, in the order in which reports show them.
var Outcomes = []Outcome{OK, Empty, NotStreamed, Malformed, Rejected, Throttled, ServerError, StreamError, TruncatedStream,
	Timeout, DNS, Refused, Reset, TLSFailed, Cancelled, Incomplete, Dropped}

// Excluded tells of outcomes that are no failure but give no sample either.
func (o Outcome) Excluded() bool { return o == Empty || o == NotStreamed }

// Failed tells of outcomes that count as a failure of the system under test.
func (o Outcome) Failed() bool {
	switch o {
	case Malformed, Rejected, Throttled, ServerError, StreamError, TruncatedStream, Timeout, DNS, Refused, Reset, TLSFailed:
		return true
	}
	return false
}

// Flag is something worth knowing about a request.
type Flag string

// The flags.
const (
	LengthLimited          Flag = "length_limited"
	AllAtOnce              Flag = "all_at_once" // >= 4 output events, all in one read or within 1 ms
	Clumped                Flag = "clumped"     // >= 8 gaps, half or more inside the previous event's read
	MultiTokenChunks       Flag = "multi_token_chunks"
	TokenCountEstimated    Flag = "token_count_estimated"
	OutputLonger           Flag = "output_longer_than_asked"
	OutputShorter          Flag = "output_shorter_than_asked" // only when the length was forced
	PromptLengthDiffers    Flag = "prompt_length_differs"
	PromptTruncated        Flag = "prompt_truncated" // the server's isl below 80 % of the asked
	PrefixCacheHit         Flag = "prefix_cache_hit"
	NoAnswer               Flag = "no_answer" // reasoning only
	NGreater1              Flag = "n_greater_1"
	FewerTokensThanEvents  Flag = "fewer_tokens_than_events" // the server's count is below the number of output events
	InvalidJSON            Flag = "invalid_json"             // not of the form that was asked for, and not cut off
	CutOffJSON             Flag = "json_cut_off"             // not of the form, since the output limit was reached
	RetriedStaleConnection Flag = "retried_stale_connection"
	FlagNotStreamed        Flag = "not_streamed"
)

// Source is where a token count comes from, most trusted first.
type Source string

// The sources of a count.
const (
	FromIDs       Source = "ids"       // token ids on the wire
	FromCount     Source = "count"     // a count in the stream or the protocol
	FromUsage     Source = "usage"     // the usage block
	FromTokenizer Source = "tokenizer" // the whole text, counted here
	FromEstimate  Source = "estimate"  // number of output events
)

// Finish is why the model stopped, normalised.
type Finish string

// The finish reasons.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
	FinishTool   Finish = "tool"
	FinishFailed Finish = "failed"
	FinishOther  Finish = "other"
)
