package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What transformers 4's apply_chat_template makes of a chat with the templates of Qwen 3 and Llama 3 (jinja2 with its settings).
func TestRealTemplates(t *testing.T) {
	dir := os.Getenv("PRONY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	b, err := os.ReadFile(filepath.Join(dir, "data", "tokenizers", "tokenizer_meta.json"))
	if err != nil {
		t.Skipf("skipped: %v; PRONY_SHARED names the folder of shared data", err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	messages := []map[string]any{{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi  there\n"}, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Go on"}}
	for name, want := range map[string]string{
		"qwen3": "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi  there\n<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n" +
			"<|im_start|>user\nGo on<|im_end|>\n<|im_start|>assistant\n",
		"llama3": "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi  there<|eot_id|>" +
			"<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nGo on<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
	} {
		tm, err := Parse(all[name], "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tm.Render(messages); got != want || err != nil {
			t.Errorf("%s: %v\n got %q\nwant %q", name, err, got, want)
		}
	}
	// the library does not read `!= (...)`: that is said, and no length is made up
	if _, err := Parse(all["gemma3"], ""); err == nil {
		t.Error("Gemma 3's template is read now: hold it against transformers, and add it above")
	}
}

// Settings and errors.
func TestTemplates(t *testing.T) {
	render := func(source string) (string, error) {
		file, _ := json.Marshal(map[string]any{"bos_token": map[string]any{"content": "<s>"}, "chat_template": []map[string]any{{"name": "tool_use", "template": "no"}, {"name": "default", "template": source}}})
		tm, err := Parse(file, "")
		if err != nil {
			return "", err
		}
		return tm.Render([]map[string]any{{"role": "user", "content": "x"}})
	}
	if got, err := render("{{ bos_token }}\n  {% for m in messages %}\n{{ m.content }}\n  {% endfor %}\nend"); got != "<s>\nx\nend" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	for source, words := range map[string]string{
		"{{ raise_exception('no such role') }}": "no such role", "{% if %}": "chat template", "{% include '/etc/passwd' %}": "chat template", "": "no chat_template",
	} {
		if got, err := render(source); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %q %v", source, got, err)
		}
	}
	if _, err := Parse([]byte("{"), ""); err == nil {
		t.Error("broken JSON")
	}
}
