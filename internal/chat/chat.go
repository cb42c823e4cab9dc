// Package chat writes the messages of a chat as the text that a model reads, by the chat template that comes with the model.
//
// A template is a program in Jinja, of whoever made the model. It is given no files, and an error of it is an error here.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nikolalohinski/gonja/v2"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// Template is the chat template of a model.
type Template struct {
	template *exec.Template
	tokens   map[string]any // special tokens by the names that templates have for them
}

// Parse reads a tokenizer_config.json. Source is the template where it has a file of its own, chat_template.jinja; else "".
func Parse(file []byte, source string) (*Template, error) {
	var c map[string]json.RawMessage
	if err := json.Unmarshal(file, &c); err != nil {
		return nil, err
	}
	if source == "" {
		source = templateOf(c["chat_template"])
	}
	if source == "" {
		return nil, errors.New("it has no chat_template")
	}
	t := &Template{tokens: map[string]any{}}
	for _, name := range []string{"bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token"} {
		if text := tokenOf(c[name]); text != "" {
			t.tokens[name] = text
		}
	}
	conf := config.New()
	conf.TrimBlocks, conf.LeftStripBlocks = true, true // as transformers sets them
	const name = "/chat_template"
	var err error
	guard(&err, func() {
		t.template, err = exec.NewTemplate(name, conf, loaders.MustNewMemoryLoader(map[string]string{name: source}), gonja.DefaultEnvironment)
	})
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	return t, nil
}

// templateOf reads a template, or the one called default of a list of them.
func templateOf(raw json.RawMessage) string {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one
	}
	var list []struct{ Name, Template string }
	if json.Unmarshal(raw, &list) == nil {
		for _, t := range list {
			if t.Name == "default" {
				return t.Template
			}
		}
	}
	return ""
}

// tokenOf reads a special token: its text, or an object with that.
func tokenOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object struct{ Content string }
	_ = json.Unmarshal(raw, &object)
	return object.Content
}

// Render writes messages, and what stands before the model's answer.
func (t *Template) Render(messages []map[string]any) (text string, err error) {
	values := map[string]any{
		"messages": messages, "add_generation_prompt": true,
		"raise_exception": func(words string) (string, error) { return "", errors.New(words) },
	}
	for name, token := range t.tokens {
		values[name] = token
	}
	guard(&err, func() { text, err = t.template.ExecuteToString(exec.NewContext(values)) })
	if err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return text, nil
}

// guard makes an error of a panic of the template's interpreter.
func guard(err *error, f func()) {
	defer func() {
		if r := recover(); r != nil {
			*err = fmt.Errorf("%v", r)
		}
	}()
	f()
}
