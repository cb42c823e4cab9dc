package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	osl, err := outputLaw(c.Spec)
	if err != nil {
		return nil, err
	}
	if c.Spec.Prompt != "" {
		if c.Spec.Path != "" {
			return nil, fault.New(fault.Usage, "--prompt and --dataset-path exclude each other", "")
		}
		return repeat(c, osl, []bench.Request{{Prompt: c.Spec.Prompt}}), nil
	}
	rows, err := readRows(c.Spec.Path, func(line []byte) (bench.Request, error) {
		return bench.Request{Prompt: string(line)}, nil
	})
	if err != nil {
		return nil, err
	}
	return repeat(c, osl, rows), nil
}

// JSONL is the data set `jsonl`: one request a line, with its own messages, prompt or token ids.
type JSONL struct{}

// Name implements Dataset.
func (JSONL) Name() string { return "jsonl" }

// row is a line of a jsonl data set. Fields that are not listed are ignored.
type row struct {
	Prompt   *string         `json:"prompt"`
	Messages []bench.Message `json:"messages"`
	InputIDs []int           `json:"input_ids"`
	Output   *int            `json:"output_tokens"`
	Extra    json.RawMessage `json:"extra_body"`
}

// Open implements Dataset.
func (JSONL) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	if c.Spec.Prompt != "" {
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "use --dataset text --prompt ...")
	}
	osl, err := outputLaw(c.Spec)
	if err != nil {
		return nil, err
	}
	rows, err := readRows(c.Spec.Path, func(line []byte) (bench.Request, error) {
		var x row
		if err := json.Unmarshal(line, &x); err != nil {
			return bench.Request{}, err
		}
		given := 0
		q := bench.Request{Messages: x.Messages, Tokens: x.InputIDs, Extra: x.Extra}
		if x.Prompt != nil {
			q.Prompt = *x.Prompt
			given++
		}
		if len(x.Messages) > 0 {
			given++
		}
		if len(x.InputIDs) > 0 {
			given++
			q.ISL = len(x.InputIDs)
		}
		if given != 1 {
			return q, errors.New("needs exactly one of prompt, messages, input_ids")
		}
		if x.Output != nil {
			if *x.Output < 1 {
				return q, fmt.Errorf("output_tokens is %d, must be at least 1", *x.Output)
			}
			q.OSL = *x.Output
		}
		if len(x.Extra) > 0 && x.Extra[0] != '{' {
			return q, errors.New("extra_body is no object")
		}
		return q, nil
	})
	if err != nil {
		return nil, err
	}
	return repeat(c, osl, rows), nil
}

// outputLaw reads the law of the output lengths of a file's requests.
func outputLaw(w bench.Workload) (Law, error) {
	if w.ISL != "" {
		return nil, fault.New(fault.Usage, "--isl belongs to the data set random: here the prompts are given", "leave --isl out")
	}
	osl, err := ParseLaw(w.OSL)
	if err != nil {
		return nil, err
	}
	return WithRange(osl, w.RangeRatio)
}

// readRows reads the non-blank lines of a file.
func readRows(path string, parse func([]byte) (bench.Request, error)) ([]bench.Request, error) {
	if path == "" {
		return nil, fault.New(fault.Usage, "this data set needs a file", "give --dataset-path FILE")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "data set", "check --dataset-path")
	}
	defer f.Close()
	var rows []bench.Request
	in := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			q, perr := parse(line)
			if perr != nil {
				return nil, fault.Wrap(fault.Usage, perr, fmt.Sprintf("%s line %d", path, n), "")
			}
			rows = append(rows, q)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, fmt.Sprintf("%s line %d", path, n), "")
		}
	}
	if len(rows) == 0 {
		return nil, fault.New(fault.Usage, path+" holds no request", "")
	}
	return rows, nil
}

func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("longer than %d bytes", maxLine)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
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
			if c.Chat && len(q.Messages) == 0 && len(q.Tokens) == 0 && q.Prompt == "" {
				yield(q, fault.Usagef("", "row %d of %s is empty", k+1, c.Spec.Path))
				return
			}
			if !yield(q, nil) {
				return
			}
		}
	}
}
