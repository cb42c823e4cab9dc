package sim

import "strings"

// form is how an endpoint writes the answer to a generation: its events as they stand on the wire, with $words in the place of what
// differs from one answer to the next. What is left out is not written.
type form struct {
	stream string // content type of a stream; "" = an event stream
	prefix string // of the id

	early []text // as soon as the request is there, before any token
	start []text // with the first token
	think part   // the tokens of reasoning. Without it the endpoint has none
	words part   // the tokens of the answer
	call  part   // the tokens of a tool call, in place of an answer. Without it the endpoint calls no tools
	end   []text // after the last token
	usage []text // then, when the client asked for it
	done  []text // then

	broken []text // in place of what is left, when an error strikes in the middle of a stream; nil = the connection drops

	whole text   // the answer to a request that asks for no stream
	head  []text // header fields of that answer

	running text    // $running: in chunks, where they are to have the usage so far
	unasked text    // $unasked: where nobody asked for usage
	asked   text    // $ifasked, $orasked: where somebody did
	token   text    // one of $tokens
	finish  reasons // $finish
	single  bool    // an event has one token, whatever is due at the same time
	silent  bool    // the end token has no chunk
	endless bool    // the end token is not counted
}

// part is a stretch of an answer: reasoning, text or a tool call.
type part struct {
	open  []text
	chunk text
	last  text // the chunk with the last tokens of the answer; nil = as the others
	close []text
	whole text // what stands for it in a whole answer: $thought, $called, or one of $parts
}

// reasons are the words for how an answer ends.
type reasons struct{ stop, length, call text }

// words are reasons that are plain strings.
func finishes(stop, length, call string) reasons {
	return reasons{parse(`"` + stop + `"`), parse(`"` + length + `"`), parse(`"` + call + `"`)}
}

// text is literal bytes with words in between.
type text []span

type span struct {
	literal string
	word    func(b []byte, s *speech) []byte // after the literal; nil at the end
}

// parse reads a text. A word that does not exist is a mistake in a table.
func parse(format string) (out text) {
	for {
		literal, rest, found := strings.Cut(format, "$")
		if !found {
			return append(out, span{literal, nil})
		}
		n := 0
		for n < len(rest) && 'a' <= rest[n] && rest[n] <= 'z' {
			n++
		}
		w := vocabularyOf[rest[:n]]
		if w == nil {
			panic("sim: there is no word $" + rest[:n])
		}
		out = append(out, span{literal, w})
		format = rest[n:]
	}
}

// data is an event without a name.
func data(json string) text { return parse("data: " + json + "\n\n") }

// named is an event with a name.
func named(name, json string) text { return parse("event: " + name + "\ndata: " + json + "\n\n") }

// list is events one after the other.
func list(events ...text) []text { return events }

// speaker writes the answer to one generation. It appends, and each event of a stream is an HTTP chunk of its own.
type speaker interface {
	early(e *event)                // what needs no token
	tokens(e *event, from, to int) // tokens that are due, with what goes along
	tail(e *event)                 // what follows the last token
	broken(e *event)               // an error in place of the rest
	fields(b []byte) []byte        // header fields of a whole answer, each with its line end
	whole(b []byte) []byte
}

// speech is a speaker by a form.
type speech struct {
	f *form
	g *generation

	p          *part // the one that is being written
	begin      int   // its first token
	from, to   int   // tokens of the event that is being written
	seq, block int   // $seq: events that are numbered. $block: parts so far
}

func (f *form) speak(g *generation) speaker {
	if f.think.chunk == nil && f.think.whole == nil {
		g.think = 0
	}
	if f.call.chunk == nil && f.call.whole == nil {
		g.call = ""
	}
	return &speech{f: f, g: g}
}

// expand appends a text with its words filled in.
func (s *speech) expand(b []byte, t text) []byte {
	for i := range t {
		b = append(b, t[i].literal...)
		if w := t[i].word; w != nil {
			b = w(b, s)
		}
	}
	return b
}

func (s *speech) write(e *event, events ...text) {
	for _, t := range events {
		e.body = s.expand(e.body, t)
		e.cut()
	}
}

// partAt is the part of the i-th token, and which tokens it has.
func (s *speech) partAt(i int) (p *part, begin, end int) {
	switch g := s.g; {
	case i < g.think:
		return &s.f.think, 0, g.think
	case g.call != "":
		return &s.f.call, g.think, g.output
	default:
		return &s.f.words, g.think, g.output
	}
}

func (s *speech) early(e *event) { s.write(e, s.f.early...) }

func (s *speech) tokens(e *event, from, to int) {
	if from == 0 {
		s.from, s.to = 0, 0
		s.write(e, s.f.start...)
	}
	for from < to {
		p, begin, end := s.partAt(from)
		until := min(to, end)
		if s.f.single {
			until = from + 1
		}
		s.p, s.begin, s.from, s.to = p, begin, from, until
		if from == begin {
			s.write(e, p.open...)
		}
		switch last := until == s.g.output; {
		case last && s.f.silent && until-from == 1 && s.g.ends():
		case last && p.last != nil:
			s.write(e, p.last)
		default:
			s.write(e, p.chunk)
		}
		if until == end {
			s.write(e, p.close...)
			s.block++
		}
		from = until
	}
}

func (s *speech) tail(e *event) {
	s.from, s.to = s.g.output, s.g.output
	s.write(e, s.f.end...)
	if s.g.usage && !s.g.noUsage {
		s.write(e, s.f.usage...)
	}
	s.write(e, s.f.done...)
}

func (s *speech) broken(e *event) {
	s.write(e, s.f.broken...)
	if s.f.broken == nil {
		e.then = cut
	}
}

func (s *speech) fields(b []byte) []byte {
	s.from, s.to = 0, s.g.output
	for _, t := range s.f.head {
		b = append(s.expand(b, t), "\r\n"...)
	}
	return b
}

func (s *speech) whole(b []byte) []byte {
	s.p, s.begin, _ = s.partAt(s.g.output - 1)
	s.from, s.to = 0, s.g.output
	return s.expand(b, s.f.whole)
}
