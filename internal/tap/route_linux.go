package tap

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// routeTimeout is how long the kernel may take to answer, in seconds; it takes microseconds.
const routeTimeout = 2

// route asks the kernel for the interface that packets to an address leave by.
func route(to netip.Addr) (index int, err error) {
	to = to.Unmap()
	if to.IsUnspecified() { // connect(2) takes it for this host
		loopback := netip.IPv6Loopback()
		if to.Is4() {
			loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		to = loopback
	}
	if zone := to.Zone(); zone != "" {
		ifi, err := net.InterfaceByName(zone)
		if err != nil {
			return 0, err
		}
		return ifi.Index, nil
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: routeTimeout}); err != nil {
		return 0, err
	}
	if err := unix.Sendto(fd, routeRequest(to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	answer := make([]byte, 16<<10)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return 0, err
	}
	return routeAnswer(answer[:n])
}

// routeRequest is an RTM_GETROUTE message: header, rtmsg, one attribute with the destination.
func routeRequest(to netip.Addr) []byte {
	dst := to.AsSlice()
	family := uint8(unix.AF_INET)
	if to.Is6() {
		family = unix.AF_INET6
	}
	n := unix.SizeofNlMsghdr + unix.SizeofRtMsg + unix.SizeofRtAttr + len(dst)
	b := make([]byte, n)
	*(*unix.NlMsghdr)(unsafe.Pointer(&b[0])) = unix.NlMsghdr{
		Len: uint32(n), Type: unix.RTM_GETROUTE, Flags: unix.NLM_F_REQUEST, Seq: 1,
	}
	*(*unix.RtMsg)(unsafe.Pointer(&b[unix.SizeofNlMsghdr])) = unix.RtMsg{Family: family, Dst_len: uint8(8 * len(dst))}
	attr := unix.SizeofNlMsghdr + unix.SizeofRtMsg
	*(*unix.RtAttr)(unsafe.Pointer(&b[attr])) = unix.RtAttr{Len: uint16(unix.SizeofRtAttr + len(dst)), Type: unix.RTA_DST}
	copy(b[attr+unix.SizeofRtAttr:], dst)
	return b
}

func routeAnswer(b []byte) (index int, err error) {
	messages, err := syscall.ParseNetlinkMessage(b)
	if err != nil {
		return 0, err
	}
	for i := range messages {
		m := &messages[i]
		switch m.Header.Type {
		case unix.NLMSG_ERROR:
			if len(m.Data) >= 4 {
				if code := -int32(binary.NativeEndian.Uint32(m.Data)); code != 0 {
					return 0, unix.Errno(code)
				}
			}
		case unix.RTM_NEWROUTE:
			attrs, err := syscall.ParseNetlinkRouteAttr(m)
			if err != nil {
				return 0, err
			}
			for _, a := range attrs {
				if a.Attr.Type == unix.RTA_OIF && len(a.Value) >= 4 {
					return int(binary.NativeEndian.Uint32(a.Value)), nil
				}
			}
		}
	}
	return 0, errors.New("the kernel named no interface")
}

func interfaceName(index int) (string, error) {
	ifi, err := net.InterfaceByIndex(index)
	if err != nil {
		return "", err
	}
	return ifi.Name, nil
}
