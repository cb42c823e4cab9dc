package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Fold turns a transcript into a record, in one piece or part by part. It is used by one goroutine at a time.
type Fold struct {
	// Watch sees each event of a stream as it is folded, when not nil. What it points to is valid only during the call.
	Watch func(Seen)

	ep  Endpoint
	req *bench.Request
	o   *Options

	*scratch
	dec    Decoder
	quick  Quick // dec, while its quick way is to be used
	tally  Tally
	body   *wire.Body
	take   func(wire.Piece) error // piece, made once
	framer wire.Framer            // nil until the form of the body is known
	emit   func(wire.Event)       // calls event, likewise
	form   form
	whole  []byte // the body, when it is no stream
	read   int    // number of the last read
	at     time.Duration
	newest byte // of the body
	half   bool // the body ended inside an event

	rec      *bench.Record         // made at the end
	answered opt.Of[time.Duration] // the first output event that is not reasoning
	cached   opt.Of[int]
	thinking opt.Of[int]     // tokens of reasoning
	times    []time.Duration // of the output events
	told     []int           // tokens of each, while all that came so far told them
	of       []int           // choice of each, once there are several
	firsts   int             // read that brought the first output event
	lasts    int             // that brought the last one
	together int             // output events that came in the read of the one before of their choice
	merged   int             // output events that shared their read with another
	sharing  bool            // the last one is among them
	choices  []choice        // in the order of their appearance
	where    map[int]int     // the places of choices by index, once there are many
	fault    error           // the first thing that was not what the protocol says
	errText  string
	done     bool
	doneAt   time.Duration
	answer   bool
	total    opt.Of[int] // newest running total of generated tokens
	prompt   opt.Of[int]
	counted  bool // the prompt, by the engine's own protocol
	ids      int  // token ids seen
	noIDs    bool // an output event came without ids
	totals   int  // times that the running total was told
	grew     int  // times that the running total grew with an output
	native   bool
	server   []ServerTime
	tools    map[int]*toolCall
	toolIDs  []int
	text     []byte
	thought  []byte
}

// Seen is one event of a stream, with what was made of it.
type Seen struct {
	At     time.Duration // since the epoch
	Read   int           // number of the read that completed it
	Event  wire.Event
	Delta  *Delta
	Output bool // it counts as an output event
}

// form is how a body is to be read.
type form uint8

const (
	formUnknown form = iota
	formStream
	formPlain
	formHTML
)

type choice struct {
	index  int
	finish string
	events int // output events
	lasts  int // read that brought the last one
}

type toolCall struct {
	id        string
	name      []byte
	arguments []byte
}

// fewChoices are looked through one by one.
const fewChoices = 8

// Room for the output events of a response is made once for as many tokens as were asked, within these bounds: below, growing is
// cheap; above, what a server does not send would be a waste.
const (
	fewEvents    = 16
	manyEvents   = 256
	textPerEvent = 4 // bytes: a token of English
)

// Most of a failed response's body that is kept for its words, and of a plain answer.
const (
	maxErrorBody = 4 << 10
	maxPlainBody = 256 << 20
	maxErrorText = 500
	maxEvents    = 4 << 20 // output events of one response: 32 MiB of times
)

// Folder makes folds that share the memory which none of them needs between two calls. It and its folds are one goroutine's.
type Folder struct {
	scratch
	codec  Codec
	shared Decoder
}

// scratch is what a fold needs while it reads an event.
type scratch struct {
	delta  Delta
	strict Delta // the strict reading, while both are compared
}

// NewFold returns a fold for the response to one request.
func NewFold(ep Endpoint, req *bench.Request, o *Options) *Fold {
	return new(Folder).NewFold(ep, req, o)
}

// NewFold returns a fold for the response to one request.
func (w *Folder) NewFold(ep Endpoint, req *bench.Request, o *Options) *Fold {
	f := &Fold{scratch: &w.scratch, ep: ep, req: req, o: o}
	if _, ok := ep.Codec.(Stateless); ok {
		if w.shared == nil || w.codec != ep.Codec {
			w.codec, w.shared = ep.Codec, ep.Codec.Decoder(ep)
		}
		f.dec = w.shared
	}
	return f
}

// begin makes what the first bytes of a response need: a request that waits to be sent holds little.
func (f *Fold) begin(p wire.Part) {
	f.body = wire.NewBody(p.Framed, p.Status, p.Header)
	if f.dec == nil {
		f.dec = f.ep.Codec.Decoder(f.ep)
	}
	f.quick, _ = f.dec.(Quick)
	f.take = f.piece
	f.emit = func(ev wire.Event) { f.event(&ev) }
}

// Feed takes a part of the transcript.
func (f *Fold) Feed(p wire.Part) {
	if f.body == nil {
		f.begin(p)
	}
	if f.fault == nil {
		f.fault = f.body.Feed(p.Raw, p.Marks, f.take)
	}
}

// End takes the end of the transcript and returns the record. Due and slot are the caller's to set.
func (f *Fold) End(tr *wire.Transcript) bench.Record {
	f.Feed(wire.Part{Raw: tr.Raw, Marks: tr.Marks, Framed: tr.Framed, Status: tr.Status, Header: tr.Header})
	if err := f.body.Close(f.take); err != nil && f.fault == nil && !errors.Is(err, wire.ErrCut) {
		f.fault = err
	}
	if f.framer != nil && f.fault == nil && tr.Fail == "" {
		// a last event without its line end counts when it is whole; half of one only tells that the stream was cut off
		whole := 0
		f.framer.Close(func(ev wire.Event) { whole++; f.emit(ev) })
		f.half = f.fault != nil || whole == 0 && f.newest != '\n' && f.newest != '\r'
		f.fault = nil
	}
	f.rec = &bench.Record{}
	f.basics(tr)
	f.outcome(tr)
	f.rec.FirstAnswer, f.rec.Cached, f.rec.Reasoning = f.answered, f.cached, f.thinking
	f.moments(tr)
	f.tokens()
	f.flags(tr)
	f.kept()
	return *f.rec
}

// piece takes a run of body bytes.
func (f *Fold) piece(p wire.Piece) error {
	f.read, f.at = p.Read, p.At
	if n := len(p.Bytes); n > 0 {
		f.newest = p.Bytes[n-1]
	}
	if f.form == formUnknown {
		f.whole = append(f.whole, p.Bytes...)
		if f.form = f.decideForm(f.whole); f.form == formUnknown {
			return nil
		}
		p.Bytes, f.whole = f.whole, nil
	}
	if f.form != formStream {
		most := maxPlainBody
		if f.body.Status() >= 300 || f.form == formHTML {
			most = maxErrorBody
		}
		f.whole = append(f.whole, p.Bytes[:min(len(p.Bytes), max(0, most-len(f.whole)))]...)
		return nil
	}
	if err := f.framer.Feed(p.Bytes, f.emit); err != nil {
		return err
	}
	return f.fault
}

// longestWait bounds what a server's Retry-After may ask for.
const longestWait = 365 * 24 * time.Hour

// decideForm tells from head and first bytes how the body is to be read: servers mislabel both ways.
func (f *Fold) decideForm(start []byte) form {
	if status := f.body.Status(); status < 200 || status >= 300 {
		return formPlain
	}
	kind, _, _ := strings.Cut(strings.ToLower(f.body.Field("Content-Type")), ";")
	switch strings.TrimSpace(kind) {
	case "text/event-stream":
		f.framer = &wire.SSE{}
		return formStream
	case "application/x-ndjson", "application/jsonl", "application/json-seq":
		f.framer = &wire.Lines{}
		return formStream
	}
	start = bytes.TrimLeft(start, "\xef\xbb\xbf \t\r\n")
	switch {
	case len(start) == 0:
		return formUnknown
	case start[0] == '<':
		return formHTML
	case start[0] == '{' || start[0] == '[':
		return formPlain
	}
	for _, word := range []string{"data:", "event:", ":", "id:", "retry:"} {
		if n := min(len(start), len(word)); string(start[:n]) == word[:n] {
			if n < len(word) {
				return formUnknown
			}
			f.framer = &wire.SSE{}
			return formStream
		}
	}
	return formPlain
}

// event takes an event that the newest read has completed.
func (f *Fold) event(ev *wire.Event) {
	if f.fault != nil || f.done {
		return // what follows the terminator is of no interest
	}
	if err := f.decode(ev); err != nil {
		f.fault = err
		return
	}
	before := len(f.times)
	f.add(&f.delta)
	if f.Watch != nil {
		f.Watch(Seen{At: f.at, Read: f.read, Event: *ev, Delta: &f.delta, Output: len(f.times) > before})
	}
}

// add adds a delta to what is known.
func (f *Fold) add(d *Delta) {
	if d.Error != "" && f.errText == "" {
		f.errText = d.Error
	}
	grown := f.counts(d)
	told := 0 // tokens of this event, as far as told
	if d.Completion.Defined() {
		told = grown
	}
	for i := range d.Outputs {
		o := &d.Outputs[i]
		c := f.choice(o.Choice)
		if o.Finish != "" {
			c.finish = o.Finish
		}
		// a count that grew tells of tokens without text; one that appears for the first time is a total
		if o.generated() || grown > 0 && f.totals > 1 {
			f.output(o, told)
		}
	}
	if d.Done && !f.done {
		f.done, f.doneAt = true, f.at
	}
}

// output takes an output event. Tokens are what the running total has grown by.
func (f *Fold) output(o *Output, tokens int) {
	n := len(f.times)
	if n == maxEvents {
		f.fault = fmt.Errorf("more than %d output events", maxEvents)
		return
	}
	if n == 0 {
		f.times = make([]time.Duration, 0, min(max(f.req.OSL, fewEvents), manyEvents))
		f.firsts = f.read
	} else if f.read == f.lasts {
		if f.merged++; !f.sharing {
			f.merged++ // the first one of the read
		}
	}
	f.sharing = n > 0 && f.read == f.lasts
	f.lasts = f.read
	c := f.choice(o.Choice)
	if c.events > 0 && c.lasts == f.read {
		f.together++
	}
	c.lasts = f.read
	c.events++
	f.times = append(f.times, f.at)
	if o.IDs > 0 {
		tokens = o.IDs
		f.ids += o.IDs
	} else {
		f.noIDs = true
	}
	if tokens > 0 && len(f.told) == n { // a count that stands still beside output is none (Ollama sends zeros)
		if n == 0 {
			f.told = make([]int, 0, cap(f.times))
		}
		f.told = append(f.told, tokens)
	}
	if len(f.choices) > 1 {
		for len(f.of) < n {
			f.of = append(f.of, f.choices[0].index) // those before the second choice
		}
		f.of = append(f.of, o.Choice)
	}
	if isAnswer := o.Text != "" || o.calls() || o.Reasoning == ""; isAnswer && !f.answer {
		f.answer = true
		f.answered = opt.Some(f.at)
	}
	f.keep(o)
}

// choice returns the choice of an index, a new one when there is none yet. It is valid until the next call.
func (f *Fold) choice(index int) *choice {
	if f.where != nil {
		if k, ok := f.where[index]; ok {
			return &f.choices[k]
		}
	} else {
		for k := range f.choices {
			if f.choices[k].index == index {
				return &f.choices[k]
			}
		}
	}
	k := len(f.choices)
	f.choices = append(f.choices, choice{index: index})
	switch {
	case k > fewChoices:
		f.where[index] = k
	case k == fewChoices:
		f.where = map[int]int{}
		for k, c := range f.choices {
			f.where[c.index] = k
		}
	}
	return &f.choices[k]
}

// counts takes the running totals of a delta and returns by how much the number of generated tokens grew.
func (f *Fold) counts(d *Delta) (grown int) {
	f.countable("generated tokens", d.Completion, mostGenerated)
	f.countable("reasoning tokens", d.Reasoning, mostGenerated)
	f.countable("prompt tokens", d.Prompt, mostPrompt)
	f.countable("cached tokens", d.Cached, mostPrompt)
	if f.fault != nil {
		return 0
	}
	if v, ok := d.Completion.Get(); ok && v >= 0 {
		grown = v - f.total.Or(0)
		f.total = d.Completion
		f.native = d.Native
		f.totals++
		if grown > 0 && len(d.Outputs) > 0 {
			f.grew++
		}
	}
	if d.Prompt.Or(-1) >= 0 { // a negative count is none
		f.prompt, f.counted = d.Prompt, d.Native
	}
	if d.Cached.Or(-1) >= 0 {
		f.cached = d.Cached
	}
	if d.Reasoning.Or(-1) >= 0 {
		f.thinking = d.Reasoning
	}
	for _, t := range d.Server {
		f.serverTime(t)
	}
	return grown
}

// Counts beyond these are no counts: no answer has 16 million tokens, and no batch of texts two billion.
const (
	mostGenerated = 1 << 24
	mostPrompt    = 1<<31 - 1
)

// countable finds fault with a count that cannot be one.
func (f *Fold) countable(name string, n opt.Of[int], most int) {
	if v := n.Or(0); v > most && f.fault == nil {
		f.fault = fmt.Errorf("%d %s are no count", v, name)
	}
}

// serverTime keeps the newest value of each of the server's own times.
func (f *Fold) serverTime(t ServerTime) {
	if math.IsInf(t.Value, 0) || math.IsNaN(t.Value) {
		return
	}
	for k := range f.server {
		if f.server[k].Key == t.Key {
			f.server[k].Value = t.Value
			return
		}
	}
	f.server = append(f.server, t)
}

// reads tells whether the text of the answer is wanted: to be kept, or to be counted.
func (f *Fold) reads() bool { return f.o.KeepText || f.o.Count != nil }

// count is the tokens of the whole text, each part once: what was thought, said and called.
func (f *Fold) count() (n int) {
	for _, text := range [][]byte{f.thought, f.text} {
		if len(text) > 0 {
			n += f.o.Count(string(text))
		}
	}
	for _, key := range f.toolIDs {
		n += f.o.Count(string(f.tools[key].name)) + f.o.Count(string(f.tools[key].arguments))
	}
	return n
}

// keep gathers the text, when it is wanted.
func (f *Fold) keep(o *Output) {
	if !f.reads() {
		return
	}
	if f.text == nil {
		f.text = make([]byte, 0, textPerEvent*cap(f.times))
	}
	f.text = append(f.text, o.Text...)
	f.thought = append(f.thought, o.Reasoning...)
	for _, t := range o.Tools {
		key := o.Choice<<16 | t.Index
		c := f.tools[key]
		if c == nil {
			if f.tools == nil {
				f.tools = map[int]*toolCall{}
			}
			c = &toolCall{}
			f.tools[key] = c
			f.toolIDs = append(f.toolIDs, key)
		}
		c.id = cmp.Or(t.ID, c.id)
		c.name = append(c.name, t.Name...)
		c.arguments = append(c.arguments, t.Arguments...)
	}
}

// basics fills in what the transcript says by itself.
func (f *Fold) basics(tr *wire.Transcript) {
	r := f.rec
	r.ID, r.Phase, r.Conversation, r.Turn, r.Class = f.req.ID, f.req.Phase, f.req.Conversation, f.req.Turn, f.req.Class
	r.Target = tr.Target
	r.Status = f.body.Status()
	r.Slot, r.Sent, r.Handed, r.Headers, r.End = tr.Slot, tr.Sent, tr.Handed, tr.HeadAt, tr.Ended
	r.Reused, r.Connect, r.TLS = tr.Reused, tr.Connect, tr.TLS
	r.Bytes, r.Stamp = tr.Bytes, tr.Stamp
	r.ISLAsked, r.OSLAsked, r.Inputs = f.req.ISL, f.req.OSL, len(f.req.Inputs)
	if r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable {
		if s, err := strconv.ParseFloat(f.body.Field("Retry-After"), 64); err == nil && s >= 0 && s <= longestWait.Seconds() {
			r.RetryAfter = s
		}
	}
}

// outcome decides how the request ended.
func (f *Fold) outcome(tr *wire.Transcript) {
	r := f.rec
	end := func(o bench.Outcome, text string) {
		r.Outcome = o
		if len(text) > maxErrorText {
			text = text[:maxErrorText] + "..."
		}
		r.Error = strings.ToValidUTF8(text, "?")
	}
	switch tr.Fail {
	case wire.FailDropped:
		end(bench.Dropped, tr.Cause)
		return
	case wire.FailCancelled:
		end(bench.Cancelled, "")
		return
	case wire.FailIncomplete:
		end(bench.Incomplete, tr.Cause)
		return
	}
	if s := r.Status; s >= 300 {
		switch words := f.serverWords(); {
		case s == http.StatusTooManyRequests:
			end(bench.Throttled, words)
		case s < 400:
			end(bench.Rejected, fmt.Sprintf("redirect to %q refused", f.body.Field("Location")))
		case s < 500:
			end(bench.Rejected, words)
		default:
			end(bench.ServerError, words)
		}
		return
	}
	switch {
	case f.errText != "":
		end(bench.StreamError, f.errText)
		return
	case f.fault != nil:
		end(bench.Malformed, f.fault.Error())
		return
	case tr.Fail != "" && !f.done:
		o := map[wire.Fail]bench.Outcome{wire.FailDNS: bench.DNS, wire.FailRefused: bench.Refused, wire.FailTLS: bench.TLSFailed,
			wire.FailReset: bench.Reset, wire.FailTimeout: bench.Timeout, wire.FailMalformed: bench.Malformed}[tr.Fail]
		if o == "" {
			panic("dialect: unknown failure " + string(tr.Fail))
		}
		end(o, tr.Cause)
		return
	}
	switch f.form {
	case formUnknown:
		if f.o.Stream {
			f.endOfStream(end)
		} else {
			end(bench.Malformed, "an empty body")
		}
	case formHTML:
		end(bench.Malformed, "an HTML page, not an answer: "+wire.Excerpt(f.whole))
	case formStream:
		if f.o.Stream {
			f.endOfStream(end)
		} else {
			end(bench.Malformed, "an event stream came, a plain answer was asked")
		}
	default:
		f.endOfPlain(end)
	}
}

// endOfStream judges a stream that ended by itself.
func (f *Fold) endOfStream(end func(bench.Outcome, string)) {
	if len(f.choices) == 0 {
		end(bench.TruncatedStream, "the stream ended without an answer")
		return
	}
	for _, c := range f.choices {
		switch finish := NormalFinish(c.finish); finish {
		case "":
			if f.ep.Can.NoFinish && !f.half {
				continue
			}
			end(bench.TruncatedStream, "the stream ended without a finish reason")
			return
		case bench.FinishFailed:
			end(bench.StreamError, "the server ended the answer with reason "+c.finish)
			return
		}
	}
	f.rec.Finish = f.finish()
	if len(f.times) == 0 {
		end(bench.Empty, "no output")
		return
	}
	end(bench.OK, "")
}

// endOfPlain reads a body that is no stream.
func (f *Fold) endOfPlain(end func(bench.Outcome, string)) {
	f.delta.reset(f.reads())
	if h, ok := f.dec.(Headed); ok {
		h.Head(f.body.Header(), &f.delta)
	}
	if err := f.dec.Body(f.whole, &f.delta); err != nil {
		end(bench.Malformed, err.Error())
		return
	}
	d := &f.delta
	if d.Error != "" {
		end(bench.StreamError, d.Error)
		return
	}
	if f.counts(d); f.fault != nil {
		end(bench.Malformed, f.fault.Error())
		return
	}
	if f.ep.Task != bench.Generate {
		f.endOfResults(end)
		return
	}
	output := false
	for i := range d.Outputs {
		o := &d.Outputs[i]
		f.choices = append(f.choices, choice{index: o.Choice, finish: o.Finish})
		f.ids += o.IDs
		output = output || o.generated()
		f.keep(o)
	}
	f.rec.Finish = f.finish()
	switch {
	case f.rec.Finish == bench.FinishFailed:
		end(bench.StreamError, "the server ended the answer with a failure")
	case f.o.Stream:
		end(bench.NotStreamed, "a stream was asked, a plain body came")
	case !output:
		end(bench.Empty, "no output")
	default:
		end(bench.OK, "")
	}
}

// finish returns the reason of the first choice that did not simply stop, else that of the first.
func (f *Fold) finish() bench.Finish {
	out := bench.Finish("")
	for _, c := range f.choices {
		if n := NormalFinish(c.finish); out == "" || n != bench.FinishStop {
			out = n
		}
	}
	return out
}

// serverWords are the first bytes of a failed response, or the message in it.
func (f *Fold) serverWords() string {
	f.delta.reset(f.reads())
	if err := f.dec.Body(f.whole, &f.delta); err == nil && f.delta.Error != "" {
		return f.delta.Error
	}
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(f.whole), "?")), " ")
	if words == "" {
		words = http.StatusText(f.rec.Status)
	}
	return words
}

// moments fills in first, last and the events.
func (f *Fold) moments(tr *wire.Transcript) {
	r := f.rec
	if f.done {
		r.End = opt.Some(f.doneAt)
	}
	if len(f.choices) > 1 {
		r.Choices = len(f.choices)
	}
	r.OutEvents, r.Merged = len(f.times), f.merged
	if f.form == formPlain && r.Outcome == bench.OK {
		r.Last = r.End // nothing is known of the moments inside
		return
	}
	if r.Outcome == bench.NotStreamed {
		return
	}
	n := len(f.times)
	if n == 0 {
		return
	}
	r.First, r.Last = opt.Some(f.times[0]), opt.Some(f.times[n-1])
	if n > 1 {
		r.Second = opt.Some(f.times[1])
	}
	if len(f.choices) > 1 {
		for len(f.of) < n {
			f.of = append(f.of, f.choices[0].index)
		}
		r.EventChoice = f.of
	}
	if len(f.told) == n && (f.grew > 1 || f.ids > 0 || f.native && n == 1) {
		r.EventTokens = f.told
	}
	r.Events = f.times
	for i := range r.Events {
		r.Events[i] -= r.Sent.Or(0)
	}
}

// tokens decides the counts and their sources, and adds the server's own times.
func (f *Fold) tokens() {
	r := f.rec
	if len(f.server) > 0 {
		r.Server = make(map[string]float64, len(f.server))
	}
	for _, t := range f.server {
		r.Server[t.Key] = t.Value
	}
	total, ok := f.total.Get()
	ok = ok && (total > 0 || len(f.times) == 0) // 0 beside output is no count (a server that does not know)
	switch {
	case f.ids > 0 && !f.noIDs:
		r.OSL, r.OSLSource = opt.Some(f.ids), bench.FromIDs
	case ok && (f.native || f.grew > 1):
		r.OSL, r.OSLSource = opt.Some(total), bench.FromCount
	case ok:
		r.OSL, r.OSLSource = opt.Some(total), bench.FromUsage
	case len(f.times) > 0 && f.o.Count != nil && len(f.choices) <= 1: // the texts of several answers are not kept apart
		r.OSL, r.OSLSource = opt.Some(f.count()), bench.FromTokenizer
	case len(f.times) > 0:
		r.OSL, r.OSLSource = opt.Some(len(f.times)), bench.FromEstimate
	}
	prompt, ok := f.prompt.Get()
	switch sent := len(f.req.Tokens); {
	case sent > 0 && (!ok || prompt == sent):
		r.ISL, r.ISLSource = opt.Some(sent), bench.FromIDs
	case ok && f.counted:
		r.ISL, r.ISLSource = opt.Some(prompt), bench.FromCount
	case ok:
		r.ISL, r.ISLSource = opt.Some(prompt), bench.FromUsage
	}
}

// Length differences below both are no news.
const (
	lengthSlack      = 0.05
	lengthSlackToken = 50
)

// lengthsDiffer tells whether a count is off by more than 5 % or 50 tokens.
func lengthsDiffer(got, asked int) bool {
	d := got - asked
	if d < 0 {
		d = -d
	}
	return asked > 0 && (float64(d) > lengthSlack*float64(asked) || d > lengthSlackToken)
}

// flags raises what is worth knowing.
func (f *Fold) flags(tr *wire.Transcript) {
	r := f.rec
	if tr.Retried {
		r.Raise(bench.RetriedStaleConnection)
	}
	if r.Outcome == bench.NotStreamed {
		r.Raise(bench.FlagNotStreamed)
	}
	if len(f.choices) > 1 {
		r.Raise(bench.NGreater1)
	}
	if r.Finish == bench.FinishLength {
		r.Raise(bench.LengthLimited)
	}
	f.bunched()
	if osl, ok := r.OSL.Get(); ok && r.Outcome == bench.OK {
		if r.OSLSource == bench.FromEstimate {
			r.Raise(bench.TokenCountEstimated)
		} else if len(f.times) > 0 && osl > len(f.times)+1 {
			r.Raise(bench.MultiTokenChunks)
		} else if osl < len(f.times) {
			r.Raise(bench.FewerTokensThanEvents)
		}
		if asked := r.OSLAsked * max(1, len(f.choices)); lengthsDiffer(osl, asked) {
			if osl > asked {
				r.Raise(bench.OutputLonger)
			} else if f.o.ForceLength {
				r.Raise(bench.OutputShorter)
			}
		}
	}
	if isl, ok := r.ISL.Get(); ok && r.ISLAsked > 0 && lengthsDiffer(isl, r.ISLAsked) {
		r.Raise(bench.PromptLengthDiffers)
		if float64(isl) < 0.8*float64(r.ISLAsked) {
			r.Raise(bench.PromptTruncated)
		}
	}
	if r.Cached.Or(0) > 0 {
		r.Raise(bench.PrefixCacheHit)
	}
	if len(f.times) > 0 && !f.answer && r.Outcome == bench.OK {
		r.Raise(bench.NoAnswer)
	}
}

// Streams whose events come bunched tell of a proxy or a buffer, not of the engine.
const (
	allAtOnceEvents = 4
	allAtOnceSpan   = time.Millisecond
	clumpedGaps     = 8
)

func (f *Fold) bunched() {
	n := len(f.times)
	gaps := n - len(f.choices) // inside choices: those of two choices that come together are no news
	switch {
	case n >= allAtOnceEvents && (f.firsts == f.lasts || f.times[n-1]-f.times[0] <= allAtOnceSpan):
		f.rec.Raise(bench.AllAtOnce)
	case gaps >= clumpedGaps && 2*f.together >= gaps:
		f.rec.Raise(bench.Clumped)
	}
}

// kept adds the texts that were asked for.
func (f *Fold) kept() {
	if !f.o.KeepText {
		return
	}
	f.rec.Text, f.rec.Thinking = string(f.text), string(f.thought)
	if len(f.toolIDs) > 0 {
		type call struct {
			ID        string `json:"id,omitempty"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		}
		calls := make([]call, len(f.toolIDs))
		for i, key := range f.toolIDs {
			t := f.tools[key]
			calls[i] = call{t.id, string(t.name), string(t.arguments)}
		}
		f.rec.ToolCalls, _ = json.Marshal(calls) // strings always marshal
	}
}
