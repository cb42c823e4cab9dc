package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

// serveTCP runs a server on a loopback socket. The tests on it look at order, bytes and ends, and that nothing is early; how late a
// write is depends on the machine.
func serveTCP(t testing.TB, cfg Config) (s *Server, addr string, stop func()) {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	return s, l.Addr().String(), func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
}

func dialTCP(t testing.TB, addr string) *client {
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return nil
	}
	start := time.Now()
	return &client{nc: nc, now: func() time.Duration { return time.Since(start) }}
}

// The arrival of a request is that of its last byte at the socket, by the kernel's stamp where there is one.
func TestArrivalStamp(t *testing.T) {
	s, addr, stop := serveTCP(t, Config{Mode: ModeExact, TTFT: Fixed(time.Millisecond)})
	defer stop()
	c := dialTCP(t, addr)
	if c == nil {
		return
	}
	defer c.nc.Close()
	socket := 0
	for i := range 200 { // the kernel begins to stamp a little after it was asked
		request := post("/v1/completions", `{"prompt":"x","max_tokens":1,"stream":true}`)
		cut := len(request) - 3
		io.WriteString(c.nc, request[:cut])
		time.Sleep(2 * time.Millisecond)
		begin := time.Now().UnixNano()
		if a := c.call(request[cut:]); a.status != 200 {
			t.Fatalf("%+v", a)
		}
		end := time.Now().UnixNano()
		all := s.Truth()
		for deadline := time.Now().Add(10 * time.Second); len(all) <= i && time.Now().Before(deadline); all = s.Truth() {
			time.Sleep(time.Millisecond) // it is kept once the answer is over, which the client knows first
		}
		if len(all) <= i {
			t.Fatalf("%d records after %d answers", len(all), i+1)
		}
		r := all[i]
		if r.ArrivalWall < begin || r.ArrivalWall > end {
			t.Fatalf("by its %s stamp it arrived %d ns after its last bytes were sent, the answer came after %d", r.ArrivalStamp, r.ArrivalWall-begin, end-begin)
		}
		if d := r.ArrivalWall - s.start.UnixNano() - int64(r.Arrival); d < -int64(time.Millisecond) || d > int64(time.Millisecond) {
			t.Fatalf("wall clock and offset of the arrival are %d ns apart", d)
		}
		if r.ArrivalStamp == "socket" {
			socket++
		}
		if socket == 3 {
			return
		}
	}
	if runtime.GOOS == "linux" {
		t.Error("no arrival has the kernel's stamp")
	}
}

// Streams and whole answers over real sockets, by the pacer and by plain timers, in exact and in engine mode.
func TestLoopback(t *testing.T) {
	for _, cfg := range []Config{
		{Mode: ModeExact, Spin: DefaultSpin, TTFT: Fixed(20 * time.Millisecond), ITL: Fixed(3 * time.Millisecond)},
		{Mode: ModeExact, TTFT: Fixed(20 * time.Millisecond), ITL: Fixed(3 * time.Millisecond)},
		{Mode: ModeEngine, Spin: DefaultSpin, Engine: EngineConfig{Cost: &Cost{Base: 3 * time.Millisecond}}},
	} {
		s, addr, stop := serveTCP(t, cfg)
		const users, turns, tokens = 12, 3, 15
		var wg sync.WaitGroup
		for u := range users {
			wg.Go(func() {
				c := dialTCP(t, addr)
				if c == nil {
					return
				}
				defer c.nc.Close()
				for turn := range turns {
					rest := fmt.Sprintf(`,"max_tokens":%d,"ignore_eos":true`, tokens)
					if turn > 0 {
						rest += `,"stream":true`
					}
					a := c.call(post("/v1/chat/completions", chat("", fmt.Sprint("hello ", u), rest)))
					switch {
					case a.status != 200 || a.err != nil || !a.keep:
						t.Errorf("status %d, %v", a.status, a.err)
					case turn > 0 && len(a.events()) != tokens+2:
						t.Errorf("%d events", len(a.events()))
					}
				}
			})
		}
		wg.Wait()
		stop()
		truth := s.Truth()
		if len(truth) != users*turns {
			t.Errorf("%d records", len(truth))
		}
		for _, rec := range truth {
			if rec.Outcome != Complete || rec.Output != tokens {
				t.Fatalf("%+v", rec)
			}
			for i := range rec.Write {
				if rec.Write[i] < rec.Due[i] || i > 0 && rec.Write[i] < rec.Write[i-1] {
					t.Fatalf("write %d at %v, due at %v: %v", i, rec.Write[i], rec.Due[i], rec.Write)
				}
			}
		}
		if p := s.Pace(); p.Writes < users*turns || p.MaxLate <= 0 {
			t.Errorf("%+v", p)
		}
	}
}

// A client that does not read fills its socket: its answer waits and loses nothing, the others go on.
func TestFullSocket(t *testing.T) {
	s, addr, stop := serveTCP(t, Config{Mode: ModeExact, Spin: DefaultSpin, ITL: Fixed(time.Microsecond)})
	slow := dialTCP(t, addr)
	slow.nc.(*net.TCPConn).SetReadBuffer(128 << 10)
	const tokens = 30_000 // some 6 MB: more than both buffers hold
	rest := fmt.Sprintf(`,"max_tokens":%d,"ignore_eos":true,"stream":true`, tokens)
	if _, err := io.WriteString(slow.nc, post("/v1/chat/completions", chat("", "hi", rest))); err != nil {
		t.Fatal(err)
	}
	for s.Pace().HeldUp == 0 {
		time.Sleep(time.Millisecond)
	}
	other := dialTCP(t, addr)
	for range 3 {
		if a := other.call(post("/v1/completions", `{"prompt":"x","max_tokens":5,"stream":true}`)); a.err != nil || len(a.events()) != 6 {
			t.Errorf("%+v", a)
		}
	}
	a := slow.call("")
	if ev := a.events(); a.err != nil || len(ev) != tokens+2 || ev[tokens+1].data != "[DONE]" {
		t.Errorf("%d events, %v", len(ev), a.err)
	}
	// the connection is as good as before
	if a := slow.call(post("/v1/completions", `{"prompt":"x","max_tokens":5,"stream":true}`)); a.err != nil || len(a.events()) != 6 {
		t.Errorf("%+v", a)
	}
	slow.nc.Close()
	other.nc.Close()
	stop()
	held := 0
	for _, rec := range s.Truth() {
		held += rec.Held
		if rec.Outcome != Complete {
			t.Errorf("%+v", rec.Outcome)
		}
	}
	if held == 0 {
		t.Error("the truth does not tell of the full socket")
	}
}

// Faults over real sockets: a reset is a reset, a cut is not, and a client that leaves is noticed by the pacer too.
func TestLoopbackFaults(t *testing.T) {
	for _, c := range []struct {
		fault string
		ends  error
	}{{"cut", io.EOF}, {"reset", syscall.ECONNRESET}} {
		list, err := ParseFaults(c.fault + ":1")
		if err != nil {
			t.Fatal(err)
		}
		s, addr, stop := serveTCP(t, Config{Mode: ModeExact, Spin: DefaultSpin, Faults: list, ITL: Fixed(time.Millisecond)})
		cl := dialTCP(t, addr)
		a := cl.call(post("/v1/completions", `{"prompt":"x","max_tokens":9,"stream":true}`))
		if !errors.Is(a.readErr, c.ends) || !errors.Is(a.err, wire.ErrCut) {
			t.Errorf("%s: %v, %v", c.fault, a.readErr, a.err)
		}
		cl.nc.Close()
		stop()
		if rec := s.Truth()[0]; rec.Outcome != WasCut || rec.Output != 2 {
			t.Errorf("%s: %+v", c.fault, rec)
		}
	}
	s, addr, stop := serveTCP(t, Config{Mode: ModeExact, Spin: DefaultSpin, ITL: Fixed(time.Millisecond)})
	cl := dialTCP(t, addr)
	if _, err := io.WriteString(cl.nc, post("/v1/completions", `{"prompt":"x","max_tokens":30000,"stream":true}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(cl.nc, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	cl.nc.Close()
	for len(s.Truth()) == 0 {
		time.Sleep(time.Millisecond)
	}
	if rec := s.Truth()[0]; rec.Outcome != Aborted {
		t.Errorf("%+v", rec)
	}
	// the server stops in the middle of a stream
	cl = dialTCP(t, addr)
	if _, err := io.WriteString(cl.nc, post("/v1/completions", `{"prompt":"x","max_tokens":30000,"stream":true}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(cl.nc, make([]byte, 2000)); err != nil {
		t.Fatal(err)
	}
	stop()
	if rec := s.Truth()[1]; rec.Outcome != Stopped {
		t.Errorf("%+v", rec)
	}
	cl.nc.Close()
}

// BenchmarkLoopback: events of 200 streams per second that one server thread writes over loopback, without pause between them.
func BenchmarkLoopback(b *testing.B) {
	for _, spin := range []time.Duration{DefaultSpin, 0} {
		b.Run(fmt.Sprint("spin ", spin), func(b *testing.B) {
			const streams = 200
			s, addr, stop := serveTCP(b, Config{Mode: ModeExact, Spin: spin, MaxModelLen: maxModelLen})
			tokens := max(b.N/streams, 1)
			body := post("/v1/chat/completions", chat("", "hi", fmt.Sprintf(`,"max_tokens":%d,"ignore_eos":true,"stream":true`, tokens)))
			var wg sync.WaitGroup
			b.ResetTimer()
			for range streams {
				wg.Go(func() {
					nc, err := net.Dial("tcp", addr)
					if err != nil {
						b.Error(err)
						return
					}
					defer nc.Close()
					if _, err := io.WriteString(nc, body); err != nil {
						b.Error(err)
					}
					buf := make([]byte, 64<<10)
					for tail := ""; !strings.HasSuffix(tail, "0\r\n\r\n"); {
						n, err := nc.Read(buf)
						if err != nil {
							b.Error(err)
							return
						}
						tail = tail[max(0, len(tail)-5):] + string(buf[max(0, n-5):n])
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(streams*tokens)/b.Elapsed().Seconds(), "events/s")
			stop()
			p := s.Pace()
			b.ReportMetric(float64(p.HeldUp)/float64(p.Writes), "held/write")
		})
	}
}
