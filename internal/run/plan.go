// Package run carries out one workload at one load against one target: the whole line.
package run

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/chat"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/discover"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/telemetry"
	"github.com/prony-bench/prony/internal/token"
	"github.com/prony-bench/prony/internal/wire"
	"github.com/prony-bench/prony/internal/workload"
)

// Deps are what a run needs from outside.
type Deps struct {
	Engines  catalog.Catalog[dialect.Engine]
	Datasets catalog.Catalog[workload.Dataset]

	Header    []wire.Field  // the user's own; never stored
	Key       string        // of access; never stored, empty = none
	Auth      string        // where the key goes: one of discover.Auths; empty = as the engine has it
	Trust     *client.Trust // of TLS; nil = the system's settings
	Spin      time.Duration // client.DefaultSpin, or 0 in virtual time
	WaitReady time.Duration // how long to wait for the server to come up

	// ProxyOf returns the proxy before a target, with its credentials, or nil; ProxyOf itself is nil without any.
	ProxyOf func(*url.URL) (*client.Proxy, error)

	// Dial replaces the network, nil = TCP. Then no name is resolved and no GPU is asked about.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Calibration returns the last calibration of a machine and a client, or nil and why none of those that are stored holds; nil = nobody
	// knows.
	Calibration func(bench.Host, bench.ClientReport) (c *bench.Calibration, why string)

	// Tokenizer loads a tokenizer by its name; nil = there is none to be had.
	Tokenizer func(ctx context.Context, name string) (*token.Tokenizer, error)

	// Chat loads the chat template that comes with a tokenizer; nil = there is none to be had.
	Chat func(ctx context.Context, tokenizer string) (*chat.Template, error)

	// EngineProcess makes the command that starts this program as an engine (isolate.Serve); nil = it cannot be.
	EngineProcess func() *exec.Cmd

	Version string   // of this program
	Command []string // that started it, without secrets

	// Say takes one line for the person who waits.
	Say func(line string)
}

func (d *Deps) say(format string, args ...any) {
	if d.Say != nil {
		d.Say(fmt.Sprintf(format, args...))
	}
}

// Plan is a run that is ready to begin: every name resolved, every choice made.
type Plan struct {
	Spec     bench.Spec
	Sheet    bench.Sheet
	Targets  []client.Target
	Engine   dialect.Engine
	Endpoint dialect.Endpoint
	Options  dialect.Options
	Maker    workload.Maker // nil where the data set brings its prompts

	dataset workload.Dataset
	files   *workload.Cache
	deps    Deps
	secrets []string
	form    *form
	found   []discover.Found                 // by target
	tls     *tls.Config                      // nil = the system's settings
	tested  *bench.StampTest                 // of the grades of the stamps; nil = not tested
	counter func() (*token.Tokenizer, error) // waits for the tokenizer; nil = none was asked for
	asking  map[string]*http.Transport       // by target, while the plan is being made
}

// Prepare resolves the targets, asks the first one who it is, and finds out how long its prompts must be. Offline asks nobody:
// what is then not known is an estimate.
func Prepare(ctx context.Context, spec bench.Spec, deps Deps, offline bool) (*Plan, error) {
	p := &Plan{Spec: spec, deps: deps, files: new(workload.Cache), secrets: secretsOf(append(keyFields(&deps), deps.Header...)), asking: map[string]*http.Transport{}}
	_, inBody := ConcealBody(spec.Target.ExtraBody)
	p.secrets = append(p.secrets, inBody...)
	defer p.stopAsking()
	look := p.lookAround(ctx, offline)
	p.startTokenizer(ctx)
	err := p.prepare(ctx, offline)
	here := look()
	if err == nil && !offline {
		err = p.checkStamps()
	}
	if err != nil {
		return nil, p.concealError(err)
	}
	p.Sheet.Taken, p.Sheet.Host, p.Sheet.GPUs, p.Sheet.GPUNote = time.Now(), here.Host, here.GPUs, here.GPUNote
	return p, nil
}

// lookAround finds out about this machine while others are asked about the server, and tests the stamps. The returned function waits
// for that.
func (p *Plan) lookAround(ctx context.Context, offline bool) (wait func() bench.Sheet) {
	var wg sync.WaitGroup
	var here bench.Sheet
	wg.Go(func() { here.Host = telemetry.HostSheet(ctx) })
	if p.deps.Dial == nil && !offline {
		wg.Go(func() { here.GPUs, here.GPUNote = telemetry.GPUSheet(ctx) })
		if p.deps.Spin > 0 && p.Spec.Client.Stamps != string(wire.StampUser) {
			wg.Go(func() { p.tested = client.TestStamps() })
		}
	}
	return func() bench.Sheet { wg.Wait(); return here }
}

// checkStamps refuses a run whose stamps are to be those of packets where none can be captured.
func (p *Plan) checkStamps() error {
	if p.Spec.Client.Stamps != string(wire.StampWire) {
		return nil
	}
	e, err := p.newEngine(time.Now(), nobody{})
	if err != nil {
		return err
	}
	if why := e.Close().NoWire; why != "" {
		return fault.New(fault.Usage, "--stamps wire: "+why, "capturing packets takes CAP_NET_RAW (setcap cap_net_raw+ep on the program, or root); --stamps auto takes the best there is")
	}
	return nil
}

// nobody is the sink of an engine that is given no job.
type nobody struct{}

func (nobody) Part(*client.Job, wire.Part)        {}
func (nobody) Done(*client.Job, *wire.Transcript) {}

func (p *Plan) prepare(ctx context.Context, offline bool) error {
	if err := p.parse(); err != nil {
		return err
	}
	if !offline {
		if err := p.reach(ctx); err != nil {
			return err
		}
	}
	if err := p.choose(offline); err != nil {
		return err
	}
	if err := p.takeTokenizer(); err != nil {
		return err
	}
	if err := p.makePrompts(ctx, offline); err != nil || !p.invents() && p.Options.Count == nil {
		return err
	}
	return p.look() // now that it is known how prompts are made
}

func (p *Plan) parse() error {
	for _, u := range p.Spec.Target.URLs {
		t, err := client.ParseTarget(u)
		if err != nil {
			return err
		}
		if err := p.putProxy(&t); err != nil {
			return err
		}
		p.Targets = append(p.Targets, t)
	}
	var err error
	if p.form, err = newForm(&p.Spec); err != nil {
		return err
	}
	if p.deps.Trust != nil {
		var err error
		if p.tls, err = p.deps.Trust.Config(); err != nil {
			return err
		}
	}
	if p.Spec.Client.Isolate && p.deps.EngineProcess == nil {
		return fault.New(fault.Usage, "--isolate does not work on this system", "leave it out: the engine then runs in this process")
	}
	if len(p.Targets) == 0 {
		return fault.New(fault.Usage, "no target is given", "give one with --url http://127.0.0.1:8000")
	}
	d, err := p.deps.Datasets.Get(p.Spec.Workload.Dataset)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "--dataset", "see `prony help datasets`")
	}
	p.dataset = d
	if e := p.Spec.Target.Engine; e != "auto" {
		if _, err := p.deps.Engines.Get(e); err != nil {
			return fault.Wrap(fault.Usage, err, "--engine", "auto finds the engine by itself")
		}
	}
	// what the data set and the load refuse, they refuse before anybody is asked
	p.Spec.Workload.Rows = nil // of another run's file, where its manifest is repeated
	if err := p.look(); err != nil {
		return err
	}
	if err := p.checkLoads(); err != nil {
		return err
	}
	return p.checkFileLimit()
}

// putProxy puts the target's proxy before it, if it has one.
func (p *Plan) putProxy(t *client.Target) error {
	if p.deps.ProxyOf == nil {
		return nil
	}
	proxy, err := p.deps.ProxyOf(t.URL)
	if err != nil || proxy == nil {
		return err
	}
	if err := t.Via(proxy); err != nil {
		return err
	}
	p.secrets = append(p.secrets, proxySecrets(proxy)...)
	if names := &p.Spec.Client.Proxy; !slices.Contains(strings.Split(*names, ", "), proxy.String()) {
		*names = strings.TrimPrefix(*names+", "+proxy.String(), ", ")
	}
	return nil
}

// reach resolves every target and asks who it is.
func (p *Plan) reach(ctx context.Context) error {
	for i := range p.Targets {
		t := &p.Targets[i]
		if p.deps.WaitReady > 0 {
			if err := p.waitReady(ctx, t); err != nil {
				return err
			}
		}
		var addrs []string
		var took time.Duration
		if p.deps.Dial == nil {
			timeout := p.Spec.Client.ConnectTimeout
			if timeout == 0 {
				timeout = 10 * time.Second
			}
			var err error
			if addrs, took, err = t.Resolve(ctx, timeout); err != nil {
				return err
			}
			if t.Proxy != nil {
				addrs, took = nil, 0 // of the proxy, and not of the engine
			}
		}
		f, err := p.prober(t).Identify(ctx, p.Spec.Target.Model)
		if err != nil {
			return err
		}
		f.URL, f.Addresses, f.Lookup = p.Spec.Target.URLs[i], addrs, took
		p.found = append(p.found, f)
		p.Sheet.Engines = append(p.Sheet.Engines, f.Engine)
	}
	return nil
}

// readyPoll is the pause between two looks at a server that is coming up.
const readyPoll = 500 * time.Millisecond

func (p *Plan) waitReady(ctx context.Context, t *client.Target) error {
	deadline := time.Now().Add(p.deps.WaitReady)
	for told := false; !p.prober(t).Ready(ctx); {
		if ctx.Err() != nil {
			return fault.New(fault.Interrupted, "interrupted while waiting for the server", "nothing was sent")
		}
		if time.Now().After(deadline) {
			return fault.New(fault.Target, fmt.Sprintf("%s was not ready within %v", t.Name(""), p.deps.WaitReady), "look at the server's log, or give it more time with --wait-ready")
		}
		if !told {
			p.deps.say("waiting for %s to be ready (up to %v)", t.Name(""), p.deps.WaitReady)
			told = true
		}
		select {
		case <-time.After(readyPoll):
		case <-ctx.Done():
		}
	}
	return nil
}

// prober asks a target over HTTP/1.1, apart from what is measured, and by the same way.
func (p *Plan) prober(t *client.Target) *discover.Prober {
	transport := p.asking[t.Name("")]
	if transport == nil {
		dial := p.deps.Dial
		if dial == nil {
			dial = (&net.Dialer{Timeout: p.Spec.Client.ConnectTimeout}).DialContext
		}
		transport = &http.Transport{TLSClientConfig: p.tls,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return t.Dial(ctx, dial) // the address that answered
			}}
		if t.Proxy != nil {
			transport.Proxy = http.ProxyURL(t.Proxy.URL())
			transport.OnProxyConnectResponse = func(_ context.Context, _ *url.URL, req *http.Request, resp *http.Response) error {
				if resp.StatusCode == http.StatusOK {
					return nil
				}
				return fault.New(fault.Target, t.Proxy.Refusal(req.Host, resp.StatusCode), discover.ProxyHint)
			}
		}
		p.asking[t.Name("")] = transport
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &discover.Prober{HTTP: &http.Client{Transport: transport, CheckRedirect: refuse}, Join: t.Join, Root: t.Root, Name: t.Name(""),
		Proxy: t.Proxy.String(), Header: p.deps.Header, Engine: p.named(), Key: p.deps.Key, Auth: p.deps.Auth}
}

// named is the engine, as far as it is named or found.
func (p *Plan) named() string {
	if e := p.Spec.Target.Engine; e != "auto" {
		return e
	}
	return ""
}

// keyFields are the header fields that may hold the key.
func keyFields(d *Deps) []wire.Field { return discover.KeyFields("", d.Auth, d.Key) }

// stopAsking closes the connections of the questions: an idle one may hold a thread of the server.
func (p *Plan) stopAsking() {
	for _, t := range p.asking {
		t.CloseIdleConnections()
	}
}

// choose decides dialect, endpoint, model and whether the output length is forced.
func (p *Plan) choose(offline bool) error {
	t := &p.Spec.Target
	name := t.Engine
	if name == "auto" {
		name = "openai"
		if len(p.Sheet.Engines) > 0 && p.Sheet.Engines[0].Name != "" {
			name = p.Sheet.Engines[0].Name
		}
	}
	d, err := p.deps.Engines.Get(name)
	if err != nil {
		return fault.Wrap(fault.Usage, err, "--engine", "see `prony engines`; openai is what most servers speak")
	}
	p.Engine, t.Engine = d, name
	if err := p.chooseEndpoint(); err != nil {
		return err
	}
	p.besides()
	if err := p.chooseModel(offline); err != nil {
		return err
	}
	p.Endpoint.Path = p.Endpoint.At(t.Model)
	s := &p.Spec
	if t.Task = p.Endpoint.Task; t.Task != bench.Generate {
		if err := p.withoutOutput(); err != nil {
			return err
		}
	} else if s.Workload.Batch > 0 {
		return fault.New(fault.Usage, "--batch is how many texts are embedded or ranked in one request", "use --endpoint embeddings or --endpoint rerank, or leave it out")
	}
	// an answer of a form ends where the form does
	s.Workload.ForceLength = p.invents() && p.form == nil && (p.Endpoint.Can.IgnoreEOS || p.Endpoint.Can.MinTokens)
	if err := p.refuseExtras(); err != nil {
		return err
	}
	p.Options = dialect.Options{Model: t.Model, Stream: t.Stream, Usage: t.Usage, MaxTokensField: t.MaxTokensField, Sampling: s.Sampling,
		EventUsage: t.EventUsage, TokenIDs: t.TokenIDs, Priority: t.Priority, ForceLength: s.Workload.ForceLength, Extra: t.ExtraBody,
		Header: append(discover.KeyFields(name, p.deps.Auth, p.deps.Key), p.deps.Header...), KeepText: s.Keep.Text || p.form != nil,
		Tools: t.Tools, ToolChoice: t.ToolChoice, ResponseFormat: t.ResponseFormat}
	return p.tryOut()
}

// withoutOutput takes out of the spec what an endpoint that generates nothing has no use for, and refuses what cannot be judged there.
func (p *Plan) withoutOutput() error {
	s := &p.Spec
	s.Target.Stream, s.Target.Usage, s.Target.MaxTokensField = false, false, ""
	s.Workload.OSL, s.Sampling = "", bench.Sampling{}
	if s.Workload.Dataset == "random" {
		s.Workload.Batch = max(1, s.Workload.Batch)
	}
	for _, l := range s.SLO {
		if l.Metric != "e2el" {
			return fault.New(fault.Usage, fmt.Sprintf("--goodput %s cannot be judged where nothing is generated", l.Metric), "limit e2el alone")
		}
	}
	return p.look() // now that it is known what the endpoint takes
}

func (p *Plan) chooseModel(offline bool) error {
	t := &p.Spec.Target
	if t.Model != "" {
		for i := range p.Sheet.Engines {
			p.Sheet.Engines[i].Model = t.Model
		}
		return nil
	}
	if offline {
		t.Model = "MODEL"
		return nil
	}
	switch models := p.Sheet.Engines[0].Models; len(models) {
	case 0:
		return p.found[0].Trouble
	case 1:
		t.Model = models[0]
	default:
		hint := "choose one with --model"
		if slices.Contains(models, "ensemble") {
			hint += "; ensemble is mostly the one that takes a text and gives one"
		}
		return fault.New(fault.Usage, fmt.Sprintf("%s serves %d models: %s", p.Spec.Target.URLs[0], len(models), shortList(models)), hint)
	}
	for i := range p.Sheet.Engines {
		p.Sheet.Engines[i].Model = t.Model
	}
	return nil
}

func shortList(s []string) string {
	if len(s) > 8 {
		return strings.Join(s[:8], ", ") + ", ..."
	}
	return strings.Join(s, ", ")
}

// config is what the data set is opened with.
func (p *Plan) config(phase string) workload.Config {
	c := workload.Config{Spec: p.Spec.Workload, Phase: phase, Seed: p.Spec.Seed, Maker: p.Maker, Chat: p.Endpoint.Chat, Cache: p.files, Count: p.Options.Count}
	if p.Endpoint.Codec != nil {
		c.Task = opt.Some(p.Endpoint.Task)
	}
	return c
}

// invents tells whether the data set makes its prompts.
func (p *Plan) invents() bool {
	_, yes := p.dataset.(workload.Inventor)
	return yes
}

// look opens the data set for what it refuses, and keeps what it found in its file.
func (p *Plan) look() error {
	c, found := p.config(bench.Measure), bench.Rows{}
	c.Rows = &found
	if _, err := p.dataset.Open(c); err != nil {
		return err
	}
	if found.Read > 0 {
		if p.Spec.Workload.Rows == nil {
			p.deps.say("%s: %s", cmp.Or(p.Spec.Workload.Path, p.Spec.Workload.Lengths), workload.Describe(&found))
		}
		p.Spec.Workload.Rows = &found
	}
	return nil
}

// filesBeside is the number of open files that a run needs besides its connections.
const filesBeside = 64

// checkFileLimit refuses a load that needs more connections than this process may open.
func (p *Plan) checkFileLimit() error {
	limit, known := fileLimit()
	if !known {
		return nil
	}
	for _, ph := range p.Spec.Phases {
		need := ph.Load.InFlightLimit()
		if need == 0 && ph.Load.Shape == bench.Inf {
			need = ph.Stop.Requests // all at once
		}
		if uint64(need)+filesBeside > limit {
			return fault.New(fault.Usage, fmt.Sprintf("%d requests in flight need as many connections, but this process may open %d files", need, limit),
				"raise the hard limit (ulimit -Hn), or lower the concurrency")
		}
	}
	return nil
}
