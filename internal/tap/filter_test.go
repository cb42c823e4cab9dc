package tap

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// run interprets a filter as the kernel does and returns how many bytes are kept.
func run(t *testing.T, program []Instruction, packet []byte, protocol uint16, kind uint8) int {
	t.Helper()
	var a, x uint32
	var memory [16]uint32
	load := func(at uint32, size int) (uint32, bool) {
		if int64(at)+int64(size) > int64(len(packet)) {
			return 0, false
		}
		var v uint32
		for _, b := range packet[at : int(at)+size] {
			v = v<<8 | uint32(b)
		}
		return v, true
	}
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		ok := true
		jump := func(yes bool) {
			if yes {
				pc += int(in.Jt)
			} else {
				pc += int(in.Jf)
			}
		}
		switch in.Code {
		case opLoadWord:
			switch in.K {
			case loadProtocol:
				a = uint32(protocol)
			case loadKind:
				a = uint32(kind)
			default:
				a, ok = load(in.K, 4)
			}
		case opLoadHalf:
			a, ok = load(in.K, 2)
		case opLoadByte:
			a, ok = load(in.K, 1)
		case opLoadHalfX:
			a, ok = load(x+in.K, 2)
		case opLoadByteX:
			a, ok = load(x+in.K, 1)
		case opLoadXConst:
			x = in.K
		case opLoadXMem:
			x = memory[in.K]
		case opLoadXLen:
			x, ok = load(in.K, 1)
			x = x & 15 * 4
		case opStore:
			memory[in.K] = a
		case opAdd:
			a += in.K
		case opAddX:
			a += x
		case opAnd:
			a &= in.K
		case opShiftRight:
			a >>= in.K
		case opJump:
			pc += int(in.K)
		case opEqual:
			jump(a == in.K)
		case opEqualX:
			jump(a == x)
		case opAnyBit:
			jump(a&in.K != 0)
		case opToA:
			a = x
		case opReturn:
			return int(in.K)
		case opReturnA:
			return int(a)
		default:
			t.Fatalf("instruction %d: code %#x", pc, in.Code)
		}
		if !ok {
			return 0 // a load beyond the packet
		}
	}
	t.Fatal("the program ends without a return")
	return 0
}

func protocolOf(b []byte) uint16 {
	if b[0]>>4 == 6 {
		return etherIPv6
	}
	return etherIPv4
}

func TestFilter(t *testing.T) {
	const otherHost = 3
	program, err := Filter([]uint16{8000, 443})
	if err != nil {
		t.Fatal(err)
	}
	response4, response6 := plain4(), plain6() // from port 8000
	with := func(f frame, change func(*frame)) frame { change(&f); return f }
	request := func(f frame) frame { f.src, f.dst = f.dst, f.src; return f }
	ack := func(flags Flags) func(*frame) { return func(f *frame) { f.payload, f.options, f.flags = 0, 12, flags } }
	extended := func(f *frame) {
		f.extKinds, f.ext = []byte{extDestination}, extensions([]byte{extDestination}, []int{8})
	}
	for _, c := range []struct {
		name string
		f    frame
		kind uint8
		want int
	}{
		{"response", response4, kindHost, 40},
		{"response, IPv6", response6, kindHost, 60},
		{"response with IP options", with(response4, func(f *frame) { f.ipOptions = 40 }), kindHost, 80},
		{"response going out: we are the server, or it is the loopback's first look", response4, kindOutgoing, 0},
		{"response to somebody else", response4, otherHost, 0},
		{"request", request(response4), kindOutgoing, 40},
		{"request, IPv6", request(response6), kindOutgoing, 60},
		{"request coming in", request(response4), kindHost, 0},
		{"the second port", with(response4, func(f *frame) { f.src = "10.0.0.1:443" }), kindHost, 40},
		{"another port", with(response4, func(f *frame) { f.src = "10.0.0.1:8001" }), kindHost, 0},
		{"a local port that is one of the remote ones", with(response4, func(f *frame) {
			f.src, f.dst = "10.0.0.1:9", "10.0.0.2:8000"
		}), kindHost, 0},
		{"ACK", with(response4, ack(ACK)), kindHost, 0},
		{"ACK, IPv6", with(response6, ack(ACK)), kindHost, 0},
		{"ACK with IP options", with(response4, func(f *frame) { ack(ACK)(f); f.ipOptions = 4 }), kindHost, 0},
		{"SYN-ACK", with(response4, ack(SYN|ACK)), kindHost, 40},
		{"FIN", with(response6, ack(FIN|ACK)), kindHost, 60},
		{"RST", with(response4, ack(RST)), kindHost, 40},
		{"ACK with a window of 0", with(request(response4), func(f *frame) { ack(ACK)(f); f.window = 0 }), kindOutgoing, 40},
		{"one byte", with(response4, func(f *frame) { f.payload = 1 }), kindHost, 40},
		{"one byte, IPv6", with(response6, func(f *frame) { f.payload = 1 }), kindHost, 60},
		{"a fragment", with(response4, func(f *frame) { f.frag = 0x2000 }), kindHost, 0},
		{"the last fragment", with(response4, func(f *frame) { f.frag = 7 }), kindHost, 0},
		{"do not fragment", with(response4, func(f *frame) { f.frag = 0x4000 }), kindHost, 40},
		{"UDP", with(response4, func(f *frame) { f.proto = 17 }), kindHost, 0},
		{"UDP, IPv6", with(response6, func(f *frame) { f.proto = 17 }), kindHost, 0},
		{"extension headers", with(response6, extended), kindHost, snapLength},
	} {
		b := c.f.ip()
		if got := run(t, program, b, protocolOf(b), c.kind); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
	b := response4.ip()
	if got := run(t, program, b, 0x0806, kindHost); got != 0 {
		t.Error("ARP:", got)
	}
	for n := range 34 { // up to the last byte that it looks at
		if got := run(t, program, b[:n], etherIPv4, kindHost); got != 0 {
			t.Errorf("%d bytes of a packet: %d", n, got)
		}
	}
	binary.BigEndian.PutUint16(b[2:], 0)
	if got := run(t, program, b, etherIPv4, kindHost); got != 40 {
		t.Error("a packet above 64 KiB:", got)
	}
}

func TestFilterBounds(t *testing.T) {
	ports := make([]uint16, maxPorts+1)
	for i := range ports {
		ports[i] = uint16(1000 + i)
	}
	if _, err := Filter(nil); err == nil {
		t.Error("a filter of no port")
	}
	if _, err := Filter(ports); err == nil {
		t.Errorf("a filter of %d ports", len(ports))
	}
	program, err := Filter(ports[:maxPorts])
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"1000", "1063"} {
		f := plain6()
		f.src = "[2001:db8::1]:" + port
		if got := run(t, program, f.ip(), etherIPv6, kindHost); got != 60 {
			t.Errorf("port %s: %d", port, got)
		}
	}
}

// The filter keeps what the parser makes something of, and what it keeps of a packet is enough for the same result.
func TestFilterAgreesWithParser(t *testing.T) {
	program, err := Filter([]uint16{8000})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := plain4()
		if rapid.Bool().Draw(t, "IPv6") {
			f = plain6()
		} else {
			f.ipOptions = 4 * rapid.IntRange(0, 10).Draw(t, "IP options")
		}
		f.payload = rapid.SampledFrom([]int{0, 0, 1, 2, 300, 1460}).Draw(t, "payload")
		f.options = 4 * rapid.IntRange(0, 10).Draw(t, "options")
		f.flags = Flags(rapid.Byte().Draw(t, "flags"))
		f.window = rapid.SampledFrom([]uint16{0, 1, 500}).Draw(t, "window")
		f.src = rapid.SampledFrom([]string{f.src, f.dst}).Draw(t, "source")
		kind := rapid.SampledFrom([]uint8{kindHost, kindOutgoing}).Draw(t, "kind")
		b := f.ip()
		got := run(new(testing.T), program, b, protocolOf(b), kind)
		var s, cut Segment
		if v := ParseIP(b, len(b), &s); v != Accepted {
			t.Fatal(v)
		}
		wanted := (kind == kindHost && s.Src.port == 8000 || kind == kindOutgoing && s.Dst.port == 8000) &&
			(s.Len > 0 || s.Flags&(SYN|FIN|RST) != 0 || s.Window == 0)
		if wanted != (got > 0) {
			t.Fatalf("%+v: kept %d", s, got)
		}
		if wanted {
			if v := ParseIP(b[:min(got, len(b))], len(b), &cut); v != Accepted || cut != s {
				t.Fatalf("%d bytes kept: %d %+v, want %+v", got, v, cut, s)
			}
		}
	})
}
