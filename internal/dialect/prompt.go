package dialect

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// At returns the path with the name of a model in it.
func (ep Endpoint) At(model string) string {
	return strings.ReplaceAll(ep.Path, "{model}", url.PathEscape(model))
}

// Plain returns the prompt of a request for an endpoint that takes no chats and no tools: a text, or token ids where it takes them.
func (ep Endpoint) Plain(r *bench.Request, o *Options) (prompt any, err error) {
	switch {
	case len(r.Tokens) > 0 && !ep.Can.IDsIn:
		return nil, ep.refuse(r, "token ids", "use an endpoint that takes them, or a text")
	case len(r.Messages) > 0:
		return nil, ep.refuse(r, "a chat", "use an endpoint for chats, such as --endpoint chat")
	case len(o.Tools) > 0:
		return nil, ep.NoTools(o)
	case len(r.Tokens) > 0:
		return r.Tokens, nil
	}
	return r.Prompt, nil
}

func (ep Endpoint) refuse(r *bench.Request, what, hint string) error {
	return fault.New(fault.Usage, fmt.Sprintf("request %d is %s, which the %s endpoint cannot take", r.ID, what, ep.Name), hint)
}

// NoFormat refuses a form of the answer that an endpoint cannot be asked for.
func (ep Endpoint) NoFormat(o *Options) error {
	if len(o.ResponseFormat) == 0 {
		return nil
	}
	return fault.New(fault.Usage, fmt.Sprintf("the %s endpoint cannot be asked for a form of the answer", ep.Name), "leave --response-format and --json-schema out")
}

// Schema returns the JSON schema of a form of the answer, which is as in the OpenAI API; nil = any text.
func Schema(format json.RawMessage) (json.RawMessage, error) {
	if len(format) == 0 {
		return nil, nil
	}
	var f struct {
		Type   string `json:"type"`
		Schema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	err := json.Unmarshal(format, &f)
	switch {
	case err == nil && f.Type == "text":
		return nil, nil
	case err == nil && f.Type == "json_object":
		return json.RawMessage(`{"type":"object"}`), nil
	case err == nil && f.Type == "json_schema" && len(f.Schema.Schema) > 0:
		return f.Schema.Schema, nil
	}
	return nil, fault.New(fault.Usage, "the form of the answer is none of text, json_object and json_schema with its schema", "")
}
