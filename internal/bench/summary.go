package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/opt"
)

// Schema versions of the files of a run directory.
const (
	ManifestSchema = "prony.manifest/1"
	JournalSchema  = "prony.journal/1"
	SummarySchema  = "prony.summary/1"
)

// Manifest says under which conditions a run was made. It is written before the first send and replaced at the end.
type Manifest struct {
	Schema  string    `json:"schema"`
	Journal string    `json:"journal_schema"`
	Prony   string    `json:"prony_version"`
	Go      string    `json:"go_version"`
	Command []string  `json:"command"` // without secrets
	Epoch   time.Time `json:"epoch"`   // wall-clock time of offset 0
	Spec    Spec      `json:"spec"`
	Sheet   Sheet     `json:"environment"`
	Streams []string  `json:"rng_streams"`

	Planned       int                   `json:"planned"`              // measured requests that the run meant to send; 0 while a duration runs
	State         State                 `json:"state"`                // how the run ended
	Stopped       string                `json:"stopped,omitempty"`    // in words, when it did not end by itself
	MeasureFrom   opt.Of[time.Duration] `json:"measure_ns,omitzero"`  // when the measured phase began
	MeasureTo     opt.Of[time.Duration] `json:"measured_ns,omitzero"` // when its last request had ended
	Ran           []Ran                 `json:"phases,omitempty"`     // the phases that began, in order
	Client        ClientReport          `json:"client"`
	Calibration   *Calibration          `json:"calibration,omitempty"`    // the last one of this machine with the grade of the stamps in use
	NoCalibration string                `json:"no_calibration,omitempty"` // why none of those that are stored holds for this run
	Caveats       []Caveat              `json:"caveats"`
	Verdict       Verdict               `json:"verdict,omitempty"`
}

// Ran is when a phase was.
type Ran struct {
	Name    string        `json:"name"`
	Start   time.Duration `json:"start_ns"` // what its due times are counted from
	End     time.Duration `json:"end_ns"`   // its last request had ended
	Planned int           `json:"planned"`  // requests that it meant to send
}

// State is how a run ended.
type State string

// The states of a run.
const (
	Running     State = "running" // or killed
	Complete    State = "complete"
	Interrupted State = "interrupted" // by a signal
	Stopped     State = "stopped"     // by a stop rule before its planned end
)

// ClientReport is what the client says about itself.
type ClientReport struct {
	Engine          string          `json:"engine,omitempty"`        // portable or epoll; with ", isolated" when it was a process of its own, "isolated" alone when that died
	Stamp           string          `json:"stamp,omitempty"`         // grade in use
	Threads         int             `json:"threads,omitempty"`       // of the epoll engine
	Connections     int             `json:"connections"`             // opened
	ReadsHeldUp     int             `json:"reads_held_up,omitempty"` // times that reading stopped for 1 ms, since too much lay unfolded
	StaleRetries    int             `json:"stale_retries"`           // calls sent again because a reused connection was closed
	Reads           int             `json:"reads"`
	Unstamped       int             `json:"unstamped_reads"`              // without a kernel stamp where one was wanted
	ReadDelayP99    int64           `json:"read_delay_p99_ns"`            // from the kernel's stamp to the read
	SchedDelayP99   int64           `json:"sched_delay_p99_ns,omitempty"` // from when a thread of the client wanted to run until it did
	Stalls          []Span          `json:"stalls,omitempty"`             // when a thread of the client did not run although it had work, the first 1,000
	Stalled         int64           `json:"stalled_ns,omitempty"`         // how much of that lies in the window; of the summary alone
	MergedShare     opt.Of[float64] `json:"merged_read_share"`            // of the output events, those that shared a read with another of their response; of the summary alone
	ClockSteps      int             `json:"clock_steps"`                  // steps of the wall clock that were noticed
	UnrepairedSteps int             `json:"unrepaired_clock_steps"`
	RingDropped     int64           `json:"ring_dropped,omitempty"`    // packets that the ring lost
	RingTrouble     string          `json:"ring_trouble,omitempty"`    // why the capture ended before the run
	WireExchanges   int             `json:"wire_exchanges,omitempty"`  // exchanges whose moments are all those of packets
	OtherExchanges  int             `json:"other_exchanges,omitempty"` // and those with others among them
	NoWire          string          `json:"no_wire,omitempty"`         // why no packets were captured
	JournalBehind   bool            `json:"journal_behind"`            // the sender had to wait for storage
	FileLimit       uint64          `json:"file_limit,omitempty"`
	Test            *StampTest      `json:"stamp_test,omitempty"`     // of the grades, before the run
	EngineUser      time.Duration   `json:"engine_user_ns,omitempty"` // processor time of the engine threads; the kernel's work for them is system time
	EngineSystem    time.Duration   `json:"engine_system_ns,omitempty"`
	Toll            Toll            `json:"toll"`
}

// StampTest compares the grades of the stamps on a connection of this process with itself.
type StampTest struct {
	Events int `json:"events"` // that were sent
	Dated  int `json:"dated"`  // that a packet dated, of those
	// Medians and 99th percentiles of how much later one grade is than the one before, in ns; null where one of the two is missing.
	SocketAfterWire50 opt.Of[int64] `json:"socket_after_wire_p50_ns"`
	SocketAfterWire99 opt.Of[int64] `json:"socket_after_wire_p99_ns"`
	UserAfterSocket50 opt.Of[int64] `json:"user_after_socket_p50_ns"`
	UserAfterSocket99 opt.Of[int64] `json:"user_after_socket_p99_ns"`
	Trouble           string        `json:"trouble,omitempty"` // why wire stamps are not to be used
}

// Toll is what a run took of the machine, and the machine of the run.
type Toll struct {
	User       time.Duration   `json:"cpu_user_ns"`   // of this process and that of the engine
	System     time.Duration   `json:"cpu_system_ns"` // likewise
	PeakMemory uint64          `json:"peak_memory_bytes,omitempty"`
	GCs        int             `json:"gcs"`
	GCPauses   time.Duration   `json:"gc_pauses_ns"`        // in sum, the upper bounds of the buckets of the runtime
	LongestGC  time.Duration   `json:"longest_gc_pause_ns"` // the upper bound of its bucket
	Steal      opt.Of[float64] `json:"steal_share"`         // of the processors' time, taken by the host of this virtual machine; null where the system does not tell
}

// Span is a stretch of time, in offsets from the epoch.
type Span struct {
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
}

// Sheet is the environment sheet: what could be found out about host, GPU and engine.
type Sheet struct {
	Host    Host      `json:"host"`
	GPUs    []GPU     `json:"gpus"`
	GPUNote string    `json:"gpu_note,omitempty"` // why there is none
	Engines []Engine  `json:"engines"`            // one a target
	Taken   time.Time `json:"taken"`
}

// Host is the machine that sends the load.
type Host struct {
	OS          string  `json:"os"`
	Kernel      string  `json:"kernel,omitempty"`
	Arch        string  `json:"arch"`
	CPU         string  `json:"cpu,omitempty"`
	Cores       int     `json:"cores"`
	Governor    string  `json:"cpu_governor,omitempty"`
	MemoryBytes uint64  `json:"memory_bytes,omitempty"`
	Virtual     string  `json:"virtualization,omitempty"`
	CPULimit    float64 `json:"container_cpu_limit,omitempty"` // cores
	MemoryLimit uint64  `json:"container_memory_limit_bytes,omitempty"`
	GOMAXPROCS  int     `json:"gomaxprocs"`
}

// GPU is one accelerator of this host.
type GPU struct {
	Name        string  `json:"name"`
	UUID        string  `json:"uuid,omitempty"`
	Driver      string  `json:"driver,omitempty"`
	MemoryMiB   float64 `json:"memory_mib,omitempty"`
	PowerLimitW float64 `json:"power_limit_w,omitempty"`
	MaxSMClock  float64 `json:"max_sm_clock_mhz,omitempty"`
}

// Engine is what a target tells about itself. A figure that it does not tell is undefined, and never 0.
type Engine struct {
	URL         string        `json:"url"`
	Name        string        `json:"name,omitempty"` // vllm, llamacpp, ...; empty when unknown
	Version     string        `json:"version,omitempty"`
	Model       string        `json:"model,omitempty"`
	Models      []string      `json:"models,omitempty"`
	Quant       string        `json:"quantization,omitempty"`
	KVType      string        `json:"kv_cache_dtype,omitempty"`
	Backend     string        `json:"backend,omitempty"`   // that the model runs on, behind a server of several
	MaxLen      opt.Of[int]   `json:"max_model_len"`       // tokens that a request may have, with its answer
	Slots       opt.Of[int]   `json:"slots"`               // requests that it works on at once; others wait
	MaxRequests opt.Of[int]   `json:"max_requests"`        // requests that it lets in at once; others are refused
	KVTokens    opt.Of[int]   `json:"kv_cache_tokens"`     // that its KV cache holds
	PrefixCache opt.Of[bool]  `json:"prefix_cache"`        // whether it keeps the KV cache of earlier prompts
	Tensor      opt.Of[int]   `json:"tensor_parallel"`     // devices that share each layer
	Pipeline    opt.Of[int]   `json:"pipeline_parallel"`   // groups of devices that share the layers
	Data        opt.Of[int]   `json:"data_parallel"`       // copies that share the requests
	Expert      opt.Of[int]   `json:"expert_parallel"`     // devices that share the experts
	Vocab       opt.Of[int]   `json:"vocabulary"`          // tokens
	Addresses   []string      `json:"addresses,omitempty"` // of its name; none behind a proxy, which looks it up, or a unix socket
	Lookup      time.Duration `json:"dns_ns,omitempty"`    // how long the lookup of its name took, once, before the run
}

// Summary is the result of a run.
type Summary struct {
	Schema   string          `json:"schema"`
	Requests Counts          `json:"requests"`
	Window   opt.Of[float64] `json:"window_s"` // first measured send to the last end of a measured request
	Metrics  Metrics         `json:"metrics"`
	Load     LoadResult      `json:"load"`
	Steady   Steady          `json:"steady"`
	Tokens   TokenReport     `json:"tokens"`
	Form     *FormReport     `json:"form,omitempty"` // when answers were to have one
	Client   ClientReport    `json:"client"`
	Series   []Second        `json:"series"`
	Targets  []TargetResult  `json:"targets,omitempty"` // when there are several
	Phases   []PhaseResult   `json:"phases,omitempty"`  // when several are measured; all else is about them together
	Classes  []ClassResult   `json:"classes,omitempty"` // of requests, and turns of conversations
	Limits   TimeLimits      `json:"time_limits"`
	Flags    map[Flag]int    `json:"flags"`
	Errors   []ErrorCount    `json:"errors,omitempty"`
	Others   int             `json:"other_errors,omitempty"` // failed requests that are in none of the groups of errors
	Tail     []string        `json:"tail,omitempty"`         // what the shape of the tail says
	Caveats  []Caveat        `json:"caveats"`
	Verdict  Verdict         `json:"verdict"`
}

// PhaseResult is the result of one of several measured phases.
type PhaseResult struct {
	Name     string          `json:"name"`
	Requests Counts          `json:"requests"`
	Window   opt.Of[float64] `json:"window_s"`
	Metrics  Metrics         `json:"metrics"`
	Load     LoadResult      `json:"load"`
	Steady   Steady          `json:"steady"`
}

// Counts says what became of the measured requests. sent = ok + failed + excluded + incomplete + cancelled.
type Counts struct {
	Planned    int             `json:"planned"`
	Sent       int             `json:"sent"`
	OK         int             `json:"ok"`
	Failed     int             `json:"failed"`
	Excluded   int             `json:"excluded"`
	Incomplete int             `json:"incomplete"`
	Cancelled  int             `json:"cancelled"`
	Dropped    int             `json:"dropped"`
	Warmup     int             `json:"warmup"`
	ByOutcome  map[Outcome]int `json:"by_outcome"`
}

// Metric is one named result: a distribution or a single value. Both are nil when it is not defined.
type Metric struct {
	Key    string
	Dist   *Dist
	Scalar *Scalar
}

// Metrics are results in the order of the metric table. As JSON they are one object.
type Metrics []Metric

// Get returns the metric of a key, or nil.
func (m Metrics) Get(key string) *Metric {
	for i := range m {
		if m[i].Key == key {
			return &m[i]
		}
	}
	return nil
}

// Dist returns the distribution of a key, or nil when it has no sample.
func (m Metrics) Dist(key string) *Dist {
	if x := m.Get(key); x != nil {
		return x.Dist
	}
	return nil
}

// Value returns the single value of a key, when it is defined.
func (m Metrics) Value(key string) (float64, bool) {
	if x := m.Get(key); x != nil && x.Scalar != nil {
		return x.Scalar.Value.Get()
	}
	return 0, false
}

// MarshalJSON writes one object, keys in table order; a metric without samples is null.
func (m Metrics) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, x := range m {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:", x.Key)
		var v any
		switch {
		case x.Dist != nil:
			v = x.Dist
		case x.Scalar != nil:
			v = x.Scalar
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", x.Key, err)
		}
		out.Write(b)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON reads the object, keeping its order.
func (m *Metrics) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("metrics: want an object, have %v", t)
	}
	*m = nil
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		x := Metric{Key: key.(string)}
		switch {
		case string(raw) == "null":
		case bytes.Contains(raw, []byte(`"value"`)):
			x.Scalar = new(Scalar)
			err = json.Unmarshal(raw, x.Scalar)
		default:
			x.Dist = new(Dist)
			err = json.Unmarshal(raw, x.Dist)
		}
		if err != nil {
			return fmt.Errorf("metric %s: %w", x.Key, err)
		}
		*m = append(*m, x)
	}
	return nil
}

// Scalar is a single value with its unit.
type Scalar struct {
	Value opt.Of[float64] `json:"value"`
	Unit  string          `json:"unit"`
}

// Dist is the distribution of a metric over its samples.
type Dist struct {
	N         int
	Mean      float64
	SD        opt.Of[float64] // of the sample (n - 1); undefined below 2 samples
	Min, Max  float64
	Quantiles []Quantile            // ascending
	CI        map[string][2]float64 // 95 % interval of "mean", "p50", ...
	NEff      opt.Of[float64]       // effective number of independent samples
	CIMethod  string                // binomial, sectioning or batch means, or why there is none
}

// Quantile is a percentile and its value.
type Quantile struct {
	P     float64 // in per cent
	Value float64
}

// Key names a percentile as the summary does: p50, p99_9.
func (q Quantile) Key() string { return PercentileKey(q.P) }

// PercentileKey names a percentile: 99.9 is p99_9.
func PercentileKey(p float64) string {
	return "p" + strings.ReplaceAll(strconv.FormatFloat(p, 'f', -1, 64), ".", "_")
}

// P returns the value of a percentile that was computed.
func (d *Dist) P(p float64) (float64, bool) {
	if d == nil {
		return 0, false
	}
	for _, q := range d.Quantiles {
		if q.P == p {
			return q.Value, true
		}
	}
	return 0, false
}

// MarshalJSON writes n, mean, sd, min, the percentiles, max, ci95 and how it was made.
func (d Dist) MarshalJSON() ([]byte, error) {
	out := []byte(fmt.Sprintf(`{"n":%d`, d.N))
	add := func(key string, v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		out = append(append(out, fmt.Sprintf(`,%q:`, key)...), b...)
		return nil
	}
	fields := []struct {
		key string
		v   any
	}{{"mean", d.Mean}, {"sd", d.SD}, {"min", d.Min}}
	for _, q := range d.Quantiles {
		fields = append(fields, struct {
			key string
			v   any
		}{q.Key(), q.Value})
	}
	for _, f := range fields {
		if err := add(f.key, f.v); err != nil {
			return nil, err
		}
	}
	if err := add("max", d.Max); err != nil {
		return nil, err
	}
	ci := d.CI
	if ci == nil {
		ci = map[string][2]float64{}
	}
	if err := add("ci95", ci); err != nil {
		return nil, err
	}
	if d.CIMethod != "" {
		if err := add("ci_method", d.CIMethod); err != nil {
			return nil, err
		}
	}
	if d.NEff.Defined() {
		if err := add("n_eff", d.NEff); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Dist) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*d = Dist{}
	for key, v := range raw {
		var err error
		switch key {
		case "n":
			err = json.Unmarshal(v, &d.N)
		case "mean":
			err = json.Unmarshal(v, &d.Mean)
		case "sd":
			err = json.Unmarshal(v, &d.SD)
		case "min":
			err = json.Unmarshal(v, &d.Min)
		case "max":
			err = json.Unmarshal(v, &d.Max)
		case "ci95":
			err = json.Unmarshal(v, &d.CI)
		case "ci_method":
			err = json.Unmarshal(v, &d.CIMethod)
		case "n_eff":
			err = json.Unmarshal(v, &d.NEff)
		default:
			p, perr := strconv.ParseFloat(strings.ReplaceAll(strings.TrimPrefix(key, "p"), "_", "."), 64)
			if perr != nil || !strings.HasPrefix(key, "p") {
				continue // a later version's field
			}
			var x float64
			err = json.Unmarshal(v, &x)
			d.Quantiles = append(d.Quantiles, Quantile{p, x})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	sort.Slice(d.Quantiles, func(i, j int) bool { return d.Quantiles[i].P < d.Quantiles[j].P })
	return nil
}

// LoadResult compares the load that was asked for with the one that was sent. Rates are in requests/s.
type LoadResult struct {
	Shape       Shape           `json:"shape"`
	Concurrency int             `json:"concurrency,omitempty"`
	Cap         int             `json:"cap,omitempty"`
	Profile     string          `json:"profile,omitempty"` // how the rate or the concurrency went with time
	Asked       opt.Of[float64] `json:"asked"`             // the flag; of a rate that goes with time its mean
	Offered     opt.Of[float64] `json:"offered"`           // of the drawn schedule
	Sent        opt.Of[float64] `json:"sent"`              // of the send times
	Attained    opt.Of[float64] `json:"attained"`          // sent / offered
	Arrivals    *ArrivalTest    `json:"arrival_test"`
	InFlight    InFlight        `json:"in_flight"`
}

// ArrivalTest tells whether the gaps follow the asked law. Null below 100 gaps.
type ArrivalTest struct {
	Law    string       `json:"law"`
	N      int          `json:"n"` // gaps
	Due    ArrivalCheck `json:"due"`
	Sent   ArrivalCheck `json:"sent"`
	Passed bool         `json:"passed"` // false only where the due times pass and the send times do not
}

// ArrivalCheck is the test of one sequence of times.
type ArrivalCheck struct {
	KSP        opt.Of[float64] `json:"ks_p"`             // Kolmogorov-Smirnov
	Lag1       opt.Of[float64] `json:"lag1_correlation"` // of neighbouring gaps
	Lag1Limit  opt.Of[float64] `json:"lag1_limit"`
	Dispersion opt.Of[float64] `json:"dispersion_index"` // of counts, Poisson only
	DispLow    opt.Of[float64] `json:"dispersion_low"`
	DispHigh   opt.Of[float64] `json:"dispersion_high"`
	OnTime     opt.Of[float64] `json:"on_time_share"` // gaps within max(1 ms, 5 %), constant only
	Passed     bool            `json:"passed"`
}

// InFlight is the number of requests in flight over the window.
type InFlight struct {
	Mean opt.Of[float64] `json:"mean"` // time-weighted
	Peak int             `json:"peak"`
}

// Steady is the plateau inside the window. Times are seconds from the window's begin; where there is no plateau they and the rates are
// null, and the note says why.
type Steady struct {
	Word              string          `json:"word"` // steady, drifting up, drifting down, not settled, all at once, too short
	From              opt.Of[float64] `json:"from_s"`
	To                opt.Of[float64] `json:"to_s"`
	RequestThroughput opt.Of[float64] `json:"request_throughput"`
	OutputThroughput  opt.Of[float64] `json:"output_throughput"`
	Note              string          `json:"note,omitempty"`
}

// TokenReport says where the token counts come from and how they fit what was asked.
type TokenReport struct {
	ISLSource     map[Source]int  `json:"isl_source"`
	OSLSource     map[Source]int  `json:"osl_source"`
	ISLAskedMean  opt.Of[float64] `json:"isl_asked_mean"`
	ISLDeviation  opt.Of[float64] `json:"isl_deviation_mean"`  // mean of |isl - asked| / asked
	ISLWorst      opt.Of[float64] `json:"isl_deviation_worst"` // largest
	OSLAskedMean  opt.Of[float64] `json:"osl_asked_mean"`
	CachedShare   opt.Of[float64] `json:"cached_share"` // of prompt tokens, where the server tells
	LengthLimited opt.Of[float64] `json:"length_limited_share"`
}

// FormReport counts the answers by whether they have the form that was asked for. Several answers to one request, and calls of tools,
// are not looked at.
type FormReport struct {
	Valid   int `json:"valid"`
	Invalid int `json:"invalid"`
	CutOff  int `json:"cut_off"` // not valid, since the output limit was reached
}

// Second is one second of the window.
type Second struct {
	T        float64         `json:"t_s"` // its begin
	Sent     int             `json:"sent"`
	Ended    int             `json:"ok"`
	Failed   int             `json:"failed"`
	Tokens   opt.Of[float64] `json:"output_tokens"` // by event time
	InFlight float64         `json:"in_flight"`     // mean
	TTFT     opt.Of[float64] `json:"ttft_ms_p50"`   // of requests sent in it
	TTFTP99  opt.Of[float64] `json:"ttft_ms_p99"`
	ITL      opt.Of[float64] `json:"itl_ms_p50"` // of gaps that end in it
}

// TargetResult is the share of one target among several.
type TargetResult struct {
	URL               string          `json:"url"`
	Sent              int             `json:"sent"`
	OK                int             `json:"ok"`
	Failed            int             `json:"failed"`
	TTFT              *Dist           `json:"ttft_ms"`
	TPOT              *Dist           `json:"tpot_ms"`
	E2EL              *Dist           `json:"e2el_ms"`
	RequestThroughput opt.Of[float64] `json:"request_throughput"`
	OutputThroughput  opt.Of[float64] `json:"output_throughput"`
}

// ClassResult is the result of the requests of one class, or of the first or the later turns of conversations.
type ClassResult struct {
	Of     string `json:"of"` // class or turn
	Name   string `json:"name"`
	Sent   int    `json:"sent"`
	OK     int    `json:"ok"`
	Failed int    `json:"failed"`
	TTFT   *Dist  `json:"ttft_ms"`
	TPOT   *Dist  `json:"tpot_ms"`
	E2EL   *Dist  `json:"e2el_ms"`
	ISL    *Dist  `json:"isl"`
	OSL    *Dist  `json:"osl"`
}

// TimeLimits are the bounds of the requests' times, in seconds.
type TimeLimits struct {
	Request opt.Of[float64] `json:"request_timeout_s"` // from sent to the end; null = none
	Connect opt.Of[float64] `json:"connect_timeout_s"` // TCP connect and TLS handshake; null = none
	Grace   float64         `json:"grace_s"`           // for what is in flight at the end of a duration, or after an interrupt
}

// ErrorCount is a group of failures with one outcome and the same words. Words that hold a digit, such as ids, may differ in a group:
// … stands for them.
type ErrorCount struct {
	Outcome Outcome `json:"outcome"`
	Status  int     `json:"status,omitempty"`
	Text    string  `json:"text"`
	N       int     `json:"n"`
}

// Severity of a caveat.
type Severity string

// The severities: void makes the run void, warn makes it doubtful, cell marks one number, note only says something.
const (
	SeverityVoid Severity = "void"
	SeverityWarn Severity = "warn"
	SeverityCell Severity = "cell"
	SeverityNote Severity = "note"
)

// Caveat is what makes a number doubtful. It is stored with the result and printed wherever the number is.
type Caveat struct {
	Code     string   `json:"code"`
	Metric   string   `json:"metric,omitempty"` // the metric it belongs to, with the percentile when there is one: ttft_ms.p99
	Text     string   `json:"text"`
	Remedy   string   `json:"remedy,omitempty"`
	Severity Severity `json:"severity"`
}

// Verdict says whether a run may be used.
type Verdict string

// The verdicts.
const (
	Valid    Verdict = "valid"
	Doubtful Verdict = "doubtful"
	Void     Verdict = "void"
)
