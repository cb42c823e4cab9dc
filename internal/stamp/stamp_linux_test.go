package stamp

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// control makes a control message of a level and type with some 64-bit words.
func control(level, kind int32, words ...uint64) []byte {
	b := make([]byte, unix.SizeofCmsghdr, 64)
	binary.NativeEndian.PutUint32(b[8:], uint32(level))
	binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	for _, w := range words {
		b = binary.NativeEndian.AppendUint64(b, w)
	}
	binary.NativeEndian.PutUint64(b, uint64(len(b)))
	return b
}

func TestParse(t *testing.T) {
	if unix.SizeofCmsghdr != 16 {
		t.Skip("the messages here are those of 64-bit systems")
	}
	ours := control(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1_700_000_000, 123_456_789)
	other := control(unix.SOL_IP, 7, 42)
	long := control(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1, 2)
	long[0]++ // longer than it is
	none := control(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1, 2)
	none[0] = 0 // shorter than its head
	for name, c := range map[string]struct {
		b    []byte
		want int64
	}{
		"nothing":            {nil, 0},
		"the stamp":          {ours, 1_700_000_000_123_456_789},
		"behind another":     {append(other[:len(other):len(other)], ours...), 1_700_000_000_123_456_789},
		"another":            {other, 0},
		"half a stamp":       {control(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS_NEW, 1), 0},
		"of another level":   {control(unix.SOL_IP, unix.SO_TIMESTAMPNS_NEW, 1, 2), 0},
		"a head cut short":   {ours[:8], 0},
		"longer than it is":  {long, 0},
		"shorter than heads": {none, 0},
	} {
		if got := Parse(c.b); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func pair(t *testing.T) (near, far *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// A stamp is of the arrival, however late the bytes are read.
func TestConn(t *testing.T) {
	g := OpenGuard()
	defer g.Close()
	near, far := pair(t)
	c, err := New(near)
	if err != nil {
		t.Skip("the kernel stamps no reads: ", err)
	}
	var nc net.Conn = c
	buf := make([]byte, 8)
	if n, err := nc.Read(nil); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	good := 0
	for range 1000 { // the kernel begins to stamp a little after it was asked, and may pass the bytes on a little late
		begin := time.Now().UnixNano()
		if _, err := far.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		late := time.Now().UnixNano()
		if n, err := nc.Read(buf); err != nil || string(buf[:n]) != "abc" {
			t.Fatalf("%q, %v", buf[:n], err)
		}
		at := c.Arrived()
		if at != 0 && at < begin {
			t.Fatalf("it arrived %d ns before it was written", begin-at)
		}
		if at == 0 || at > late {
			continue
		}
		if good++; good == 3 {
			break
		}
	}
	if good < 3 {
		t.Error("no stamp is of before the read")
	}
	far.Close()
	if _, err := nc.Read(buf); err != io.EOF {
		t.Errorf("%v", err)
	}
	near.Close()
	if _, err := nc.Read(buf); err == nil {
		t.Error("a closed connection is read")
	}
	if _, err := New(near); err == nil {
		t.Error("a closed connection is stamped")
	}
	(*Guard)(nil).Close()
}
