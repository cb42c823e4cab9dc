package cli

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/profile"
	"github.com/prony-bench/prony/internal/schedule"
)

// shapeFlags say when requests are sent.
type shapeFlags struct {
	concurrency        int
	concurrencyProfile string
	maxConcurrency     int
	rate, burstiness   string
	arrivals           string
	timestamps         string
	speedup            float64
	from, to, offset   duration
	users, prefill     int
	think, pace        string
	cancelRate         float64
	cancelAfter        duration
}

// registerShape adds the flags of the load's shape.
func (f *runFlags) registerShape(set *pflag.FlagSet) {
	f.concurrency = defaultConcurrency
	set.Var(&levelValue{&f.concurrency, &f.concurrencyProfile}, "concurrency", "closed loop: so many requests in flight all the time, or a number that goes with time: linear:1,64,60s")
	set.StringVar(&f.rate, "request-rate", "", "open loop: requests/s, inf for all at once (vLLM), or a rate that goes with time: linear:FROM,TO,TIME, exp:FROM,TO,TIME, steps:A,B,C/TIME, bursts:HIGH,TIME,LOW,TIME, sine:MEAN,AMPLITUDE,PERIOD, pieces:TIME=RATE,..., file:PATH")
	set.StringVar(&f.burstiness, "burstiness", "1", "shape of the gamma law of arrivals: 1 = Poisson, below burstier, above smoother, inf = constant (vLLM)")
	set.StringVar(&f.arrivals, "arrivals", "", "law of arrivals: poisson, constant, gamma, weibull (both with --burstiness), or trace: when the data set says")
	set.IntVar(&f.maxConcurrency, "max-concurrency", 0, "open loop: at most so many in flight; alone it means rate inf under that cap (vLLM)")
	set.StringVar(&f.timestamps, "timestamps", "", "file with the moment of each request, one a line, in seconds or with a unit (--arrivals trace)")
	set.Float64Var(&f.speedup, "speedup", 1, "trace: its time runs so much faster")
	set.Var(&f.from, "trace-from", "trace: leave out what is before this moment of it")
	set.Var(&f.to, "trace-to", "trace: leave out what is at this moment of it or later")
	set.Var(&f.offset, "trace-offset", "trace: time from the begin of the run to its first moment")
	set.StringVar(&f.think, "think", "", "closed loop: time from an answer to the next request at its place: 2s, exp:MEAN, uniform:A,B, normal:MEAN,SD, lognormal:MEAN,SD")
	set.IntVar(&f.users, "users", 0, "so many users, each with a conversation of its own, who --think and keep their --pace")
	set.StringVar(&f.pace, "pace", "", "users: least time from one request of a user to its next, same laws")
	set.IntVar(&f.prefill, "prefill-concurrency", 0, "so many requests in prefill all the time: the next one is sent when one has its first token; --max-concurrency caps all in flight")
	set.Float64Var(&f.cancelRate, "cancel-rate", 0, "share of the requests, drawn by the seed, whose connection the client closes --cancel-after they were sent")
	set.Var(&f.cancelAfter, "cancel-after", "how long after its sending such a request is cancelled")
}

// levelValue is a flag that takes a whole number, or a profile.
type levelValue struct {
	n       *int
	profile *string
}

func (v *levelValue) Type() string { return "int" }

func (v *levelValue) String() string {
	if v.n == nil {
		return ""
	}
	if *v.profile != "" {
		return *v.profile
	}
	return strconv.Itoa(*v.n)
}

func (v *levelValue) Set(s string) error {
	if profile.Is(s) {
		*v.profile = s
		return nil
	}
	n, err := strconv.ParseInt(s, 0, strconv.IntSize)
	if err != nil {
		return err
	}
	*v.n, *v.profile = int(n), ""
	return nil
}

// exclusiveShapes are flags of which each is a load by itself.
var exclusiveShapes = [][3]string{
	{"concurrency", "request-rate", "a closed loop has no rate; for an open loop under a cap use --request-rate with --max-concurrency"},
	{"concurrency", "max-concurrency", "--concurrency is a closed loop, --max-concurrency caps an open one"},
	{"concurrency", "users", "users are a closed loop of so many"},
	{"concurrency", "prefill-concurrency", "--prefill-concurrency with --max-concurrency bounds both"},
	{"concurrency", "timestamps", "a closed loop has no arrivals"},
	{"users", "request-rate", "the users' --think and --pace make the rate"},
	{"users", "max-concurrency", "there are at most as many in flight as there are users"},
	{"users", "prefill-concurrency", "give one of the two"},
	{"users", "timestamps", "users have no arrivals"},
	{"prefill-concurrency", "request-rate", "the server's prefill makes the rate"},
	{"prefill-concurrency", "timestamps", "the server's prefill makes the rate"},
	{"timestamps", "request-rate", "the timestamps make the rate; --speedup changes it"},
	{"timestamps", "burstiness", "the timestamps are the arrivals"},
}

// load reads the shape of the load.
func (f *runFlags) load() (bench.Load, error) {
	l, err := f.shape()
	if err != nil {
		return l, err
	}
	if err := f.besideShape(&l); err != nil {
		return l, err
	}
	return l, f.cancellation(&l)
}

func (f *runFlags) shape() (bench.Load, error) {
	var l bench.Load
	if f.concurrency < 1 {
		return l, fault.Usagef("1 sends one request after the other", "--concurrency must be at least 1, not %d", f.concurrency)
	}
	for _, x := range []struct {
		flag string
		n    int
	}{{"max-concurrency", f.maxConcurrency}, {"users", f.users}, {"prefill-concurrency", f.prefill}} {
		if x.n < 0 || f.given(x.flag) && x.n == 0 {
			return l, fault.Usagef("leave it out for none", "--%s must be at least 1, not %d", x.flag, x.n)
		}
	}
	if err := oneOf("arrivals", f.arrivals, []string{"", "poisson", "constant", "gamma", "weibull", "trace"}); err != nil {
		return l, err
	}
	l.Cap = f.maxConcurrency
	switch {
	case f.users > 0:
		return bench.Load{Shape: bench.Users, Concurrency: f.users}, nil
	case f.prefill > 0:
		return bench.Load{Shape: bench.Prefill, Concurrency: f.prefill, Cap: f.maxConcurrency}, nil
	case f.arrivals == "trace" || f.timestamps != "":
		return f.trace(l)
	}
	if f.given("burstiness") && (!f.given("request-rate") || isInf(f.rate)) {
		return l, fault.New(fault.Usage, "--burstiness shapes the arrivals of an open loop with a rate", "give --request-rate R")
	}
	if f.arrivals != "" && (!f.given("request-rate") || isInf(f.rate)) {
		return l, fault.New(fault.Usage, "--arrivals "+f.arrivals+" is the law of an open loop with a rate", "give --request-rate R")
	}
	switch {
	case !f.given("request-rate") && !f.given("max-concurrency"):
		return f.closed()
	case !f.given("request-rate") || isInf(f.rate):
		l.Shape = bench.Inf
		return l, nil
	}
	if err := f.readRate(&l); err != nil {
		return l, err
	}
	return l, f.law(&l)
}

// closed is a closed loop, with a number of places that stays or goes with time.
func (f *runFlags) closed() (bench.Load, error) {
	l := bench.Load{Shape: bench.Closed, Concurrency: f.concurrency}
	if f.concurrencyProfile == "" {
		return l, nil
	}
	p, err := readProfile("concurrency", f.concurrencyProfile)
	if err != nil {
		return l, err
	}
	if l.Profile, l.Concurrency = p.String(), int(p.Peak()); l.Concurrency < 1 || l.Concurrency > mostRequests {
		return l, fault.Usagef("such as linear:1,64,60s", "--concurrency %s goes up to %v, which is not between 1 and %d", f.concurrencyProfile, p.Peak(), mostRequests)
	}
	return l, nil
}

// readProfile reads a level that goes with time, also from a file.
func readProfile(flag, text string) (profile.Profile, error) {
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		r, err := os.Open(path)
		if err != nil {
			return profile.Profile{}, fault.Wrap(fault.Usage, err, "--"+flag, "a file of lines TIME,LEVEL")
		}
		defer r.Close()
		if text, err = profile.FromFile(r); err != nil {
			return profile.Profile{}, fault.Wrap(fault.Usage, err, "--"+flag+" "+path, "a file of lines TIME,LEVEL")
		}
	}
	p, err := profile.Parse(text)
	if err != nil {
		return p, fault.Wrap(fault.Usage, err, "--"+flag, profile.Forms)
	}
	return p, nil
}

func (f *runFlags) readRate(l *bench.Load) error {
	if profile.Is(f.rate) {
		p, err := readProfile("request-rate", f.rate)
		if err != nil {
			return err
		}
		l.Profile, l.Rate = p.String(), p.Peak()
		return nil
	}
	rate, err := strconv.ParseFloat(f.rate, 64)
	if err != nil || !(rate > 0) || math.IsInf(rate, 0) {
		return fault.Usagef("for as fast as possible use --request-rate inf", "--request-rate must be above 0, not %s", f.rate)
	}
	l.Rate = rate
	return nil
}

// law reads the law of the gaps.
func (f *runFlags) law(l *bench.Load) error {
	constant := isInf(f.burstiness)
	k, err := strconv.ParseFloat(f.burstiness, 64)
	if !constant && (err != nil || !(k > 0) || math.IsInf(k, 0)) {
		return fault.Usagef("1 = Poisson, below burstier, above smoother, inf = constant", "--burstiness must be above 0, not %s", f.burstiness)
	}
	switch f.arrivals {
	case "poisson", "constant":
		if f.given("burstiness") {
			return fault.Usagef("leave one of the two out", "--arrivals %s has no burstiness", f.arrivals)
		}
		l.Shape = bench.Shape(f.arrivals)
		if l.Shape == bench.Poisson {
			l.Burstiness = 1
		}
		return nil
	case "weibull":
		if constant {
			return fault.New(fault.Usage, "--burstiness inf is constant, and not Weibull", "use --arrivals constant")
		}
		l.Shape, l.Burstiness = bench.Weibull, k
		return nil
	}
	switch {
	case constant:
		l.Shape = bench.Constant
	case k == 1:
		l.Shape, l.Burstiness = bench.Poisson, k
	default:
		l.Shape, l.Burstiness = bench.Gamma, k
	}
	return nil
}

func isInf(s string) bool {
	return strings.EqualFold(strings.TrimSpace(s), "inf") || strings.EqualFold(strings.TrimSpace(s), "infinity")
}

// trace is a load that is sent at timestamps.
func (f *runFlags) trace(l bench.Load) (bench.Load, error) {
	if f.arrivals != "" && f.arrivals != "trace" {
		return l, fault.Usagef("leave one of the two out", "--timestamps are the arrivals, and not --arrivals %s", f.arrivals)
	}
	if f.given("request-rate") || f.given("concurrency") {
		return l, fault.New(fault.Usage, "--arrivals trace sends at the timestamps of the data set", "leave --request-rate and --concurrency out; --speedup changes the rate")
	}
	if !(f.speedup >= schedule.MinSpeedup && f.speedup <= schedule.MaxSpeedup) {
		return l, fault.Usagef("2 sends a trace of an hour in half an hour", "--speedup must be between %g and %g, not %v", schedule.MinSpeedup, schedule.MaxSpeedup, f.speedup)
	}
	if f.to > 0 && f.to <= f.from {
		return l, fault.Usagef("both are moments of the trace", "--trace-to %v is not after --trace-from %v", time.Duration(f.to), time.Duration(f.from))
	}
	l.Shape, l.Times = bench.Trace, f.timestamps
	l.Speedup, l.From, l.To, l.Offset = f.speedup, time.Duration(f.from), time.Duration(f.to), time.Duration(f.offset)
	return l, nil
}

// besideShape reads what belongs to some shapes only, and refuses it with others.
func (f *runFlags) besideShape(l *bench.Load) error {
	for _, x := range []struct {
		flag, of string
		ok       bool
	}{
		{"think", "a closed loop: --concurrency or --users", l.Shape == bench.Closed || l.Shape == bench.Users},
		{"pace", "--users", l.Shape == bench.Users},
		{"speedup", "--arrivals trace", l.Shape == bench.Trace}, {"trace-from", "--arrivals trace", l.Shape == bench.Trace},
		{"trace-to", "--arrivals trace", l.Shape == bench.Trace}, {"trace-offset", "--arrivals trace", l.Shape == bench.Trace},
	} {
		if f.given(x.flag) && !x.ok {
			return fault.Usagef("leave it out, or give that", "--%s belongs to %s", x.flag, x.of)
		}
	}
	if l.Profile != "" && f.think != "" {
		return fault.New(fault.Usage, "--think belongs to a number of places that stays", "give --concurrency N")
	}
	for _, law := range []string{f.think, f.pace} {
		if _, err := schedule.ParsePause(law); err != nil {
			return err
		}
	}
	l.Think, l.Pace = f.think, f.pace
	return nil
}

func (f *runFlags) cancellation(l *bench.Load) error {
	switch {
	case !(f.cancelRate >= 0 && f.cancelRate <= 1):
		return fault.Usagef("0.1 cancels one request in ten", "--cancel-rate must be between 0 and 1, not %v", f.cancelRate)
	case f.cancelRate > 0 && f.cancelAfter <= 0:
		return fault.New(fault.Usage, "--cancel-rate needs to know when", "such as --cancel-after 500ms")
	case f.cancelRate == 0 && f.given("cancel-after"):
		return fault.New(fault.Usage, "--cancel-after needs to know how many", "such as --cancel-rate 0.1")
	}
	l.CancelRate, l.CancelAfter = f.cancelRate, time.Duration(f.cancelAfter)
	return nil
}
