package stamp

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a TCP connection whose reads are recvmsg calls that also bring the kernel's receive stamp of their last byte. One goroutine
// at a time may read.
type Conn struct {
	*net.TCPConn
	raw   syscall.RawConn
	call  func(uintptr) bool
	hdr   unix.Msghdr
	iov   unix.Iovec
	ctl   [128]byte
	n     int
	errno syscall.Errno
}

// New asks the kernel for receive stamps on a connection. An error means that it refuses; the connection is as before then.
func New(nc *net.TCPConn) (*Conn, error) {
	raw, err := nc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var serr error
	if err := raw.Control(func(fd uintptr) {
		serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1)
	}); err != nil || serr != nil {
		return nil, errors.Join(err, serr)
	}
	c := &Conn{TCPConn: nc, raw: raw}
	c.hdr.Iov = &c.iov
	c.hdr.Iovlen = 1
	c.call = c.recvmsg
	return c, nil
}

func (c *Conn) recvmsg(fd uintptr) bool {
	c.hdr.Control = &c.ctl[0]
	c.hdr.SetControllen(len(c.ctl))
	for {
		r, _, e := syscall.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&c.hdr)), 0)
		switch e {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false // wait for more in the poller
		}
		c.n, c.errno = int(r), e
		return true
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.iov.Base = &p[0]
	c.iov.SetLen(len(p))
	if err := c.raw.Read(c.call); err != nil {
		return 0, err
	}
	if c.errno != 0 {
		return 0, &net.OpError{Op: "read", Net: "tcp", Addr: c.RemoteAddr(), Err: c.errno}
	}
	if c.n == 0 {
		return 0, io.EOF
	}
	return c.n, nil
}

// Arrived returns when the last byte of the newest read arrived, in Unix ns; 0 when the kernel did not say.
func (c *Conn) Arrived() int64 { return Parse(c.ctl[:c.hdr.Controllen]) }

// Parse finds the receive stamp, in Unix ns, in a control buffer of recvmsg: a cmsghdr (length, level, type) and a timespec of two 64-bit
// words. 0: there is none.
func Parse(b []byte) int64 {
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

// Guard keeps the kernel's stamping switched on: it turns on with the first socket that asks, a little later, and off with the last.
type Guard struct{ fd int }

// OpenGuard returns a guard; nil where the kernel does not stamp.
func OpenGuard() *Guard {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1); err != nil {
		unix.Close(fd)
		return nil
	}
	return &Guard{fd}
}

// Close lets go. A nil guard may be closed.
func (g *Guard) Close() {
	if g != nil {
		unix.Close(g.fd)
	}
}
