package client

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampedConn is a TCP connection whose reads are recvmsg calls that also bring the kernel's receive stamp of the last byte.
type stampedConn struct {
	*net.TCPConn
	clock *clock
	count *counts
	raw   syscall.RawConn
	call  func(uintptr) bool
	hdr   unix.Msghdr
	iov   unix.Iovec
	ctl   [128]byte
	n     int
	errno syscall.Errno
	m     moment
	sent  atomic.Int64 // when the newest request went out
}

// withStamps asks the kernel for receive stamps on a connection. Where it refuses, the return of the read is taken.
func withStamps(nc net.Conn, c *clock, n *counts) dated {
	plain := &undated{Conn: nc, clock: c, n: n}
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return plain
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return plain
	}
	var serr error
	if err := raw.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1)
	}); err != nil || serr != nil {
		return plain
	}
	s := &stampedConn{TCPConn: tc, clock: c, count: n, raw: raw}
	s.hdr.Iov = &s.iov
	s.hdr.Iovlen = 1
	s.call = s.recvmsg
	return s
}

func (s *stampedConn) recvmsg(fd uintptr) bool {
	s.hdr.Control = &s.ctl[0]
	s.hdr.SetControllen(len(s.ctl))
	for {
		r, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&s.hdr)), 0)
		switch e {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false // wait for more in the poller
		}
		s.n, s.errno = int(r), e
		return true
	}
}

// Read implements net.Conn.
func (s *stampedConn) Read(p []byte) (int, error) {
	s.iov.Base = &p[0]
	s.iov.SetLen(len(p))
	if err := s.raw.Read(s.call); err != nil {
		return 0, err
	}
	if s.errno != 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: s.RemoteAddr(), Err: s.errno}
	}
	if s.n == 0 {
		return 0, io.EOF
	}
	s.m.at, _, _ = s.count.date(s.clock, parseStamp(s.ctl[:s.hdr.Controllen]), max(s.m.at, time.Duration(s.sent.Load())))
	s.m.end += int64(s.n)
	return s.n, nil
}

func (s *stampedConn) arrived() moment         { return s.m }
func (s *stampedConn) sending(t time.Duration) { s.sent.Store(int64(t)) }
func (s *stampedConn) stamped() bool           { return true }

// date returns when a read arrived, from its stamp, or now when it has none (0) or it cannot be placed; and the clocks after the
// read. It counts the read.
func (n *counts) date(c *clock, stamp int64, notBefore time.Duration) (at, mono time.Duration, wall int64) {
	n.reads.Add(1)
	mono, wall = c.pair()
	if stamp != 0 {
		if at, ok := c.at(mono, wall, stamp, notBefore); ok {
			n.delays.add(mono - at)
			return at, mono, wall
		}
	}
	n.unstamped.Add(1)
	return mono, mono, wall
}

// parseStamp finds the stamp in a control buffer: a cmsghdr (length, level, type) and a timespec of two 64-bit words.
func parseStamp(b []byte) int64 {
	for len(b) >= unix.SizeofCmsghdr {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		l := int(h.Len)
		if l < unix.SizeofCmsghdr || l > len(b) {
			return 0
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS_NEW && l >= unix.SizeofCmsghdr+16 {
			d := b[unix.SizeofCmsghdr:]
			return int64(binary.NativeEndian.Uint64(d))*1e9 + int64(binary.NativeEndian.Uint64(d[8:]))
		}
		l = (l + 7) &^ 7
		if l >= len(b) {
			return 0
		}
		b = b[l:]
	}
	return 0
}

// stampGuard keeps the kernel's stamping switched on: it turns on with the first socket that asks, a little later, and off with the last.
type stampGuard struct{ fd int }

func openStampGuard() *stampGuard {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1); err != nil {
		unix.Close(fd)
		return nil
	}
	return &stampGuard{fd}
}

func (g *stampGuard) close() {
	if g != nil {
		unix.Close(g.fd)
	}
}
