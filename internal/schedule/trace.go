package schedule

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/rng"
)

// Bounds of how much faster a trace runs.
const (
	MinSpeedup = 1e-3
	MaxSpeedup = 1e6
)

// Replay sends at given timestamps: those of a trace. What comes before its predecessor is sent with it.
type Replay struct {
	Times    iter.Seq[time.Duration] // in the trace's own time
	Speedup  float64                 // its time runs so much faster; 0 = as it was
	From, To time.Duration           // what is sent of it; To 0 = all
	Offset   time.Duration           // from the begin of the phase to From
}

// Timestamps returns the shape that sends at the given times.
func Timestamps(times iter.Seq[time.Duration]) Shape { return Replay{Times: times} }

// ReplayOf returns the shape of a load that sends at the timestamps of a trace.
func ReplayOf(l bench.Load, times iter.Seq[time.Duration]) Replay {
	return Replay{times, l.Speedup, l.From, l.To, l.Offset}
}

// Name implements Shape.
func (Replay) Name() bench.Shape { return bench.Trace }

// Arrivals implements Shape. Nothing is drawn.
func (p Replay) Arrivals(*rng.Stream) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		var last time.Duration
		for t := range p.Times {
			at, inside := p.At(t)
			if !inside {
				continue
			}
			if last = max(last, at); !yield(last) {
				return
			}
		}
	}
}

// At returns when a moment of the trace is, counted from the begin of the phase, and whether it lies in the window.
func (p Replay) At(t time.Duration) (at time.Duration, inside bool) {
	if t < p.From || p.To > 0 && t >= p.To {
		return 0, false
	}
	t -= p.From
	if p.Speedup > 0 && p.Speedup != 1 {
		t = time.Duration(math.Round(float64(t) / p.Speedup))
	}
	return t + p.Offset, true
}

// ReadTimes reads a file of timestamps, one a line, in seconds or with a unit; # begins a remark. They count from the first. An error
// names its line.
func ReadTimes(r io.Reader) iter.Seq2[time.Duration, error] {
	return func(yield func(time.Duration, error) bool) {
		sc := bufio.NewScanner(r)
		first, any := time.Duration(0), false
		n := 0
		for sc.Scan() {
			n++
			word := field(sc.Text())
			if word == "" {
				continue
			}
			t, err := profile.ParseTime(word)
			if err != nil {
				yield(0, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !any {
				first, any = t, true
			}
			if !yield(max(0, t-first), nil) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			yield(0, fmt.Errorf("line %d: %w", n+1, err))
		} else if !any {
			yield(0, fmt.Errorf("it has no timestamp"))
		}
	}
}

// field is the first word of a line, before a remark.
func field(line string) string {
	begin := 0
	for begin < len(line) && (line[begin] == ' ' || line[begin] == '\t') {
		begin++
	}
	end := begin
	for end < len(line) && line[end] != ' ' && line[end] != '\t' && line[end] != ',' && line[end] != '#' && line[end] != '\r' {
		end++
	}
	return line[begin:end]
}
