package memnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadWriteClose(t *testing.T) {
	a, b := Pipe()
	if n, err := a.Write([]byte("hello")); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	buf := make([]byte, 3)
	n, err := b.Read(buf)
	if string(buf[:n]) != "hel" || err != nil {
		t.Fatal(string(buf[:n]), err)
	}
	a.Close()
	if n, err = b.Read(buf); string(buf[:n]) != "lo" || err != nil {
		t.Fatal("bytes before the end are lost:", n, err)
	}
	if _, err = b.Read(buf); err != io.EOF {
		t.Fatal(err)
	}
	if _, err = b.Write([]byte("x")); !errors.Is(err, ErrReset) {
		t.Fatal(err)
	}
	if _, err = a.Read(buf); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

func TestReset(t *testing.T) {
	a, b := Pipe()
	a.Write([]byte("lost"))
	a.Reset()
	if n, err := b.Read(make([]byte, 9)); n != 0 || !errors.Is(err, ErrReset) {
		t.Fatal(n, err)
	}
}

func TestCloseWrite(t *testing.T) {
	a, b := Pipe()
	a.CloseWrite()
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	b.Write([]byte("y"))
	buf := make([]byte, 1)
	if _, err := a.Read(buf); err != nil || buf[0] != 'y' {
		t.Fatal(err)
	}
}

// A deadline ends a read exactly then, also when it is moved while the read waits; data beats a deadline.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		start := time.Now()
		a.SetReadDeadline(start.Add(time.Hour))
		go func() {
			time.Sleep(time.Second)
			a.SetReadDeadline(start.Add(3 * time.Second))
		}()
		_, err := a.Read(make([]byte, 1))
		if d := time.Since(start); !errors.Is(err, os.ErrDeadlineExceeded) || d != 3*time.Second {
			t.Fatal(d, err)
		}
		b.Write([]byte("z"))
		if _, err := a.Read(make([]byte, 1)); err != nil {
			t.Fatal("data after the deadline:", err)
		}
		a.SetReadDeadline(time.Time{})
		go func() {
			time.Sleep(time.Minute)
			b.Write([]byte("z"))
		}()
		if _, err := a.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestNetwork(t *testing.T) {
	var n Network
	if _, err := n.Dial(context.Background(), "tcp", "srv:1"); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	l, err := n.Listen("srv:1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Listen("srv:1"); err == nil {
		t.Fatal("two listeners at one address")
	}
	c, err := n.Dial(context.Background(), "tcp", "srv:1")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c.Write([]byte("q"))
	buf := make([]byte, 1)
	if _, err := s.Read(buf); err != nil || buf[0] != 'q' || s.LocalAddr().String() != "srv:1" || c.RemoteAddr().String() != "srv:1" {
		t.Fatal(err, s.LocalAddr(), c.RemoteAddr())
	}
	l.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := n.Dial(context.Background(), "tcp", "srv:1"); !errors.Is(err, ErrRefused) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := n.Dial(ctx, "tcp", "srv:1"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
