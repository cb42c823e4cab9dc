package dialect

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Tool is a function that a model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON schema; nil = none
	Strict      *bool           `json:"strict"`
}

const toolsHint = `a list such as [{"type":"function","function":{"name":"get_time","parameters":{"type":"object"}}}]`

// Tools reads a list of tools in the form of the OpenAI API.
func Tools(list json.RawMessage) ([]Tool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var all []struct {
		Type     string `json:"type"`
		Function *Tool  `json:"function"`
	}
	if err := json.Unmarshal(list, &all); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "the tools are no list in the form of the OpenAI API", toolsHint)
	}
	if len(all) == 0 {
		return nil, fault.New(fault.Usage, "the list of tools is empty", toolsHint)
	}
	var out []Tool
	for i, t := range all {
		if t.Type != "function" || t.Function == nil || t.Function.Name == "" {
			return nil, fault.New(fault.Usage, fmt.Sprintf("tool %d is no function with a name", i+1), toolsHint)
		}
		out = append(out, *t.Function)
	}
	return out, nil
}

// ToolChoice reads the choice of a tool in the form of the OpenAI API: the word auto, none or required, or the name of one tool.
func ToolChoice(choice json.RawMessage) (word, name string, err error) {
	if len(choice) == 0 {
		return "", "", nil
	}
	var one struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	switch err := json.Unmarshal(choice, &word); {
	case err == nil && (word == "auto" || word == "none" || word == "required"):
		return word, "", nil
	case err != nil && json.Unmarshal(choice, &one) == nil && one.Function.Name != "":
		return "", one.Function.Name, nil
	}
	return "", "", fault.New(fault.Usage, fmt.Sprintf("the choice of a tool is %s", choice), "it is auto, none, required or the name of a tool")
}

// NoTools refuses tools at an endpoint that takes none.
func (ep Endpoint) NoTools(o *Options) error {
	if len(o.Tools) == 0 {
		return nil
	}
	return fault.New(fault.Usage, fmt.Sprintf("the %s endpoint takes no tools", ep.Name), "use an endpoint for chats, such as --endpoint chat")
}

// Part is a part of the content of a message.
type Part struct {
	Type  string `json:"type"` // text or image_url, as in the OpenAI API
	Text  string `json:"text"`
	Image struct {
		URL string `json:"url"`
	} `json:"image_url"`
}

// Parts reads the content of a message, which is a text or a list of texts and images.
func (ep Endpoint) Parts(r *bench.Request, m bench.Message) ([]Part, error) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []Part{{Type: "text", Text: text}}, nil
	}
	var parts []Part
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return nil, ep.refuse(r, "a chat with a message that is neither a text nor a list of parts", "")
	}
	for _, p := range parts {
		if p.Type != "text" && (p.Type != "image_url" || p.Image.URL == "") {
			return nil, ep.refuse(r, fmt.Sprintf("a chat with a part of type %q", p.Type), "use --endpoint chat, which sends messages as they are")
		}
	}
	return parts, nil
}

// Split splits the messages of a request into the texts of the system messages that it begins with, and the rest. A text is a message of
// its own.
func (ep Endpoint) Split(r *bench.Request) (system []string, rest []bench.Message, err error) {
	rest = r.Messages
	if len(rest) == 0 {
		content, err := json.Marshal(r.Prompt)
		if err != nil {
			return nil, nil, err
		}
		return nil, []bench.Message{{Role: "user", Content: content}}, nil
	}
	for len(rest) > 0 && (rest[0].Role == "system" || rest[0].Role == "developer") {
		parts, err := ep.Parts(r, rest[0])
		if err != nil {
			return nil, nil, err
		}
		var text strings.Builder
		for _, p := range parts {
			text.WriteString(p.Text)
		}
		system, rest = append(system, text.String()), rest[1:]
	}
	return system, rest, nil
}

// NoIDs refuses token ids at an endpoint that takes none.
func (ep Endpoint) NoIDs(r *bench.Request) error {
	if len(r.Tokens) == 0 {
		return nil
	}
	return ep.refuse(r, "token ids", "use --endpoint completions, or an endpoint of the engine's own")
}
