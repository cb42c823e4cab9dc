package tap

import "fmt"

// Instruction is one of classic BPF.
type Instruction struct {
	Code   uint16
	Jt, Jf uint8 // how many instructions to skip
	K      uint32
}

// maxPorts bounds the ports of a filter: each is one comparison a packet, and a jump reaches 255 instructions.
const maxPorts = 64

// snapLength is how much of a packet with extension headers is kept: room for 68 bytes of them. Of other packets the filter keeps
// exactly the headers that are read.
const snapLength = 128

// Operations of classic BPF, as the kernel numbers them.
const (
	opLoadWord   = 0x20 // A = word at K
	opLoadHalf   = 0x28
	opLoadByte   = 0x30
	opLoadHalfX  = 0x48 // A = half word at X + K
	opLoadByteX  = 0x50
	opLoadXConst = 0x01 // X = K
	opLoadXMem   = 0x61 // X = M[K]
	opLoadXLen   = 0xb1 // X = 4 * (byte at K & 15)
	opStore      = 0x02 // M[K] = A
	opAdd        = 0x04 // A += K
	opAddX       = 0x0c // A += X
	opAnd        = 0x54
	opShiftRight = 0x74
	opJump       = 0x05
	opEqual      = 0x15 // A == K
	opEqualX     = 0x1d // A == X
	opAnyBit     = 0x45 // A & K != 0
	opToA        = 0x87 // A = X
	opReturn     = 0x06 // keep K bytes, 0 = drop
	opReturnA    = 0x16
)

// What the kernel knows of a packet besides its bytes, at addresses from -0x1000.
const (
	loadProtocol = 0xfffff000 // EtherType
	loadKind     = 0xfffff004 // one of the kinds
)

// Kinds of packets.
const (
	kindHost     = 0 // to this host
	kindOutgoing = 4 // from this host
)

// Filter returns a program for packets that begin at their IP header (SOCK_DGRAM). It keeps the headers of TCP segments that come
// in from one of the ports or go out to one, so that of what passes the loopback interface twice each packet is seen once. It
// drops pure acknowledgements, but for those with a window of 0, and pieces of IP packets. IPv6 packets with extension headers,
// which classic BPF cannot follow, are kept whatever they carry, up to 128 bytes.
func Filter(ports []uint16) ([]Instruction, error) {
	if len(ports) == 0 || len(ports) > maxPorts {
		return nil, fmt.Errorf("tap: a filter takes 1 to %d ports, not %d", maxPorts, len(ports))
	}
	const length, header = 0, 1 // memory: of the IP packet, and where TCP begins
	var p program
	p.op(opLoadWord, loadProtocol)
	p.jump(opEqual, etherIPv4, "ipv4", "")
	p.jump(opEqual, etherIPv6, "ipv6", "drop")

	p.label("ipv4")
	p.op(opLoadByte, 9)
	p.jump(opEqual, protoTCP, "", "drop")
	p.op(opLoadHalf, 6)
	p.jump(opAnyBit, 0x3fff, "drop", "")
	p.op(opLoadHalf, 2)
	p.op(opStore, length)
	p.op(opLoadXLen, 0)
	p.goTo("tcp")

	p.label("ipv6")
	p.op(opLoadByte, 6)
	p.jump(opEqual, protoTCP, "plain", "")
	for _, ext := range []uint32{extHopByHop, extRouting, extFragment, extAuth, extDestination} {
		p.jump(opEqual, ext, "whole", "")
	}
	p.goTo("drop")
	p.label("plain")
	p.op(opLoadHalf, 4)
	p.op(opAdd, ipv6Header)
	p.op(opStore, length)
	p.op(opLoadXConst, ipv6Header)

	p.label("tcp") // X is where TCP begins
	p.op(opLoadByteX, 13)
	p.jump(opAnyBit, uint32(FIN|SYN|RST), "ports", "")
	p.op(opLoadHalfX, 14)
	p.jump(opEqual, 0, "ports", "")
	p.op(opToA, 0)
	p.op(opStore, header)
	p.op(opLoadByteX, 12)
	p.op(opAnd, 0xf0)
	p.op(opShiftRight, 2)
	p.op(opAddX, 0) // A is where the payload begins; a length of 0, of packets above 64 KiB, never equals it
	p.op(opLoadXMem, length)
	p.jump(opEqualX, 0, "drop", "")
	p.op(opLoadXMem, header)

	p.label("ports")
	p.op(opLoadWord, loadKind)
	p.jump(opEqual, kindOutgoing, "out", "")
	p.jump(opEqual, kindHost, "", "drop")
	p.op(opLoadHalfX, 0)
	p.goTo("compare")
	p.label("out")
	p.op(opLoadHalfX, 2)
	p.label("compare")
	for _, port := range ports {
		p.jump(opEqual, uint32(port), "keep", "")
	}
	p.goTo("drop")

	p.label("keep")
	p.op(opToA, 0)
	p.op(opAdd, tcpHeader)
	p.op(opReturnA, 0)
	p.label("whole")
	p.op(opReturn, snapLength)
	p.label("drop")
	p.op(opReturn, 0)
	return p.link()
}

// program is a filter being written, with jumps to labels.
type program struct {
	code   []Instruction
	jumps  map[int][2]string // targets when true, when false; "" is the next instruction
	labels map[string]int
}

func (p *program) op(code uint16, k uint32) { p.code = append(p.code, Instruction{Code: code, K: k}) }

func (p *program) jump(code uint16, k uint32, yes, no string) {
	if p.jumps == nil {
		p.jumps = map[int][2]string{}
	}
	p.jumps[len(p.code)] = [2]string{yes, no}
	p.op(code, k)
}

func (p *program) goTo(label string) { p.jump(opJump, 0, label, label) }

func (p *program) label(name string) {
	if p.labels == nil {
		p.labels = map[string]int{}
	}
	p.labels[name] = len(p.code)
}

// link puts the distances in.
func (p *program) link() ([]Instruction, error) {
	for at, targets := range p.jumps {
		for i, label := range targets {
			if label == "" {
				continue
			}
			to, ok := p.labels[label]
			skip := to - at - 1
			if !ok || skip < 0 || skip > 255 {
				return nil, fmt.Errorf("tap: filter jump of %d to %q", skip, label)
			}
			switch {
			case p.code[at].Code == opJump:
				p.code[at].K = uint32(skip)
			case i == 0:
				p.code[at].Jt = uint8(skip)
			default:
				p.code[at].Jf = uint8(skip)
			}
		}
	}
	return p.code, nil
}
