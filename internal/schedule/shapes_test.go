package schedule

import (
	"fmt"
	"hash/fnv"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/rng"
	"github.com/prony-bench/prony/internal/stats"
)

func of(t testing.TB, l bench.Load) Shape {
	t.Helper()
	s, err := Of(l)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hash(at []time.Duration) uint64 {
	h := fnv.New64a()
	for _, d := range at {
		h.Write([]byte(d.String()))
	}
	return h.Sum64()
}

// varied are loads whose rate changes.
var varied = []string{"linear:1,50,100s", "linear:0,50,100s", "exp:1,100,60s", "steps:5,10,0,40/20s", "bursts:100,2s,0,5s", "bursts:50,10s,5,10s", "sine:20,20,60s",
	"pieces:0=5,10s=20,30s=0,40s=50"}

// The arrivals of a seed never change.
func TestGoldenShapes(t *testing.T) {
	var got []string
	for _, l := range []bench.Load{{Shape: bench.Weibull, Rate: 20, Burstiness: 0.5}, {Shape: bench.Weibull, Rate: 20, Burstiness: 3}} {
		got = append(got, fmt.Sprintf("weibull(%g) %#x", l.Burstiness, hash(draw(of(t, l), 7, 10_000))))
	}
	for _, p := range varied {
		for _, law := range []bench.Shape{bench.Constant, bench.Poisson, bench.Gamma, bench.Weibull} {
			s := of(t, bench.Load{Shape: law, Profile: p, Burstiness: 0.5})
			got = append(got, fmt.Sprintf("%s %s %#x", law, p, hash(draw(s, 7, 3000))))
		}
	}
	for _, p := range []string{"2s", "exp:2s", "uniform:1s,3s", "normal:2s,1s", "lognormal:2s,1s"} {
		law, err := ParsePause(p)
		if err != nil {
			t.Fatal(err)
		}
		r := rng.New(7, "think/0")
		var at []time.Duration
		for range 1000 {
			at = append(at, law.Draw(r))
		}
		got = append(got, fmt.Sprintf("pause %s %#x", p, hash(at)))
	}
	want := strings.Split(strings.TrimSpace(goldenShapes), "\n")
	if !slices.Equal(got, want) {
		t.Errorf("the arrivals are\n%s", strings.Join(got, "\n"))
	}
}

// gapsOf are the gaps of a sequence, in units of its mean rate.
func gapsOf(at []float64, rate float64) []float64 {
	var out []float64
	for i := 1; i < len(at); i++ {
		out = append(out, (at[i]-at[i-1])*rate)
	}
	return out
}

// check tests a sequence that has a mean gap of 1: mean, coefficient of variation, lag-1 correlation, index of dispersion and, of Poisson, the law.
func check(t *testing.T, name string, at []float64, cv, cvTolerance float64, poisson bool) {
	t.Helper()
	gaps := gapsOf(at, 1)
	n := float64(len(gaps))
	m, sq := 0.0, 0.0
	for _, g := range gaps {
		m += g / n
		sq += g * g / n
	}
	if math.Abs(m-1) > 5*cv/math.Sqrt(n)+1e-9 {
		t.Errorf("%s: mean gap %v", name, m)
	}
	if got := math.Sqrt(sq-m*m) / m; math.Abs(got-cv) > cvTolerance {
		t.Errorf("%s: coefficient of variation %v, want %v", name, got, cv)
	}
	if r, ok := stats.Lag1(gaps); cv > 0 && (!ok || math.Abs(r) > 5/math.Sqrt(n)) {
		t.Errorf("%s: lag-1 correlation %v", name, r)
	}
	// the counts of wide bins of a renewal process have a variance of cv² times their mean
	if d, ok := stats.DispersionIndex(at, len(at)/200); cv > 0 && (!ok || math.Abs(d.Index/(cv*cv)-1) > 0.3) {
		t.Errorf("%s: index of dispersion %v, want about %v", name, d.Index, cv*cv)
	}
	if _, p, ok := stats.KolmogorovSmirnov(gaps, stats.ExponentialCDF(1)); poisson && (!ok || p < 0.001) {
		t.Errorf("%s: p = %v", name, p)
	}
}

func weibullCV(k float64) float64 {
	g1, g2 := math.Gamma(1+1/k), math.Gamma(1+2/k)
	return math.Sqrt(g2/(g1*g1) - 1)
}

func TestWeibullLaw(t *testing.T) {
	for _, k := range []float64{0.7, 1, 3} {
		var at []float64
		for _, d := range draw(NewWeibull(50, k), 3, 100_001) {
			at = append(at, d.Seconds()*50)
		}
		cv := weibullCV(k)
		check(t, fmt.Sprint("weibull ", k), at, cv, 0.03*cv, k == 1)
	}
}

// A changing rate, measured in expected arrivals, leaves the law as it is: 10^5 arrivals of each profile and law.
func TestVaryingRates(t *testing.T) {
	for _, s := range varied {
		p, err := profile.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			law bench.Shape
			cv  float64
		}{{bench.Constant, 0}, {bench.Poisson, 1}, {bench.Gamma, math.Sqrt2}, {bench.Weibull, weibullCV(0.5)}} {
			var at []float64
			for _, d := range draw(of(t, bench.Load{Shape: c.law, Profile: s, Burstiness: 0.5}), 3, 100_001) {
				at = append(at, p.Area(d))
			}
			check(t, string(c.law)+" "+s, at, c.cv, 0.04*c.cv+1e-3, c.law == bench.Poisson)
		}
	}
}

// A line from 0 to R over D has its n-th arrival at sqrt(2 n D / R), and the counts of other profiles are their areas.
func TestCountsOfProfiles(t *testing.T) {
	at := draw(of(t, bench.Load{Shape: bench.Constant, Profile: "linear:0,50,100s"}), 1, 2501)
	for n, d := range at {
		if want := math.Sqrt(2 * float64(n) * 100 / 50); math.Abs(d.Seconds()-want) > 1e-8 {
			t.Fatalf("arrival %d at %v, want %v s", n, d, want)
		}
	}
	for s, want := range map[string]int{"steps:5,10,0,40/20s": 20*5 + 20*10 + 20*40, "bursts:100,2s,0,5s": 12 * 200, "exp:10,20,1s": 10 + 20*79} {
		n := 0
		for d := range of(t, bench.Load{Shape: bench.Constant, Profile: s}).Arrivals(nil) {
			if d >= 80*time.Second {
				break
			}
			n++
		}
		if s[0] == 'e' {
			want = 14 + 20*79 // 10 / ln 2 in the first second
		}
		if n < want-1 || n > want+1 {
			t.Errorf("%s: %d arrivals in 80 s, want %d", s, n, want)
		}
	}
	end := 0
	for range of(t, bench.Load{Shape: bench.Constant, Profile: "pieces:0=5,10s=0"}).Arrivals(nil) {
		end++
	}
	if end != 50 {
		t.Errorf("%d arrivals at a rate that ends, want 50", end)
	}
}

// Worker i of n takes i, i+n, ...: together they send the sequence of one worker, which is Poisson.
func TestSplit(t *testing.T) {
	all := draw(Poisson{100}, 5, 40_000)
	for _, n := range []int{1, 2, 3, 7} {
		var joined []time.Duration
		for i := range n {
			k := 0
			for at := range Split(Poisson{100}.Arrivals(rng.New(5, "schedule")), i, n) {
				if k*n+i >= len(all) {
					break
				}
				joined = append(joined, at)
				if at != all[k*n+i] {
					t.Fatalf("worker %d of %d: arrival %d at %v, want %v", i, n, k, at, all[k*n+i])
				}
				k++
			}
		}
		slices.Sort(joined)
		if !slices.Equal(joined, all) {
			t.Errorf("%d workers send another sequence", n)
		}
		var at []float64
		for _, d := range joined {
			at = append(at, d.Seconds()*100)
		}
		check(t, fmt.Sprint(n, " workers"), at, 1, 0.03, true)
	}
}

func TestReplay(t *testing.T) {
	times := slices.Values([]time.Duration{0, 3 * time.Second, 2 * time.Second, 9 * time.Second, 12 * time.Second})
	got := draw(Timestamps(times), 1, 10)
	if want := []time.Duration{0, 3 * time.Second, 3 * time.Second, 9 * time.Second, 12 * time.Second}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got = draw(ReplayOf(bench.Load{Speedup: 2, From: 2 * time.Second, To: 12 * time.Second, Offset: time.Second}, times), 1, 10)
	if want := []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 4500 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestReadTimes(t *testing.T) {
	var got []time.Duration
	for d, err := range ReadTimes(strings.NewReader("# s\n100.5\n101 # x\n\n1m42s\n")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	if want := []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, bad := range []string{"", "1\nx\n"} {
		var last error
		for _, err := range ReadTimes(strings.NewReader(bad)) {
			last = err
		}
		if last == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestPauses(t *testing.T) {
	for _, c := range []struct {
		law      string
		mean, sd float64 // s
	}{{"2s", 2, 0}, {"exp:2s", 2, 2}, {"uniform:1s,3s", 2, 1 / math.Sqrt(3)}, {"normal:2s,200ms", 2, 0.2}, {"lognormal:2s,1s", 2, 1}} {
		p, err := ParsePause(c.law)
		if err != nil {
			t.Fatal(err)
		}
		const n = 100_000
		r := rng.New(1, "think/0")
		sum, sq := 0.0, 0.0
		for range n {
			x := p.Draw(r).Seconds()
			if x < 0 || c.law[0] == 'u' && (x < 1 || x > 3) {
				t.Fatalf("%s draws %v", c.law, x)
			}
			sum, sq = sum+x, sq+x*x
		}
		m := sum / n
		if math.Abs(m-c.mean) > 5*c.sd/math.Sqrt(n)+1e-9 || math.Abs(math.Sqrt(max(0, sq/n-m*m))-c.sd) > 0.03*c.sd+1e-6 {
			t.Errorf("%s: mean %v, sd %v", c.law, m, math.Sqrt(sq/n-m*m))
		}
	}
	for _, s := range []string{"x", "exp", "exp:1s,2s", "uniform:3s,1s", "gauss:1s", "-1s", "lognormal:0s,1s"} {
		if _, err := ParsePause(s); err == nil || fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// A million arrivals of every shape begin at once and stay in no memory.
func TestMillionAtOnce(t *testing.T) {
	for _, p := range append([]string{""}, varied...) {
		begun := time.Now()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := 0
		for range of(t, bench.Load{Shape: bench.Poisson, Rate: 1000, Profile: p}).Arrivals(rng.New(1, "schedule")) {
			if n == 0 && time.Since(begun) > 100*time.Millisecond {
				t.Errorf("%q: the first arrival takes %v", p, time.Since(begun))
			}
			if n++; n == 1_000_000 {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
			t.Errorf("%q: %d bytes", p, grown)
		}
	}
}

const goldenShapes = `
weibull(0.5) 0xb11470e9fd578d29
weibull(3) 0x736778441dbf3fc3
constant linear:1,50,100s 0xd40a2720ddb27ddb
poisson linear:1,50,100s 0xa270c6b0ebb05e68
gamma linear:1,50,100s 0xd3cbfcb7704de823
weibull linear:1,50,100s 0x93d07d82edcc4505
constant linear:0,50,100s 0x22ae159585d62a97
poisson linear:0,50,100s 0xcdd5bc1a293afad4
gamma linear:0,50,100s 0x6efc1c0ca7b26e68
weibull linear:0,50,100s 0xb02162184b5f8a0e
constant exp:1,100,60s 0x80ec9edf70ce1750
poisson exp:1,100,60s 0x18da5149b2f5de70
gamma exp:1,100,60s 0x89af4bdbd4d7566d
weibull exp:1,100,60s 0x2ad6163081ad55f9
constant steps:5,10,0,40/20s 0xd74553f0ed200ba5
poisson steps:5,10,0,40/20s 0x4aa24b5a5d191bc
gamma steps:5,10,0,40/20s 0xad1a1ac9c5009396
weibull steps:5,10,0,40/20s 0x719346ddacd922eb
constant bursts:100,2s,0,5s 0x7bcaaaea239fc7ba
poisson bursts:100,2s,0,5s 0x6c51204f8cdbfc07
gamma bursts:100,2s,0,5s 0x1bb93ae00080a2f4
weibull bursts:100,2s,0,5s 0x487723718903845d
constant bursts:50,10s,5,10s 0xe76285a7ae104c6
poisson bursts:50,10s,5,10s 0xee2cd1f2044e553c
gamma bursts:50,10s,5,10s 0xf98a0b26caea6fe7
weibull bursts:50,10s,5,10s 0xfd821d35d05dada4
constant sine:20,20,60s 0x16c8dce3275d00ec
poisson sine:20,20,60s 0x2aa54ef43c8be246
gamma sine:20,20,60s 0x40dcce2ff07867e7
weibull sine:20,20,60s 0x391240ad4297ddfc
constant pieces:0=5,10s=20,30s=0,40s=50 0xaab3d049a410c49b
poisson pieces:0=5,10s=20,30s=0,40s=50 0x6176e9ea7f30bf49
gamma pieces:0=5,10s=20,30s=0,40s=50 0xb81ad755c8cdf629
weibull pieces:0=5,10s=20,30s=0,40s=50 0x9bfe89bba9ca5e2d
pause 2s 0x511533467f57aff5
pause exp:2s 0x3f0ec4cc16ee8dff
pause uniform:1s,3s 0x87c42e5eee9ab7ae
pause normal:2s,1s 0x27be5e1815965d96
pause lognormal:2s,1s 0x7b0363b5f6dc6560
`
