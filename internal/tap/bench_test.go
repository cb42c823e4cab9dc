package tap

import "testing"

// What a packet costs once it is in memory: parse, find its flow among 1,000, mark.
func BenchmarkPacket(b *testing.B) {
	for _, c := range []struct {
		name string
		f    frame
	}{{"IPv4", plain4()}, {"IPv6", plain6()}} {
		b.Run(c.name, func(b *testing.B) {
			const conns = 1000
			tb := NewTable(0)
			c.f.options = 12
			headers := make([][]byte, conns)
			all := make([]*Conn, conns)
			size := len(c.f.ip())
			var s Segment
			var p Packet
			for i := range headers {
				f := c.f
				f.flags, f.seq = SYN|ACK, 0
				h := f.ip()[:size-f.payload-f.options]
				port := h[len(h)-tcpHeader+2:]
				port[0], port[1] = byte(i>>8)+100, byte(i)
				ParseIP(h, size, &s)
				s.Len = 0
				p.set(&s, false, 1)
				tb.Add(&p)
				h[len(h)-tcpHeader+13] = byte(ACK)
				headers[i] = h
				all[i] = tb.Get(p.Key)
			}
			seq := uint32(1)
			b.ReportAllocs()
			i, rounds := 0, 0
			for n := int64(2); b.Loop(); n++ {
				h := headers[i]
				tcp := h[len(h)-tcpHeader:]
				tcp[4], tcp[5], tcp[6], tcp[7] = byte(seq>>24), byte(seq>>16), byte(seq>>8), byte(seq)
				if ParseIP(h, size, &s) != Accepted {
					b.Fatal("not accepted")
				}
				p.set(&s, false, n)
				tb.Add(&p)
				if i++; i == conns {
					i = 0
					seq += uint32(c.f.payload)
					if rounds++; rounds%64 == 0 {
						for _, conn := range all {
							conn.In.Trim(conn.In.Next())
						}
					}
				}
			}
			if all[0].In.Next() == 0 && b.N > conns || tb.Stats().Strays != 0 {
				b.Fatal(all[0].In.Next(), tb.Stats())
			}
		})
	}
}

// What it costs to ask a flow that holds 1,000 marks.
func BenchmarkAt(b *testing.B) {
	r := newRig(0)
	for i := range int64(1000) {
		r.seg(100*i, 100*i+100, 2000+i)
	}
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		if _, ok := r.At(1 + i*7919%100_000); !ok {
			b.Fatal("no stamp")
		}
	}
}
