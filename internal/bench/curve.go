package bench

import (
	"time"

	"github.com/prony-bench/prony/internal/opt"
)

// CurveSchema is the schema version of sweep.json.
const CurveSchema = "prony.curve/1"

// LoadAxis is what grows from level to level of a sweep.
type LoadAxis string

// The axes of a sweep.
const (
	ByConcurrency LoadAxis = "concurrency"  // requests in flight of a closed loop
	ByRate        LoadAxis = "request_rate" // requests/s of an open loop
)

// Curve is the result of a sweep: what a server gives at each load, and what follows from that.
type Curve struct {
	Schema  string    `json:"schema"`
	Prony   string    `json:"prony_version"`
	Command []string  `json:"command"` // without secrets
	Begun   time.Time `json:"begun"`
	Spec    Spec      `json:"spec"`        // what all runs have in common; load, stop and seed are each run's own
	Sheet   Sheet     `json:"environment"` // of the first run
	Plan    SweepPlan `json:"plan"`
	State   State     `json:"state"`             // how the sweep ended
	Stopped string    `json:"stopped,omitempty"` // in words, when it did not go through its plan

	Levels   []CurveLevel   `json:"levels"`             // ascending
	Knee     Knee           `json:"knee"`               // where the curve bends; no capacity
	Breaking *CurvePoint    `json:"breaking,omitempty"` // the first level from which on all break
	Best     *CurvePoint    `json:"slo_load,omitempty"` // the highest load that meets the SLO, and all below it do
	Capacity *Capacity      `json:"capacity,omitempty"` // what is recommended
	Search   *SearchResult  `json:"search,omitempty"`   // of a search
	Frontier []FrontierStep `json:"frontier"`           // output tokens/s (of a GPU, if their number is known) against tokens/s that a user sees
	GPUs     opt.Of[int]    `json:"gpus"`               // devices that the rates are divided by; null = not known, then they are the server's
	Caveats  []Caveat       `json:"caveats"`
	Verdict  Verdict        `json:"verdict,omitempty"`
}

// SweepPlan says which runs a sweep makes.
type SweepPlan struct {
	Axis     LoadAxis      `json:"axis"`
	Loads    []float64     `json:"loads"` // of the ladder, ascending; of a search its first load, and the highest that it may use if there is a bound
	Rounds   int           `json:"rounds"`
	Order    string        `json:"order"` // of the runs, in words
	Cooldown time.Duration `json:"cooldown_ns"`
	Requests int           `json:"requests,omitempty"` // of each level; 0 with no duration = by the load
	StopOn   []string      `json:"stop_on"`            // errors, slo, saturation
	SLO      []Condition   `json:"slo,omitempty"`      // on percentiles and means of a level, beside the limits of each request in the spec
	Share    float64       `json:"share"`              // of the requests that have to be good, or to succeed where no request has a limit
	Reserve  float64       `json:"reserve"`            // share of the highest load that is kept free in the capacity
	GPUs     int           `json:"gpus,omitempty"`     // as given
	Search   bool          `json:"search,omitempty"`
	Within   float64       `json:"resolution,omitempty"` // of a search: ratio - 1 of the loads that it tells apart
}

// Condition is a limit of one statistic of a run: Stat of Metric below Max.
type Condition struct {
	Metric string  `json:"metric"` // ttft, tpot, itl or e2el
	Stat   string  `json:"stat"`   // mean, or a percentile such as p99
	Max    float64 `json:"max_ms"`
}

// CurveLevel is one load of a sweep.
type CurveLevel struct {
	Load     float64       `json:"load"` // requests in flight, or requests/s
	Runs     []CurveRun    `json:"runs"` // by round
	Metrics  []CurveMetric `json:"metrics"`
	Meets    opt.Of[bool]  `json:"meets_slo"`       // null without an SLO, or without a usable run
	Sure     bool          `json:"sure"`            // all rounds agree on that
	Breaks   []string      `json:"breaks"`          // why the level is broken: errors, slo, saturation
	Why      []string      `json:"why,omitempty"`   // the same in words
	Frontier bool          `json:"on_the_frontier"` // no other level is better in both rates
}

// CurveRun is one run of a level. Its directory lies in that of the sweep.
type CurveRun struct {
	Round     int             `json:"round"`
	Dir       string          `json:"dir"`
	Seed      uint64          `json:"seed"`
	Verdict   Verdict         `json:"verdict"`
	Sent      int             `json:"sent"`
	Failed    int             `json:"failed"`
	Margin    opt.Of[float64] `json:"slo_margin"` // logarithm of the worst ratio of a figure to its limit: 0 and below meet the SLO
	Worst     string          `json:"worst"`      // that figure, in words
	Saturated []string        `json:"saturated"`  // the rules that say so: slope, peak
	Caveats   []string        `json:"caveats"`    // codes of those that bear on the verdict
	Window    opt.Of[float64] `json:"window_s"`   // of the run
}

// CurveMetric is a figure of a level: the mean over its rounds, with the 95 % t-interval over rounds.
type CurveMetric struct {
	Key    string            `json:"key"` // of the metric, with the statistic of a distribution: ttft_ms.p99, request_throughput
	Unit   string            `json:"unit"`
	Mean   opt.Of[float64]   `json:"mean"`
	Low    opt.Of[float64]   `json:"ci95_low"` // null below two rounds
	High   opt.Of[float64]   `json:"ci95_high"`
	Rounds []opt.Of[float64] `json:"rounds"` // in the order of the runs; null of a void one
}

// Get returns a figure of a level, or nil.
func (l *CurveLevel) Get(key string) *CurveMetric {
	for i := range l.Metrics {
		if l.Metrics[i].Key == key {
			return &l.Metrics[i]
		}
	}
	return nil
}

// Mean returns the mean over the rounds of a figure.
func (l *CurveLevel) Mean(key string) (float64, bool) {
	if m := l.Get(key); m != nil {
		return m.Mean.Get()
	}
	return 0, false
}

// Knee is where throughput over load bends most, by two ways that seldom agree. Neither is a capacity.
type Knee struct {
	Kneedle opt.Of[float64] `json:"kneedle"`        // load; null = the curve has none, or there are too few levels
	Axis    string          `json:"kneedle_axis"`   // linear or log2: the axis of the load that it was found on
	USL     *USLFit         `json:"usl,omitempty"`  // absent below 6 levels
	Note    string          `json:"note,omitempty"` // why one is missing
}

// USLFit is the Universal Scalability Law over the mean number in flight.
type USLFit struct {
	Lambda float64         `json:"lambda"`     // requests/s of one request in flight
	Sigma  float64         `json:"sigma"`      // contention
	Kappa  float64         `json:"kappa"`      // coherence
	Peak   opt.Of[float64] `json:"peak"`       // number in flight of highest throughput; null = none within ten times what was measured
	Limit  opt.Of[float64] `json:"saturation"` // requests/s that a curve without a peak approaches
}

// CurvePoint is a level that stands out.
type CurvePoint struct {
	Load       float64         `json:"load"`
	Throughput opt.Of[float64] `json:"request_throughput"` // mean over the rounds
	Goodput    opt.Of[float64] `json:"goodput"`
	Low        opt.Of[float64] `json:"ci95_low"` // of the goodput, or of the throughput without limits
	High       opt.Of[float64] `json:"ci95_high"`
	Why        string          `json:"why"`
}

// Capacity is the load that a server should be given.
type Capacity struct {
	Load       float64         `json:"load"`
	Throughput opt.Of[float64] `json:"request_throughput"` // about what it gives there
	From       float64         `json:"from"`               // the highest load that held
	Reserve    float64         `json:"reserve"`
	Why        string          `json:"why"`
}

// SearchResult is the answer of a search.
type SearchResult struct {
	Load     opt.Of[float64] `json:"load"` // highest that meets the SLO; null = none does
	Low      opt.Of[float64] `json:"low"`  // highest load of which all rounds met it
	High     opt.Of[float64] `json:"high"` // lowest load above the answer that did not; null = none was found
	Confirm  int             `json:"confirm_rounds"`
	Met      int             `json:"confirmed"` // rounds of those that met it
	Runs     int             `json:"runs"`
	Requests int             `json:"requests"`        // sent in all of them
	Ladder   int             `json:"ladder_requests"` // that a ladder of the same resolution and rounds would have sent
	Ended    string          `json:"ended"`           // why it went no further
}

// FrontierStep is a measured point that no other beats in both rates.
type FrontierStep struct {
	Load    float64 `json:"load"`
	PerUser float64 `json:"per_user"` // tokens/s that a user sees, mean
	Rate    float64 `json:"rate"`     // output tokens/s, of a GPU if their number is known
}
