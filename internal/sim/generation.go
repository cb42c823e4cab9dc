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

// defaultCompletion is vLLM's max_tokens of a completion that gives none.
const defaultCompletion = 16

// completionBody is the body of a chat or a completion, as far as it has a meaning here. Sampling parameters, logprobs and stop
// strings are accepted and have no effect: the text depends on the prompt and the seed alone.
type completionBody struct {
	Model         string          `json:"model"`
	Messages      *[]messageBody  `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage         bool `json:"include_usage"`
		ContinuousUsageStats bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	MaxTokens           *int   `json:"max_tokens"`
	MaxCompletionTokens *int   `json:"max_completion_tokens"`
	MinTokens           int    `json:"min_tokens"`
	IgnoreEOS           bool   `json:"ignore_eos"`
	N                   *int   `json:"n"`
	Echo                bool   `json:"echo"`
	Seed                *int64 `json:"seed"`
	ReturnTokenIDs      bool   `json:"return_token_ids"`
	CacheSalt           string `json:"cache_salt"`
}

type messageBody struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// generation is a request to generate, checked, with the answer's length decided.
type generation struct {
	chat       bool
	stream     bool
	usage      bool // token counts in the stream
	continuous bool // in every chunk
	tokenIDs   bool
	noUsage    bool // by a fault, also where the API demands it

	model   string
	id      string
	created int64 // Unix seconds
	salt    string

	prompt []int32
	cached int // prompt tokens from the prefix cache
	text   writer
	output int    // tokens of the answer, with the end token if it ends itself
	finish string // stop or length
	limit  int    // max_tokens as it holds, for the metrics
}

// parseGeneration checks a request body as vLLM does.
func (s *Server) parseGeneration(chat bool, body []byte) (*generation, *apiError) {
	var in completionBody
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, badJSON(err)
	}
	g := &generation{chat: chat, stream: in.Stream, model: s.cfg.Model, tokenIDs: in.ReturnTokenIDs, salt: in.CacheSalt}
	if in.StreamOptions != nil {
		if !in.Stream {
			return nil, unprocessable("stream_options", "Value error, Stream options can only be defined when `stream=True`.")
		}
		g.usage = in.StreamOptions.IncludeUsage
		g.continuous = g.usage && in.StreamOptions.ContinuousUsageStats
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	if in.N != nil && *in.N != 1 {
		return nil, invalid("the simulated engine gives one choice: n must be 1")
	}
	if in.Echo {
		return nil, invalid("the simulated engine does not echo the prompt")
	}
	var exact bool // the prompt came as ids
	var err *apiError
	if chat {
		g.prompt, err = chatPrompt(in.Messages)
	} else {
		g.prompt, exact, err = textPrompt(in.Prompt)
	}
	if err != nil {
		return nil, err
	}
	limit, name := in.MaxTokens, "max_tokens"
	if chat && in.MaxCompletionTokens != nil {
		limit, name = in.MaxCompletionTokens, "max_completion_tokens"
	}
	if err := s.decideLength(g, &in, limit, name, exact); err != nil {
		return nil, err
	}
	seed := s.cfg.Seed
	if in.Seed != nil {
		seed = mix(seed ^ uint64(*in.Seed))
	}
	g.text = newWriter(g.prompt, seed)
	return g, nil
}

func (s *Server) checkModel(name string) *apiError {
	if name == "" || name == s.cfg.Model {
		return nil
	}
	return &apiError{http.StatusNotFound, "NotFoundError", "model",
		fmt.Sprintf("The model `%s` does not exist. Valid aliases: %s.", name, s.cfg.Model)}
}

// decideLength checks the lengths and decides how long the answer is and how it ends.
func (s *Server) decideLength(g *generation, in *completionBody, limit *int, name string, exact bool) *apiError {
	window, prompt := s.cfg.MaxModelLen, len(g.prompt)
	if limit != nil && *limit > window {
		return invalidParam(name, *limit, "%s=%d cannot be greater than max_model_len=%d. Please request fewer output tokens.",
			name, *limit, window)
	}
	if prompt == 0 {
		return invalid("The decoder prompt cannot be empty")
	}
	if prompt > window {
		// vLLM stops to tokenize one token past the limit
		n, atLeast := prompt, ""
		if !exact {
			n, atLeast = window+1, "at least "
		}
		return invalidParam("input_tokens", n, "This model's maximum context length is %d tokens. However, your prompt contains %s%d "+
			"input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.",
			window, atLeast, n)
	}
	most := window - prompt
	if limit != nil {
		most = min(most, *limit)
	} else if !g.chat {
		most = min(most, defaultCompletion)
	}
	if most < 1 {
		return invalid(fmt.Sprintf("max_tokens must be at least 1, got %d.", most))
	}
	if in.MinTokens < 0 || in.MinTokens > most {
		return invalid(fmt.Sprintf("min_tokens must be less than or equal to max_tokens=%d, got %d.", most, in.MinTokens))
	}
	g.limit, g.output, g.finish = most, most, "length"
	if in.IgnoreEOS {
		return nil
	}
	wanted := most
	switch {
	case s.cfg.Output.Defined():
		wanted = s.cfg.Output.length(rng.New(mix(uint64(newWriter(g.prompt, s.cfg.Seed))), "sim/output"))
	case limit == nil && g.chat:
		wanted = DefaultOutput
	}
	if wanted = max(wanted, in.MinTokens); wanted < most {
		g.output, g.finish = wanted, "stop"
	}
	return nil
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
		if p.Type != "text" {
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

// name gives the generation its id, from the client's own when it sent one, as vLLM does.
func (g *generation) name(client string, seed, number uint64, now time.Time) {
	if client == "" {
		client = fmt.Sprintf("%016x", mix(seed^mix(number)))
	}
	g.id, g.created = "cmpl-"+client, now.Unix()
	if g.chat {
		g.id = "chatcmpl-" + client
	}
}
