package telemetry

import (
	"math"
	"os"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/process"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
)

// StartToll begins to count what this process takes of the machine. The returned function tells what it has been since.
func StartToll() func() bench.Toll {
	user, system := cpuTimes()
	gc := gcState()
	all, stolen, told := machineTimes()
	return func() bench.Toll {
		var t bench.Toll
		u, s := cpuTimes()
		t.User, t.System = u-user, s-system
		t.PeakMemory = peakMemory()
		t.GCs, t.GCPauses, t.LongestGC = gcState().since(gc)
		if a, st, ok := machineTimes(); ok && told && a > all {
			t.Steal = opt.Some((st - stolen) / (a - all))
		}
		return t
	}
}

// cpuTimes returns what this process has used of the processors.
func cpuTimes() (user, system time.Duration) {
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return 0, 0
	}
	t, err := p.Times()
	if err != nil {
		return 0, 0
	}
	return seconds(t.User), seconds(t.System)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// machineTimes returns the time of all processors, and how much of it was stolen.
func machineTimes() (all, stolen float64, ok bool) {
	ts, err := cpu.Times(false)
	if err != nil || len(ts) == 0 {
		return 0, 0, false
	}
	t := ts[0]
	return t.User + t.System + t.Idle + t.Nice + t.Iowait + t.Irq + t.Softirq + t.Steal, t.Steal, true
}

// gc is what the garbage collector has done: its cycles, and the histogram of its pauses.
type gc struct {
	cycles  uint64
	counts  []uint64
	buckets []float64
}

func gcState() gc {
	sample := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	h := sample[1].Value.Float64Histogram()
	return gc{sample[0].Value.Uint64(), slices.Clone(h.Counts), slices.Clone(h.Buckets)}
}

// since returns the cycles since an earlier reading, the sum of their pauses and the longest, each by the upper bound of its bucket.
func (g gc) since(before gc) (cycles int, sum, longest time.Duration) {
	for i, c := range g.counts {
		if c -= before.counts[i]; c == 0 {
			continue
		}
		bound := g.buckets[i+1]
		if math.IsInf(bound, 0) {
			bound = g.buckets[i]
		}
		longest = seconds(bound)
		sum += time.Duration(c) * longest
	}
	return int(g.cycles - before.cycles), sum, longest
}
