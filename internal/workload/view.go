package workload

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/stats"
)

// View is what a sequence of requests looks like.
type View struct {
	Requests      int            `json:"requests"`
	In            Lengths        `json:"input_tokens"`
	Out           Lengths        `json:"output_tokens"`
	InEstimated   bool           `json:"input_tokens_estimated"` // at 4 bytes a token, where the data set does not say
	Shared        float64        `json:"shared_prefix_share"`    // of the prompts' tokens that an unlimited prefix cache would have had already
	Classes       map[string]int `json:"classes,omitempty"`
	Conversations int            `json:"conversations,omitempty"`
	Turns         int            `json:"most_turns,omitempty"`
	Arrivals      *Arrivals      `json:"arrivals,omitempty"`

	seen          map[uint64]struct{}
	blocks, again int
	conversations map[int]struct{}
	due           []time.Duration
}

// Lengths is a distribution of lengths in tokens.
type Lengths struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`

	Values []float64 `json:"-"` // sorted, once the view is closed
}

// Arrivals is how the requests come.
type Arrivals struct {
	Span       float64   `json:"span_s"`
	Rate       float64   `json:"rate"`       // requests/s
	GapCV      float64   `json:"gap_cv"`     // coefficient of variation of the gaps: 1 is Poisson
	Dispersion float64   `json:"dispersion"` // variance/mean of the number in a second: 1 is Poisson
	Distinct   int       `json:"distinct_times"`
	Peak       int       `json:"most_in_a_second"`
	Counts     []float64 `json:"-"` // of equal stretches of the span
}

const (
	viewBlock = 16      // tokens of a block of the prefix cache
	mostSeen  = 8 << 20 // different blocks that are remembered
	viewBins  = 60
)

// Add looks at a request, which is due at a time or has none (has is false).
func (v *View) Add(q *bench.Request, due time.Duration, has bool) {
	if v.seen == nil {
		v.seen, v.conversations, v.Classes = map[uint64]struct{}{}, map[int]struct{}{}, map[string]int{}
	}
	v.Requests++
	text := promptText(q)
	in := q.ISL
	if in == 0 {
		v.InEstimated = true
		in = (len(text) + bytesPerToken - 1) / bytesPerToken
	}
	v.In.Values = append(v.In.Values, float64(in))
	v.Out.Values = append(v.Out.Values, float64(q.OSL))
	if q.Class != "" {
		v.Classes[q.Class]++
	}
	if q.Conversation > 0 {
		v.conversations[q.Conversation] = struct{}{}
	}
	v.Turns = max(v.Turns, q.Turn+1)
	if has {
		v.due = append(v.due, due)
	}
	v.share(q.Tokens, text)
}

// promptText is what is sent as text.
func promptText(q *bench.Request) string {
	if q.Prompt != "" {
		return q.Prompt
	}
	text := q.Query
	for _, m := range q.Messages {
		text += m.Role + string(m.Content)
	}
	for _, in := range q.Inputs {
		text += in
	}
	return text
}

// share counts the blocks of a prompt, and those that an earlier prompt began with, too.
func (v *View) share(tokens []int, text string) {
	h := fnv.New64a()
	known := true
	block := func(add func()) {
		add()
		v.blocks++
		sum := h.Sum64()
		if _, known2 := v.seen[sum]; known && known2 {
			v.again++
			return
		}
		known = false
		if len(v.seen) < mostSeen {
			v.seen[sum] = struct{}{}
		}
	}
	var b [8]byte
	for part := range slices.Chunk(tokens, viewBlock) {
		block(func() {
			for _, id := range part {
				binary.LittleEndian.PutUint64(b[:], uint64(id))
				h.Write(b[:])
			}
		})
	}
	if len(tokens) > 0 {
		return
	}
	for part := range slices.Chunk([]byte(text), viewBlock*bytesPerToken) {
		block(func() { h.Write(part) })
	}
}

// Close computes the distributions.
func (v *View) Close() {
	v.In.close()
	v.Out.close()
	if v.blocks > 0 {
		v.Shared = float64(v.again) / float64(v.blocks)
	}
	v.Conversations = len(v.conversations)
	if v.Turns < 2 {
		v.Turns = 0
	}
	if len(v.due) > 1 {
		v.Arrivals = arrivalsOf(v.due)
	}
}

func (l *Lengths) close() {
	if len(l.Values) == 0 {
		return
	}
	slices.Sort(l.Values)
	sum := 0.0
	for _, x := range l.Values {
		sum += x
	}
	l.Mean = sum / float64(len(l.Values))
	l.Min, l.Max = l.Values[0], l.Values[len(l.Values)-1]
	l.P50, _ = stats.Quantile(l.Values, 50)
	l.P90, _ = stats.Quantile(l.Values, 90)
	l.P99, _ = stats.Quantile(l.Values, 99)
}

// arrivalsOf describes ascending times.
func arrivalsOf(due []time.Duration) *Arrivals {
	n := len(due)
	span := (due[n-1] - due[0]).Seconds()
	a := &Arrivals{Span: span, Distinct: 1, Counts: make([]float64, viewBins)}
	var sum, squares float64
	for i := 1; i < n; i++ {
		g := (due[i] - due[i-1]).Seconds()
		sum += g
		squares += g * g
		if g > 0 {
			a.Distinct++
		}
	}
	if span == 0 {
		return a
	}
	mean := sum / float64(n-1)
	a.Rate = 1 / mean
	a.GapCV = math.Sqrt(max(0, squares/float64(n-1)-mean*mean)) / mean
	seconds := make([]float64, int(math.Ceil(span+1e-9)))
	for _, d := range due {
		t := (d - due[0]).Seconds()
		seconds[min(len(seconds)-1, int(t))]++
		a.Counts[min(viewBins-1, int(t/span*viewBins))]++
	}
	m := float64(n) / float64(len(seconds))
	for _, k := range seconds {
		a.Peak = max(a.Peak, int(k))
		a.Dispersion += (k - m) * (k - m) / m / float64(len(seconds))
	}
	return a
}

// Row is a request as a line of the data set jsonl, which reads it back as the same request. Due is in the schedule's time; without one
// has is false.
func Row(q *bench.Request, due time.Duration, has bool) ([]byte, error) {
	type line struct {
		At       *float64        `json:"timestamp,omitempty"`
		Prompt   string          `json:"prompt,omitempty"`
		Messages []bench.Message `json:"messages,omitempty"`
		IDs      []int           `json:"input_ids,omitempty"`
		Input    []string        `json:"input,omitempty"`
		Query    string          `json:"query,omitempty"`
		Docs     []string        `json:"documents,omitempty"`
		Tokens   int             `json:"input_tokens,omitempty"`
		Output   int             `json:"output_tokens,omitempty"`
		Class    string          `json:"class,omitempty"`
		Session  string          `json:"session_id,omitempty"`
		Turn     int             `json:"turn,omitempty"`
		Extra    json.RawMessage `json:"extra_body,omitempty"`
	}
	x := line{Prompt: q.Prompt, Messages: q.Messages, IDs: q.Tokens, Tokens: q.ISL, Output: q.OSL, Class: q.Class, Turn: q.Turn, Extra: q.Extra}
	if has {
		ms := float64(due) / 1e6
		x.At = &ms
	}
	if q.Query != "" {
		x.Query, x.Docs = q.Query, q.Inputs
	} else {
		x.Input = q.Inputs
	}
	if q.Conversation > 0 {
		x.Session = "s" + strconv.Itoa(q.Conversation)
	}
	b, err := json.Marshal(&x)
	return append(b, '\n'), err
}
