package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// apiError is a refusal in the words of vLLM 0.32. Dialects have words of their own for its causes.
type apiError struct {
	status  int
	kind    string
	param   string // "" = null
	message string

	cause          refusedFor
	model          string // unknown model
	prompt, window int    // too long: tokens
}

// refusedFor are causes that engines tell in ways of their own.
type refusedFor uint8

const (
	otherwise refusedFor = iota
	unknownModel
	tooLong
	malformedJSON
	unauthorized
)

// refusal writes a refusal in the form of a dialect.
type refusal func(e *apiError) (status int, body []byte)

// vllmRefusal is the form of vLLM.
func vllmRefusal(e *apiError) (int, []byte) {
	if e.cause == unauthorized {
		return e.status, []byte(`{"error":"Unauthorized"}`)
	}
	b := append([]byte(nil), `{"error":{"message":`...)
	b = appendQuoted(b, e.message)
	b = append(b, `,"type":`...)
	b = appendQuoted(b, e.kind)
	b = append(b, `,"param":`...)
	if e.param == "" {
		b = append(b, "null"...)
	} else {
		b = appendQuoted(b, e.param)
	}
	b = append(b, `,"code":`...)
	b = strconv.AppendInt(b, int64(e.status), 10)
	return e.status, append(b, "}}"...)
}

// invalid is a value that the engine refuses.
func invalid(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "BadRequestError", message: message}
}

// invalidParam is the same with the parameter named, also inside the message.
func invalidParam(param string, value int, format string, args ...any) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: "BadRequestError", param: param,
		message: fmt.Sprintf(format, args...) + fmt.Sprintf(" (parameter=%s, value=%d)", param, value)}
}

// unprocessable is a body that does not fit the protocol.
func unprocessable(param, problem string) *apiError {
	return &apiError{status: http.StatusBadRequest, kind: http.StatusText(http.StatusBadRequest), param: param,
		message: "1 validation error:\n  " + problem}
}

// missingField is a required field that is not there.
func missingField(name string) *apiError {
	return unprocessable("body."+name, fmt.Sprintf("{'type': 'missing', 'loc': 'body.%s', 'msg': 'Field required'}", name))
}

// badJSON tells what is wrong with a body that encoding/json refused.
func badJSON(err error) *apiError {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		const problem = "{'type': 'type_error', 'loc': 'body.%s', 'msg': 'Input should be a valid %s'}"
		return unprocessable("body."+wrong.Field, fmt.Sprintf(problem, wrong.Field, wrong.Type))
	}
	at := "0"
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = strconv.FormatInt(syntax.Offset, 10)
	}
	const problem = "{'type': 'json_invalid', 'loc': 'body.%s', 'msg': 'JSON decode error', 'input': {}, 'ctx': {'error': '%s'}}"
	e := unprocessable("body."+at, fmt.Sprintf(problem, at, err))
	e.cause = malformedJSON
	return e
}

// appendQuoted appends a JSON string. Strings that need no escape, which is nearly all of them, are not looked at twice.
func appendQuoted(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			quoted, err := json.Marshal(s)
			if err != nil {
				panic("sim: a string that cannot be JSON: " + err.Error())
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
