// Package client sends calls when they are due and stamps what comes back.
//
// It knows HTTP and time, and nothing of LLMs: a wire.Call goes in, a wire.Transcript comes out, and decoding is somebody else's
// work. It makes no decision either: what is sent when is the caller's schedule. It never sends a call twice, with one exception:
// a reused connection that the server had closed meanwhile, with nothing received, is replaced once, and that is counted.
package client

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Engine sends jobs. Its methods may be called from any goroutine.
type Engine interface {
	// Submit hands over a job. Jobs are sent in the order of their due times, those without one in the order of submission and
	// before the others. Submit prepares the bytes to be sent, lets go of the call's body and never waits.
	Submit(*Job)
	// Open opens connections to a target ahead of need, until n are idle.
	Open(target, n int)
	// Drain drops every job that has not been sent; each is given to the Sink as dropped.
	Drain()
	// Cut ends at once what is in flight, as incomplete, and drains.
	Cut()
	// Close drains, waits for what is in flight, closes all connections and ends all goroutines.
	Close() bench.ClientReport
	// Now returns the time since the epoch.
	Now() time.Duration
}

// Job is one call, with where and when to send it.
type Job struct {
	ID     int
	Target int
	Call   wire.Call
	Due    opt.Of[time.Duration] // not sent before; undefined: as soon as there is a slot
	Tag    any                   // the owner's

	// CancelAfter is how long after its sending the job is given up: its connection (with HTTP/2 its stream) is closed, whatever has come.
	// 0 = never.
	CancelAfter time.Duration
}

// Sink takes what comes back. Part and Done of one job come in order, those of different jobs from several goroutines at once.
// A Sink may wait (storage is behind): the slot of the job is free by then, but its connection's goroutine is held up.
type Sink interface {
	// Part takes a piece of a long answer before its end. The slices are the Sink's from then on.
	Part(*Job, wire.Part)
	// Done takes the end of a job. It is called exactly once for each submitted job.
	Done(*Job, *wire.Transcript)
}

// New starts the best engine that the system and the options allow.
func New(o Options) Engine {
	if o.Dial == nil && !o.HTTP2 && !slices.ContainsFunc(o.Targets, func(t Target) bool { return t.URL.Scheme != "http" }) {
		if e, err := NewEpoll(o); err == nil {
			return e
		}
	}
	return newPortable(o, true)
}

// Options configure an engine.
type Options struct {
	Epoch   time.Time
	Targets []Target
	Sink    Sink

	Cap            int           // requests in flight at once; 0 = any number
	Timeout        time.Duration // from sent to the end of the response; 0 = none
	ConnectTimeout time.Duration // of TCP connect and TLS handshake together; 0 = none
	FreshEach      bool          // a new connection for each job
	HTTP2          bool          // HTTP/2 in place of HTTP/1.1
	TLS            *tls.Config   // nil = the system's roots
	Trust          *Trust        // that TLS was made from, for an engine in another process; nil = of nothing that can go there

	// Spin is how long before a due time the sender polls the clock instead of sleeping. 0: plain timers (virtual time).
	Spin time.Duration
	// Dial replaces the network; nil = TCP with kernel stamps where the system has them.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Spare is the number of idle connections to keep open ahead of need, per target.
	Spare int
	// UserAgent names this program to the server.
	UserAgent string

	Threads int        // engine threads; 0 = 1
	Stamps  wire.Stamp // best grade to use; "" = the best there is
	NoWire  string     // why wire stamps are not to be used after all; "" = they are

	// compare, if any, gets the marks of the reads of a piece and those of its packets.
	compare func(reads, packets []wire.Mark)

	MaxBody  int  // bound of one response in bytes; 0 = 1 GiB
	Eager    bool // hand over what each read brought at once
	PartSize int  // hand over a Part past so many bytes; 0 = 16 KiB
}

// DefaultSpin is the polling time before a due time: a wake-up from sleep is 21-80 us late here, one from Go's timers 1 ms.
const DefaultSpin = 100 * time.Microsecond

// cancelledCause is the cause of a job that was given up as CancelAfter says.
func cancelledCause(after time.Duration) string {
	return "cancelled " + after.String() + " after it was sent"
}

// NeverSent is the cause of a job that was dropped while it waited to be sent.
const NeverSent = "never sent"

// Limits of one exchange.
const (
	defaultMaxBody  = 1 << 30
	defaultPartSize = 16 << 10
	afterUntil      = 500 * time.Millisecond // for the body to end after its terminator
)

// Target is one server.
type Target struct {
	URL    *url.URL // http or https, with a base path; http://localhost behind a unix socket
	Addr   string   // host:port to connect to, of the proxy if there is one; resolved, so that no lookup falls into a measurement
	Socket string   // path of a unix socket to connect to instead
	Proxy  *Proxy   // nil = none
}

// longestSocket is how long the path of a unix socket may be here, in bytes.
const longestSocket = len(syscall.RawSockaddrUnix{}.Path) - 1

// ParseTarget reads a base URL: http, https, or unix with the path of a socket. A missing scheme is http.
func ParseTarget(s string) (Target, error) {
	text := strings.TrimSpace(s)
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		return parseSocket(s, path)
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	s = shown(s)
	if err != nil || u.Host == "" {
		return Target{}, fault.Usagef("a target looks like http://127.0.0.1:8000", "--url %q is no URL", s)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return Target{}, fault.Usagef("use http://, https:// or unix:/path/of/socket", "--url %q has the scheme %q", s, u.Scheme)
	}
	if u.Hostname() == "" {
		return Target{}, fault.Usagef("a target looks like http://127.0.0.1:8000", "--url %q names no host", s)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return Target{}, fault.Usagef("give keys with --api-key or --header, body fields with --extra-body", "--url %q has more than scheme, host, port and path", s)
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return Target{}, fault.Usagef("ports go from 1 to 65535", "--url %q has the port %q", s, p)
		}
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return Target{URL: u, Addr: hostPort(u)}, nil
}

// shown is a URL as it may be repeated: what it has of a user, a password or a query may be secret.
func shown(s string) string {
	s, _, _ = strings.Cut(s, "?")
	s, _, _ = strings.Cut(s, "#")
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		scheme, _, ok := strings.Cut(s[:i], "://")
		if s = s[i+1:]; ok {
			s = scheme + "://" + s
		}
	}
	return s
}

// parseSocket reads what follows unix: in a target.
func parseSocket(s, path string) (Target, error) {
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		if path = rest; !strings.HasPrefix(path, "/") {
			return Target{}, fault.Usagef("two slashes are followed by a whole path: unix:///run/engine.sock; one that begins here is unix:engine.sock", "--url %q names a host before the path of its socket", s)
		}
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return Target{}, fault.Usagef("such as unix:/run/engine.sock", "--url %q names no socket", s)
	}
	if len(path) > longestSocket {
		return Target{}, fault.Usagef("give a shorter path, such as one that begins here: unix:engine.sock", "--url: the path of a unix socket has %d bytes at most, and this one %d", longestSocket, len(path))
	}
	return Target{URL: &url.URL{Scheme: "http", Host: "localhost"}, Socket: path}, nil
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// path joins the target's base path and a call's path. A base that ends in /v1 and a path that begins with it do not double it.
func (t Target) path(p string) string {
	base := t.URL.EscapedPath()
	if strings.HasSuffix(base, "/v1") && strings.HasPrefix(p, "/v1/") {
		base = strings.TrimSuffix(base, "/v1")
	}
	return base + p
}

// dialled returns what is to be connected to, as net.Dial takes it.
func (t Target) dialled() (network, addr string) {
	if t.Socket != "" {
		return "unix", t.Socket
	}
	return "tcp", t.Addr
}

// Dial connects to the target, or to its proxy, with a function like net.Dial's.
func (t Target) Dial(ctx context.Context, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (net.Conn, error) {
	network, addr := t.dialled()
	return dial(ctx, network, addr)
}

// Name names a path below the target to a person: as Join does, but with the path of its socket where it has one.
func (t Target) Name(p string) string {
	if t.Socket != "" {
		return strings.TrimSpace("unix:" + t.Socket + " " + p)
	}
	return t.Join(p)
}

// Join returns the whole URL of a path below the target.
func (t Target) Join(p string) string { return t.URL.Scheme + "://" + t.URL.Host + t.path(p) }

// Root returns the whole URL of a path that servers have beside /v1 and not below it, such as /metrics.
func (t Target) Root(p string) string {
	return t.Beside().Join(p)
}

// Beside returns the target of those paths that servers have beside /v1 and not below it: its base path does not end in /v1.
func (t Target) Beside() Target {
	u := *t.URL
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/v1"), strings.TrimSuffix(u.RawPath, "/v1")
	t.URL = &u
	return t
}

// Resolve finds an address of the target that accepts connections, trying every address of its name, IPv6 and IPv4, and sets
// Addr to it: measurements then connect to it without a lookup. It returns all addresses of the name and the time of the lookup.
// With a proxy those are the proxy's, which looks up the target itself. A unix socket has none; it is only connected to.
func (t *Target) Resolve(ctx context.Context, timeout time.Duration) (addrs []string, took time.Duration, err error) {
	d := net.Dialer{Timeout: timeout}
	name, flag, hint := t.Name(""), "--url", "is the server up? `--wait-ready 10m` waits for it; `prony sim` starts one to try with"
	unreachable := func(causes ...string) error {
		return fault.New(fault.Target, name+" cannot be connected ("+strings.Join(causes, "; ")+")", hint)
	}
	if t.Socket != "" {
		nc, derr := t.Dial(ctx, d.DialContext)
		if derr != nil {
			if ctx.Err() != nil {
				return nil, 0, ctx.Err()
			}
			_, cause := connectFailure(derr)
			return nil, 0, unreachable(cause)
		}
		return nil, 0, nc.Close()
	}
	u := t.URL
	if t.Proxy != nil {
		u, name, flag, hint = t.Proxy.url, "the proxy "+t.Proxy.String(), "--proxy", "is it up, and is that its address? without --proxy the server is connected directly"
	}
	host, port, _ := net.SplitHostPort(hostPort(u))
	start := time.Now()
	var ips []netip.Addr
	if ip, perr := netip.ParseAddr(host); perr == nil {
		ips = []netip.Addr{ip}
	} else if ips, err = lookup(ctx, host); err != nil || len(ips) == 0 {
		return nil, 0, fault.New(fault.Target, "the host name "+strconv.Quote(host)+" has no address", "check the spelling of "+flag+", and DNS")
	}
	took = time.Since(start)
	var causes []string
	for _, ip := range ips {
		addrs = append(addrs, ip.Unmap().String())
	}
	for _, a := range addrs {
		nc, derr := d.DialContext(ctx, "tcp", net.JoinHostPort(a, port))
		if derr == nil {
			t.Addr = nc.RemoteAddr().String()
			nc.Close()
			return addrs, took, nil
		}
		if ctx.Err() != nil {
			return addrs, took, ctx.Err()
		}
		_, cause := connectFailure(derr)
		causes = append(causes, a+": "+cause)
	}
	return addrs, took, unreachable(causes...)
}

// lookup returns the addresses of a name. localhost means both loopback addresses, whatever the hosts file lists (RFC 6761).
func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if strings.EqualFold(host, "localhost") {
		for _, loopback := range []string{"127.0.0.1", "::1"} {
			if a := netip.MustParseAddr(loopback); !slices.ContainsFunc(ips, func(b netip.Addr) bool { return b.Unmap() == a }) {
				ips = append(ips, a)
			}
		}
		return ips, nil
	}
	return ips, err
}
