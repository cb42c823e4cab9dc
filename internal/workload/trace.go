package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Trace is a data set of requests that were once received: when, how long, and which blocks of their prompts they shared. It is read row
// by row: only the times and places of the rows are held.
type Trace struct{ form traceForm }

// traceForm is how a kind of trace is written.
type traceForm struct {
	name  string
	unit  time.Duration // of its timestamps; 0 = they are dates
	block int           // tokens of a block; 0 = the trace knows no blocks
	hint  string
	// header returns the reader of a row, and whether the first line is a heading and no row.
	header func(first []byte) (read func(line []byte, x *traceRow) error, heading bool, err error)
}

// traceRow is one request of a trace.
type traceRow struct {
	stamp   float64 // in the form's unit
	at      time.Duration
	in, out int
	blocks  []int64
	class   string
}

// Name implements Dataset.
func (t Trace) Name() string { return t.form.name }

// Invents implements Inventor.
func (Trace) Invents() {}

// traceIndex is where the rows of a trace are, in the order of their times.
type traceIndex struct {
	rows   bench.Rows
	places []place
	most   int64 // the largest number of a block
	read   func(line []byte, x *traceRow) error
}

type place struct {
	at     time.Duration // since the first row
	offset int64
	row    int // number in the file
}

// index reads the file once. A trace of a million rows takes some 24 MB.
func (t Trace) index(c Config) (*traceIndex, error) {
	w := c.Spec
	switch {
	case w.Prompt != "":
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "leave it out: a trace says how long its prompts are")
	case w.ISL != "" || w.OSL != "" || w.Mix != "" || w.Lengths != "":
		return nil, fault.New(fault.Usage, "the lengths of a trace are those of its rows", "leave --isl, --osl, --mix and --lengths out")
	case w.Batch > 0 || c.inputs():
		return nil, fault.New(fault.Usage, "a trace is of requests that generate", "use --endpoint chat or --endpoint completions")
	}
	unit, said := t.form.unit, "the format's own"
	if w.TimeUnit != "" {
		if unit == 0 {
			return nil, fault.New(fault.Usage, "the timestamps of "+t.form.name+" are dates", "leave --time-unit out")
		}
		unit, said = map[string]time.Duration{"s": time.Second, "ms": time.Millisecond, "us": time.Microsecond}[w.TimeUnit], "as given"
		if unit == 0 {
			return nil, fault.Usagef("such as --time-unit ms", "--time-unit is s, ms or us, not %q", w.TimeUnit)
		}
	}
	return cached(c, fmt.Sprint(t.form.name, "\x00", w.Path, unit, w.Strict), func() (*traceIndex, error) {
		x, err := t.readIndex(w, unit)
		if err == nil && unit > 0 {
			x.rows.Unit = unitName(unit) + " (" + said + ")"
			if w.TimeUnit == "" {
				err = x.plausible(w.Path, unit)
			}
		}
		return x, err
	})
}

func (t Trace) readIndex(w bench.Workload, unit time.Duration) (*traceIndex, error) {
	x := &traceIndex{}
	count := &tally{path: w.Path, strict: w.Strict, hint: t.form.hint}
	var row traceRow
	last := math.Inf(-1)
	unsorted := 0
	err := eachLine(w.Path, func(at piece, line []byte) (err error) {
		if x.read == nil {
			var heading bool
			if x.read, heading, err = t.form.header(line); err != nil {
				return fault.Wrap(fault.Usage, err, fmt.Sprintf("%s:%d", w.Path, at.line), t.form.hint)
			}
			if heading {
				return nil
			}
		}
		err = t.parse(x.read, line, unit, &row)
		if err == nil {
			for _, b := range row.blocks {
				x.most = max(x.most, b)
			}
			if row.stamp < last {
				unsorted++
			}
			last = row.stamp
			x.places = append(x.places, place{row.at, at.offset, count.rows.Read})
		}
		return count.row(at.line, err)
	})
	if err != nil {
		return nil, err
	}
	found, err := count.done()
	if err != nil {
		return nil, err
	}
	x.rows, x.rows.Unsorted = *found, unsorted
	if unsorted > 0 {
		slices.SortStableFunc(x.places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	}
	first := x.places[0].at
	for i := range x.places {
		x.places[i].at -= first
	}
	x.rows.Span = x.places[len(x.places)-1].at
	return x, nil
}

// parse reads a row and checks what every trace must keep.
func (t Trace) parse(read func([]byte, *traceRow) error, line []byte, unit time.Duration, x *traceRow) error {
	*x = traceRow{stamp: math.NaN(), in: -1, out: -1, blocks: x.blocks[:0]}
	if err := read(line, x); err != nil {
		return err
	}
	switch {
	case math.IsNaN(x.stamp):
		return errors.New("there is no timestamp")
	case x.in < 0:
		return errors.New("there is no input length")
	case x.out < 0:
		return errors.New("there is no output length")
	case x.in == 0:
		return errors.New("the input length is 0")
	case x.out == 0:
		return errors.New("the output length is 0")
	case unit > 0 && math.Abs(x.stamp)*unit.Seconds() > mostSeconds:
		return errors.New("the timestamp is too large")
	case t.form.block > 0 && len(x.blocks) > (x.in+t.form.block-1)/t.form.block:
		return fmt.Errorf("hash_ids names more blocks of %d tokens than the input length has", t.form.block)
	}
	if unit > 0 {
		x.at = time.Duration(math.Round(x.stamp * float64(unit)))
	}
	return nil
}

// mostSeconds bounds timestamps: 100 years.
const mostSeconds = 100 * 365 * 86400

// Bounds of what a trace's rate can be: outside of them, and inside of them with another unit, the unit is asked for.
const (
	doubtRows  = 100
	mostRate   = 1000 // requests/s
	leastRate  = 0.01
	unitFactor = 1000
)

// plausible refuses a trace whose rate tells that its timestamps are in another unit than its format has.
func (x *traceIndex) plausible(path string, unit time.Duration) error {
	n, s := float64(len(x.places)), x.rows.Span.Seconds()
	if n < doubtRows || s == 0 {
		return nil
	}
	other := ""
	switch rate := n / s; {
	case unit == time.Millisecond && rate > mostRate && rate/unitFactor <= mostRate:
		other = "s"
	case unit == time.Second && rate < leastRate && rate*unitFactor <= mostRate:
		other = "ms"
	}
	if other == "" {
		return nil
	}
	return fault.Usagef(fmt.Sprintf("say which with --time-unit %s or --time-unit %s", other, unitName(unit)),
		"%s: %.0f requests in %.4g s, if the timestamps are in %s as the format has them: are they in %s?", path, n, s, unitName(unit), other)
}

func unitName(d time.Duration) string {
	switch d {
	case time.Second:
		return "s"
	case time.Millisecond:
		return "ms"
	}
	return "us"
}

// Times implements Timed. Requests of one timestamp keep their order; with a tick they are spread over it, in random places.
func (t Trace) Times(c Config) (iter.Seq[time.Duration], error) {
	x, err := t.index(c)
	if err != nil {
		return nil, err
	}
	tick := c.Spec.TickSpread
	return func(yield func(time.Duration) bool) {
		if tick <= 0 {
			for _, p := range x.places {
				if !yield(p.at) {
					return
				}
			}
			return
		}
		r := rng.New(c.Seed, "schedule/spread")
		var own []time.Duration
		for i := 0; i < len(x.places); {
			at, n := x.places[i].at, i
			for n < len(x.places) && x.places[n].at == at {
				n++
			}
			room := tick
			if n < len(x.places) {
				room = min(room, x.places[n].at-at)
			}
			own = own[:0]
			for ; i < n; i++ {
				own = append(own, time.Duration(float64(room)*r.Float64()))
			}
			slices.Sort(own)
			for _, d := range own {
				if !yield(at + d) {
					return
				}
			}
		}
	}, nil
}

// Open implements Dataset.
func (t Trace) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	x, err := t.index(c)
	if err != nil {
		return nil, err
	}
	c.tell(&x.rows)
	return func(yield func(bench.Request, error) bool) {
		f, err := open(c.Spec.Path)
		if err != nil {
			yield(bench.Request{}, err)
			return
		}
		defer f.Close()
		in := &lines{f: f}
		r := c.stream()
		offset := c.offset()
		var row traceRow
		for lap, k := 0, min(c.Skip, len(x.places)); ; k++ {
			if k == len(x.places) {
				lap, k = lap+1, 0
			}
			p := x.places[k]
			if c.Phase == bench.Warmup {
				p = x.places[len(x.places)-1-k]
			}
			line, err := in.at(p.offset)
			if err == nil {
				err = t.parse(x.read, line, time.Nanosecond, &row)
			}
			if err != nil {
				yield(bench.Request{}, fault.Wrap(fault.Usage, err, c.Spec.Path, "was the file changed?"))
				return
			}
			if !yield(t.request(c, x, &row, p, lap, offset, r), nil) {
				return
			}
		}
	}, nil
}

// request makes the request of a row. What the row shares with others is made from the number of its blocks alone; a second round of the
// file, and the warm-up, have blocks of their own.
func (t Trace) request(c Config, x *traceIndex, row *traceRow, p place, lap, offset int, r *rng.Stream) bench.Request {
	q := bench.Request{ISL: row.in, OSL: row.out, Class: row.class}
	blocks := int(x.most) + 1
	name, number := c.stretch("workload/block")+"/", offset+lap*(blocks+len(x.places))
	if c.Phase == bench.Warmup {
		name, number = "workload/warmup/block/", offset-(lap+1)*(blocks+len(x.places))
	}
	name += strconv.Itoa(lap) + "/"
	left := row.in
	parts := make([]Part, 0, len(row.blocks)+1)
	for _, b := range row.blocks {
		n := min(left, t.form.block)
		left -= n
		parts = append(parts, Part{Number: number + int(b), N: n, Stream: rng.New(c.Seed, name+strconv.FormatInt(b, 10))})
	}
	if left > 0 {
		parts = append(parts, Part{Number: number + blocks + p.row, N: left, Stream: r})
	}
	c.Maker.Join(&q, parts)
	return q
}

// lines reads lines of a file at given places, fast where they follow each other.
type lines struct {
	f    *os.File
	in   *bufio.Reader
	next int64
}

func (l *lines) at(offset int64) ([]byte, error) {
	if l.in == nil || l.next != offset {
		if gap := offset - l.next; l.in != nil && gap > 0 && gap < 1<<16 {
			l.in.Discard(int(gap))
		} else {
			if _, err := l.f.Seek(offset, io.SeekStart); err != nil {
				return nil, err
			}
			if l.in == nil {
				l.in = bufio.NewReaderSize(l.f, 1<<16)
			} else {
				l.in.Reset(l.f)
			}
		}
		l.next = offset
	}
	line, err := nextLine(l.in)
	if err != nil && err != io.EOF {
		return nil, err
	}
	l.next += int64(len(line))
	return bytes.TrimSpace(line), nil
}
