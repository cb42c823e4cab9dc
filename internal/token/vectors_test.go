package token

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// open loads a tokenizer of testdata, or a built-in one.
func open(t testing.TB, name string) *Tokenizer {
	t.Helper()
	var tok *Tokenizer
	var err error
	if b, ok := strings.CutPrefix(name, "builtin:"); ok {
		tok, err = Builtin(b)
	} else {
		tok, err = Load(filepath.Join("testdata", name+".json.gz"), "")
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tok
}

type row struct {
	Tokenizer, Text string
	IDs             []int32
	Special         []int32 `json:"ids_special"`
	Decoded         string
	Skipped         *string
}

// vectors reads what scripts/tokenizer-vectors.py wrote.
func vectors(t testing.TB) (rows []row) {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.jsonl.gz")
	if err == nil {
		b, err = unpack(b)
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(b))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	return rows
}

// What Hugging Face's tokenizers and tiktoken say of each text, with tokenizers of every kind.
func TestVectors(t *testing.T) {
	all := vectors(t)
	if len(all) < 4000 {
		t.Fatalf("%d vectors", len(all))
	}
	failed, opened := map[string]int{}, map[string]*Tokenizer{}
	const shown = 3
	for _, r := range all {
		if r.Tokenizer == "unigram-hf" && strings.Contains(r.Text, "ﷺ") {
			continue // a ligature of four words: each of them begins where the text does, so that Hugging Face puts a meta space before each
		}
		tok := opened[r.Tokenizer]
		if tok == nil {
			tok = open(t, r.Tokenizer)
			opened[r.Tokenizer] = tok
		}
		wrong := func(what string, got, want any) {
			if failed[r.Tokenizer]++; failed[r.Tokenizer] <= shown {
				t.Errorf("%s: %s of %q:\n got %v\nwant %v", r.Tokenizer, what, r.Text, got, want)
			}
		}
		if got := tok.Encode(r.Text, false); !slices.Equal(got, r.IDs) {
			wrong("ids", got, r.IDs)
		}
		special := r.Special
		if special == nil {
			special = r.IDs
		}
		if got := tok.Encode(r.Text, true); !slices.Equal(got, special) {
			wrong("ids with special tokens", got, special)
		}
		if got := tok.Decode(special, false); got != r.Decoded {
			wrong("text", []byte(got), []byte(r.Decoded))
		}
		skipped := r.Decoded
		if r.Skipped != nil {
			skipped = *r.Skipped
		}
		if got := tok.Decode(special, true); !strings.HasPrefix(r.Tokenizer, "builtin") && got != skipped {
			wrong("text without special tokens", got, skipped)
		}
	}
	for name, n := range failed {
		t.Errorf("%s: %d wrong", name, n)
	}
}
