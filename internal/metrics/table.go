// Package metrics turns records into a summary: every metric with its definition, the caveats and the verdict.
//
// It is pure. Every number can be computed again from manifest and journal.
package metrics

import (
	"github.com/prony-bench/prony/internal/bench"
)

// Better says which direction of a metric is an improvement.
type Better string

// The directions.
const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neither Better = ""
)

// Def is one metric of the table: its name, what it means, and how it is computed. The text is printed beside the number.
type Def struct {
	Key    string // in the summary, with the unit
	Short  string // for a table's row
	Name   string
	Unit   string
	Better Better

	Definition string
	NotDefined string // when there is no value
	Beware     string // what other tools mean by the word

	For Scope // the runs that it is of

	// Sample gives the samples of one request, for a distribution. Which requests are asked is said by Of.
	Sample func(r *bench.Record, x *Context, add func(float64))
	Of     Population
	// perGap gives the samples of one gap, where samples are those of gaps: their order in time is that of the events.
	perGap func(g gap, add func(float64))
	// Value gives the single value of a run.
	Value func(x *Context) (float64, bool)
}

// Population says which measured requests give samples.
type Population uint8

// The populations.
const (
	OfOK      Population = iota // requests that are ok
	OfStreams                   // ok, and their events did not come all at once
	OfSent                      // all that were sent
	OfAll                       // all, also those never sent
)

// Has tells whether a measured request is one of the population.
func (p Population) Has(r *bench.Record) bool {
	switch p {
	case OfOK:
		return r.Outcome == bench.OK
	case OfStreams: // those that came all at once tell of a proxy, not of the engine
		return r.Outcome == bench.OK && !r.Has(bench.AllAtOnce)
	case OfSent:
		return r.Sent.Defined()
	}
	return true
}

// Scope says which runs a metric is of. In others it is not defined.
type Scope uint8

// The scopes.
const (
	Any        Scope = iota
	Generating       // text is generated
	Listing          // texts are embedded, or documents ranked
)

// Has tells whether a run of a task is one of the scope.
func (s Scope) Has(t bench.Task) bool {
	return s == Any || (s == Generating) == (t == bench.Generate)
}

// Table is the list of all metrics, in the order in which they are shown.
func Table() []Def {
	return []Def{
		{Key: "ttft_ms", For: Generating, Short: "TTFT", Name: "time to first token", Unit: "ms", Better: Lower,
			Definition: "first output event - sent. An output event has generated content: text, reasoning, a piece of a tool call, a token id, or a token count that grew; a role-only or empty chunk is none",
			NotDefined: "not streaming, or no output", Beware: "vLLM's bench counts the empty role chunk, guidellm and Hugging Face the first event of any kind",
			Sample: sampleTTFT, Of: OfStreams},
		{Key: "itl_ms", For: Generating, Short: "ITL", Name: "inter-token latency", Unit: "ms", Better: Lower,
			Definition: "each gap between neighbouring output events, pooled over all requests (per choice when there are several)",
			NotDefined: "fewer than 2 output events", Beware: "AIPerf calls this inter-chunk latency; vLLM's bench also counts the gap to the finish chunk",
			Sample: ofGaps(gapLength), perGap: gapLength, Of: OfStreams},
		{Key: "itl_token_ms", For: Generating, Short: "ITL/token", Name: "inter-token latency a token", Unit: "ms", Better: Lower,
			Definition: "each gap divided by the tokens of its later event, that many times",
			NotDefined: "the stream does not tell tokens per event", Sample: ofGaps(gapOfTokens), perGap: gapOfTokens, Of: OfStreams},
		{Key: "tpot_ms", For: Generating, Short: "TPOT", Name: "time per output token", Unit: "ms", Better: Lower,
			Definition: "(last output event - first) / (output tokens - 1), per request",
			NotDefined: "fewer than 2 output tokens", Beware: "AIPerf calls this ITL; guidellm's TPOT contains the first token",
			Sample: sampleTPOT, Of: OfStreams},
		{Key: "e2el_ms", Short: "E2E", Name: "end-to-end latency", Unit: "ms", Better: Lower,
			Definition: "last output event - sent; without streaming, and where nothing is generated, the end of the body - sent",
			NotDefined: "no output", Beware: "some tools end at [DONE], which may come later", Sample: sampleE2EL, Of: OfOK},
		{Key: "ttft_from_due_ms", For: Generating, Short: "TTFT from due", Name: "time to first token from the due time", Unit: "ms", Better: Lower,
			Definition: "first output event - due: what a user waits. The limits of an open loop are judged by it",
			NotDefined: "closed loop, not streaming, no output", Sample: sampleTTFTFromDue, Of: OfStreams},
		{Key: "e2el_from_due_ms", Short: "E2E from due", Name: "end-to-end latency from the due time", Unit: "ms", Better: Lower,
			Definition: "last output event - due", NotDefined: "closed loop, no output", Sample: sampleE2ELFromDue, Of: OfOK},
		{Key: "first_answer_ms", For: Generating, Short: "first answer", Name: "time to first answer token", Unit: "ms", Better: Lower,
			Definition: "first output event that is not reasoning - sent", NotDefined: "no answer, not streaming",
			Sample: sampleFirstAnswer, Of: OfStreams},
		{Key: "ttst_ms", For: Generating, Short: "TTST", Name: "time to second token", Unit: "ms", Better: Lower,
			Definition: "second output event - first", NotDefined: "fewer than 2 output events", Sample: sampleTTST, Of: OfStreams},
		{Key: "stream_end_ms", For: Generating, Short: "stream end", Name: "end of the stream", Unit: "ms", Better: Lower,
			Definition: "terminator or end of the body, whichever is first, - sent", Sample: sampleStreamEnd, Of: OfOK},
		{Key: "decode_ms", For: Generating, Short: "decode", Name: "decode time", Unit: "ms", Better: Lower,
			Definition: "last output event - first", NotDefined: "fewer than 2 output events", Sample: sampleDecode, Of: OfStreams},
		{Key: "tail_tbt_ms", For: Generating, Short: "tail TBT", Name: "tail time between tokens", Unit: "ms", Better: Lower,
			Definition: "mean of the longest 10 % of a request's gaps (Mooncake)", NotDefined: "fewer than 10 gaps", Sample: sampleTailTBT, Of: OfStreams},
		{Key: "ntpot_ms", For: Generating, Short: "NTPOT", Name: "normalised time per output token", Unit: "ms", Better: Lower,
			Definition: "end-to-end latency / output tokens, prefill and queue included", NotDefined: "no output tokens", Sample: sampleNTPOT, Of: OfOK},
		{Key: "per_user_throughput", For: Generating, Short: "per user", Name: "per-user throughput", Unit: "tok/s", Better: Higher,
			Definition: "1 / TPOT of each request: the tokens/s that this user sees", NotDefined: "fewer than 2 output tokens", Sample: sampleUserRate, Of: OfStreams},
		{Key: "e2e_rate", For: Generating, Short: "E2E rate", Name: "end-to-end token rate", Unit: "tok/s", Better: Higher,
			Definition: "output tokens / end-to-end latency of each request", NotDefined: "no output", Sample: sampleE2ERate, Of: OfOK},
		{Key: "prefill_rate", For: Generating, Short: "prefill", Name: "prefill rate", Unit: "tok/s", Better: Higher,
			Definition: "input tokens / TTFT of each request", NotDefined: "the input length is not known", Sample: samplePrefillRate, Of: OfStreams},
		{Key: "fluidity", For: Generating, Short: "fluidity", Name: "fluidity index", Unit: "share", Better: Higher,
			Definition: "share of token deadlines met: the first at the ttft limit, then one every tpot (or itl) limit; slack carries over, a miss restarts the deadlines (Etalon)",
			NotDefined: "no limits given for ttft and for tpot or itl", Sample: sampleFluidity, Of: OfStreams},
		{Key: "queue_ms", Short: "queue", Name: "wait in front of the cap", Unit: "ms", Better: Lower,
			Definition: "slot - due: the wait for a place under the concurrency cap, a property of the load and not the client's fault; 0 without a cap",
			NotDefined: "closed loop", Sample: sampleQueue, Of: OfSent},
		{Key: "lag_ms", Short: "client lag", Name: "the client's own lateness", Unit: "ms", Better: Lower,
			Definition: "handed - max(due, slot), where handed is when the client gave the last byte of the request to the kernel; its way to the transmit stamp is the kernel's", NotDefined: "closed loop, or rate inf", Sample: sampleLag, Of: OfSent},
		{Key: "connect_ms", Short: "connect", Name: "TCP connect", Unit: "ms", Better: Lower,
			Definition: "time to open the connection, for requests that had to; it is before sent and in no latency", NotDefined: "the connection was there", Sample: sampleConnect, Of: OfSent},
		{Key: "tls_ms", Short: "TLS", Name: "TLS handshake", Unit: "ms", Better: Lower,
			Definition: "time of the handshake, for requests that opened a connection", NotDefined: "no TLS, or the connection was there", Sample: sampleTLS, Of: OfSent},
		{Key: "isl", Short: "input tokens", Name: "input length", Unit: "tokens",
			Definition: "prompt tokens as the server counts them, the chat template's included; of all inputs of a request together", NotDefined: "neither ids nor a count tell it", Sample: sampleISL, Of: OfOK},
		{Key: "osl", For: Generating, Short: "output tokens", Name: "output length", Unit: "tokens",
			Definition: "generated tokens, reasoning included. Sources, most trusted first: ids on the wire, a count in the stream, usage, a tokenizer, an estimate (number of output events)",
			NotDefined: "no output", Sample: sampleOSL, Of: OfOK},
		{Key: "inputs", For: Listing, Short: "inputs", Name: "inputs of a request", Unit: "texts",
			Definition: "texts to embed, or documents to rank, in each request", Sample: sampleInputs, Of: OfOK},
		{Key: "dimensions", For: Listing, Short: "dimensions", Name: "dimensions of a vector", Unit: "numbers",
			Definition: "numbers in each vector of an answer; all of one answer have as many", NotDefined: "rerank", Sample: sampleDimensions, Of: OfOK},
		{Key: "cached_tokens", Short: "cached tokens", Name: "cached prompt tokens", Unit: "tokens",
			Definition: "prompt tokens that came from the server's prefix cache", NotDefined: "the server does not tell", Sample: sampleCached, Of: OfOK},
		{Key: "reasoning_tokens", For: Generating, Short: "reasoning tokens", Name: "reasoning tokens", Unit: "tokens",
			Definition: "part of the output tokens, never added to them again", NotDefined: "the server does not tell", Sample: sampleReasoning, Of: OfOK},

		{Key: "request_throughput", Short: "requests", Name: "request throughput", Unit: "req/s", Better: Higher,
			Definition: "ok requests / window", NotDefined: "nothing was sent", Value: requestThroughput},
		{Key: "inputs_throughput", For: Listing, Short: "inputs", Name: "input throughput in texts", Unit: "texts/s", Better: Higher,
			Definition: "texts embedded, or documents ranked, by ok requests / window", NotDefined: "nothing was sent", Value: inputsThroughput},
		{Key: "input_throughput", Short: "input", Name: "input token throughput", Unit: "tok/s", Better: Higher,
			Definition: "input tokens of ok requests / window; what came from the prefix cache is counted too", NotDefined: "the input length is not known", Value: inputThroughput},
		{Key: "output_throughput", For: Generating, Short: "output", Name: "output token throughput", Unit: "tok/s", Better: Higher,
			Definition: "output tokens of ok requests / window", NotDefined: "no count", Value: outputThroughput},
		{Key: "total_throughput", For: Generating, Short: "input + output", Name: "total token throughput", Unit: "tok/s", Better: Higher,
			Definition: "input and output tokens of ok requests / window. Never in one column with the output throughput", NotDefined: "the input length is not known", Value: totalThroughput},
		{Key: "received_throughput", For: Generating, Short: "received", Name: "received token throughput", Unit: "tok/s", Better: Higher,
			Definition: "tokens of all requests, incomplete and failed ones too, / window", Value: receivedThroughput},
		{Key: "peak_output_rate", For: Generating, Short: "peak", Name: "peak output rate", Unit: "tok/s", Better: Higher,
			Definition: "highest count of tokens in one second of the window, seconds from its begin; a stream that does not tell tokens per event has its tokens spread evenly over its events",
			NotDefined: "a window below 1 s, or the times of the events were not kept", Beware: "vLLM's bench counts chunks, which is too low with several tokens a chunk", Value: peakOutputRate},
		{Key: "goodput", Short: "goodput", Name: "goodput", Unit: "req/s", Better: Higher,
			Definition: "ok requests/s that meet every limit. Limits are <=; a tpot or itl limit does not apply to one token; itl is judged by the longest gap; in an open loop ttft and e2el are judged from due",
			NotDefined: "no limits given", Value: goodput},
		{Key: "goodput_ratio", Short: "good share", Name: "goodput ratio", Unit: "share", Better: Higher,
			Definition: "good requests / (sent - incomplete): a failure is a miss", NotDefined: "no limits given", Beware: "some tools leave failures out", Value: goodputRatio},
		{Key: "token_goodput", For: Generating, Short: "good tokens", Name: "token goodput", Unit: "tok/s", Better: Higher,
			Definition: "output tokens of good requests / window", NotDefined: "no limits given", Value: tokenGoodput},
		{Key: "concurrency", Short: "in flight", Name: "concurrency", Unit: "requests",
			Definition: "requests in flight, time-weighted mean over the window", NotDefined: "nothing was sent", Value: meanConcurrency},
		{Key: "success_rate", Short: "success", Name: "success rate", Unit: "share", Better: Higher,
			Definition: "ok / (sent - incomplete)", NotDefined: "nothing was sent", Value: successRate},
	}
}

// Lookup returns the definition of a key.
func Lookup(key string) (Def, bool) {
	for _, d := range Table() {
		if d.Key == key {
			return d, true
		}
	}
	return Def{}, false
}
