package sim

import (
	"strconv"
	"time"
)

// vocabularyOf are the words of a form. Those of text and tokens hold for the event that is being written, times for now.
var vocabularyOf = map[string]func(b []byte, s *speech) []byte{
	// the request
	"id":      func(b []byte, s *speech) []byte { return appendQuoted(b, s.g.id) },
	"hex":     func(b []byte, s *speech) []byte { return append(b, s.g.hex...) },
	"model":   func(b []byte, s *speech) []byte { return appendQuoted(b, s.g.model) },
	"created": func(b []byte, s *speech) []byte { return strconv.AppendInt(b, s.g.created, 10) },
	"limit":   func(b []byte, s *speech) []byte { return number(b, s.g.limit) },
	"input":   func(b []byte, s *speech) []byte { return appendQuoted(b, detokenize(s.g.prompt)) },
	"inputids": func(b []byte, s *speech) []byte {
		return appendIDs(b, s.g.prompt)
	},

	// tokens
	"prompt":   func(b []byte, s *speech) []byte { return number(b, len(s.g.prompt)) },
	"cached":   func(b []byte, s *speech) []byte { return number(b, s.g.cached) },
	"uncached": func(b []byte, s *speech) []byte { return number(b, len(s.g.prompt)-s.g.cached) },
	"output":   func(b []byte, s *speech) []byte { return number(b, s.counted(s.g.output)) },
	"total":    func(b []byte, s *speech) []byte { return number(b, len(s.g.prompt)+s.counted(s.g.output)) },
	"sent":     func(b []byte, s *speech) []byte { return number(b, s.counted(s.to)) },
	"sum":      func(b []byte, s *speech) []byte { return number(b, len(s.g.prompt)+s.counted(s.to)) },
	"fresh":    func(b []byte, s *speech) []byte { return number(b, s.to-s.from) },
	"thoughts": func(b []byte, s *speech) []byte { return number(b, min(s.g.think, s.to)) },
	"held":     func(b []byte, s *speech) []byte { return number(b, len(s.g.prompt)+s.g.output-1) },
	"details": func(b []byte, s *speech) []byte { // of completion tokens, null without reasoning
		if s.g.think == 0 {
			return append(b, "null"...)
		}
		return append(number(append(b, `{"reasoning_tokens":`...), min(s.g.think, s.to)), '}')
	},

	// ids
	"token":  func(b []byte, s *speech) []byte { return number(b, int(s.g.token(s.from))) },
	"latest": func(b []byte, s *speech) []byte { return number(b, int(s.g.token(s.to-1))) },
	"ids":    func(b []byte, s *speech) []byte { return s.ids(b, s.from, s.to) },
	"idsall": func(b []byte, s *speech) []byte { return s.ids(b, 0, s.to) },
	"idsasked": func(b []byte, s *speech) []byte {
		if !s.g.tokenIDs {
			return append(b, "null"...)
		}
		return s.ids(b, s.from, s.to)
	},
	"context": func(b []byte, s *speech) []byte {
		b = append(append(b, '['), appendIDs(nil, s.g.prompt)[1:]...)
		for i := range s.g.output {
			b = append(b[:len(b)-1], ',')
			b = append(number(b, int(s.g.token(i))), ']')
		}
		return b
	},
	"special": func(b []byte, s *speech) []byte { return strconv.AppendBool(b, s.g.token(s.from) == endToken) },

	// text
	"text":  func(b []byte, s *speech) []byte { return s.quoted(b, s.from, s.to) },
	"sofar": func(b []byte, s *speech) []byte { return s.quoted(b, s.begin, s.to) },
	"all":   func(b []byte, s *speech) []byte { return s.quoted(b, 0, s.to) },
	"answer": func(b []byte, s *speech) []byte {
		if s.g.call != "" {
			return append(b, "null"...)
		}
		return s.quoted(b, s.g.think, s.g.output)
	},
	"said": func(b []byte, s *speech) []byte { // as answer, but never null
		if s.g.call != "" {
			return append(b, `""`...)
		}
		return s.quoted(b, s.g.think, s.g.output)
	},
	"thinking": func(b []byte, s *speech) []byte {
		if s.g.think == 0 {
			return append(b, "null"...)
		}
		return s.quoted(b, 0, s.g.think)
	},
	"spelled": func(b []byte, s *speech) []byte { // a special token has a text too
		if s.g.token(s.from) == endToken {
			return append(b, `"<|end|>"`...)
		}
		return s.quoted(b, s.from, s.to)
	},

	// tools
	"tool":      func(b []byte, s *speech) []byte { return appendQuoted(b, s.g.call) },
	"arguments": func(b []byte, s *speech) []byte { return s.quoted(b, s.g.think, s.g.output) },
	"object": func(b []byte, s *speech) []byte { // the arguments, as they are
		for i := s.g.think; i < s.g.output; i++ {
			b = s.g.appendCall(b, i, "")
		}
		return b
	},
	"thought": func(b []byte, s *speech) []byte { return s.optional(b, s.g.think > 0, s.f.think.whole) },
	"called":  func(b []byte, s *speech) []byte { return s.optional(b, s.g.call != "", s.f.call.whole) },
	"calls": func(b []byte, s *speech) []byte { // as called, but null without a call
		if s.g.call == "" {
			return append(b, "null"...)
		}
		return s.expand(b, s.f.call.whole)
	},
	"parts": func(b []byte, s *speech) []byte {
		for i := 0; i < s.g.output; {
			p, begin, end := s.partAt(i)
			if i > 0 {
				b = append(b, ',')
			}
			s.p, s.begin, s.from, s.to = p, begin, begin, end
			b = s.expand(b, p.whole)
			i = end
		}
		s.from = 0
		return b
	},

	// the stream
	"inputonce": func(b []byte, s *speech) []byte { // a field of the first event only
		if s.from > 0 {
			return b
		}
		return append(appendIDs(append(b, `"prompt_token_ids":`...), s.g.prompt), ',')
	},
	"orusage": func(b []byte, s *speech) []byte { // the usage so far, or null
		if !s.g.continuous || s.g.noUsage {
			return append(b, "null"...)
		}
		return s.expand(b, s.f.running)
	},
	"roleonce": func(b []byte, s *speech) []byte { // in the first chunk only
		if s.from > 0 {
			return b
		}
		return append(b, `,"role":"assistant"`...)
	},
	"roleandonce": func(b []byte, s *speech) []byte { // the same, in front of others
		if s.from > 0 {
			return b
		}
		return append(b, `"role":"assistant",`...)
	},
	"thinkingtokens": func(b []byte, s *speech) []byte { // where there are some
		if s.g.think == 0 {
			return b
		}
		return append(number(append(b, `,"output_tokens_details":{"thinking_tokens":`...), s.g.think), '}')
	},
	"unlessids": func(b []byte, s *speech) []byte { // the text, unless ids were asked for in its place
		if s.g.tokenIDs {
			return append(b, `""`...)
		}
		return s.quoted(b, s.from, s.to)
	},
	"running": func(b []byte, s *speech) []byte { return s.optional(b, s.g.continuous && !s.g.noUsage, s.f.running) },
	"ifasked": func(b []byte, s *speech) []byte { return s.optional(b, s.g.usage && !s.g.noUsage, s.f.asked) },
	"orasked": func(b []byte, s *speech) []byte {
		if !s.g.usage || s.g.noUsage {
			return append(b, "null"...)
		}
		return s.expand(b, s.f.asked)
	},
	"tokens": func(b []byte, s *speech) []byte {
		for i := range s.g.output {
			if i > 0 {
				b = append(b, ',')
			}
			s.from, s.to = i, i+1
			b = s.expand(b, s.f.token)
		}
		s.from, s.to = 0, s.g.output
		return b
	},
	"unasked":  func(b []byte, s *speech) []byte { return s.optional(b, !s.g.usage, s.f.unasked) },
	"padding":  func(b []byte, s *speech) []byte { return append(b, "xxxxxxxx"[:1+s.to%8]...) },
	"seq":      func(b []byte, s *speech) []byte { s.seq++; return number(b, s.seq-1) },
	"block":    func(b []byte, s *speech) []byte { return number(b, s.block) },
	"finish":   func(b []byte, s *speech) []byte { return s.expand(b, s.reason()) },
	"matched":  func(b []byte, s *speech) []byte { return s.choose(b, strconv.Itoa(endToken), "null") },
	"complete": func(b []byte, s *speech) []byte { return s.choose(b, `"completed"`, `"incomplete"`) },
	"verdict":  func(b []byte, s *speech) []byte { return s.choose(b, `completed`, `incomplete`) },
	"why":      func(b []byte, s *speech) []byte { return s.choose(b, "null", `{"reason":"max_output_tokens"}`) },

	// times
	"now": func(b []byte, s *speech) []byte {
		b = s.g.epoch.Add(s.g.last).UTC().AppendFormat(append(b, '"'), time.RFC3339Nano)
		return append(b, '"')
	},
	"ttftms":   func(b []byte, s *speech) []byte { return millis(b, s.g.first-s.g.arrival) },
	"decodems": func(b []byte, s *speech) []byte { return millis(b, s.g.last-s.g.first) },
	"wholems":  func(b []byte, s *speech) []byte { return millis(b, s.g.last-s.g.arrival) },
	"gapms":    func(b []byte, s *speech) []byte { return millis(b, s.g.gap()) },
	"wholes":   func(b []byte, s *speech) []byte { return decimal(b, (s.g.last - s.g.arrival).Seconds()) },
	"ttftns":   func(b []byte, s *speech) []byte { return number(b, int(s.g.first-s.g.arrival)) },
	"decodens": func(b []byte, s *speech) []byte { return number(b, int(s.g.last-s.g.first)) },
	"wholens":  func(b []byte, s *speech) []byte { return number(b, int(s.g.last-s.g.arrival)) },
	"loadns":   func(b []byte, s *speech) []byte { return number(b, int(loadTime(s.g))) },
	"perprompt": func(b []byte, s *speech) []byte {
		return ratio(b, ms(s.g.first-s.g.arrival), len(s.g.prompt)-s.g.cached)
	},
	"promptrate":  func(b []byte, s *speech) []byte { return rate(b, len(s.g.prompt)-s.g.cached, s.g.first-s.g.arrival) },
	"decoderate":  func(b []byte, s *speech) []byte { return rate(b, s.g.output-1, s.g.last-s.g.first) },
	"wholemsint":  func(b []byte, s *speech) []byte { return number(b, int((s.g.last - s.g.arrival).Milliseconds())) },
	"tokenmsint":  func(b []byte, s *speech) []byte { return number(b, int(s.g.gap().Milliseconds())) },
	"fingerprint": func(b []byte, s *speech) []byte { return appendQuoted(b, s.g.print) },
}

// counted is how many of so many tokens the engine counts.
func (s *speech) counted(n int) int {
	if s.f.endless && n == s.g.output && s.g.ends() {
		return n - 1
	}
	return n
}

func (s *speech) optional(b []byte, yes bool, t text) []byte {
	if !yes {
		return b
	}
	return s.expand(b, t)
}

func (s *speech) reason() text {
	switch s.g.finish {
	case finishStop:
		return s.f.finish.stop
	case finishCall:
		return s.f.finish.call
	}
	return s.f.finish.length
}

// choose picks by whether the model ended by itself.
func (s *speech) choose(b []byte, ended, cut string) []byte {
	if s.g.finish == finishLength {
		return append(b, cut...)
	}
	return append(b, ended...)
}

func (s *speech) ids(b []byte, from, to int) []byte {
	b = append(b, '[')
	for i := from; i < to; i++ {
		if i > from {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(s.g.token(i)), 10)
	}
	return append(b, ']')
}

// quoted appends the text of tokens as a JSON string. Words need no escapes; tool calls are JSON themselves.
func (s *speech) quoted(b []byte, from, to int) []byte {
	b = append(b, '"')
	for i := from; i < to; i++ {
		if s.g.call != "" && i >= s.g.think {
			b = s.g.appendCall(b, i, `\`)
		} else {
			b = appendToken(b, s.g.token(i))
		}
	}
	return append(b, '"')
}

// appendCall appends what the i-th token adds to the arguments of a tool call: an object with one string.
func (g *generation) appendCall(b []byte, i int, escape string) []byte {
	switch {
	case g.output-g.think == 1:
		return append(b, "{}"...)
	case i == g.think:
		return append(b, "{"+escape+`"words`+escape+`":`+escape+`"`...)
	case i == g.output-1:
		return append(b, escape+`"}`...)
	}
	return appendToken(b, g.token(i))
}

// gap is the mean time between tokens.
func (g *generation) gap() time.Duration {
	if g.output < 2 {
		return 0
	}
	return (g.last - g.first) / time.Duration(g.output-1)
}

func number(b []byte, n int) []byte { return strconv.AppendInt(b, int64(n), 10) }

func decimal(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'f', -1, 64) }

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func millis(b []byte, d time.Duration) []byte { return decimal(b, ms(d)) }

func ratio(b []byte, v float64, n int) []byte { return decimal(b, v/float64(max(n, 1))) }

// rate is n a second; 0 when no time has passed.
func rate(b []byte, n int, d time.Duration) []byte {
	if d <= 0 {
		return append(b, '0')
	}
	return decimal(b, float64(n)/d.Seconds())
}
