package client

import (
	"context"
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stamp"
	"github.com/prony-bench/prony/internal/wire"
)

// Portable is the engine for every system and for virtual time: one goroutine a connection reads and stamps, one dispatcher sends
// what is due. HTTP/1.1 is framed here, over the stamped reads, since net/http reads ahead, retries by itself and hides which read
// brought which byte. HTTP/2 has connections of its own (h2conn), over the same dated bytes.
type Portable struct {
	o     Options
	clock *clock
	sleep sleeper
	guard *stamp.Guard
	ctx   context.Context // ends with the engine, and with it the opening of connections ahead of need
	stop  context.CancelFunc

	mu       sync.Mutex
	queue    jobQueue
	slots    *slots // nil without a cap
	idle     [][]*conn
	opening  []int // connections per target being opened ahead of need
	busy     map[*exchange]struct{}
	closing  bool       // no job is taken any more
	closed   bool       // no connection is kept any more
	finished *sync.Cond // an exchange has ended

	wg sync.WaitGroup
	h2 *h2pool // nil without HTTP/2

	counts  counts
	unwatch func() // ends the pulse; nil without one
	pipes   *pipes // nil: each connection reads for itself
}

// NewPortable starts the engine, with connections that read for themselves.
func NewPortable(o Options) *Portable { return newPortable(o, false) }

// newPortable starts the engine, where it can with an engine thread that reads and dates for all connections.
func newPortable(o Options, threaded bool) *Portable {
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Eager {
		o.PartSize = 1
	}
	if o.PartSize == 0 {
		o.PartSize = defaultPartSize
	}
	p := &Portable{
		o:       o,
		clock:   newClock(o.Epoch),
		idle:    make([][]*conn, len(o.Targets)),
		opening: make([]int, len(o.Targets)),
		busy:    map[*exchange]struct{}{},
	}
	p.finished = sync.NewCond(&p.mu)
	p.sleep = newSleeper(p.clock, o.Spin)
	if o.Dial == nil && o.Stamps != wire.StampUser {
		p.guard = stamp.OpenGuard()
	}
	if o.Cap > 0 {
		p.slots = newSlots(o.Cap, p.clock.now())
	}
	if threaded && o.Dial == nil {
		p.pipes = newPipes(&p.o, p.clock, &p.counts, p.working)
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	if o.HTTP2 {
		p.h2 = newH2Pool(p)
	}
	p.wg.Go(p.dispatch)
	if p.pipes == nil && o.Spin > 0 {
		p.unwatch = p.counts.pulse(p.clock, p.working)
	}
	return p
}

// Open implements Engine.
func (p *Portable) Open(target, n int) {
	if p.o.HTTP2 {
		p.h2.open(target, n)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle[target])+p.opening[target] < n && !p.closing {
		p.openLocked(target)
	}
}

// openLocked starts to open one idle connection.
func (p *Portable) openLocked(target int) {
	if p.closing {
		return
	}
	p.opening[target]++
	p.wg.Go(func() {
		c, _ := p.connect(p.ctx, target, nil)
		p.mu.Lock()
		p.opening[target]--
		if c == nil || p.closed {
			p.mu.Unlock()
			if c != nil {
				c.nc.Close()
			}
			return // a failure shows again when the connection is needed, and is recorded then
		}
		c.waited = true
		p.idle[target] = append(p.idle[target], c)
		p.mu.Unlock()
		c.read()
	})
}

// Now implements Engine.
func (p *Portable) Now() time.Duration { return p.clock.now() }

// Submit implements Engine.
func (p *Portable) Submit(j *Job) {
	ex := newExchange(p, j)
	if p.o.HTTP2 {
		ex.raw = h2HeadBlock(p.o.Targets[j.Target], &j.Call, p.o.UserAgent)
	}
	p.mu.Lock()
	if p.closing {
		p.mu.Unlock()
		ex.drop()
		return
	}
	p.queue.add(ex)
	first := p.queue.items[0].ex == ex
	p.mu.Unlock()
	if first {
		p.sleep.wake()
	}
}

// Drain implements Engine.
func (p *Portable) Drain() {
	p.mu.Lock()
	var dropped []*exchange
	for p.queue.Len() > 0 {
		dropped = append(dropped, p.queue.take())
	}
	p.mu.Unlock()
	for _, ex := range dropped {
		ex.drop()
	}
}

// Cut implements Engine.
func (p *Portable) Cut() {
	p.Drain()
	p.mu.Lock()
	var live []*exchange
	for ex := range p.busy {
		live = append(live, ex)
	}
	p.mu.Unlock()
	for _, ex := range live {
		ex.interrupt()
	}
}

// Close implements Engine.
func (p *Portable) Close() bench.ClientReport {
	p.mu.Lock()
	if p.closed {
		defer p.mu.Unlock()
		return p.report()
	}
	p.closing = true
	p.mu.Unlock()
	p.Drain()
	p.mu.Lock()
	for len(p.busy) > 0 {
		p.finished.Wait()
	}
	p.closed = true
	for _, conns := range p.idle {
		for _, c := range conns {
			c.nc.Close()
		}
	}
	p.mu.Unlock()
	p.stop()
	p.h2.close()
	p.sleep.wake()
	p.wg.Wait()
	p.sleep.close()
	p.pipes.close()
	if p.unwatch != nil {
		p.unwatch()
	}
	p.guard.Close()
	return p.report()
}

// working tells whether a job is under way.
func (p *Portable) working() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.busy) > 0
}

func (p *Portable) report() bench.ClientReport {
	r := p.counts.report(p.clock)
	r.Engine = "portable"
	if p.pipes.report(&r); p.pipes == nil && p.o.Dial == nil {
		r.NoWire = "the engine thread that captures packets needs Linux, and epoll_pwait2"
	}
	return r
}

// dispatch sends what is due. Under a cap whoever frees a slot sends the next job itself.
func (p *Portable) dispatch() {
	if p.o.Spin > 0 {
		runtime.LockOSThread()
		prepareThread() // the thread ends with the goroutine, so its setting is lost with it
	}
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return
		}
		ex, next := p.nextLocked()
		p.mu.Unlock()
		if ex != nil {
			p.start(ex)
			continue
		}
		p.sleep.until(next)
	}
}

// nextLocked takes the first job that may go out now, with its slot. Without one it returns when to look again; negative: on a wake-up.
func (p *Portable) nextLocked() (*exchange, time.Duration) {
	if p.queue.Len() == 0 || p.slots != nil && p.slots.n == 0 {
		return nil, -1
	}
	if due := p.queue.due(); due > p.clock.now() {
		return nil, due
	}
	ex := p.queue.take()
	if p.slots != nil {
		ex.tr.Slot = opt.Some(max(p.slots.take(), ex.job.Due.Or(noDue)))
	}
	p.busy[ex] = struct{}{}
	return ex, 0
}

// start sends a job on an idle connection, or on a new one.
func (p *Portable) start(ex *exchange) {
	target := ex.job.Target
	if p.o.HTTP2 {
		p.h2.start(ex)
		return
	}
	p.mu.Lock()
	var c *conn
	if n := len(p.idle[target]); n > 0 {
		c = p.idle[target][n-1]
		p.idle[target] = p.idle[target][:n-1]
		c.assign(ex)
	}
	if len(p.idle[target])+p.opening[target] < p.o.Spare {
		p.openLocked(target)
	}
	p.mu.Unlock()
	if c != nil {
		c.begin(ex)
		return
	}
	p.wg.Go(func() { p.startFresh(ex) })
}

// startFresh opens a connection for a job, sends it and becomes the connection's reader.
func (p *Portable) startFresh(ex *exchange) {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	ex.onCancel(cancel)
	c, fail := p.connect(ctx, ex.job.Target, ex)
	if c == nil {
		p.finish(ex, nil, fail.kind, fail.cause)
		return
	}
	c.assign(ex)
	c.begin(ex)
	c.read()
}

// connect opens a connection; the times go into ex, if any.
func (p *Portable) connect(ctx context.Context, target int, ex *exchange) (*conn, failure) {
	t := p.o.Targets[target]
	if p.o.ConnectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.o.ConnectTimeout)
		defer cancel()
	}
	start := p.clock.now()
	in, fail := p.open(ctx, target)
	if in == nil {
		return nil, fail
	}
	connected := p.clock.now()
	c := &conn{p: p, target: target, nc: in, in: in}
	if t.URL.Scheme == "https" {
		c.in = newLookahead(c.in, true)
		tc := tls.Client(c.in, p.tlsConfig(t, "http/1.1"))
		if err := tc.HandshakeContext(ctx); err != nil {
			in.Close()
			kind, cause := tlsFailure(err)
			return nil, failure{kind, cause}
		}
		c.nc = tc
	}
	c.took.connect = opt.Some(connected - start)
	if t.URL.Scheme == "https" {
		c.took.tls = opt.Some(p.clock.now() - connected)
	}
	return c, failure{}
}

// open opens the connection below HTTP and TLS: to the target, or through its proxy.
func (p *Portable) open(ctx context.Context, target int) (dated, failure) {
	t := p.o.Targets[target]
	in, fail := p.openSocket(ctx, target)
	if in == nil || !t.tunnelled(p.o.HTTP2) {
		return in, fail
	}
	return tunnel(ctx, in, t, p.o.UserAgent)
}

// openSocket opens the connection of the socket.
func (p *Portable) openSocket(ctx context.Context, target int) (dated, failure) {
	t := p.o.Targets[target]
	if p.pipes != nil {
		return p.pipes.dial(ctx, t, target)
	}
	nc, err := t.Dial(ctx, p.dialer())
	if err != nil {
		kind, cause := connectFailure(err)
		return nil, failure{kind, cause}
	}
	p.counts.connections.Add(1)
	var in dated = &undated{Conn: nc, clock: p.clock, n: &p.counts}
	if p.o.Dial == nil && p.o.Stamps != wire.StampUser {
		in = withStamps(nc, p.clock, &p.counts)
	}
	if !in.stamped() {
		p.counts.stampless.Store(true)
	}
	return in, failure{}
}

// dialer returns how a connection is opened. TCP_NODELAY is on by default.
func (p *Portable) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	if p.o.Dial != nil {
		return p.o.Dial
	}
	return (&net.Dialer{KeepAlive: keepAlive}).DialContext
}

// A silent path is noticed by TCP itself within minutes; the request timeout is what bounds a request.
const keepAlive = 15 * time.Second

func (p *Portable) tlsConfig(t Target, protocols ...string) *tls.Config {
	c := &tls.Config{}
	if p.o.TLS != nil {
		c = p.o.TLS.Clone()
	}
	if c.ServerName == "" {
		c.ServerName = t.URL.Hostname()
	}
	c.NextProtos = protocols
	return c
}

// finish ends an exchange: its slot goes to the next job, then its transcript goes to the sink. c is its connection when that may
// carry another job, else nil.
func (p *Portable) finish(ex *exchange, c *conn, kind wire.Fail, cause string) {
	ex.end(kind, cause)
	p.mu.Lock()
	delete(p.busy, ex)
	var next *exchange
	if p.slots != nil {
		p.slots.put(ex.freed())
		next, _ = p.nextLocked()
	}
	here := c != nil && next != nil && next.job.Target == c.target && !p.o.HTTP2
	switch {
	case here:
		c.assign(next)
	case c != nil:
		c.ex.Store(nil)
		p.idle[c.target] = append(p.idle[c.target], c)
	}
	wake := p.slots != nil && next == nil && p.queue.Len() > 0 // the dispatcher may have waited for a slot
	p.finished.Broadcast()
	p.mu.Unlock()
	switch {
	case here:
		c.begin(next)
	case next != nil:
		p.start(next)
	}
	if wake {
		p.sleep.wake()
	}
	if !p.pipes.hand(ex, true) {
		p.o.Sink.Done(ex.job, ex.tr)
	}
}

// failure is why an exchange failed below the protocol; the zero failure is none.
type failure struct {
	kind  wire.Fail
	cause string
}
