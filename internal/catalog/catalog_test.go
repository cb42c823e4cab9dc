package catalog

import (
	"strings"
	"testing"
)

type word string

func (w word) Name() string { return string(w) }

func TestCatalog(t *testing.T) {
	c := New(word("vllm"), word("sglang"), word("llamacpp"))
	if w, err := c.Get("sglang"); err != nil || w != "sglang" {
		t.Error(w, err)
	}
	_, err := c.Get("vlmm")
	if err == nil || !strings.Contains(err.Error(), "did you mean vllm?") || !strings.Contains(err.Error(), "vllm, sglang, llamacpp") {
		t.Error(err)
	}
	if _, err := c.Get("zzzzzzzzz"); strings.Contains(err.Error(), "did you mean") {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("one name twice")
		}
	}()
	New(word("a"), word("a"))
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		d    int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"vlmm", "vllm", 1}, {"rnu", "run", 1}, {"abc", "abc", 0}} {
		if d := distance(c.a, c.b); d != c.d {
			t.Errorf("%q %q: %d", c.a, c.b, d)
		}
	}
}
