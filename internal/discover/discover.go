// Package discover asks a server who it is: engine, version, models, limits; and how it counts tokens.
//
// Nothing here is measured. No question costs a generation, each has a bound on time and size, and a question that a server does
// not answer is no failure.
package discover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// Bounds of a question.
const (
	askTimeout = 5 * time.Second
	maxAnswer  = 8 << 20
)

// Prober asks one server.
type Prober struct {
	HTTP   *http.Client
	Join   func(path string) string // the whole URL of a path below /v1, or of the user's own
	Root   func(path string) string // the whole URL of a path beside /v1
	Name   string                   // of the server, for a person; empty = Join("")
	Proxy  string                   // before the server; empty = none
	Header []wire.Field             // authorisation and the user's own
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
	for _, f := range p.Header {
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

// models is the answer of GET /v1/models.
type models struct {
	Data []struct {
		ID      string `json:"id"`
		OwnedBy string `json:"owned_by"`
		MaxLen  int    `json:"max_model_len"`
		Meta    struct {
			Ctx   int    `json:"n_ctx"`
			Vocab int    `json:"n_vocab"`
			FType string `json:"ftype"`
		} `json:"meta"`
	} `json:"data"`
}

// owners are the engines by what they write into owned_by.
var owners = map[string]string{"vllm": "vllm", "sglang": "sglang", "lmdeploy": "lmdeploy", "tensorrt_llm": "trtllm", "llamacpp": "llamacpp", "prony-sim": "prony-sim"}

// ofProxies are the answers by which a proxy says that it does not, or cannot, ask the server.
var ofProxies = []int{http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusBadGateway, http.StatusGatewayTimeout}

// ProxyHint says what to look at when a proxy refuses.
const ProxyHint = "can the proxy reach the server, and does it want credentials (--proxy http://user:password@host:port)?"

// name is what the server is called to a person.
func (p *Prober) name() string { return cmp.Or(p.Name, p.Join("")) }

// Identify finds out what a server tells about itself. The error is a fault when the server cannot be used at all.
func (p *Prober) Identify(ctx context.Context) (bench.Engine, error) {
	var e bench.Engine
	a, err := p.ask(ctx, "/v1/models", nil)
	if err != nil {
		return e, p.unreachable(err)
	}
	if p.Proxy != "" && slices.Contains(ofProxies, a.status) {
		return e, fault.New(fault.Target, fmt.Sprintf("%s answers %d through the proxy %s: %s", p.name(), a.status, p.Proxy, words(a.body)), ProxyHint)
	}
	if a.status == http.StatusUnauthorized || a.status == http.StatusForbidden {
		return e, fault.New(fault.Target, fmt.Sprintf("the server refuses access (%d): %s", a.status, words(a.body)), "give a key with --api-key, or in PRONY_API_KEY")
	}
	var m models
	if a.status == http.StatusOK && json.Unmarshal(a.body, &m) == nil {
		for _, d := range m.Data {
			e.Models = append(e.Models, d.ID)
			if e.Name == "" {
				e.Name = owners[d.OwnedBy]
			}
			if e.MaxLen == 0 {
				if e.MaxLen = d.MaxLen; e.MaxLen == 0 {
					e.MaxLen = d.Meta.Ctx
				}
				e.Vocab, e.Quant = d.Meta.Vocab, d.Meta.FType
			}
		}
	}
	p.version(ctx, &e)
	return e, nil
}

// version asks for what the engine, as far as it is known, tells about its version and limits.
func (p *Prober) version(ctx context.Context, e *bench.Engine) {
	var v struct {
		Version string `json:"version"`
	}
	switch e.Name {
	case "vllm", "trtllm", "prony-sim":
		if p.into(ctx, "/version", nil, &v) {
			e.Version = v.Version
		}
	case "sglang":
		if p.into(ctx, "/server_info", nil, &v) {
			e.Version = v.Version
		}
	case "llamacpp":
		var props struct {
			Build   string `json:"build_info"`
			Slots   int    `json:"total_slots"`
			FType   string `json:"model_ftype"`
			Default struct {
				Ctx int `json:"n_ctx"`
			} `json:"default_generation_settings"`
		}
		if p.into(ctx, "/props", nil, &props) {
			e.Version, e.Slots = props.Build, props.Slots
			if props.Default.Ctx > 0 {
				e.MaxLen = props.Default.Ctx // of a slot: what a request can use
			}
			if props.FType != "" {
				e.Quant = props.FType
			}
		}
	case "":
		if p.into(ctx, "/api/version", nil, &v) && v.Version != "" {
			e.Name, e.Version = "ollama", v.Version
			return
		}
		var info struct { // of text-embeddings-inference
			Version string          `json:"version"`
			Model   string          `json:"model_id"`
			MaxLen  int             `json:"max_input_length"`
			Type    json.RawMessage `json:"model_type"`
		}
		if p.into(ctx, "/info", nil, &info) && info.Model != "" && info.MaxLen > 0 && len(info.Type) > 0 {
			e.Name, e.Version, e.MaxLen = "tei", info.Version, info.MaxLen
			if len(e.Models) == 0 {
				e.Models = []string{info.Model}
			}
		}
	}
}

// unreachable turns a transport failure into a fault.
func (p *Prober) unreachable(err error) error {
	var told *fault.Error
	if errors.As(err, &told) {
		return told
	}
	cause := causeOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		cause = fmt.Sprintf("no answer within %v", askTimeout)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		cause = "it closes the connection without an answer"
	}
	hint := "is the server up? `--wait-ready 10m` waits for it; `prony sim` starts one to try with"
	switch words := err.Error(); {
	case strings.Contains(words, "HTTP response to HTTPS client"):
		cause, hint = "it speaks plain HTTP", "use http:// in --url"
	case strings.Contains(words, "malformed HTTP response"):
		cause, hint = "it does not speak HTTP/1.1", "does it want https:// in --url?"
	case strings.Contains(words, "certificate"):
		hint = "is it the name in the certificate? an authority of your own is made known by SSL_CERT_FILE"
	}
	return fault.New(fault.Target, fmt.Sprintf("%s cannot be reached: %s", p.name(), cause), hint)
}

// causeOf says what is wrong with a transport, without the names of the calls that met it.
func causeOf(err error) string {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	text := err.Error()
	for _, layer := range []string{"net/http: ", "http: ", "tls: ", "remote error: ", "failed to verify certificate: ", "x509: ", "HTTP/1.x transport connection broken: "} {
		text = strings.TrimPrefix(text, layer)
	}
	return words([]byte(text))
}

// Ready tells whether the server answers GET /v1/models or /health with success.
func (p *Prober) Ready(ctx context.Context) bool {
	for _, path := range []string{"/v1/models", "/health"} {
		if a, err := p.ask(ctx, path, nil); err == nil && (a.status == http.StatusOK || a.status == http.StatusUnauthorized || a.status == http.StatusForbidden) {
			return true
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

// words shortens a body for a message.
func words(b []byte) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(b), "?")), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	if s == "" {
		s = "without words"
	}
	return s
}
