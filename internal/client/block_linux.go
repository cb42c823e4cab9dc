package client

import (
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/wire"
)

// block carries a piece of an answer from an engine thread to the sink, and comes back empty.
type block struct {
	next  *block
	x     *xfer
	raw   []byte
	marks []wire.Mark
	end   bool   // the job has ended with it
	free  func() // gives it back to its pool
}

// blockSize is how much of an answer is held before it is handed on: some 17 events. With 10,000 streams under way that is 46 MB.
const (
	blockSize  = 4 << 10
	blockMarks = 32 // an event a read fills a block with fewer
)

// mostBlocks is how many blocks an engine thread may have out: 256 MiB. Beyond it waits, and with it the server.
const mostBlocks = 256 << 20 / blockSize

// blockPool keeps the blocks of one engine thread. get is the thread's alone; blocks come back from any goroutine.
type blockPool struct {
	spare *block
	back  blockStack
	out   atomic.Int64
}

func (p *blockPool) get() *block {
	if p.spare == nil {
		p.spare = p.back.takeAll()
	}
	p.out.Add(1)
	b := p.spare
	if b != nil {
		p.spare, b.next = b.next, nil
		return b
	}
	b = &block{raw: make([]byte, 0, blockSize), marks: make([]wire.Mark, 0, blockMarks)}
	b.free = func() {
		b.x, b.raw, b.marks, b.end = nil, b.raw[:0], b.marks[:0], false
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
