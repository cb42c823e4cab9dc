package workload

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// Cache keeps what was read from files between the openings of one plan: a large file is read once.
type Cache struct {
	mu   sync.Mutex
	read map[string]any
}

// cached returns what read gives, from the configuration's cache where it is there. Errors are not kept.
func cached[T any](c Config, key string, read func() (T, error)) (T, error) {
	if c.Cache == nil {
		return read()
	}
	c.Cache.mu.Lock()
	defer c.Cache.mu.Unlock()
	if v, ok := c.Cache.read[key].(T); ok {
		return v, nil
	}
	v, err := read()
	if err == nil {
		if c.Cache.read == nil {
			c.Cache.read = map[string]any{}
		}
		c.Cache.read[key] = v
	}
	return v, err
}

// tally counts the rows of a file: those that are kept, and those that are not, by reason.
type tally struct {
	path   string
	strict bool
	hint   string
	rows   bench.Rows
	first  error // of a bad row
}

// row counts a row that begins in a line. An error leaves it out; it is returned where the file is refused: with strict, and where the
// error carries an exit code, since then every row of its kind is wrong.
func (t *tally) row(line int, err error) error {
	t.rows.Read++
	if err == nil {
		t.rows.Kept++
		return nil
	}
	named := fault.Wrap(fault.Usage, err, fmt.Sprintf("%s:%d", t.path, line), cmp.Or(fault.HintOf(err), t.hint))
	if t.first == nil {
		t.first = named
	}
	if t.strict || fault.CodeOf(err) == fault.Usage {
		return named
	}
	reason := err.Error()
	for i := range t.rows.Skipped {
		if k := &t.rows.Skipped[i]; k.Reason == reason {
			k.Rows++
			return nil
		}
	}
	if len(t.rows.Skipped) >= mostReasons {
		last := &t.rows.Skipped[mostReasons-1]
		last.Reason = "other"
		last.Rows++
		return nil
	}
	t.rows.Skipped = append(t.rows.Skipped, bench.Skipped{Reason: reason, Rows: 1, Line: line})
	return nil
}

// mostReasons bounds the reasons that are told apart.
const mostReasons = 20

// done returns the counts. A file without one good row is refused for its first bad one.
func (t *tally) done() (*bench.Rows, error) {
	switch {
	case t.rows.Read == 0:
		return nil, fault.New(fault.Usage, t.path+" holds no request", "it needs at least one line that is not blank")
	case t.rows.Kept == 0:
		return nil, t.first
	}
	slices.SortStableFunc(t.rows.Skipped, func(a, b bench.Skipped) int { return cmp.Compare(b.Rows, a.Rows) })
	return &t.rows, nil
}

// tell hands the counts to the one who opened the data set.
func (c Config) tell(rows *bench.Rows) {
	if c.Rows != nil {
		*c.Rows = *rows
	}
}

// piece is where a row lies in its file.
type piece struct {
	offset int64
	line   int // of its first byte, from 1
}

// eachLine calls f for each line of a file that is not blank, without its end. The bytes hold until f returns.
func eachLine(path string, f func(at piece, line []byte) error) error {
	in, err := open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 1<<18)
	at := piece{line: 1}
	for ; ; at.line++ {
		raw, err := nextLine(r)
		if err != nil && err != io.EOF {
			return fault.Wrap(fault.Usage, err, fmt.Sprintf("%s:%d", path, at.line), "is the file whole, and one request a line?")
		}
		line, here := raw, at
		if at.line == 1 {
			line = bytes.TrimPrefix(line, []byte(utf8BOM))
			here.offset += int64(len(raw) - len(line))
		}
		begun := bytes.TrimLeft(line, " \t\r\n")
		here.offset += int64(len(line) - len(begun))
		if line = bytes.TrimSpace(begun); len(line) > 0 {
			if ferr := f(here, line); ferr != nil {
				return ferr
			}
		}
		if err == io.EOF {
			return nil
		}
		at.offset += int64(len(raw))
	}
}

// nextLine reads a line; it holds until the next read, and copies only what is longer than the buffer.
func nextLine(in *bufio.Reader) ([]byte, error) {
	part, err := in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return part, err
	}
	line := slices.Clone(part)
	for err == bufio.ErrBufferFull {
		part, err = in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
	}
	return line, err
}

// eachElement calls f for each element of a file that is one JSON list, or for each line where it is not.
func eachElement(path string, f func(at piece, raw []byte) error) error {
	in, err := open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 1<<18)
	e := &elements{in: r, at: piece{line: 1}, path: path}
	if head, _ := r.Peek(len(utf8BOM)); string(head) == utf8BOM {
		r.Discard(len(utf8BOM))
		e.at.offset += int64(len(utf8BOM))
	}
	if b, err := e.blank(); err != nil || b != '[' {
		return eachLine(path, f)
	}
	return e.each(f)
}

// elements reads the elements of a JSON list, one after the other, without holding the list.
type elements struct {
	in   *bufio.Reader
	at   piece // of the next byte
	path string
}

func (e *elements) next() (byte, error) {
	b, err := e.in.ReadByte()
	if err == nil {
		if e.at.offset++; b == '\n' {
			e.at.line++
		}
	}
	return b, err
}

// blank reads over blanks and returns the byte behind them.
func (e *elements) blank() (byte, error) {
	for {
		b, err := e.next()
		if err != nil || b != ' ' && b != '\n' && b != '\r' && b != '\t' {
			return b, err
		}
	}
}

func (e *elements) each(f func(at piece, raw []byte) error) error {
	broken := func(what string) error {
		return fault.New(fault.Usage, fmt.Sprintf("%s:%d: %s", e.path, e.at.line, what), "is the file whole? it begins as a JSON list, and must end as one")
	}
	var raw []byte
	for n := 0; ; n++ {
		b, err := e.blank()
		if err == nil && b == ']' && n == 0 {
			return nil
		}
		at := e.at
		at.offset--
		raw = raw[:0]
		depth, quoted, escaped := 0, false, false
		for ; err == nil; b, err = e.next() {
			if depth == 0 && !quoted && (b == ',' || b == ']') {
				break
			}
			if raw = append(raw, b); len(raw) > maxLine {
				return broken(fmt.Sprintf("an element is longer than %d bytes", maxLine))
			}
			switch {
			case escaped:
				escaped = false
			case quoted:
				escaped, quoted = b == '\\', b != '"'
			case b == '"':
				quoted = true
			case b == '{' || b == '[':
				depth++
			case b == '}' || b == ']':
				depth--
			}
		}
		if err != nil {
			return broken("the list does not end")
		}
		if err := f(at, bytes.TrimSpace(raw)); err != nil {
			return err
		}
		if b == ']' {
			return nil
		}
	}
}

// notUTF8 refuses a text that is in another coding. It has no exit code: other rows may be right.
func notUTF8(text []byte) error {
	if utf8.Valid(text) {
		return nil
	}
	return fault.New(fault.OK, fmt.Sprintf("not UTF-8 (%s)", excerpt(text)), "convert the file, such as with iconv -f LATIN1 -t UTF-8")
}

// Describe says in one line what was found in a file: "11920 rows, 3 skipped (2 empty, 1 no reply)".
func Describe(r *bench.Rows) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows", r.Kept)
	if n := r.Read - r.Kept; n > 0 {
		var why []string
		for _, s := range r.Skipped {
			why = append(why, fmt.Sprintf("%d %s, first in line %d", s.Rows, s.Reason, s.Line))
		}
		fmt.Fprintf(&b, " of %d, %d skipped (%s)", r.Read, n, strings.Join(why, "; "))
	}
	if r.Unsorted > 0 {
		fmt.Fprintf(&b, "; %d out of order, sorted by time", r.Unsorted)
	}
	if r.Unit != "" {
		fmt.Fprintf(&b, "; timestamps in %s", r.Unit)
	}
	for _, m := range r.Masked {
		fmt.Fprintf(&b, "; %d %s masked", m.Count, m.Kind)
	}
	for _, n := range r.Notes {
		b.WriteString("; " + n)
	}
	return b.String()
}
