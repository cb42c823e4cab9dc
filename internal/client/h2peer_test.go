package client

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// h2script is what an HTTP/2 server does, frame by frame. The zero h2script answers nothing and obeys the protocol.
type h2script struct {
	hello  []http2.Setting                    // its first SETTINGS
	first  func(p *h2peer)                    // in place of them; nothing of the client's is acknowledged then
	answer func(p *h2peer, r *h2asked)        // in a goroutine of its own, once the request is whole
	opened func(p *h2peer, r *h2asked)        // on the reading goroutine, once the head is there
	data   func(p *h2peer, r *h2asked, n int) // after each DATA of n bytes; nil: windows are filled up at once
}

// h2server plays a script.
type h2server struct {
	ln     net.Listener
	script h2script
	wg     sync.WaitGroup
	gate   chan struct{} // closed with the release
	open   sync.Once

	mu    sync.Mutex
	peers []*h2peer
	asked int
}

// h2peer is the server's end of a connection.
type h2peer struct {
	srv *h2server
	n   int // its number, from 1
	nc  net.Conn
	fr  *http2.Framer
	dec *hpack.Decoder
	buf bytes.Buffer
	enc *hpack.Encoder

	mu      sync.Mutex // of what is written, and of what was seen
	resets  map[uint32]http2.ErrCode
	goaway  []http2.ErrCode
	granted map[uint32]int // WINDOW_UPDATEs
	acks    int            // of SETTINGS
	pings   int            // acknowledged
	live    int
	most    int // streams at once
}

// h2asked is a request.
type h2asked struct {
	id     uint32
	n      int // its number at the server, from 1
	block  []byte
	fields []hpack.HeaderField
	last   bool // it has no body
	body   []byte
	frames int // of DATA
	at     time.Time
}

func (r *h2asked) get(name string) string {
	for _, f := range r.fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

func newH2Server(ln net.Listener, script h2script) *h2server {
	s := &h2server{ln: ln, script: script, gate: make(chan struct{})}
	s.wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			p := &h2peer{srv: s, nc: nc, fr: http2.NewFramer(nc, nc), dec: hpack.NewDecoder(4096, nil),
				resets: map[uint32]http2.ErrCode{}, granted: map[uint32]int{}}
			p.fr.AllowIllegalWrites = true
			p.enc = hpack.NewEncoder(&p.buf)
			s.mu.Lock()
			s.peers = append(s.peers, p)
			p.n = len(s.peers)
			s.mu.Unlock()
			s.wg.Go(p.serve)
		}
	})
	return s
}

// release lets those answers go on that wait at the gate.
func (s *h2server) release() { s.open.Do(func() { close(s.gate) }) }

func (s *h2server) close() {
	s.release()
	s.ln.Close()
	s.wg.Wait()
}

func (s *h2server) seen() (asked, conns int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, len(s.peers)
}

// peer returns the n-th connection, from 1.
func (s *h2server) peer(n int) *h2peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[n-1]
}

func (p *h2peer) serve() {
	defer p.nc.Close()
	if p.srv.script.first != nil {
		p.srv.script.first(p)
	} else {
		p.write(func() { p.fr.WriteSettings(p.srv.script.hello...) })
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(p.nc, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	open := map[uint32]*h2asked{}
	for {
		f, err := p.fr.ReadFrame()
		if err != nil {
			return
		}
		id, ended := f.Header().StreamID, false
		r := open[id]
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if f.IsAck() {
				p.acks++
			} else if p.srv.script.first == nil {
				p.write(func() { p.fr.WriteSettingsAck() })
			}
		case *http2.PingFrame:
			if f.IsAck() {
				p.pings++
			}
		case *http2.WindowUpdateFrame:
			p.mu.Lock()
			p.granted[id] += int(f.Increment)
			p.mu.Unlock()
		case *http2.GoAwayFrame:
			p.mu.Lock()
			p.goaway = append(p.goaway, f.ErrCode)
			p.mu.Unlock()
		case *http2.RSTStreamFrame:
			p.mu.Lock()
			p.resets[id] = f.ErrCode
			p.mu.Unlock()
			if r != nil {
				p.closed()
				delete(open, id)
			}
		case *http2.HeadersFrame:
			r = &h2asked{id: id, block: bytes.Clone(f.HeaderBlockFragment())}
			open[id] = r
			p.mu.Lock()
			p.live++
			p.most = max(p.most, p.live)
			p.mu.Unlock()
			r.last = f.StreamEnded()
			if f.HeadersEnded() {
				p.headed(r)
				ended = r.last
			}
		case *http2.ContinuationFrame:
			if r.block = append(r.block, f.HeaderBlockFragment()...); f.HeadersEnded() {
				p.headed(r)
				ended = r.last
			}
		case *http2.DataFrame:
			if r == nil {
				continue
			}
			r.body = append(r.body, f.Data()...)
			r.frames++
			if n := int(f.Length); p.srv.script.data != nil {
				p.srv.script.data(p, r, n)
			} else if n > 0 {
				p.grant(0, n)
				p.grant(id, n)
			}
			ended = f.StreamEnded()
		}
		if ended {
			r.at = time.Now()
			delete(open, id)
			if p.srv.script.answer != nil {
				p.srv.wg.Go(func() { p.srv.script.answer(p, r) })
			}
		}
	}
}

func (p *h2peer) headed(r *h2asked) {
	p.srv.mu.Lock()
	p.srv.asked++
	r.n = p.srv.asked
	p.srv.mu.Unlock()
	r.fields, _ = p.dec.DecodeFull(r.block)
	if p.srv.script.opened != nil {
		p.srv.script.opened(p, r)
	}
}

// write is alone on the way out.
func (p *h2peer) write(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *h2peer) grant(id uint32, n int) { p.write(func() { p.fr.WriteWindowUpdate(id, uint32(n)) }) }

// closed tells that a stream is no more.
func (p *h2peer) closed() { p.write(func() { p.live-- }) }

// fields encodes a head; names and values in turn. p.mu is held.
func (p *h2peer) block(fields ...string) []byte {
	p.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(p.buf.Bytes())
}

func (p *h2peer) head(id uint32, end bool, fields ...string) {
	p.write(func() {
		p.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.block(fields...), EndStream: end, EndHeaders: true})
		if end {
			p.live--
		}
	})
}

func (p *h2peer) body(id uint32, end bool, b string) {
	p.write(func() {
		p.fr.WriteData(id, end, []byte(b))
		if end {
			p.live--
		}
	})
}

// ok answers with a body.
func (p *h2peer) ok(id uint32, body string) {
	p.head(id, false, ":status", "200", "content-length", strconv.Itoa(len(body)))
	p.body(id, true, body)
}

// stream answers with events, one after each wait.
func (p *h2peer) stream(id uint32, first, gap time.Duration, n int) {
	p.head(id, false, ":status", "200", "content-type", "text/event-stream")
	for i := range n {
		time.Sleep(map[bool]time.Duration{true: first, false: gap}[i == 0])
		p.body(id, false, event(i))
	}
	p.body(id, true, "")
}

func event(i int) string { return "data: " + strconv.Itoa(i) + "\n\n" }

func events(n int) string {
	var b bytes.Buffer
	for i := range n {
		b.WriteString(event(i))
	}
	return b.String()
}
