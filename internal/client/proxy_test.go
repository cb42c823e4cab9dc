package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/proxytest"
	"github.com/prony-bench/prony/internal/wire"
)

// stage is where an engine meets a proxy: in memory and virtual time, or on sockets.
type stage struct {
	*testing.T
	exact  bool
	listen func(addr string) net.Listener
	dial   func(context.Context, string, string) (net.Conn, error)
	start  func(Options) (Engine, error)
}

// stages runs a test on every stage; epoll tells whether the epoll engine is to be among them.
func stages(t *testing.T, epoll bool, test func(s *stage)) {
	t.Run("virtual", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var n memnet.Network
			test(&stage{t, true, func(addr string) net.Listener {
				ln, err := n.Listen(addr)
				if err != nil {
					t.Fatal(err)
				}
				return ln
			}, n.Dial, func(o Options) (Engine, error) {
				o.Dial = n.Dial
				return NewPortable(o), nil
			}})
		})
	})
	for name, start := range engines {
		if name == "epoll" && !epoll {
			continue
		}
		t.Run(name, func(t *testing.T) {
			test(&stage{t, false, func(string) net.Listener {
				ln, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				return ln
			}, (&net.Dialer{}).DialContext, func(o Options) (Engine, error) {
				o.Spin = DefaultSpin
				return start(o)
			}})
		})
	}
}

// ask sends jobs to a URL, one after the other, and returns what came.
func (s *stage) ask(url, proxy string, o Options, jobs int) *sink {
	s.Helper()
	target, err := ParseTarget(url)
	if err != nil {
		s.Fatal(err)
	}
	if proxy != "" {
		p, err := ParseProxy(proxy)
		if err != nil {
			s.Fatal(err)
		}
		if err := target.Via(p); err != nil {
			s.Fatal(err)
		}
	}
	out := newSink()
	o.Epoch, o.Sink, o.Targets, o.UserAgent = time.Now(), out, []Target{target}, "prony/test"
	e, err := s.start(o)
	if err != nil {
		s.Skip(err)
	}
	for i := range jobs {
		e.Submit(&Job{ID: i, Call: wire.Call{Method: "POST", Path: "/x", Body: []byte("{}")}})
		out.await(1)
	}
	e.Close()
	return out
}

// told is a transcript without its times.
func told(out *sink, id int) string {
	tr := out.done[id]
	var raw []byte
	for _, p := range out.parts[id] {
		raw = append(raw, p.Raw...)
	}
	raw = append(raw, tr.Raw...)
	return fmt.Sprintf("fail %q %q, status %d %v, reused %v, retried %v, stamp %s, sent %v, head %v, connect %v, tls %v, raw %q, body %q", tr.Fail, tr.Cause, tr.Status, tr.Header,
		tr.Reused, tr.Retried, tr.Stamp, tr.Sent.Defined(), tr.HeadAt.Defined(), tr.Connect.Defined(), tr.TLS.Defined(), raw, out.body(id))
}

// What comes through a proxy is what comes without it, whatever is spoken; plain requests are forwarded, all else is tunnelled.
func TestProxy(t *testing.T) {
	for _, c := range []struct {
		name     string
		tls, h2  bool
		by, asks string
	}{
		{"http", false, false, "POST http://%s/x", "HTTP/1.1"},
		{"h2c", false, true, "CONNECT %s", "HTTP/2.0"},
		{"https", true, false, "CONNECT %s", "HTTP/1.1"},
		{"h2", true, true, "CONNECT %s", "HTTP/2.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stages(t, !c.tls && !c.h2, func(s *stage) {
				srv := &httptest.Server{Listener: s.listen("srv:443"), EnableHTTP2: c.h2, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header()["Date"] = nil
					answer(w, r)
				})}}
				o := Options{HTTP2: c.h2, ConnectTimeout: 10 * time.Second, Timeout: 10 * time.Second}
				if c.tls {
					srv.StartTLS()
					o.TLS = &tls.Config{RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"}
				} else {
					srv.Config.Protocols = new(http.Protocols)
					srv.Config.Protocols.SetUnencryptedHTTP2(true)
					srv.Config.Protocols.SetHTTP1(true)
					srv.Start()
				}
				defer srv.Close()
				ln := s.listen("proxy:3128")
				proxy := &proxytest.Proxy{Dial: s.dial, Credentials: "me:p w/7"}
				var wg sync.WaitGroup
				wg.Go(func() { proxy.Serve(ln) })
				defer wg.Wait()
				defer ln.Close()

				const jobs = 4
				direct := s.ask(srv.URL, "", o, jobs)
				proxied := s.ask(srv.URL, "http://me:p%20w%2F7@"+ln.Addr().String(), o, jobs)
				for i := range jobs {
					if want, got := told(direct, i), told(proxied, i); got != want || direct.body(i) != answered {
						s.Errorf("%d: through the proxy\n%s\nwithout it\n%s", i, got, want)
					}
					if s.exact && proxied.done[i].Ended.Or(0)-proxied.done[i].Sent.Or(0) != direct.done[i].Ended.Or(0)-direct.done[i].Sent.Or(0) {
						s.Errorf("%d: another time through the proxy", i)
					}
					if !strings.Contains(told(proxied, i), c.asks) {
						s.Errorf("%d: no %s in %s", i, c.asks, told(proxied, i))
					}
				}
				want := 1
				if c.by[0] == 'P' {
					want = jobs
				}
				asked := proxy.Asked()
				if len(asked) != want || asked[0] != fmt.Sprintf(c.by, srv.Listener.Addr()) {
					s.Errorf("the proxy was asked %q", asked)
				}
			})
		})
	}
}

// A proxy that opens no tunnel is named, with what it said; it has as long as a connect has.
func TestProxyRefusal(t *testing.T) {
	says := func(text string) func(net.Conn) { return func(c net.Conn) { io.WriteString(c, text) } }
	for _, c := range []struct {
		name string
		does func(net.Conn)
		want wire.Fail
		text string
	}{
		{"407", says("HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno"), wire.FailRefused, "opens no tunnel to srv:443: it answers 407 Proxy Authentication Required"},
		{"403", says("HTTP/1.1 403 No\r\n\r\n"), wire.FailRefused, "403 Forbidden"},
		{"502 after an interim answer", says("HTTP/1.1 100 Wait\r\n\r\nHTTP/1.0 502 No\r\n\r\n"), wire.FailRefused, "502 Bad Gateway"},
		{"closes", func(net.Conn) {}, wire.FailRefused, "without a response"},
		{"cut", says("HTTP/1.1 200 O"), wire.FailRefused, "in the middle"},
		{"another protocol", says("SSH-2.0-OpenSSH_9.9\r\n"), wire.FailRefused, "not an HTTP/1 response"},
		{"endless head", says("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", wire.MaxHead+1)), wire.FailRefused, "above"},
		{"silence", hangs, wire.FailTimeout, "opened no tunnel within the connect timeout"},
		{"half a head", func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\n"); hangs(c) }, wire.FailTimeout, "opened no tunnel within the connect timeout"},
	} {
		for _, o := range []Options{{}, {HTTP2: true}} {
			t.Run(fmt.Sprintf("%s/h2=%v", c.name, o.HTTP2), func(t *testing.T) {
				stages(t, false, func(s *stage) {
					if o.ConnectTimeout = 10 * time.Second; c.want == wire.FailTimeout {
						o.ConnectTimeout = 200 * ms
					}
					ln := s.listen("proxy:3128")
					srv := newServer(ln, func(c2 net.Conn, _ *http.Request, _ int) bool { c.does(c2); return false })
					out := s.ask("https://srv", "http://me:sekret77@"+ln.Addr().String(), o, 1)
					srv.close()
					tr := out.done[0]
					if tr.Fail != c.want || !strings.Contains(tr.Cause, c.text) || !strings.Contains(tr.Cause, "the proxy http://"+ln.Addr().String()) || strings.Contains(tr.Cause, "sekret") || tr.Sent.Defined() {
						s.Errorf("%q %q", tr.Fail, tr.Cause)
					}
					if ended := tr.Ended.Or(0); c.want == wire.FailTimeout && (ended < 200*ms || s.exact && ended != 200*ms) {
						s.Errorf("ended at %v", ended)
					}
				})
			})
		}
	}
}

// What comes in one piece with the proxy's answer is the server's, and keeps its place and its moment.
func TestTunnelThenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const head, then = "HTTP/1.1 200 OK\r\n\r\n", "\x17\x03\x03\x00\x02hi\x17"
		near, far := memnet.Pipe()
		proxy, _ := ParseProxy("proxy:3128")
		target, _ := ParseTarget("https://srv")
		target.Via(proxy)
		go func() {
			time.Sleep(7 * ms)
			io.WriteString(far, head+then)
		}()
		var n counts
		in, fail := tunnel(t.Context(), &undated{Conn: near, clock: newClock(time.Now()), n: &n}, target, "")
		if fail.kind != "" {
			t.Fatal(fail)
		}
		time.Sleep(ms)
		records, got := newLookahead(in, true), make([]byte, 7)
		if _, err := io.ReadFull(records, got); err != nil || string(got) != then[:7] || records.arrived() != (moment{7 * ms, int64(len(head) + 7)}) {
			t.Errorf("%q at %+v, %v", got, records.arrived(), err)
		}
		near.Close()
		far.Close()
	})
}

// hangs is hang for a proxy.
func hangs(c net.Conn) { hang(c) }

// What a proxy answers to a plain request is an answer as any other.
func TestProxyForwardRefusal(t *testing.T) {
	stages(t, true, func(s *stage) {
		ln := s.listen("proxy:3128")
		var wg sync.WaitGroup
		wg.Go(func() { (&proxytest.Proxy{Dial: s.dial, Credentials: "me:sekret77"}).Serve(ln) })
		out := s.ask("http://srv:80", "http://"+ln.Addr().String(), Options{}, 1)
		ln.Close()
		wg.Wait()
		if got := told(out, 0); !strings.Contains(got, "407 Proxy Authentication Required") || !strings.Contains(got, `body "no.\n"`) || out.done[0].Fail != "" {
			s.Error(got)
		}
	})
}

// An end of the run ends the wait for a proxy.
func TestProxyCut(t *testing.T) {
	stages(t, false, func(s *stage) {
		ln := s.listen("proxy:3128")
		asked := make(chan struct{}, 1)
		srv := newServer(ln, func(c net.Conn, _ *http.Request, _ int) bool { asked <- struct{}{}; hang(c); return false })
		target, _ := ParseTarget("https://srv")
		proxy, _ := ParseProxy(ln.Addr().String())
		target.Via(proxy)
		out := newSink()
		e, err := s.start(Options{Epoch: time.Now(), Sink: out, Targets: []Target{target}})
		if err != nil {
			s.Fatal(err)
		}
		e.Submit(&Job{Call: wire.Call{Method: "POST", Path: "/x"}})
		<-asked
		e.Cut()
		out.await(1)
		e.Close()
		srv.close()
		if tr := out.done[0]; tr.Fail != wire.FailIncomplete {
			s.Errorf("%q %q", tr.Fail, tr.Cause)
		}
	})
}

func TestParseProxy(t *testing.T) {
	for in, want := range map[string]string{"http://u:p@h:1": "http://h:1", "h:1": "http://h:1", "http://h/": "http://h", "u@h": "http://h", "http://[::1]:3128": "http://[::1]:3128"} {
		p, err := ParseProxy(in)
		if err != nil || p.String() != want {
			t.Errorf("%q: %v %v", in, p, err)
		}
	}
	for in, auth := range map[string]string{"h:1": "", "me:s%40t@h:1": "Basic bWU6c0B0", "me@h": "Basic bWU6"} {
		if p, err := ParseProxy(in); err != nil || p.Authorization() != auth {
			t.Errorf("%q: %q %v", in, p.Authorization(), err)
		}
	}
	for _, bad := range []string{"", "http://", "https://u:sekret@h", "socks5://u:sekret@h:1", "http://u:sekret@h:port", "http://u:sekret@h:99999", "http://u:sekret@h/path",
		"http://u:sekret@h?a=b", "http://u:sekret%zz@h", "http://u:sekret@:1", "u:sekret@"} {
		_, err := ParseProxy(bad)
		if fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" || strings.Contains(err.Error()+fault.HintOf(err), "sekret") {
			t.Errorf("%q: %v, hint %q", bad, err, fault.HintOf(err))
		}
	}
	target, _ := ParseTarget("unix:/run/x.sock")
	proxy, _ := ParseProxy("h:1")
	if err := target.Via(proxy); fault.CodeOf(err) != fault.Usage {
		t.Error(err)
	}
}

// A proxy is connected in place of the target, whose name only the proxy needs to know.
func TestResolveProxy(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target, _ := ParseTarget("https://no-such-host.invalid")
	proxy, _ := ParseProxy("http://me:sekret77@" + ln.Addr().String())
	target.Via(proxy)
	if _, _, err := target.Resolve(t.Context(), time.Second); err != nil || target.Addr != ln.Addr().String() {
		t.Errorf("%s %v", target.Addr, err)
	}
	ln.Close()
	_, _, err = target.Resolve(t.Context(), time.Second)
	if fault.CodeOf(err) != fault.Target || err.Error() != "the proxy http://"+ln.Addr().String()+" cannot be connected (127.0.0.1: connection refused)" || !strings.Contains(fault.HintOf(err), "--proxy") {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
	proxy, _ = ParseProxy("http://no-such-proxy.invalid")
	target.Via(proxy)
	if _, _, err = target.Resolve(t.Context(), time.Second); !strings.Contains(err.Error(), "no-such-proxy") || !strings.Contains(fault.HintOf(err), "--proxy") {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
}

// A unix socket serves as a port does, without the kernel's stamps.
func TestUnixSocket(t *testing.T) {
	for name, start := range engines {
		t.Run(name, func(t *testing.T) {
			s := &stage{T: t, start: start}
			path := filepath.Join(t.TempDir(), "s")
			missing := s.ask("unix:"+path, "", Options{}, 1).done[0]
			if missing.Fail != wire.FailRefused || missing.Cause != "no such file or directory" {
				t.Errorf("%q %q", missing.Fail, missing.Cause)
			}
			ln, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			var mu sync.Mutex
			var hosts []string
			srv := newServer(ln, func(c net.Conn, r *http.Request, _ int) bool {
				mu.Lock()
				hosts = append(hosts, r.Host+r.RequestURI)
				mu.Unlock()
				stream(c, ms, ms, 3)
				return true
			})
			out := s.ask("unix://"+path, "", Options{}, 3)
			srv.close()
			for i := range 3 {
				if tr := out.done[i]; tr.Fail != "" || out.body(i) != answered || tr.Stamp != wire.StampUser || tr.Reused != (i > 0) {
					t.Errorf("%d: %s", i, told(out, i))
				}
			}
			if fmt.Sprint(hosts) != "[localhost/x localhost/x localhost/x]" {
				t.Error(hosts)
			}
			if name == "epoll" {
				return
			}
			if ln, err = net.Listen("unix", path); err != nil {
				t.Fatal(err)
			}
			h2 := &httptest.Server{Listener: ln, Config: &http.Server{Handler: answer, Protocols: new(http.Protocols)}}
			h2.Config.Protocols.SetUnencryptedHTTP2(true)
			h2.Start()
			defer h2.Close()
			out = s.ask("unix:"+path, "", Options{HTTP2: true}, 1)
			if tr := out.done[0]; tr.Fail != "" || out.body(0) != answered || tr.Stamp != wire.StampUser || tr.Header.Get("X-Proto") != "HTTP/2.0" {
				t.Error(told(out, 0))
			}
		})
	}
}

func TestParseSocket(t *testing.T) {
	for in, want := range map[string]string{"unix:/run/e.sock": "/run/e.sock", "unix:///run/e.sock": "/run/e.sock", "unix:e.sock": "e.sock", " unix:/a b ": "/a b"} {
		tg, err := ParseTarget(in)
		if err != nil || tg.Socket != want || tg.Join("/v1/x") != "http://localhost/v1/x" || tg.Root("/metrics") != "http://localhost/metrics" || tg.Name("/v1/x") != "unix:"+want+" /v1/x" {
			t.Errorf("%q: %+v %v", in, tg, err)
		}
	}
	for _, bad := range []string{"unix:", "unix://", "unix://host/path", "unix:a\x00b", "unix:/" + strings.Repeat("a", longestSocket)} {
		if _, err := ParseTarget(bad); fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParseTarget("unix:/" + strings.Repeat("a", longestSocket-1)); err != nil {
		t.Error(err)
	}
	target, _ := ParseTarget("unix:" + filepath.Join(t.TempDir(), "s"))
	_, _, err := target.Resolve(t.Context(), time.Second)
	if fault.CodeOf(err) != fault.Target || err.Error() != target.Name("")+" cannot be connected (no such file or directory)" || fault.HintOf(err) == "" {
		t.Errorf("%v, hint %q", err, fault.HintOf(err))
	}
}
