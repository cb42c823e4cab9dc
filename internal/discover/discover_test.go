package discover

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// server answers paths with bodies; the others with 404.
func server(t *testing.T, bodies map[string]string) *Prober {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, ok := bodies[r.URL.Path]
		if !ok || r.Header.Get("X-Key") != "k" {
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
			return
		}
		io.WriteString(w, b)
	}))
	t.Cleanup(srv.Close)
	return &Prober{HTTP: srv.Client(), Join: func(p string) string { return srv.URL + p }, Root: func(p string) string { return srv.URL + p }, Header: []wire.Field{{Name: "X-Key", Value: "k"}}}
}

// recorded is the body that a real engine gave.
func recorded(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/wire/recorded", name+".response.http"))
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := strings.Cut(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n\n")
	if !ok {
		t.Fatal(name, "has no body")
	}
	return body
}

func TestRefusedAndDown(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":"Unauthorized"}`, http.StatusUnauthorized)
	}))
	p := &Prober{HTTP: srv.Client(), Join: func(s string) string { return srv.URL + s }, Root: func(s string) string { return srv.URL + s }}
	if _, err := p.Identify(context.Background(), ""); fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), "Unauthorized") || !strings.Contains(fault.HintOf(err), "--api-key") {
		t.Error(err)
	}
	if !p.Ready(context.Background()) {
		t.Error("a server that asks for a key is up")
	}
	srv.Close()
	if _, err := p.Identify(context.Background(), ""); fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if p.Ready(context.Background()) {
		t.Error("a closed server is ready")
	}
}

func TestCount(t *testing.T) {
	p := server(t, map[string]string{"/tokenize": recorded(t, "vllm-tokenize")})
	if n, ok := p.Count(context.Background(), "vllm", "tiny", "hello world", true); !ok || n < 1 {
		t.Error(n, ok)
	}
	// llama.cpp has the path and another form: not a count
	if n, ok := server(t, map[string]string{"/tokenize": recorded(t, "llamacpp-tokenize")}).Count(context.Background(), "llamacpp", "m", "x", false); ok {
		t.Error(n)
	}
	tgi := server(t, map[string]string{"/tokenize": `[{"id":1,"text":"<s>","start":0,"stop":0},{"id":2,"text":"x","start":0,"stop":1}]`})
	if n, ok := tgi.Count(context.Background(), "tgi", "m", "x", false); !ok || n != 2 {
		t.Error(n, ok)
	}
	if n, ok := tgi.Count(context.Background(), "tgi", "m", "x", true); ok {
		t.Error(n)
	}
	if _, ok := server(t, nil).Count(context.Background(), "vllm", "m", "x", false); ok {
		t.Error("a count from nowhere")
	}
}

// What is wrong with a server is said whole, and without the names of Go's calls.
func TestUnreachable(t *testing.T) {
	for _, c := range []struct{ says, cause, hint string }{
		{"", "it closes the connection without an answer", "is the server up"},
		{"SSH-2.0-OpenSSH_9.6\r\n", "it does not speak HTTP/1.1", "https://"},
		{"HTTP/1.1 200 OK\r\nbad field\r\n\r\n", `malformed MIME header: missing colon: "bad field"`, "is the server up"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{", "it closes the connection without an answer", "is the server up"},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				nc.Read(make([]byte, 4096)) // the request
				io.WriteString(nc, c.says)
				nc.Close()
			}
		}()
		address := "http://" + l.Addr().String()
		p := &Prober{HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, Join: func(s string) string { return address + s }, Root: func(s string) string { return address + s }}
		_, err = p.Identify(context.Background(), "")
		l.Close()
		if want := address + " cannot be reached: " + c.cause; err == nil || err.Error() != want || fault.CodeOf(err) != fault.Target || !strings.Contains(fault.HintOf(err), c.hint) {
			t.Errorf("%q: %v (%s), want %s", c.says, err, fault.HintOf(err), want)
		}
	}
}

func TestCauseOf(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "http://x", Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{refused, "connection refused"},
		{errors.New("tls: failed to verify certificate: x509: certificate is valid for a: b, not c"), "certificate is valid for a: b, not c"},
		{errors.New("plain"), "plain"},
	} {
		if got := causeOf(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}
