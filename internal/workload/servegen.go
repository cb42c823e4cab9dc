package workload

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// ServeGen is the data set `servegen`: clients, each with a rate and a law of its gaps in windows of time (chunk-N-trace.csv) and with
// distributions of its lengths (chunk-N-dataset.json). The path is one of the trace files, or a directory of them. Times and lengths are
// drawn from what the files say; input and output lengths independently.
type ServeGen struct{}

// Name implements Dataset.
func (ServeGen) Name() string { return "servegen" }

// Invents implements Inventor.
func (ServeGen) Invents() {}

// sgClient is one client of the data.
type sgClient struct {
	name    string
	windows []sgWindow
	lengths []sgLengths // by the begin of their window
}

type sgWindow struct {
	begin, end float64 // s
	rate       float64 // requests/s
	law        string  // Gamma, Weibull, or exponential
	shape      float64
}

type sgLengths struct {
	begin   float64
	in, out sgBins
}

// sgBins are lengths with the sums of their shares.
type sgBins struct {
	values []int
	sums   []float64
}

const (
	sgSuffix   = "-trace.csv"
	sgLast     = 600.0 // s of the last window, where nothing follows it
	sgHint     = "chunk-N-trace.csv has lines of window start (s), rate, cv, law, shape, scale; chunk-N-dataset.json beside it the lengths"
	mostClient = 1000
)

type sgData struct {
	clients []*sgClient
	rows    bench.Rows
}

func (ServeGen) read(c Config) (*sgData, error) {
	w := c.Spec
	switch {
	case w.Prompt != "":
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "leave it out")
	case w.ISL != "" || w.OSL != "" || w.Mix != "" || w.Lengths != "":
		return nil, fault.New(fault.Usage, "the lengths of servegen are those of its files", "leave --isl, --osl, --mix and --lengths out")
	case w.Batch > 0 || c.inputs():
		return nil, fault.New(fault.Usage, "servegen is of requests that generate", "use --endpoint chat or --endpoint completions")
	case w.TimeUnit != "" || w.TickSpread > 0:
		return nil, fault.New(fault.Usage, "the times of servegen are drawn, in s", "leave --time-unit and --tick-spread out")
	}
	return cached(c, fmt.Sprint("servegen\x00", w.Path, w.Strict), func() (*sgData, error) {
		paths := []string{w.Path}
		if st, err := os.Stat(w.Path); err == nil && st.IsDir() {
			paths, err = filepath.Glob(filepath.Join(w.Path, "*"+sgSuffix))
			if err != nil || len(paths) == 0 || len(paths) > mostClient {
				return nil, fault.Usagef(sgHint, "%s has %d files of that kind, where 1 to %d can be", w.Path, len(paths), mostClient)
			}
			slices.SortFunc(paths, func(a, b string) int { // chunk-2 before chunk-10
				return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
			})
		}
		d := &sgData{}
		count := &tally{path: w.Path, strict: w.Strict, hint: sgHint}
		for _, path := range paths {
			count.path = path
			client, err := readClient(path, count)
			if err != nil {
				return nil, err
			}
			d.clients = append(d.clients, client)
		}
		rows, err := count.done()
		if err != nil {
			return nil, err
		}
		d.rows = *rows
		d.rows.Unit = "s (the format's own)"
		d.rows.Notes = []string{fmt.Sprintf("rows are windows of %d clients; arrivals and lengths are drawn, input and output lengths independently", len(d.clients))}
		end := 0.0
		for _, k := range d.clients {
			end = max(end, k.windows[len(k.windows)-1].end)
		}
		d.rows.Span = time.Duration(end * 1e9)
		return d, nil
	})
}

func readClient(path string, count *tally) (*sgClient, error) {
	base, ok := strings.CutSuffix(path, sgSuffix)
	if !ok {
		return nil, fault.Usagef(sgHint, "%s is no chunk-N-trace.csv", path)
	}
	k := &sgClient{name: filepath.Base(base)}
	var fields [][]byte
	err := eachLine(path, func(at piece, line []byte) (err error) {
		if fields, err = fieldsOf(line, fields[:0]); err != nil {
			return count.row(at.line, err)
		}
		w, err := readWindow(fields)
		if n := len(k.windows); err == nil && n > 0 && w.begin <= k.windows[n-1].begin {
			err = errors.New("the window does not begin after the one before")
		}
		if err == nil {
			k.windows = append(k.windows, w)
		}
		return count.row(at.line, err)
	})
	if err != nil {
		return nil, err
	}
	if len(k.windows) == 0 {
		return nil, fault.New(fault.Usage, path+" has no window", sgHint)
	}
	for i := range k.windows {
		if k.windows[i].end = k.windows[i].begin + sgLast; i+1 < len(k.windows) {
			k.windows[i].end = k.windows[i+1].begin
		}
	}
	k.lengths, err = readBins(base + "-dataset.json")
	return k, err
}

func readWindow(f [][]byte) (w sgWindow, err error) {
	if len(f) != 6 {
		return w, fmt.Errorf("there are %d columns, not 6", len(f))
	}
	number := func(name string, b []byte) float64 {
		v, perr := strconv.ParseFloat(string(b), 64)
		if (perr != nil || math.IsInf(v, 0) || math.IsNaN(v) || v < 0) && err == nil {
			err = fmt.Errorf("%s is %s, not a number of at least 0", name, excerpt(b))
		}
		return v
	}
	w.begin, w.rate, w.law = number("the window's start", f[0]), number("the rate", f[1]), strings.ToLower(string(f[3]))
	switch w.law {
	case "gamma", "weibull":
		if w.shape = number("the shape", f[4]); err == nil && w.rate > 0 && (w.shape < 0.01 || w.shape > 1e6) {
			err = fmt.Errorf("the shape is %s, must be between 0.01 and 1000000", f[4])
		}
	case "":
	default:
		err = fmt.Errorf("the law %s is not known: Gamma, Weibull, or none", excerpt(f[3]))
	}
	if err == nil && (w.rate > 1e6 || w.begin > mostSeconds) {
		err = errors.New("the window's start or rate is too large")
	}
	return w, err
}

// readBins reads the distributions of lengths: by window, lists of "{length: share, ...}".
func readBins(path string) ([]sgLengths, error) {
	in, err := open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, maxLine))
	var windows map[string]map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(b, &windows)
	}
	if err != nil {
		return nil, fault.New(fault.Usage, path+": no JSON object of windows", sgHint)
	}
	var out []sgLengths
	for name, fields := range windows {
		bad := func(what string, err error) ([]sgLengths, error) {
			return nil, fault.Wrap(fault.Usage, err, fmt.Sprintf("%s: window %s: %s", path, excerpt([]byte(name)), what), sgHint)
		}
		digits := name[:len(name)-len(strings.TrimLeft(name, "0123456789"))]
		begin, err := strconv.ParseFloat(digits, 64)
		if err != nil {
			return bad("its name", errors.New("does not begin with seconds"))
		}
		x := sgLengths{begin: begin}
		if x.in, err = parseBins(fields["input_tokens"]); err != nil {
			return bad("input_tokens", err)
		}
		if x.out, err = parseBins(fields["output_tokens"]); err != nil {
			return bad("output_tokens", err)
		}
		if len(x.in.values) > 0 && len(x.out.values) > 0 {
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return nil, fault.New(fault.Usage, path+" has no window with input_tokens and output_tokens", sgHint)
	}
	slices.SortFunc(out, func(a, b sgLengths) int { return cmp.Compare(a.begin, b.begin) })
	return out, nil
}

// parseBins reads "{512: 0.25, 1024: 0.75}", written as a text or as an object. Lengths below 1 count as 1.
func parseBins(v json.RawMessage) (b sgBins, err error) {
	s := string(v)
	if len(v) > 0 && v[0] == '"' {
		if err := json.Unmarshal(v, &s); err != nil {
			return b, errors.New("is no text")
		}
	}
	s = strings.Trim(strings.TrimSpace(s), "{}")
	sum := 0.0
	for part := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		key, share, ok := strings.Cut(part, ":")
		n, nerr := strconv.ParseFloat(strings.Trim(strings.TrimSpace(key), `"'`), 64)
		p, perr := strconv.ParseFloat(strings.TrimSpace(share), 64)
		if !ok || nerr != nil || perr != nil || !(p >= 0 && p <= 1e9) || !(n >= 0 && n <= maxLength) {
			return b, fmt.Errorf("%s is no length with its share", excerpt([]byte(strings.TrimSpace(part))))
		}
		if p > 0 {
			sum += p
			b.values, b.sums = append(b.values, max(1, int(math.Round(n)))), append(b.sums, sum)
		}
	}
	return b, nil
}

func (b sgBins) draw(r *rng.Stream) int {
	x := float64(r.Float64() * b.sums[len(b.sums)-1])
	i, _ := slices.BinarySearchFunc(b.sums, x, func(s, x float64) int {
		if s <= x {
			return -1
		}
		return 1
	})
	return b.values[min(i, len(b.values)-1)]
}

// arrivals are the times of one client, in s. A gap that passes the end of its window goes on in the next with that one's rate.
func (k *sgClient) arrivals(r *rng.Stream) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		left := -1.0 // of the gap on the way, in gaps of mean 1
		for _, w := range k.windows {
			if w.rate <= 0 {
				continue
			}
			for t := w.begin; ; {
				if left < 0 {
					left = w.gap(r)
				}
				if room := float64((w.end - t) * w.rate); left > room {
					left -= room
					break
				}
				t += left / w.rate
				left = -1
				if !yield(t) {
					return
				}
			}
		}
	}
}

// gap draws a gap of mean 1.
func (w sgWindow) gap(r *rng.Stream) float64 {
	switch w.law {
	case "gamma":
		return r.Gamma(w.shape) / w.shape
	case "weibull":
		return rng.Exp(rng.Log(r.Exp())/w.shape) / math.Gamma(1+1/w.shape)
	}
	return r.Exp()
}

// sgMoment is the next request of a client.
type sgMoment struct {
	at     float64
	client int
	next   func() (float64, bool)
}

type sgQueue []sgMoment

func (q sgQueue) Len() int { return len(q) }
func (q sgQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].client < q[j].client
}
func (q sgQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *sgQueue) Push(x any)   { *q = append(*q, x.(sgMoment)) }
func (q *sgQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// moments are the requests of all clients in the order of their times: when, in s, and whose.
func (d *sgData) moments(c Config) iter.Seq2[float64, int] {
	return func(yield func(float64, int) bool) {
		var q sgQueue
		for i, k := range d.clients {
			next, stop := iter.Pull(k.arrivals(rng.New(c.Seed, c.stretch("schedule/servegen")+"/"+k.name)))
			defer stop()
			if at, ok := next(); ok {
				q = append(q, sgMoment{at, i, next})
			}
		}
		heap.Init(&q)
		for len(q) > 0 {
			m := &q[0]
			if !yield(m.at, m.client) {
				return
			}
			var ok bool
			if m.at, ok = m.next(); ok {
				heap.Fix(&q, 0)
			} else {
				heap.Pop(&q)
			}
		}
	}
}

// Times implements Timed.
func (g ServeGen) Times(c Config) (iter.Seq[time.Duration], error) {
	d, err := g.read(c)
	if err != nil {
		return nil, err
	}
	return func(yield func(time.Duration) bool) {
		first, any := 0.0, false
		for at := range d.moments(c) {
			if !any {
				first, any = at, true
			}
			if !yield(time.Duration(math.Round(float64(at-first) * 1e9))) {
				return
			}
		}
	}, nil
}

// Open implements Dataset.
func (g ServeGen) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	d, err := g.read(c)
	if err != nil {
		return nil, err
	}
	c.tell(&d.rows)
	return func(yield func(bench.Request, error) bool) {
		r := c.stream()
		offset := c.offset()
		for i := 0; ; {
			begun := i
			for at, k := range d.moments(c) {
				client := d.clients[k]
				l := client.lengths[0]
				for _, x := range client.lengths {
					if x.begin <= at {
						l = x
					}
				}
				n := l.in.draw(r)
				q := bench.Request{ISL: n, OSL: l.out.draw(r), Class: client.name}
				c.Maker.Make(&q, n, c.number(offset, i), r)
				i++
				if !yield(q, nil) {
					return
				}
			}
			if i == begun {
				yield(bench.Request{}, fault.Usagef("every rate may be 0", "%s has no request", c.Spec.Path))
				return
			}
		}
	}, nil
}
