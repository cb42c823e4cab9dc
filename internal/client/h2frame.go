package client

import (
	"errors"
	"math"
	"strings"
	"time"

	"golang.org/x/net/http2"

	"github.com/prony-bench/prony/internal/wire"
)

// frame takes a frame whose last byte arrived at the given time. An error ends the connection. PRIORITY, acknowledgements and what is
// not known are left aside (RFC 9113, 4.1).
func (c *h2conn) frame(f http2.Frame, at time.Duration) error {
	c.heard = at
	c.quiet.Store(false)
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.data(f, at)
	case *http2.MetaHeadersFrame:
		return c.headers(f, at)
	case *http2.RSTStreamFrame:
		return c.reset(f)
	case *http2.WindowUpdateFrame:
		return c.windowUpdate(f)
	case *http2.GoAwayFrame:
		c.goAway(f)
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if err := c.settings(f); err != nil {
			return err
		}
		c.ring() // the acknowledgement, and bodies whose windows have grown
		c.p.h2.balance(c.target, c)
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		return c.acknowledge(func() { c.fr.WritePing(true, f.Data) })
	case *http2.PushPromiseFrame:
		return &h2fault{http2.ErrCodeProtocol, "a push, which was switched off"}
	}
	return nil
}

// acknowledge puts out an acknowledgement that the server asked for.
func (c *h2conn) acknowledge(put func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.out.b) > h2MostQueued {
		return &h2fault{http2.ErrCodeEnhanceYourCalm, "the server asks for more acknowledgements than it takes"}
	}
	put()
	c.ring()
	return nil
}

// settings takes the server's settings. The size of its header table needs no heed, since none is used; frames are never larger than
// what each server has to take.
func (c *h2conn) settings(f *http2.SettingsFrame) error {
	c.mu.Lock()
	err := f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			return &h2fault{faultCode(err), "the setting " + s.String()}
		}
		switch s.ID {
		case http2.SettingMaxConcurrentStreams:
			c.limit = s.Val
		case http2.SettingInitialWindowSize:
			grown := int64(s.Val) - c.initial
			c.initial = int64(s.Val)
			for _, st := range c.streams {
				if st.window += grown; st.window > math.MaxInt32 {
					return &h2fault{http2.ErrCodeFlowControl, "a window above 2^31-1"}
				}
			}
		}
		return nil
	})
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.acknowledge(func() { c.fr.WriteSettingsAck() })
}

func (c *h2conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	c.mu.Lock()
	if f.StreamID == 0 {
		c.window += int64(f.Increment)
		over := c.window > math.MaxInt32
		c.mu.Unlock()
		if over {
			return &h2fault{http2.ErrCodeFlowControl, "a window above 2^31-1"}
		}
		c.ring()
		return nil
	}
	s, err := c.stream(f.StreamID)
	over := false
	if s != nil {
		s.window += int64(f.Increment)
		over = s.window > math.MaxInt32
	}
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case over:
		c.reject(s, "a window above 2^31-1")
	case s != nil:
		c.ring()
	}
	return nil
}

// stream returns a live stream, or nil when it has ended already. c.mu is held.
func (c *h2conn) stream(id uint32) (*h2stream, error) {
	if s := c.streams[id]; s != nil {
		return s, nil
	}
	if id%2 == 0 || id >= c.next {
		return nil, &h2fault{http2.ErrCodeProtocol, "a frame of a stream that was not opened"}
	}
	return nil, nil
}

// reset ends a stream that the server has reset. After a complete answer that does no harm: the stream is gone by then.
func (c *h2conn) reset(f *http2.RSTStreamFrame) error {
	c.mu.Lock()
	s, err := c.stream(f.StreamID)
	c.mu.Unlock()
	if s == nil {
		return err
	}
	s.gone = true
	fail := failure{wire.FailReset, "stream reset by the server (" + f.ErrCode.String() + ")"}
	if s.job.ex.untilFound {
		fail = failure{} // the terminator was there: nothing is missing
	}
	c.end(s, fail, http2.ErrCodeCancel)
	return nil
}

// goAway takes the server's word that it opens no more streams, and has not looked at those above a number. Of these, one that may
// have met a connection that the server had given up before is sent once more, as after a stale connection in HTTP/1.1.
func (c *h2conn) goAway(f *http2.GoAwayFrame) {
	word := "the server went away: " + f.ErrCode.String()
	if d := f.DebugData(); len(d) > 0 {
		word += " " + wire.Excerpt(d)
	}
	c.mu.Lock()
	c.retired, c.farewell = true, word
	live := c.sorted()
	c.mu.Unlock()
	for _, s := range live {
		if s.id <= f.LastStreamID {
			continue
		}
		s.gone = true
		if s.repeatable() {
			c.again(s)
		} else {
			c.end(s, failure{wire.FailReset, word}, http2.ErrCodeCancel)
		}
	}
}

// unreadable takes what the reader of frames says against a frame. The frame's stream ends alone where the connection can go on.
func (c *h2conn) unreadable(f http2.Frame, err error) error {
	var one http2.StreamError
	var all http2.ConnectionError
	head, ok := f.(*http2.MetaHeadersFrame)
	switch {
	case c.src.err != nil:
		return err
	case errors.As(err, &one):
		text := c.words(err)
		c.mu.Lock()
		s, err := c.stream(one.StreamID)
		c.mu.Unlock()
		if s != nil {
			c.reject(s, text)
		}
		return err
	case ok && errors.As(err, &all):
		return &h2fault{http2.ErrCode(all), h2HeadFault(head, all)}
	}
	return err
}

// words says what was wrong with a frame.
func (c *h2conn) words(err error) string {
	if d := c.fr.ErrorDetail(); d != nil {
		err = d
	}
	if strings.Contains(err.Error(), "HTTP/1.1 header") {
		return "the server answers in HTTP/1.1"
	}
	return strings.TrimPrefix(err.Error(), "http2: ")
}

// faultCode is how the server is told of an error.
func faultCode(err error) http2.ErrCode {
	var fault *h2fault
	var conn http2.ConnectionError
	switch {
	case errors.As(err, &fault):
		return fault.code
	case errors.As(err, &conn):
		return http2.ErrCode(conn)
	case errors.Is(err, http2.ErrFrameTooLarge):
		return http2.ErrCodeFrameSize
	}
	return http2.ErrCodeProtocol
}
