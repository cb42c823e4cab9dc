// Package hub finds the files of models and data sets: on this disk, in the local cache of Hugging Face, and, only where that is allowed, on
// the hub itself. What it gets from there is kept in that cache, in its own form, so that other tools find it too.
package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
)

// Hub is where files are looked for.
type Hub struct {
	Cache    string // directory of the cache, with models--ORG--NAME in it
	Endpoint string // base URL of the hub
	Token    string // of access, secret; may be empty
	Download bool   // whether a file that is not in the cache may be got from the hub
	Offline  bool   // the environment says that nothing may be got
	Client   *http.Client
	Say      func(line string) // takes one line for the person who waits; may be nil
}

// Kinds of repositories.
const (
	Model   = "models"
	Dataset = "datasets"
)

const (
	defaultEndpoint = "https://huggingface.co"
	// mostBytes bounds a file from the hub: parts of data sets have some 500 MB.
	mostBytes = 8 << 30
	// stallTimeout bounds the wait for the head of an answer.
	stallTimeout = time.Minute
)

// FromEnv reads the variables that Hugging Face's own tools read: HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE.
func FromEnv(getenv func(string) string) *Hub {
	home := getenv("HF_HOME")
	if home == "" {
		base := getenv("XDG_CACHE_HOME")
		if base == "" {
			base = filepath.Join(getenv("HOME"), ".cache")
		}
		home = filepath.Join(base, "huggingface")
	}
	h := &Hub{Cache: getenv("HF_HUB_CACHE"), Endpoint: strings.TrimRight(getenv("HF_ENDPOINT"), "/"), Token: getenv("HF_TOKEN")}
	if h.Cache == "" {
		h.Cache = filepath.Join(home, "hub")
	}
	if h.Endpoint == "" {
		h.Endpoint = defaultEndpoint
	}
	if h.Token == "" {
		b, _ := os.ReadFile(filepath.Join(home, "token"))
		h.Token = strings.TrimSpace(string(b))
	}
	switch strings.ToLower(getenv("HF_HUB_OFFLINE")) {
	case "1", "true", "yes", "on":
		h.Offline = true
	}
	return h
}

var (
	idForm       = regexp.MustCompile(`^[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?$`)
	revisionForm = regexp.MustCompile(`^[A-Za-z0-9][\w.-]{0,95}$`)
	commitForm   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// IsID tells whether a name could be that of a repository: NAME or ORG/NAME, with @REVISION behind it if wanted.
func IsID(name string) bool {
	id, revision, given := strings.Cut(name, "@")
	return idForm.MatchString(id) && (!given || revisionForm.MatchString(revision)) && !strings.Contains(id, "..") && !strings.Contains(id, "--")
}

// File returns the path of a repository's file. Name is ORG/NAME or ORG/NAME@REVISION.
func (h *Hub) File(ctx context.Context, kind, name, file string) (string, error) {
	if !IsID(name) || !filepath.IsLocal(file) {
		return "", fault.Usagef("a repository is ORG/NAME, or ORG/NAME@REVISION", "%q is no name of a repository", name)
	}
	id, revision, _ := strings.Cut(name, "@")
	if revision == "" {
		revision = "main"
	}
	dir := filepath.Join(h.Cache, kind+"--"+strings.ReplaceAll(id, "/", "--"))
	if path := cached(dir, revision, file); path != "" {
		return path, nil
	}
	switch {
	case !h.Download:
		return "", fault.New(fault.Usage, fmt.Sprintf("%s of %s is not in the local cache %s", file, name, h.Cache),
			"--allow-download gets it from "+h.Endpoint+"; or give the path of a file")
	case h.Offline:
		return "", fault.New(fault.Usage, fmt.Sprintf("%s of %s is not in the local cache, and HF_HUB_OFFLINE is set", file, name), "unset it, or give the path of a file")
	}
	return h.get(ctx, kind, id, revision, file, dir)
}

// cached returns the path of a file in the cache, or "".
func cached(dir, revision, file string) string {
	commit := revision
	if b, err := os.ReadFile(filepath.Join(dir, "refs", revision)); err == nil {
		commit = strings.TrimSpace(string(b))
	}
	path := filepath.Join(dir, "snapshots", filepath.Base(commit), file)
	if s, err := os.Stat(path); err == nil && s.Mode().IsRegular() {
		return path
	}
	return ""
}

// get asks the hub for a file and keeps it in the cache.
func (h *Hub) get(ctx context.Context, kind, id, revision, file, dir string) (string, error) {
	at := h.Endpoint
	if kind == Dataset {
		at += "/datasets"
	}
	at += "/" + id + "/resolve/" + url.PathEscape(revision) + "/" + (&url.URL{Path: file}).EscapedPath()
	if h.Say != nil {
		h.Say("getting " + at)
	}
	resp, head, err := h.open(ctx, at)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "download of "+file+" of "+id, "is the hub reached from here? HF_ENDPOINT names another one, HTTPS_PROXY a proxy")
	}
	defer resp.Body.Close()
	if err := refusal(resp.StatusCode, at, h.Token != ""); err != nil {
		return "", err
	}
	commit := head.Get("X-Repo-Commit")
	if !commitForm.MatchString(commit) {
		commit = revision
	}
	path := filepath.Join(dir, "snapshots", commit, file)
	want := strings.Trim(head.Get("X-Linked-Etag"), `"`) // of large files: their SHA-256
	if err := keep(path, resp, want); err != nil {
		return "", fault.Wrap(fault.Usage, err, "download of "+at, "try again")
	}
	if commit != revision {
		err := os.MkdirAll(filepath.Join(dir, "refs"), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "refs", revision), []byte(commit), 0o644)
		}
		if err != nil {
			return "", fault.Wrap(fault.Internal, err, "the cache cannot be written", "HF_HUB_CACHE names another directory")
		}
	}
	return path, nil
}

// open sends the request. The head is that of the hub's own answer, which may send on to a store of large files.
func (h *Hub) open(ctx context.Context, at string) (*http.Response, http.Header, error) {
	base := h.Client
	if base == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = stallTimeout
		base = &http.Client{Transport: t}
	}
	c := *base
	var first http.Header
	c.CheckRedirect = func(q *http.Request, via []*http.Request) error {
		if first == nil {
			first = q.Response.Header
		}
		if len(via) >= 10 {
			return errors.New("it redirects in circles")
		}
		return nil
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, nil, err
	}
	q.Header.Set("User-Agent", "prony")
	q.Header.Set("Accept-Encoding", "identity") // so that the length is the file's
	if h.Token != "" {
		q.Header.Set("Authorization", "Bearer "+h.Token)
	}
	resp, err := c.Do(q)
	if err != nil {
		return nil, nil, err
	}
	if first == nil || first.Get("X-Repo-Commit") == "" {
		first = resp.Header
	}
	return resp, first, nil
}

func refusal(status int, at string, token bool) error {
	hint := "is the name right, and has the repository that file?"
	switch status {
	case http.StatusOK:
		return nil
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = "set HF_TOKEN to a token of access; some models also ask for their licence to be accepted on their page"
		if token {
			hint = "the token of access is not good for it: has the licence been accepted on the model's page?"
		}
	}
	return fault.New(fault.Usage, fmt.Sprintf("%s answers %d %s", at, status, http.StatusText(status)), hint)
}

// keep writes a body to a file as a whole, or not at all.
func keep(path string, resp *http.Response, sha string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".part-*")
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), io.LimitReader(resp.Body, mostBytes+1))
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
	case n > mostBytes:
		err = fmt.Errorf("it has more than %d bytes", int64(mostBytes))
	case resp.ContentLength >= 0 && n != resp.ContentLength:
		err = fmt.Errorf("it was cut after %d of %d bytes", n, resp.ContentLength)
	case len(sha) == 2*sha256.Size && sha != got:
		err = fmt.Errorf("its SHA-256 is %s, and the hub says %s", got, sha)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
