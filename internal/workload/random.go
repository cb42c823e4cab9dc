package workload

import (
	_ "embed"
	"iter"
	"math"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// Random invents prompts of exact lengths that share no prefix.
type Random struct{}

// Name implements Dataset.
func (Random) Name() string { return "random" }

// Invents implements Inventor.
func (Random) Invents() {}

// Open implements Dataset.
func (Random) Open(c Config) (iter.Seq2[bench.Request, error], error) { return c.random("random") }

// RandomIDs is the data set `random-ids`: as random, of token ids and nothing else.
type RandomIDs struct{}

// Name implements Dataset.
func (RandomIDs) Name() string { return "random-ids" }

// Invents implements Inventor.
func (RandomIDs) Invents() {}

// Open implements Dataset.
func (RandomIDs) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	if _, words := c.Maker.(Text); words || c.Chat || c.inputs() {
		return nil, fault.New(fault.Usage, "token ids cannot be sent to this endpoint", "use --endpoint completions of an engine that takes token ids, or --dataset random")
	}
	return c.random("random-ids")
}

// random gives prompts of lengths by the laws.
func (c Config) random(name string) (iter.Seq2[bench.Request, error], error) {
	if c.Spec.Path != "" || c.Spec.Prompt != "" {
		return nil, fault.New(fault.Usage, "the data set "+name+" takes neither a file nor a prompt", "use --dataset text or --dataset jsonl for your own requests")
	}
	var law Pair
	var isl Law
	var err error
	if c.inputs() {
		if c.Spec.Mix != "" || c.Spec.Lengths != "" {
			return nil, fault.New(fault.Usage, "--mix and --lengths are of prompts and their answers", "give --isl where nothing is generated")
		}
		isl, _, err = lengths(c)
	} else {
		law, err = pairs(c)
	}
	if err != nil {
		return nil, err
	}
	return func(yield func(bench.Request, error) bool) {
		r := c.stream()
		offset := c.offset()
		if c.inputs() {
			c.batches(isl, r, offset)(yield)
			return
		}
		for i := 0; ; i++ {
			n, out, class := law.Draw(r)
			q := bench.Request{ISL: n, OSL: out, Class: class}
			c.Maker.Make(&q, n, c.number(offset, i), r)
			if !yield(q, nil) {
				return
			}
		}
	}, nil
}

// number is that of a phase's i-th prompt. The warm-up counts the other way, so that its prompts and the measured ones meet last.
func (c Config) number(offset, i int) int {
	if c.Phase == bench.Warmup {
		return offset - 1 - i
	}
	return offset + i
}

// lengths reads the laws of a spec.
func lengths(c Config) (isl, osl Law, err error) {
	w := c.Spec
	if isl, err = ParseLaw(w.ISL); err != nil {
		return nil, nil, err
	}
	if osl, err = outputLaw(c); err != nil {
		return nil, nil, err
	}
	if isl, err = WithRange(isl, w.RangeRatio); err != nil {
		return nil, nil, err
	}
	return isl, osl, nil
}

// batches gives requests of several texts: to embed, or documents with a query. Each text has its own number, as prompts have.
func (c Config) batches(isl Law, r *rng.Stream, offset int) iter.Seq2[bench.Request, error] {
	return func(yield func(bench.Request, error) bool) {
		size := max(1, c.Spec.Batch)
		for i := 0; ; i += size {
			var q bench.Request
			for k := range size {
				n, number := isl.Draw(r), offset+i+k
				if c.Phase == bench.Warmup {
					number = offset - 1 - i - k
				}
				c.Maker.Make(&q, n, number, r)
				q.Inputs, q.Prompt = append(q.Inputs, q.Prompt), ""
				q.ISL += n
			}
			if !yield(q, nil) {
				return
			}
		}
	}
}

// Maker makes prompts of a wanted number of tokens, as the server counts them.
type Maker interface {
	// Make sets the prompt of q to n tokens. Prompts with different numbers begin differently.
	Make(q *bench.Request, n, number int, r *rng.Stream)
	// Join sets the prompt of q to parts, one behind the other. What the server adds by itself is taken off the end.
	Join(q *bench.Request, parts []Part)
	// Offset draws the number of a run's first prompt, so that runs differ from each other.
	Offset(r *rng.Stream) int
	// Source says how the length was made sure of.
	Source() string
}

// Part is a stretch of a prompt. Parts of one number and stream are the same, as far as they go; those of different numbers begin differently.
type Part struct {
	Number int
	N      int // tokens
	Stream *rng.Stream
}

// IDs makes prompts of token ids, exact by construction.
type IDs struct {
	Low, High int // ids from Low to High-1, all of them ordinary tokens
	Added     int // tokens that the server adds by itself, such as a begin token
}

// leading is the number of tokens at the begin of a prompt that spell its number: with 1,024 words, a billion prompts.
const leading = 3

// digits writes a number in a base, lowest digit first, so that neighbours differ from their first token on, and two prompts
// begin with the same token only when as many lie between them as there are tokens.
func digits(number, base int) (d [leading]int) {
	for i := range d {
		d[i] = (number%base + base) % base
		number = (number - d[i]) / base
	}
	return d
}

// Offset implements Maker.
func (m IDs) Offset(r *rng.Stream) int { return offset(m.High-m.Low, r) }

func offset(base int, r *rng.Stream) int { return r.IntN(base * base * base) }

// Source implements Maker.
func (m IDs) Source() string { return "token ids" }

// Make implements Maker.
func (m IDs) Make(q *bench.Request, n, number int, r *rng.Stream) {
	first := digits(number, m.High-m.Low)
	q.Tokens = make([]int, max(1, n-m.Added))
	for i := range q.Tokens {
		if i < leading {
			q.Tokens[i] = m.Low + first[i]
		} else {
			q.Tokens[i] = m.Low + r.IntN(m.High-m.Low)
		}
	}
}

// Join implements Maker.
func (m IDs) Join(q *bench.Request, parts []Part) {
	total := 0
	for _, p := range parts {
		total += p.N
	}
	total = max(1, total-m.Added)
	q.Tokens = make([]int, 0, total)
	for _, p := range parts {
		first := digits(p.Number, m.High-m.Low)
		for i := range min(p.N, total-len(q.Tokens)) {
			id := 0
			if i < leading {
				id = first[i]
			} else {
				id = p.Stream.IntN(m.High - m.Low)
			}
			q.Tokens = append(q.Tokens, m.Low+id)
		}
	}
}

//go:embed words.txt
var wordList string

// Words returns the words of which prompts are made: ordinary English words, each one token in the vocabularies of Qwen 3,
// Llama 3 and Gemma 3, with and without a blank before it.
func Words() []string { return strings.Fields(wordList) }

// Text makes prompts of words whose number of tokens is known.
type Text struct {
	Words    []string
	PerWord  float64 // tokens a word, on the average; exactly 1 where the words were checked
	Overhead int     // tokens that the server adds: begin token, chat template, the query before a document
	Query    int     // words of the query that goes before the documents of a request; 0 = there is none
	Once     int     // tokens of a request besides its documents: the query, where it is not counted with each
	How      string  // how that was found out
}

// Offset implements Maker.
func (m Text) Offset(r *rng.Stream) int { return offset(len(m.Words), r) }

// Source implements Maker.
func (m Text) Source() string { return m.How }

// Count returns the number of words for n tokens: at least one.
func (m Text) Count(n int) int {
	return max(1, int(math.Round(float64(n-m.Overhead)/m.PerWord)))
}

// Make implements Maker.
func (m Text) Make(q *bench.Request, n, number int, r *rng.Stream) {
	var b strings.Builder
	if m.Query > 0 && q.Query == "" {
		for i := range m.Query {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(m.Words[r.IntN(len(m.Words))])
		}
		q.Query = b.String()
		q.ISL += m.Once
		b.Reset()
	}
	first := digits(number, len(m.Words))
	for i := range m.Count(n) {
		if i > 0 {
			b.WriteByte(' ')
		}
		if i < leading {
			b.WriteString(m.Words[first[i]])
		} else {
			b.WriteString(m.Words[r.IntN(len(m.Words))])
		}
	}
	q.Prompt = b.String()
}

// Join implements Maker.
func (m Text) Join(q *bench.Request, parts []Part) {
	total := 0
	for _, p := range parts {
		total += p.N
	}
	total = m.Count(total)
	var b strings.Builder
	b.Grow(6 * total)
	done := 0
	for _, p := range parts {
		first := digits(p.Number, len(m.Words))
		// a part ends where its tokens do, whatever was before it: its words depend on its own length alone
		for i := range min(max(1, int(math.Round(float64(p.N)/m.PerWord))), total-done) {
			if done > 0 {
				b.WriteByte(' ')
			}
			done++
			if i < leading {
				b.WriteString(m.Words[first[i]])
			} else {
				b.WriteString(m.Words[p.Stream.IntN(len(m.Words))])
			}
		}
	}
	q.Prompt = b.String()
}
