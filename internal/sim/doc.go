// Package sim is the simulated engine: an HTTP server that speaks the API of any engine in its list of dialects, with emitters of its own.
//
// A dialect is a value, one file each: endpoints that read a request into a wish, and a speaker that appends the events of the answer.
// Most speakers are forms: events as they stand on the wire, with words in the place of what differs. vLLM's chat, by which clients are
// calibrated, is written by hand.
//
// It has three modes. Exact keeps given latencies: token i of a request is due at arrival + TTFT + i*ITL, absolutely, so that
// nothing drifts. Engine is a discrete model of continuous batching (steps, chunked prefill, KV blocks, prefix cache, preemption,
// speculative decoding) whose step time comes from a roofline or from coefficients. Script plays recorded answers byte by byte.
// Whatever it does is written down as it happens: the truth, which GET /truth shows, is what a client is checked against.
//
// It imports no dialect: a misreading of the protocol shared by client and server would cancel out.
//
// # HTTP
//
// Connections are handled here and not by net/http (whose request parser alone is used), since a connection given out by Hijack
// cannot go back to keep-alive, and since faults such as a cut inside a chunk, a reset, one byte at a time or an answer without
// length need the raw connection. A goroutine per connection reads requests, and while an answer is under way waits for the next
// request's first byte, so that it notices when the client goes away. Answers are written by others:
//
//   - with Config.Spin = 0, or where the system gives no raw socket, by one goroutine per answer and plain timers. In virtual time
//     (testing/synctest, over a listener in memory) that is exact to the nanosecond; in real time Go's timers are up to 1 ms late.
//   - with Config.Spin > 0 on Linux, by one pacer: a locked thread with a heap of due writes that sleeps until shortly before the
//     next one, then polls the clock, and writes without blocking. When a socket is full, that answer alone is continued by a
//     goroutine of its own, until it has caught up.
//
// On loopback the sender pays for the receive path too: one thread is the limit at some 100,000 to 200,000 writes a second, and
// GET /truth says how late it was, so that a client can tell a limited server from its own limit.
package sim
