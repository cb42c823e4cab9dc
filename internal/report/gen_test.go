package report

import (
	"slices"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/wire"
)

// run says what a made-up run looks like: a server with so many slots that serves in order, under an open or a closed loop.
type made struct {
	seed     uint64
	n        int
	load     bench.Load
	slots    int
	tokens   int
	stream   bool
	events   bool
	failing  float64 // share of requests that fail
	slowFrom float64 // the server takes twice as long from this share of the run on; 0 = never
	targets  int
	asked    []float64 // percentiles
	slo      []bench.Limit
	hostile  bool
	state    bench.State
	warmup   int
	batch    int // texts to embed in a request; 0 = text is generated
}

const hostileWords = "<script>alert(1)</script> \x1b[31mred\x1b[0m \x07|`*_[x](http://e.org)\r\nnext\u202eoverride \"q\" 'q' & \u0085 日本語 \U0001f600"

func usual(n int) made {
	return made{seed: 7, n: n, load: bench.Load{Shape: bench.Poisson, Rate: 20}, slots: 64, tokens: 128, stream: true, events: true}
}

func ms(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }

// build makes manifest and records.
func (g made) build() (*bench.Manifest, []bench.Record) {
	s := rng.New(g.seed, "report")
	m := &bench.Manifest{Schema: bench.ManifestSchema, Journal: bench.JournalSchema, Prony: "0.1.0", Go: "go1.26.8",
		Command: []string{"prony", "run", "--url", "http://127.0.0.1:8000", "--request-rate", "20", "--goodput", "ttft:200 tpot:15"},
		Epoch:   time.Date(2026, 11, 29, 15, 20, 1, 0, time.UTC), Planned: g.n, State: bench.Complete}
	if g.state != "" {
		m.State, m.Stopped = g.state, "by a signal"
	}
	sp := &m.Spec
	sp.Label, sp.Seed, sp.Percentiles, sp.SLO, sp.MaxErrorRate = "qwen3 on one H200", g.seed, g.asked, g.slo, 1
	sp.Target = bench.Target{URLs: []string{"http://127.0.0.1:8000"}, Engine: "vllm", Endpoint: "chat", Path: "/v1/chat/completions", Model: "qwen3-8b", Stream: g.stream, Usage: true}
	for i := 1; i < g.targets; i++ {
		sp.Target.URLs = append(sp.Target.URLs, "http://127.0.0.1:800"+plain(float64(i)))
	}
	sp.Workload = bench.Workload{Dataset: "random", ISL: "512", OSL: plain(float64(g.tokens)), PromptSource: "text aligned by /tokenize", ForceLength: true}
	if g.batch > 0 {
		sp.Target.Endpoint, sp.Target.Path, sp.Target.Task, sp.Target.Usage = "embeddings", "", bench.Embed, false
		sp.Workload = bench.Workload{Dataset: "random", ISL: "64", Batch: g.batch, PromptSource: "text aligned by /tokenize"}
	}
	sp.Client = bench.Client{Timeout: 10 * time.Minute, ConnectTimeout: 10 * time.Second, Connection: "reuse", HTTP: "1.1"}
	sp.Keep.Events = g.events
	zero := 0.0
	sp.Sampling.Temperature = &zero
	sp.Sampling.IgnoreEOS = true
	stop := bench.Stop{Requests: g.n, Grace: 30 * time.Second}
	if g.warmup > 0 {
		sp.Phases = append(sp.Phases, bench.Phase{Name: bench.Warmup, Load: g.load, Stop: bench.Stop{Requests: g.warmup}})
	}
	sp.Phases = append(sp.Phases, bench.Phase{Name: bench.Measure, Load: g.load, Stop: stop})
	m.Sheet = bench.Sheet{Host: bench.Host{OS: "debian 12.9", Kernel: "6.1.0", Arch: "amd64", CPU: "AMD EPYC 9554", Cores: 16, GOMAXPROCS: 17, MemoryBytes: 128 << 30, Governor: "performance"},
		GPUs:    []bench.GPU{{Name: "NVIDIA H200", Driver: "570.86", MemoryMiB: 143771, PowerLimitW: 700}},
		Engines: []bench.Engine{{URL: "http://127.0.0.1:8000", Name: "vllm", Version: "0.32.0", Model: "qwen3-8b", MaxLen: opt.Some(32768), Vocab: opt.Some(151936)}}}
	m.Client = bench.ClientReport{Engine: "portable", Stamp: "wire", Connections: 40, Reads: 131 * g.n, ReadDelayP99: 40_000}
	if g.hostile {
		sp.Label, sp.Target.Model, m.Sheet.Engines[0].Version = "label "+hostileWords, "model "+hostileWords, hostileWords
		sp.Metadata = map[string]string{"key " + hostileWords: hostileWords}
		m.Command = append(m.Command, "--label", hostileWords)
		m.Stopped = hostileWords
		sp.Workload.PromptSource = hostileWords
	}

	free := make([]time.Duration, max(1, g.slots)) // when each slot of the server is free
	users := make([]time.Duration, max(1, g.load.Concurrency))
	at := ms(5)
	var out []bench.Record
	for i := range g.n + g.warmup {
		r := bench.Record{ID: i, Phase: bench.Measure, Outcome: bench.OK, Status: 200, Reused: i >= 40, Stamp: wire.Stamp("wire"),
			ISL: opt.Some(519), ISLAsked: 512, ISLSource: bench.FromUsage, OSLAsked: g.tokens, Bytes: 20_000}
		if i < g.warmup {
			r.Phase = bench.Warmup
		}
		if g.targets > 1 {
			r.Target = i % g.targets
		}
		user := 0
		switch {
		case g.load.Shape == bench.Closed:
			for u := range users {
				if users[u] < users[user] {
					user = u
				}
			}
			at = users[user]
		case g.load.Paced():
			at += time.Duration(s.Exp() / g.load.Rate * float64(time.Second))
		}
		r.Sent = opt.Some(at + ms(0.005+0.004*s.Exp()))
		if g.load.Open() {
			r.Due = opt.Some(at)
		}
		sent, _ := r.Sent.Get()

		slot := 0
		for k := range free {
			if free[k] < free[slot] {
				slot = k
			}
		}
		begin := max(sent, free[slot])
		slow := 1.0
		if g.slowFrom > 0 && float64(i) >= g.slowFrom*float64(g.n) {
			slow = 2
		}
		if g.targets > 1 && r.Target == 1 {
			slow *= 1.6
		}
		first := begin + ms((60+20*s.Exp())*slow)
		r.Headers = opt.Some(sent + ms(1))
		t := first
		for k := range g.tokens {
			if k > 0 {
				gap := 11.5 + 0.5*s.Normal()
				if s.Float64() < 0.02 {
					gap += 9 * s.Exp()
				}
				t += ms(max(0.2, gap*slow))
			}
			r.Events = append(r.Events, t-sent)
		}
		free[slot] = t
		r.First, r.FirstAnswer, r.Last, r.End = opt.Some(first), opt.Some(first), opt.Some(t), opt.Some(t+ms(0.3))
		if g.tokens > 1 {
			r.Second = opt.Some(sent + r.Events[1])
		}
		r.OutEvents, r.OSL, r.OSLSource, r.Finish = g.tokens, opt.Some(g.tokens), bench.FromUsage, bench.FinishLength
		users[user] = t + ms(0.3)
		if !g.stream {
			r.First, r.Second, r.FirstAnswer, r.Events, r.OutEvents = opt.Of[time.Duration]{}, opt.Of[time.Duration]{}, opt.Of[time.Duration]{}, nil, 0
		}
		if !g.events {
			r.Events = nil
		}
		if g.batch > 0 {
			r.OSL, r.OSLSource, r.OSLAsked, r.Finish, r.Inputs, r.Dimensions = opt.Of[int]{}, "", 0, "", g.batch, 768
			r.ISL, r.ISLAsked = opt.Some(64*g.batch), 64*g.batch
		}
		if s.Float64() < g.failing {
			r = bench.Record{ID: i, Phase: r.Phase, Target: r.Target, Outcome: bench.ServerError, Status: 503, Due: r.Due, Sent: r.Sent, End: opt.Some(sent + ms(3+s.Exp())),
				ISLAsked: 512, OSLAsked: g.tokens, Error: `{"error":{"message":"engine is overloaded, try later","type":"overloaded"}}`}
			if s.Float64() < 0.3 {
				r.Outcome, r.Status, r.Error = bench.Timeout, 0, "no answer within 10m"
			}
			if g.hostile {
				r.Error = hostileWords
			}
			users[user] = sent + ms(4)
			free[slot] = max(free[slot]-(t-begin), 0)
		}
		out = append(out, r)
	}
	return m, out
}

// model makes the whole of it.
func (g made) model() *Model {
	man, records := g.build()
	return New(man, metrics.Summarize(man, records), records, "runs/2026-11-29T15-20-01Z-qwen3")
}

var usualLimits = []bench.Limit{{Metric: "ttft", Max: ms(200)}, {Metric: "tpot", Max: ms(15)}}

// scenes are the runs that golden files and pictures show.
func scenes() map[string]made {
	open := usual(200)
	open.slo = usualLimits
	overload := usual(400)
	overload.slots, overload.load.Rate, overload.slo = 16, 14, usualLimits
	step := usual(600)
	step.slowFrom = 0.6
	closed := usual(300)
	closed.load, closed.warmup = bench.Load{Shape: bench.Closed, Concurrency: 8}, 8
	failing := usual(200)
	failing.failing = 0.2
	none := usual(20)
	none.failing = 1
	plainBody := usual(100)
	plainBody.stream = false
	embeddings := plainBody
	embeddings.batch, embeddings.tokens, embeddings.slo = 8, 1, []bench.Limit{{Metric: "e2el", Max: ms(100)}}
	several := usual(240)
	several.targets = 3
	hostile := usual(60)
	hostile.hostile, hostile.failing, hostile.state = true, 0.3, bench.Interrupted
	hostile.asked = []float64{10, 50, 99.9}
	many := usual(10_000)
	many.load.Rate, many.slo = 40, usualLimits
	nothing := usual(0)
	inf := usual(64)
	inf.load, inf.slots = bench.Load{Shape: bench.Inf, Cap: 16}, 16
	return map[string]made{"open": open, "overload": overload, "step": step, "closed": closed, "failing": failing, "none-ok": none, "no-stream": plainBody, "embeddings": embeddings,
		"targets": several, "hostile": hostile, "many": many, "nothing": nothing, "one": usual(1), "twenty": usual(20), "inf": inf}
}

func sceneNames() []string {
	var names []string
	for n := range scenes() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
