package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
)

// asking is the body of a chat or a completion in the form of the OpenAI API, as far as it has a meaning here. Sampling parameters,
// logprobs and stop strings are accepted and have no effect: the text depends on the prompt and the seed alone.
type asking struct {
	Model         string          `json:"model"`
	Messages      *[]messageBody  `json:"messages"`
	Prompt        json.RawMessage `json:"prompt"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage         bool  `json:"include_usage"`
		ContinuousUsageStats *bool `json:"continuous_usage_stats"`
	} `json:"stream_options"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	MinTokens           int             `json:"min_tokens"`
	IgnoreEOS           bool            `json:"ignore_eos"`
	N                   *int            `json:"n"`
	Echo                bool            `json:"echo"`
	Seed                *int64          `json:"seed"`
	ReturnTokenIDs      bool            `json:"return_token_ids"`
	CacheSalt           string          `json:"cache_salt"`
	Tools               []toolBody      `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`

	// Names of single engines.
	InputIDs       json.RawMessage `json:"input_ids"`        // SGLang, LMDeploy
	PromptTokenIDs json.RawMessage `json:"prompt_token_ids"` // TensorRT-LLM
	Detokenize     *bool           `json:"detokenize"`       // TensorRT-LLM
	MinNewTokens   int             `json:"min_new_tokens"`   // LMDeploy
	Nvext          *struct {       // Dynamo, NIM 1.x
		TokenData   json.RawMessage `json:"token_data"`
		IgnoreEOS   bool            `json:"ignore_eos"`
		Annotations []string        `json:"annotations"`
		Extra       []string        `json:"extra_fields"`
	} `json:"nvext"`
}

// toolBody is a tool in the form of the OpenAI API, of its Responses, and of Anthropic's.
type toolBody struct {
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// mustCall is the tool that a request demands to be called: the first, where the choice leaves none but a call.
func mustCall(tools []toolBody, choice json.RawMessage) string {
	if len(tools) == 0 {
		return ""
	}
	name := cmp.Or(tools[0].Name, tools[0].Function.Name)
	var word string
	if json.Unmarshal(choice, &word) == nil {
		if word == "required" {
			return name
		}
		return ""
	}
	var named struct {
		Type string `json:"type"`
		toolBody
	}
	if json.Unmarshal(choice, &named) != nil {
		return ""
	}
	switch named.Type {
	case "any":
		return name
	case "tool", "function":
		return cmp.Or(named.Name, named.Function.Name)
	}
	return ""
}

// habits are what the OpenAI fronts of engines do differently.
type habits struct {
	completion int  // max_tokens of a completion that gives none; 0 = what the context has room for
	anyModel   bool // the name is not looked at
	noForce    bool // no ignore_eos and min_tokens
	noIDs      bool // no token ids as a prompt
	ids        func(in *asking) json.RawMessage
	countAll   bool // stream_options alone asks for usage in every chunk
	nullUsage  bool // every chunk has a usage of null, where usage is asked
	truncate   bool
}

// chat reads POST /v1/chat/completions.
func (h habits) chat(s *Server, req *request) (*wish, *apiError) { return h.read(s, req, true) }

// complete reads POST /v1/completions.
func (h habits) complete(s *Server, req *request) (*wish, *apiError) { return h.read(s, req, false) }

func (h habits) read(s *Server, req *request, chat bool) (*wish, *apiError) {
	var in asking
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	w := &wish{chat: chat, stream: in.Stream, tokenIDs: in.ReturnTokenIDs || in.Detokenize != nil && !*in.Detokenize, salt: in.CacheSalt,
		seed: in.Seed, limit: in.MaxTokens, limitName: "max_tokens", truncate: h.truncate}
	if in.StreamOptions != nil {
		if !in.Stream {
			return nil, unprocessable("stream_options", "Value error, Stream options can only be defined when `stream=True`.")
		}
		w.usage = in.StreamOptions.IncludeUsage || h.countAll
		w.continuous = w.usage && (h.nullUsage || in.StreamOptions.ContinuousUsageStats != nil && *in.StreamOptions.ContinuousUsageStats ||
			in.StreamOptions.ContinuousUsageStats == nil && h.countAll)
	}
	if !h.anyModel {
		if err := s.checkModel(in.Model); err != nil {
			return nil, err
		}
	}
	if in.N != nil && *in.N != 1 {
		return nil, invalid("the simulated engine gives one choice: n must be 1")
	}
	if in.Echo {
		return nil, invalid("the simulated engine does not echo the prompt")
	}
	if !h.noForce {
		w.min, w.ignoreEOS = max(in.MinTokens, in.MinNewTokens), in.IgnoreEOS || in.Nvext != nil && in.Nvext.IgnoreEOS
	}
	var ids json.RawMessage
	if h.ids != nil {
		ids = h.ids(&in)
	}
	var err *apiError
	switch {
	case len(ids) > 0 && ids[0] == '[':
		w.prompt, err = tokenList(ids)
		w.exact = true
	case chat:
		w.prompt, err = chatPrompt(in.Messages)
	default:
		w.prompt, w.exact, err = textPrompt(in.Prompt)
	}
	switch {
	case err != nil:
		return nil, err
	case w.exact && h.noIDs:
		return nil, invalid("the prompt must be a string")
	}
	if in.Nvext != nil {
		w.notes, w.reason = in.Nvext.Annotations, len(in.Nvext.Extra) > 0
	}
	if chat {
		w.call = mustCall(in.Tools, in.ToolChoice)
		if in.MaxCompletionTokens != nil {
			w.limit, w.limitName = in.MaxCompletionTokens, "max_completion_tokens"
		}
	} else {
		w.fallback = h.completion
	}
	return w, nil
}

// responses reads POST /v1/responses.
func (h habits) responses(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Model        string          `json:"model"`
		Input        json.RawMessage `json:"input"`
		Instructions string          `json:"instructions"`
		Stream       bool            `json:"stream"`
		MaxTokens    *int            `json:"max_output_tokens"`
		Seed         *int64          `json:"seed"`
		IgnoreEOS    bool            `json:"ignore_eos"`
		MinTokens    int             `json:"min_tokens"`
		Tools        []toolBody      `json:"tools"`
		ToolChoice   json.RawMessage `json:"tool_choice"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if !h.anyModel {
		if err := s.checkModel(in.Model); err != nil {
			return nil, err
		}
	}
	messages := []messageBody{{Role: "user", Content: in.Input}}
	if raw := bytes.TrimSpace(in.Input); len(raw) > 0 && raw[0] == '[' {
		messages = nil
		if err := json.Unmarshal(raw, &messages); err != nil {
			return nil, badJSON(err)
		}
	} else if len(raw) == 0 {
		return nil, missingField("input")
	}
	if in.Instructions != "" {
		messages = append([]messageBody{{Role: "system", Content: appendQuoted(nil, in.Instructions)}}, messages...)
	}
	prompt, err := chatPrompt(&messages)
	if err != nil {
		return nil, err
	}
	w := &wish{chat: true, stream: in.Stream, prompt: prompt, limit: in.MaxTokens, limitName: "max_output_tokens", seed: in.Seed,
		call: mustCall(in.Tools, in.ToolChoice)}
	if !h.noForce {
		w.min, w.ignoreEOS = in.MinTokens, in.IgnoreEOS
	}
	return w, nil
}

// messages reads POST /v1/messages, Anthropic's.
func (h habits) messages(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Model      string          `json:"model"`
		Messages   *[]messageBody  `json:"messages"`
		System     json.RawMessage `json:"system"`
		Stream     bool            `json:"stream"`
		MaxTokens  *int            `json:"max_tokens"`
		Tools      []toolBody      `json:"tools"`
		ToolChoice json.RawMessage `json:"tool_choice"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if !h.anyModel {
		if err := s.checkModel(in.Model); err != nil {
			return nil, err
		}
	}
	switch {
	case in.MaxTokens == nil:
		return nil, missingField("max_tokens")
	case in.Messages == nil:
		return nil, missingField("messages")
	}
	list := *in.Messages
	if len(in.System) > 0 {
		list = append([]messageBody{{Role: "system", Content: in.System}}, list...)
	}
	prompt, err := chatPrompt(&list)
	if err != nil {
		return nil, err
	}
	return &wish{chat: true, stream: in.Stream, prompt: prompt, limit: in.MaxTokens, limitName: "max_tokens", truncate: h.truncate,
		call: mustCall(in.Tools, in.ToolChoice)}, nil
}
