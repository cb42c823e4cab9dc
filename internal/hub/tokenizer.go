package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/prony-bench/prony/internal/chat"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/token"
)

// TokenizerWords says what --tokenizer takes, in the words of its help.
const TokenizerWords = "a tokenizer.json, a directory with one, ORG/NAME of a model in the local Hugging Face cache, or builtin:o200k or builtin:cl100k"

// Tokenizer loads a tokenizer by what --tokenizer says. Kept is the directory where its tables are kept to be read faster; "" = none.
func (h *Hub) Tokenizer(ctx context.Context, name, kept string) (*token.Tokenizer, error) {
	if b, ok := strings.CutPrefix(name, "builtin:"); ok {
		t, err := token.Builtin(b)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "--tokenizer", "it is "+TokenizerWords)
		}
		return t, nil
	}
	path, err := h.tokenizerFile(ctx, name)
	if err != nil {
		return nil, err
	}
	t, err := token.Load(path, kept)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "tokenizer "+path, "a tokenizer.json of Hugging Face's tokenizers is needed")
	}
	return t, nil
}

// Template loads the chat template that comes with a tokenizer: from the directory of its file, or of its repository.
func (h *Hub) Template(ctx context.Context, name string) (*chat.Template, error) {
	const hint = "a directory with tokenizer_config.json, and chat_template.jinja where the template is apart, has one"
	if strings.HasPrefix(name, "builtin:") {
		return nil, fault.New(fault.Usage, "the tokenizer "+name+" has no chat template", "give the directory of a model")
	}
	path, err := h.tokenizerFile(ctx, name)
	if err != nil {
		return nil, err
	}
	find := func(file string) (string, error) {
		if beside := filepath.Join(filepath.Dir(path), file); fileExists(beside) || fileExists(name) || !IsID(name) {
			return beside, nil
		}
		return h.File(ctx, Model, name, file)
	}
	var source, config []byte
	if config, err = read(find, "tokenizer_config.json"); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "chat template", hint)
	}
	source, _ = read(find, "chat_template.jinja") // most have none
	t, err := chat.Parse(config, string(source))
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "chat template of "+name, hint)
	}
	return t, nil
}

func read(find func(string) (string, error), file string) ([]byte, error) {
	path, err := find(file)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (h *Hub) tokenizerFile(ctx context.Context, name string) (string, error) {
	switch s, err := os.Stat(name); {
	case err == nil && !s.IsDir():
		return name, nil
	case err == nil:
		for _, file := range []string{"tokenizer.json", "tokenizer.json.gz"} {
			path := filepath.Join(name, file)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
		return "", fault.New(fault.Usage, fmt.Sprintf("the directory %s has no tokenizer.json", name), "AutoTokenizer.from_pretrained(..., use_fast=True).save_pretrained(...) writes one")
	case !errors.Is(err, fs.ErrNotExist) || !IsID(name) || strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".gz"):
		return "", fault.Wrap(fault.Usage, err, "tokenizer", "it is "+TokenizerWords)
	}
	return h.File(ctx, Model, name, "tokenizer.json")
}

// KeptTokenizers is the directory for the tables of tokenizers: prony/tokenizers below XDG_CACHE_HOME or ~/.cache; "" where there is none.
func KeptTokenizers(getenv func(string) string) string {
	base := getenv("XDG_CACHE_HOME")
	if base == "" {
		home := getenv("HOME")
		if home == "" {
			return ""
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "prony", "tokenizers")
}
