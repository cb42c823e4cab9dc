package client

import (
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// block carries a piece of an answer from an engine thread to the sink, and comes back empty. One without a job tells that its
// connection is closed.
type block struct {
	next  *block
	x     *dating
	raw   []byte
	marks []wire.Mark
	end   bool // the job has ended with it
	track *track

	headEnd int           // offset in the response behind its head, as far as that is known
	by      int64         // wall clock after the last read
	at      time.Duration // when it was handed on
	wire    []wire.Mark   // marks of the packets
	piped   *pipedPart    // not nil when it came out of a pipe
	free    func()        // gives it back to its pool, unless it came out of a pipe
}

// pipedPart is what a piece of an answer out of a pipe has besides.
type pipedPart struct {
	offs []int64   // where in the connection what each mark dates was complete
	as   wire.Part // how it is handed on
}

// dating is what is known of a job's place in its connection, so that its moments can be those of its packets.
type dating struct {
	job     *Job
	tr      wire.Transcript // all but the bytes and marks, which go through blocks
	track   *track          // its connection; nil when no packets are captured
	base    int64           // offset in the connection of the first byte of the response
	reqEnd  int64           // offset in the connection behind the last byte of the request
	headEnd int             // offset in the response behind its head; 0 = not complete
	bodyEnd int             // likewise behind the end or the terminator
	closes  bool            // the end of the connection ends the response
	shared  bool            // other exchanges are under way on the connection

	// The deliverer's.
	dated  int  // bytes that have been given moments
	doubt  bool // some of them have none of a packet
	headAt opt.Of[time.Duration]
}

// blockSize is how much of an answer is held before it is handed on: some 8 events. Where more streams are under way than there are
// large blocks, the others get by with half of it, so that 10,000 streams take 20 MB.
const (
	blockSize   = 2 << 10
	blockMarks  = 16 // an event a read fills a block with fewer
	largeBlocks = 1024
)

// mostBlocks is how many blocks of an engine thread may lie with the deliverer and the sink: 16 MiB. Beyond, the thread does not read,
// and its servers must wait.
const mostBlocks = 16 << 20 / blockSize

// blockPool keeps the blocks of one engine thread. get is the thread's alone; blocks come back from any goroutine.
type blockPool struct {
	spare *block
	made  int
	back  blockStack
	out   atomic.Int64 // handed on and not given back
}

func (p *blockPool) get() *block {
	if p.spare == nil {
		p.spare = p.back.takeAll()
	}
	b := p.spare
	if b != nil {
		p.spare, b.next = b.next, nil
		return b
	}
	size, marks := blockSize, blockMarks
	if p.made++; p.made > largeBlocks {
		size, marks = size/2, marks/2
	}
	b = &block{raw: make([]byte, 0, size), marks: make([]wire.Mark, 0, marks)}
	b.free = func() {
		b.x, b.track, b.raw, b.marks, b.wire, b.end = nil, nil, b.raw[:0], b.marks[:0], b.wire[:0], false
		p.out.Add(-1)
		p.back.push(b)
	}
	return b
}

// blockStack is a stack that many may push to and that is emptied as a whole, without locks: nobody holds up an engine thread.
type blockStack struct{ top atomic.Pointer[block] }

func (s *blockStack) push(b *block) {
	for {
		top := s.top.Load()
		b.next = top
		if s.top.CompareAndSwap(top, b) {
			return
		}
	}
}

func (s *blockStack) empty() bool { return s.top.Load() == nil }

// takeAll returns the newest block, with the older ones behind it.
func (s *blockStack) takeAll() *block { return s.top.Swap(nil) }

// oldestFirst turns a list around.
func oldestFirst(b *block) *block {
	var first *block
	for b != nil {
		first, b, b.next = b, b.next, first
	}
	return first
}

// holdBack lets an engine thread wait while the sink is too far behind.
func (l *loop) holdBack() {
	for l.blocks.out.Load() >= mostBlocks {
		l.count.waits.Add(1)
		time.Sleep(time.Millisecond)
	}
}
