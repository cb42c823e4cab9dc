package tap

import (
	"encoding/binary"
	"testing"
)

// Whatever packets come, and whatever is asked in between, the bounds hold, Next does not go back, marks ascend and agree with
// At.
func FuzzTable(f *testing.F) {
	op := func(kind byte, flags Flags, seq uint32, n uint16, at uint32) []byte {
		b := []byte{kind, byte(flags)}
		b = binary.BigEndian.AppendUint32(b, seq)
		b = binary.BigEndian.AppendUint16(b, n)
		return binary.BigEndian.AppendUint32(b, at)
	}
	var seed []byte
	for _, o := range [][]byte{
		op(0, SYN|ACK, 9, 0, 1), op(32, 0, 0, 0, 0), op(0, ACK, 30, 10, 3), op(0, ACK, 10, 20, 2_000_000), op(48, 0, 30, 0, 9),
		op(64, 0, 15, 0, 0), op(0, FIN|ACK, 40, 5, 7), op(16, 0, 0, 0, 0), op(0, SYN|ACK, 1<<31, 5, 9), op(80, 0, 0, 0, 0),
	} {
		seed = append(seed, o...)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		tb := NewTable(3)
		held := map[*Conn][2]int64{}
		for ; len(b) >= 12; b = b[12:] {
			k := key(40000 + int(b[0]&3))
			out, flags := b[0]&4 != 0, Flags(b[1])
			seq, n := binary.BigEndian.Uint32(b[2:]), int(binary.BigEndian.Uint16(b[6:]))
			at := int64(binary.BigEndian.Uint32(b[8:])) + 1
			c := tb.conns[k]
			switch b[0] >> 4 {
			default:
				tb.Add(&Packet{Key: k, Out: out, Flags: flags, Seq: seq, Ack: seq, Len: n, Window: uint16(n), At: at})
			case 1:
				tb.Add(&Packet{Lost: true})
			case 2:
				if c = tb.Get(k); c != nil {
					held[c] = [2]int64{c.In.Next(), c.Out.Next()}
				}
			case 3:
				if c != nil {
					c.flow(out).Assume(int64(seq), at)
				}
			case 4:
				if c != nil {
					c.flow(out).Trim(int64(seq))
				}
			case 5:
				tb.Forget(c)
			}
			if tb.Len() > 3 {
				t.Fatalf("%d connections", tb.Len())
			}
			for c, was := range held {
				if c.In.Next() < was[0] || c.Out.Next() < was[1] {
					t.Fatalf("Next went back")
				}
				held[c] = [2]int64{c.In.Next(), c.Out.Next()}
				checkFlow(t, &c.In)
				checkFlow(t, &c.Out)
			}
		}
	})
}

func checkFlow(t *testing.T, f *Flow) {
	if len(f.late) > maxLate || len(f.marks)-f.head > maxMarks {
		t.Fatalf("%d pieces, %d marks", len(f.late), len(f.marks)-f.head)
	}
	last := f.next
	for _, p := range f.late {
		if p.start < last || p.start == f.next || p.end <= p.start {
			t.Fatalf("pieces %+v behind %d", f.late, f.next)
		}
		last = p.end
	}
	end := int64(0)
	for _, m := range f.Marks(0, f.next, nil) {
		if m.End <= end {
			t.Fatalf("a mark at %d behind %d", m.End, end)
		}
		if at, ok := f.At(m.End); ok != m.Dated() || at != m.At {
			t.Fatalf("%+v, At: %d %v", m, at, ok)
		}
		end = m.End
	}
	if end != f.next {
		t.Fatalf("marks to %d, Next %d", end, f.next)
	}
}
