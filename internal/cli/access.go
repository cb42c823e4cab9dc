package cli

import (
	"context"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/net/http/httpproxy"

	"github.com/prony-bench/prony/internal/builtin"
	"github.com/prony-bench/prony/internal/chat"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/discover"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/isolate"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/token"
	"github.com/prony-bench/prony/internal/wire"
)

// accessFlags are the flags of the way to a server and of what it asks for there. Nothing of them that grants access is stored.
type accessFlags struct {
	apiKey, auth      string
	headers           []string
	cacert, cert, key string
	insecure          bool
	proxy             string
}

// accessNames are their names, for the commands that ask a server.
var accessNames = []string{"api-key", "auth", "header", "cacert", "insecure", "cert", "key", "proxy"}

func (f *accessFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.apiKey, "api-key", "", "key of the server; else PRONY_API_KEY, or OPENAI_API_KEY (ANTHROPIC_API_KEY for --engine anthropic). Never printed or stored")
	set.StringVar(&f.auth, "auth", "", "header of the key: bearer (Authorization: Bearer KEY), x-api-key or api-key (default: x-api-key for anthropic, else bearer)")
	set.StringArrayVar(&f.headers, "header", nil, "header of every request, name:value or name=value; repeatable (vLLM)")
	set.StringVar(&f.cacert, "cacert", "", "file of certificates in PEM that are trusted besides the system's")
	set.BoolVar(&f.insecure, "insecure", false, "check no certificate of the server")
	set.StringVar(&f.cert, "cert", "", "file of this client's certificate in PEM, for servers that ask for one")
	set.StringVar(&f.key, "key", "", "file of its key in PEM (default: that of --cert)")
	set.StringVar(&f.proxy, "proxy", "", "HTTP proxy before the server: http://[user:password@]host:port, or env for the one that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name, which are not used otherwise; credentials are never printed or stored")
}

// check refuses what cannot be meant, before anything is read.
func (f *accessFlags) check(urls []string, given func(string) bool) error {
	if f.auth != "" {
		if err := oneOf("auth", f.auth, discover.Auths); err != nil {
			return err
		}
	}
	secure := slices.ContainsFunc(urls, func(u string) bool { return strings.HasPrefix(strings.ToLower(strings.TrimSpace(u)), "https://") })
	for _, name := range []string{"cacert", "insecure", "cert", "key"} {
		if given(name) && len(urls) > 0 && !secure {
			return fault.New(fault.Usage, "--"+name+" is for TLS, and no --url begins with https://", "leave it out, or write https://")
		}
	}
	switch {
	case f.insecure && f.cacert != "":
		return fault.New(fault.Usage, "--insecure and --cacert exclude each other", "without a check it does not matter who is trusted")
	case f.key != "" && f.cert == "":
		return fault.New(fault.Usage, "--key without --cert", "give the certificate of the key too")
	}
	return nil
}

// trust reads the files of TLS; nil = the system's settings.
func (f *accessFlags) trust() (*client.Trust, error) {
	if f.cacert == "" && !f.insecure && f.cert == "" {
		return nil, nil
	}
	t := &client.Trust{Insecure: f.insecure}
	keyFlag, key := "--key", f.key
	if key == "" {
		keyFlag, key = "--cert", f.cert
	}
	for _, x := range []struct {
		flag, path string
		to         *[]byte
	}{{"--cacert", f.cacert, &t.Authorities}, {"--cert", f.cert, &t.Certificate}, {keyFlag, key, &t.Key}} {
		if x.path == "" {
			continue
		}
		b, err := os.ReadFile(x.path)
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, x.flag, "it is the path of a file in PEM")
		}
		*x.to = b
	}
	_, err := t.Config()
	return t, err
}

// proxyOf returns the proxy of a target; nil = none is asked for.
func (f *accessFlags) proxyOf(getenv func(string) string) (func(*url.URL) (*client.Proxy, error), error) {
	if f.proxy == "" {
		return nil, nil
	}
	if f.proxy != "env" {
		p, err := client.ParseProxy(f.proxy)
		return func(*url.URL) (*client.Proxy, error) { return p, nil }, err
	}
	either := func(name string) string {
		if v := getenv(name); v != "" {
			return v
		}
		return getenv(strings.ToLower(name))
	}
	c := httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}
	if c.HTTPProxy == "" && c.HTTPSProxy == "" {
		return nil, fault.New(fault.Usage, "--proxy env, but the environment names no proxy", "set HTTP_PROXY or HTTPS_PROXY, or give the proxy itself")
	}
	of := c.ProxyFunc()
	return func(u *url.URL) (*client.Proxy, error) {
		p, err := of(u)
		if err != nil {
			return nil, fault.New(fault.Usage, "the proxy of the environment is no URL with a host", "look at HTTP_PROXY and HTTPS_PROXY")
		}
		if p == nil {
			return nil, nil
		}
		proxy, err := client.ParseProxy(p.String())
		if err != nil {
			err = fault.Wrap(fault.Usage, err, "the environment's proxy", fault.HintOf(err))
		}
		return proxy, err
	}, nil
}

// accessKey is the key that was given, or else the environment's.
func (f *accessFlags) accessKey(engine string, fields []wire.Field, getenv func(string) string) (string, error) {
	names := []string{"PRONY_API_KEY", "OPENAI_API_KEY"}
	if engine == "anthropic" {
		names[1] = "ANTHROPIC_API_KEY"
	}
	key := strings.TrimSpace(f.apiKey)
	if of := discover.KeyFields(engine, f.auth, "k")[0].Name; key != "" && wire.HasField(fields, of) {
		return "", fault.New(fault.Usage, "--api-key and --header "+of+" are both given", "give one of them")
	}
	if key == "" && !hasKey(fields) { // a header says more than the environment
		for _, name := range names {
			if key == "" {
				key = strings.TrimSpace(getenv(name))
			}
		}
	}
	if strings.ContainsAny(key, "\r\n") {
		return "", fault.New(fault.Usage, "the API key holds a line end", "give it as one line, without what may stand around it in a file")
	}
	if key == "" && f.auth != "" {
		return "", fault.New(fault.Usage, "--auth says where a key goes, and there is none", "give one with --api-key, or in PRONY_API_KEY")
	}
	return key, nil
}

// runDeps gathers what a run needs besides its spec, secrets included.
func (a *app) runDeps(f *runFlags) (run.Deps, error) {
	d := run.Deps{Engines: builtin.Engines(), Datasets: builtin.Datasets(), Spin: client.DefaultSpin, WaitReady: time.Duration(f.waitReady),
		Version: a.Version, Command: redact(append([]string{"prony"}, a.Args...)), Say: a.say, Auth: f.access.auth}
	if runtime.GOOS != "linux" {
		d.Spin = 0
	}
	var err error
	if d.Header, err = parseHeaders(f.access.headers); err != nil {
		return d, err
	}
	d.Calibration = a.calibrations()
	d.Chat = func(ctx context.Context, name string) (*chat.Template, error) {
		return a.loadTemplate(ctx, name, f.allowDownload)
	}
	d.Tokenizer = func(ctx context.Context, name string) (*token.Tokenizer, error) {
		return a.loadTokenizer(ctx, name, f.allowDownload)
	}
	if isolate.Possible {
		d.EngineProcess = a.engineProcess
	}
	if d.ProxyOf, err = f.access.proxyOf(a.Getenv); err != nil {
		return d, err
	}
	if d.Trust, err = f.access.trust(); err != nil {
		return d, err
	}
	d.Key, err = f.access.accessKey(f.engine, d.Header, a.Getenv)
	return d, err
}
