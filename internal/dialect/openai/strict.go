package openai

import (
	"bytes"
	"encoding/json"
	"sync"
)

// mostReused bounds the events whose decoding leaves its memory behind for others.
const mostReused = 64 << 10

// strict decodes JSON as json.Unmarshal does. It keeps the buffers between events: two thirds of the allocations.
type strict struct {
	in     bytes.Reader
	json   *json.Decoder
	object object
}

// strictPool lends them to the responses that are decoded at the same time. The zero strictPool is ready.
type strictPool struct{ free sync.Pool }

func (p *strictPool) get() *strict {
	if s, ok := p.free.Get().(*strict); ok {
		return s
	}
	s := &strict{}
	s.json = json.NewDecoder(&s.in)
	return s
}

func (p *strictPool) put(s *strict) {
	s.object = object{}
	s.in.Reset(nil) // the bytes may be used for something else now
	p.free.Put(s)
}

// decode reads b, which holds one value and no space around it, into s.object.
func (s *strict) decode(b []byte) error {
	s.object = object{}
	if len(b) <= mostReused {
		s.in.Reset(b)
		start := s.json.InputOffset()
		if s.json.Decode(&s.object) == nil && s.json.InputOffset()-start == int64(len(b)) {
			return nil
		}
		// an error, after which it is not to be used again, or more than one value: the words are Unmarshal's
		s.json = json.NewDecoder(&s.in)
		s.object = object{}
	}
	return json.Unmarshal(b, &s.object)
}
