package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Journal appends records, one JSON line each. One goroutine owns the file: a line is written as soon as no other waits and synced to
// disk each second, so that a killed process loses the requests in flight, and a power cut the last second too.
type Journal struct {
	in   chan *bench.Record
	done chan struct{}
	w    syncWriter
	fail chan struct{} // closed at the first failure

	// owned by the writer until done is closed
	err  error
	lost []bench.Record // could not be written
}

// syncWriter is what a journal needs of a file.
type syncWriter interface {
	io.Writer
	Sync() error
	Close() error
}

// Intervals and bounds of the journal. The queue holds what storage may be behind: 64 Ki records are some seconds of the fastest run.
const (
	syncEvery    = time.Second
	journalQueue = 1 << 16
	maxRecord    = 256 << 20 // one line, with a kept text of any length
)

// NewJournal opens the journal of a run directory for appending.
func (d *Dir) NewJournal() (*Journal, error) {
	f, err := os.OpenFile(d.file(JournalFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, diskFault(err, JournalFile)
	}
	return newJournal(f), nil
}

func newJournal(w syncWriter) *Journal {
	j := &Journal{in: make(chan *bench.Record, journalQueue), done: make(chan struct{}), fail: make(chan struct{}), w: w}
	go j.run()
	return j
}

// Append hands a record over. It reports whether it had to wait for storage.
func (j *Journal) Append(r bench.Record) (waited bool) {
	select {
	case j.in <- &r:
		return false
	default:
		j.in <- &r
		return true
	}
}

// Failed is closed when a record could not be written. Records that come later are kept in memory.
func (j *Journal) Failed() <-chan struct{} { return j.fail }

// Close writes what is left and closes the file. It returns the first failure, and the records that could not be written.
// No Append may follow.
func (j *Journal) Close() (lost []bench.Record, err error) {
	close(j.in)
	<-j.done
	return j.lost, j.err
}

func (j *Journal) run() {
	defer close(j.done)
	var buf []byte
	var held []bench.Record // in buf
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	dirty := false
	write := func() {
		if len(buf) == 0 || j.err != nil {
			return
		}
		if n, err := j.w.Write(buf); err != nil {
			j.fault(err)
			j.lost = append(j.lost, unwritten(held, buf, n)...)
		}
		buf, held, dirty = buf[:0], held[:0], true
	}
	for {
		select {
		case r, ok := <-j.in:
			if !ok {
				write()
				if err := j.w.Sync(); err != nil && j.err == nil {
					j.fault(err)
				}
				if err := j.w.Close(); err != nil && j.err == nil {
					j.fault(err)
				}
				return
			}
			if j.err != nil {
				j.lost = append(j.lost, *r)
				continue
			}
			var err error
			if buf, err = appendRecord(buf, r); err != nil {
				panic("store: a record does not marshal: " + err.Error())
			}
			buf = append(buf, '\n')
			held = append(held, *r)
			if len(buf) > 1<<20 || len(j.in) == 0 { // nobody else waits: a killed process loses nothing that has ended
				write()
			}
		case <-tick.C:
			if dirty && j.err == nil {
				if err := j.w.Sync(); err != nil {
					j.fault(err)
				}
				dirty = false
			}
		}
	}
}

// unwritten returns the records whose lines are not among the first n bytes.
func unwritten(held []bench.Record, buf []byte, n int) []bench.Record {
	whole := bytes.Count(buf[:n], []byte{'\n'})
	return append([]bench.Record{}, held[whole:]...)
}

func (j *Journal) fault(err error) {
	j.err = diskFault(err, JournalFile)
	close(j.fail)
}

// Records reads the journal of a run directory. A last line that is torn, as a killed process leaves it, is left out; any other
// line that cannot be read, says what cannot be, or tells of a request once more ends the sequence with an error that names it.
func (d *Dir) Records() iter.Seq2[bench.Record, error] {
	return func(yield func(bench.Record, error) bool) {
		f, err := os.Open(d.file(JournalFile))
		if err != nil {
			hint := ""
			if errors.Is(err, fs.ErrNotExist) { // a run creates it before its first request
				hint = "nothing can be computed without the journal; a summary.json that is there is left as it is"
			}
			yield(bench.Record{}, fault.Wrap(fault.Usage, err, "journal", hint))
			return
		}
		defer f.Close()
		for r, err := range readRecords(f) {
			if err != nil {
				yield(r, fault.Wrap(fault.Usage, err, d.file(JournalFile), "the lines before it can be kept: remove it and what follows"))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// readRecords reads JSON lines.
func readRecords(in io.Reader) iter.Seq2[bench.Record, error] {
	return func(yield func(bench.Record, error) bool) {
		r := bufio.NewReaderSize(in, 1<<20)
		seen := map[int]int{} // the line of each request
		for n := 1; ; n++ {
			line, whole, err := journalLine(r)
			if err != nil {
				yield(bench.Record{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !whole {
				return // the end, or a torn line
			}
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			var rec bench.Record
			if err := json.Unmarshal(line, &rec); err != nil {
				if _, perr := r.Peek(1); perr == io.EOF {
					return // torn, and yet with a line end: a disk that was full
				}
				yield(rec, fmt.Errorf("line %d: %w", n, err))
				return
			}
			err = checkRecord(&rec)
			if before := seen[rec.ID]; err == nil && before > 0 {
				err = fmt.Errorf("request %d is told of in line %d already: was the journal copied behind itself?", rec.ID, before)
			}
			if err != nil {
				yield(bench.Record{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			seen[rec.ID] = n
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// journalLine reads a line; whole is false at the end of the file.
func journalLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxRecord:
			return nil, false, fmt.Errorf("longer than %d bytes", maxRecord)
		case err == bufio.ErrBufferFull:
		case err == io.EOF:
			return line, false, nil
		default:
			return line, err == nil, err
		}
	}
}
