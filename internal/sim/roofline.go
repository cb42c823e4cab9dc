package sim

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
)

// EngineConfig is the machine, the model and the limits of engine mode.
type EngineConfig struct {
	// Preset is hardware/model/precision/tpN, such as "h200/llama-70b/fp8/tp8"; "" = DefaultPreset. The names are those of
	// Hardwares, Models and Precisions.
	Preset string
	// Cost gives the step time in place of the preset's roofline.
	Cost *Cost

	MaxNumSeqs       int // sequences in a step; 0 = 1024
	MaxBatchedTokens int // tokens in a step; 0 = 8192
	BlockSize        int // tokens of a KV block; 0 = 16
	Blocks           int // KV blocks; 0 = what the preset's memory holds, or 32768 with Cost
	NoPrefixCache    bool

	Draft      int     // speculative tokens a step and sequence; 0 = none
	Acceptance float64 // probability that a draft is right, given that those before it were
}

// DefaultPreset is the machine and model when none is named.
const DefaultPreset = "h200/llama-8b/fp8/tp1"

// Cost is a step time in coefficients.
type Cost struct {
	Base       time.Duration // of each step
	PerPrefill float64       // ns for each prompt token computed
	PerDecode  float64       // ns for each sequence that decodes
	PerRead    float64       // ns for each token whose keys and values are read
}

// ParseCost reads coefficients such as "base=5ms,prefill=20us,decode=50us,read=10ns"; what is not named is 0.
func ParseCost(s string) (*Cost, error) {
	const hint = `try "base=5ms,prefill=20us,decode=50us,read=10ns"`
	var c Cost
	for _, item := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return nil, fault.Usagef(hint, "%q is not a coefficient", item)
		}
		switch name {
		case "base":
			c.Base = d
		case "prefill":
			c.PerPrefill = float64(d)
		case "decode":
			c.PerDecode = float64(d)
		case "read":
			c.PerRead = float64(d)
		default:
			return nil, fault.Usagef(hint, "coefficient %q is unknown", name)
		}
	}
	return &c, nil
}

func (c *Cost) step(l stepLoad) time.Duration {
	ns := float64(c.Base) + float64(c.PerPrefill*float64(l.prefill)) + float64(c.PerDecode*float64(l.sequences)) +
		float64(c.PerRead*float64(l.read))
	return max(1, time.Duration(math.Round(ns)))
}

// Hardware is one accelerator. Figures are the makers' data sheets: dense (without sparsity) tensor peak, memory bandwidth, memory,
// and the bandwidth to its neighbours in one direction.
type Hardware struct {
	Name      string
	FLOPS16   float64 // FLOP/s at 16 bits
	FLOPS8    float64 // FLOP/s at FP8; 0 = no such units
	Bandwidth float64 // bytes/s
	Memory    float64 // bytes
	Link      float64 // bytes/s
}

// Hardwares lists the accelerators of the presets.
func Hardwares() []Hardware {
	return []Hardware{
		{"a100", 312e12, 0, 2.039e12, 80e9, 300e9},         // NVIDIA A100 80GB SXM data sheet
		{"h100", 989e12, 1979e12, 3.35e12, 80e9, 450e9},    // NVIDIA H100 SXM data sheet
		{"h200", 989e12, 1979e12, 4.8e12, 141e9, 450e9},    // NVIDIA H200 SXM data sheet
		{"b200", 2250e12, 4500e12, 8e12, 180e9, 900e9},     // NVIDIA HGX B200 data sheet, per GPU
		{"l40s", 362e12, 733e12, 864e9, 48e9, 32e9},        // NVIDIA L40S data sheet; PCIe 4 x16
		{"mi300x", 1307e12, 2615e12, 5.3e12, 192e9, 448e9}, // AMD Instinct MI300X data sheet; 7 links of 64 GB/s
	}
}

// ModelShape is a dense decoder as far as its work depends on it, from its published config.json.
type ModelShape struct {
	Name       string
	Parameters float64
	Layers     int
	Hidden     int
	Heads      int
	KVHeads    int
	HeadSize   int
}

// Models lists the models of the presets.
func Models() []ModelShape {
	return []ModelShape{
		{"llama-8b", 8.03e9, 32, 4096, 32, 8, 128},       // meta-llama/Llama-3.1-8B
		{"llama-70b", 70.6e9, 80, 8192, 64, 8, 128},      // meta-llama/Llama-3.1-70B
		{"llama-405b", 405.9e9, 126, 16384, 128, 8, 128}, // meta-llama/Llama-3.1-405B
		{"qwen3-8b", 8.19e9, 36, 4096, 32, 8, 128},       // Qwen/Qwen3-8B
		{"qwen3-32b", 32.8e9, 64, 5120, 64, 8, 128},      // Qwen/Qwen3-32B
	}
}

// Precision is how weights are stored and multiplied. Keys and values are kept at 16 bits, vLLM's default.
type Precision struct {
	Name     string
	Bytes    float64 // of a weight
	Multiply int     // bits: 8 or 16
}

// Precisions lists the precisions of the presets.
func Precisions() []Precision {
	return []Precision{
		{"fp16", 2, 16},
		{"fp8", 1, 8},
		{"int4", 0.5625, 16}, // weights only; a 16-bit scale and zero point for each 64 weights included
	}
}

// vLLM's defaults for a server on a GPU of 70 GB or more.
const (
	defaultSeqs   = 1024
	defaultBudget = 8192
	defaultBlock  = 16
)

// What a real engine reaches of the peaks. They place the model in the right range; they are no measurement of any engine.
const (
	computeShare   = 0.6      // of peak FLOP/s in large matrix products
	bandwidthShare = 0.8      // of peak memory bandwidth
	linkShare      = 0.7      // of the link bandwidth in an all-reduce
	reduceLatency  = 8e3      // ns of one small all-reduce within a node
	stepOverhead   = 1e6      // ns a step: scheduling, sampling, launches beside the graph
	memoryShare    = 0.92     // vLLM 0.32's default gpu_memory_utilization
	workspace      = 3e9      // bytes a GPU: activations, graphs, context
	kvBytes        = 2        // of one number in the KV cache
	defaultBlocks  = 32768    // with coefficients in place of a preset
	maxBlocks      = 16 << 20 // 256 million tokens: 400 MB of bookkeeping here
	maxDraft       = 64       // far above any speculator
)

// roofline is the step time of a model on a machine: the slower of computing and of reading memory, plus communication.
type roofline struct {
	hw        Hardware
	model     ModelShape
	precision Precision
	tp        float64
}

// parsePreset reads hardware/model/precision/tpN.
func parsePreset(s string) (r roofline, err error) {
	parts := strings.Split(s, "/")
	if len(parts) != 4 {
		return r, fault.Usagef(presetHint(), "preset %q does not have the form hardware/model/precision/tpN", s)
	}
	found := 0
	for _, h := range Hardwares() {
		if h.Name == parts[0] {
			r.hw = h
			found++
		}
	}
	for _, m := range Models() {
		if m.Name == parts[1] {
			r.model = m
			found++
		}
	}
	for _, p := range Precisions() {
		if p.Name == parts[2] {
			r.precision = p
			found++
		}
	}
	digits, named := strings.CutPrefix(parts[3], "tp")
	tp, wrong := strconv.Atoi(digits)
	if found != 3 || !named || wrong != nil || tp < 1 || tp > 64 {
		return r, fault.Usagef(presetHint(), "preset %q is unknown", s)
	}
	r.tp = float64(tp)
	if r.precision.Multiply == 8 && r.hw.FLOPS8 == 0 {
		return r, fault.Usagef("use fp16 or int4", "%s has no fp8 units", r.hw.Name)
	}
	return r, nil
}

func presetHint() string {
	var names [3][]string
	for _, h := range Hardwares() {
		names[0] = append(names[0], h.Name)
	}
	for _, m := range Models() {
		names[1] = append(names[1], m.Name)
	}
	for _, p := range Precisions() {
		names[2] = append(names[2], p.Name)
	}
	return "hardware is one of " + strings.Join(names[0], " ") + ", model of " + strings.Join(names[1], " ") + ", precision of " +
		strings.Join(names[2], " ")
}

// kvPerToken is the bytes of keys and values of one token, over all layers.
func (m ModelShape) kvPerToken() float64 {
	return float64(2 * m.Layers * m.KVHeads * m.HeadSize * kvBytes)
}

// step is the time of a step in ns:
//
//	compute = (2 * parameters * tokens + 4 * layers * heads * head size * pairs) / tp / (peak FLOP/s * computeShare)
//	memory  = (weight bytes / tp + KV bytes * tokens read / min(tp, KV heads)) / (peak bandwidth * bandwidthShare)
//	reduce  = 2 * layers all-reduces of hidden * tokens * 2 bytes, each 2 * (tp-1)/tp of that over the link
//	step    = max(compute, memory) + reduce + overhead
func (r roofline) step(l stepLoad) time.Duration {
	m, tokens := r.model, float64(l.prefill+l.decode)
	peak := r.hw.FLOPS16
	if r.precision.Multiply == 8 {
		peak = r.hw.FLOPS8
	}
	flops := float64(2*m.Parameters*tokens) + float64(float64(4*m.Layers*m.Heads*m.HeadSize)*l.pairs)
	compute := flops / r.tp / (peak * computeShare)
	bytes := m.Parameters*r.precision.Bytes/r.tp + float64(m.kvPerToken()*float64(l.read))/min(r.tp, float64(m.KVHeads))
	memory := bytes / (r.hw.Bandwidth * bandwidthShare)
	ns := float64(max(compute, memory)*1e9) + stepOverhead
	if r.tp > 1 {
		size := float64(float64(m.Hidden)*tokens) * 2
		once := reduceLatency + float64(size*2*(r.tp-1)/r.tp/(r.hw.Link*linkShare)*1e9)
		ns += float64(float64(2*m.Layers) * once)
	}
	return time.Duration(math.Round(ns))
}

// blocks is how many KV blocks of the size fit beside the weights.
func (r roofline) blocks(size int) int {
	usable := float64(r.hw.Memory*memoryShare) - workspace
	free := float64(r.tp*usable) - float64(r.model.Parameters*r.precision.Bytes)
	return int(max(0, free) / (r.model.kvPerToken() * float64(size)))
}

// engineParams are what the scheduler needs to know.
type engineParams struct {
	maxSeqs, budget   int
	blockSize, blocks int
	caching           bool
	draft             int
	acceptance        float64
	cost              func(stepLoad) time.Duration
}

// resolve works out the parameters for a model with the given context.
func (c EngineConfig) resolve(modelLen int) (p engineParams, err error) {
	budget := cmp.Or(c.MaxBatchedTokens, defaultBudget)
	p = engineParams{budget: budget, maxSeqs: cmp.Or(c.MaxNumSeqs, min(defaultSeqs, budget)), blockSize: cmp.Or(c.BlockSize, defaultBlock),
		blocks: c.Blocks, caching: !c.NoPrefixCache, draft: c.Draft, acceptance: c.Acceptance}
	if p.maxSeqs < 1 || p.budget < p.maxSeqs || p.blockSize < 1 {
		return p, fault.Usagef("", "max num seqs, max batched tokens and block size must be above 0, and the second not below the first")
	}
	if c.Draft < 0 || c.Draft > maxDraft || !(c.Acceptance >= 0 && c.Acceptance <= 1) {
		return p, fault.Usagef("", "draft tokens must be between 0 and %d, the acceptance between 0 and 1", maxDraft)
	}
	if c.Cost != nil {
		if c.Preset != "" {
			return p, fault.Usagef("", "step time by preset and by coefficients exclude each other")
		}
		p.cost = c.Cost.step
		if p.blocks == 0 {
			p.blocks = defaultBlocks
		}
	} else {
		preset := c.Preset
		if preset == "" {
			preset = DefaultPreset
		}
		r, err := parsePreset(preset)
		if err != nil {
			return p, err
		}
		p.cost = r.step
		if p.blocks == 0 {
			p.blocks = min(r.blocks(p.blockSize), maxBlocks)
		}
	}
	if p.blocks < 1 || p.blocks > maxBlocks || p.blocks*p.blockSize < modelLen {
		return p, fault.Usagef("shorten the model length, or give it more or larger GPUs or KV blocks",
			"%d KV blocks of %d tokens do not hold one request of %d tokens", p.blocks, p.blockSize, modelLen)
	}
	return p, nil
}
