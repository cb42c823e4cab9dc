package client

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// exchange is one job on its way.
type exchange struct {
	p    *Portable
	job  *Job
	tr   *wire.Transcript
	raw  []byte // the request
	http wire.HTTP1

	mayBeStale bool // its connection had been idle
	until      *wire.Until
	untilFound bool
	whole      bool // an HTTP/2 answer has ended in order
	plain      bool // the body is not compressed, so that it can be searched

	piped piped // its places in the connection

	sent      atomic.Int64  // offset from the epoch, written by the writer while the reader may read already
	written   chan struct{} // closed when the writer is done with a large request; nil for a small one
	unwritten bool          // the writer gave up; valid when written is closed

	mu     sync.Mutex
	cancel func() // ends the exchange from outside, once it is under way
	cut    bool
}

const notSent = time.Duration(-1 << 63)

func newExchange(p *Portable, j *Job) *exchange {
	ex := &exchange{p: p, job: j, tr: &wire.Transcript{Target: j.Target, Framed: true}}
	ex.sent.Store(int64(notSent))
	if len(j.Call.Until) > 0 {
		ex.until = wire.NewUntil(j.Call.Until)
	}
	if !p.o.HTTP2 {
		ex.raw = appendRequest(nil, p.o.Targets[j.Target], &j.Call, p.o.UserAgent, p.o.FreshEach)
		j.Call.Body = nil
	}
	return ex
}

// appendRequest writes a call as HTTP/1.1. A proxy that takes plain requests gets the whole URL, and its credentials.
func appendRequest(b []byte, t Target, call *wire.Call, agent string, closeAfter bool) []byte {
	b = append(b, call.Method...)
	b = append(b, ' ')
	if t.forwarded() {
		b = append(append(append(b, t.URL.Scheme...), "://"...), t.URL.Host...)
	}
	b = append(b, t.path(call.Path)...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, t.URL.Host...)
	b = append(b, "\r\n"...)
	if agent != "" && !wire.HasField(call.Header, "User-Agent") {
		b = append(append(append(b, "User-Agent: "...), agent...), "\r\n"...)
	}
	for _, f := range call.Header {
		b = append(append(append(append(b, f.Name...), ": "...), f.Value...), "\r\n"...)
	}
	if t.forwarded() {
		b = t.Proxy.appendCredentials(b)
	}
	if closeAfter {
		b = append(b, "Connection: close\r\n"...)
	}
	if len(call.Body) > 0 || call.Method == "POST" {
		b = append(b, "Content-Length: "...)
		b = strconv.AppendInt(b, int64(len(call.Body)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	return append(b, call.Body...)
}

// drop tells that the job was never sent.
func (ex *exchange) drop() {
	ex.tr.Fail, ex.tr.Cause = wire.FailDropped, NeverSent
	ex.p.o.Sink.Done(ex.job, ex.tr)
}

// onCancel says how the exchange can be ended from outside from now on. It is called at once when that has been asked already.
func (ex *exchange) onCancel(f func()) {
	ex.mu.Lock()
	ex.cancel = f
	cut := ex.cut
	ex.mu.Unlock()
	if cut {
		f()
	}
}

// interrupt ends the exchange as incomplete.
func (ex *exchange) interrupt() {
	ex.mu.Lock()
	ex.cut = true
	f := ex.cancel
	ex.mu.Unlock()
	if f != nil {
		f()
	}
}

func (ex *exchange) interrupted() bool {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.cut
}

// limit is how long the exchange may take from its sending, and what it is to have failed of then; 0 = for ever.
func (ex *exchange) limit() (time.Duration, failure) {
	limit, fail := ex.p.o.Timeout, failure{wire.FailTimeout, "no complete response within " + ex.p.o.Timeout.String()}
	if after := ex.job.CancelAfter; after > 0 && (limit == 0 || after < limit) {
		return after, failure{wire.FailCancelled, cancelledCause(after)}
	}
	return limit, fail
}

// sending notes that the last byte of the request goes out now.
func (ex *exchange) sending(c *conn) {
	now := ex.p.clock.now()
	ex.sent.Store(int64(now))
	c.in.sending(now)
}

// take appends what one read brought, and hands a part over when much has gathered.
func (ex *exchange) take(b []byte, at time.Duration) error {
	tr := ex.tr
	tr.Bytes += len(b)
	if tr.Bytes > ex.p.o.MaxBody {
		return fmt.Errorf("response above %d bytes", ex.p.o.MaxBody)
	}
	tr.Raw = append(tr.Raw, b...)
	tr.Marks = append(tr.Marks, wire.Mark{End: tr.Bytes, At: at})
	ex.piped.came()
	if len(tr.Raw) >= ex.p.o.PartSize {
		if !ex.p.pipes.hand(ex, false) {
			ex.p.o.Sink.Part(ex.job, wire.Part{Raw: tr.Raw, Marks: tr.Marks, Framed: tr.Framed, Status: tr.Status, Header: tr.Header})
		}
		tr.Raw, tr.Marks = nil, nil
	}
	return nil
}

// search looks for the terminator in a piece of the body that arrived at the given time.
func (ex *exchange) search(body []byte, at time.Duration) {
	if ex.until == nil || ex.untilFound || !ex.plain {
		return
	}
	if ex.until.Found(body) {
		ex.untilFound = true
		ex.tr.Ended = opt.Some(at)
		ex.piped.ended()
	}
}

// end completes the transcript.
func (ex *exchange) end(kind wire.Fail, cause string) {
	tr := ex.tr
	if ex.interrupted() && kind != "" {
		kind, cause = wire.FailIncomplete, "cut by the end of the run"
	}
	tr.Fail, tr.Cause = kind, cause
	if s := time.Duration(ex.sent.Load()); s != notSent {
		tr.Sent = opt.Some(s)
	}
	if !tr.Ended.Defined() {
		tr.Ended = opt.Some(ex.p.clock.now())
	}
}

// freed is when the slot of the exchange became free: the end of the response, or now when that came before its time.
func (ex *exchange) freed() time.Duration {
	if ex.tr.Fail == "" && (ex.http.Done() || ex.whole) && len(ex.tr.Marks) > 0 {
		return ex.tr.Marks[len(ex.tr.Marks)-1].At
	}
	return ex.p.clock.now()
}
