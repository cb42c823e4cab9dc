// Package proxytest is a small HTTP proxy. It is for tests.
package proxytest

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
)

// Proxy forwards plain requests and opens tunnels. It keeps a connection to one server for each connection of a client.
type Proxy struct {
	Dial        func(ctx context.Context, network, addr string) (net.Conn, error)
	Credentials string // user:password that it asks for; empty = none
	NoTunnels   bool   // CONNECT is forbidden

	wg    sync.WaitGroup
	mu    sync.Mutex
	asked []string
}

// Serve answers until the listener is closed and all clients are gone.
func (p *Proxy) Serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			break
		}
		p.wg.Go(func() { p.serve(c) })
	}
	p.wg.Wait()
}

// Asked returns the method and the target of each request that was let through.
func (p *Proxy) Asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

func (p *Proxy) serve(c net.Conn) {
	defer c.Close()
	var server net.Conn
	defer func() {
		if server != nil {
			server.Close()
		}
	}()
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if status := p.judge(req); status != 0 {
			io.Copy(io.Discard, req.Body)
			fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Length: 4\r\n\r\nno.\n", status, http.StatusText(status))
			continue
		}
		first := server == nil
		if first {
			if server, err = p.Dial(context.Background(), "tcp", req.URL.Host); err != nil {
				fmt.Fprintf(c, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nno.\n")
				server = nil
				continue
			}
		}
		p.mu.Lock()
		p.asked = append(p.asked, req.Method+" "+req.RequestURI)
		p.mu.Unlock()
		if req.Method == http.MethodConnect {
			io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		}
		if first {
			p.wg.Go(func() {
				io.Copy(c, server)
				c.Close()
			})
		}
		if req.Method == http.MethodConnect {
			io.Copy(server, r)
			return
		}
		req.Header.Del("Proxy-Authorization")
		if req.Write(server) != nil {
			return
		}
	}
}

// judge returns the status by which a request is refused; 0 = it is let through.
func (p *Proxy) judge(req *http.Request) int {
	tunnel := req.Method == http.MethodConnect
	switch {
	case p.Credentials != "" && req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(p.Credentials)):
		return http.StatusProxyAuthRequired
	case tunnel && p.NoTunnels:
		return http.StatusForbidden
	case !tunnel && !req.URL.IsAbs():
		return http.StatusBadRequest
	}
	return 0
}
