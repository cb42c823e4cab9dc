package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/workload"
)

// formFlags are the flags of tools and of the form of the answers.
type formFlags struct {
	tools, toolChoice          string
	responseFormat, jsonSchema string
}

// mostForm bounds a file of tools or a schema: it goes out with each request.
const mostForm = 1 << 20

func (f *formFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.tools, "tools", "", "file with the tools that the model may call: a JSON list in the form of the OpenAI API, sent in that of the endpoint")
	set.StringVar(&f.toolChoice, "tool-choice", "", "auto, none, required, or the name of one of the tools; not sent when left out")
	set.StringVar(&f.responseFormat, "response-format", "", "form of the answers: text, json_object, or a JSON object as in the OpenAI API. Answers that do not have it are counted")
	set.StringVar(&f.jsonSchema, "json-schema", "", "file with a JSON Schema that answers must follow, sent as strict. Answers that do not are counted, apart from those that the output limit cut off")
}

// into puts the flags into a target.
func (f *formFlags) into(t *bench.Target) error {
	if f.toolChoice != "" && f.tools == "" {
		return fault.New(fault.Usage, "--tool-choice without --tools", "give the tools with --tools FILE")
	}
	if f.tools != "" {
		list, err := readForm("--tools", f.tools)
		if err != nil {
			return err
		}
		tools, err := dialect.Tools(list)
		if err != nil {
			return fault.Wrap(fault.Usage, err, "--tools "+f.tools, fault.HintOf(err))
		}
		t.Tools = list
		if t.ToolChoice, err = choice(f.toolChoice, tools); err != nil {
			return err
		}
	}
	if f.jsonSchema != "" {
		schema, err := readForm("--json-schema", f.jsonSchema)
		if err != nil {
			return err
		}
		b := &dialect.Object{}
		b.Set("type", "json_schema")
		b.Set("json_schema", map[string]any{"name": "answer", "schema": schema, "strict": true})
		t.ResponseFormat = b.Bytes()
		return nil
	}
	return f.format(t)
}

// format reads --response-format.
func (f *formFlags) format(t *bench.Target) error {
	words := []string{"text", "json_object"}
	switch {
	case f.responseFormat == "":
		return nil
	case strings.HasPrefix(f.responseFormat, "{"):
		if err := workload.CheckObject([]byte(f.responseFormat)); err != nil {
			return fault.New(fault.Usage, "--response-format "+err.Error(), `such as --response-format '{"type":"json_object"}'`)
		}
		t.ResponseFormat = json.RawMessage(f.responseFormat)
		_, err := dialect.Schema(t.ResponseFormat)
		return err
	case f.responseFormat == "json_schema":
		return fault.New(fault.Usage, "--response-format json_schema without a schema", "give it with --json-schema FILE")
	case !slices.Contains(words, f.responseFormat):
		return fault.Usagef("it is text, json_object or a JSON object; for a schema use --json-schema FILE", "--response-format %q is no form of an answer%s", f.responseFormat,
			catalog.DidYouMean(f.responseFormat, words))
	}
	t.ResponseFormat = json.RawMessage(fmt.Sprintf(`{"type":%q}`, f.responseFormat))
	return nil
}

// choice turns the word of --tool-choice into that of the API.
func choice(word string, tools []dialect.Tool) (json.RawMessage, error) {
	words := []string{"auto", "none", "required"}
	if word == "" {
		return nil, nil
	}
	if slices.Contains(words, word) {
		return json.RawMessage(`"` + word + `"`), nil
	}
	for _, t := range tools {
		if words = append(words, t.Name); t.Name == word {
			return json.Marshal(map[string]any{"type": "function", "function": map[string]string{"name": word}})
		}
	}
	return nil, fault.Usagef("it is one of: "+strings.Join(words, ", "), "--tool-choice %q is no tool%s", word, catalog.DidYouMean(word, words))
}

// readForm reads a file that holds one JSON value.
func readForm(flag, path string) (json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, flag, "it is the path of a file")
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, mostForm+1))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Usage, err, flag, "it is the path of a file")
	case len(b) > mostForm:
		return nil, fault.Usagef("it goes out with each request", "%s %s is larger than %d bytes", flag, path, mostForm)
	}
	var v json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fault.Wrap(fault.Usage, err, flag+" "+path, "the file holds JSON")
	}
	return v, nil
}
