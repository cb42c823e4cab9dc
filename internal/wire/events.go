package wire

import (
	"bytes"
	"fmt"
)

// MaxEvent is the default bound of one event: llama.cpp's last event echoes prompt and settings, SGLang's cumulative ones grow.
const MaxEvent = 32 << 20

// Event is one event of a stream. Its slices are valid only while it is being handled.
type Event struct {
	Name    []byte // the value of its `event` field, if any
	Data    []byte // its `data` lines, joined by line feeds; nil when there is none
	Comment []byte // the last comment inside it: some servers put an error there
}

// Framer cuts a body into events. Every split of the body into pieces gives the same events.
type Framer interface {
	// Feed takes the next piece. It gives each event to emit once its last byte (the blank line, the line end) is there.
	Feed(p []byte, emit func(Event)) error
	// Close takes the end of the body: a last event without its line end is given to emit.
	Close(emit func(Event)) error
}

// SSE frames text/event-stream. Lines end in LF, CR LF or CR; one blank after the colon is dropped; lines that begin with a
// colon are comments. An event without a data line is given on only when it has a name. The zero SSE is ready.
type SSE struct {
	Max int // bound of one event in bytes; 0 = MaxEvent

	line    []byte // the unfinished line
	data    []byte
	name    []byte
	comment []byte
	hasData bool
	skipLF  bool // the last byte was a CR
	begun   bool
}

// Feed implements Framer.
func (s *SSE) Feed(p []byte, emit func(Event)) error {
	for len(p) > 0 {
		if n := s.direct(p, emit); n > 0 {
			p = p[n:]
			continue
		}
		if s.skipLF {
			s.skipLF = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		k := lineEnd(p)
		if k < 0 {
			s.line = append(s.line, p...)
			return s.bound(len(s.line))
		}
		s.skipLF = p[k] == '\r'
		line := p[:k]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		if err := s.bound(len(line)); err != nil {
			return err
		}
		s.take(line, emit)
		s.line = s.line[:0]
		p = p[k+1:]
	}
	return nil
}

// direct handles what nearly all bytes of nearly all streams are: an event that begins with the piece, is one line of data with a
// line feed at its end, and ends in the piece. Nothing is copied. It returns the number of bytes taken, 0 for anything else.
func (s *SSE) direct(p []byte, emit func(Event)) int {
	const field = "data: "
	if len(p) < len(field) || string(p[:len(field)]) != field || !s.begun || s.skipLF || s.hasData || len(s.line)+len(s.name)+len(s.comment) > 0 {
		return 0
	}
	k := bytes.IndexByte(p, '\n')
	if k < 0 || k+1 == len(p) || p[k+1] != '\n' || k > bound(s.Max) || bytes.IndexByte(p[:k], '\r') >= 0 {
		return 0
	}
	emit(Event{Data: p[len(field):k]})
	return k + 2
}

// lineEnd returns the offset of the first CR or LF, or -1: two vectorised searches, since a CR is rare.
func lineEnd(p []byte) int {
	k := bytes.IndexByte(p, '\n')
	if k < 0 {
		return bytes.IndexByte(p, '\r')
	}
	if r := bytes.IndexByte(p[:k], '\r'); r >= 0 {
		return r
	}
	return k
}

// Close implements Framer.
func (s *SSE) Close(emit func(Event)) error {
	if len(s.line) > 0 {
		s.take(s.line, emit)
		s.line = s.line[:0]
	}
	s.dispatch(emit)
	return nil
}

// bound refuses a line that would make the event too large.
func (s *SSE) bound(line int) error {
	if most := bound(s.Max); line+len(s.data) > most {
		return fmt.Errorf("event above %d bytes", most)
	}
	return nil
}

func bound(most int) int {
	if most == 0 {
		return MaxEvent
	}
	return most
}

// take handles one line without its end.
func (s *SSE) take(line []byte, emit func(Event)) {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	if len(line) == 0 {
		s.dispatch(emit)
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(field) {
	case "":
		s.comment = append(s.comment[:0], value...)
	case "data":
		if s.hasData {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
		s.hasData = true
	case "event":
		s.name = append(s.name[:0], value...)
	}
}

func (s *SSE) dispatch(emit func(Event)) {
	if s.hasData || len(s.name) > 0 {
		ev := Event{Name: s.name, Comment: s.comment}
		if s.hasData {
			if s.data == nil {
				s.data = []byte{} // a data line without a value is data all the same
			}
			ev.Data = s.data
		}
		emit(ev)
	}
	s.data, s.name, s.comment, s.hasData = s.data[:0], s.name[:0], s.comment[:0], false
}

// Lines frames a body of one JSON value a line (NDJSON). Blank lines are dropped. The zero Lines is ready.
type Lines struct {
	Max  int // bound of one line in bytes; 0 = MaxEvent
	line []byte
}

// Feed implements Framer.
func (l *Lines) Feed(p []byte, emit func(Event)) error {
	for len(p) > 0 {
		k := bytes.IndexByte(p, '\n')
		if k < 0 {
			l.line = append(l.line, p...)
			return l.bound(len(l.line))
		}
		line := p[:k]
		if len(l.line) > 0 {
			l.line = append(l.line, line...)
			line = l.line
		}
		if err := l.bound(len(line)); err != nil {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			emit(Event{Data: line})
		}
		l.line = l.line[:0]
		p = p[k+1:]
	}
	return nil
}

func (l *Lines) bound(line int) error {
	if most := bound(l.Max); line > most {
		return fmt.Errorf("line above %d bytes", most)
	}
	return nil
}

// Close implements Framer.
func (l *Lines) Close(emit func(Event)) error {
	if line := bytes.TrimSpace(l.line); len(line) > 0 {
		emit(Event{Data: line})
	}
	l.line = l.line[:0]
	return nil
}
