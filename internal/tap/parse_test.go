package tap

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func plain4() frame {
	return frame{src: "10.0.0.1:8000", dst: "10.0.0.2:40000", seq: 0xfffffff0, ack: 77, flags: ACK | 8, window: 501, payload: 300}
}

func plain6() frame {
	f := plain4()
	f.src, f.dst = "[2001:db8::1]:8000", "[fe80::2]:40000"
	return f
}

func TestParse(t *testing.T) {
	chain := []byte{extHopByHop, extRouting, extFragment, extAuth, extDestination}
	with := func(f frame, change func(*frame)) frame { change(&f); return f }
	for _, c := range []struct {
		name string
		f    frame
	}{
		{"IPv4", plain4()},
		{"IPv4 with IP and TCP options", with(plain4(), func(f *frame) { f.ipOptions, f.options = 40, 40 })},
		{"IPv4 without payload", with(plain4(), func(f *frame) { f.payload, f.options = 0, 12 })},
		{"IPv4, do not fragment", with(plain4(), func(f *frame) { f.frag = 0x4000 })},
		{"IPv6", plain6()},
		{"IPv6 with options", with(plain6(), func(f *frame) { f.options = 12 })},
		{"IPv6 with every extension header", with(plain6(), func(f *frame) {
			f.extKinds, f.ext = chain, extensions(chain, []int{8, 24, 8, 24, 16})
		})},
	} {
		src, dst := c.f.ends()
		want := Segment{EndpointOf(src), EndpointOf(dst), c.f.seq, c.f.ack, c.f.window, c.f.flags, c.f.payload}
		ip := c.f.ip()
		check := func(what string, parse func([]byte, int, *Segment) Verdict, b []byte, size int) {
			t.Helper()
			var got Segment
			if v := parse(b, size, &got); v != Accepted {
				t.Errorf("%s, %s: verdict %d", c.name, what, v)
			} else if d := cmp.Diff(want, got, cmp.AllowUnexported(Endpoint{})); d != "" {
				t.Errorf("%s, %s: %s", c.name, what, d)
			}
		}
		check("from IP", ParseIP, ip, len(ip))
		headers := len(ip) - c.f.payload - c.f.options
		check("only headers captured", ParseIP, ip[:headers], len(ip))
		for _, tags := range [][]uint16{nil, {0x8100}, {0x88a8, 0x8100}, {0x9100, 0x8100, 0x8100, 0x8100}} {
			e := ethernet(ip, tags...)
			check("Ethernet", ParseEthernet, e, len(e))
			check("Ethernet, headers", ParseEthernet, e[:len(e)-c.f.payload], len(e))
			padded := append(bytes.Clone(e), make([]byte, 46)...)
			check("Ethernet, padded", ParseEthernet, padded, len(padded))
		}
		// every shorter capture is too short for the header, and says so
		for n := range headers {
			var s Segment
			if v := ParseIP(ip[:n], len(ip), &s); v != Malformed {
				t.Errorf("%s: %d bytes give verdict %d", c.name, n, v)
			}
		}
		// a packet above 64 KiB has no length in its header
		big := bytes.Clone(ip)
		if big[0]>>4 == 4 {
			binary.BigEndian.PutUint16(big[2:], 0)
		} else {
			binary.BigEndian.PutUint16(big[4:], 0)
		}
		want.Len = 100_000 - len(ip) + c.f.payload
		check("big", ParseIP, big, 100_000)
	}
}

func TestParseRefuses(t *testing.T) {
	change := func(b []byte, at int, v ...byte) []byte {
		b = bytes.Clone(b)
		copy(b[at:], v)
		return b
	}
	v4, v6 := plain4().ip(), plain6().ip()
	fragment := plain6()
	fragment.extKinds, fragment.ext = []byte{extFragment}, extensions([]byte{extFragment}, []int{8})
	long := plain6()
	long.extKinds, long.ext = []byte{extDestination}, extensions([]byte{extDestination}, []int{16})
	for _, c := range []struct {
		name string
		b    []byte
		want Verdict
	}{
		{"nothing", nil, Malformed},
		{"version 5", change(v4, 0, 0x55), Malformed},
		{"header of 16 bytes", change(v4, 0, 0x44), Malformed},
		{"header beyond the packet", change(v4[:40], 0, 0x4f), Malformed},
		{"length beyond the packet", change(v4, 2, 0xff, 0xff), Malformed},
		{"length within the header", change(v4, 2, 0, 19), Malformed},
		{"length within the TCP header", change(v4, 2, 0, 39), Malformed},
		{"UDP", change(v4, 9, 17), NotTCP},
		{"first fragment", change(v4, 6, 0x20, 0), Fragment},
		{"last fragment", change(v4, 6, 0, 1), Fragment},
		{"TCP header of 16 bytes", change(v4, 32, 0x40), Malformed},
		{"TCP header beyond the packet", change(change(v4, 32, 0xf0), 2, 0, 60), Malformed},
		{"IPv6 length beyond the packet", change(v6, 4, 0xff, 0xff), Malformed},
		{"IPv6 UDP", change(v6, 6, 17), NotTCP},
		{"IPv6, no next header", change(v6, 6, 59), NotTCP},
		{"IPv6 fragment", change(fragment.ip(), 43, 1), Fragment},
		{"IPv6 fragment, not the first", change(fragment.ip(), 42, 0, 8), Fragment},
		{"IPv6 extension beyond the packet", change(long.ip(), 41, 0xff), Malformed},
	} {
		var s Segment
		if got := ParseIP(c.b, len(c.b), &s); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		name string
		b    []byte
		want Verdict
	}{
		{"13 bytes", make([]byte, 13), Malformed},
		{"ARP", change(ethernet(v4), 12, 0x08, 0x06), NotTCP},
		{"IPv6 said, IPv4 there", change(ethernet(v4), 12, 0x86, 0xdd), Malformed},
		{"five tags", ethernet(v4, 0x8100, 0x8100, 0x8100, 0x8100, 0x8100), Malformed},
		{"cut in a tag", ethernet(v4, 0x8100)[:16], Malformed},
	} {
		var s Segment
		if got := ParseEthernet(c.b, len(c.b), &s); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
	var s Segment
	if got := ParseIP(v4, len(v4)-1, &s); got != Malformed {
		t.Errorf("more captured than there was: verdict %d", got)
	}
}

// IPv4 and v4-mapped IPv6 are one.
func TestKey(t *testing.T) {
	a, b := netip.MustParseAddrPort("10.0.0.1:80"), netip.MustParseAddrPort("[::ffff:10.0.0.1]:80")
	other := netip.MustParseAddrPort("[fe80::1%eth0]:81")
	if KeyOf(a, other) != KeyOf(b, netip.MustParseAddrPort("[fe80::1]:81")) {
		t.Error("two keys for one connection")
	}
	if got := KeyOf(b, other).String(); got != "10.0.0.1:80 - [fe80::1]:81" {
		t.Error(got)
	}
	if EndpointOf(b).AddrPort() != a {
		t.Error(EndpointOf(b).AddrPort())
	}
	if n := testing.AllocsPerRun(100, func() {
		if KeyOf(a, other) == KeyOf(other, a) {
			t.Error("direction")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever comes, a parser says what it is without a fault, and what it accepts makes sense. Cutting the capture changes a
// verdict to Malformed or nothing.
func FuzzParse(f *testing.F) {
	f.Add(plain4().ip(), 0)
	f.Add(plain6().ip(), 1460)
	long := plain6()
	long.extKinds, long.ext = []byte{extHopByHop, extFragment}, extensions([]byte{extHopByHop, extFragment}, []int{16, 8})
	f.Add(long.ip(), 0)
	f.Add(ethernet(plain4().ip(), 0x88a8, 0x8100), 6)
	f.Fuzz(func(t *testing.T, b []byte, beyond int) {
		size := len(b) + max(0, min(beyond, 1<<20))
		for _, parse := range []func([]byte, int, *Segment) Verdict{ParseIP, ParseEthernet} {
			var s Segment
			v := parse(b, size, &s)
			if v > Malformed {
				t.Fatalf("verdict %d", v)
			}
			if v == Accepted && (s.Len < 0 || s.Len > size-40) {
				t.Fatalf("%d bytes of payload in a packet of %d", s.Len, size)
			}
			for n := range len(b) {
				var cut Segment
				switch got := parse(b[:n], size, &cut); {
				case got == Malformed:
				case got != v || v == Accepted && cut != s:
					t.Fatalf("cut at %d: %d %+v, whole: %d %+v", n, got, cut, v, s)
				}
			}
		}
	})
}
