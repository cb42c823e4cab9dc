package sim

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a server on a listener in memory, in virtual time.
type rig struct {
	t      *testing.T
	s      *Server
	net    memnet.Network
	start  time.Time
	cancel context.CancelFunc
	ended  chan error
}

func serveMem(t *testing.T, cfg Config) *rig {
	t.Helper()
	return serveOn(t, cfg, func(l net.Listener) net.Listener { return l })
}

// serveOn is serveMem with something around the listener.
func serveOn(t *testing.T, cfg Config, around func(net.Listener) net.Listener) *rig {
	t.Helper()
	r := &rig{t: t, ended: make(chan error, 1), start: time.Now()}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.s = s
	l, err := r.net.Listen("server:80")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.ended <- s.Serve(ctx, around(l)) }()
	return r
}

func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.ended; err != nil {
		r.t.Errorf("Serve: %v", err)
	}
}

func (r *rig) now() time.Duration { return time.Since(r.start) }

func (r *rig) dial() *client {
	nc, err := r.net.Dial(context.Background(), "tcp", "server:80")
	if err != nil {
		r.t.Error(err)
		return nil
	}
	return &client{nc: nc, now: r.now}
}

// client is one connection of a test.
type client struct {
	nc  net.Conn
	now func() time.Duration
}

// answer is what came back, with the time of each read.
type answer struct {
	sent    time.Duration
	status  int
	header  http.Header
	body    string
	pieces  []piece
	end     time.Duration
	err     error // of the framing: nil for a whole answer
	readErr error // of the connection, when it ended
	keep    bool
}

type piece struct {
	at   time.Duration
	data string
}

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		path, len(body), body)
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: sim\r\n\r\n" }

// call sends a request and reads its answer to the end, or until the connection ends.
func (c *client) call(request string) (a answer) {
	a.sent = c.now()
	if _, err := c.nc.Write([]byte(request)); err != nil {
		a.readErr = err
		a.err = wire.ErrNoResponse
		return a
	}
	var h wire.HTTP1
	buf := make([]byte, 64<<10)
	var body strings.Builder
	for !h.Done() {
		n, err := c.nc.Read(buf)
		at := c.now()
		if n > 0 {
			if _, err := h.Feed(buf[:n], func(b []byte) {
				body.Write(b)
				if k := len(a.pieces); k > 0 && a.pieces[k-1].at == at {
					a.pieces[k-1].data += string(b)
				} else {
					a.pieces = append(a.pieces, piece{at, string(b)})
				}
			}); err != nil {
				a.err = err
				break
			}
		}
		if err != nil {
			a.readErr, a.err = err, h.Close()
			break
		}
	}
	a.end, a.status, a.header, a.body, a.keep = c.now(), h.Status(), h.Header(), body.String(), h.KeepAlive()
	return a
}

// events are the data lines of a stream, each with its time.
func (a answer) events() (out []piece) {
	var sse wire.SSE
	for _, p := range a.pieces {
		if err := sse.Feed([]byte(p.data), func(e wire.Event) { out = append(out, piece{p.at, string(e.Data)}) }); err != nil {
			panic(err)
		}
	}
	return out
}

// must parses a law of a test.
func must(l Law, err error) Law {
	if err != nil {
		panic(err)
	}
	return l
}

func chat(model, text string, rest string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]%s}`, model, text, rest)
}
