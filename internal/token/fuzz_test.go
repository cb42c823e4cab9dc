package token

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// lossless are tokenizers of testdata from whose ids the text comes back, whatever it is.
var lossless = []string{"gpt2", "deepseek", "falcon", "starcoder", "builtin:cl100k", "builtin:o200k"}

// Encoding and decoding never panic, ids are those of tokens, and where nothing is changed before splitting, the text comes back.
func FuzzEncode(f *testing.F) {
	names, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(names) == 0 {
		f.Fatal(err, names)
	}
	toks := map[string]*Tokenizer{}
	for _, n := range append(names, "builtin:cl100k", "builtin:o200k") {
		n = strings.TrimSuffix(filepath.Base(n), ".json.gz")
		toks[n] = open(f, n)
	}
	for _, r := range vectors(f)[:170] {
		f.Add(r.Text)
	}
	f.Add("\xff\xe4\xb8a\xf0\x9f\x98")
	f.Fuzz(func(t *testing.T, text string) {
		valid := lossy(text)
		if !utf8.ValidString(valid) || utf8.ValidString(text) && valid != text {
			t.Fatalf("%q became %q", text, valid)
		}
		for name, tok := range toks {
			ids := tok.Encode(text, true)
			for _, id := range ids {
				if _, ok := tok.Token(id); !ok {
					t.Fatalf("%s: %q has the id %d, which is no token", name, text, id)
				}
			}
			back := tok.Decode(ids, false)
			if !utf8.ValidString(back) {
				t.Fatalf("%s: %q comes back as %q", name, text, back)
			}
			if slices.Contains(lossless, name) && back != valid {
				t.Fatalf("%s: %q comes back as %q", name, text, back)
			}
			if again := tok.Encode(text, true); !slices.Equal(ids, again) {
				t.Fatalf("%s: %q has the ids %v, and then %v", name, text, ids, again)
			}
		}
	})
}

// A broken file, or a broken cache, is an error and no panic.
func FuzzFiles(f *testing.F) {
	for _, small := range []string{ // small, since the fuzzer tries to make what it finds smaller
		`{"added_tokens":[{"id":3,"content":"lo","special":true}],"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"},` +
			`"model":{"type":"BPE","vocab":{"H":0,"e":1,"He":2},"merges":["H e"]}}`,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},` +
			`"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-1],["lo",-2.5]]}}`,
		`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\w+"},"behavior":"Removed","invert":true},"decoder":{"type":"WordPiece","prefix":"##"},` +
			`"model":{"type":"WordPiece","unk_token":"?","vocab":{"?":0,"Hel":1,"##lo":2}}}`,
	} {
		f.Add([]byte(small))
	}
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":5},"merges":[["a","a"]]}}`))
	f.Add([]byte(`{"model":{"vocab":[["a",0]],"unk_id":3}}`))
	f.Add([]byte(`{"model":{"type":"Unigram","vocab":[["a",0]]},"normalizer":{"type":"Precompiled","precompiled_charsmap":"CAAAAAAB"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if tok, err := Parse(b); err == nil {
			tok.Decode(tok.Encode("Hello, wörld  12\n▁x", true), false)
		}
	})
}

// A kept file that was cut or changed is not used.
func TestBrokenCache(t *testing.T) {
	dir := t.TempDir()
	load := func() *Tokenizer {
		tok, err := Load("testdata/t5.json.gz", dir)
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	want := load().Encode("The fox, the dog.", true)
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	good, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if p, err := readParts(files[0]); err != nil || len(p.scores) != len(p.tokens) {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)/2], "other": []byte("something else"),
		"changed": append(slices.Clone(good[:200]), append([]byte{good[200] ^ 1}, good[201:]...)...),
	} {
		if err := os.WriteFile(files[0], b, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readParts(files[0]); err == nil {
			t.Errorf("%s: the cache was used", name)
		}
		if got := load().Encode("The fox, the dog.", true); !slices.Equal(got, want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := readParts(files[0]); err != nil {
		t.Error("the cache was not made anew", err)
	}
}

// Many goroutines share a tokenizer.
func TestTogether(t *testing.T) {
	tok := open(t, "gpt4")
	rows := vectors(t)
	get := Background(func() (*Tokenizer, error) { return tok, nil })
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			tok, _ := get()
			for _, r := range rows {
				if r.Tokenizer == "gpt4" && !slices.Equal(tok.Encode(r.Text, false), r.IDs) {
					t.Errorf("%q", r.Text)
				}
			}
		})
	}
	wg.Wait()
}

// The hand-written splits are those of their regular expressions.
func FuzzSplit(f *testing.F) {
	for _, r := range vectors(f)[:170] {
		f.Add(r.Text)
	}
	finds := map[string]func(string) []match{}
	for p := range splitters {
		if find, err := compile(p); err == nil { // two have quantifiers that the library does not know
			finds[p] = find
		}
	}
	if len(finds) < 4 {
		f.Fatal(len(finds))
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(lossy(text), "ſ", "s") // the library does not know that it is an s
		for p, find := range finds {
			var want, got []string
			pattern{find, isolated, false}.cut(text, true, func(s string, _ bool) { want = append(want, s) })
			splitters[p].cut(text, true, func(s string, _ bool) { got = append(got, s) })
			if !slices.Equal(got, want) {
				t.Fatalf("%s\n%q\n got %q\nwant %q", p, text, got, want)
			}
		}
	})
}
