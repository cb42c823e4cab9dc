package tap

import (
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What a packet costs with the ring: read, parse, flow. The ring is filled by writes on the loopback interface; ns/packet is of
// its reading alone.
func BenchmarkRing(b *testing.B) {
	const conns = 16
	runtime.LockOSThread() // for threadTime
	defer runtime.UnlockOSThread()
	l := listen(b, "127.0.0.1:0")
	defer l.Close()
	to := l.Addr().(*net.TCPAddr).AddrPort()
	tap := openTap(b, to, Options{})
	table := NewTable(0)
	var servers, clients []*net.TCPConn
	defer func() {
		for i := range servers {
			servers[i].Close()
			clients[i].Close()
		}
	}()
	for range conns {
		c, err := net.Dial("tcp", to.String())
		if err != nil {
			b.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		clients, servers = append(clients, c.(*net.TCPConn)), append(servers, s.(*net.TCPConn))
	}
	piece, buf := make([]byte, 200), make([]byte, 200)
	var packets int64
	var reading time.Duration
	add := table.Add
	b.ReportAllocs()
	for b.Loop() {
		for range 500 {
			for i := range servers {
				if _, err := servers[i].Write(piece); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(clients[i], buf); err != nil {
					b.Fatal(err)
				}
			}
		}
		time.Sleep(30 * time.Millisecond) // the last block is closed by then
		before := threadTime(b)
		n, err := tap.Read(0, add)
		reading += threadTime(b) - before
		if err != nil || n == 0 {
			b.Fatal(n, err)
		}
		packets += int64(n)
		for _, c := range table.conns {
			c.In.Trim(c.In.Next())
		}
	}
	if s := tap.Stats(); s.Dropped > 0 {
		b.Fatalf("%+v", s)
	}
	b.ReportMetric(float64(reading)/float64(packets), "ns/packet")
	b.ReportMetric(float64(packets)/float64(b.N), "packets/op")
}

// threadTime is the CPU time of this thread.
func threadTime(b *testing.B) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		b.Fatal(err)
	}
	return time.Duration(t.Nano())
}
