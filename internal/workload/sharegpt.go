package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
)

// ShareGPT is the data set `sharegpt`: recorded conversations, a JSON list or a JSON object a line, with
// {"id":..., "conversations":[{"from":"human", "value":...}, {"from":"gpt", "value":...}]}. A pair is a turn of a human with the reply behind
// it: the first pair of a conversation is a request, or each of them with the pairs before it.
type ShareGPT struct{}

// Name implements Dataset.
func (ShareGPT) Name() string { return "sharegpt" }

// OwnLengths implements OwnLengths: the recorded replies say how long the answers are.
func (ShareGPT) OwnLengths() {}

// said is a conversation as it is recorded.
type said struct {
	Conversations *[]struct {
		From  string `json:"from"`
		Value string `json:"value"`
	} `json:"conversations"`
}

// exchange is a turn of a human and its reply.
type exchange struct{ human, reply string }

// Why a conversation is left out.
var (
	errNoConversations = errors.New("no conversations")
	errEmpty           = errors.New("empty")
	errNoReply         = errors.New("no reply")
)

// exchanges returns the pairs of a recorded conversation and what the system said before them.
func exchanges(raw []byte) (pairs []exchange, system string, err error) {
	if err := notUTF8(raw); err != nil {
		return nil, "", err
	}
	if err := CheckObject(raw); err != nil {
		return nil, "", fmt.Errorf("the row %w", err)
	}
	var x said
	if json.Unmarshal(raw, &x) != nil {
		return nil, "", errors.New("conversations is no list of turns with from and value")
	}
	if x.Conversations == nil {
		return nil, "", errNoConversations
	}
	if len(*x.Conversations) == 0 {
		return nil, "", errEmpty
	}
	human := ""
	for _, t := range *x.Conversations {
		text := strings.TrimSpace(t.Value)
		switch t.From {
		case "human", "user":
			human = text
		case "gpt", "chatgpt", "assistant", "bing", "bard":
			if human != "" && text != "" {
				pairs = append(pairs, exchange{human, text})
			}
			human = ""
		case "system":
			if len(pairs) == 0 {
				system = text
			}
		}
	}
	if len(pairs) == 0 {
		return nil, "", errNoReply
	}
	return pairs, system, nil
}

// span is where an element lies in a file.
type span struct {
	offset int64
	length int
}

// bytesPerToken is the usual size of a token of English text.
const bytesPerToken = 4

// estimate is how many tokens a text has, where nothing counts them.
func (c Config) estimate(text string) int {
	if c.Count != nil {
		return max(1, c.Count(text))
	}
	return (len(text) + bytesPerToken - 1) / bytesPerToken
}

// Open implements Dataset.
func (ShareGPT) Open(c Config) (iter.Seq2[bench.Request, error], error) {
	if c.Spec.Prompt != "" {
		return nil, fault.New(fault.Usage, "--prompt belongs to the data set text", "use --dataset text --prompt ...")
	}
	if c.inputs() {
		return nil, fault.New(fault.Usage, "conversations are requests that generate", "use --endpoint chat or --endpoint completions")
	}
	var law Law
	if c.Spec.OSL != "" {
		l, err := givenLaw(c)
		if err != nil {
			return nil, err
		}
		law = l
	} else if c.Spec.ISL != "" {
		return nil, fault.New(fault.Usage, "--isl belongs to data sets that make their prompts", "leave --isl out")
	}
	type index struct {
		found bench.Rows
		spans []span
	}
	x, err := cached(c, fmt.Sprint("sharegpt\x00", c.Spec.Path, c.Spec.Strict), func() (*index, error) {
		x := &index{}
		count := &tally{path: c.Spec.Path, strict: c.Spec.Strict, hint: `a row is {"id":..., "conversations":[{"from":"human","value":...},{"from":"gpt","value":...}]}`}
		if err := eachElement(c.Spec.Path, func(at piece, raw []byte) error {
			_, _, err := exchanges(raw)
			if err == nil {
				x.spans = append(x.spans, span{at.offset, len(raw)})
			}
			return count.row(at.line, err)
		}); err != nil {
			return nil, err
		}
		found, err := count.done()
		if err == nil {
			x.found = *found
		}
		return x, err
	})
	if err != nil {
		return nil, err
	}
	found := x.found
	if law == nil && c.Count == nil {
		found.Notes = []string{"output lengths are those of the recorded replies, estimated at 4 bytes a token"}
	}
	c.tell(&found)
	return func(yield func(bench.Request, error) bool) {
		f, err := open(c.Spec.Path)
		if err != nil {
			yield(bench.Request{}, err)
			return
		}
		defer f.Close()
		r := c.stream()
		for i := 0; ; i++ {
			k := i % len(x.spans)
			if c.Phase == bench.Warmup {
				k = len(x.spans) - 1 - k
			}
			raw := make([]byte, x.spans[k].length)
			_, err := f.ReadAt(raw, x.spans[k].offset)
			if err != nil && err != io.EOF {
				yield(bench.Request{}, fault.Wrap(fault.Usage, err, c.Spec.Path, "was the file changed?"))
				return
			}
			pairs, system, err := exchanges(raw)
			if err != nil {
				yield(bench.Request{}, fault.Wrap(fault.Usage, err, c.Spec.Path, "was the file changed?"))
				return
			}
			for _, q := range c.turns(pairs, system, i+1) {
				if law != nil {
					q.OSL = law.Draw(r)
				}
				if !yield(q, nil) {
					return
				}
			}
		}
	}, nil
}

// turns are the requests of a conversation: its first pair, or all of them.
func (c Config) turns(pairs []exchange, system string, number int) []bench.Request {
	if !c.Spec.MultiTurn {
		return []bench.Request{{Prompt: pairs[0].human, OSL: c.estimate(pairs[0].reply)}}
	}
	var out []bench.Request
	var history []bench.Message
	if system != "" {
		history = append(history, message("system", system))
	}
	for i, p := range pairs {
		history = append(history[:len(history):len(history)], message("user", p.human))
		out = append(out, bench.Request{Messages: history, OSL: c.estimate(p.reply), Conversation: number, Turn: i})
		history = append(history[:len(history):len(history)], message("assistant", p.reply))
	}
	return out
}

// message is a message of one text.
func message(role, text string) bench.Message {
	content, err := json.Marshal(text)
	if err != nil {
		panic("workload: a text that is no JSON: " + err.Error())
	}
	return bench.Message{Role: role, Content: content}
}
