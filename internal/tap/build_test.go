package tap

import (
	"encoding/binary"
	"net/netip"
)

// frame describes a packet to build.
type frame struct {
	src, dst  string // address:port
	seq, ack  uint32
	flags     Flags
	window    uint16
	payload   int
	ipOptions int    // bytes, IPv4
	options   int    // bytes of TCP options
	ext       []byte // extension headers of IPv6, ready but for the next-header bytes: see extensions
	extKinds  []byte
	frag      uint16 // the fragment word of IPv4
	proto     byte   // 0 = TCP
}

func (f frame) ends() (netip.AddrPort, netip.AddrPort) {
	return netip.MustParseAddrPort(f.src), netip.MustParseAddrPort(f.dst)
}

// tcp builds header and payload.
func (f frame) tcp() []byte {
	src, dst := f.ends()
	b := make([]byte, tcpHeader+f.options+f.payload)
	binary.BigEndian.PutUint16(b, src.Port())
	binary.BigEndian.PutUint16(b[2:], dst.Port())
	binary.BigEndian.PutUint32(b[4:], f.seq)
	binary.BigEndian.PutUint32(b[8:], f.ack)
	b[12] = byte((tcpHeader + f.options) / 4 << 4)
	b[13] = byte(f.flags)
	binary.BigEndian.PutUint16(b[14:], f.window)
	return b
}

// ip builds the whole packet.
func (f frame) ip() []byte {
	src, dst := f.ends()
	t := f.tcp()
	proto := f.proto
	if proto == 0 {
		proto = protoTCP
	}
	if src.Addr().Is4() {
		h := make([]byte, ipv4Header+f.ipOptions)
		h[0] = 4<<4 | byte(len(h)/4)
		binary.BigEndian.PutUint16(h[2:], uint16(len(h)+len(t)))
		binary.BigEndian.PutUint16(h[6:], f.frag)
		h[8], h[9] = 64, proto
		copy(h[12:], src.Addr().AsSlice())
		copy(h[16:], dst.Addr().AsSlice())
		return append(h, t...)
	}
	h := make([]byte, ipv6Header)
	h[0] = 6 << 4
	binary.BigEndian.PutUint16(h[4:], uint16(len(f.ext)+len(t)))
	h[6], h[7] = proto, 64
	if len(f.extKinds) > 0 {
		h[6] = f.extKinds[0]
	}
	copy(h[8:], src.Addr().AsSlice())
	copy(h[24:], dst.Addr().AsSlice())
	return append(append(h, f.ext...), t...)
}

// extensions builds a chain of extension headers before TCP, each of so many bytes (a multiple of 8).
func extensions(kinds []byte, sizes []int) []byte {
	var out []byte
	for i, k := range kinds {
		b := make([]byte, sizes[i])
		b[0] = protoTCP
		if i+1 < len(kinds) {
			b[0] = kinds[i+1]
		}
		switch k {
		case extFragment:
		case extAuth:
			b[1] = byte(len(b)/4 - 2)
		default:
			b[1] = byte(len(b)/8 - 1)
		}
		out = append(out, b...)
	}
	return out
}

// ethernet puts an Ethernet header before an IP packet, with a VLAN tag of each type given.
func ethernet(ip []byte, tags ...uint16) []byte {
	b := make([]byte, 12)
	for i, tag := range tags {
		b = binary.BigEndian.AppendUint16(b, tag)
		b = binary.BigEndian.AppendUint16(b, uint16(100+i))
	}
	kind := uint16(etherIPv4)
	if ip[0]>>4 == 6 {
		kind = etherIPv6
	}
	return append(binary.BigEndian.AppendUint16(b, kind), ip...)
}
