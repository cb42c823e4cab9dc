package workload

import (
	"iter"
	"os"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// maxLine bounds one line of a data set: a prompt of a million tokens has some 5 MB.
const maxLine = 64 << 20

// Lines is the data set `text`: one prompt a line of a file, or one given prompt again and again.
type Lines struct{}

// Name implements Dataset.
func (Lines) Name() string { return "text" }

// Open implements Dataset.
func (Lines) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	osl, err := givenLaw(c)
	if err != nil {
		return nil, err
	}
	if c.Task.Or(bench.Generate) == bench.Rerank {
		return nil, fault.New(fault.Usage, "a line of text is no query with documents", "use --dataset jsonl with rows of query and documents, or --dataset random")
	}
	one := func(text string) bench.Request {
		if c.inputs() {
			return bench.Request{Inputs: []string{text}}
		}
		return bench.Request{Prompt: text}
	}
	if c.Spec.Prompt != "" {
		if c.Spec.Path != "" {
			return nil, fault.New(fault.Usage, "--prompt and --dataset-path exclude each other", "give one prompt, or a file of them")
		}
		return repeat(c, osl, []bench.Request{one(c.Spec.Prompt)}), nil
	}
	rows, err := readRows(c, func(line []byte) ([]bench.Request, error) {
		return []bench.Request{one(string(line))}, nil
	})
	if err != nil {
		return nil, err
	}
	return repeat(c, osl, rows), nil
}

// givenLaw reads the law of the output lengths of a file's requests.
func givenLaw(c Config) (Law, error) {
	w := c.Spec
	if w.ISL != "" {
		return nil, fault.New(fault.Usage, "--isl belongs to the data set random: here the prompts are given", "leave --isl out")
	}
	if w.Batch > 0 {
		return nil, fault.New(fault.Usage, "--batch belongs to the data set random: here the inputs of a request are given", "leave --batch out, or give lists in the rows of --dataset jsonl")
	}
	return outputLaw(c)
}

// outputLaw reads the law of the output lengths. There are none where nothing is generated.
func outputLaw(c Config) (Law, error) {
	if c.inputs() {
		return Fixed(0), nil
	}
	w := c.Spec
	osl, err := ParseLaw(w.OSL)
	if err != nil {
		return nil, err
	}
	return WithRange(osl, w.RangeRatio)
}

// utf8BOM is what some editors put at the begin of a file.
const utf8BOM = "\xef\xbb\xbf"

// readRows reads the non-blank lines of a file. Bad ones are counted and left out, or refuse the file (Strict).
func readRows(c Config, parse func([]byte) ([]bench.Request, error)) ([]bench.Request, error) {
	t := &tally{path: c.Spec.Path, strict: c.Spec.Strict, hint: rowHint}
	var rows []bench.Request
	err := eachLine(c.Spec.Path, func(at piece, line []byte) error {
		err := notUTF8(line)
		var qs []bench.Request
		if err == nil {
			qs, err = parse(line)
		}
		if err == nil {
			rows = append(rows, qs...)
		}
		return t.row(at.line, err)
	})
	if err != nil {
		return nil, err
	}
	found, err := t.done()
	if err != nil {
		return nil, err
	}
	c.tell(found)
	return rows, nil
}

// open opens a regular file. Anything else is refused before it is opened: a pipe would block there, and cannot be read twice.
func open(path string) (*os.File, error) {
	const twice = "a data set is read more than once: write it into a file first"
	switch path {
	case "":
		return nil, fault.New(fault.Usage, "this data set needs a file", "give --dataset-path FILE")
	case "-":
		return nil, fault.New(fault.Usage, "a data set cannot come from stdin", twice)
	}
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Usage, err, "data set", "check --dataset-path")
	case st.IsDir():
		return nil, fault.New(fault.Usage, path+" is a directory", "give one file with --dataset-path")
	case !st.Mode().IsRegular():
		return nil, fault.New(fault.Usage, path+" is no regular file", twice)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "data set", "check --dataset-path")
	}
	return f, nil
}

// repeat gives the rows in order, again and again. The warm-up takes them from the end, so that it is the last to repeat a measured one.
func repeat(c Config, osl Law, rows []bench.Request) iter.Seq2[bench.Request, error] {
	return func(yield func(bench.Request, error) bool) {
		r := c.stream()
		for i := 0; ; i++ {
			k := i % len(rows)
			if c.Phase == bench.Warmup {
				k = len(rows) - 1 - k
			}
			q := rows[k]
			if q.OSL == 0 {
				q.OSL = osl.Draw(r)
			}
			if !yield(q, nil) {
				return
			}
		}
	}
}
