package tap

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

var server = netip.MustParseAddrPort("127.0.0.1:8000")

func key(port int) Key {
	return KeyOf(netip.AddrPortFrom(server.Addr(), uint16(port)), server)
}

// from the server, to the server
func in(k Key, flags Flags, seq uint32, n int, at int64) *Packet {
	return &Packet{Key: k, Flags: flags, Seq: seq, Len: n, At: at, Window: 500}
}

func out(k Key, flags Flags, seq uint32, n int, at int64) *Packet {
	p := in(k, flags, seq, n, at)
	p.Out = true
	return p
}

// open plays a handshake; the first bytes have the sequence numbers behind those given.
func open(t *Table, k Key, local, remote uint32, at int64) {
	t.Add(out(k, SYN, local, 0, at))
	answer := in(k, SYN|ACK, remote, 0, at+1)
	answer.Ack = local + 1
	t.Add(answer)
	t.Add(out(k, ACK, local+1, 0, at+2))
}

func stamp(t *testing.T, f *Flow, end, want int64) {
	t.Helper()
	if at, ok := f.At(end); ok != (want != 0) || at != want {
		t.Errorf("At(%d) = %d %v, want %d", end, at, ok, want)
	}
}

func TestTable(t *testing.T) {
	tb := NewTable(0)
	k := key(40000)
	tb.Add(in(k, ACK, 5000, 10, 900)) // of a connection that was open before
	open(tb, k, 99, 199, 1000)
	tb.Add(out(k, ACK, 100, 50, 1010))
	tb.Add(in(k, ACK, 200, 20, 1020))
	tb.Add(in(k, ACK|FIN, 220, 5, 1030))
	c := tb.Get(k)
	if c == nil || c.Gen != 1 || c.Opened() != 1000 || c.Key != k {
		t.Fatalf("%+v", c)
	}
	stamp(t, &c.Out, 50, 1010)
	stamp(t, &c.In, 1, 1020)
	stamp(t, &c.In, 25, 1030)
	if end, at, ok := c.In.End(); end != 25 || at != 1030 || !ok {
		t.Error(end, at, ok)
	}
	if at, ok := c.In.Begun(); at != 1001 || !ok {
		t.Error(at, ok)
	}
	rst := out(k, RST, 150, 12, 1040) // with a text, which is not part of the stream
	tb.Add(rst)
	if at, ok := c.Out.Reset(); at != 1040 || !ok || c.Out.Next() != 50 {
		t.Error(at, ok, c.Out.Next())
	}
	if tb.Get(key(40001)) != nil || tb.Len() != 1 || tb.Stats() != (TableStats{Strays: 1}) {
		t.Error(tb.Len(), tb.Stats())
	}
	tb.Add(&Packet{Lost: true})
	if tb.Stats().Losses != 1 {
		t.Error(tb.Stats())
	}
	tb.Forget(c)
	tb.Forget(c)
	tb.Forget(nil)
	tb.Add(in(k, ACK, 225, 20, 1050))
	if tb.Get(k) != nil || tb.Len() != 0 || c.In.Next() != 25 || tb.Stats().Strays != 2 {
		t.Error(tb.Len(), c.In.Next(), tb.Stats())
	}
}

// Data in the SYN begins at offset 0, whether the server takes it at once or gets it again.
func TestTableDataOnSYN(t *testing.T) {
	for _, taken := range []bool{true, false} {
		tb := NewTable(0)
		k := key(40000)
		tb.Add(out(k, SYN, 99, 30, 1000))
		answer := in(k, SYN|ACK, 199, 10, 1001) // and an answer in the SYN-ACK
		answer.Ack = 100
		if taken {
			answer.Ack = 130
		}
		tb.Add(answer)
		if !taken {
			tb.Add(out(k, ACK, 100, 30, 1002))
		}
		tb.Add(out(k, ACK, 130, 10, 1003))
		c := tb.Get(k)
		stamp(t, &c.Out, 1, 1000)
		stamp(t, &c.Out, 30, 1000)
		stamp(t, &c.Out, 31, 1003)
		stamp(t, &c.In, 10, 1001)
		if tb.Len() != 1 {
			t.Error(tb.Len())
		}
	}
}

// Ports are used again: each connection has its own offsets, found by when it began.
func TestTablePortReuse(t *testing.T) {
	tb := NewTable(0)
	k := key(40000)
	for i := range int64(3) {
		isn := uint32(1000 * (i + 1))
		open(tb, k, isn-1, isn-1, 10_000*(i+1))
		if i == 1 {
			tb.Add(out(k, SYN, isn-1, 0, 20_001)) // sent again, as was the answer
			again := in(k, SYN|ACK, isn-1, 0, 20_002)
			again.Ack = isn
			tb.Add(again)
		}
		tb.Add(in(k, ACK, isn, 10, 10_000*(i+1)+10))
		tb.Add(in(k, ACK, isn-500, 3, 10_000*(i+1)+11)) // of the one before
	}
	if tb.Len() != 3 {
		t.Fatal(tb.Len())
	}
	newest := tb.Get(k)
	if newest.Gen != 3 || newest.Opened() != 30_000 {
		t.Errorf("%d, %d", newest.Gen, newest.Opened())
	}
	for i := range int64(3) {
		c := tb.Find(k, 10_000*(i+1)-5, 10_000*(i+1)+5)
		if c == nil || int64(c.Gen) != i+1 {
			t.Fatalf("%d: %+v", i, c)
		}
		stamp(t, &c.In, 10, 10_000*(i+1)+10)
		stamp(t, &c.In, 11, 0)
	}
	if tb.Find(k, 10_001, 19_999) != nil || tb.Find(k, 30_001, 99_999) != nil {
		t.Error("found one that did not begin then")
	}

	// A SYN-ACK that answers no SYN of ours, because that was lost, begins a connection too, of one direction.
	answer := in(k, SYN|ACK, 4999, 0, 50_001)
	answer.Ack = 77_000
	tb.Add(answer)
	tb.Add(out(k, ACK, 77_000, 10, 50_002))
	tb.Add(in(k, ACK, 5000, 10, 50_003))
	c := tb.Get(k)
	if _, ok := c.Out.Begun(); ok || c.Gen != 4 {
		t.Error(ok, c.Gen)
	}
	stamp(t, &c.In, 10, 50_003)

	tb.Forget(tb.Find(k, 20_000, 20_000)) // in the middle
	if tb.Find(k, 20_000, 20_000) != nil || tb.Find(k, 10_000, 10_000) == nil || tb.Len() != 3 {
		t.Error(tb.Len())
	}
	tb.Forget(c)
	tb.Add(in(k, ACK, 3010, 10, 60_000)) // the newest that is left has ended: this is of the one forgotten
	if third := tb.Get(k); third.Gen != 3 || third.In.Next() != 10 {
		t.Error(third.Gen, third.In.Next())
	}
}

// The capture has lost the answer to one SYN, and the next SYN on the same ports: the answer to that is not one to the first.
func TestTableAnswerToAnother(t *testing.T) {
	tb := NewTable(0)
	k := key(40000)
	tb.Add(out(k, SYN, 99, 0, 1000))
	tb.Add(out(k, ACK, 100, 10, 1001))
	first := tb.Get(k)
	answer := in(k, SYN|ACK, 199, 0, 2000)
	answer.Ack = 5000
	tb.Add(answer)
	tb.Add(out(k, ACK, 110, 10, 2001))
	if c := tb.Get(k); c == first || c.Gen != 2 || first.Out.Next() != 10 {
		t.Errorf("generation %d, Next %d", c.Gen, first.Out.Next())
	}
}

// A full table forgets the oldest connection that nobody asked for, and follows no new one when all are asked for.
func TestTableBound(t *testing.T) {
	tb := NewTable(3)
	for i := range 4 {
		open(tb, key(40000+i), 0, 0, int64(1000*i+1))
		if i == 0 {
			tb.Get(key(40000))
		}
	}
	if tb.Get(key(40001)) != nil || tb.Len() != 3 || tb.Stats() != (TableStats{Evicted: 1}) {
		t.Fatal(tb.Len(), tb.Stats())
	}
	tb.Get(key(40002))
	tb.Get(key(40003))
	held := tb.Get(key(40000))
	open(tb, key(40004), 0, 0, 9001)
	open(tb, key(40000), 700, 700, 9002) // a port used again, of a connection that is held
	tb.Add(in(key(40000), ACK, 1, 10, 9003))
	if tb.Len() != 3 || held.In.Next() != 0 {
		t.Error("the old connection took what is of a new one:", held.In.Next())
	}
	if s := tb.Stats(); s.Evicted != 1 || s.Refused != 4 { // SYN and SYN-ACK each
		t.Error(s)
	}
	tb.Forget(held)
	open(tb, key(40005), 0, 0, 9004)
	if tb.Get(key(40005)) == nil {
		t.Error("no room after one was forgotten")
	}
}

// Until it is asked for, a connection keeps few marks.
func TestTableMarksUnasked(t *testing.T) {
	tb := NewTable(0)
	for i, asked := range []bool{false, true} {
		k := key(40000 + i)
		open(tb, k, 0, 0, 1000)
		if asked {
			tb.Get(k)
		}
		for j := range uint32(maxMarksUnasked + 1) {
			tb.Add(in(k, ACK, 1+j, 1, 2000+int64(j)))
		}
		want := int64(2000)
		if !asked {
			want = 0
		}
		stamp(t, &tb.Get(k).In, 1, want)
	}
}

// Any number of connections on few ports, one after the other on each, their packets mixed, some of them seen too late: what a
// connection is told to have is what it had.
func TestTableNeverMixes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		ports := rapid.IntRange(1, 4).Draw(t, "ports")
		tb := NewTable(rapid.IntRange(2, 40).Draw(t, "room"))
		type conn struct {
			key    Key
			opened int64
			isn    [2]uint32 // in, out
			sent   [2]int64
			stamps [2][]int64 // per byte
		}
		current := map[Key]*conn{}
		var all []*conn
		now := int64(1)
		for range 300 {
			now += 1 + rng.Int64N(3)
			k := key(40000 + rng.IntN(ports))
			c := current[k]
			if c == nil || rng.IntN(15) == 0 {
				stale := c
				c = &conn{key: k, opened: now, isn: [2]uint32{rng.Uint32(), rng.Uint32()}}
				open(tb, k, c.isn[1]-1, c.isn[0]-1, now)
				now += 2
				current[k], all = c, append(all, c)
				if stale != nil { // an old packet turns up, once more
					tb.Add(in(k, ACK, stale.isn[0], int(stale.sent[0]), now))
				}
				continue
			}
			dir := rng.IntN(2)
			n := 1 + rng.IntN(5)
			p := in(k, ACK, c.isn[dir]+uint32(c.sent[dir]), n, now)
			p.Out = dir == 1
			tb.Add(p)
			c.sent[dir] += int64(n)
			for range n {
				c.stamps[dir] = append(c.stamps[dir], now)
			}
			if rng.IntN(8) == 0 {
				tb.Get(k)
			}
		}
		found := 0
		for _, c := range all {
			got := tb.Find(c.key, c.opened, c.opened+1)
			if got == nil {
				continue // made room
			}
			found++
			for dir, f := range []*Flow{&got.In, &got.Out} {
				for i, want := range c.stamps[dir] {
					if at, ok := f.At(int64(i + 1)); !ok || at != want {
						t.Fatalf("%v opened at %d, direction %d, byte %d: %d %v, want %d", c.key, c.opened, dir, i, at, ok, want)
					}
				}
				if f.Next() != c.sent[dir] {
					t.Fatalf("Next %d, want %d", f.Next(), c.sent[dir])
				}
			}
		}
		if found != tb.Len() || tb.Len() > tb.max {
			t.Fatalf("%d found, %d held, room for %d", found, tb.Len(), tb.max)
		}
	})
}

func TestTableDoesNotAllocate(t *testing.T) {
	tb := NewTable(0)
	for i := range 100 {
		open(tb, key(40000+i), 0, 0, 1)
		tb.Get(key(40000 + i))
	}
	p := *in(key(0), ACK, 1, 100, 2)
	step := func() {
		for i := range 100 {
			p.Key = key(40000 + i)
			tb.Add(&p)
			tb.conns[p.Key].In.Trim(int64(p.Seq))
		}
		p.Seq += 100
		p.At += 10
	}
	for range 200 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleFlow_Assume() {
	tb := NewTable(0)
	k := key(40000)
	open(tb, k, 99, 199, 1000)
	c := tb.Get(k)
	tb.Add(in(k, ACK, 200, 10, 2000))
	tb.Add(&Packet{Lost: true}) // the ring was full: bytes 10 to 20 were not captured
	tb.Add(in(k, ACK, 220, 10, 2500))
	fmt.Println("seen in order:", c.In.Next())
	c.In.Assume(30, 2600) // the reader has got 30 bytes
	for _, m := range c.In.Marks(0, 30, nil) {
		fmt.Println(m.End, m.At, m.Dated())
	}
	// Output:
	// seen in order: 10
	// 10 2000 true
	// 20 0 false
	// 30 2500 true
}
