// Package dialecttest is the suite that every dialect.Codec passes. The test of a codec describes how its protocol writes an answer
// (Protocol); the suite makes from it the answers that tripped other clients up, cuts their bytes anywhere, and holds the records
// against what was written. A codec's golden streams are held against their manifest by Golden. It is for tests.
package dialecttest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
)

// Protocol describes a protocol.
type Protocol struct {
	Endpoint dialect.Endpoint
	Request  bench.Request // one that it takes
	Lines    bool          // a stream is a line of JSON for each event, and no server-sent events

	// Write writes a part of an answer, in a stream as one event or several with their line ends. It returns "" for the kinds of
	// Without, and for no other.
	Write func(Part) string
	// Without says for each kind of part that the protocol cannot write, or writes as a piece of another, why.
	Without map[Kind]string

	Stop, Length, Tool string // its words for the reasons of an end; without Finish they are not used
	Terminator         Kind   // the part after which nothing more comes; None when the end of the body is the end

	Tokens      bench.Source // where the number of output tokens comes from, in a stream
	PlainTokens bench.Source // and in a plain body
	Prompt      bench.Source // where that of the prompt comes from; "" when the protocol never tells
	PerEvent    bool         // each event tells its tokens
	OneEach     bool         // an event is one token, always
	EndToken    bool         // the finish comes with a token of its own, which has no text
	IDsOnly     bool         // an answer is token ids without a text

	// Missing are events or plain bodies that lack a field, by that field.
	Missing map[string]string
}

// Kind is what a part of an answer is.
type Kind string

// The kinds of part.
const (
	None      Kind = ""
	Open      Kind = "open"      // what comes before the first token and is none: a role, a start
	Text      Kind = "text"      // a piece of the answer
	Reasoning Kind = "reasoning" // a piece of the reasoning
	Call      Kind = "call"      // the start of a tool call; the whole of it in a protocol without Arguments
	Arguments Kind = "arguments" // a piece of the arguments of the tool call before
	Finish    Kind = "finish"    // why the answer ended
	Usage     Kind = "usage"     // the counts
	End       Kind = "end"       // the terminator
	Error     Kind = "error"     // an error inside the stream
	Strange   Kind = "strange"   // an event of a type that does not exist
	Body      Kind = "body"      // a whole answer that is no stream
	Refusal   Kind = "refusal"   // the body of an error status
)

var kinds = []Kind{Open, Text, Reasoning, Call, Arguments, Finish, Usage, End, Error, Strange, Body, Refusal}

// Part is a part of an answer. What is not of its kind is empty.
type Part struct {
	Kind   Kind
	Text   string // of Text, Reasoning, Arguments and Body; the words of Error and Refusal
	Reason string // of Finish and Body
	Status int    // of Refusal

	// Call is the number of a tool call from 0, ID and Name are its own, Args its whole arguments.
	Call           int
	ID, Name, Args string

	N      int    // tokens of this part
	IDs    []int  // their ids
	Tokens int    // tokens so far, this part included
	AllIDs []int  // their ids
	All    string // text so far, this part included; no reasoning
	Prompt int    // tokens of the prompt

	// Pieces of the same kind, and of the same tool call, in a row are a block. Block is its number from 0, New tells its first part.
	// Open, Finish, Usage and End are no blocks: theirs is that of the part before.
	Block int
	New   bool
}

// output tells whether the part is output.
func (p *Part) output() bool {
	switch p.Kind {
	case Text, Reasoning, Call, Arguments:
		return true
	}
	return false
}

// JSON returns a string or a list in JSON.
func JSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Data returns an event of one data line, for Write.
func Data(format string, args ...any) string { return "data: " + fmt.Sprintf(format, args...) + "\n\n" }

const promptTokens = 7

// fill completes the parts of an answer and leaves those out that the protocol has not.
func (p *Protocol) fill(parts ...Part) (out []Part) {
	var last Part
	last.Block = -1
	for _, part := range parts {
		if _, none := p.Without[part.Kind]; none {
			continue
		}
		switch {
		case !part.output():
			if part.N = 0; part.Kind == Finish && p.EndToken {
				part.N = 1
			}
			part.Block = last.Block
		default:
			if part.N == 0 || p.OneEach {
				part.N = 1
			}
			part.Block = last.Block
			block := part.Kind
			if block == Arguments {
				block = Call
			}
			before := last.Kind
			if before == Arguments {
				before = Call
			}
			if part.New = part.Kind != Arguments && (block != before || part.Kind == Call); part.New {
				part.Block++
			}
		}
		part.All, part.AllIDs = last.All, append([]int(nil), last.AllIDs...)
		if part.Kind == Text {
			part.All += part.Text
		}
		for i := range part.N {
			part.IDs = append(part.IDs, 100+last.Tokens+i)
		}
		part.AllIDs = append(part.AllIDs, part.IDs...)
		part.Tokens = last.Tokens + part.N
		part.Prompt = promptTokens
		out = append(out, part)
		last = part
	}
	return out
}

// describe holds a description against itself.
func (p *Protocol) describe(t *testing.T) {
	t.Helper()
	for _, k := range kinds {
		why, none := p.Without[k]
		part := Part{Kind: k, Text: "a", N: 1, IDs: []int{1}, AllIDs: []int{1}, All: "a", Tokens: 1, Prompt: 1, Name: "f", ID: "i", Args: "{}", Reason: p.Stop, Status: 400}
		switch written := p.Write(part); {
		case none && written != "":
			t.Errorf("the protocol has no part %q (%s), and writes %q", k, why, written)
		case none && why == "":
			t.Errorf("it is not said why the protocol has no part %q", k)
		case !none && written == "":
			t.Errorf("the protocol does not write a part %q, and Without does not say why", k)
		case !none && k != Body && k != Refusal && !strings.HasSuffix(written, p.lineEnd()):
			t.Errorf("the part %q does not end in %q: %q", k, p.lineEnd(), written)
		}
	}
	if _, none := p.Without[p.Terminator]; none || p.Terminator != None && p.Terminator != End && p.Terminator != Finish && p.Terminator != Usage {
		t.Errorf("the terminator %q is no part that ends an answer", p.Terminator)
	}
	if _, none := p.Without[Finish]; none != p.Endpoint.Can.NoFinish {
		t.Errorf("the endpoint says NoFinish %v, the description %v", p.Endpoint.Can.NoFinish, none)
	}
	if len(p.Missing) == 0 {
		t.Error("no event lacks a field")
	}
}

// lineEnd is what ends an event.
func (p *Protocol) lineEnd() string {
	if p.Lines {
		return "\n"
	}
	return "\n\n"
}

func (p *Protocol) contentType() string {
	if p.Lines {
		return "application/x-ndjson"
	}
	return "text/event-stream; charset=utf-8"
}
