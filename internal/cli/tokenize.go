package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/chat"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/hub"
	"github.com/prony-bench/prony/internal/token"
)

// Bounds of what is read.
const (
	longestText = 1 << 30  // bytes of a text
	longestLine = 64 << 20 // bytes of a JSON line: ten million tokens of text
)

// tokenizeJob is what tokenize was asked for.
type tokenizeJob struct {
	tokenizer                          string
	special, decode, skip, count, json bool
	download                           bool
	template                           func() (*chat.Template, error) // of the model
}

func (a *app) tokenizeCommand() *cobra.Command {
	var j tokenizeJob
	cmd := &cobra.Command{
		Use:   "tokenize --tokenizer PATH [FILE]",
		Short: "Turn a text into token ids, or back, or count them",
		Long: `tokenize reads a text from FILE or stdin and prints its token ids in a line. It gives the ids that Hugging Face's tokenizers and
OpenAI's tiktoken give, without them, and asks nobody.

--tokenizer takes a tokenizer.json (also packed by gzip), a directory with one, ORG/NAME of a model that is in the local Hugging Face
cache (ORG/NAME@REVISION for another revision than main), or builtin:o200k or builtin:cl100k. Nothing is downloaded without
--allow-download. The tables of a tokenizer are kept in prony/tokenizers below XDG_CACHE_HOME or ~/.cache, from where they are read
in some 0.1 s.

With --jsonl each line of the input is an object, and so is each line of the output:
  {"text":"Hello"}   gives {"ids":[9906]}, or with --count {"count":1}
  {"ids":[9906]}     with --decode gives {"text":"Hello"}
  {"messages":[{"role":"user","content":"Hello"}]}
                     gives the ids of the whole prompt, by the chat template of the model, with the begin of the answer

Special tokens that stand in a text are found as such. --add-special-tokens adds those that the model wants around a text.`,
		Example: `  prony tokenize --tokenizer ./Qwen3-8B < prompt.txt
  prony tokenize --tokenizer builtin:o200k --count README.md
  echo 9906 1917 | prony tokenize --tokenizer tokenizer.json --decode`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.tokenize(cmd.Context(), &j, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&j.tokenizer, "tokenizer", "", hub.TokenizerWords)
	f.BoolVar(&j.special, "add-special-tokens", false, "add the special tokens that the model wants around a text, such as a begin token")
	f.BoolVar(&j.decode, "decode", false, "read ids and print their text")
	f.BoolVar(&j.skip, "skip-special-tokens", false, "with --decode: leave special tokens out")
	f.BoolVar(&j.count, "count", false, "print the number of tokens only")
	f.BoolVar(&j.json, "jsonl", false, "a JSON object a line, in and out")
	f.BoolVar(&j.download, "allow-download", false, "get a tokenizer that is not in the local cache from the Hugging Face hub")
	return cmd
}

func (a *app) tokenize(ctx context.Context, j *tokenizeJob, args []string) error {
	if j.tokenizer == "" {
		return fault.New(fault.Usage, "no tokenizer is given", "--tokenizer takes "+hub.TokenizerWords)
	}
	if j.decode && (j.count || j.special) {
		return fault.New(fault.Usage, "--decode reads ids: it goes with neither --count nor --add-special-tokens", "leave one of them out")
	}
	if j.skip && !j.decode {
		return fault.New(fault.Usage, "--skip-special-tokens goes with --decode only", "")
	}
	get := token.Background(func() (*token.Tokenizer, error) { return a.loadTokenizer(ctx, j.tokenizer, j.download) })
	j.template = sync.OnceValues(func() (*chat.Template, error) { return a.loadTemplate(ctx, j.tokenizer, j.download) })
	in := a.Stdin
	if len(args) > 0 && args[0] != "-" {
		f, err := os.Open(args[0])
		if err != nil {
			return fault.Wrap(fault.Usage, err, "the text", "give the path of a file, or - for stdin")
		}
		defer f.Close()
		in = f
	}
	out := bufio.NewWriterSize(a.Stdout, 1<<16)
	var err error
	if j.json {
		err = j.lines(get, in, out)
	} else {
		err = j.text(get, in, out)
	}
	return errors.Join(err, out.Flush())
}

// loadTokenizer loads what --tokenizer names.
func (a *app) loadTokenizer(ctx context.Context, name string, download bool) (*token.Tokenizer, error) {
	h := hub.FromEnv(a.Getenv)
	h.Download, h.Say = download, a.say
	return h.Tokenizer(ctx, name, hub.KeptTokenizers(a.Getenv))
}

// counterOf returns what counts the tokens of a run's answers again: its tokenizer, which must be the same file; nil = it had none.
func (a *app) counterOf(ctx context.Context, s *bench.Spec) (func(string) int, error) {
	if s.Workload.TokenizerSHA == "" || s.Target.Task != bench.Generate {
		return nil, nil
	}
	t, err := a.loadTokenizer(ctx, s.Workload.Tokenizer, false)
	if err != nil {
		return nil, err
	}
	if t.Digest() != s.Workload.TokenizerSHA {
		return nil, fault.Usagef("the run had the file with SHA-256 "+s.Workload.TokenizerSHA, "the tokenizer %s is another one than that of the run", s.Workload.Tokenizer)
	}
	return t.Count, nil
}

// loadTemplate loads the chat template that comes with a tokenizer.
func (a *app) loadTemplate(ctx context.Context, name string, download bool) (*chat.Template, error) {
	h := hub.FromEnv(a.Getenv)
	h.Download, h.Say = download, a.say
	return h.Template(ctx, name)
}

// chat writes messages by the chat template of the model.
func (j *tokenizeJob) chat(messages []map[string]any) (string, error) {
	t, err := j.template()
	if err != nil {
		return "", err
	}
	text, err := t.Render(messages)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err, "messages", "does the model take such messages? the server's /tokenize counts what it makes of them")
	}
	return text, nil
}

// text reads one text, or the ids of one.
func (j *tokenizeJob) text(get func() (*token.Tokenizer, error), in io.Reader, out *bufio.Writer) error {
	b, err := io.ReadAll(io.LimitReader(in, longestText+1))
	if err == nil && len(b) > longestText {
		err = fmt.Errorf("it has more than %d bytes", longestText)
	}
	if err != nil {
		return fault.Wrap(fault.Usage, err, "read the text", "")
	}
	t, err := get()
	if err != nil {
		return err
	}
	if j.decode {
		ids, err := readIDs(string(b))
		if err != nil {
			return err
		}
		if err := known(t, ids); err != nil {
			return err
		}
		_, err = out.WriteString(t.Decode(ids, j.skip))
		return err
	}
	ids := t.Encode(string(b), j.special)
	if j.count {
		_, err := fmt.Fprintln(out, len(ids))
		return err
	}
	for i, id := range ids {
		if i > 0 {
			out.WriteByte(' ')
		}
		out.Write(strconv.AppendInt(nil, int64(id), 10))
	}
	return out.WriteByte('\n') // the writer keeps the first error
}

// readIDs reads numbers with blanks, commas or line ends between, and brackets around if wanted.
func readIDs(s string) ([]int32, error) {
	fields := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) })
	ids := make([]int32, len(fields))
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 32)
		if err != nil {
			return nil, fault.New(fault.Usage, fmt.Sprintf("%q is no token id", shorten(f, 40)), "with --decode the input is ids, with blanks between")
		}
		ids[i] = int32(v)
	}
	return ids, nil
}

// known refuses ids that are no tokens, which decoding would leave out.
func known(t *token.Tokenizer, ids []int32) error {
	for _, id := range ids {
		if _, ok := t.Token(id); !ok {
			return fault.New(fault.Usage, fmt.Sprintf("the tokenizer has no token %d", id), fmt.Sprintf("its ids go from 0 to %d: is it the right one?", t.Size()-1))
		}
	}
	return nil
}

// lines reads an object a line.
func (j *tokenizeJob) lines(get func() (*token.Tokenizer, error), in io.Reader, out *bufio.Writer) error {
	t, err := get()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	number := 0
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for lines.Scan() {
		number++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		answer, err := j.line(t, lines.Bytes())
		if err != nil {
			return errors.Join(out.Flush(), fault.Wrap(fault.CodeOf(err), err, fmt.Sprintf("line %d", number), fault.HintOf(err)))
		}
		if err := enc.Encode(answer); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fault.Wrap(fault.Usage, err, fmt.Sprintf("line %d", number+1), fmt.Sprintf("a line has at most %d bytes", longestLine))
	}
	return nil
}

func (j *tokenizeJob) line(t *token.Tokenizer, line []byte) (any, error) {
	var row struct {
		Text *string  `json:"text"`
		IDs  *[]int32 `json:"ids"`

		Messages []map[string]any `json:"messages"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fault.Wrap(fault.Usage, err, "no JSON object of that form", "see `prony tokenize --help`")
	}
	switch {
	case j.decode && row.IDs == nil:
		return nil, fault.New(fault.Usage, `there is no "ids"`, `with --decode a line is {"ids":[1,2]}`)
	case j.decode:
		if err := known(t, *row.IDs); err != nil {
			return nil, err
		}
		return struct {
			Text string `json:"text"`
		}{t.Decode(*row.IDs, j.skip)}, nil
	case row.Messages != nil && row.Text == nil:
		text, err := j.chat(row.Messages)
		if err != nil {
			return nil, err
		}
		row.Text = &text
	case row.Text == nil:
		return nil, fault.New(fault.Usage, `there is no "text"`, `a line is {"text":"Hello"}`)
	}
	ids := t.Encode(*row.Text, j.special && row.Messages == nil) // a template writes the special tokens by itself
	if j.count {
		return struct {
			Count int `json:"count"`
		}{len(ids)}, nil
	}
	return struct {
		IDs []int32 `json:"ids"`
	}{ids}, nil
}
