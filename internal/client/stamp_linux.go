package client

import (
	"encoding/binary"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stamped is a TCP connection whose reads are recvmsg calls that also bring the kernel's receive stamp of the last byte.
type stamped struct {
	*net.TCPConn
	raw   syscall.RawConn
	call  func(uintptr) bool
	hdr   unix.Msghdr
	iov   unix.Iovec
	ctl   [128]byte
	n     int
	errno syscall.Errno
}

// withStamps asks the kernel for receive stamps on a connection; it is returned as it was when the kernel refuses.
func withStamps(nc net.Conn) net.Conn {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nc
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nc
	}
	var serr error
	if err := raw.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1)
	}); err != nil || serr != nil {
		return nc
	}
	s := &stamped{TCPConn: tc, raw: raw}
	s.hdr.Iov = &s.iov
	s.hdr.Iovlen = 1
	s.call = s.recvmsg
	return s
}

func (s *stamped) recvmsg(fd uintptr) bool {
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

// readStamped reads once. stamp is the kernel's wall-clock time in ns, or 0.
func (s *stamped) readStamped(p []byte) (n int, stamp int64, err error) {
	s.iov.Base = &p[0]
	s.iov.SetLen(len(p))
	if err := s.raw.Read(s.call); err != nil {
		return 0, 0, err
	}
	if s.errno != 0 {
		return 0, 0, &net.OpError{Op: "read", Net: "tcp", Addr: s.RemoteAddr(), Err: s.errno}
	}
	if s.n == 0 {
		return 0, 0, io.EOF
	}
	return s.n, parseStamp(s.ctl[:s.hdr.Controllen]), nil
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
