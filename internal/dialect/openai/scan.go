package openai

// scanner reads one event member by member. The first thing that is out of the ordinary makes it bad, and it stays so: then
// encoding/json is to decide. Out of the ordinary are errors, values of another type than the usual one, a known key that comes
// twice, and a key that encoding/json might take for a known one (it ignores case).
type scanner struct {
	b   []byte
	i   int
	bad bool
	to  *chunk
	at  *form // remembers where the values stood
}

// event reads the whole of b.
func (s *scanner) event() bool {
	s.i = afterSpace(s.b, 0)
	var seen set
	choices := false
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		switch string(k) {
		case "choices":
			s.once(&seen, 0)
			choices = true // and no null: without choices an event may be an error
			s.choices()
		case "usage":
			if s.once(&seen, 1); !s.null() {
				s.usage()
			}
		case "timings":
			if s.once(&seen, 2); !s.null() {
				s.timings()
			}
		case "reasoning_tokens":
			s.once(&seen, 3)
			s.count(topReasoning)
		case "object":
			s.once(&seen, 4)
			s.object()
		case "error":
			s.once(&seen, 5)
			s.onlyNull()
		case "nvext":
			s.once(&seen, 6)
			s.onlyNull()
		case "metrics":
			s.once(&seen, 7)
			s.onlyNull()
		case "type", "message", "detail", "code":
			s.bad = true
		default:
			s.other(k)
		}
	}
	return !s.bad && choices && afterSpace(s.b, s.i) == len(s.b)
}

// object reads the kind of event. An error says so in it.
func (s *scanner) object() {
	if s.peek() != '"' {
		s.bad = true
		return
	}
	start := s.i + 1
	end, escaped, ok := endOfString(s.b, start)
	s.i = end + 1
	s.bad = s.bad || !ok || escaped || string(s.b[start:end]) == "error"
}

func (s *scanner) choices() {
	for more := s.firstItem(); more; more = s.nextItem() {
		if s.to.choices == maxChoices {
			s.bad = true
			return
		}
		s.choice(uint8(s.to.choices))
		s.to.choices++
	}
}

func (s *scanner) choice(n uint8) {
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		switch string(k) {
		case "index":
			s.once(&seen, 0)
			s.number(cell{kind: choiceIndex, of: n})
		case "delta":
			if s.once(&seen, 1); !s.null() {
				s.delta(n)
			}
		case "text":
			s.once(&seen, 2)
			s.text(cell{kind: choiceText, what: plainText, of: n})
		case "finish_reason":
			s.once(&seen, 3)
			s.text(cell{kind: choiceText, what: finishText, of: n})
		case "token_ids":
			if s.once(&seen, 4); !s.null() {
				s.cell(cell{kind: choiceIDs, of: n})
			}
		case "message":
			s.once(&seen, 5)
			s.onlyNull()
		default:
			s.other(k)
		}
	}
}

func (s *scanner) delta(n uint8) {
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		what := 0
		switch string(k) {
		case "content":
			what = contentText
		case "reasoning":
			what = reasoningText
		case "reasoning_content":
			what = reasoningContentText
		case "refusal":
			what = refusalText
		case "tool_calls":
			if s.once(&seen, nTexts); !s.null() {
				s.toolCalls(n)
			}
			continue
		case "function_call":
			s.once(&seen, nTexts+1)
			s.onlyNull()
			continue
		default:
			s.other(k)
			continue
		}
		s.once(&seen, what)
		s.text(cell{kind: choiceText, what: uint8(what), of: n})
	}
}

func (s *scanner) toolCalls(n uint8) {
	for more := s.firstItem(); more; more = s.nextItem() {
		if s.to.tools == maxTools {
			s.bad = true
			return
		}
		s.toolCall(uint8(s.to.tools))
		s.to.tools++
		s.to.choice[n].tools++
	}
}

func (s *scanner) toolCall(n uint8) {
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		switch string(k) {
		case "index":
			s.once(&seen, 0)
			s.number(cell{kind: toolIndex, of: n})
		case "id":
			s.once(&seen, 1)
			s.text(cell{kind: toolText, what: toolID, of: n})
		case "function":
			if s.once(&seen, 2); !s.null() {
				s.function(n)
			}
		default:
			s.other(k)
		}
	}
}

func (s *scanner) function(n uint8) {
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		switch string(k) {
		case "name":
			s.once(&seen, 0)
			s.text(cell{kind: toolText, what: toolName, of: n})
		case "arguments":
			s.once(&seen, 1)
			s.text(cell{kind: toolText, what: toolArguments, of: n})
		default:
			s.other(k)
		}
	}
}

func (s *scanner) usage() {
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		switch string(k) {
		case "prompt_tokens":
			s.once(&seen, 0)
			s.count(promptTokens)
		case "completion_tokens":
			s.once(&seen, 1)
			s.count(completionTokens)
		case "reasoning_tokens":
			s.once(&seen, 2)
			s.count(usageReasoning)
		case "prompt_tokens_details":
			if s.once(&seen, 3); !s.null() {
				s.details("cached_tokens", cachedTokens)
			}
		case "completion_tokens_details":
			if s.once(&seen, 4); !s.null() {
				s.details("reasoning_tokens", detailsReasoning)
			}
		default:
			s.other(k)
		}
	}
}

// details reads an object in which one count matters.
func (s *scanner) details(key string, what int) {
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		if string(k) == key {
			s.once(&seen, 0)
			s.count(what)
		} else {
			s.other(k)
		}
	}
}

func (s *scanner) timings() {
	s.to.timings = true
	var seen set
	for k, more := s.firstKey(); more; k, more = s.nextKey() {
		switch string(k) {
		case "cache_n":
			s.once(&seen, 0)
			s.count(cacheN)
		case "prompt_n":
			s.once(&seen, 1)
			s.count(promptN)
		case "prompt_ms":
			s.once(&seen, 2)
			s.time(promptMS)
		case "predicted_n":
			s.once(&seen, 3)
			s.count(predictedN)
		case "predicted_ms":
			s.once(&seen, 4)
			s.time(predictedMS)
		default:
			s.other(k)
		}
	}
}

// other passes over the value of a key that is not known.
func (s *scanner) other(key []byte) {
	for _, c := range key {
		if 'A' <= c && c <= 'Z' || c >= 0x80 {
			s.bad = true
			return
		}
	}
	switch c := s.peek(); {
	case c == '"':
		s.text(cell{kind: skippedText})
	case c == 't' || c == 'f' || c == 'n':
		end, ok := endOfWord(s.b, s.i)
		s.i = end
		s.bad = s.bad || !ok
	case c == '{' || c == '[':
		s.cell(cell{kind: skippedValue})
	default:
		s.cell(cell{kind: skippedNumber})
	}
}

// count reads a number of tokens, or null.
func (s *scanner) count(what int) {
	if !s.null() {
		s.cell(cell{kind: aCount, what: uint8(what)})
		s.to.told |= 1 << what
	}
}

// time reads a number of milliseconds, or null.
func (s *scanner) time(what int) {
	if !s.null() {
		s.cell(cell{kind: aTime, what: uint8(what)})
		s.to.timed |= 1 << what
	}
}

func (s *scanner) number(c cell) {
	if !s.null() {
		s.cell(c)
	}
}

// text reads a string, or null.
func (s *scanner) text(c cell) {
	if s.null() {
		return
	}
	if s.peek() != '"' {
		s.bad = true
		return
	}
	s.i++
	s.cell(c)
	s.i++ // the closing quote
}

// cell reads a value and remembers where it stood.
func (s *scanner) cell(c cell) {
	if s.bad {
		return
	}
	end, ok := s.to.take(&c, s.b, s.i)
	s.at.add(c, s.b, s.i, end)
	s.i, s.bad = end, !ok
}

func (s *scanner) null() bool {
	if hasPrefix(s.b, s.i, "null") {
		s.i += 4
		return true
	}
	return false
}

func (s *scanner) onlyNull() { s.bad = !s.null() || s.bad }

// peek returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// set has the known keys of an object that have come.
type set uint16

// once refuses a key that comes a second time: what encoding/json makes of one depends on its type.
func (s *scanner) once(seen *set, key int) {
	s.bad = s.bad || *seen>>key&1 != 0
	*seen |= 1 << key
}

// firstKey enters an object and returns its first key, or false when it has none. The value is what comes next.
func (s *scanner) firstKey() (key []byte, more bool) {
	if s.bad || s.peek() != '{' {
		s.bad = true
		return nil, false
	}
	s.i = afterSpace(s.b, s.i+1)
	if s.peek() == '}' {
		s.i++
		return nil, false
	}
	return s.key()
}

// nextKey returns the key behind a value, or false at the end of the object.
func (s *scanner) nextKey() (key []byte, more bool) {
	if s.bad {
		return nil, false
	}
	s.i = afterSpace(s.b, s.i)
	switch s.peek() {
	case ',':
		s.i = afterSpace(s.b, s.i+1)
		return s.key()
	case '}':
		s.i++
	default:
		s.bad = true
	}
	return nil, false
}

func (s *scanner) key() (key []byte, more bool) {
	if s.peek() != '"' {
		s.bad = true
		return nil, false
	}
	start := s.i + 1
	end, escaped, ok := endOfString(s.b, start)
	if !ok || escaped {
		s.bad = true
		return nil, false
	}
	if s.i = afterSpace(s.b, end+1); s.peek() != ':' {
		s.bad = true
		return nil, false
	}
	s.i = afterSpace(s.b, s.i+1)
	return s.b[start:end], true
}

// firstItem enters an array and tells whether it has an item, which comes next.
func (s *scanner) firstItem() bool {
	if s.bad || s.peek() != '[' {
		s.bad = true
		return false
	}
	s.i = afterSpace(s.b, s.i+1)
	if s.peek() == ']' {
		s.i++
		return false
	}
	return true
}

// nextItem tells whether another item follows, which comes next.
func (s *scanner) nextItem() bool {
	if s.bad {
		return false
	}
	s.i = afterSpace(s.b, s.i)
	switch s.peek() {
	case ',':
		s.i = afterSpace(s.b, s.i+1)
		return true
	case ']':
		s.i++
	default:
		s.bad = true
	}
	return false
}
