package run

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/wire"
)

// task is a request on its way through the run.
type task struct {
	plan  *Plan
	req   bench.Request
	job   client.Job
	load  bench.Load
	size  int           // bytes of the request
	at    time.Duration // when it is due, counted from the begin of its phase
	fold  *dialect.Fold // once something has come: many wait for their turn
	bytes int           // raw bytes folded so far
	reads []store.Read  // kept so far, with --keep-transcripts
	ended func(*bench.Record)
	began func(at time.Duration) // gets the moment of the first output, once; nil = nobody asks
	place placeRef               // that the request has, where places are given out by the run
	gated bool                   // they are
}

// collector folds what the client hands over into records and gives them to the journal. Folding runs on goroutines of its own, so
// that it delays no read; the parts of one job stay in order, since a job belongs to one of them.
type collector struct {
	journal     *store.Journal
	transcripts *store.Transcripts
	keepEvents  bool
	secrets     []string
	queues      []chan item
	wg          sync.WaitGroup
	behind      atomic.Bool // the client had to wait for this collector or for storage
}

type item struct {
	t    *task
	part wire.Part
	tr   *wire.Transcript // the end of the job, when not nil
}

// Bounds of the collector: what the folding goroutines may be behind. 4,096 parts or ends are a fraction of a second.
const (
	foldWorkers = 2
	foldQueue   = 4096
)

func newCollector(j *store.Journal, t *store.Transcripts, keepEvents bool, secrets []string) *collector {
	c := &collector{journal: j, transcripts: t, keepEvents: keepEvents, secrets: secrets}
	for range foldWorkers {
		q := make(chan item, foldQueue)
		c.queues = append(c.queues, q)
		c.wg.Go(func() {
			var folder dialect.Folder
			for it := range q {
				c.take(it, &folder)
			}
		})
	}
	return c
}

// Part implements client.Sink.
func (c *collector) Part(j *client.Job, p wire.Part) { c.put(j, item{t: j.Tag.(*task), part: p}) }

// Done implements client.Sink.
func (c *collector) Done(j *client.Job, tr *wire.Transcript) {
	c.put(j, item{t: j.Tag.(*task), tr: tr})
}

func (c *collector) put(j *client.Job, it item) {
	q := c.queues[j.ID%len(c.queues)]
	select {
	case q <- it:
	default:
		c.behind.Store(true)
		q <- it
	}
}

// close waits until everything is folded. No Part or Done may follow.
func (c *collector) close() {
	for _, q := range c.queues {
		close(q)
	}
	c.wg.Wait()
}

func (c *collector) take(it item, folder *dialect.Folder) {
	t := it.t
	if it.tr == nil {
		c.keepReads(t, it.part.Raw, it.part.Marks)
		t.folding(folder).Feed(it.part)
		t.tellBegun()
		release(it.part.Release)
		return
	}
	c.keepReads(t, it.tr.Raw, it.tr.Marks)
	r := t.folding(folder).End(it.tr)
	release(it.tr.Release)
	t.plan.form.hold(&r)
	t.moments(&r)
	if c.transcripts != nil && r.Outcome != bench.Dropped {
		k := t.kept(it.tr, &r)
		blankReads(k.Reads, c.secrets)
		k.Header = concealHeader(k.Header, c.secrets)
		c.transcripts.Append(k)
	}
	if !c.keepEvents {
		r.Events, r.EventTokens, r.EventChoice = nil, nil, nil
	}
	t.ended(&r)
}

// folding returns what the answer is folded with.
func (t *task) folding(folder *dialect.Folder) *dialect.Fold {
	if t.fold == nil {
		t.fold = folder.NewFold(t.plan.Endpoint, &t.req, &t.plan.Options)
	}
	return t.fold
}

// release gives the bytes of a part back to the client: neither the fold nor the kept reads hold on to them.
func release(f func()) {
	if f != nil {
		f()
	}
}

// write gives a record to the journal.
func (c *collector) write(r *bench.Record) {
	if c.journal.Append(*r) {
		c.behind.Store(true)
	}
}

// tellBegun tells of the first output.
func (t *task) tellBegun() {
	if t.began == nil {
		return
	}
	if at, ok := t.fold.Began(); ok {
		t.began(at)
		t.began = nil
	}
}

// moments sets when the request was due: by the schedule, or with rate inf when it could first be sent.
func (t *task) moments(r *bench.Record) {
	switch {
	case t.load.Paced():
		r.Due = t.job.Due
	case t.gated:
		r.Slot = t.job.Due // its place was free, and whoever has it had thought
	case t.load.Shape == bench.Inf:
		if r.Due = r.Slot; !r.Due.Defined() {
			r.Due = t.job.Due
		}
	}
}

func (c *collector) keepReads(t *task, raw []byte, marks []wire.Mark) {
	if c.transcripts != nil {
		t.reads = append(t.reads, store.ReadsOf(raw, marks, t.bytes)...)
	}
	t.bytes += len(raw)
}

func (t *task) kept(tr *wire.Transcript, r *bench.Record) *store.Kept {
	return &store.Kept{ID: r.ID, Phase: r.Phase, Target: tr.Target, Due: r.Due, Slot: tr.Slot, Sent: tr.Sent, Handed: tr.Handed, HeadAt: tr.HeadAt, Ended: tr.Ended,
		Connect: tr.Connect, TLS: tr.TLS, Reused: tr.Reused, Retried: tr.Retried, Stamp: tr.Stamp, Fail: tr.Fail, Cause: tr.Cause,
		Conversation: t.req.Conversation, Turn: t.req.Turn, Class: t.req.Class, ISLAsked: t.req.ISL, OSLAsked: t.req.OSL, Tokens: t.req.Tokens, Inputs: len(t.req.Inputs),
		TopN: dialect.TopN(&t.req, &t.plan.Options), Framed: tr.Framed, Status: tr.Status, Header: tr.Header, Reads: t.reads}
}

// mostRefolded bounds the inputs of a request that a file of transcripts may tell of.
const mostRefolded = 1 << 20

// Refold folds kept transcripts again, with the dialects of today. Records of requests that were never sent are taken over.
// Count counts the tokens of a text, as the tokenizer of the run does; nil = it had none.
func Refold(d *store.Dir, m *bench.Manifest, ep dialect.Endpoint, count func(text string) int) ([]bench.Record, error) {
	form, err := newForm(&m.Spec)
	if err != nil {
		return nil, err
	}
	o := &dialect.Options{Stream: m.Spec.Target.Stream, ForceLength: m.Spec.Workload.ForceLength, KeepText: m.Spec.Keep.Text || form != nil, Count: count}
	var out []bench.Record
	for k, err := range d.Kept() {
		if err != nil {
			return nil, err
		}
		req := &bench.Request{ID: k.ID, Phase: k.Phase, Conversation: k.Conversation, Turn: k.Turn, Class: k.Class, ISL: k.ISLAsked, OSL: k.OSLAsked, Tokens: k.Tokens,
			Inputs: make([]string, min(max(0, k.Inputs), mostRefolded)), Extra: fmt.Appendf(nil, `{"top_n":%d}`, k.TopN)}
		r := dialect.NewFold(ep, req, o).End(k.Transcript())
		form.hold(&r)
		r.Due = k.Due
		out = append(out, r)
	}
	for r, err := range d.Records() {
		if err != nil {
			return nil, err
		}
		if r.Outcome == bench.Dropped {
			out = append(out, r)
		}
	}
	return out, nil
}
