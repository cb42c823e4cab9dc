package tap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// captured is a packet of a capture file.
type captured struct {
	at   int64
	b    []byte
	size int
}

// readPcap reads a capture in the classic format and returns its link type.
func readPcap(t testing.TB, name string) (packets []captured, link uint32) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var order binary.ByteOrder = binary.LittleEndian
	unit := int64(1)
	switch magic := order.Uint32(b); magic {
	case 0xa1b23c4d: // ns
	case 0xa1b2c3d4:
		unit = 1000
	default:
		t.Fatalf("%s: magic %#x", name, magic)
	}
	link = order.Uint32(b[20:])
	for b = b[24:]; len(b) > 0; {
		n := order.Uint32(b[8:])
		packets = append(packets, captured{
			at:   int64(order.Uint32(b))*1e9 + int64(order.Uint32(b[4:]))*unit,
			b:    b[16 : 16+n],
			size: int(order.Uint32(b[12:])),
		})
		b = b[16+n:]
	}
	return packets, link
}

// read is what tcpdump reads in a packet.
type read struct {
	at       int64
	fromPort string
	flags    string
	seq, end uint32
	length   int
}

var tcpdumpLine = regexp.MustCompile(
	`^(\d+)\.(\d{9}) IP6? \S+\.(\d+) > \S+: Flags \[(\S+)\](?:, seq (\d+)(?::(\d+))?)?.*, length (\d+)$`)

func readTcpdump(t testing.TB, name string) (lines []read) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int64 {
		if s == "" {
			return 0
		}
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for line := range strings.Lines(string(b)) {
		m := tcpdumpLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			t.Fatalf("%s: %q", name, line)
		}
		lines = append(lines, read{
			at: number(m[1])*1e9 + number(m[2]), fromPort: m[3], flags: m[4],
			seq: uint32(number(m[5])), end: uint32(number(m[6])), length: int(number(m[7])),
		})
	}
	return lines
}

// capture is a file, parsed, with the stream's true times.
type capture struct {
	packets []Packet
	truth   *model // of what the server sent, one unit a byte
	isn     uint32 // of the server
}

const captureBytes = 50786

func load(t testing.TB, name string, tags ...uint16) capture {
	t.Helper()
	packets, link := readPcap(t, "testdata/"+name+".pcap")
	lines := readTcpdump(t, "testdata/"+name+".txt")
	if len(packets) != len(lines) {
		t.Fatalf("%s: %d packets, %d lines", name, len(packets), len(lines))
	}
	c := capture{truth: newModel(captureBytes)}
	for i, p := range packets {
		var s Segment
		var v Verdict
		switch link {
		case 1: // Ethernet
			b := p.b
			if len(tags) > 0 {
				b = ethernet(p.b[etherHeader:], tags...)
			}
			v = ParseEthernet(b, p.size+vlanTag*len(tags), &s)
		default: // IP
			v = ParseIP(p.b, p.size, &s)
		}
		line := lines[i]
		if v != Accepted || p.at != line.at || s.Len != line.length || strconv.Itoa(int(s.Src.port)) != line.fromPort ||
			strings.Contains(line.flags, "S") != (s.Flags&SYN != 0) || strings.Contains(line.flags, "F") != (s.Flags&FIN != 0) ||
			line.length > 0 && (s.Seq != line.seq || s.Seq+uint32(s.Len) != line.end) {
			t.Fatalf("%s, packet %d: verdict %d, %+v; tcpdump reads %+v", name, i+1, v, s, line)
		}
		out := s.Dst.port == 8000
		if !out && s.Flags&SYN != 0 {
			c.isn = line.seq + 1
		}
		if !out && line.length > 0 {
			start := int(line.seq - c.isn)
			c.truth.deliver(start, start+line.length, line.at)
		}
		var packet Packet
		packet.set(&s, out, p.at)
		c.packets = append(c.packets, packet)
	}
	return c
}

// Captures of real connections, one of them over a bad path: every byte has the stamp that a plain receiver gives it, and at each
// acknowledgement the flow has what the client's kernel had.
func TestReplay(t *testing.T) {
	for _, name := range []string{"loopback", "lossy"} {
		for _, tags := range [][]uint16{nil, {0x8100}, {0x88a8, 0x8100}} {
			if name == "lossy" && tags != nil {
				continue // it has no Ethernet header
			}
			t.Run(fmt.Sprint(name, tags), func(t *testing.T) {
				c := load(t, name, tags...)
				table := NewTable(0)
				var conn *Conn
				acks := 0
				for i := range c.packets {
					p := &c.packets[i]
					table.Add(p)
					if conn == nil {
						conn = table.Get(p.Key)
					}
					if p.Out && p.Flags&(ACK|SYN|FIN) == ACK {
						acks++
						has := int64(p.Ack - c.isn)
						if _, _, ended := conn.In.End(); ended {
							has-- // the FIN
						}
						if conn.In.Next() != has {
							t.Errorf("packet %d: Next %d, the kernel had %d", i+1, conn.In.Next(), has)
						}
					}
				}
				if table.Len() != 1 || table.Stats() != (TableStats{}) || conn.In.Stats() != (FlowStats{}) || acks < 40 {
					t.Errorf("%d connections, %+v, %+v, %d acknowledgements", table.Len(), table.Stats(), conn.In.Stats(), acks)
				}
				for i, want := range c.truth.first {
					if at, ok := conn.In.At(int64(i) + 1); !ok || at != want {
						t.Fatalf("byte %d: %d %v, want %d", i, at, ok, want)
					}
				}
				if end, at, ok := conn.In.End(); !ok || end != captureBytes || at < c.truth.first[captureBytes-1] {
					t.Error(end, at, ok)
				}
				if at, ok := conn.Out.At(500); !ok || at != firstRequest(c) {
					t.Error("the request:", at, ok)
				}
			})
		}
	}
}

func firstRequest(c capture) int64 {
	for _, p := range c.packets {
		if p.Out && p.Len > 0 {
			return p.At
		}
	}
	return 0
}

// The same, while the capture loses packets: a stamp may be missing, but none is wrong. The reader is one that reads whatever
// the kernel acknowledges.
func TestReplayWithDrops(t *testing.T) {
	for _, name := range []string{"loopback", "lossy"} {
		c := load(t, name)
		var dated, undated int64
		for seed := range uint64(200) {
			rng := rand.New(rand.NewPCG(seed, 3))
			table := NewTable(0)
			var conn *Conn
			lost := false
			for i := range c.packets {
				p := &c.packets[i]
				if p.Out && p.Flags&(ACK|SYN|FIN) == ACK && conn != nil {
					if lost {
						table.Add(&Packet{Lost: true})
						lost = false
					}
					conn.In.Assume(min(int64(p.Ack-c.isn), captureBytes), p.At)
				}
				if p.Flags&SYN == 0 && rng.IntN(40) == 0 {
					lost = true
					continue
				}
				if lost {
					table.Add(&Packet{Lost: true})
					lost = false
				}
				table.Add(p)
				if conn == nil {
					conn = table.Get(p.Key)
				}
			}
			for i, want := range c.truth.first {
				at, ok := conn.In.At(int64(i) + 1)
				switch {
				case !ok:
					undated++
				case at != want:
					t.Fatalf("%s, seed %d, byte %d: %d, want %d", name, seed, i, at, want)
				default:
					dated++
				}
			}
		}
		t.Logf("%s: %d bytes dated, %d not", name, dated, undated)
		if undated == 0 || dated < undated/2 {
			t.Errorf("%s: %d bytes dated, %d not", name, dated, undated)
		}
	}
}
