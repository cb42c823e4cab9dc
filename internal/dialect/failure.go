package dialect

import (
	"bytes"
	"encoding/json"
)

// Failure is an error in JSON, in the forms that the servers of LLMs and their web frameworks use. It is meant to be a part of what
// an event or a body is decoded into.
type Failure struct {
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Error   json.RawMessage `json:"error"`   // a text, or an object with message, type and code
	Message string          `json:"message"` // of an error without a wrapper
	Detail  json.RawMessage `json:"detail"`  // of the web framework
	Code    json.RawMessage `json:"code"`
}

// Words returns what the error says, or "" when there is none. Answer tells that there is output beside it: then a message or a
// detail alone is no error.
func (f *Failure) Words(answer bool) string {
	switch {
	case len(f.Error) > 0 && string(f.Error) != "null":
		return errorWords(f.Error)
	case f.Object == "error" || f.Type == "error" || !answer && f.Message != "":
		return withCode(f.Message, "", f.Code)
	case !answer && len(f.Detail) > 0 && string(f.Detail) != "null":
		var s string
		if json.Unmarshal(f.Detail, &s) == nil {
			return s
		}
		return string(f.Detail)
	}
	return ""
}

func errorWords(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var e struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Message == "" {
		return string(raw)
	}
	return withCode(e.Message, e.Type, e.Code)
}

func withCode(message, kind string, code json.RawMessage) string {
	note := kind
	if c := string(bytes.Trim(code, `"`)); c != "" && c != "null" {
		if note != "" {
			note += ", "
		}
		note += "code " + c
	}
	if message == "" {
		message = "error"
	}
	if note == "" {
		return message
	}
	return message + " (" + note + ")"
}
