package store

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// appendRecord appends the JSON of a record, byte for byte that of encoding/json, which takes three times as long: while a run goes on,
// that time is taken from the machine of the client. It fails where encoding/json does: on tool calls that are no JSON.
func appendRecord(out []byte, r *bench.Record) ([]byte, error) {
	l := line{out: append(out, '{')}
	l.int("id", r.ID)
	l.text("phase", r.Phase)
	l.int("target", r.Target)
	l.int("conversation", r.Conversation)
	l.int("turn", r.Turn)
	l.some("class", r.Class)
	l.text("outcome", string(r.Outcome))
	l.count("status", r.Status)
	l.some("error", r.Error)
	if r.RetryAfter != 0 {
		l.any("retry_after_s", r.RetryAfter)
	}
	if len(r.Flags) > 0 {
		l.key("flags")
		open := byte('[')
		for _, f := range r.Flags {
			l.out = append(l.out, open)
			l.string(string(f))
			open = ','
		}
		l.out = append(l.out, ']')
	}
	l.moment("due_ns", r.Due)
	l.moment("slot_ns", r.Slot)
	l.moment("sent_ns", r.Sent)
	l.moment("handed_ns", r.Handed)
	l.moment("headers_ns", r.Headers)
	l.moment("first_ns", r.First)
	l.moment("second_ns", r.Second)
	l.moment("first_answer_ns", r.FirstAnswer)
	l.moment("last_ns", r.Last)
	l.moment("end_ns", r.End)
	list(&l, "event_ns", r.Events)
	list(&l, "event_tokens", r.EventTokens)
	list(&l, "event_choice", r.EventChoice)
	l.known("isl", r.ISL)
	l.count("isl_asked", r.ISLAsked)
	l.some("isl_source", string(r.ISLSource))
	l.known("osl", r.OSL)
	l.count("osl_asked", r.OSLAsked)
	l.some("osl_source", string(r.OSLSource))
	l.known("cached_tokens", r.Cached)
	l.known("reasoning_tokens", r.Reasoning)
	l.some("finish", string(r.Finish))
	l.count("choices", r.Choices)
	l.count("n_events", r.OutEvents)
	l.count("merged_events", r.Merged)
	l.count("inputs", r.Inputs)
	l.count("dimensions", r.Dimensions)
	l.key("connection_reused")
	l.out = strconv.AppendBool(l.out, r.Reused)
	l.moment("connect_ns", r.Connect)
	l.moment("tls_ns", r.TLS)
	l.int("bytes", r.Bytes)
	l.some("stamp", string(r.Stamp))
	if len(r.Server) > 0 {
		l.any("server", r.Server)
	}
	l.some("text", r.Text)
	l.some("reasoning_text", r.Thinking)
	if len(r.ToolCalls) > 0 {
		l.any("tool_calls", r.ToolCalls)
	}
	return append(l.out, '}'), l.err
}

// line is an object that is being written.
type line struct {
	out []byte
	err error
}

func (l *line) key(key string) {
	if l.out[len(l.out)-1] != '{' {
		l.out = append(l.out, ',')
	}
	l.out = append(append(append(l.out, '"'), key...), '"', ':')
}

func (l *line) int(key string, n int) {
	l.key(key)
	l.out = strconv.AppendInt(l.out, int64(n), 10)
}

// count writes a number that is left out when it is 0.
func (l *line) count(key string, n int) {
	if n != 0 {
		l.int(key, n)
	}
}

func (l *line) known(key string, n opt.Of[int]) {
	if v, ok := n.Get(); ok {
		l.int(key, v)
	}
}

func (l *line) moment(key string, at opt.Of[time.Duration]) {
	if v, ok := at.Get(); ok {
		l.key(key)
		l.out = strconv.AppendInt(l.out, int64(v), 10)
	}
}

func list[T ~int | ~int64](l *line, key string, all []T) {
	if len(all) == 0 {
		return
	}
	l.key(key)
	l.out = strconv.AppendInt(append(l.out, '['), int64(all[0]), 10)
	for _, n := range all[1:] {
		l.out = strconv.AppendInt(append(l.out, ','), int64(n), 10)
	}
	l.out = append(l.out, ']')
}

func (l *line) text(key, s string) {
	l.key(key)
	l.string(s)
}

// some writes a text that is left out when it is empty.
func (l *line) some(key, s string) {
	if s != "" {
		l.text(key, s)
	}
}

// string writes a text. One that needs no escape is written as it is.
func (l *line) string(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			l.value(s)
			return
		}
	}
	l.out = append(append(append(l.out, '"'), s...), '"')
}

func (l *line) any(key string, v any) {
	l.key(key)
	l.value(v)
}

func (l *line) value(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		l.err = err
	}
	l.out = append(l.out, b...)
}
