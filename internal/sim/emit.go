package sim

import "strconv"

// The emitters write the keys of vLLM 0.32 in its order. They append to buffers that are used again, since one thread may have to
// write 100,000 chunks a second.

// fingerprint is the system_fingerprint: it names this program, so that nobody takes its figures for those of an engine.
const fingerprint = "prony-sim-0.32"

// emitter writes the events of one generation.
type emitter struct {
	*generation
	prefix []byte // of every chunk, up to the choices
	sent   int    // tokens written so far
}

func newEmitter(g *generation) *emitter {
	e := &emitter{generation: g}
	object := "text_completion"
	if g.chat {
		object = "chat.completion.chunk"
	}
	b := append([]byte(nil), `data: {"id":`...)
	b = appendQuoted(b, g.id)
	b = append(b, `,"object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, g.created, 10)
	b = append(b, `,"model":`...)
	b = appendQuoted(b, g.model)
	e.prefix = append(b, `,"choices":[`...)
	return e
}

// role appends the first chunk of a chat, which has no token.
func (e *emitter) role(b []byte) []byte {
	b = append(b, e.prefix...)
	b = append(b, `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	b = e.running(b)
	b = append(b, `,"prompt_token_ids":`...)
	b = e.promptIDs(b, e.tokenIDs)
	return append(b, ",\"prompt_text\":null}\n\n"...)
}

// chunk appends the chunk with the next n tokens.
func (e *emitter) chunk(b []byte, n int) []byte {
	first, from := e.sent == 0, e.sent
	e.sent += n
	last := e.sent == e.output
	b = append(b, e.prefix...)
	if e.chat {
		b = append(b, `{"index":0,"delta":{"content":"`...)
	} else {
		b = append(b, `{"index":0,"text":"`...)
	}
	b = e.words(b, from, e.sent)
	if e.chat {
		b = append(b, `"},"logprobs":null,"finish_reason":`...)
	} else {
		b = append(b, `","logprobs":null,"finish_reason":`...)
	}
	if last {
		b = append(b, '"')
		b = append(b, e.finish...)
		b = append(b, '"')
	} else {
		b = append(b, "null"...)
	}
	if last || !e.chat {
		b = append(b, `,"stop_reason":null`...)
	}
	if !e.chat {
		b = append(b, `,"prompt_token_ids":`...)
		b = e.promptIDs(b, e.tokenIDs && first)
	}
	b = append(b, `,"token_ids":`...)
	b = e.ids(b, from, e.sent)
	b = append(b, "}]"...)
	b = e.running(b)
	if last && !e.usage {
		b = append(b, `,"system_fingerprint":"`+fingerprint+`"`...)
	}
	return append(b, "}\n\n"...)
}

// running appends the usage so far, where every chunk is to have it.
func (e *emitter) running(b []byte) []byte {
	if !e.continuous || e.noUsage {
		return b
	}
	b = append(b, `,"usage":`...)
	b = e.counts(b, e.sent)
	if e.chat {
		b = append(b, `,"completion_tokens_details":null`...)
	}
	return append(b, '}')
}

// counts appends a usage object without its closing brace.
func (e *emitter) counts(b []byte, output int) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = strconv.AppendInt(b, int64(len(e.prompt)), 10)
	b = append(b, `,"total_tokens":`...)
	b = strconv.AppendInt(b, int64(len(e.prompt)+output), 10)
	b = append(b, `,"completion_tokens":`...)
	return strconv.AppendInt(b, int64(output), 10)
}

// usageChunk appends the last chunk of a stream that was asked for usage.
func (e *emitter) usageChunk(b []byte) []byte {
	b = append(b, e.prefix...)
	b = append(b, `],"usage":`...)
	b = e.counts(b, e.sent)
	if e.cached > 0 {
		b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
		b = strconv.AppendInt(b, int64(e.cached), 10)
		b = append(b, '}')
	}
	return append(b, "},\"system_fingerprint\":\""+fingerprint+"\"}\n\n"...)
}

const doneEvent = "data: [DONE]\n\n"

// whole appends the body of an answer that is not streamed.
func (e *emitter) whole(b []byte) []byte {
	e.sent = e.output
	b = append(b, `{"id":`...)
	b = appendQuoted(b, e.id)
	if e.chat {
		b = append(b, `,"object":"chat.completion","created":`...)
	} else {
		b = append(b, `,"object":"text_completion","created":`...)
	}
	b = strconv.AppendInt(b, e.created, 10)
	b = append(b, `,"model":`...)
	b = appendQuoted(b, e.model)
	if e.chat {
		b = append(b, `,"choices":[{"index":0,"message":{"role":"assistant","content":"`...)
		b = e.words(b, 0, e.output)
		b = append(b, `","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null}`...)
	} else {
		b = append(b, `,"choices":[{"index":0,"text":"`...)
		b = e.words(b, 0, e.output)
		b = append(b, '"')
	}
	b = append(b, `,"logprobs":null,"finish_reason":"`...)
	b = append(b, e.finish...)
	b = append(b, `","stop_reason":null,"token_ids":`...)
	b = e.ids(b, 0, e.output)
	if !e.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...)
		b = e.promptIDs(b, e.tokenIDs)
	}
	b = append(b, `,"routed_experts":null}],"service_tier":null,"system_fingerprint":"`+fingerprint+`"`...)
	if !e.noUsage {
		b = append(b, `,"usage":`...)
		b = e.counts(b, e.output)
		if e.cached > 0 {
			b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
			b = strconv.AppendInt(b, int64(e.cached), 10)
			b = append(b, `,"created_cache_tokens":null,"multimodal_tokens":null}`...)
		} else {
			b = append(b, `,"prompt_tokens_details":null`...)
		}
		b = append(b, `,"completion_tokens_details":null}`...)
	}
	if e.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...)
		b = e.promptIDs(b, e.tokenIDs)
		b = append(b, `,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
}

// token is the i-th token of the answer: words, and the end token where the model ends by itself.
func (g *generation) token(i int) int32 {
	if i == g.output-1 && g.finish == "stop" {
		return endToken
	}
	return g.text.token(i)
}

// words appends the text of the tokens from and up to to; it needs no escapes.
func (e *emitter) words(b []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		b = appendToken(b, e.token(i))
	}
	return b
}

func (e *emitter) ids(b []byte, from, to int) []byte {
	if !e.tokenIDs {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(e.token(i)), 10)
	}
	return append(b, ']')
}

func (e *emitter) promptIDs(b []byte, show bool) []byte {
	if !show {
		return append(b, "null"...)
	}
	return appendIDs(b, e.prompt)
}

func appendIDs(b []byte, ids []int32) []byte {
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return append(b, ']')
}
