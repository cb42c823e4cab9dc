package token

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// shared returns a path in the folder of data that is not part of this repository: $PRONY_SHARED, or ../shared beside it.
func shared(t testing.TB, parts ...string) string {
	t.Helper()
	dir := os.Getenv("PRONY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	path := filepath.Join(append([]string{dir}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: %s is not there; PRONY_SHARED names the folder of shared data", path)
	}
	return path
}

// realOnes are the tokenizers of the shared data; the race detector makes minutes of reading all of them.
var realOnes = []string{"qwen3", "llama3", "gemma3"}[:realCount]

var loadedOnes = map[string]*Tokenizer{}

func loadShared(t testing.TB, name string) *Tokenizer {
	t.Helper()
	path := shared(t, "data", "tokenizers", name+".tokenizer.json.gz")
	if tok := loadedOnes[name]; tok != nil {
		return tok
	}
	tok, err := Load(path, "")
	if err != nil {
		t.Fatal(err)
	}
	loadedOnes[name] = tok
	return tok
}

type vector struct {
	IDs     []int32
	Special []int32 `json:"ids_special"`
	Decoded *string
}

// Every vector of Hugging Face's tokenizers, to ids, with special tokens, and back.
func TestSharedVectors(t *testing.T) {
	path := shared(t, "data", "tokenizers", "vectors.jsonl")
	for _, name := range realOnes {
		t.Run(name, func(t *testing.T) {
			tok := loadShared(t, name)
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			lines, seen := bufio.NewScanner(f), 0
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				var row map[string]json.RawMessage
				var text string
				var v vector
				if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(row["text"], &text); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(row[name], &v); err != nil {
					t.Fatal(err)
				}
				checkVector(t, tok, text, v)
				seen++
			}
			if seen < 62 {
				t.Errorf("%d vectors", seen)
			}
		})
	}
}

func checkVector(t *testing.T, tok *Tokenizer, text string, v vector) {
	t.Helper()
	if got := tok.Encode(text, false); !slices.Equal(got, v.IDs) {
		t.Errorf("%q:\n got %v\nwant %v", text, got, v.IDs)
	}
	special := v.Special
	if special == nil {
		special = v.IDs
	}
	if got := tok.Encode(text, true); !slices.Equal(got, special) {
		t.Errorf("%q with special tokens:\n got %v\nwant %v", text, got, special)
	}
	want := text
	if v.Decoded != nil {
		want = *v.Decoded
	}
	if got := tok.Decode(v.IDs, false); got != want {
		t.Errorf("back:\n got %q\nwant %q", got, want)
	}
}

// The ids of two books are those of Hugging Face's tokenizers.
func TestSharedCorpora(t *testing.T) {
	var counts struct {
		Files map[string]map[string]struct {
			Count           int
			SHA256          string
			First16, Last16 []int32
		}
	}
	b, err := os.ReadFile(shared(t, "data", "tokenizers", "corpus_counts.json"))
	if err == nil {
		err = json.Unmarshal(b, &counts)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range realOnes {
		tok := loadShared(t, name)
		for file, by := range counts.Files {
			text, err := os.ReadFile(shared(t, "data", "quality", file))
			if err != nil {
				t.Fatal(err)
			}
			want := by[name]
			ids := tok.Encode(string(text), false)
			sum := sha256.New()
			for _, id := range ids {
				sum.Write(binary.LittleEndian.AppendUint32(nil, uint32(id)))
			}
			if len(ids) != want.Count || hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
				t.Errorf("%s, %s: %d ids instead of %d, from %v to %v", name, file, len(ids), want.Count, ids[:16], ids[len(ids)-16:])
			}
			if got := tok.Decode(ids, false); got != string(text) {
				t.Errorf("%s, %s: the way back gives another text", name, file)
			}
		}
	}
}

// A kept tokenizer is the same, and there in no time.
func TestSharedCache(t *testing.T) {
	for _, name := range realOnes {
		path, cache := shared(t, "data", "tokenizers", name+".tokenizer.json.gz"), t.TempDir()
		first, err := Load(path, cache)
		if err != nil {
			t.Fatal(err)
		}
		if files, _ := os.ReadDir(cache); len(files) != 1 {
			t.Fatalf("%d files in the cache", len(files))
		}
		least := time.Hour
		var again *Tokenizer
		for range 10 { // a busy machine takes longer at times
			begin := time.Now()
			if again, err = Load(path, cache); err != nil {
				t.Fatal(err)
			}
			if least = min(least, time.Since(begin)); least < 200*time.Millisecond {
				break
			}
		}
		t.Logf("%s: %v from the cache", name, least)
		if least > 200*time.Millisecond && !testing.Short() && !raceEnabled {
			t.Errorf("%s: %v from the cache", name, least)
		}
		text := "Ein Text mit 12345 Ziffern,\n\n  `code` und 世界 🙂!"
		if a, b := first.Encode(text, true), again.Encode(text, true); !slices.Equal(a, b) || first.Digest() != again.Digest() || first.Size() != again.Size() {
			t.Errorf("%s: %v and %v", name, a, b)
		}
	}
}

// BenchmarkShared tells MB/s of each tokenizer on a book.
func BenchmarkShared(b *testing.B) {
	for _, name := range realOnes {
		b.Run(name, func(b *testing.B) {
			tok := loadShared(b, name)
			text, err := os.ReadFile(shared(b, "data", "quality", "wikitext-2-raw", "wiki.test.raw"))
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(string(text), false)
			}
		})
	}
}
