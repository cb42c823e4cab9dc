package isolate

import (
	"io"
	"sync"
)

// outbox writes frames from a goroutine of its own: what is put into it while a write is under way goes out together with the next.
type outbox struct {
	limit int // bytes that may lie in it

	mu      sync.Mutex
	changed *sync.Cond
	filling []byte
	broken  bool // nobody reads any more: frames are dropped
	ending  bool
	ended   chan struct{}
}

// keptBuffer is how large a buffer may be that is used again.
const keptBuffer = 1 << 20

// newOutbox writes to w until it is ended or w fails.
func newOutbox(w io.Writer, limit int) *outbox {
	o := &outbox{limit: limit, ended: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	go o.run(w)
	return o
}

// put adds a frame of about so many bytes, by a function that appends it. Where it does not fit put waits, or returns false. A frame
// always fits into an empty outbox.
func (o *outbox) put(wait bool, size int, frame func([]byte) []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.broken && len(o.filling) > 0 && len(o.filling)+size > o.limit {
		if !wait {
			return false
		}
		o.changed.Wait()
	}
	o.add(frame)
	return true
}

// force adds a small frame, past the limit.
func (o *outbox) force(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(func(b []byte) []byte { return append(b, frame...) })
}

func (o *outbox) add(frame func([]byte) []byte) {
	if !o.broken {
		o.filling = frame(o.filling)
		o.changed.Broadcast()
	}
}

func (o *outbox) run(w io.Writer) {
	defer close(o.ended)
	var writing []byte
	for {
		o.mu.Lock()
		for len(o.filling) == 0 && !o.ending {
			o.changed.Wait()
		}
		writing, o.filling = o.filling, writing[:0]
		o.changed.Broadcast()
		o.mu.Unlock()
		if len(writing) == 0 {
			return
		}
		if _, err := w.Write(writing); err != nil {
			o.mu.Lock()
			o.broken, o.filling = true, nil
			o.changed.Broadcast()
			o.mu.Unlock()
			return
		}
		if cap(writing) > keptBuffer {
			writing = nil
		}
	}
}

// end waits until everything is written, or cannot be.
func (o *outbox) end() {
	o.mu.Lock()
	o.ending = true
	o.changed.Broadcast()
	o.mu.Unlock()
	<-o.ended
}
