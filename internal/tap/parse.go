package tap

import "encoding/binary"

// Verdict says what a packet is to us.
type Verdict uint8

// The verdicts.
const (
	Accepted  Verdict = iota // a TCP segment
	NotTCP                   // something else, well formed as far as was looked at
	Fragment                 // a piece of an IP packet; TCP avoids them, and a piece cannot be placed in a stream
	Malformed                // it contradicts itself, or its length
)

const (
	etherIPv4 = 0x0800
	etherIPv6 = 0x86dd

	protoTCP = 6

	ipv4Header  = 20 // least
	ipv6Header  = 40
	tcpHeader   = 20 // least
	etherHeader = 14
	vlanTag     = 4

	// maxTags is how many VLAN tags are looked through. Standards know two; some networks stack one more.
	maxTags = 4
)

// IPv6 extension headers that may stand before TCP.
const (
	extHopByHop    = 0
	extRouting     = 43
	extFragment    = 44
	extAuth        = 51
	extDestination = 60
)

// ParseEthernet reads a packet that begins at its Ethernet header, with VLAN tags (802.1Q, 802.1ad) or none. b is what was
// captured of it, size its length on the wire.
func ParseEthernet(b []byte, size int, s *Segment) Verdict {
	if len(b) < etherHeader || size < len(b) {
		return Malformed
	}
	at := etherHeader
	kind := binary.BigEndian.Uint16(b[at-2:])
	for tags := 0; kind == 0x8100 || kind == 0x88a8 || kind == 0x9100; tags++ {
		if at += vlanTag; len(b) < at || tags == maxTags {
			return Malformed
		}
		kind = binary.BigEndian.Uint16(b[at-2:])
	}
	b, size = b[at:], size-at
	switch kind {
	case etherIPv4:
		return parseIPv4(b, size, s)
	case etherIPv6:
		return parseIPv6(b, size, s)
	}
	return NotTCP
}

// ParseIP reads a packet that begins at its IP header. b is what was captured of it, size its length on the wire.
func ParseIP(b []byte, size int, s *Segment) Verdict {
	if len(b) == 0 || size < len(b) {
		return Malformed
	}
	switch b[0] >> 4 {
	case 4:
		return parseIPv4(b, size, s)
	case 6:
		return parseIPv6(b, size, s)
	}
	return Malformed
}

func parseIPv4(b []byte, size int, s *Segment) Verdict {
	if len(b) < ipv4Header || b[0]>>4 != 4 {
		return Malformed
	}
	header := int(b[0]&15) * 4
	total := int(binary.BigEndian.Uint16(b[2:]))
	if total == 0 {
		total = size // above 64 KiB, which the kernel makes within a host ("BIG TCP")
	}
	switch {
	case header < ipv4Header || total < header || total > size:
		return Malformed
	case binary.BigEndian.Uint16(b[6:])&0x3fff != 0: // more fragments, or not the first
		return Fragment
	case b[9] != protoTCP:
		return NotTCP
	case len(b) < header:
		return Malformed
	}
	s.Src.ip = v4Mapped(b[12:])
	s.Dst.ip = v4Mapped(b[16:])
	return parseTCP(b[header:], total-header, s)
}

func v4Mapped(b []byte) (ip [16]byte) {
	ip[10], ip[11] = 0xff, 0xff
	copy(ip[12:], b[:4])
	return ip
}

func parseIPv6(b []byte, size int, s *Segment) Verdict {
	if len(b) < ipv6Header || b[0]>>4 != 6 {
		return Malformed
	}
	total := ipv6Header + int(binary.BigEndian.Uint16(b[4:]))
	if total == ipv6Header {
		total = size // a jumbogram, or one that the kernel made within a host
	}
	if total > size {
		return Malformed
	}
	s.Src.ip = [16]byte(b[8:24])
	s.Dst.ip = [16]byte(b[24:40])
	at, next := ipv6Header, b[6]
	for next != protoTCP {
		if next != extHopByHop && next != extRouting && next != extFragment && next != extAuth && next != extDestination {
			return NotTCP
		}
		if len(b) < at+8 { // cut off by the capture, or by its maker
			return Malformed
		}
		length := (int(b[at+1]) + 1) * 8
		switch next {
		case extFragment:
			length = 8
			if binary.BigEndian.Uint16(b[at+2:])&0xfff9 != 0 { // an offset, or more to come; without both it is a whole packet
				return Fragment
			}
		case extAuth:
			length = (int(b[at+1]) + 2) * 4
		}
		next = b[at]
		if at += length; at > len(b) || at > total {
			return Malformed
		}
	}
	return parseTCP(b[at:], total-at, s)
}

// parseTCP reads a TCP header; length is that of header and payload by the IP header.
func parseTCP(b []byte, length int, s *Segment) Verdict {
	if len(b) < tcpHeader || length < tcpHeader {
		return Malformed
	}
	header := int(b[12]>>4) * 4
	if header < tcpHeader || header > length {
		return Malformed
	}
	s.Src.port = binary.BigEndian.Uint16(b)
	s.Dst.port = binary.BigEndian.Uint16(b[2:])
	s.Seq = binary.BigEndian.Uint32(b[4:])
	s.Ack = binary.BigEndian.Uint32(b[8:])
	s.Flags = Flags(b[13])
	s.Window = binary.BigEndian.Uint16(b[14:])
	s.Len = length - header
	return Accepted
}
