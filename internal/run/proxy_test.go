package run

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/discover"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/proxytest"
)

// behind runs test while a proxy stands before the world's server.
func (w *world) behind(p *proxytest.Proxy, test func()) {
	w.t.Helper()
	var n memnet.Network // of the proxy alone: nobody else is reached directly
	p.Dial, w.deps.Dial = w.deps.Dial, n.Dial
	ln, err := n.Listen("proxy:3128")
	if err != nil {
		w.t.Fatal(err)
	}
	w.deps.ProxyOf = func(*url.URL) (*client.Proxy, error) { return client.ParseProxy("http://me:sekret77@proxy:3128") }
	var wg sync.WaitGroup
	wg.Go(func() { p.Serve(ln) })
	test()
	ln.Close()
	wg.Wait()
}

// A whole run goes through a proxy, the questions before it too, and nothing that is kept tells the credentials.
func TestRunThroughProxy(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Keep.Transcripts = true
		w.behind(&proxytest.Proxy{Credentials: "me:sekret77"}, func() {
			res := w.do()
			if c := res.Summary.Requests; c.OK != 10 || res.Summary.Verdict != bench.Valid || res.Manifest.Spec.Client.Proxy != "http://proxy:3128" {
				w.t.Errorf("%+v, %s, proxy %q", c, res.Summary.Verdict, res.Manifest.Spec.Client.Proxy)
			}
			if d := res.Summary.Metrics.Dist("ttft_ms"); d.Min != 100 || d.Max != 100 {
				w.t.Errorf("ttft %+v", d)
			}
		})
		files, _ := filepath.Glob(filepath.Join(w.dir, "*"))
		for _, f := range files {
			if b, err := os.ReadFile(f); err != nil || strings.Contains(string(b), "sekret77") || strings.Contains(string(b), "bWU6c2VrcmV0Nzc") {
				w.t.Errorf("%s: %v, or it holds the credentials", f, err)
			}
		}
		if len(files) < 4 {
			w.t.Errorf("files %v", files)
		}
	})
}

// A proxy that refuses makes the target unusable: its name and status are said, and what to look at.
func TestProxyRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		proxy *proxytest.Proxy
		url   string
		text  string
	}{
		{"credentials", &proxytest.Proxy{Credentials: "you:other"}, "http://sim:80", "http://sim:80 answers 407 through the proxy http://proxy:3128"},
		{"credentials of a tunnel", &proxytest.Proxy{Credentials: "you:other"}, "https://sim:80", "the proxy http://proxy:3128 opens no tunnel to sim:80: it answers 407 Proxy Authentication Required"},
		{"no tunnels", &proxytest.Proxy{NoTunnels: true}, "https://sim:80", "403 Forbidden"},
		{"no such server", &proxytest.Proxy{}, "http://nobody:80", "http://nobody:80 answers 502 through the proxy http://proxy:3128"},
		{"no such server in a tunnel", &proxytest.Proxy{}, "https://nobody:80", "502 Bad Gateway"},
	} {
		virtual(t, exact(100*ms, 20*ms), func(w *world) {
			w.spec.Target.URLs = []string{c.url}
			w.behind(c.proxy, func() {
				_, err := Prepare(context.Background(), w.spec, w.deps, false)
				if fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), c.text) || fault.HintOf(err) != discover.ProxyHint || strings.Contains(err.Error(), "sekret") {
					w.t.Errorf("%s: %v, hint %q", c.name, err, fault.HintOf(err))
				}
			})
		})
	}
	// the questions are forwarded, but the requests want tunnels
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		w.spec.Client.HTTP = "2"
		w.behind(&proxytest.Proxy{NoTunnels: true}, func() {
			res := w.do()
			if err := res.Unusable; fault.CodeOf(err) != fault.Target || !strings.Contains(err.Error(), "the proxy http://proxy:3128 opens no tunnel to sim:80: it answers 403") || fault.HintOf(err) != discover.ProxyHint || res.ExitCode() != fault.Target {
				w.t.Errorf("%v, hint %q", err, fault.HintOf(err))
			}
		})
	})
}

// A proxy that says nothing holds a run up for no longer than a question may take.
func TestProxySilent(t *testing.T) {
	virtual(t, exact(100*ms, 20*ms), func(w *world) {
		var n memnet.Network
		if _, err := n.Listen("proxy:3128"); err != nil { // nobody accepts
			w.t.Fatal(err)
		}
		w.deps.Dial = n.Dial
		w.deps.ProxyOf = func(*url.URL) (*client.Proxy, error) { return client.ParseProxy("proxy:3128") }
		begun := time.Now()
		_, err := Prepare(context.Background(), w.spec, w.deps, false)
		if fault.CodeOf(err) != fault.Target || time.Since(begun) > 10*time.Second {
			w.t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

func TestProxySecrets(t *testing.T) {
	proxy, _ := client.ParseProxy("http://me:sekret77@proxy:3128")
	p := &Plan{secrets: proxySecrets(proxy)}
	if got := p.conceal("sekret77 or Basic bWU6c2VrcmV0Nzc= of me"); got != "[key] or Basic [key] of me" {
		t.Error(got)
	}
	if got := proxySecrets(nil); got != nil {
		t.Error(got)
	}
}
