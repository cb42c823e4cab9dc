package dialect

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// hasty is a codec whose events are texts. Its quick way leaves those that begin with a question mark, and misreads some.
type hasty struct {
	wrong   int // number of the first event that is misread; every later one is too
	refused int // number of the event that the strict way calls malformed, though the quick one reads it
}

func (h hasty) Encode(Endpoint, *bench.Request, *Options) (wire.Call, error) {
	return wire.Call{}, errors.New("not used")
}
func (h hasty) Decoder(Endpoint) Decoder { return &hastyDecoder{hasty: h} }

type hastyDecoder struct {
	hasty
	quick, strict int
}

func (d *hastyDecoder) Quick(data []byte, to *Delta) bool {
	if data[0] == '?' {
		return false
	}
	d.quick++
	d.read(data, to)
	if d.wrong > 0 && d.quick >= d.wrong {
		to.Outputs[0].Text = ""
	}
	return true
}

func (d *hastyDecoder) Event(ev wire.Event, to *Delta) error {
	d.strict++
	if d.refused > 0 && d.quick == d.refused {
		return errors.New("refused")
	}
	d.read(ev.Data, to)
	return nil
}

func (d *hastyDecoder) read(data []byte, to *Delta) {
	o := to.Output(0)
	if o.Text = Unread; to.Texts {
		o.Text = string(data)
	}
	if string(data) == "end" {
		o.Finish = "stop"
	}
}

func (d *hastyDecoder) Body([]byte, *Delta) error { return errors.New("not used") }

func stream(events ...string) *wire.Transcript {
	tr := &wire.Transcript{Status: 200, Header: map[string][]string{"Content-Type": {"text/event-stream"}}, Sent: opt.Some(time.Duration(0))}
	var raw bytes.Buffer
	for i, e := range events {
		fmt.Fprintf(&raw, "data: %s\n\n", e)
		tr.Marks = append(tr.Marks, wire.Mark{End: raw.Len(), At: time.Duration(i) * time.Millisecond})
	}
	tr.Raw = raw.Bytes()
	return tr
}

// The first event and 1 in 64 are checked. After a misreading all is read strictly, and the tally tells of it.
func TestTally(t *testing.T) {
	events := append(strings.Split(strings.Repeat("a ", 199), " ")[:199], "end")
	odd := append([]string{"?", "?"}, events...)
	for _, c := range []struct {
		name   string
		d      hasty
		events []string
		want   Tally
		text   string
	}{
		{"right", hasty{}, events, Tally{Quick: 200, Checked: 4}, strings.Repeat("a", 199) + "end"},
		{"odd ones", hasty{}, odd, Tally{Quick: 200, Checked: 4, Strict: 2}, "??" + strings.Repeat("a", 199) + "end"},
		{"the first is misread", hasty{wrong: 1}, events, Tally{Quick: 1, Checked: 1, Strict: 199, Misread: 1}, strings.Repeat("a", 199) + "end"},
		{"found at the second check", hasty{wrong: 3}, events, Tally{Quick: 65, Checked: 2, Strict: 135, Misread: 1}, strings.Repeat("a", 199-62) + "end"},
		{"too late to be found", hasty{wrong: 194}, events, Tally{Quick: 200, Checked: 4}, strings.Repeat("a", 193)},
	} {
		f := NewFold(Endpoint{Codec: c.d}, &bench.Request{}, &Options{Stream: true, KeepText: true})
		r := f.End(stream(c.events...))
		if r.Outcome != bench.OK || f.Tally() != c.want || r.Text != c.text {
			t.Errorf("%s: %s %q, tally %+v, want %+v; %d bytes of text, want %d", c.name, r.Outcome, r.Error, f.Tally(), c.want, len(r.Text), len(c.text))
		}
	}
}

// What only the quick way can read is malformed.
func TestQuickReadsTooMuch(t *testing.T) {
	f := NewFold(Endpoint{Codec: hasty{refused: 1}}, &bench.Request{}, &Options{Stream: true})
	if r := f.End(stream("a", "end")); r.Outcome != bench.Malformed || r.Error != "refused" || f.Tally().Misread != 1 {
		t.Errorf("%s %q, %+v", r.Outcome, r.Error, f.Tally())
	}
}

// In tests every event is checked, and a misreading is no result at all.
func TestVerify(t *testing.T) {
	verified := func(d hasty, events ...string) (tally Tally, said any) {
		defer func() { said = recover() }()
		f := NewFold(Endpoint{Codec: d}, &bench.Request{}, &Options{Stream: true, Verify: true})
		f.End(stream(events...))
		return f.Tally(), nil
	}
	if tally, said := verified(hasty{}, "a", "b", "?", "end"); said != nil || tally != (Tally{Quick: 3, Checked: 3, Strict: 1}) {
		t.Errorf("%+v, %v", tally, said)
	}
	for _, d := range []hasty{{wrong: 3}, {refused: 3}} {
		if _, said := verified(d, "a", "b", "c", "end"); said == nil || !strings.Contains(fmt.Sprint(said), "misread") {
			t.Errorf("%+v: said %v", d, said)
		}
	}
}

// Texts are read when they are kept or watched, and then only.
func TestUnread(t *testing.T) {
	for _, c := range []struct{ keep, watch, texts bool }{{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true}} {
		f := NewFold(Endpoint{Codec: hasty{}}, &bench.Request{}, &Options{Stream: true, KeepText: c.keep})
		watched := ""
		if c.watch {
			f.Watch = func(s Seen) { watched += s.Delta.Outputs[0].Text }
		}
		r := f.End(stream("a", "end"))
		want := map[bool]string{true: "aend"}
		if r.OutEvents != 2 || f.delta.Texts != c.texts || r.Text != want[c.keep] || watched != want[c.watch] {
			t.Errorf("%+v: %d events, texts %v, kept %q, watched %q", c, r.OutEvents, f.delta.Texts, r.Text, watched)
		}
	}
}

// Two readings are the same only when they agree in every field.
func TestSame(t *testing.T) {
	full := func() Delta {
		return Delta{Texts: true, Outputs: []Output{{Choice: 1, Text: "t", Reasoning: "r", Tools: []ToolPiece{{1, "i", "n", "a"}}, IDs: 2, Finish: "stop"}},
			Prompt: opt.Some(1), Completion: opt.Some(2), Cached: opt.Some(3), Reasoning: opt.Some(4), Native: true, Error: "e", Done: true, Server: []ServerTime{{"k", 1}}}
	}
	for i, change := range []func(*Delta){
		func(d *Delta) { d.Outputs = nil }, func(d *Delta) { d.Outputs[0].Choice++ }, func(d *Delta) { d.Outputs[0].Text = "" },
		func(d *Delta) { d.Outputs[0].Text = "u" }, func(d *Delta) { d.Outputs[0].Reasoning = "" }, func(d *Delta) { d.Outputs[0].Reasoning = "s" },
		func(d *Delta) { d.Outputs[0].Tools = nil }, func(d *Delta) { d.Outputs[0].Tools[0].Index++ }, func(d *Delta) { d.Outputs[0].Tools[0].ID = "" },
		func(d *Delta) { d.Outputs[0].Tools[0].Name = "" }, func(d *Delta) { d.Outputs[0].Tools[0].Arguments = "" }, func(d *Delta) { d.Outputs[0].IDs++ },
		func(d *Delta) { d.Outputs[0].Finish = "" }, func(d *Delta) { d.Prompt = opt.Of[int]{} }, func(d *Delta) { d.Completion = opt.Some(0) },
		func(d *Delta) { d.Cached = opt.Some(0) }, func(d *Delta) { d.Reasoning = opt.Some(0) }, func(d *Delta) { d.Native = false },
		func(d *Delta) { d.Error = "" }, func(d *Delta) { d.Done = false }, func(d *Delta) { d.Server[0].Value++ }, func(d *Delta) { d.Server = nil },
	} {
		a, b := full(), full()
		if !a.same(&b) {
			t.Fatal("equal ones differ")
		}
		if change(&b); a.same(&b) {
			t.Errorf("change %d is not seen", i)
		}
	}
	a, b := full(), full()
	a.Texts, a.Outputs[0].Text, a.Outputs[0].Tools[0].Name = false, Unread, Unread
	if !a.same(&b) {
		t.Error("a text that is not wanted makes a difference")
	}
	if b.Outputs[0].Text = ""; a.same(&b) {
		t.Error("an empty text is no text")
	}
}

// Many choices, in any order, are found again, and tell the same in few and in many.
func TestChoices(t *testing.T) {
	f := &Fold{}
	for round := range 3 {
		for i := range 3 * fewChoices {
			index := (i * 7) % 31 * 1000
			c := f.choice(index)
			if c.index != index || round > 0 && c.finish != fmt.Sprint(index) {
				t.Fatalf("round %d: choice %d is %+v", round, index, *c)
			}
			c.finish = fmt.Sprint(index)
		}
	}
	if len(f.choices) != 3*fewChoices {
		t.Errorf("%d choices, want %d", len(f.choices), 3*fewChoices)
	}
}

// Where no finish reason is ever told, a stream that ends inside an event has been cut off, and one that ends behind an event has not.
func TestNoFinish(t *testing.T) {
	for _, c := range []struct {
		tail string
		want bench.Outcome
	}{{"", bench.OK}, {"data: c\n\n", bench.OK}, {"data: c", bench.OK}, {"da", bench.TruncatedStream}} {
		tr := stream("a", "b")
		tr.Raw = append(tr.Raw, c.tail...)
		tr.Marks = append(tr.Marks, wire.Mark{End: len(tr.Raw), At: time.Second})
		f := NewFold(Endpoint{Codec: hasty{}, Can: Abilities{NoFinish: true}}, &bench.Request{}, &Options{Stream: true})
		if r := f.End(tr); r.Outcome != c.want {
			t.Errorf("%q: %s %q", c.tail, r.Outcome, r.Error)
		}
	}
}

// What is no number of tokens makes a record malformed, and a time that is no number is not kept: a journal could hold neither.
func TestNoCounts(t *testing.T) {
	for name, d := range map[string]Delta{"generated": {Completion: opt.Some(1 << 50)}, "prompt": {Prompt: opt.Some(1 << 50)},
		"cached": {Cached: opt.Some(1 << 50)}, "reasoning": {Reasoning: opt.Some(1 << 50)}} {
		f := NewFold(Endpoint{Codec: hasty{}}, &bench.Request{}, &Options{Stream: true})
		if f.counts(&d); f.fault == nil || !strings.Contains(f.fault.Error(), name) {
			t.Errorf("%s: %v", name, f.fault)
		}
	}
	f := NewFold(Endpoint{Codec: hasty{}}, &bench.Request{}, &Options{Stream: true})
	if f.counts(&Delta{Server: []ServerTime{{"server_x_ms", math.Inf(1)}, {"server_y_ms", 2}}}); len(f.server) != 1 {
		t.Errorf("%v", f.server)
	}
	tr := &wire.Transcript{Status: 429, Header: map[string][]string{"Retry-After": {"inf"}}}
	if r := NewFold(Endpoint{Codec: hasty{}}, &bench.Request{}, &Options{Stream: true}).End(tr); r.Outcome != bench.Throttled || r.RetryAfter != 0 {
		t.Errorf("%s, retry after %v", r.Outcome, r.RetryAfter)
	}
}
