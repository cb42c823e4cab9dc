package client

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/stamp"
	"github.com/prony-bench/prony/internal/tap"
	"github.com/prony-bench/prony/internal/wire"
)

// econn is a connection of an engine thread.
type econn struct {
	// What a read touches stands together: with many streams each of them is cold when its turn comes.
	number     int32 // place in the thread's connections
	gen        int32 // tells it from those that had the place before
	fd         int
	connecting bool
	ahead      bool // being opened ahead of need
	hadHead    bool
	wasFound   bool
	waited     bool  // it has been idle, so that the server may have closed it unnoticed
	x          *xfer // nil while idle
	pipe       *pipe // who reads and writes in place of jobs; else nil
	rx         int64
	addr       *sockaddr
	last       time.Duration // newest stamp
	readAt     time.Duration // when what is being fed arrived
	behind     int           // room in the buffer behind what is being fed
	onBody     func([]byte)
	http       wire.HTTP1

	tx       int64
	target   int
	started  time.Duration
	took     opt.Of[time.Duration] // the connect, for its first job
	deadline time.Duration         // of the connect
	place    int                   // among the idle ones, or those being opened ahead
	uses     int
	track    track
}

// A silent path is noticed by TCP itself within minutes; the request timeout is what bounds a request.
const (
	keepAliveSeconds = int(keepAlive / time.Second)
	keepAliveProbes  = 9
)

// Flags of the transmit stamp: when the last byte of a request went to the driver, named by its offset in the connection.
const transmitStamps = unix.SOF_TIMESTAMPING_TX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE | unix.SOF_TIMESTAMPING_OPT_ID |
	unix.SOF_TIMESTAMPING_OPT_ID_TCP | unix.SOF_TIMESTAMPING_OPT_TSONLY

// openAhead starts to open an idle connection. A failure shows again when the connection is needed, and is recorded then.
func (l *loop) openAhead(target int) {
	c := l.newConn(&l.addrs[target], target)
	c.ahead = true
	putIn(&l.opening[target], c)
	l.connect(c)
}

// dial opens a connection for a job.
func (l *loop) dial(target int, x *xfer) {
	c := l.newConn(&l.addrs[target], target)
	c.x, x.c = x, c
	l.connect(c)
}

// newConn gives a connection its place.
func (l *loop) newConn(addr *sockaddr, target int) *econn {
	l.gen++
	c := &econn{gen: l.gen, fd: -1, addr: addr, target: target, connecting: true, started: l.clock.now(), track: track{target: -1}}
	c.onBody = c.body
	if n := len(l.vacant); n > 0 {
		c.number, l.vacant = l.vacant[n-1], l.vacant[:n-1]
		l.conns[c.number] = c
	} else {
		c.number = int32(len(l.conns))
		l.conns = append(l.conns, c)
	}
	return c
}

// connect starts to connect.
func (l *loop) connect(c *econn) {
	if err := l.openSocket(c); err != nil {
		kind, cause := connectFailure(err)
		l.dialFailed(c, kind, cause)
		return
	}
	if t := l.o.ConnectTimeout; t > 0 {
		c.deadline = c.started + t
		l.dials = append(l.dials, c)
	}
}

// openSocket makes the socket, starts to connect and puts it into the epoll set.
func (l *loop) openSocket(c *econn) error {
	a := c.addr
	fd, err := unix.Socket(a.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.fd = fd
	if a.family != unix.AF_UNIX {
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, keepAliveSeconds)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, keepAliveSeconds)
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, keepAliveProbes)
	}
	if !l.stamped(a) || unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1) != nil {
		l.count.stampless.Store(true)
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_CONNECT, uintptr(fd), a.pointer(), a.size()); errno != 0 && errno != unix.EINPROGRESS {
		return errno
	}
	return unix.EpollCtl(l.ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Fd: c.number, Pad: c.gen,
		Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET})
}

// stamped tells whether the kernel is to stamp what comes from an address.
func (l *loop) stamped(a *sockaddr) bool {
	return a.family != unix.AF_UNIX && l.o.Stamps != wire.StampUser
}

// dialFailed ends a connection that could not be opened, and its job.
func (l *loop) dialFailed(c *econn, kind wire.Fail, cause string) {
	switch {
	case c.x != nil:
		l.finish(c, false, kind, cause)
	case c.pipe != nil:
		c.pipe.opened(c, failure{kind, cause})
		l.drop(c)
	default:
		l.drop(c)
	}
}

// connected takes the end of a connect.
func (l *loop) connected(c *econn) {
	if code, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
		if err == nil {
			err = syscall.Errno(code)
		}
		kind, cause := connectFailure(err)
		l.dialFailed(c, kind, cause)
		return
	}
	now := l.clock.now()
	l.count.connections.Add(1)
	c.connecting, c.took = false, opt.Some(now-c.started)
	if l.ringed {
		l.follow(c)
	}
	if c.pipe != nil {
		if l.ringed {
			c.pipe.track = &c.track
		}
		c.pipe.opened(c, failure{})
		return
	}
	switch {
	case l.ringed:
	case l.stamped(c.addr):
		unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, transmitStamps)
	}
	if x := c.x; x != nil {
		c.x = nil
		l.begin(c, x)
		return
	}
	takeOut(&l.opening[c.target], c)
	putIn(&l.idle[c.target], c)
	c.ahead, c.waited = false, true
}

// follow tells the ring of a connection.
func (l *loop) follow(c *econn) {
	local, err := unix.Getsockname(c.fd)
	if err != nil {
		return
	}
	_, wall := l.clock.pair()
	began := wall - int64(l.clock.now()-c.started)
	c.track = track{key: tap.KeyOf(addrPortOf(local), c.addr.port), from: began, to: wall, target: c.target}
}

// addrPortOf converts an address of the kernel's.
func addrPortOf(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// putIn adds a connection to a list, and takeOut takes it out again.
func putIn(list *[]*econn, c *econn) {
	c.place = len(*list)
	*list = append(*list, c)
}

func takeOut(list *[]*econn, c *econn) {
	last := len(*list) - 1
	(*list)[c.place] = (*list)[last]
	(*list)[c.place].place = c.place
	*list = (*list)[:last]
}

// drop closes a connection that is not among the idle ones.
func (l *loop) drop(c *econn) {
	if c.fd >= 0 {
		unix.Close(c.fd)
	}
	if c.ahead {
		takeOut(&l.opening[c.target], c)
	}
	c.connecting, c.ahead = false, false
	if c.track.target >= 0 && l.ringed {
		bye := l.blocks.get()
		bye.track = &c.track
		l.blocks.out.Add(1)
		l.hand(bye)
	}
	l.conns[c.number] = nil
	l.vacant = append(l.vacant, c.number)
}

// begin sends a job on a connection.
func (l *loop) begin(c *econn, x *xfer) {
	c.x, x.c = x, c
	x.tr.Reused = c.uses > 0
	if c.uses == 0 {
		x.tr.Connect = c.took
	}
	x.stale = c.uses > 0 || c.waited
	c.uses++
	x.base, x.reqEnd = c.rx, c.tx+int64(x.size)
	if c.track.target >= 0 && l.ringed {
		x.track = &c.track
	}
	c.http.Reset()
	x.tr.Stamp = wire.StampSocket
	if !l.stamped(c.addr) {
		x.tr.Stamp = wire.StampUser
	}
	if after, t := x.job.CancelAfter, l.o.Timeout; after > 0 && (t == 0 || after < t) {
		l.cancels.add(x, l.clock.now()+after)
	} else if t > 0 {
		l.answers.add(x, l.clock.now()+t)
	}
	l.write(c)
}

// write sends what the kernel takes of a request; the rest follows when there is room. A failure shows in the read.
func (l *loop) write(c *econn) {
	x := c.x
	for x.wrote < x.size {
		rest := x.req[x.wrote:]
		now := l.clock.now()
		n, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(c.fd), uintptr(unsafe.Pointer(&rest[0])), uintptr(len(rest)), unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return
		default:
			l.broken = append(l.broken, c)
			return
		}
		x.wrote += int(n)
		c.tx += int64(n)
		x.tr.Sent = opt.Some(now)
	}
}

// handle takes what epoll said of a connection.
func (l *loop) handle(c *econn, events uint32) {
	if c.connecting {
		l.connected(c)
		if l.conns[c.number] != c {
			return
		}
		events &^= unix.EPOLLOUT
	}
	if c.pipe != nil {
		if events&unix.EPOLLOUT != 0 {
			c.pipe.room()
		}
		l.readPipe(c)
		return
	}
	if events&unix.EPOLLERR != 0 {
		l.readErrors(c)
	}
	if events&unix.EPOLLOUT != 0 && c.x != nil && c.x.wrote < c.x.size {
		l.write(c)
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP) != 0 {
		l.read(c, events)
	}
}

// read reads what the socket has. A read that does not fill the buffer has emptied it, unless the other side has closed.
func (l *loop) read(c *econn, events uint32) {
	for {
		n, errno := l.recvmsg(c.fd, 0)
		switch {
		case errno == unix.EAGAIN:
			return
		case errno != 0 || n == 0:
			l.broke(c, errno)
			return
		}
		at := l.date(c)
		l.pace.reads++
		c.rx += int64(n)
		if c.x == nil { // bytes that nobody asked for: of no more use
			takeOut(&l.idle[c.target], c)
			l.drop(c)
			return
		}
		if !l.feed(c, l.buf[:n], at) {
			return
		}
		if n < len(l.buf) && events&(unix.EPOLLRDHUP|unix.EPOLLHUP) == 0 {
			return
		}
		if l.next != never { // a long answer must not hold up the sending
			l.now = l.clock.now()
			l.sendDue()
		}
	}
}

// recvmsg reads once into the thread's buffers.
func (l *loop) recvmsg(fd int, flags uintptr) (int, syscall.Errno) {
	for {
		l.hdr.SetControllen(len(l.ctl))
		n, _, errno := syscall.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&l.hdr)), flags|unix.MSG_DONTWAIT)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// date returns when what was just read arrived.
func (l *loop) date(c *econn) time.Duration {
	notBefore := c.last
	switch {
	case c.x != nil:
		notBefore = max(notBefore, c.x.tr.Sent.Or(0))
	case c.pipe != nil:
		notBefore = max(notBefore, time.Duration(c.pipe.sent.Load()))
	}
	if l.stamped(c.addr) {
		c.last, l.now, l.wall = l.count.date(l.clock, stamp.Parse(l.ctl[:l.hdr.Controllen]), notBefore)
		return c.last
	}
	l.count.reads.Add(1)
	l.now, l.wall = l.clock.pair()
	c.last = l.now
	return c.last
}

// readErrors takes transmit stamps out of the error queue of a connection.
func (l *loop) readErrors(c *econn) {
	for {
		if _, errno := l.recvmsg(c.fd, unix.MSG_ERRQUEUE); errno != 0 {
			return
		}
		stamp, offset, ok := parseTransmit(l.ctl[:l.hdr.Controllen])
		if x := c.x; ok && x != nil && x.wrote == x.size && offset+1 == uint32(x.reqEnd) {
			mono, wall := l.clock.pair()
			handed := x.tr.Sent.Or(0)
			if at, ok := l.clock.at(mono, wall, stamp, handed); ok && at >= handed && !x.tr.Handed.Defined() {
				x.tr.Sent, x.tr.Handed = opt.Some(at), opt.Some(handed)
			}
		}
	}
}

// parseTransmit finds a transmit stamp and the offset of its byte in a control buffer of the error queue.
func parseTransmit(b []byte) (stamp int64, offset uint32, ok bool) {
	sent := false
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		size := int(h.Len)
		if size < unix.SizeofCmsghdr || size > len(b) {
			break
		}
		d := b[unix.SizeofCmsghdr:size]
		switch {
		case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPING_NEW && len(d) >= 16:
			stamp = int64(binary.NativeEndian.Uint64(d))*1e9 + int64(binary.NativeEndian.Uint64(d[8:]))
		case (h.Level == unix.SOL_IP && h.Type == unix.IP_RECVERR || h.Level == unix.SOL_IPV6 && h.Type == unix.IPV6_RECVERR) && len(d) >= 16:
			// struct sock_extended_err: errno 4, origin 1, type 1, code 1, pad 1, info 4, data 4
			sent = d[4] == unix.SO_EE_ORIGIN_TIMESTAMPING && binary.NativeEndian.Uint32(d[8:]) == unix.SCM_TSTAMP_SND
			offset = binary.NativeEndian.Uint32(d[12:])
		}
		size = (size + 7) &^ 7
		if size >= len(b) {
			break
		}
		b = b[size:]
	}
	return stamp, offset, sent && stamp != 0
}

// broke takes the end of a connection: errno, or 0 when the server closed it in order.
func (l *loop) broke(c *econn, errno syscall.Errno) {
	x := c.x
	switch {
	case x == nil:
		takeOut(&l.idle[c.target], c)
		l.drop(c)
	case x.found: // the terminator was there: nothing is missing
		l.finish(c, false, "", "")
	case x.stale && x.bytes == 0 && !x.tr.Retried && l.clock.now()-x.handed() < staleWithin(c.took):
		l.count.stale.Add(1)
		c.x = nil
		l.drop(c)
		x.leave()
		x.wrote, x.tr.Sent, x.tr.Handed, x.tr.Retried = 0, opt.Of[time.Duration]{}, opt.Of[time.Duration]{}, true
		l.dial(x.job.Target, x)
	case errno != 0:
		l.finish(c, false, wire.FailReset, readFailure(errno))
	default:
		if err := c.http.Close(); err != nil {
			l.finish(c, false, wire.FailReset, err.Error())
			return
		}
		if !x.tr.Ended.Defined() {
			x.tr.Ended, x.closes = opt.Some(l.clock.now()), true
		}
		l.finish(c, false, "", "")
	}
}

// raisePriority lets the calling thread, which must be locked, go before others where this process may: it is short of time for
// some microseconds and idle for the rest. What it starts does not inherit that.
func raisePriority() {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 5}
	if unix.SchedSetAttr(0, &attr, 0) != nil {
		unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // of this thread alone
	}
}

// sockaddr is an address in the kernel's form.
type sockaddr struct {
	family int
	port   netip.AddrPort // of IPv4 and IPv6
	in4    unix.RawSockaddrInet4
	in6    unix.RawSockaddrInet6
	un     unix.RawSockaddrUnix
}

func sockaddrOf(t Target) (sockaddr, error) {
	if t.Socket != "" {
		s := sockaddr{family: unix.AF_UNIX, un: unix.RawSockaddrUnix{Family: unix.AF_UNIX}}
		if len(t.Socket) >= len(s.un.Path) {
			return s, fmt.Errorf("the path of the socket is longer than %d bytes", len(s.un.Path)-1)
		}
		for i, b := range []byte(t.Socket) {
			s.un.Path[i] = int8(b)
		}
		return s, nil
	}
	ap, err := netip.ParseAddrPort(t.Addr)
	if err != nil {
		return sockaddr{}, fmt.Errorf("the target %s has not been resolved: %w", t.Addr, err)
	}
	port := ap.Port()<<8 | ap.Port()>>8 // network order, on the little-endian machines that Go's Linux ports with epoll_pwait2 run on
	if isBigEndian() {
		port = ap.Port()
	}
	a := ap.Addr().Unmap()
	if a.Is4() {
		return sockaddr{family: unix.AF_INET, port: ap, in4: unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: a.As4()}}, nil
	}
	s := sockaddr{family: unix.AF_INET6, port: ap, in6: unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: a.As16()}}
	if zone := a.Zone(); zone != "" {
		ifi, err := net.InterfaceByName(zone)
		if err != nil {
			return s, err
		}
		s.in6.Scope_id = uint32(ifi.Index)
	}
	return s, nil
}

func isBigEndian() bool { return binary.NativeEndian.Uint16([]byte{0, 1}) == 1 }

func (s *sockaddr) pointer() uintptr {
	switch s.family {
	case unix.AF_INET:
		return uintptr(unsafe.Pointer(&s.in4))
	case unix.AF_INET6:
		return uintptr(unsafe.Pointer(&s.in6))
	}
	return uintptr(unsafe.Pointer(&s.un))
}

func (s *sockaddr) size() uintptr {
	switch s.family {
	case unix.AF_INET:
		return unsafe.Sizeof(s.in4)
	case unix.AF_INET6:
		return unsafe.Sizeof(s.in6)
	}
	return unsafe.Sizeof(s.un)
}
