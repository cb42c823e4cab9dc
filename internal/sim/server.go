package sim

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/stamp"
)

// Server is a simulated engine. Its methods may be called from any goroutine.
type Server struct {
	cfg   Config
	start time.Time // offset 0
	truth *truthLog
	met   *instruments
	lang  *dialect
	drive *driver  // engine mode
	plays *library // script mode

	ids    atomic.Uint64 // requests to generate or to play, so far
	links  atomic.Uint64 // connections, so far
	loaded atomic.Int64  // requests under way

	served atomic.Bool
	stop   chan struct{} // closed when the server stops
	pace   *pacer        // nil: plain timers
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// New makes a server. Its clock starts now.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg:   cfg,
		start: time.Now(),
		truth: &truthLog{maxRecords: cfg.TruthRequests, maxWrites: cfg.TruthWrites, lateAfter: cfg.LateAfter},
		met:   newInstruments(cfg.MaxModelLen),
		lang:  dialectOf(cfg.Dialect),
		stop:  make(chan struct{}),
		conns: map[net.Conn]struct{}{},
	}
	switch cfg.Mode {
	case ModeEngine:
		p, err := cfg.Engine.resolve(cfg.MaxModelLen)
		if err != nil {
			return nil, err
		}
		s.drive = newDriver(s, p)
	case ModeScript:
		lib, err := newLibrary(cfg.Scripts)
		if err != nil {
			return nil, err
		}
		s.plays = lib
	}
	return s, nil
}

// now is the time since the server's start.
func (s *Server) now() time.Duration { return time.Since(s.start) }

// stopping tells whether the server has begun to stop.
func (s *Server) stopping() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// acceptPause is how long Serve waits after a failed Accept, such as for want of file descriptors.
const acceptPause = 20 * time.Millisecond

// Serve answers on the listener until ctx ends or the listener is closed, and returns nil then. On return the listener and all
// connections are closed and all goroutines have ended. It may be called once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.served.Swap(true) {
		return errors.New("sim: Serve called twice")
	}
	if s.cfg.Spin > 0 {
		p, err := newPacer(s.start, s.cfg.Spin)
		if err != nil {
			l.Close()
			return fault.Wrap(fault.Internal, err, "start the pacer", "run without spin")
		}
		s.pace = p
	}
	guard := stamp.OpenGuard()
	defer guard.Close()
	done := make(chan struct{})
	s.wg.Go(func() {
		select {
		case <-ctx.Done():
			l.Close()
		case <-done:
		}
	})
	if s.drive != nil {
		s.wg.Go(s.drive.run)
	}
	err := s.accept(ctx, l)
	close(s.stop)
	close(done)
	l.Close()
	s.mu.Lock()
	for nc := range s.conns {
		nc.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	if s.pace != nil {
		s.pace.stop()
	}
	return err
}

func (s *Server) accept(ctx context.Context, l net.Listener) error {
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.connect(nc)
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return nil
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ECONNABORTED):
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
				return nil
			}
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// connect begins to serve a connection.
func (s *Server) connect(nc net.Conn) {
	if s.cfg.refuses(s.links.Add(1)) {
		nc.Close()
		return
	}
	c := &conn{s: s, nc: nc, in: headLimit{r: nc}}
	if tc, ok := nc.(*net.TCPConn); ok {
		if stamped, err := stamp.New(tc); err == nil {
			c.stamps, c.in.r = stamped, stamped
		}
	}
	c.br = bufio.NewReaderSize(&c.in, readBuffer)
	if s.pace != nil {
		s.pace.adopt(c)
	}
	s.mu.Lock()
	s.conns[nc] = struct{}{}
	s.mu.Unlock()
	s.wg.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.conns, nc)
		s.mu.Unlock()
	})
}
