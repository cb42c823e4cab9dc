// Package discover asks a server who it is: engine, version, models, limits; and how it counts tokens.
//
// Nothing here is measured. No question costs a generation, each has a bound on time and size, and a question that a server does
// not answer is no failure.
package discover

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

// Bounds of a question, and of all of Identify's: a server that hangs holds nobody up for longer.
const (
	askTimeout  = 5 * time.Second
	sideTimeout = 2 * time.Second // of one that most servers do not answer
	allTimeout  = 15 * time.Second
	maxAnswer   = 8 << 20
)

// Prober asks one server.
type Prober struct {
	HTTP   *http.Client
	Join   func(path string) string // the whole URL of a path below /v1, or of the user's own
	Root   func(path string) string // the whole URL of a path beside /v1
	Name   string                   // of the server, for a person; empty = Join("")
	Proxy  string                   // before the server; empty = none
	Header []wire.Field             // the user's own
	Engine string                   // as it was named; empty = to be found
	Key    string                   // of access; empty = none
	Auth   string                   // where the key goes: one of Auths; empty = as the engine has it
}

// answer of a question.
type answer struct {
	status int
	kind   string
	head   http.Header
	body   []byte
}

// ask sends a GET, or a POST when there is a body.
func (p *Prober) ask(ctx context.Context, path string, body any) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	whole := p.Root
	if strings.HasPrefix(path, "/v1/") {
		whole = p.Join
	}
	return p.send(ctx, whole(path), body)
}

func (p *Prober) send(ctx context.Context, address string, body any) (answer, error) {
	method, content := http.MethodGet, io.Reader(nil)
	if body != nil {
		b, ok := body.([]byte)
		if !ok {
			var err error
			if b, err = json.Marshal(body); err != nil {
				return answer{}, err
			}
		}
		method, content = http.MethodPost, bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if p.Engine == "anthropic" {
		req.Header.Set("anthropic-version", anthropicVersion)
	}
	for _, f := range append(KeyFields(p.Engine, p.Auth, p.Key), p.Header...) {
		req.Header.Set(f.Name, f.Value)
	}
	resp, err := p.HTTP.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header, b}, err
}

// into reads a JSON answer of status 200.
func (p *Prober) into(ctx context.Context, path string, body, v any) bool {
	a, err := p.ask(ctx, path, body)
	return err == nil && a.status == http.StatusOK && json.Unmarshal(a.body, v) == nil
}

// Ready tells whether the server answers a question of those that all servers have, some of them. A health check is the last of them,
// for servers that no other is for: SGLang's, which has /v1/models, costs a generation.
func (p *Prober) Ready(ctx context.Context) bool {
	for i, path := range []string{"/v1/models", "/info", "/v2/health/ready", "/api/version", "/health"} {
		a, err := p.ask(ctx, path, nil)
		switch {
		case err == nil && (a.status == http.StatusOK || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden || a.anthropic()):
			return true
		case err != nil || i == 0 && a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed:
			return false
		}
	}
	return false
}

// Count asks POST /tokenize how many tokens a prompt has, a chat with its template. It is vLLM's form, which others share, but for a
// text before TGI.
func (p *Prober) Count(ctx context.Context, engine, model, prompt string, chat bool) (int, bool) {
	if engine == "tgi" && !chat {
		var tokens []json.RawMessage
		ok := p.into(ctx, "/tokenize", map[string]any{"inputs": prompt, "add_special_tokens": true}, &tokens)
		return len(tokens), ok && len(tokens) > 0
	}
	body := map[string]any{"model": model, "prompt": prompt}
	if chat {
		body = map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": prompt}}}
	}
	var out struct {
		Count int `json:"count"`
	}
	ok := p.into(ctx, "/tokenize", body, &out)
	return out.Count, ok && out.Count > 0
}

// Post sends a prepared body and returns the status, the head and the body of the answer. The caller's context bounds it.
func (p *Prober) Post(ctx context.Context, path string, body []byte) (status int, head http.Header, out []byte, err error) {
	a, err := p.send(ctx, p.Join(path), body)
	return a.status, a.head, a.body, err
}
