package isolate

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// protocol numbers the form of the frames: the program on disk may have been replaced since this one started.
const protocol = 2

// options are client.Options as they travel. Secrets are among them: they go through the pipe, and not into the child's arguments.
type options struct {
	Protocol int
	Epoch    int64 // reading of the system's monotonic clock at the epoch
	Targets  []target

	Cap            int
	Timeout        time.Duration
	ConnectTimeout time.Duration
	FreshEach      bool
	HTTP2          bool
	Spin           time.Duration
	Spare          int
	UserAgent      string
	Threads        int
	Stamps         wire.Stamp
	NoWire         string
	MaxBody        int
	PartSize       int
	Eager          bool
	Trust          *client.Trust
}

// target is a client.Target as it travels.
type target struct{ URL, Addr, Socket, Proxy string }

// pack writes options. What is in this process alone cannot travel.
func pack(o *client.Options) ([]byte, error) {
	if o.Dial != nil || o.TLS != nil && o.Trust == nil {
		return nil, fault.New(fault.Usage, "an isolated engine makes its own connections, and its own settings of TLS", "leave --isolate out")
	}
	mono, at, err := moment()
	if err != nil {
		return nil, err
	}
	out := options{Protocol: protocol, Epoch: mono - int64(at.Sub(o.Epoch)), Cap: o.Cap, Timeout: o.Timeout, ConnectTimeout: o.ConnectTimeout,
		FreshEach: o.FreshEach, HTTP2: o.HTTP2, Spin: o.Spin, Spare: o.Spare, UserAgent: o.UserAgent, Threads: o.Threads, Stamps: o.Stamps,
		NoWire: o.NoWire, MaxBody: o.MaxBody, PartSize: o.PartSize, Eager: o.Eager, Trust: o.Trust}
	for _, t := range o.Targets {
		to := target{URL: t.URL.String(), Addr: t.Addr, Socket: t.Socket}
		if t.Proxy != nil {
			to.Proxy = t.Proxy.URL().String()
		}
		out.Targets = append(out.Targets, to)
	}
	return json.Marshal(out)
}

// unpack reads options.
func unpack(b []byte) (client.Options, error) {
	var in options
	if err := json.Unmarshal(b, &in); err != nil {
		return client.Options{}, err
	}
	if in.Protocol != protocol {
		return client.Options{}, fmt.Errorf("it is another version of the program, which speaks protocol %d and not %d", protocol, in.Protocol)
	}
	mono, at, err := moment()
	if err != nil {
		return client.Options{}, err
	}
	o := client.Options{Epoch: at.Add(-time.Duration(mono - in.Epoch)), Cap: in.Cap, Timeout: in.Timeout, ConnectTimeout: in.ConnectTimeout,
		FreshEach: in.FreshEach, HTTP2: in.HTTP2, Spin: in.Spin, Spare: in.Spare, UserAgent: in.UserAgent, Threads: in.Threads, Stamps: in.Stamps,
		NoWire: in.NoWire, MaxBody: in.MaxBody, PartSize: in.PartSize, Eager: in.Eager, Trust: in.Trust}
	if in.Trust != nil {
		if o.TLS, err = in.Trust.Config(); err != nil {
			return o, err
		}
	}
	for _, t := range in.Targets {
		u, err := url.Parse(t.URL)
		if err != nil {
			return o, err
		}
		to := client.Target{URL: u, Addr: t.Addr, Socket: t.Socket}
		if t.Proxy != "" {
			if to.Proxy, err = client.ParseProxy(t.Proxy); err != nil {
				return o, err
			}
		}
		o.Targets = append(o.Targets, to)
	}
	return o, nil
}

// readings are the tries of moment; the best of them is within the time of two system calls, well below 1 us.
const readings = 16

// moment reads the system's monotonic clock, which all processes share, and the runtime's together. The error is half the time of a try:
// the epochs of parent and child agree to less than 5 us as long as one of 16 tries on each side is not interrupted.
func moment() (mono int64, at time.Time, err error) {
	best := int64(-1)
	for range readings {
		before, err := monotonic()
		if err != nil {
			return 0, at, err
		}
		now := time.Now()
		after, err := monotonic()
		if err != nil {
			return 0, at, err
		}
		if width := after - before; best < 0 || width < best {
			best, mono, at = width, before+width/2, now
		}
	}
	return mono, at, nil
}
