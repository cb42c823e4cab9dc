package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/rng"
)

type messageBody struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// wish is what a request asks for, whatever the protocol.
type wish struct {
	chat   bool
	stream bool
	prompt []int32
	exact  bool // it came as ids

	limit     *int   // of the answer's tokens; nil = not said
	limitName string // in the words of the protocol
	fallback  int    // the limit when none is said; 0 = what the context has room for
	min       int
	ignoreEOS bool
	seed      *int64
	salt      string

	usage      bool // token counts in the stream
	continuous bool // in every chunk
	tokenIDs   bool
	call       string // the tool that must be called; "" = none
	truncate   bool   // a prompt that is too long is cut, silently
	embeds     bool   // nothing is generated

	lists  [][]int32 // what is embedded, or ranked, each
	texts  []string  // the documents that are ranked
	dims   int       // of a vector
	base64 bool      // vectors are not written as numbers
	top    int       // ranks to return; 0 = all
	echo   bool      // with the documents

	backend bool     // Triton: a model of the vLLM backend
	reason  bool     // Triton: which tells why the answer ended. Dynamo: times are told
	notes   []string // Dynamo: annotations

	loads func(s *Server, id uint64) []byte // the answer to a request without a prompt, where that only loads the model
}

// generation is a request to generate, checked, with the answer's length decided.
type generation struct {
	chat       bool
	stream     bool
	usage      bool // token counts in the stream
	continuous bool // in every chunk
	tokenIDs   bool
	noUsage    bool // by a fault, also where the API demands it
	embeds     bool // nothing is generated: the one token stands for the work

	model   string
	id, hex string
	print   string // system_fingerprint
	created int64  // Unix seconds
	salt    string

	prompt []int32
	cached int // prompt tokens from the prefix cache
	text   writer
	output int    // tokens of the answer, with the end token if it ends itself
	think  int    // of them reasoning, the first ones
	call   string // the tool that is called with the others; "" = they are the answer
	finish string
	limit  int // max_tokens as it holds, for the metrics

	epoch                time.Time     // the server's start
	arrival, first, last time.Duration // of the request, and due times of the first and the latest token
}

// How an answer ends.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishCall   = "tool_calls"
)

// ends tells whether the last token is the end token.
func (g *generation) ends() bool { return g.finish == finishStop }

// writes tells whether the answer has tokens.
func (g *generation) writes() bool { return !g.embeds }

// token is the i-th token of the answer: words, and the end token where the model ends by itself.
func (g *generation) token(i int) int32 {
	if i == g.output-1 && g.ends() {
		return endToken
	}
	return g.text.token(i)
}

// generation checks a wish as vLLM does, and decides how long the answer is.
func (s *Server) generation(w *wish) (*generation, *apiError) {
	g := &generation{chat: w.chat, stream: w.stream, usage: w.usage, continuous: w.continuous, tokenIDs: w.tokenIDs, embeds: w.embeds,
		model: s.cfg.Model, print: s.lang.fingerprint, salt: w.salt, prompt: w.prompt}
	if w.truncate {
		g.prompt = g.prompt[max(0, len(g.prompt)-s.cfg.MaxModelLen/2):]
	}
	if err := s.decideLength(g, w); err != nil {
		return nil, err
	}
	if g.call = w.call; g.call != "" {
		g.finish = finishCall
	}
	g.think = min(s.cfg.Reasoning, g.output-1)
	seed := s.cfg.Seed
	if w.seed != nil {
		seed = mix(seed ^ uint64(*w.seed))
	}
	g.text = newWriter(g.prompt, seed)
	return g, nil
}

func (s *Server) checkModel(name string) *apiError {
	if name == "" || name == s.cfg.Model {
		return nil
	}
	return &apiError{status: http.StatusNotFound, kind: "NotFoundError", param: "model", cause: unknownModel, model: name,
		message: fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", name, s.cfg.Model)}
}

// decideLength checks the lengths and decides how long the answer is and how it ends.
func (s *Server) decideLength(g *generation, w *wish) *apiError {
	window, prompt := s.cfg.MaxModelLen, len(g.prompt)
	if w.limit != nil && *w.limit > window && !w.truncate {
		return invalidParam(w.limitName, *w.limit, "%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.",
			w.limitName, *w.limit, window)
	}
	if prompt == 0 {
		return invalid("The decoder prompt cannot be empty")
	}
	if prompt > window {
		// vLLM stops to tokenize one token past the limit
		n, atLeast := prompt, ""
		if !w.exact {
			n, atLeast = window+1, "at least "
		}
		e := invalidParam("input_tokens", n, "This model's maximum context length is %d tokens. However, your prompt contains %s%d "+
			"input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
			window, atLeast, n)
		e.cause, e.prompt, e.window = tooLong, prompt, window
		return e
	}
	if w.embeds {
		g.limit, g.output, g.finish = 1, 1, finishStop
		return nil
	}
	most := window - prompt
	if w.limit != nil {
		most = min(most, *w.limit)
	} else if w.fallback > 0 {
		most = min(most, w.fallback)
	}
	if most < 1 {
		return invalid(fmt.Sprintf("max_tokens must be at least 1, got %d.", most))
	}
	if w.min < 0 || w.min > most {
		return invalid(fmt.Sprintf("min_tokens must be less than or equal to max_tokens=%d, got %d.", most, w.min))
	}
	g.limit, g.output, g.finish = most, most, finishLength
	if w.ignoreEOS {
		return nil
	}
	wanted := most
	switch {
	case s.cfg.Output.Defined():
		wanted = s.cfg.Output.length(rng.New(mix(uint64(newWriter(g.prompt, s.cfg.Seed))), "sim/output"))
	case w.limit == nil && w.fallback == 0:
		wanted = DefaultOutput
	}
	if wanted = max(wanted, w.min); wanted < most {
		g.output, g.finish = wanted, finishStop
	}
	return nil
}

// name gives the generation its id, from the client's own when it sent one, as vLLM does.
func (g *generation) name(prefix, client string, seed, number uint64, now time.Time) {
	g.hex = fmt.Sprintf("%016x", mix(seed^mix(number)))
	if client == "" {
		client = g.hex
	}
	g.id, g.created = prefix+client, now.Unix()
}

func chatPrompt(messages *[]messageBody) ([]int32, *apiError) {
	if messages == nil {
		return nil, missingField("messages")
	}
	chat, err := chatMessages(*messages)
	if err != nil {
		return nil, err
	}
	return tokenizeChat(chat, true), nil
}

func chatMessages(messages []messageBody) ([]chatMessage, *apiError) {
	out := make([]chatMessage, 0, len(messages))
	for _, m := range messages {
		content, err := messageText(m.Content)
		if err != nil {
			return nil, err
		}
		out = append(out, chatMessage{m.Role, content})
	}
	return out, nil
}

// messageText is the text of a message: a string, a list of text parts, or nothing.
func messageText(raw json.RawMessage) (string, *apiError) {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return "", badJSON(err)
		}
		return text, nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", badJSON(err)
	}
	var text strings.Builder
	for i, p := range parts {
		if p.Type != "text" && p.Type != "input_text" {
			return "", invalid(fmt.Sprintf("the simulated engine reads text only, not a part of type %q", p.Type))
		}
		if i > 0 {
			text.WriteByte('\n')
		}
		text.WriteString(p.Text)
	}
	return text.String(), nil
}

// textPrompt reads the prompt of a completion: a string, a list of token ids, or a list of one of either.
func textPrompt(raw json.RawMessage) (ids []int32, exact bool, err *apiError) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, false, missingField("prompt")
	}
	if raw[0] == '[' {
		var list []json.RawMessage
		if inner := bytes.TrimSpace(raw[1:]); len(inner) > 0 && (inner[0] == '"' || inner[0] == '[') {
			if err := json.Unmarshal(raw, &list); err != nil {
				return nil, false, badJSON(err)
			}
			if len(list) != 1 {
				return nil, false, invalid("the simulated engine takes one prompt in a request")
			}
			raw = list[0]
		}
	}
	if raw[0] == '[' {
		ids, err := tokenList(raw)
		return ids, true, err
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, false, badJSON(err)
	}
	return tokenize(make([]int32, 0, len(text)/4+1), text), false, nil
}

// tokenList reads a list of token ids. A prompt has up to a million of them, hence by hand.
func tokenList(raw []byte) ([]int32, *apiError) {
	out := make([]int32, 0, len(raw)/6+1)
	for i := 1; i < len(raw); {
		switch c := raw[i]; {
		case c == ']' || c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t':
			i++
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(raw) && '0' <= raw[end] && raw[end] <= '9' {
				end++
			}
			id, err := strconv.ParseInt(string(raw[i:end]), 10, 64)
			if err != nil || id < 0 || id >= vocabulary {
				return nil, invalid(fmt.Sprintf("Token id %s is out of vocabulary", raw[i:end]))
			}
			out = append(out, int32(id))
			i = end
		default:
			return nil, unprocessable("body.prompt", "{'type': 'int_type', 'loc': 'body.prompt', 'msg': 'Input should be a valid integer'}")
		}
	}
	return out, nil
}
