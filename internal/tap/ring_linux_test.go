package tap

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// memoryRing is a Tap whose ring the test writes in the kernel's place.
func memoryRing(blocks int) *Tap {
	const size = 4096
	return &Tap{fd: -1, ring: make([]byte, blocks*size), block: size, blocks: blocks, remotes: []Endpoint{{port: 8000}}}
}

// put is a packet that the kernel puts in.
type put struct {
	b    []byte
	kind uint8
	at   int64
}

// fill writes a block; a closed one is handed over.
func (t *Tap) fill(block int, status uint32, packets ...put) {
	b := t.ring[block*t.block : (block+1)*t.block]
	clear(b)
	h := (*unix.TpacketHdrV1)(unsafe.Pointer(&b[8]))
	h.Block_status, h.Num_pkts, h.Offset_to_first_pkt = status, uint32(len(packets)), 48
	at := 48
	for _, p := range packets {
		const net = 96
		next := (net + len(p.b) + 7) &^ 7
		*(*unix.Tpacket3Hdr)(unsafe.Pointer(&b[at])) = unix.Tpacket3Hdr{
			Next_offset: uint32(next), Sec: uint32(p.at / 1e9), Nsec: uint32(p.at % 1e9),
			Snaplen: uint32(len(p.b)), Len: uint32(binary.BigEndian.Uint16(p.b[2:])), Net: net,
		}
		(*unix.RawSockaddrLinklayer)(unsafe.Pointer(&b[at+packetAddress])).Pkttype = p.kind
		copy(b[at+net:], p.b)
		at += next
	}
}

func TestRing(t *testing.T) {
	response := plain4()
	response.options = 12
	header := response.ip()[:52]
	request := plain4()
	request.src, request.dst = request.dst, request.src
	other := plain4()
	other.src = "10.0.0.1:9"
	fragment := plain4()
	fragment.frag = 1
	udp := plain4()
	udp.proto = 17

	tap := memoryRing(4)
	tap.fill(0, unix.TP_STATUS_USER, put{header, kindHost, 1_000_000_001}, put{request.ip(), kindOutgoing, 1_000_000_002})
	tap.fill(1, unix.TP_STATUS_USER|unix.TP_STATUS_LOSING, put{header, kindHost, 1_000_000_005})
	tap.fill(2, unix.TP_STATUS_USER,
		put{header, kindOutgoing, 1_000_000_006}, // sent by a server here
		put{other.ip(), kindHost, 1_000_000_006},
		put{udp.ip(), kindHost, 1_000_000_006},
		put{fragment.ip(), kindHost, 1_000_000_006},
		put{header[:30], kindHost, 1_000_000_006},
		put{header, kindHost, 1_000_000_004}) // stamped by another processor
	tap.fill(3, unix.TP_STATUS_KERNEL, put{header, kindHost, 1_000_000_007}) // not handed over yet

	type seen struct {
		out, lost bool
		length    int
		at        int64
	}
	var got []seen
	each := func(p *Packet) { got = append(got, seen{p.Out, p.Lost, p.Len, p.At}) }
	if n, err := tap.Read(0, each); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	want := []seen{
		{false, false, 300, 1_000_000_001},
		{true, false, 300, 1_000_000_002},
		{false, true, 0, 0},
		{false, false, 300, 1_000_000_005},
		{false, false, 300, 1_000_000_004},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(seen{})); d != "" {
		t.Error(d)
	}
	if s := tap.Stats(); s != (Stats{Packets: 4, Malformed: 1, Fragments: 1, Other: 3}) {
		t.Errorf("%+v", s)
	}
	if tap.SeenUntil() != 1_000_000_006 {
		t.Errorf("seen until %d: a packet waits in the block that is being filled", tap.SeenUntil())
	}
	for i := range 3 {
		if status := *(*uint32)(unsafe.Pointer(&tap.ring[i*tap.block+8])); status != unix.TP_STATUS_KERNEL {
			t.Errorf("block %d was not given back: %#x", i, status)
		}
	}

	tap.fill(3, unix.TP_STATUS_USER, put{header, kindHost, 1_000_000_008})
	tap.fill(0, unix.TP_STATUS_USER, put{header, kindHost, 999_000_000}) // the wall clock was set back
	tap.fill(1, unix.TP_STATUS_KERNEL, put{header, kindHost, 0})
	got = nil
	if n, err := tap.Read(0, each); n != 2 || err != nil || len(got) != 2 || tap.SeenUntil() != 999_000_000 {
		t.Error(n, err, got, tap.SeenUntil())
	}

	before := wall()
	tap.fill(1, unix.TP_STATUS_KERNEL)
	if n := tap.drain(each); n != 0 || tap.SeenUntil() < before {
		t.Errorf("%d packets, seen until %d, it is %d", n, tap.SeenUntil(), before)
	}
}

// A block that contradicts itself is left where it does.
func TestRingDamaged(t *testing.T) {
	header := plain4().ip()[:40]
	for name, damage := range map[string]func(h *unix.TpacketHdrV1, p *unix.Tpacket3Hdr){
		"first packet beyond the block": func(h *unix.TpacketHdrV1, _ *unix.Tpacket3Hdr) { h.Offset_to_first_pkt = 4090 },
		"data beyond the block":         func(_ *unix.TpacketHdrV1, p *unix.Tpacket3Hdr) { p.Snaplen = 5000 },
		"next packet beyond the block":  func(_ *unix.TpacketHdrV1, p *unix.Tpacket3Hdr) { p.Next_offset = 1 << 20 },
		"no next packet":                func(_ *unix.TpacketHdrV1, p *unix.Tpacket3Hdr) { p.Next_offset = 0 },
	} {
		tap := memoryRing(2)
		tap.fill(0, unix.TP_STATUS_USER, put{header, kindHost, 5}, put{header, kindHost, 6})
		damage((*unix.TpacketHdrV1)(unsafe.Pointer(&tap.ring[8])), (*unix.Tpacket3Hdr)(unsafe.Pointer(&tap.ring[48])))
		n := tap.drain(func(*Packet) {})
		if n > 1 || tap.Stats().Malformed != 1 || tap.cur != 1 {
			t.Errorf("%s: %d packets, %+v", name, n, tap.Stats())
		}
	}
}
