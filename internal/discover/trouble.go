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
	"strings"

	"github.com/prony-bench/prony/internal/fault"
)

// ofProxies are the answers by which a proxy says that it does not, or cannot, ask the server.
var ofProxies = []int{http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusBadGateway, http.StatusGatewayTimeout}

// ProxyHint says what to look at when a proxy refuses.
const ProxyHint = "can the proxy reach the server, and does it want credentials (--proxy http://user:password@host:port)?"

// TLSHint says what to look at when TLS fails.
const TLSHint = "is it the name in the certificate? an authority of your own is made known by --cacert FILE, a client's certificate by --cert and --key; --insecure checks nothing"

// name is what the server is called to a person.
func (p *Prober) name() string { return cmp.Or(p.Name, p.Join("")) }

// anthropic tells whether an answer is an error in the form of Anthropic's API, which wants its key and a version in headers of its own.
func (a answer) anthropic() bool {
	var e struct {
		Type  string `json:"type"`
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	return a.status >= 400 && a.status < 500 && json.Unmarshal(a.body, &e) == nil && e.Type == "error" && e.Error.Type != ""
}

// noModels says what came in place of a list of models.
func (p *Prober) noModels(a answer) error {
	cause, hint := fmt.Sprintf("answers %d: %s", a.status, words(a.body)), "check the path in --url; a server without that list is measured with --engine and --model"
	switch {
	case a.html():
		cause, hint = fmt.Sprintf("answers %d with an HTML page", a.status), "is --url the server's API, and not a web page, a login or a proxy before it?"
	case a.status == http.StatusOK:
		cause, hint = "answers no JSON: "+words(a.body), "is it an LLM server? check --url"
	case a.status >= 500:
		hint = "is it still loading? --wait-ready 10m waits for it; its log may say more"
	case a.status >= 300 && a.status < 400:
		cause = fmt.Sprintf("answers %d, a redirect to %s", a.status, words([]byte(a.head.Get("Location"))))
		hint = "a redirect is not followed, since it would be measured with the answer: give the address it leads to with --url"
	}
	return fault.New(fault.Target, p.named("/v1/models")+" "+cause, hint)
}

// named names a path of the server to a person.
func (p *Prober) named(path string) string {
	if strings.HasPrefix(p.Name, "unix:") {
		return p.Name + " " + path
	}
	return p.Join(path)
}

func (a answer) html() bool {
	b := bytes.ToLower(bytes.TrimSpace(a.body[:min(len(a.body), 512)]))
	return strings.HasPrefix(a.kind, "text/html") || bytes.HasPrefix(b, []byte("<!doctype html")) || bytes.HasPrefix(b, []byte("<html"))
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
		hint = TLSHint
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
