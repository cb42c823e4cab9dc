package tap

import (
	"fmt"
	"net/netip"
)

// Endpoint is an address with a port. It holds no pointer, so that it compares and hashes fast; IPv4 is held v4-mapped, so that
// the two ways to write it are one. A zone is not part of it: a capture is of one interface.
type Endpoint struct {
	ip   [16]byte
	port uint16
}

// EndpointOf converts an address.
func EndpointOf(a netip.AddrPort) Endpoint {
	return Endpoint{a.Addr().As16(), a.Port()}
}

// AddrPort converts back; a v4-mapped address comes as IPv4.
func (e Endpoint) AddrPort() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16(e.ip).Unmap(), e.port)
}

func (e Endpoint) String() string { return e.AddrPort().String() }

// Key names a connection as this host sees it. Connections that follow each other on the same ports share it; see Conn.Gen.
type Key struct {
	Local, Remote Endpoint
}

// KeyOf is the key of a connection whose socket has these addresses.
func KeyOf(local, remote netip.AddrPort) Key {
	return Key{EndpointOf(local), EndpointOf(remote)}
}

func (k Key) String() string { return fmt.Sprintf("%v - %v", k.Local, k.Remote) }

// Flags of a TCP header.
type Flags uint8

// The flags that matter here.
const (
	FIN Flags = 1 << 0
	SYN Flags = 1 << 1
	RST Flags = 1 << 2
	ACK Flags = 1 << 4
)

// Segment is what the headers of a TCP packet say.
type Segment struct {
	Src, Dst Endpoint
	Seq, Ack uint32
	Window   uint16 // as written, not scaled
	Flags    Flags
	Len      int // bytes of payload
}

// Packet is a segment that was captured, or word of some that were not.
type Packet struct {
	Lost   bool // the capture has lost packets between the one before and the next; nothing else is set
	Key    Key
	Out    bool // it goes from the local end to the remote one
	Flags  Flags
	Window uint16
	Seq    uint32
	Ack    uint32
	Len    int   // bytes of payload
	At     int64 // stamp, ns
}

// set makes a packet of a segment.
func (p *Packet) set(s *Segment, out bool, at int64) {
	if out {
		p.Key = Key{s.Src, s.Dst}
	} else {
		p.Key = Key{s.Dst, s.Src}
	}
	p.Lost, p.Out, p.Flags, p.Window, p.Seq, p.Ack, p.Len, p.At = false, out, s.Flags, s.Window, s.Seq, s.Ack, s.Len, at
}
