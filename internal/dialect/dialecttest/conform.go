package dialecttest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Conform runs the suite.
func Conform(t *testing.T, p Protocol) {
	if p.describe(t); t.Failed() {
		return
	}
	for _, c := range p.cases() {
		t.Run(c.name, func(t *testing.T) {
			if err := c.check(&p, transcript(p.contentType(), c.pieces)); err != nil {
				t.Fatalf("%v\n%q", err, c.pieces)
			}
			rapid.Check(t, func(t *rapid.T) {
				if err := c.check(&p, split(t, transcript(p.contentType(), c.pieces))); err != nil {
					t.Fatalf("%v\n%q", err, c.pieces)
				}
			})
		})
	}
	t.Run("any text", func(t *testing.T) { rapid.Check(t, p.anyText) })
	t.Run("cut in mid-stream", p.cut)
	t.Run("no stream", p.plain)
	t.Run("errors before the stream", p.refusals)
	t.Run("not the protocol", p.broken)
	t.Run("request", p.request)
}

// Failures returns the names of the streamed cases that the codec does not pass, each event in a read of its own.
func Failures(p Protocol) (names []string) {
	for _, c := range p.cases() {
		if c.check(&p, transcript(p.contentType(), c.pieces)) != nil {
			names = append(names, c.name)
		}
	}
	return names
}

// kase is a streamed answer and what is to become of it.
type kase struct {
	name string
	stream
	outcome  bench.Outcome
	finish   bench.Finish
	words    string // of the error
	thinking string
	text     string
	calls    []call
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// answer is an ordinary answer of some pieces of text.
func answer(reason string, pieces ...string) []Part {
	out := []Part{{Kind: Open}}
	for _, s := range pieces {
		out = append(out, Part{Kind: Text, Text: s})
	}
	return append(out, Part{Kind: Finish, Reason: reason}, Part{Kind: Usage}, Part{Kind: End})
}

// anyWords hold what is hard to keep whole: characters of two to four bytes, escapes, and what looks like the protocol.
var anyWords = []string{"The sky", " über 🌞\u2028", "\n\ndata: [DONE]\n\n{\"a\": \"\\u00e9\"}"}

var dataBlank = regexp.MustCompile("(?m)^data: ")

const errorWords = "the engine ran out of luck"

// cases are the streams that every protocol can write, and those that this one can.
func (p *Protocol) cases() (out []kase) {
	joined := strings.Join(anyWords, "")
	ordinary := p.stream(answer(p.Stop, anyWords...)...)
	ok := func(name string, s stream, text string) {
		out = append(out, kase{name: name, stream: s, outcome: bench.OK, finish: bench.FinishStop, text: text})
	}
	ok("an answer", ordinary, joined)
	ok("unknown fields", ordinary.with(false, strangeFields), joined)
	late := stream{parts: ordinary.parts, pieces: append(append([]string(nil), ordinary.pieces...), "\n")} // the body ends with a read of its own
	ok("an end of the body after that of the answer", late, joined)
	if !p.Lines {
		ok("comments between events", ordinary.with(true, func(s string) string { return ": keep-alive\n\n" + s + ":\n\n" }), joined)
		ok("lines that end in CR LF", ordinary.with(true, func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }), joined)
		ok("lines that end in CR", ordinary.with(true, func(s string) string { return strings.ReplaceAll(s, "\n", "\r") }), joined)
		ok("no blank after the colon", ordinary.with(false, func(s string) string { return dataBlank.ReplaceAllString(s, "data:") }), joined)
	}
	ok("one token", p.stream(answer(p.Stop, "a")...), "a")
	if !p.OneEach {
		several := answer(p.Stop, "a", "bc", "d")
		several[2].N = 2
		ok("several tokens in an event", p.stream(several...), "abcd")
	}
	if p.has(Strange) {
		parts := answer(p.Stop, "a", "b")
		parts = append([]Part{{Kind: Strange}, parts[0], {Kind: Strange}, parts[1], {Kind: Strange}}, parts[2:]...)
		ok("events of an unknown type", p.stream(parts...), "ab")
	}
	empty := kase{name: "an empty answer", stream: p.stream(answer(p.Stop)...), outcome: bench.Empty, finish: bench.FinishStop}
	if p.EndToken {
		empty.outcome = bench.OK // the end token is on the wire
	}
	out = append(out, empty)
	if p.has(Finish) {
		out = append(out,
			kase{name: "cut off by the length", stream: p.stream(answer(p.Length, "a", "b")...), outcome: bench.OK, finish: bench.FinishLength, text: "ab"},
			kase{name: "an unknown reason of the end", stream: p.stream(answer("brand_new", "a")...), outcome: bench.OK, finish: bench.FinishOther, text: "a"})
	}
	if p.has(Reasoning) {
		parts := answer(p.Stop, "42")
		parts = append([]Part{parts[0], {Kind: Reasoning, Text: "Let me 🌞"}, {Kind: Reasoning, Text: "think."}}, parts[1:]...)
		out = append(out, kase{name: "reasoning", stream: p.stream(parts...), outcome: bench.OK, finish: bench.FinishStop, text: "42", thinking: "Let me 🌞think."})
	}
	if p.has(Call) {
		out = append(out, p.calls())
	}
	if p.has(Error) {
		failed := func(name, text string, parts ...Part) {
			out = append(out, kase{name: name, stream: p.stream(parts...), outcome: bench.StreamError, words: errorWords, text: text})
		}
		bad := Part{Kind: Error, Text: errorWords}
		failed("an error in the stream", "a", Part{Kind: Open}, Part{Kind: Text, Text: "a"}, bad)
		failed("an error in the stream, then its end", "a", Part{Kind: Open}, Part{Kind: Text, Text: "a"}, bad, Part{Kind: End})
		failed("an error in place of a stream", "", bad)
	}
	return out
}

func (p *Protocol) has(k Kind) bool {
	_, none := p.Without[k]
	return !none
}

// calls is an answer of two tool calls.
func (p *Protocol) calls() kase {
	want := []call{{"call_1", "get_weather", `{"city":"Zürich"}`}, {"call_2", "get_time", `{"zone":"UTC"}`}}
	parts := []Part{{Kind: Open}}
	for i, c := range want {
		cut := len(c.Arguments) / 2
		parts = append(parts, Part{Kind: Call, Call: i, ID: c.ID, Name: c.Name, Args: c.Arguments},
			Part{Kind: Arguments, Call: i, Text: c.Arguments[:cut]}, Part{Kind: Arguments, Call: i, Text: c.Arguments[cut:]})
	}
	parts = append(parts, Part{Kind: Finish, Reason: p.Tool}, Part{Kind: Usage}, Part{Kind: End})
	return kase{name: "tool calls", stream: p.stream(parts...), outcome: bench.OK, finish: dialect.NormalFinish(p.Tool), calls: want}
}

// check folds a transcript of the case and holds the record against it.
func (c *kase) check(p *Protocol, tr *wire.Transcript) error {
	r := p.fold(true, tr)
	if r.Outcome != c.outcome || !strings.Contains(r.Error, c.words) {
		return fmt.Errorf("outcome %s (%s), want %s (%s)", r.Outcome, r.Error, c.outcome, c.words)
	}
	if text := c.text; !p.IDsOnly && r.Text != text || r.Thinking != c.thinking {
		return fmt.Errorf("text %q and reasoning %q, want %q and %q", r.Text, r.Thinking, text, c.thinking)
	}
	if p.has(Finish) && r.Finish != c.finish {
		return fmt.Errorf("finish %q, want %q", r.Finish, c.finish)
	}
	if err := p.outputs(c.stream, tr, &r); err != nil {
		return err
	}
	var calls []call
	if len(r.ToolCalls) > 0 {
		if err := json.Unmarshal(r.ToolCalls, &calls); err != nil {
			return err
		}
	}
	for i := range calls {
		if i < len(c.calls) && calls[i].ID == "" {
			calls[i].ID = c.calls[i].ID // some protocols have none
		}
	}
	if fmt.Sprint(calls) != fmt.Sprint(c.calls) {
		return fmt.Errorf("tool calls %v, want %v", calls, c.calls)
	}
	if c.outcome != bench.OK {
		return nil
	}
	if err := p.counts(&r, c.tokens(), p.Tokens); err != nil {
		return err
	}
	end := tr.Ended
	if _, to := c.place(p.Terminator); to >= 0 {
		if end = opt.Some(whole(tr, to)); c.loose {
			end = r.End
		}
	}
	if r.End != end {
		return fmt.Errorf("end %v, want %v", r.End, end)
	}
	return nil
}

// counts holds the counts of a record against those that were written.
func (p *Protocol) counts(r *bench.Record, tokens int, source bench.Source) error {
	if source == bench.FromEstimate {
		tokens = r.OutEvents
	}
	if r.OSLSource != source || source != "" && r.OSL.Or(-1) != tokens {
		return fmt.Errorf("%v output tokens from %q, want %d from %q", r.OSL, r.OSLSource, tokens, source)
	}
	if r.ISLSource != p.Prompt || p.Prompt != "" && r.ISL.Or(-1) != promptTokens {
		return fmt.Errorf("%v prompt tokens from %q, want %d from %q", r.ISL, r.ISLSource, promptTokens, p.Prompt)
	}
	return nil
}

// anyText is any text in any pieces through any split.
func (p *Protocol) anyText(t *rapid.T) {
	pieces := rapid.SliceOfN(rapid.StringMatching(`(?s).{1,8}`), 1, 6).Draw(t, "pieces")
	c := kase{stream: p.stream(answer(p.Stop, pieces...)...), outcome: bench.OK, finish: bench.FinishStop, text: strings.Join(pieces, "")}
	if err := c.check(p, split(t, transcript(p.contentType(), c.pieces))); err != nil {
		t.Fatalf("%v\n%q", err, c.pieces)
	}
}
