package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
)

// foreign are the fields of other tools' rows, which are read as ours: vLLM's custom data set has ours; AIPerf's single_turn and
// multi_turn; trtllm-bench's.
type foreign struct {
	Text   *string         `json:"text"` // AIPerf
	Texts  json.RawMessage `json:"texts"`
	Image  *string         `json:"image"`
	Images json.RawMessage `json:"images"`
	Role   string          `json:"role"`
	Turns  []turn          `json:"turns"`
	Type   string          `json:"type"`
	Delay  *float64        `json:"delay"`   // ms before a turn
	TaskID json.RawMessage `json:"task_id"` // trtllm-bench
	Logits []int           `json:"logits"`  // its older word for token ids
}

// turn is one turn of AIPerf's multi_turn, and what a single_turn has.
type turn struct {
	Type   string          `json:"type"`
	Text   *string         `json:"text"`
	Texts  json.RawMessage `json:"texts"`
	Image  *string         `json:"image"`
	Images json.RawMessage `json:"images"`
	Role   string          `json:"role"`
	At     *float64        `json:"timestamp"`
	Delay  *float64        `json:"delay"`
	Output *int            `json:"output_tokens"`
}

var turnFields = []string{"type", "text", "texts", "image", "images", "role", "timestamp", "delay", "output_tokens"}

// requests turns a row into the requests that it stands for: one, or one for each turn.
func (x *row) requests(c Config, sessions map[string]int) ([]bench.Request, error) {
	if x.Logits != nil && x.InputIDs == nil {
		x.InputIDs = x.Logits
	}
	if len(x.Turns) > 0 {
		return x.conversation(len(sessions)+1, sessions)
	}
	if t := (turn{Text: x.Text, Texts: x.Texts, Image: x.Image, Images: x.Images, Role: x.Role}); x.Text != nil || x.Texts != nil || x.Image != nil || x.Images != nil {
		if x.Prompt != nil || x.Messages != nil || x.InputIDs != nil {
			return nil, errors.New("text and image exclude prompt, messages and input_ids")
		}
		m, plain, err := t.message()
		if err != nil {
			return nil, err
		}
		if plain && x.Role == "" {
			var s string
			if err := json.Unmarshal(m.Content, &s); err != nil {
				return nil, err
			}
			x.Prompt = &s
		} else {
			x.Messages = []bench.Message{m}
		}
	}
	q, err := x.request(c)
	if err == nil && len(x.Session) == 1 {
		q.Conversation = session(sessions, x.Session[0])
	}
	return []bench.Request{q}, err
}

// session numbers sessions from 1.
func session(all map[string]int, name string) int {
	n, ok := all[name]
	if !ok {
		n = len(all) + 1
		all[name] = n
	}
	return n
}

// conversation gives a request for each turn of a user, with the turns before it. Replies that the row does not have are not there.
func (x *row) conversation(number int, sessions map[string]int) ([]bench.Request, error) {
	if x.Prompt != nil || x.Messages != nil || x.InputIDs != nil || x.Text != nil {
		return nil, errors.New("turns exclude prompt, messages, input_ids and text")
	}
	name := fmt.Sprintf("\x00%d", number)
	if len(x.Session) == 1 {
		name = x.Session[0]
	}
	var out []bench.Request
	var history []bench.Message
	for i, t := range x.Turns {
		m, _, err := t.message()
		if err != nil {
			return nil, fmt.Errorf("turns[%d]: %w", i, err)
		}
		history = append(history[:len(history):len(history)], m)
		if m.Role == "assistant" || m.Role == "system" {
			continue
		}
		q := bench.Request{Messages: history, Turn: len(out), Extra: x.Extra, Class: x.Class}
		if t.Output != nil {
			q.OSL = *t.Output
		} else if x.Output != nil {
			q.OSL = *x.Output
		}
		if q.OSL < 0 || q.OSL > maxLength {
			return nil, fmt.Errorf("turns[%d]: output_tokens is %d, must be between 1 and %d", i, q.OSL, maxLength)
		}
		out = append(out, q)
	}
	if len(out) == 0 {
		return nil, errors.New("turns has no turn of a user")
	}
	n := session(sessions, name)
	for i := range out {
		out[i].Conversation = n
	}
	return out, x.checkExtra()
}

// message is a turn as a message of a chat; plain tells that it is one text.
func (t *turn) message() (m bench.Message, plain bool, err error) {
	m.Role = t.Role
	if m.Role == "" {
		m.Role = "user"
	}
	words, err := contents("texts", t.Text, t.Texts)
	if err != nil {
		return m, false, err
	}
	pictures, err := contents("images", t.Image, t.Images)
	switch {
	case err != nil:
		return m, false, err
	case len(words)+len(pictures) == 0:
		return m, false, errors.New("there is neither text nor image")
	case len(words) == 1 && len(pictures) == 0:
		if words[0] == "" {
			return m, false, errors.New("the text is empty")
		}
		m.Content, err = json.Marshal(words[0])
		return m, true, err
	}
	var parts []map[string]any
	for _, w := range words {
		parts = append(parts, map[string]any{"type": "text", "text": w})
	}
	for _, p := range pictures {
		if !strings.HasPrefix(p, "data:") && !strings.HasPrefix(p, "http://") && !strings.HasPrefix(p, "https://") {
			return m, false, errors.New("an image is no URL: a path on this machine means nothing to the server")
		}
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]string{"url": p}})
	}
	m.Content, err = json.Marshal(parts)
	return m, false, err
}

// contents reads one text, or a list of texts or of {"name":..., "contents":[...]}.
func contents(name string, one *string, many json.RawMessage) ([]string, error) {
	if one != nil && many != nil {
		return nil, fmt.Errorf("%s and its singular exclude each other", name)
	}
	if one != nil {
		return []string{*one}, nil
	}
	if many == nil {
		return nil, nil
	}
	var list []json.RawMessage
	if json.Unmarshal(many, &list) != nil {
		return nil, fmt.Errorf("%s is %s, not a list", name, Kind(many))
	}
	var out []string
	for i, v := range list {
		var s string
		var named struct {
			Contents []string `json:"contents"`
		}
		switch {
		case json.Unmarshal(v, &s) == nil:
			out = append(out, s)
		case json.Unmarshal(v, &named) == nil && len(named.Contents) > 0:
			out = append(out, named.Contents...)
		default:
			return nil, fmt.Errorf("%s[%d] is %s, neither a text nor an object with contents", name, i, Kind(v))
		}
	}
	return out, nil
}

// explainTurns says what is wrong with turns.
func explainTurns(list json.RawMessage) error {
	return explainList("turns", list, func(name string, v json.RawMessage) error {
		var fields map[string]json.RawMessage
		if json.Unmarshal(v, &fields) != nil {
			return fmt.Errorf("%s is %s, not an object", name, Kind(v))
		}
		return known(name, fields, turnFields)
	})
}
