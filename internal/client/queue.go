package client

import (
	"container/heap"
	"time"
)

// jobQueue holds the jobs that wait to be sent, first those without a due time, then by due time, equal ones in the order of submission.
type jobQueue struct {
	items []queued
	seq   int
}

type queued struct {
	ex  *exchange
	due time.Duration // minus infinity without one
	seq int
}

const noDue = time.Duration(-1 << 63)

func (q *jobQueue) Len() int      { return len(q.items) }
func (q *jobQueue) Swap(i, j int) { q.items[i], q.items[j] = q.items[j], q.items[i] }
func (q *jobQueue) Push(x any)    { q.items = append(q.items, x.(queued)) }
func (q *jobQueue) Less(i, j int) bool {
	a, b := q.items[i], q.items[j]
	if a.due != b.due {
		return a.due < b.due
	}
	return a.seq < b.seq
}
func (q *jobQueue) Pop() any {
	n := len(q.items) - 1
	x := q.items[n]
	q.items[n] = queued{}
	q.items = q.items[:n]
	return x
}

func (q *jobQueue) add(ex *exchange) {
	q.seq++
	heap.Push(q, queued{ex, ex.job.Due.Or(noDue), q.seq})
}

// due returns when the first job is due. It must not be called on an empty queue.
func (q *jobQueue) due() time.Duration { return q.items[0].due }

func (q *jobQueue) take() *exchange { return heap.Pop(q).(queued).ex }

// slots are the places under a cap. Each remembers since when it has been free, so that a job knows when it could have gone out.
type slots struct {
	free []time.Duration // ring of the moments, oldest first
	head int
	n    int
}

func newSlots(n int, at time.Duration) *slots {
	s := &slots{free: make([]time.Duration, n), n: n}
	for i := range s.free {
		s.free[i] = at
	}
	return s
}

// take takes the place that has been free for longest.
func (s *slots) take() time.Duration {
	at := s.free[s.head]
	s.head = (s.head + 1) % len(s.free)
	s.n--
	return at
}

func (s *slots) put(at time.Duration) {
	if s.n == len(s.free) {
		panic("client: more slots freed than taken")
	}
	s.free[(s.head+s.n)%len(s.free)] = at
	s.n++
}
