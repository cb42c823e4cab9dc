package tap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// openTap opens a ring for connections to an address, or skips the test.
func openTap(t testing.TB, to netip.AddrPort, o Options) *Tap {
	t.Helper()
	_, index, err := InterfaceFor(to)
	if err != nil {
		t.Fatal(err)
	}
	o.Interface, o.Remotes = index, []netip.AddrPort{to}
	tap, err := Open(o)
	if errors.Is(err, ErrCapability) || errors.Is(err, ErrDenied) {
		t.Skipf("no packet ring here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tap.Close() })
	return tap
}

// span is when a write or a read was begun and had returned, and the stream's offset behind it.
type span struct{ before, after, end int64 }

func wall() int64 { return time.Now().UnixNano() }

// peer is a server that reads a request of a known size on each connection and answers with pieces.
type peer struct {
	net.Listener
	request, pieces, size int
	pace                  time.Duration

	mu     sync.Mutex
	writes map[netip.AddrPort][]span // by the client's address
	last   span                      // the newest read of a client
	done   sync.WaitGroup
}

func newPeer(t testing.TB, l net.Listener, request, pieces, size int, pace time.Duration) *peer {
	p := &peer{Listener: l, request: request, pieces: pieces, size: size, pace: pace, writes: map[netip.AddrPort][]span{}}
	p.done.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.done.Go(func() {
				defer c.Close()
				if spans, err := p.answer(c); err != nil {
					t.Error(err)
				} else {
					p.mu.Lock()
					p.writes[c.RemoteAddr().(*net.TCPAddr).AddrPort()] = spans
					p.mu.Unlock()
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); p.done.Wait() })
	return p
}

func (p *peer) answer(c net.Conn) (spans []span, err error) {
	if _, err := io.ReadFull(c, make([]byte, p.request)); err != nil {
		return nil, err
	}
	piece := bytes.Repeat([]byte{'x'}, p.size)
	for i := range p.pieces {
		if i > 0 {
			time.Sleep(p.pace)
		}
		s := span{before: wall(), end: int64((i + 1) * p.size)}
		if _, err := c.Write(piece); err != nil {
			return nil, err
		}
		s.after = wall()
		spans = append(spans, s)
	}
	return spans, nil
}

func (p *peer) addr() netip.AddrPort { return p.Addr().(*net.TCPAddr).AddrPort() }

// exchange is one connection as the client saw it.
type exchange struct {
	key    Key
	opened span
	sent   span
	reads  []span
}

// run opens a connection, sends a request and reads the answer from when it is told.
func (p *peer) run(start func()) (x exchange, err error) {
	x.opened.before = wall()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		return x, err
	}
	defer c.Close()
	x.opened.after = wall()
	x.key = KeyOf(c.LocalAddr().(*net.TCPAddr).AddrPort(), c.RemoteAddr().(*net.TCPAddr).AddrPort())
	x.sent = span{before: wall(), end: int64(p.request)}
	if _, err := c.Write(make([]byte, p.request)); err != nil {
		return x, err
	}
	x.sent.after = wall()
	start()
	buf := make([]byte, 64<<10)
	for end := int64(0); ; {
		s := span{before: wall()}
		n, err := c.Read(buf)
		s.after = wall()
		if n > 0 {
			end += int64(n)
			s.end = end
			x.reads = append(x.reads, s)
			p.mu.Lock()
			p.last = s
			p.mu.Unlock()
		}
		if err == io.EOF {
			return x, nil
		}
		if err != nil {
			return x, err
		}
	}
}

// spanOf returns the span that an offset's byte is in.
func spanOf(spans []span, end int64) span {
	for _, s := range spans {
		if end <= s.end {
			return s
		}
	}
	return span{}
}

// drainUntil reads the ring until everything up to a stamp has been seen.
func drainUntil(t testing.TB, tap *Tap, table *Table, stamp int64) {
	t.Helper()
	for limit := time.Now().Add(10 * time.Second); tap.SeenUntil() < stamp; {
		if _, err := tap.Read(5*time.Millisecond, table.Add); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(limit) {
			t.Fatalf("the ring is seen until %d, want %d: %+v", tap.SeenUntil(), stamp, tap.Stats())
		}
	}
}

// verify checks each byte of an exchange: requests are stamped within the client's write, answers between the begin of the
// server's write and the end of the client's read. It returns how many bytes have no stamp, and the largest distance from the
// begin of the write.
func (p *peer) verify(t testing.TB, table *Table, x exchange) (missing int64, worst time.Duration) {
	t.Helper()
	c := table.Find(x.key, x.opened.before, x.opened.after)
	if c == nil {
		t.Errorf("%v is not in the table", x.key)
		return p.total(), 0
	}
	for end := int64(1); end <= x.sent.end; end++ {
		if at, ok := c.Out.At(end); !ok || at < x.sent.before || at > x.sent.after {
			t.Fatalf("request byte %d: %d %v, written from %d to %d", end, at, ok, x.sent.before, x.sent.after)
		}
	}
	p.mu.Lock()
	writes := p.writes[x.key.Local.AddrPort()]
	p.mu.Unlock()
	for end := int64(1); end <= p.total(); end++ {
		at, ok := c.In.At(end)
		if !ok {
			missing++
			continue
		}
		w, r := spanOf(writes, end), spanOf(x.reads, end)
		if at < w.before || at > r.after {
			t.Fatalf("%v byte %d: %d, written from %d, read at %d", x.key, end, at, w.before, r.after)
		}
		worst = max(worst, time.Duration(at-w.before))
	}
	return missing, worst
}

func (p *peer) total() int64 { return int64(p.pieces * p.size) }

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", address, err)
	}
	return l
}

// Every byte of 50 connections has a stamp, in both directions, that lies between its write and its read; over IPv4 and IPv6.
func TestTapLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(address, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			p := newPeer(t, listen(t, address), 700, 30, 61, time.Millisecond)
			defer func() { p.Close(); p.done.Wait() }()
			tap := openTap(t, p.addr(), Options{})
			table := NewTable(0)

			results := make(chan exchange)
			var clients sync.WaitGroup
			for range 50 {
				clients.Go(func() {
					x, err := p.run(func() {})
					if err != nil {
						t.Error(err)
					}
					results <- x
				})
			}
			var all []exchange
			for len(all) < 50 {
				if _, err := tap.Read(time.Millisecond, table.Add); err != nil {
					t.Fatal(err)
				}
				select {
				case x := <-results:
					all = append(all, x)
				default:
				}
			}
			clients.Wait()
			drainUntil(t, tap, table, wall())
			for _, x := range all {
				if missing, _ := p.verify(t, table, x); missing != 0 {
					t.Errorf("%v: %d bytes have no stamp", x.key, missing)
				}
				table.Forget(table.Get(x.key))
			}
			if s := tap.Stats(); s.Dropped+s.Malformed+s.Fragments+s.Other != 0 || table.Len() != 0 {
				t.Errorf("%+v, %d connections", s, table.Len())
			}
		})
	}
}

// While nobody reads for a second, neither sockets nor ring, the packets are stamped all the same: each within the write that
// sent it, while the read that brought it is late by up to that second.
func TestTapStalledReader(t *testing.T) {
	const pieces, pace = 100, 10 * time.Millisecond
	p := newPeer(t, listen(t, "127.0.0.1:0"), 100, pieces, 61, pace)
	tap := openTap(t, p.addr(), Options{})
	table := NewTable(0)
	x, err := p.run(func() { time.Sleep(pieces * pace) })
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	p.done.Wait()
	drainUntil(t, tap, table, wall())
	missing, worst := p.verify(t, table, x)
	if missing != 0 {
		t.Errorf("%d bytes have no stamp", missing)
	}
	c := table.Get(x.key)
	late := 0
	for _, w := range p.writes[x.key.Local.AddrPort()] {
		if at, _ := c.In.At(w.end); at < w.before || at > w.after {
			t.Errorf("byte %d: %v behind the begin of its write, which took %v", w.end,
				time.Duration(at-w.before), time.Duration(w.after-w.before))
		}
		if spanOf(x.reads, w.end).after-w.after > int64(100*time.Millisecond) {
			late++
		}
	}
	first := spanOf(x.reads, 1)
	t.Logf("%d reads, the first %v after its byte was written; stamps at most %v after the begin of the write", len(x.reads),
		time.Duration(first.after-p.writes[x.key.Local.AddrPort()][0].after), worst)
	if late < pieces/2 {
		t.Errorf("only %d of %d pieces were read late: the test shows nothing", late, pieces)
	}
}

// A ring that is too small, and not read in time, loses packets. Their bytes have no stamp, the others have the right one, and
// when it is read again all is as before.
func TestTapOverflow(t *testing.T) {
	p := newPeer(t, listen(t, "127.0.0.1:0"), 10, 240, 11, time.Millisecond)
	tap := openTap(t, p.addr(), Options{Blocks: 2, BlockSize: os.Getpagesize(), BlockTimeout: 5 * time.Millisecond})
	table := NewTable(0)
	result := make(chan exchange, 1)
	go func() {
		x, err := p.run(func() {})
		if err != nil {
			t.Error(err)
		}
		result <- x
	}()
	newest := func() span {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.last
	}
	for newest().end < p.total()/2 {
		time.Sleep(time.Millisecond)
	}
	var c *Conn
	for read := newest(); read.end < p.total(); {
		if _, err := tap.Read(time.Millisecond, table.Add); err != nil {
			t.Fatal(err)
		}
		if tap.SeenUntil() < read.after {
			continue
		}
		for _, c = range table.conns {
			c.In.Assume(read.end, read.after)
		}
		read = newest()
	}
	x := <-result
	drainUntil(t, tap, table, wall())
	c.In.Assume(p.total(), wall())
	p.Close()
	p.done.Wait()
	missing, _ := p.verify(t, table, x)
	s := tap.Stats()
	t.Logf("%+v %+v: %d of %d bytes have no stamp", s, table.Stats(), missing, p.total())
	if s.Dropped == 0 || s.Freezes == 0 || table.Stats().Losses == 0 || missing == 0 || c.In.Next() != p.total() {
		t.Errorf("%+v %+v, %d bytes missing, Next %d", s, table.Stats(), missing, c.In.Next())
	}
	if lost := s.Dropped * int64(p.size); missing > lost+p.total()/4 {
		t.Errorf("%d bytes have no stamp, though only %d were lost", missing, lost)
	}
}

// An idle ring has been seen until now; without traffic a Read takes as long as it may.
func TestTapIdle(t *testing.T) {
	tap := openTap(t, netip.MustParseAddrPort("127.0.0.1:1"), Options{})
	start := wall()
	n, err := tap.Read(20*time.Millisecond, func(*Packet) { t.Error("a packet from nowhere") })
	if n != 0 || err != nil || wall()-start < int64(20*time.Millisecond) {
		t.Error(n, err, wall()-start)
	}
	if seen := tap.SeenUntil(); seen < start || seen > wall() {
		t.Errorf("seen until %d, now it is %d", seen, start)
	}
	before := wall()
	if n, err := tap.Read(0, nil); n != 0 || err != nil || tap.SeenUntil() < before {
		t.Error(n, err)
	}
	if n := testing.AllocsPerRun(100, func() { tap.Read(0, nil) }); n != 0 {
		t.Errorf("%v allocations in a Read", n)
	}
}

func TestTapClose(t *testing.T) {
	files := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(names)
	}
	rings := func() int {
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Skip(err)
		}
		return strings.Count(string(b), "socket:")
	}
	openTap(t, server, Options{}).Close() // what the runtime opens once is open now
	fds, maps := files(), rings()
	tap := openTap(t, server, Options{})
	if rings() != maps+1 {
		t.Errorf("%d rings, want %d", rings(), maps+1)
	}
	for range 2 {
		if err := tap.Close(); err != nil {
			t.Error(err)
		}
	}
	if files() != fds || rings() != maps {
		t.Errorf("%d descriptors, before %d; %d rings, before %d", files(), fds, rings(), maps)
	}
	if _, err := tap.Read(0, nil); err == nil {
		t.Error("a closed ring was read")
	}
	if tap.Stats() != (Stats{}) {
		t.Error(tap.Stats())
	}
}

func TestOpenRefusesOptions(t *testing.T) {
	good := Options{Interface: 1, Remotes: []netip.AddrPort{server}}
	page := os.Getpagesize()
	for name, change := range map[string]func(*Options){
		"no interface":      func(o *Options) { o.Interface = 0 },
		"no remote":         func(o *Options) { o.Remotes = nil },
		"one block":         func(o *Options) { o.Blocks = 1 },
		"half a page":       func(o *Options) { o.BlockSize = page / 2 },
		"a page and a half": func(o *Options) { o.BlockSize = page * 3 / 2 },
		"more than 1 GiB":   func(o *Options) { o.Blocks, o.BlockSize = 2049, 512<<10 },
		"a microsecond":     func(o *Options) { o.BlockTimeout = time.Microsecond },
		"two seconds":       func(o *Options) { o.BlockTimeout = 2 * time.Second },
		"65 ports": func(o *Options) {
			for i := range uint16(65) {
				o.Remotes = append(o.Remotes, netip.AddrPortFrom(server.Addr(), 9000+i))
			}
		},
	} {
		o := good
		change(&o)
		if tap, err := Open(o); err == nil {
			tap.Close()
			t.Errorf("%s: opened", name)
		}
	}
	o := good
	o.Interface = 1 << 30
	if _, err := Open(o); !errors.Is(err, ErrInterface) && !errors.Is(err, ErrCapability) && !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
}

// onThread runs f on a thread that ends with it, so that what it does to itself is not seen elsewhere.
func onThread(f func()) {
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread dies with the goroutine
		f()
	}()
	<-done
}

// Why there is no ring is told apart.
func TestOpenErrors(t *testing.T) {
	o := Options{Interface: 1, Remotes: []netip.AddrPort{server}}
	onThread(func() {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			t.Error(err)
			return
		}
		data[0].Effective &^= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&header, &data[0]); err != nil {
			t.Error(err)
			return
		}
		_, err := Open(o)
		if !errors.Is(err, ErrCapability) || !errors.Is(err, unix.EPERM) {
			t.Error(err)
		}
	})
	openTap(t, server, Options{}) // skips where the rest shows nothing
	for _, errno := range []unix.Errno{unix.EPERM, unix.EACCES, unix.EAFNOSUPPORT} {
		onThread(func() {
			if err := denyPacketSockets(errno); err != nil {
				t.Logf("no seccomp here: %v", err)
				return
			}
			_, err := Open(o)
			if !errors.Is(err, ErrDenied) || !errors.Is(err, errno) {
				t.Errorf("socket: %v, Open: %v", errno, err)
			}
		})
	}
	if err := setUpError("ring", unix.ENOMEM); !errors.Is(err, ErrMemory) {
		t.Error(err)
	}
	if err := setUpError("version", unix.ENOPROTOOPT); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
}

// denyPacketSockets installs a seccomp filter on this thread: socket(AF_PACKET, ...) fails with an error.
func denyPacketSockets(errno unix.Errno) error {
	const retAllow, retErrno = 0x7fff0000, 0x00050000
	program := []unix.SockFilter{
		{Code: opLoadWord, K: 0}, // number of the call
		{Code: opEqual, K: unix.SYS_SOCKET, Jf: 3},
		{Code: opLoadWord, K: 16}, // low half of the first argument
		{Code: opEqual, K: unix.AF_PACKET, Jf: 1},
		{Code: opReturn, K: retErrno | uint32(errno)},
		{Code: opReturn, K: retAllow},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
}

func TestInterfaceFor(t *testing.T) {
	loopback := ""
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var own []netip.Addr
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			loopback = i.Name
		}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() && i.Flags&net.FlagUp != 0 {
				own = append(own, p.Addr())
			}
		}
	}
	if loopback == "" {
		t.Skip("no loopback interface")
	}
	own = append(own, netip.MustParseAddr("127.5.6.7"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.IPv4Unspecified())
	for _, a := range own { // addresses of this host are reached by the loopback interface, whichever has them
		name, index, err := InterfaceFor(netip.AddrPortFrom(a, 80))
		if err != nil || name != loopback || index == 0 {
			t.Errorf("%v: %q %d %v, want %q", a, name, index, err, loopback)
		}
	}
	// for others, the kernel takes the local address of that interface, if it has one
	far := netip.MustParseAddrPort("192.0.2.1:80")
	name, _, err := InterfaceFor(far)
	c, dialErr := net.Dial("udp", far.String())
	if dialErr != nil {
		if err == nil {
			t.Errorf("no route to %v, but an interface: %q", far, name)
		}
		return
	}
	defer c.Close()
	local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	if err != nil || name == loopback {
		t.Errorf("%v: %q %v", far, name, err)
	}
	t.Logf("%v leaves by %s from %v", far.Addr(), name, local)
	if _, _, err := InterfaceFor(netip.MustParseAddrPort("[fe80::1%no-such-interface]:80")); err == nil {
		t.Error("an interface for a zone that is none")
	}
	zoned := netip.MustParseAddrPort(fmt.Sprintf("[fe80::1%%%s]:80", loopback))
	if name, _, err := InterfaceFor(zoned); err != nil || name != loopback {
		t.Error(name, err)
	}
}
