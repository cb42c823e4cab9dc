package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/catalog"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/wire"
	"github.com/prony-bench/prony/internal/workload"
)

// runFlags are the flags of a run as they are written.
type runFlags struct {
	set  *pflag.FlagSet
	file *specFile // of -f; nil = there is none

	urls                    []string
	engine, endpoint, model string
	access                  accessFlags
	extraBody               string
	form                    formFlags
	shapeFlags
	requests       int
	duration       duration
	warmupRequests int
	warmupDuration duration
	dataFlags
	temperature, topP              float64
	topK, minTokens, logprobs      int
	samplingSeed                   int64
	stop                           []string
	ignoreEOS, noUsage, noStream   bool
	eventUsage, tokenIDs           bool
	priority                       int
	maxTokensField                 string
	goodput                        []string
	seed                           uint64
	timeout, connectTimeout, grace duration
	maxErrorRate                   float64
	out, label                     string
	metadata                       []string
	keepText, keepTranscripts      bool
	percentiles                    string
	events, connection, http       string
	waitReady                      duration
	stamps                         string
	engines                        int
	isolate                        bool
	requestID                      string
}

// Defaults of a run.
const (
	defaultConcurrency = 1
	defaultRequests    = 100
	defaultISL         = "512"
	defaultOSL         = "128"
	defaultTimeout     = 10 * time.Minute
	defaultConnect     = 10 * time.Second
	defaultGrace       = 30 * time.Second
	mostEngines        = 64
	mostBatch          = 100_000
)

// register adds the flags to a command. (vLLM) marks those that mean the same in vLLM's bench.
func (f *runFlags) register(set *pflag.FlagSet) {
	f.set = set
	f.timeout, f.connectTimeout, f.grace = duration(defaultTimeout), duration(defaultConnect), duration(defaultGrace)

	set.StringArrayVar(&f.urls, "url", nil, "base URL of the server, or unix:/path of its socket; repeat it for several, used round robin (vLLM: --base-url)")
	set.StringVar(&f.engine, "engine", "auto", engineHelp())
	set.StringVar(&f.endpoint, "endpoint", "", endpointHelp())
	set.StringVar(&f.model, "model", "", "model name; asked from /v1/models when left out (vLLM)")
	f.access.register(set)
	set.StringVar(&f.extraBody, "extra-body", "", "JSON object merged into every request body and the objects in it; null removes a field (vLLM)")
	f.form.register(set)

	f.registerShape(set)
	set.IntVar(&f.requests, "num-requests", defaultRequests, "number of measured requests (vLLM: --num-prompts)")
	set.Var(&f.duration, "duration", "measure for so long, in place of a number of requests")
	set.IntVar(&f.warmupRequests, "warmup-requests", 0, "requests before the measurement: same shape, own prompts, not counted (vLLM: --num-warmups)")
	set.Var(&f.warmupDuration, "warmup-duration", "warm up for so long")

	f.registerData(set)

	set.Float64Var(&f.temperature, "temperature", 0, "sampling temperature (vLLM)")
	set.Float64Var(&f.topP, "top-p", 0, "nucleus sampling; not sent when left out (vLLM)")
	set.IntVar(&f.topK, "top-k", 0, "top-k sampling; not sent when left out (vLLM)")
	set.Int64Var(&f.samplingSeed, "sampling-seed", 0, "seed of the server's sampling; not sent when left out")
	set.StringArrayVar(&f.stop, "stop", nil, "stop sequence; repeatable")
	set.BoolVar(&f.ignoreEOS, "ignore-eos", false, "tell the server to go on after the end token (vLLM)")
	set.IntVar(&f.minTokens, "min-tokens", 0, "least number of output tokens")
	set.StringVar(&f.maxTokensField, "max-tokens-field", "", "field of the output limit: max_tokens (default) or max_completion_tokens")
	set.BoolVar(&f.noUsage, "no-usage", false, "leave stream_options out; token counts are then estimates")
	set.BoolVar(&f.noStream, "no-stream", false, "ask for whole answers: no TTFT, ITL or TPOT (vLLM)")
	set.BoolVar(&f.eventUsage, "continuous-usage", false, "ask for the token counts in each event, so that ITL can be told for each token; vllm, nim, sglang")
	set.BoolVar(&f.tokenIDs, "token-ids", false, "ask for the ids of the output tokens, which are then counted exactly, in each event too; vllm, nim, sglang")
	set.IntVar(&f.priority, "priority", 0, "priority of each request, as the server's scheduler takes it; vllm, nim, sglang")
	set.IntVar(&f.logprobs, "logprobs", 0, "ask for the log probabilities of so many tokens (vLLM)")

	set.StringArrayVar(&f.goodput, "goodput", nil, `limits in ms that a good request meets: "ttft:200 tpot:50 itl:100 e2el:5000"; repeatable (vLLM)`)
	set.Uint64Var(&f.seed, "seed", 0, "seed of workload and schedule, never sent to the server; left out, a new one is drawn for each run, so that no two runs send the same prompts")
	set.Var(&f.timeout, "timeout", "bound of one request, from sent to its end; 0 = none")
	set.Var(&f.connectTimeout, "connect-timeout", "bound of TCP connect and TLS handshake; 0 = none")
	set.Var(&f.grace, "grace", "time for what is in flight at the end of a duration, or after an interrupt")
	set.Float64Var(&f.maxErrorRate, "max-error-rate", 1, "stop when more than this share of the requests failed; 1 = never")

	set.StringVar(&f.out, "out", "", "run directory, exactly this one (default runs/<time>-<label>)")
	set.StringVar(&f.label, "label", "", "name of the run (default: the model's) (vLLM)")
	set.StringArrayVar(&f.metadata, "metadata", nil, "key=value stored with the run; repeatable (vLLM)")
	set.BoolVar(&f.keepText, "keep-text", false, "store answers and tool calls in the journal")
	set.BoolVar(&f.keepTranscripts, "keep-transcripts", false, "store the raw bytes and their times, to fold them again later")
	set.StringVar(&f.percentiles, "percentiles", "", "percentiles of all distributions, e.g. 50,90,99.9 (vLLM: --metric-percentiles)")
	set.StringVar(&f.events, "events", "full", "full or none: none leaves the times of the events out of the journal; ITL and the peak rate are then not defined")
	set.StringVar(&f.connection, "connection", "reuse", "reuse connections, or open a new one for each request")
	set.StringVar(&f.http, "http", "1.1", "HTTP version: 1.1 or 2")
	set.StringVar(&f.stamps, "stamps", "auto", "where times come from: wire (packets, needs CAP_NET_RAW), socket (kernel stamps of reads), user (the reads themselves), or auto: the best there is")
	set.IntVar(&f.engines, "engines", 0, "threads that send and stamp; 0 = as many as the load asks for")
	set.BoolVar(&f.isolate, "isolate", false, "send and stamp in a process of its own, so that no folding, journal or collection of this one is in its way")
	set.StringVar(&f.requestID, "request-id", "", "send X-Request-Id: PREFIX-<id> with each request, with the id of the journal, to find it in the server's log (vLLM: --request-id-prefix)")
	set.Var(&f.waitReady, "wait-ready", "wait up to so long for the server to come up")
}

// duration is a flag value: 90s, 10m, or a number of seconds.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		n, nerr := strconv.ParseFloat(s, 64)
		if nerr != nil || math.IsNaN(n) || math.Abs(n) > 1e9 {
			return fmt.Errorf("%q is no duration such as 90s or 10m", s)
		}
		v = time.Duration(n * float64(time.Second))
	}
	if v < 0 {
		return fmt.Errorf("%q is negative", s)
	}
	*d = duration(v)
	return nil
}

func (f *runFlags) given(name string) bool { return f.set.Changed(name) }

// exclude refuses two flags together.
func (f *runFlags) exclude(a, b, hint string) error {
	if f.given(a) && f.given(b) {
		return fault.New(fault.Usage, fmt.Sprintf("--%s and --%s exclude each other", a, b), hint)
	}
	return nil
}

// spec builds the conditions of the run, refusing combinations that make no sense.
func (f *runFlags) spec(drawSeed func() uint64) (bench.Spec, error) {
	var none bench.Spec
	if err := f.check(); err != nil {
		return none, err
	}
	for _, x := range append(slices.Clone(exclusiveShapes), [][3]string{
		{"num-requests", "duration", "a run ends after a number of requests or after a time"},
		{"warmup-requests", "warmup-duration", "the warm-up ends after a number of requests or after a time"},
		{"no-usage", "no-stream", "without streaming the usage is part of every answer"},
		{"continuous-usage", "no-usage", "the counts in each event are part of the usage"},
		{"continuous-usage", "no-stream", "without streaming there are no events"},
		{"prompt", "dataset-path", "give one prompt, or a file of them"},
		{"json-schema", "response-format", "a schema is a form of the answer"},
		{"json-schema", "ignore-eos", "an answer that goes on after its end follows no schema"},
	}...) {
		if err := f.exclude(x[0], x[1], x[2]); err != nil {
			return none, err
		}
	}
	load, err := f.load()
	if err != nil {
		return none, err
	}
	phases, err := f.phases(load)
	if err == nil && f.file != nil && f.file.nodes != nil {
		phases, err = f.phasesOf(f.file)
	}
	if err != nil {
		return none, err
	}
	target, err := f.target()
	if err != nil {
		return none, err
	}
	work, err := f.workload()
	if err != nil {
		return none, err
	}
	sampling, err := f.sampling()
	if err != nil {
		return none, err
	}
	slo, err := parseGoodput(f.goodput)
	if err != nil {
		return none, err
	}
	for _, l := range slo {
		if f.noStream && l.Metric != "e2el" {
			return none, fault.New(fault.Usage, fmt.Sprintf("--goodput %s cannot be judged with --no-stream", l.Metric), "leave --no-stream out, or limit e2el alone")
		}
		if f.events == "none" && l.Metric == "itl" {
			return none, fault.New(fault.Usage, "--goodput itl cannot be judged with --events none", "limit tpot, or keep the events")
		}
	}
	percentiles, err := parsePercentiles(f.percentiles)
	if err != nil {
		return none, err
	}
	metadata, err := parseMetadata(f.metadata)
	if err != nil {
		return none, err
	}
	for _, x := range []struct {
		flag, value string
		words       []string
	}{{"events", f.events, []string{"full", "none"}}, {"connection", f.connection, []string{"reuse", "new"}}, {"http", f.http, []string{"1.1", "2"}},
		{"stamps", f.stamps, stampGrades}} {
		if err := oneOf(x.flag, x.value, x.words); err != nil {
			return none, err
		}
	}
	if f.engines < 0 || f.engines > mostEngines {
		return none, fault.Usagef("one thread serves 100,000 events/s", "--engines must be between 0 and %d, not %d", mostEngines, f.engines)
	}
	if !(f.maxErrorRate >= 0 && f.maxErrorRate <= 1) {
		return none, fault.Usagef("it is a share between 0 and 1", "--max-error-rate is %v", f.maxErrorRate)
	}
	s := bench.Spec{Label: f.label, Metadata: metadata, Seed: f.seed, SeedGiven: f.given("seed"), Target: target, Workload: work, Sampling: sampling,
		Phases: phases, SLO: slo, Percentiles: percentiles, MaxErrorRate: f.maxErrorRate,
		Client: bench.Client{Timeout: time.Duration(f.timeout), ConnectTimeout: time.Duration(f.connectTimeout), Connection: f.connection, HTTP: f.http,
			Stamps: f.stamps, Engines: f.engines, Isolate: f.isolate, RequestID: f.requestID,
			Insecure: f.access.insecure, OwnAuthority: f.access.cacert != "", Certificate: f.access.cert != ""},
		Keep: bench.Keep{Events: f.events == "full", Text: f.keepText, Transcripts: f.keepTranscripts}}
	if !s.SeedGiven {
		s.Seed = drawSeed()
	}
	return s, nil
}

func (f *runFlags) phases(l bench.Load) ([]bench.Phase, error) {
	for _, x := range []struct {
		flag string
		n    int
		min  int
	}{{"num-requests", f.requests, 1}, {"warmup-requests", f.warmupRequests, 0}} {
		if x.n < x.min {
			return nil, fault.Usagef("such as --"+x.flag+" 100", "--%s must be at least %d, not %d", x.flag, x.min, x.n)
		}
	}
	if f.given("duration") && f.duration == 0 {
		return nil, fault.New(fault.Usage, "--duration must be above 0", "such as --duration 60s")
	}
	measure := bench.Phase{Name: bench.Measure, Load: l, Stop: bench.Stop{Requests: f.requests, Grace: time.Duration(f.grace)}}
	if l.Shape == bench.Trace && !f.given("num-requests") {
		measure.Stop.Requests = 0 // all of it
	}
	if f.duration > 0 {
		if l.Shape == bench.Inf && l.Cap == 0 {
			return nil, fault.New(fault.Usage, "--duration with rate inf and no cap would send without bound", "add --max-concurrency N, or give --num-requests")
		}
		measure.Stop.Requests, measure.Stop.Duration = 0, time.Duration(f.duration)
	}
	if f.warmupRequests == 0 && f.warmupDuration == 0 {
		return []bench.Phase{measure}, nil
	}
	if f.warmupDuration > 0 && l.Shape == bench.Inf && l.Cap == 0 {
		return nil, fault.New(fault.Usage, "--warmup-duration with rate inf and no cap would send without bound", "use --warmup-requests")
	}
	warm := bench.Phase{Name: bench.Warmup, Load: l, Stop: bench.Stop{Requests: f.warmupRequests, Duration: time.Duration(f.warmupDuration), Grace: time.Duration(f.grace)}}
	return []bench.Phase{warm, measure}, nil
}

func (f *runFlags) target() (bench.Target, error) {
	t := bench.Target{URLs: f.urls, Engine: f.engine, Endpoint: f.endpoint, Model: f.model, Stream: !f.noStream, Usage: !f.noUsage, MaxTokensField: f.maxTokensField}
	if len(f.urls) == 0 {
		return t, fault.New(fault.Usage, "no target is given", "give one with --url http://127.0.0.1:8000, or try `prony demo`")
	}
	if f.extraBody != "" {
		if err := workload.CheckObject([]byte(f.extraBody)); err != nil {
			return t, fault.New(fault.Usage, "--extra-body "+err.Error(), `such as --extra-body '{"cache_salt":"a"}'`)
		}
		t.ExtraBody = json.RawMessage(f.extraBody)
	}
	t.EventUsage, t.TokenIDs, t.Auth = f.eventUsage, f.tokenIDs, f.access.auth
	if err := f.access.check(f.urls, f.given); err != nil {
		return t, err
	}
	if err := f.form.into(&t); err != nil {
		return t, err
	}
	if f.given("priority") {
		t.Priority = &f.priority
	}
	fields, err := parseHeaders(f.access.headers)
	if err != nil {
		return t, err
	}
	for _, h := range fields {
		t.Headers = append(t.Headers, h.Name)
	}
	return t, nil
}

func (f *runFlags) sampling() (bench.Sampling, error) {
	s := bench.Sampling{Temperature: &f.temperature, Stop: f.stop, IgnoreEOS: f.ignoreEOS, MinTokens: f.minTokens}
	if f.temperature < 0 || math.IsNaN(f.temperature) || math.IsInf(f.temperature, 0) {
		return s, fault.Usagef("0 is greedy", "--temperature must be at least 0, not %v", f.temperature)
	}
	if f.given("top-p") {
		if !(f.topP > 0 && f.topP <= 1) {
			return s, fault.Usagef("", "--top-p must be in (0, 1], not %v", f.topP)
		}
		s.TopP = &f.topP
	}
	if f.given("top-k") {
		s.TopK = &f.topK
	}
	if f.given("sampling-seed") {
		s.Seed = &f.samplingSeed
	}
	if f.given("logprobs") {
		if f.logprobs < 0 {
			return s, fault.Usagef("", "--logprobs must be at least 0, not %d", f.logprobs)
		}
		s.Logprobs = &f.logprobs
	}
	if f.minTokens < 0 {
		return s, fault.Usagef("", "--min-tokens must be at least 0, not %d", f.minTokens)
	}
	return s, nil
}

// goodputMetrics are the words of --goodput.
var goodputMetrics = []string{"ttft", "tpot", "itl", "e2el"}

// parseGoodput reads limits in ms.
func parseGoodput(args []string) ([]bench.Limit, error) {
	var out []bench.Limit
	seen := map[string]bool{}
	for _, arg := range args {
		for _, part := range strings.Fields(strings.ReplaceAll(arg, ",", " ")) {
			name, value, ok := strings.Cut(part, ":")
			ms, err := strconv.ParseFloat(value, 64)
			switch {
			case !ok || err != nil || !(ms > 0 && ms <= longestLimitMS):
				return nil, fault.Usagef(`limits are in ms: --goodput "ttft:200 tpot:50 e2el:5000"`, "--goodput %q is no limit", part)
			case !slices.Contains(goodputMetrics, name):
				return nil, fault.Usagef("it is one of: "+strings.Join(goodputMetrics, ", "), "--goodput %q is no metric%s", name, catalog.DidYouMean(name, goodputMetrics))
			case seen[name]:
				return nil, fault.Usagef("give one limit for each metric", "--goodput gives %s twice", name)
			}
			seen[name] = true
			out = append(out, bench.Limit{Metric: name, Max: time.Duration(math.Round(ms * 1e6))})
		}
	}
	return out, nil
}

func parsePercentiles(s string) ([]float64, error) {
	if s == "" {
		return nil, nil
	}
	var out []float64
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		p, err := strconv.ParseFloat(part, 64)
		if err != nil || !(p > 0 && p < 100) {
			return nil, fault.Usagef("such as --percentiles 50,90,99.9", "--percentiles: %q is not between 0 and 100", part)
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fault.Usagef("such as --percentiles 50,90,99.9", "--percentiles %q holds no number", s)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// parseHeaders reads name:value or name=value, whichever separator is first.
func parseHeaders(args []string) ([]wire.Field, error) {
	var out []wire.Field
	for _, a := range args {
		i := strings.IndexAny(a, ":=")
		if i < 1 {
			return nil, fault.New(fault.Usage, "--header is neither name:value nor name=value", "such as --header X-Team:search")
		}
		f := wire.Field{Name: strings.TrimSpace(a[:i]), Value: strings.TrimSpace(a[i+1:])}
		if strings.ContainsAny(f.Name, " \t\r\n\"(),/<>@[]{}\\") || strings.ContainsAny(f.Value, "\r\n") {
			return nil, fault.Usagef("a name of letters and digits, and one line of text: --header X-Team:search", "--header %q is no legal header", f.Name)
		}
		switch http.CanonicalHeaderKey(f.Name) {
		case "Host", "Content-Length", "Transfer-Encoding", "Connection":
			return nil, fault.Usagef("it is set by the client", "--header cannot set %s", f.Name)
		}
		out = append(out, f)
	}
	return out, nil
}

func parseMetadata(args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, a := range args {
		k, v, ok := strings.Cut(a, "=")
		if !ok || k == "" {
			return nil, fault.Usagef("such as --metadata gpu=h200", "--metadata %q is not key=value", a)
		}
		out[k] = v
	}
	return out, nil
}

// secretFlags have values that are never stored.
var secretFlags = []string{"--api-key", "--header", "--proxy", "--extra-body"}

// redact replaces the secrets of a command line.
func redact(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = a
		for _, f := range secretFlags {
			name, value, has := strings.Cut(a, "=")
			switch {
			case has && name == f:
				out[i] = f + "=" + redacted(f, value)
			case i > 0 && args[i-1] == f:
				out[i] = redacted(f, a)
			}
		}
	}
	return out
}

// redacted keeps the name of a header, and of a proxy what needs no secrecy.
func redacted(flag, value string) string {
	if flag == "--extra-body" {
		shown, _ := run.ConcealBody([]byte(value))
		return string(shown)
	}
	if flag == "--proxy" && value == "env" {
		return value
	}
	if i := strings.IndexAny(value, ":="); flag == "--header" && i > 0 {
		return value[:i+1] + "REDACTED"
	}
	if p, err := client.ParseProxy(value); flag == "--proxy" && err == nil {
		return p.String()
	}
	return "REDACTED"
}
