package client

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// Proxy is an HTTP proxy (RFC 9110, 3.7) that stands before the targets. It gets plain HTTP/1.1 requests with the whole URL, and opens
// a tunnel for TLS and for HTTP/2.
type Proxy struct{ url *url.URL }

// proxyLike is what a proxy is given as.
const proxyLike = "a proxy looks like http://proxy:3128, or http://user:password@proxy:3128 with % codes for unusual characters"

// ParseProxy reads the URL of a proxy. A missing scheme is http. No error repeats what may be a password.
func ParseProxy(s string) (*Proxy, error) {
	text := strings.TrimSpace(s)
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return nil, fault.Usagef(proxyLike, "--proxy is no URL with a host")
	}
	if u.Scheme != "http" {
		return nil, fault.Usagef("https:// servers are reached through an http:// proxy too: it opens a tunnel", "--proxy has the scheme %q, and only http:// proxies are spoken to", u.Scheme)
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.Usagef(proxyLike, "--proxy has more than a host and a port")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return nil, fault.Usagef("ports go from 1 to 65535", "--proxy has the port %q", p)
		}
	}
	return &Proxy{&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}}, nil
}

// String returns the URL without credentials; empty for no proxy.
func (p *Proxy) String() string {
	if p == nil {
		return ""
	}
	return p.url.Scheme + "://" + p.url.Host
}

// URL returns the URL with credentials.
func (p *Proxy) URL() *url.URL { return p.url }

// Authorization returns the value of Proxy-Authorization; empty without credentials.
func (p *Proxy) Authorization() string {
	if p.url.User == nil {
		return ""
	}
	password, _ := p.url.User.Password()
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(p.url.User.Username()+":"+password))
}

// appendCredentials writes the header field of the credentials.
func (p *Proxy) appendCredentials(b []byte) []byte {
	if auth := p.Authorization(); auth != "" {
		b = append(append(append(b, "Proxy-Authorization: "...), auth...), "\r\n"...)
	}
	return b
}

// Refusal says that the proxy did not open a tunnel.
func (p *Proxy) Refusal(to string, status int) string {
	return fmt.Sprintf("the proxy %v opens no tunnel to %s: it answers %d %s", p, to, status, http.StatusText(status))
}

// Via puts a proxy before the target.
func (t *Target) Via(p *Proxy) error {
	if t.Socket != "" {
		return fault.Usagef("leave --proxy out", "--proxy cannot reach the unix socket %s", t.Socket)
	}
	t.Proxy, t.Addr = p, hostPort(p.url)
	return nil
}

// forwarded tells whether the proxy takes the target's HTTP/1.1 requests themselves.
func (t Target) forwarded() bool { return t.Proxy != nil && t.URL.Scheme == "http" }

// tunnelled tells whether the proxy is to pass bytes on that it does not understand.
func (t Target) tunnelled(http2 bool) bool { return t.Proxy != nil && (http2 || !t.forwarded()) }

// tunnel asks a proxy at the other end of a connection to connect it with the target. What is returned goes on where the head of the
// proxy's answer ended. On a failure the connection is closed.
func tunnel(ctx context.Context, nc dated, t Target, agent string) (dated, failure) {
	in := newLookahead(nc, false)
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	head, err := askTunnel(in, t, agent)
	if !stop() {
		err = ctx.Err()
	}
	fail := failure{}
	switch {
	case ctx.Err() != nil && err != nil:
		fail.kind, fail.cause = connectFailure(ctx.Err())
		if fail.kind == wire.FailTimeout {
			fail.cause = fmt.Sprintf("the proxy %v opened no tunnel within the connect timeout", t.Proxy)
		}
	case err != nil && head.HeadDone():
		fail = failure{wire.FailRefused, err.Error()}
	case err != nil:
		fail = failure{wire.FailRefused, fmt.Sprintf("the proxy %v opens no tunnel: %s", t.Proxy, lastWords(err))}
	default:
		return in, failure{}
	}
	nc.Close()
	return nil, fail
}

// askTunnel sends CONNECT and reads the head of the answer, byte by byte, since what follows it belongs to somebody else.
func askTunnel(in *lookahead, t Target, agent string) (head wire.HTTP1, err error) {
	to := hostPort(t.URL)
	b := []byte("CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n")
	if agent != "" {
		b = append(append(append(b, "User-Agent: "...), agent...), "\r\n"...)
	}
	b = append(t.Proxy.appendCredentials(b), "\r\n"...)
	if _, err := in.Write(b); err != nil {
		return head, err
	}
	var one [1]byte
	for !head.HeadDone() {
		if _, err := in.Read(one[:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = head.Close()
			}
			return head, err
		}
		if _, err := head.Feed(one[:], nil); err != nil {
			return head, err
		}
	}
	if status := head.Status(); status < 200 || status > 299 {
		return head, errors.New(t.Proxy.Refusal(to, status))
	}
	return head, nil
}
