package workload

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// LongContext is the data set `longcontext`: stretches of a text file, of --isl tokens, from anywhere in it. Three words before each tell
// them apart, so that no two begin alike.
type LongContext struct{}

// Name implements Dataset.
func (LongContext) Name() string { return "longcontext" }

// Bounds of what is read and cut.
const (
	mostText  = 1 << 30
	cutTries  = 6
	leastText = 1000 // bytes of a file
)

// Open implements Dataset.
func (LongContext) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	w := c.Spec
	if w.Prompt != "" {
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "give the text with --dataset-path FILE")
	}
	if c.inputs() {
		return nil, fault.New(fault.Usage, "the data set longcontext is of requests that generate", "use --endpoint chat or --endpoint completions")
	}
	if w.ISL == "" && w.Mix == "" && w.Lengths == "" {
		return nil, fault.New(fault.Usage, "the data set longcontext needs a length", "such as --isl 100000")
	}
	law, err := pairs(c)
	if err != nil {
		return nil, err
	}
	body, err := cached(c, "longcontext\x00"+w.Path, func() (string, error) { return readText(w.Path) })
	if err != nil {
		return nil, err
	}
	found := bench.Rows{Read: 1, Kept: 1, Notes: []string{fmt.Sprintf("%d bytes", len(body))}}
	if c.Count == nil {
		found.Notes[0] += ", prompt lengths are an estimate at 4 bytes a token"
	}
	c.tell(&found)
	words := Words()
	return func(yield func(bench.Request, error) bool) {
		r := c.stream()
		offset := Text{Words: words}.Offset(c.prefixStream())
		for i := 0; ; i++ {
			n, out, class := law.Draw(r)
			d := digits(c.number(offset, i), len(words))
			head := fmt.Sprintf("%s %s %s: ", words[d[0]], words[d[1]], words[d[2]])
			q := bench.Request{Prompt: c.cut(head, body, r.IntN(len(body)), n), ISL: n, OSL: out, Class: class}
			if !yield(q, nil) {
				return
			}
		}
	}, nil
}

// readText reads a text and puts single blanks between its words.
func readText(path string) (string, error) {
	f, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostText))
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, path, "can it be read?")
	}
	if err := notUTF8(b); err != nil {
		return "", fault.Wrap(fault.Usage, err, path, fault.HintOf(err))
	}
	s := strings.Join(strings.Fields(strings.TrimPrefix(string(b), utf8BOM)), " ")
	if len(s) < leastText {
		return "", fault.Usagef("a text of some pages; what is shorter than a prompt is repeated", "%s has %d bytes, fewer than %d", path, len(s), leastText)
	}
	return s, nil
}

// cut takes so much of a text, from a place in it on and again from its begin, that it has n tokens with its head.
func (c Config) cut(head, body string, from, n int) string {
	if i := strings.IndexByte(body[from:], ' '); i >= 0 { // at the begin of a word
		from += i + 1
	} else {
		from = 0
	}
	size := max(1, n*bytesPerToken-len(head))
	for range cutTries {
		text := head + stretchOf(body, from, size)
		have := c.estimate(text)
		if have == n || c.Count == nil {
			return text
		}
		size = max(1, size+(n-have)*size/max(1, have))
	}
	return head + stretchOf(body, from, size)
}

// stretchOf returns about size bytes of a text, whole words, beginning anew at its end.
func stretchOf(body string, from, size int) string {
	var b strings.Builder
	for b.Len() < size {
		part := body[from:]
		if room := size - b.Len(); len(part) > room {
			part = part[:room]
			if i := strings.LastIndexByte(part, ' '); i > 0 && b.Len()+i > size/2 {
				part = part[:i]
			}
			part = strings.ToValidUTF8(part, "")
			b.WriteString(part)
			break
		}
		b.WriteString(part)
		b.WriteByte(' ')
		from = 0
	}
	return strings.TrimSpace(b.String())
}
