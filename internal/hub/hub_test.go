package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/fault"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// A fake hub has one file, which a store keeps. Faults makes that store misbehave.
func fakeHub(t *testing.T, file []byte, fault string) (*httptest.Server, *int) {
	asked := 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "" {
			t.Error("the token was sent to the store")
		}
		switch fault {
		case "cut":
			w.Header().Set("Content-Length", fmt.Sprint(len(file)+10))
		case "changed":
			file = append([]byte("x"), file[1:]...)
		}
		w.Write(file)
	}))
	t.Cleanup(store.Close)
	sum := sha256.Sum256(file)
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked++
		switch {
		case q.URL.Path == "/org/gated/resolve/main/tokenizer.json":
			w.WriteHeader(http.StatusUnauthorized)
		case q.URL.Path == "/org/name/resolve/main/tokenizer.json" || q.URL.Path == "/datasets/org/set/resolve/main/data/a b.json":
			if q.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("the hub got the token %q", q.Header.Get("Authorization"))
			}
			w.Header().Set("X-Repo-Commit", commit)
			w.Header().Set("X-Linked-Etag", `"`+hex.EncodeToString(sum[:])+`"`)
			http.Redirect(w, q, strings.Replace(store.URL, "127.0.0.1", "localhost", 1)+"/blob", http.StatusFound)
		default:
			http.NotFound(w, q)
		}
	}))
	t.Cleanup(hub.Close)
	return hub, &asked
}

func env(t *testing.T, endpoint string) *Hub {
	home := t.TempDir()
	return FromEnv(func(k string) string {
		return map[string]string{"HOME": home, "HF_ENDPOINT": endpoint, "HF_TOKEN": "secret"}[k]
	})
}

// A download happens only when it is allowed, is kept as Hugging Face's tools keep it, and is not repeated.
func TestDownload(t *testing.T) {
	file, err := os.ReadFile("../token/testdata/gpt2.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	server, asked := fakeHub(t, file, "")
	h := env(t, server.URL)
	ctx := context.Background()
	if _, err := h.Tokenizer(ctx, "org/name", ""); fault.CodeOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "--allow-download") || *asked != 0 {
		t.Fatal(err, *asked)
	}
	h.Download = true
	said := ""
	h.Say = func(line string) { said += line }
	tok, err := h.Tokenizer(ctx, "org/name", "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(h.Cache, "models--org--name", "snapshots", commit, "tokenizer.json")
	ref, _ := os.ReadFile(filepath.Join(h.Cache, "models--org--name", "refs", "main"))
	if tok.Name() != path || string(ref) != commit || !strings.Contains(said, server.URL) {
		t.Error(tok.Name(), string(ref), said)
	}
	h.Download = false
	for _, name := range []string{"org/name", "org/name@main", "org/name@" + commit} {
		again, err := h.Tokenizer(ctx, name, t.TempDir())
		if err != nil || !slices.Equal(again.Encode("over the lazy dog", false), tok.Encode("over the lazy dog", false)) {
			t.Error(name, err)
		}
	}
	if *asked != 1 {
		t.Errorf("the hub was asked %d times", *asked)
	}
	h.Download = true
	if _, err := h.File(ctx, Dataset, "org/set", "data/a b.json"); err != nil {
		t.Error(err)
	}
}

// What goes wrong is said in one line, and nothing of it is kept.
func TestDownloadFails(t *testing.T) {
	for _, c := range []struct{ name, fault, words, hint string }{
		{"org/gated", "", "401", "licence"},
		{"org/none", "", "404", "name right"},
		{"org/name", "cut", "EOF", "again"},
		{"org/name", "changed", "SHA-256", "again"},
	} {
		server, _ := fakeHub(t, []byte("some file"), c.fault)
		h := env(t, server.URL)
		h.Download = true
		_, err := h.File(context.Background(), Model, c.name, "tokenizer.json")
		if fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), c.words) || !strings.Contains(fault.HintOf(err), c.hint) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v (%s)", c, err, fault.HintOf(err))
		}
		left := 0
		filepath.WalkDir(h.Cache, func(_ string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				left++
			}
			return nil
		})
		if left > 0 {
			t.Errorf("%+v: %d files are left", c, left)
		}
		h.Offline = true
		if _, err := h.File(context.Background(), Model, c.name, "tokenizer.json"); err == nil || !strings.Contains(err.Error(), "HF_HUB_OFFLINE") {
			t.Error(err)
		}
	}
}

// A tokenizer is a file, a directory with one, or a built-in one.
func TestTokenizer(t *testing.T) {
	h := env(t, "http://127.0.0.1:1")
	dir := t.TempDir()
	b, err := os.ReadFile("../token/testdata/t5.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tokenizer.json.gz")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{file, dir, "builtin:o200k", "builtin:cl100k_base"} {
		if tok, err := h.Tokenizer(context.Background(), name, ""); err != nil || tok.Count("two words") < 2 {
			t.Error(name, err)
		}
	}
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"builtin:p50k", t.TempDir(), bad, filepath.Join(dir, "none.json"), "none.json", "../x/y", "a--b", "org/name/more", ""} {
		if _, err := h.Tokenizer(context.Background(), name, ""); fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%q: %v", name, err)
		}
	}
}
