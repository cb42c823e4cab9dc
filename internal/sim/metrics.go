package sim

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"sync/atomic"
	"time"
)

// instruments are what GET /metrics shows, under the names, with the labels and the bucket edges of vLLM 0.32. Their methods may
// be called from any goroutine.
type instruments struct {
	running atomic.Int64 // requests; engine mode asks the scheduler instead

	promptTokens, cachedTokens, generationTokens atomic.Int64
	finished                                     [len(finishedReasons)]atomic.Int64

	promptLength, outputLength, maxTokens      *histogram
	iteration                                  *histogram // tokens a step
	firstToken, betweenTokens, perOutputToken  *histogram // seconds
	whole, queue, inference, prefill, decoding *histogram
	preemptions, computedPrompt                *histogram
}

var finishedReasons = [...]string{"stop", "length", "abort", "error", "repetition"}

// Indexes of finishedReasons.
const (
	finishedStop = iota
	finishedLength
	finishedAbort
)

// edges of vLLM's histograms; those of token counts end at the first 1-2-5 step at or below the model length.
func phaseEdges() []float64 {
	return []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
}

func betweenEdges() []float64 {
	return []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
}

func lengthEdges(most int) (edges []float64) {
	for decade := 1; decade <= most; decade *= 10 {
		for _, m := range [...]int{1, 2, 5} {
			if m*decade <= most {
				edges = append(edges, float64(m*decade))
			}
		}
	}
	return edges
}

func newInstruments(modelLen int) *instruments {
	lengths := func() *histogram { return newHistogram(lengthEdges(modelLen)) }
	phase := func() *histogram { return newHistogram(phaseEdges()) }
	return &instruments{
		promptLength: lengths(), outputLength: lengths(), maxTokens: lengths(), computedPrompt: lengths(),
		iteration: newHistogram([]float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}),
		firstToken: newHistogram([]float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
			160, 640, 2560}),
		betweenTokens: newHistogram(betweenEdges()), perOutputToken: newHistogram(betweenEdges()),
		whole: phase(), queue: phase(), inference: phase(), prefill: phase(), decoding: phase(),
		preemptions: newHistogram([]float64{1, 2, 3, 4, 5, 10, 20}),
	}
}

// histogram counts values below fixed edges.
type histogram struct {
	edges  []float64
	counts []atomic.Int64 // one more than edges: the values above all
	sum    atomic.Uint64  // bits of a float64
}

func newHistogram(edges []float64) *histogram {
	return &histogram{edges: edges, counts: make([]atomic.Int64, len(edges)+1)}
}

// observe counts a value n times.
func (h *histogram) observe(v float64, n int) {
	h.counts[sort.SearchFloat64s(h.edges, v)].Add(int64(n))
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+float64(v*float64(n)))) {
			return
		}
	}
}

func (h *histogram) seconds(d time.Duration) { h.observe(d.Seconds(), 1) }

// meterPage writes the text format of Prometheus.
type meterPage struct {
	b       []byte
	labels  string // common ones, without braces
	created string // value of the _created series, which Python's client writes; "" = there are none
}

func (p *meterPage) help(name, kind, text string) {
	p.b = append(p.b, "# HELP "+name+" "+text+"\n# TYPE "+name+" "+kind+"\n"...)
}

func (p *meterPage) line(name, labels string, v float64) {
	p.b = append(p.b, name...)
	if labels != "" {
		p.b = append(p.b, '{')
		p.b = append(p.b, labels...)
		p.b = append(p.b, '}')
	}
	p.b = append(p.b, ' ')
	p.b = appendFloat(p.b, v)
	p.b = append(p.b, '\n')
}

// appendFloat writes a number as the Python client does: 1.0 for 1.
func appendFloat(b []byte, v float64) []byte {
	n := len(b)
	if math.Abs(v) >= 1e16 {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	for _, c := range b[n:] {
		if c == '.' {
			return b
		}
	}
	return append(b, ".0"...)
}

func (p *meterPage) gauge(name, text string, v float64) {
	p.help(name, "gauge", text)
	p.line(name, p.labels, v)
}

// series is a value with a label of its own.
type series struct {
	label string // name="value"
	v     float64
}

// counter writes a counter under its name with _total, and the series that says since when it counts; without series it has the one
// value v.
func (p *meterPage) counter(name, text string, v float64, of ...series) {
	if of == nil {
		of = []series{{"", v}}
	}
	p.count(name+"_total", text, of...)
	if p.created == "" {
		return
	}
	p.help(name+"_created", "gauge", text)
	for _, s := range of {
		p.b = append(p.b, name+"_created{"+p.with(s.label)+"} "+p.created+"\n"...)
	}
}

// count writes a counter under its name alone.
func (p *meterPage) count(name, text string, of ...series) {
	p.help(name, "counter", text)
	for _, s := range of {
		p.line(name, p.with(s.label), s.v)
	}
}

func (p *meterPage) with(label string) string {
	if label == "" || p.labels == "" {
		return p.labels + label
	}
	return p.labels + "," + label
}

func (p *meterPage) histogram(name, text string, h *histogram) { p.histogramIn(1, name, text, h) }

// histogramIn writes values in another unit, of which so many make one of the histogram's.
func (p *meterPage) histogramIn(unit float64, name, text string, h *histogram) {
	p.help(name, "histogram", text)
	total := int64(0)
	for i := range h.counts {
		total += h.counts[i].Load()
		le := "+Inf"
		if i < len(h.edges) {
			le = string(appendFloat(nil, h.edges[i]*unit))
		}
		p.line(name+"_bucket", p.with(`le="`+le+`"`), float64(total))
	}
	p.line(name+"_count", p.labels, float64(total))
	p.line(name+"_sum", p.labels, h.total()*unit)
	if p.created == "" {
		return
	}
	p.help(name+"_created", "gauge", text)
	p.b = append(p.b, name+"_created{"+p.labels+"} "+p.created+"\n"...)
}

// readings are what a page shows.
type readings struct {
	*instruments
	model            string
	window           int
	running, waiting float64
	usage            float64 // of the KV blocks, 0 to 1
	engine           *scheduler
	st               schedulerStats // engine mode
}

// meterPage renders a page of Prometheus.
func (s *Server) meterPage(write func(p *meterPage, r *readings)) []byte {
	r := &readings{instruments: s.met, model: string(appendQuoted(nil, s.cfg.Model)), window: s.cfg.MaxModelLen, running: float64(s.met.running.Load())}
	if s.drive != nil {
		r.st, r.engine = s.drive.stats(), s.drive.sched
		r.running, r.waiting, r.usage = float64(r.st.running), float64(r.st.waiting), float64(r.st.blocks)/float64(s.drive.blocks())
	}
	p := &meterPage{created: strconv.FormatFloat(float64(s.start.UnixNano())/1e9, 'f', -1, 64)}
	write(p, r)
	return p.b
}

// capacity is how many tokens the KV cache holds; without a model of it, those of one context.
func (r *readings) capacity() float64 {
	if r.engine == nil {
		return float64(r.window)
	}
	return float64(r.engine.blocks * r.engine.blockSize)
}

func vllmMetrics(p *meterPage, r *readings) {
	p.labels = `engine="0",model_name=` + r.model
	m, st, running, waiting, usage := r.instruments, &r.st, r.running, r.waiting, r.usage
	p.gauge("vllm:num_requests_running", "Number of requests in model execution batches.", running)
	p.gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", waiting)
	p.help("vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.")
	p.line("vllm:num_requests_waiting_by_reason", p.with(`reason="capacity"`), waiting)
	p.line("vllm:num_requests_waiting_by_reason", p.with(`reason="deferred"`), 0)
	p.gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", usage)
	p.counter("vllm:prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens.", float64(st.queried))
	p.counter("vllm:prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens.", float64(st.hits))
	p.counter("vllm:num_preemptions", "Cumulative number of preemption from the engine.", float64(st.preemptions))
	p.counter("vllm:prompt_tokens", "Number of prefill tokens processed.", float64(m.promptTokens.Load()))
	p.counter("vllm:prompt_tokens_by_source", "Number of prompt tokens by source.", 0,
		series{`source="local_compute"`, float64(m.promptTokens.Load() - m.cachedTokens.Load())},
		series{`source="local_cache_hit"`, float64(m.cachedTokens.Load())},
		series{`source="external_kv_transfer"`, 0})
	p.counter("vllm:prompt_tokens_cached", "Number of cached prompt tokens (local + external).", float64(m.cachedTokens.Load()))
	p.counter("vllm:generation_tokens", "Number of generation tokens processed.", float64(m.generationTokens.Load()))
	p.counter("vllm:request_success", "Count of successfully processed requests.", 0, m.reasonSeries("finished_reason")...)
	p.histogram("vllm:request_prompt_tokens", "Number of prefill tokens processed.", m.promptLength)
	p.histogram("vllm:request_generation_tokens", "Number of generation tokens processed.", m.outputLength)
	p.histogram("vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", m.iteration)
	p.histogram("vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", m.maxTokens)
	p.histogram("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", m.firstToken)
	p.histogram("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", m.betweenTokens)
	p.histogram("vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.", m.perOutputToken)
	p.histogram("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", m.whole)
	p.histogram("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", m.queue)
	p.histogram("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", m.inference)
	p.histogram("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", m.prefill)
	p.histogram("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", m.decoding)
	p.histogram("vllm:request_num_preemptions", "Histogram of the number of times a request was preempted.", m.preemptions)
	p.histogram("vllm:request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
		m.computedPrompt)
	if n := len(st.acceptedAt); n > 0 {
		p.counter("vllm:spec_decode_num_drafts", "Number of spec decoding drafts.", float64(st.drafts))
		p.counter("vllm:spec_decode_num_draft_tokens", "Number of draft tokens.", float64(st.draftTokens))
		p.counter("vllm:spec_decode_num_accepted_tokens", "Number of accepted tokens.", float64(st.acceptTokens))
		var at []series
		for i, v := range st.acceptedAt {
			at = append(at, series{`position="` + strconv.Itoa(i) + `"`, float64(v)})
		}
		p.counter("vllm:spec_decode_num_accepted_tokens_per_pos", "Accepted tokens per draft position.", 0, at...)
	}
	if r.engine != nil {
		e := r.engine.engineParams
		p.help("vllm:cache_config_info", "gauge", "Information of the LLMEngine CacheConfig")
		caching := "False"
		if e.caching {
			caching = "True"
		}
		p.line("vllm:cache_config_info", fmt.Sprintf(`block_size="%d",cache_dtype="auto",enable_prefix_caching="%s",engine="0",`+
			`kv_cache_size_tokens="%d",num_gpu_blocks="%d"`, e.blockSize, caching, e.blocks*e.blockSize, e.blocks), 1)
	}
}

// reasonSeries are the requests that ended, by how; the label's name is the engine's.
func (m *instruments) reasonSeries(label string) (out []series) {
	for i, r := range finishedReasons {
		out = append(out, series{label + `="` + r + `"`, float64(m.finished[i].Load())})
	}
	return out
}

// succeeded is how many requests ended as they should.
func (m *instruments) succeeded() float64 {
	return float64(m.finished[finishedStop].Load() + m.finished[finishedLength].Load())
}

func (m *instruments) aborted() float64 { return float64(m.finished[finishedAbort].Load()) }

func valueOf(n *atomic.Int64) float64 { return float64(n.Load()) }

// total is the sum of a histogram's values.
func (h *histogram) total() float64 { return math.Float64frombits(h.sum.Load()) }
