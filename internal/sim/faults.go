package sim

import (
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
)

// FaultKind is a way to misbehave.
type FaultKind string

// The faults. Those of one group exclude each other: of several that strike the same request the first in Config.Faults counts.
const (
	// FaultRefuse closes a connection as soon as it is accepted; its share is of connections, all others' of requests.
	FaultRefuse FaultKind = "refuse"

	// In place of the answer.
	FaultThrottle FaultKind = "429"   // with Retry-After: Delay
	FaultFail     FaultKind = "5xx"   // Status, with a JSON body or plain Text
	FaultHTML     FaultKind = "html"  // a web page with status 200
	FaultEmpty    FaultKind = "empty" // no text: the model ends at once

	// In the middle of the answer, once After writes have gone out; at its end at the latest.
	FaultStall     FaultKind = "stall"     // nothing more is sent, the connection stays open
	FaultCut       FaultKind = "cut"       // the connection closes in the middle of a chunk
	FaultReset     FaultKind = "reset"     // the same with a TCP reset
	FaultMalformed FaultKind = "malformed" // one event's JSON is broken, the stream goes on
	FaultError     FaultKind = "error"     // an error as the engine tells of one in a stream; where it has no words for that, a cut

	// Beside the above, and beside each other.
	FaultDrip      FaultKind = "drip"       // one byte every Delay
	FaultAtOnce    FaultKind = "at-once"    // the whole stream in one write at its end
	FaultNoUsage   FaultKind = "no-usage"   // token counts are left out
	FaultGzip      FaultKind = "gzip"       // a compressed stream, flushed with each event
	FaultClose     FaultKind = "close"      // the connection closes after the answer, and the answer says so
	FaultIdleClose FaultKind = "idle-close" // the connection closes once idle for Delay, unannounced
	FaultHTTP10    FaultKind = "http1.0"    // HTTP/1.0, neither length nor chunks: the connection's end is the body's
)

// Fault is one fault and how often it strikes. Which requests it strikes follows from Config.Seed and the request's number alone.
type Fault struct {
	Kind   FaultKind
	Share  float64       // probability, 0 to 1
	Every  int           // in place of Share: strikes each Every-th request
	After  int           // writes before it, for those in the middle of an answer
	Delay  time.Duration // of drip, idle-close; Retry-After of 429, in whole seconds
	Status int           // of 5xx
	Text   bool          // 5xx with a plain-text body in place of JSON
}

const (
	defaultAfter      = 2
	defaultDrip       = time.Millisecond
	defaultIdleClose  = 100 * time.Millisecond
	defaultRetryAfter = time.Second
)

const faultHint = `a list such as "429:0.1,cut@5:0.02,drip@2ms:0.01,503@text:every20": kind, optional @argument, share or everyN; ` +
	"the kinds are refuse, 429, 500 to 599, html, empty, stall, cut, reset, malformed, error, drip, at-once, no-usage, gzip, close, " +
	"idle-close, http1.0"

// FaultKinds are the words of the faults.
var FaultKinds = []string{"refuse:", "429:", "503:", "html:", "empty:", "stall:", "cut:", "reset:", "malformed:", "error:", "drip:", "at-once:", "no-usage:",
	"gzip:", "close:", "idle-close:", "http1.0:"}

// FaultWords says for a person what the faults are.
const FaultWords = `  refuse           close a connection as soon as it is accepted (the share is of connections)
  429, 500 .. 599  answer so; 429@5s: Retry-After; 503@text: plain text in place of JSON
  html, empty      a web page with status 200; an answer without text
  stall, cut,      after so many writes, 2 unless given (cut@5): send nothing more; close in mid-chunk;
  reset,           the same with a TCP reset;
  malformed, error break one event's JSON; send an error object in the stream
  drip             one byte every 1 ms, or as given (drip@2ms)
  at-once          the whole stream in one write at its end
  no-usage, gzip   no token counts; a compressed stream
  close            close after the answer, which says so
  idle-close       close once idle for 100 ms, or as given (idle-close@1s), unannounced
  http1.0          HTTP/1.0: the end of the connection is the end of the body`

// ParseFaults reads a list of faults: kind[@argument]:share, with a comma between them. The share is a number from 0 to 1, or
// everyN. The argument is the number of writes before it (stall, cut, reset, malformed, error), a duration (429, drip,
// idle-close), or `text` (5xx).
func ParseFaults(s string) ([]Fault, error) {
	var out []Fault
	for _, item := range strings.Split(s, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		f, ok := parseFault(item)
		if !ok {
			return nil, fault.Usagef(faultHint, "%q is not a fault", item)
		}
		out = append(out, f)
	}
	return out, nil
}

func parseFault(item string) (f Fault, ok bool) {
	what, share, ok := strings.Cut(item, ":")
	if !ok {
		return f, false
	}
	if n, every := strings.CutPrefix(share, "every"); every {
		v, err := strconv.Atoi(n)
		if err != nil || v < 1 {
			return f, false
		}
		f.Every = v
	} else {
		v, err := strconv.ParseFloat(share, 64)
		if err != nil || !(v >= 0 && v <= 1) {
			return f, false
		}
		f.Share = v
	}
	kind, arg, has := strings.Cut(what, "@")
	f.Kind = FaultKind(kind)
	if status, err := strconv.Atoi(kind); err == nil && status >= 500 && status <= 599 {
		f.Kind, f.Status, f.Text = FaultFail, status, arg == "text"
		return f, !has || f.Text
	}
	switch f.Kind {
	case FaultStall, FaultCut, FaultReset, FaultMalformed, FaultError:
		f.After = defaultAfter
		if has {
			n, err := strconv.Atoi(arg)
			f.After = n
			return f, err == nil && n >= 0
		}
	case FaultThrottle:
		f.Delay = defaultRetryAfter
		return f, !has || parseDelay(arg, &f.Delay)
	case FaultDrip:
		f.Delay = defaultDrip
		return f, !has || parseDelay(arg, &f.Delay)
	case FaultIdleClose:
		f.Delay = defaultIdleClose
		return f, !has || parseDelay(arg, &f.Delay)
	case FaultRefuse, FaultHTML, FaultEmpty, FaultAtOnce, FaultNoUsage, FaultGzip, FaultClose, FaultHTTP10:
		return f, !has
	default:
		return f, false
	}
	return f, true
}

func parseDelay(s string, into *time.Duration) bool {
	d, err := time.ParseDuration(s)
	*into = d
	return err == nil && d > 0
}

func (f Fault) validate() error {
	known := f.Status == 0
	switch f.Kind {
	case FaultFail:
		known = f.Status >= 500 && f.Status <= 599
	case FaultDrip, FaultIdleClose:
		known = known && f.Delay > 0
	case FaultRefuse, FaultThrottle, FaultHTML, FaultEmpty, FaultStall, FaultCut, FaultReset, FaultMalformed, FaultError:
	case FaultAtOnce, FaultNoUsage, FaultGzip, FaultClose, FaultHTTP10:
	default:
		known = false
	}
	if !known || !(f.Share >= 0 && f.Share <= 1) || f.Every < 0 || f.After < 0 || f.Delay < 0 {
		return fault.Usagef(faultHint, "fault %+v is not possible", f)
	}
	return nil
}

// strikes tells whether the fault strikes the n-th request (or connection), counted from 1.
func (f Fault) strikes(seed, n uint64) bool {
	if f.Every > 0 {
		return n%uint64(f.Every) == 0
	}
	h := fnv.New64a()
	h.Write([]byte(f.Kind)) // a hash never fails to write
	return float64(mix(seed^mix(h.Sum64()^n))>>11)/(1<<53) < f.Share
}

// mix is the finalizer of splitmix64: close inputs give unrelated outputs.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// faults are those that strike one request.
type faults struct {
	instead *Fault // 429, 5xx, html
	middle  *Fault // stall, cut, reset, malformed, error
	drip    time.Duration
	idle    time.Duration
	empty   bool
	atOnce  bool
	noUsage bool
	gzip    bool
	close   bool
	http10  bool
	words   string // their names, for the truth
}

// strike draws the faults of the n-th request.
func (c *Config) strike(n uint64) (s faults) {
	for i := range c.Faults {
		f := &c.Faults[i]
		if f.Kind == FaultRefuse || !f.strikes(c.Seed, n) {
			continue
		}
		switch f.Kind {
		case FaultThrottle, FaultFail, FaultHTML, FaultEmpty:
			if s.instead != nil || s.empty {
				continue
			}
			if s.empty = f.Kind == FaultEmpty; !s.empty {
				s.instead = f
			}
		case FaultStall, FaultCut, FaultReset, FaultMalformed, FaultError:
			if s.middle != nil {
				continue
			}
			s.middle = f
		case FaultDrip:
			s.drip = f.Delay
		case FaultIdleClose:
			s.idle = f.Delay
		case FaultAtOnce:
			s.atOnce = true
		case FaultNoUsage:
			s.noUsage = true
		case FaultGzip:
			s.gzip = true
		case FaultClose:
			s.close = true
		case FaultHTTP10:
			s.http10 = true
		}
		if s.words != "" {
			s.words += ","
		}
		s.words += string(f.Kind)
	}
	return s
}

// refuses tells whether the n-th connection is refused.
func (c *Config) refuses(n uint64) bool {
	for _, f := range c.Faults {
		if f.Kind == FaultRefuse && f.strikes(c.Seed, n) {
			return true
		}
	}
	return false
}
