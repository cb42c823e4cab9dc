package sim

import "strconv"

// emitter is the speaker of vLLM's chat and completions. It writes the keys of vLLM 0.32 in its order, and by hand, since one thread
// may have to write 100,000 chunks a second to calibrate a client.
type emitter struct {
	*generation
	prefix []byte // of every chunk, up to the choices
	sent   int    // tokens written so far
}

// fingerprint is the default system_fingerprint: it names this program, so that nobody takes its figures for those of an engine.
const fingerprint = "prony-sim-0.32"

func newEmitter(g *generation) speaker {
	if !g.chat {
		g.think = 0 // a completion has no reasoning
	}
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

func (e *emitter) early(*event) {}

func (e *emitter) tokens(ev *event, from, to int) {
	if from == 0 && e.chat {
		ev.body = e.role(ev.body)
		ev.cut()
	}
	if from < e.think && e.think < to { // reasoning and answer do not share a chunk
		ev.body = e.chunk(ev.body, e.think-from)
		ev.cut()
		from = e.think
	}
	ev.body = e.chunk(ev.body, to-from)
	ev.cut()
}

func (e *emitter) tail(ev *event) {
	if e.usage && !e.noUsage {
		ev.body = e.usageChunk(ev.body)
		ev.cut()
	}
	ev.body = append(ev.body, doneEvent...)
	ev.cut()
}

func (e *emitter) broken(ev *event) {
	ev.body = append(ev.body, errorEvent...)
	ev.cut()
	ev.body = append(ev.body, doneEvent...)
	ev.cut()
}

func (e *emitter) fields(b []byte) []byte { return b }

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
	switch {
	case !e.chat:
		b = append(b, `{"index":0,"text":"`...)
	case from < e.think:
		b = append(b, `{"index":0,"delta":{"reasoning":"`...)
	case e.think > 0 && n == 1 && last && e.ends(): // a parser of reasoning has nothing to say to the end token
		b = append(b, `{"index":0,"delta":{`...)
	default:
		b = append(b, `{"index":0,"delta":{"content":"`...)
	}
	b = e.words(b, from, e.sent)
	switch {
	case e.chat && b[len(b)-1] == '{':
		b = append(b, `},"logprobs":null,"finish_reason":`...)
	case e.chat:
		b = append(b, `"},"logprobs":null,"finish_reason":`...)
	default:
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
		b = append(b, `,"system_fingerprint":"`...)
		b = append(b, e.print...)
		b = append(b, '"')
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
	if e.think > 0 {
		b = append(b, `,"completion_tokens_details":{"reasoning_tokens":`...)
		b = strconv.AppendInt(b, int64(min(e.think, e.sent)), 10)
		b = append(b, '}')
	}
	b = append(b, `},"system_fingerprint":"`...)
	b = append(b, e.print...)
	return append(b, "\"}\n\n"...)
}

// errorEvent is how vLLM tells of an error once a stream has begun.
const errorEvent = `data: {"error": {"message": "Internal server error", "type": "InternalServerError", "param": null, "code": 500}}` +
	"\n\n"

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
		b = e.words(b, e.think, e.output)
		b = append(b, `","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":`...)
		if e.think > 0 {
			b = append(b, '"')
			b = e.words(b, 0, e.think)
			b = append(b, `"}`...)
		} else {
			b = append(b, "null}"...)
		}
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
	b = append(b, `,"routed_experts":null}],"service_tier":null,"system_fingerprint":"`...)
	b = append(b, e.print...)
	b = append(b, '"')
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
		if e.think > 0 {
			b = append(b, `,"completion_tokens_details":{"reasoning_tokens":`...)
			b = strconv.AppendInt(b, int64(e.think), 10)
			b = append(b, "}}"...)
		} else {
			b = append(b, `,"completion_tokens_details":null}`...)
		}
	}
	if e.chat {
		b = append(b, `,"prompt_logprobs":null,"prompt_token_ids":`...)
		b = e.promptIDs(b, e.tokenIDs)
		b = append(b, `,"prompt_text":null`...)
	}
	return append(b, `,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}`...)
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
