package store

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// Kept is one exchange as it is kept with --keep-transcripts: enough to fold it again.
type Kept struct {
	ID    int    `json:"id"`
	Phase string `json:"phase"`

	Target int                   `json:"target"`
	Due    opt.Of[time.Duration] `json:"due_ns,omitzero"`
	Slot   opt.Of[time.Duration] `json:"slot_ns,omitzero"`
	Sent   opt.Of[time.Duration] `json:"sent_ns,omitzero"`
	Handed opt.Of[time.Duration] `json:"handed_ns,omitzero"`
	HeadAt opt.Of[time.Duration] `json:"headers_ns,omitzero"`
	Ended  opt.Of[time.Duration] `json:"end_ns,omitzero"`

	Connect opt.Of[time.Duration] `json:"connect_ns,omitzero"`
	TLS     opt.Of[time.Duration] `json:"tls_ns,omitzero"`
	Reused  bool                  `json:"connection_reused"`
	Retried bool                  `json:"retried,omitempty"`
	Stamp   wire.Stamp            `json:"stamp"`
	Fail    wire.Fail             `json:"fail,omitempty"`
	Cause   string                `json:"cause,omitempty"`

	Conversation int    `json:"conversation"`
	Turn         int    `json:"turn"`
	Class        string `json:"class,omitempty"`

	ISLAsked int   `json:"isl_asked,omitempty"`
	OSLAsked int   `json:"osl_asked,omitempty"`
	Tokens   []int `json:"input_ids,omitempty"`
	Inputs   int   `json:"inputs,omitempty"` // texts to embed or documents to rank
	TopN     int   `json:"top_n,omitempty"`  // results of a ranking that were asked for; 0 = all

	Framed bool        `json:"framed"` // the bytes are HTTP/1.1 with head and transfer coding
	Status int         `json:"status,omitempty"`
	Header http.Header `json:"header,omitempty"`
	Reads  []Read      `json:"reads"`
}

// Read is what one read brought.
type Read struct {
	At   time.Duration `json:"at_ns"`
	Data []byte        `json:"data_b64"`
}

// Transcript builds the transcript again.
func (k *Kept) Transcript() *wire.Transcript {
	t := &wire.Transcript{Target: k.Target, Slot: k.Slot, Sent: k.Sent, Handed: k.Handed, HeadAt: k.HeadAt, Ended: k.Ended, Connect: k.Connect, TLS: k.TLS,
		Reused: k.Reused, Retried: k.Retried, Stamp: k.Stamp, Fail: k.Fail, Cause: k.Cause, Framed: k.Framed, Status: k.Status, Header: k.Header}
	for _, r := range k.Reads {
		t.Raw = append(t.Raw, r.Data...)
		t.Marks = append(t.Marks, wire.Mark{End: len(t.Raw), At: r.At})
	}
	t.Bytes = len(t.Raw)
	return t
}

// ReadsOf cuts raw bytes at their marks. start is the offset of the first byte in the exchange.
func ReadsOf(raw []byte, marks []wire.Mark, start int) (out []Read) {
	off := 0
	for _, m := range marks {
		end := m.End - start
		out = append(out, Read{m.At, append([]byte{}, raw[off:end]...)})
		off = end
	}
	return out
}

// Transcripts appends kept exchanges. It may be used from several goroutines.
type Transcripts struct {
	mu  sync.Mutex
	f   *os.File
	w   *bufio.Writer
	err error
}

// NewTranscripts opens the file of kept transcripts.
func (d *Dir) NewTranscripts() (*Transcripts, error) {
	f, err := os.OpenFile(d.file(TranscriptsFile), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return nil, diskFault(err, TranscriptsFile)
	}
	return &Transcripts{f: f, w: bufio.NewWriterSize(f, 1<<20)}, nil
}

// Append writes one exchange. A failure is kept for Close.
func (t *Transcripts) Append(k *Kept) {
	line, err := json.Marshal(k)
	if err != nil {
		panic("store: a transcript does not marshal: " + err.Error())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		_, t.err = t.w.Write(append(line, '\n'))
	}
}

// Close writes what is left and returns the first failure.
func (t *Transcripts) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = t.w.Flush()
	}
	if err := t.f.Close(); t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return diskFault(t.err, TranscriptsFile)
	}
	return nil
}

// Kept reads the transcripts that were kept. A torn last line is left out.
func (d *Dir) Kept() iter.Seq2[*Kept, error] {
	return func(yield func(*Kept, error) bool) {
		f, err := os.Open(d.file(TranscriptsFile))
		if err != nil {
			hint := ""
			if errors.Is(err, fs.ErrNotExist) {
				hint = "run with --keep-transcripts to be able to fold again"
			}
			yield(nil, fault.Wrap(fault.Usage, err, "transcripts", hint))
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 1<<20)
		for n := 1; ; n++ {
			line, whole, err := journalLine(r)
			if err == nil && !whole {
				return
			}
			var k Kept
			if err == nil {
				err = json.Unmarshal(line, &k)
			}
			if err != nil {
				if _, perr := r.Peek(1); perr == io.EOF {
					return
				}
				yield(nil, fault.Wrap(fault.Usage, err, fmt.Sprintf("%s line %d", d.file(TranscriptsFile), n), "was the file edited, or cut off? without --refold the journal is read"))
				return
			}
			if !yield(&k, nil) {
				return
			}
		}
	}
}
