package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/casetest"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// says writes down what a delta says. Where texts are not asked for, one text is as good as another that is not empty.
func says(d *dialect.Delta) string {
	text := func(s string) string {
		if !d.Texts && s != "" {
			return dialect.Unread
		}
		return s
	}
	out := fmt.Sprintf("prompt %v completion %v cached %v reasoning %v native %v error %q done %v server %v", d.Prompt, d.Completion, d.Cached, d.Reasoning,
		d.Native, d.Error, d.Done, d.Server)
	for _, o := range d.Outputs {
		out += fmt.Sprintf("\nchoice %d: %q, reasoning %q, %d ids, finish %q", o.Choice, text(o.Text), text(o.Reasoning), o.IDs, o.Finish)
		for _, t := range o.Tools {
			out += fmt.Sprintf(", tool %d %q %q %q", t.Index, text(t.ID), text(t.Name), text(t.Arguments))
		}
	}
	return out
}

// pair reads the same events quickly and strictly.
type pair struct {
	quick, strict *decoder
	q, s          dialect.Delta
}

func newPair() *pair {
	pool := &strictPool{}
	return &pair{quick: &decoder{strict: pool}, strict: &decoder{strict: pool}}
}

// read reports whether the quick decoder took the event, and fails when it then says something else than the strict one.
func (p *pair) read(t interface{ Fatalf(string, ...any) }, data []byte, texts bool) bool {
	// memory is used again, as a fold does
	p.q = dialect.Delta{Texts: texts, Outputs: p.q.Outputs[:0], Server: p.q.Server[:0]}
	p.s = dialect.Delta{Texts: texts, Outputs: p.s.Outputs[:0], Server: p.s.Server[:0]}
	kept := bytes.Clone(data)
	if !p.quick.Quick(data, &p.q) {
		return false
	}
	err := p.strict.Event(wire.Event{Data: data}, &p.s)
	if a, b := says(&p.q), says(&p.s); err != nil || a != b {
		t.Fatalf("of %q\nquick:  %s\nstrict: %s, error %v", data, a, b, err)
	}
	if !bytes.Equal(kept, data) {
		t.Fatalf("%q was changed into %q", kept, data)
	}
	return true
}

// everyEvent returns the data of all events of all golden and recorded streams and cases, by file.
func everyEvent(t testing.TB) map[string][][]byte {
	out := map[string][][]byte{}
	take := func(name string, body []byte) {
		var s wire.SSE
		emit := func(ev wire.Event) { out[name] = append(out[name], bytes.Clone(ev.Data)) }
		s.Feed(body, emit)
		s.Close(emit)
		var l wire.Lines
		l.Feed(body, emit) // also of the streams of lines, and of what is no stream
		l.Close(emit)
	}
	for _, dir := range []string{wireDir, filepath.Join(wireDir, "recorded")} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.IsDir() {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(f.Name(), ".http") {
				_, b, _ = bytes.Cut(b, []byte("\r\n\r\n"))
			}
			take(f.Name(), b)
		}
	}
	for _, c := range casetest.Read(t, "../../../testdata/cases") {
		var body []byte
		for _, e := range c.Events {
			body = append(body, e.Data...)
		}
		take(c.Name, body)
	}
	return out
}

// Whatever stands in the golden files, of any engine and protocol: where the quick decoder reads it, it says what the strict one says.
func TestQuickIsStrict(t *testing.T) {
	took, all := 0, 0
	for _, texts := range []bool{true, false} {
		for _, events := range everyEvent(t) {
			p := newPair()
			for _, e := range events {
				newPair().read(t, e, texts) // scanned whole
				if p.read(t, e, texts) {    // of the form of one before, where it is
					took++
				}
				all++
			}
		}
	}
	if took < 700 || all < 1500 {
		t.Errorf("%d of %d events were read quickly", took, all)
	}
}

// All that common engines send is read quickly, but for the terminator and the server's own times; nearly all of it by its form.
func TestQuickTakes(t *testing.T) {
	for _, s := range streams {
		events := sseEvents(t, s.file)
		p, byForm, scanned := newPair(), 0, 0
		for i, e := range events {
			data := bytes.TrimSpace(e[len("data: "):])
			known := p.quick.form.known
			if known && p.quick.form.read(data, &chunk{}) {
				byForm++
			} else {
				scanned++
			}
			last := i == len(events)-1 || bytes.Contains(data, []byte(`"metrics":{`)) || bytes.Contains(data, []byte(`"nvext":{`))
			if p.read(t, data, true) == last {
				t.Errorf("%s: event %d: taken %v: %s", s.name, i, !last, data)
			}
		}
		// role, text, finish, usage and the terminator are forms of their own
		if scanned > 7 {
			t.Errorf("%s: %d of %d events were scanned", s.name, scanned, len(events))
		}
	}
}

// Neither way of the quick decoder allocates, also with texts but for their blocks.
func TestQuickAllocatesNothing(t *testing.T) {
	for _, s := range streams {
		var data [][]byte
		for _, e := range sseEvents(t, s.file) {
			data = append(data, bytes.TrimSpace(e[len("data: "):]))
		}
		for _, texts := range []bool{false, true} {
			d := &decoder{}
			delta := dialect.Delta{Texts: texts}
			run := func() {
				for _, e := range data {
					delta = dialect.Delta{Texts: texts, Outputs: delta.Outputs[:0], Server: delta.Server[:0]}
					d.Quick(e, &delta)
				}
			}
			run()
			if n := testing.AllocsPerRun(20, run); n > 0.5 {
				t.Errorf("%s, texts %v: %.1f allocations in %d events", s.name, texts, n, len(data))
			}
		}
	}
}

// slow is a codec whose events are all read strictly.
type slow struct{ dialect.Codec }

func (s slow) Decoder(ep dialect.Endpoint) dialect.Decoder {
	return struct{ dialect.Decoder }{s.Codec.Decoder(ep)}
}

func slowly(ep dialect.Endpoint) dialect.Endpoint {
	ep.Codec = slow{ep.Codec}
	return ep
}

// Whole responses, cut anywhere and handed over in parts, give the same records with the quick decoder as without it.
func TestRecordsAreStrict(t *testing.T) {
	type response struct {
		name, path string
		tr         *wire.Transcript
	}
	var all []response
	for name, events := range everyEvent(t) {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
			for _, chunked := range []bool{false, true} {
				var body [][]byte
				for _, e := range events {
					body = append(body, fmt.Appendf(nil, "data: %s\n\n", bytes.ReplaceAll(e, []byte("\n"), []byte("\ndata: "))))
				}
				all = append(all, response{name, path, read(body, 1, chunked)})
			}
		}
	}
	slices.SortFunc(all, func(a, b response) int {
		return strings.Compare(a.name+a.path+strconv.FormatBool(a.tr.Framed), b.name+b.path+strconv.FormatBool(b.tr.Framed))
	})
	rapid.Check(t, func(t *rapid.T) {
		r := all[rapid.IntRange(0, len(all)-1).Draw(t, "response")]
		tr := *r.tr
		tr.Marks = nil
		for off, at := 0, time.Duration(0); off < len(tr.Raw); {
			off = min(len(tr.Raw), off+rapid.IntRange(1, 700).Draw(t, "read"))
			at += time.Duration(rapid.IntRange(0, 3_000_000).Draw(t, "gap"))
			tr.Marks = append(tr.Marks, wire.Mark{End: off, At: at})
		}
		cuts := rapid.SliceOfN(rapid.IntRange(1, len(tr.Marks)), 0, 4).Draw(t, "cuts")
		slices.Sort(cuts)
		o := &dialect.Options{Stream: rapid.Bool().Draw(t, "stream"), KeepText: rapid.Bool().Draw(t, "text"), Verify: rapid.Bool().Draw(t, "verify")}
		record := func(ep dialect.Endpoint) string {
			f := dialect.NewFold(ep, &bench.Request{OSL: 8, ISL: 8}, o)
			parts, rest := inParts(&tr, cuts)
			for _, p := range parts {
				p.Framed, p.Status, p.Header = tr.Framed, tr.Status, tr.Header
				f.Feed(p)
			}
			b, err := json.Marshal(f.End(rest))
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if quick, strict := record(endpoint(engine("vllm"), r.path)), record(slowly(endpoint(engine("vllm"), r.path))); quick != strict {
			t.Fatalf("%s at %s:\nquick  %s\nstrict %s", r.name, r.path, quick, strict)
		}
	})
}

// The bytes of a part may be used for something else once it is fed, and one dialect folds several responses at a time.
func TestBytesAreNotKept(t *testing.T) {
	d := engine("vllm")
	var wg sync.WaitGroup
	for _, s := range streams {
		tr := read(sseEvents(t, s.file), 1, true)
		for _, strict := range []bool{false, true} {
			wg.Go(func() {
				o := &dialect.Options{Stream: true, KeepText: true}
				want := dialect.NewFold(endpoint(d, s.path), &bench.Request{}, o).End(tr)
				f := dialect.NewFold(endpoint(d, s.path), &bench.Request{}, o)
				if strict {
					f = dialect.NewFold(slowly(endpoint(d, s.path)), &bench.Request{}, o)
				}
				var buffer []byte
				for i, m := range tr.Marks {
					start := 0
					if i > 0 {
						start = tr.Marks[i-1].End
					}
					for _, part := range [][]byte{tr.Raw[start : (start+m.End)/2], tr.Raw[(start+m.End)/2 : m.End]} {
						buffer = append(buffer[:0], part...)
						start += len(part)
						f.Feed(wire.Part{Raw: buffer, Marks: []wire.Mark{{End: start, At: m.At}}, Framed: true})
						for k := range buffer {
							buffer[k] = '?'
						}
					}
				}
				rest := *tr
				rest.Raw, rest.Marks = nil, nil
				got := f.End(&rest)
				if got.Outcome != bench.OK || got.Text != want.Text || got.Thinking != want.Thinking || string(got.ToolCalls) != string(want.ToolCalls) ||
					fmt.Sprint(got.Events) != fmt.Sprint(want.Events) || got.OSL != want.OSL || got.Finish != want.Finish {
					t.Errorf("%s, strict %v: got %+v, want %+v", s.name, strict, got, want)
				}
			})
		}
	}
	wg.Wait()
}

// A value is taken for constant until it is seen to change; what has changed is looked at ever after.
func TestFormLearns(t *testing.T) {
	event := func(id, created int, tokens, pad string) []byte {
		return fmt.Appendf(nil, `{"id":"%d","created":%d,"choices":[{"index":0,"delta":{"content":"a"},"token_ids":%s}],"p":"%s"}`, id, created, tokens, pad)
	}
	p := newPair()
	for i, c := range []struct {
		data    []byte
		scanned bool
	}{
		{event(1, 5, "[1]", ""), true},
		{event(1, 5, "[1]", ""), false},
		{event(1, 6, "[1]", ""), true}, // created changes
		{event(1, 77, "[1]", ""), false},
		{event(1, 7, "[ 1, 2]", ""), true}, // ids change
		{event(1, 888, "[]", ""), false},
		{event(1, 9, "[4, 5]", "x\\u0020y"), true}, // a string of no interest changes
		{event(1, 9, "[4]", "\\n"), false},
		{event(2, 9, "[4]", ""), true}, // another stream
		{event(3, 1, "[1]", "é"), false},
	} {
		if by := p.quick.form.read(c.data, &chunk{}); by == c.scanned {
			t.Errorf("event %d: read by its form %v", i, by)
		}
		if !p.read(t, c.data, true) {
			t.Errorf("event %d is not taken", i)
		}
	}
}

// Chunks with all that can be in them, one after the other, say the same in both ways.
func TestQuickMeans(t *testing.T) {
	for _, texts := range []bool{true, false} {
		p := newPair()
		for _, data := range []string{
			`{"choices":[{"index":3,"delta":{"content":"a","refusal":"b","reasoning":"c","reasoning_content":"d"},"text":"e","token_ids":[1,2],"finish_reason":"length"}]}`,
			`{"choices":[{"delta":{"reasoning":"","reasoning_content":"d\n"}}]}`,
			`{"choices":[{"text":"e\u00e9"},{"index":1,"delta":{"refusal":"no"},"text":"x"}]}`,
			`{"choices":[{}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"i","function":{"name":"f","arguments":""}},{"index":1,"id":null,"function":{"name":null,"arguments":"{\""}}]}},
				{"delta":{"tool_calls":[{"index":2,"function":{"arguments":"x"}},{"function":null}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[]}}]}`,
			`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"reasoning_tokens":3,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}},"reasoning_tokens":6}`,
			`{"choices":[],"usage":{"reasoning_tokens":3,"completion_tokens_details":{"reasoning_tokens":null}}}`,
			`{"choices":[],"usage":{"reasoning_tokens":3,"completion_tokens_details":{"reasoning_tokens":5}}}`,
			`{"choices":[],"timings":{"cache_n":1,"prompt_n":2,"prompt_ms":3.5,"predicted_n":4,"predicted_ms":5.25}}`,
			`{"choices":[],"timings":{"cache_n":1,"prompt_n":2},"usage":{"prompt_tokens":9,"completion_tokens":8}}`,
			`{"choices":[],"timings":{}}`,
			` { "choices" : [ { "index" : 0 , "text" : "a" } ] } `,
		} {
			for range 2 {
				if !p.read(t, []byte(data), texts) {
					t.Errorf("not taken: %s", data)
				}
			}
		}
	}
}

// What was left behind by an event that holds more than one value is no part of the next.
func TestStrictForgets(t *testing.T) {
	d := newPair().strict
	first, next := `{"choices":[{"index":1}]}`, `{"choices":[{"index":2}]}`
	for _, odd := range []string{`{"choices":[]}` + first, `{"choices":[]} ` + first, `{"choices":[}`, `{"choices":5}`, `{"choices":[]}x`} {
		var delta dialect.Delta
		if err := d.Event(wire.Event{Data: []byte(odd)}, &delta); err == nil {
			t.Errorf("%s is taken", odd)
		}
		delta = dialect.Delta{}
		if err := d.Event(wire.Event{Data: []byte(next)}, &delta); err != nil || len(delta.Outputs) != 1 || delta.Outputs[0].Choice != 2 {
			t.Errorf("after %s: %+v, %v", odd, delta.Outputs, err)
		}
	}
}

// What is out of the ordinary is left to the strict decoder: the first of each pair is taken, the second is not.
func TestQuickLeaves(t *testing.T) {
	at := func(choice string) string { return `{"choices":[` + choice + `]}` }
	deep := func(n int) string {
		return `{"choices":[],"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	many := func(n int, what string) string { return strings.TrimSuffix(strings.Repeat(what+",", n), ",") }
	for _, c := range [][2]string{
		{`{"choices":[]}`, `{"choices":null}`},
		{`{"choices":[]}`, `{}`},
		{`{"choices":[]}`, `[]`},
		{`{"choices":[]}`, ``},
		{`{"choices":[]}`, `{"choices":[]`},
		{`{"choices":[]}`, `{"choices":[]}x`},
		{`{"choices":[]}`, `{"choices":[],}`},
		{`{"choices":[]}`, `{"choices":[],"choices":[]}`},
		{`{"choices":[]}`, `{"choices":[null]}`},
		{`{"choices":[],"x":1}`, `{"choices":[],"X":1}`},
		{`{"choices":[],"x":1}`, `{"choices":[],"é":1}`},
		{`{"choices":[],"x":1}`, `{"choices":[],"\u0078":1}`},
		{`{"choices":[],"x":1}`, `{"choices":[],"x":01}`},
		{`{"choices":[],"x":-1.5e+7}`, `{"choices":[],"x":-1.5e+}`},
		{`{"choices":[],"x":{"a":[1,{"A\n":null}]}}`, `{"choices":[],"x":{"a":[1,{"A":nul}]}}`},
		{`{"choices":[],"x":"a\u00e9b"}`, `{"choices":[],"x":"a\u00g9b"}`},
		{`{"choices":[],"x":"é"}`, "{\"choices\":[],\"x\":\"\xff\"}"},
		{`{"x":"é","choices":[]}`, "{\"x\":\"\xff\",\"choices\":[]}"},
		{`{"choices":[{"text":"abcdefghij é"}],"x":1}`, "{\"choices\":[{\"text\":\"abcdefghij \xff\"}],\"x\":1}"},
		{`{"choices":[],"usage":{"prompt_tokens":1},"x":1}`, `{"choices":[],"usage":{"prompt_tokens":01},"x":1}`},
		{`{"choices":[],"x":"\t"}`, "{\"choices\":[],\"x\":\"\t\"}"},
		{`{"choices":[],"error":null}`, `{"choices":[],"error":{"message":"m"}}`},
		{`{"choices":[],"object":"chat.completion.chunk"}`, `{"choices":[],"object":"error"}`},
		{`{"choices":[],"object":"chat.completion.chunk"}`, `{"choices":[],"object":"e\u0072ror"}`},
		{`{"choices":[],"x":null}`, `{"choices":[],"type":"error"}`},
		{`{"choices":[],"usage":{"prompt_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":1.0}}`},
		{`{"choices":[],"usage":{"prompt_tokens":1` + strings.Repeat("0", mostDigits-1) + `}}`, `{"choices":[],"usage":{"prompt_tokens":1` + strings.Repeat("0", mostDigits) + `}}`},
		{`{"choices":[],"usage":null}`, `{"choices":[],"usage":[]}`},
		{`{"choices":[],"timings":{"prompt_ms":1e3}}`, `{"choices":[],"timings":{"prompt_ms":1e999}}`},
		{at(`{"index":0,"delta":{"content":"a"}}`), at(`{"index":"0","delta":{"content":"a"}}`)},
		{at(`{"index":0,"delta":{"content":"a"}}`), at(`{"index":0,"delta":{"content":["a"]}}`)},
		{at(`{"index":0,"delta":{"content":"a"}}`), at(`{"index":0,"delta":{"content":"a","content":"b"}}`)},
		{at(`{"index":0,"delta":{"content":"a"}}`), at(`{"index":0,"Delta":{"content":"a"}}`)},
		{at(`{"index":0,"delta":{"content":null}}`), at(`{"index":0,"message":{"content":"a"}}`)},
		{at(`{"finish_reason":"stop"}`), at(`{"finish_reason":"st\u006fp"}`)},
		{at(`{"token_ids":[ 1 , 2]}`), at(`{"token_ids":[1,-2]}`)},
		{at(`{"token_ids":[]}`), at(`{"token_ids":[1,]}`)},
		{at(`{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}`), at(`{"delta":{"tool_calls":[{"function":{"arguments":{}}}]}}`)},
		{at(`{"delta":{"function_call":null}}`), at(`{"delta":{"function_call":{"name":"f"}}}`)},
		{at(many(maxChoices, `{"text":"a"}`)), at(many(maxChoices+1, `{"text":"a"}`))},
		{at(`{"delta":{"tool_calls":[` + many(maxTools, `{"id":"a"}`) + `]}}`), at(`{"delta":{"tool_calls":[` + many(maxTools+1, `{"id":"a"}`) + `]}}`)},
		{deep(maxDepth + 1), deep(maxDepth + 2)},
	} {
		for i, want := range []bool{true, false} {
			if got := newPair().read(t, []byte(c[i]), true); got != want {
				t.Errorf("%s: taken %v, want %v", c[i], got, want)
			}
		}
		// nor is it taken when the form of the ordinary one is known
		p := newPair()
		if p.read(t, []byte(c[0]), true); p.read(t, []byte(c[1]), true) {
			t.Errorf("after %s, %s is taken", c[0], c[1])
		}
	}
}

// A form has bounds: an event above them is scanned each time, and read right.
func TestFormBounds(t *testing.T) {
	event := func(numbers, length int, text string) []byte {
		return []byte(`{"x":[` + strings.Repeat(" ", length) + `],` + strings.Repeat(`"n":7,`, numbers) + `"choices":[{"text":"` + text + `"}]}`)
	}
	const other = 3 // cells: x, the text, and none for the array
	for _, c := range []struct {
		numbers, length int
		known           bool
	}{
		{0, 0, true}, {maxCells - other + 1, 0, true}, {maxCells - other + 2, 0, false}, {0, maxForm - 42, true}, {0, maxForm - 30, false},
	} {
		p := newPair()
		for _, text := range []string{"a", "bc", `\n`, ""} {
			e := event(c.numbers, c.length, text)
			if !p.read(t, e, true) {
				t.Fatalf("%+v is not taken", c)
			}
			if p.quick.form.known != c.known {
				t.Errorf("%+v, %d bytes, %d cells: known %v", c, len(e), p.quick.form.n, p.quick.form.known)
			}
		}
	}
}

// genValue draws any JSON value.
func genValue(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		most := 6
		if depth == 0 {
			most = 4
		}
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
		case 1:
			return genNumber.Draw(t, "number")
		case 2, 3, 4:
			return genString.Draw(t, "string")
		case 5:
			return "[" + strings.Join(rapid.SliceOfN(genValue(depth-1), 0, 3).Draw(t, "items"), genSpace.Draw(t, "s")+","+genSpace.Draw(t, "s")) + "]"
		default:
			return genObject(depth-1, nil).Draw(t, "object")
		}
	})
}

var genSpace = rapid.SampledFrom([]string{"", "", "", " ", "  ", "\t", "\r"})

var genNumber = rapid.SampledFrom([]string{"0", "1", "7", "42", "100", "-1", "-0", "1.5", "1e3", "2E-2", "01", "1.", "-", "123456789012345678", "12345678901234567890"})

// genString draws a JSON string, mostly a right one.
var genString = rapid.Custom(func(t *rapid.T) string {
	return `"` + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", " the", "token", "é", "謝", "🌞", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\ud83c\udf1e`, `\ud83c`, `\udf1e`,
		`\u0000`, `\b\f\r\t`, "{", "}", ":", ",", "[", "'", "\u2028", "\x7f", "error", `\x`, "\x01", "\xff", "\xed\xa0\x80", `","error":"`}), 0, 6).Draw(t, "pieces"), "") + `"`
})

// genObject draws an object with some known keys, with values that mostly fit them, in any order, some of them twice.
func genObject(depth int, known map[string]*rapid.Generator[string]) *rapid.Generator[string] {
	keys := []string{"id", "object", "x", "Choices", "obfuscation", "é", "\\u0061", "role", ""}
	for k := range known {
		keys = append(keys, k, k, k)
	}
	slices.Sort(keys)
	return rapid.Custom(func(t *rapid.T) string {
		out := "{"
		for i := range rapid.IntRange(0, 7).Draw(t, "members") {
			if i > 0 {
				out += ","
			}
			k := rapid.SampledFrom(keys).Draw(t, "key")
			v := genValue(max(0, depth))
			if g := known[k]; g != nil && rapid.IntRange(0, 15).Draw(t, "odd") > 0 {
				v = g
			}
			out += genSpace.Draw(t, "s") + `"` + k + `"` + genSpace.Draw(t, "s") + ":" + genSpace.Draw(t, "s") + v.Draw(t, "value") + genSpace.Draw(t, "s")
		}
		return out + "}"
	})
}

func genArray(item *rapid.Generator[string]) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return "[" + genSpace.Draw(t, "s") + strings.Join(rapid.SliceOfN(item, 0, 3).Draw(t, "items"), genSpace.Draw(t, "s")+",") + "]"
	})
}

// genChunk draws a chunk of a chat or completion.
func genChunk() *rapid.Generator[string] {
	type object = map[string]*rapid.Generator[string]
	null := rapid.Just("null")
	or := func(g *rapid.Generator[string]) *rapid.Generator[string] { return rapid.OneOf(g, g, g, null) }
	count := or(rapid.Custom(func(t *rapid.T) string { return strconv.Itoa(rapid.IntRange(0, 5000).Draw(t, "count")) }))
	text := or(genString)
	function := genObject(1, object{"name": text, "arguments": text})
	tool := genObject(1, object{"index": count, "id": text, "function": function})
	delta := genObject(1, object{"content": text, "refusal": text, "reasoning": text, "reasoning_content": text, "tool_calls": or(genArray(tool)), "function_call": null})
	choice := genObject(2, object{"index": count, "delta": or(delta), "message": null, "text": text, "token_ids": or(genArray(count)),
		"finish_reason": or(rapid.SampledFrom([]string{`"stop"`, `"length"`, `"tool_calls"`, `"abort"`, `""`})), "logprobs": null})
	usage := genObject(1, object{"prompt_tokens": count, "completion_tokens": count, "reasoning_tokens": count,
		"prompt_tokens_details": or(genObject(1, object{"cached_tokens": count})), "completion_tokens_details": or(genObject(1, object{"reasoning_tokens": count}))})
	timings := genObject(1, object{"cache_n": count, "prompt_n": count, "prompt_ms": or(genNumber), "predicted_n": count, "predicted_ms": or(genNumber)})
	chunk := genObject(2, object{"choices": or(genArray(choice)), "usage": or(usage), "timings": or(timings), "error": null, "created": count,
		"object": rapid.Just(`"chat.completion.chunk"`), "reasoning_tokens": count})
	return rapid.Custom(func(t *rapid.T) string {
		c := chunk.Draw(t, "chunk")
		if rapid.IntRange(0, 3).Draw(t, "with choices") > 0 {
			c = `{"choices":` + genArray(choice).Draw(t, "choices") + strings.Replace(", "+c[1:], ", }", "}", 1)
		}
		return c
	})
}

// Chunks of any order of keys, with white space, escapes, nesting, keys that come twice and values of the wrong type.
func TestQuickAnyChunk(t *testing.T) {
	gen := genChunk()
	took := 0
	rapid.Check(t, func(t *rapid.T) {
		p := newPair()
		c := gen.Draw(t, "chunk")
		if p.read(t, []byte(c), true) {
			took++
		}
		if p.read(t, []byte(c), false) && !p.quick.form.known {
			took++
		}
		// a change of some bytes, which most often leaves the form as it is
		b := []byte(c)
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			if len(b) == 0 {
				break
			}
			i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			piece := []byte(rapid.SampledFrom([]string{"", "0", "9", "a", `"`, `\`, `\n`, ",", "}", "{", "]", "null", "é", "\xff", " ", "1.5", "-"}).Draw(t, "piece"))
			b = slices.Concat(b[:i], piece, b[i+rapid.IntRange(0, 1).Draw(t, "removed"):])
		}
		p.read(t, b, true)
		p.read(t, []byte(c), true)
	})
	if took == 0 {
		t.Error("no chunk was read quickly")
	}
}

// The functions that pass over tokens take only what encoding/json takes, and as far as it does.
func TestTokens(t *testing.T) {
	value := genValue(4)
	rapid.Check(t, func(t *rapid.T) {
		v := value.Draw(t, "value")
		b := []byte(v + rapid.SampledFrom([]string{"", ",", "}", "x", "\""}).Draw(t, "rest"))
		if end, ok := endOfValue(b, 0, maxDepth); ok {
			if end > len(b) || !json.Valid(b[:end]) {
				t.Fatalf("%q is taken up to %d", b, end)
			}
			if number := strings.ContainsAny(v[:1], "-0123456789"); !number && json.Valid([]byte(v)) && end != len(v) {
				t.Fatalf("%q ends at %d", b, end)
			}
		} else if json.Valid([]byte(v)) && utf8.ValidString(v) {
			t.Fatalf("%q is not taken", b)
		}
		var want string
		if json.Unmarshal([]byte(v), &want) == nil && utf8.ValidString(v) && v != "null" {
			end, escaped, ok := endOfString(b, 1)
			if !ok || end != len(v)-1 || escaped != strings.Contains(v, `\`) {
				t.Fatalf("%q: the string ends at %d, escaped %v, ok %v", b, end, escaped, ok)
			}
			var w words
			if got := w.word(b, inside{1, int32(end), true}); got != want {
				t.Fatalf("%q is read as %q, want %q", v, got, want)
			}
		}
	})
}

// Strings that were made stay as they are when others are made.
func TestWordsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w words
		var got, want []string
		for range rapid.IntRange(1, 50).Draw(t, "texts") {
			s := strings.Repeat(rapid.SampledFrom([]string{"", "a", "bc", "déf"}).Draw(t, "word"), rapid.IntRange(0, 400).Draw(t, "times"))
			b := []byte("x" + s + "y")
			got, want = append(got, w.join(b, inside{1, int32(1 + len(s)), false}, inside{}, inside{0, 1, false})), append(want, s+"x")
			clear(b)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// Whatever comes, also after an event that was like it, the quick decoder says what the strict one says, or leaves it.
func FuzzQuick(f *testing.F) {
	const long = 1 << 10 // what is long says nothing more, and slows fuzzing down
	for _, s := range streams {
		var data [][]byte
		for _, e := range sseEvents(f, s.file) {
			if e = bytes.TrimSpace(e[len("data: "):]); len(e) < long {
				data = append(data, e)
			}
		}
		for i := range min(3, len(data)-1) {
			f.Add(data[i], data[i+1], i > 0)
		}
		last := len(data) - 3
		f.Add(data[last], data[last+1], true)
	}
	f.Fuzz(func(t *testing.T, first, second []byte, texts bool) {
		p := newPair()
		p.read(t, first, texts)
		p.read(t, second, texts)
		p.read(t, first, !texts)
	})
}

// Responses that one goroutine folds by turns give the same records as each by itself.
func TestFolderIsShared(t *testing.T) {
	d := engine("vllm")
	var folder dialect.Folder
	o := &dialect.Options{Stream: true, KeepText: true, Verify: true}
	type turn struct {
		f    *dialect.Fold
		tr   *wire.Transcript
		want bench.Record
		done int // marks fed
	}
	var turns []*turn
	for _, s := range streams {
		tr := read(sseEvents(t, s.file), 1, true)
		ep := endpoint(d, s.path)
		turns = append(turns, &turn{f: folder.NewFold(ep, &bench.Request{}, o), tr: tr, want: dialect.NewFold(ep, &bench.Request{}, o).End(tr)})
	}
	for left := len(turns); left > 0; {
		for _, u := range turns {
			switch {
			case u.done > len(u.tr.Marks):
			case u.done == len(u.tr.Marks):
				left--
				rest := *u.tr
				rest.Raw, rest.Marks = nil, nil
				if got := u.f.End(&rest); !reflect.DeepEqual(got, u.want) {
					t.Errorf("%+v\nwant %+v", got, u.want)
				}
				u.done++
			default:
				start := 0
				if u.done > 0 {
					start = u.tr.Marks[u.done-1].End
				}
				m := u.tr.Marks[u.done]
				u.f.Feed(wire.Part{Framed: u.tr.Framed, Status: u.tr.Status, Header: u.tr.Header, Raw: u.tr.Raw[start:m.End], Marks: []wire.Mark{m}})
				u.done++
			}
		}
	}
}
