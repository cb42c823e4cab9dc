package sim

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"sort"
	"strconv"
)

// vectorSize is the length of a vector, unless a request asks for another. The bounds keep an answer below 100 MB.
const (
	vectorSize    = 64
	maxVectorSize = 8192
	maxInputs     = 1024
)

// batch is the speaker of endpoints that embed or rank: it writes one body, when the work is done.
type batch struct {
	g     *generation
	w     *wish
	write func(b []byte, g *generation, w *wish) []byte
	head  []text
}

func (*batch) early(*event)            {}
func (*batch) tokens(*event, int, int) {}
func (*batch) tail(*event)             {}
func (*batch) broken(*event)           {}

func (t *batch) fields(b []byte) []byte {
	return (&speech{f: &form{head: t.head}, g: t.g}).fields(b)
}

func (t *batch) whole(b []byte) []byte { return t.write(b, t.g, t.w) }

// batches is a route that embeds or ranks.
func batches(path string, read func(s *Server, req *request) (*wish, *apiError), write func(b []byte, g *generation, w *wish) []byte,
	head ...text) route {
	return route{path: path, read: read, speak: func(g *generation, w *wish) speaker { return &batch{g, w, write, head} }}
}

func embeddings(path string, write func(b []byte, g *generation, w *wish) []byte, head ...text) route {
	return batches(path, readEmbeddings, write, head...)
}

func rerank(path string, write func(b []byte, g *generation, w *wish) []byte) route {
	return batches(path, readRanks, write)
}

// readEmbeddings reads a request for vectors in the form of the OpenAI API, of Ollama or of TEI.
func readEmbeddings(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Model      string          `json:"model"`
		Input      json.RawMessage `json:"input"`
		Inputs     json.RawMessage `json:"inputs"` // TEI
		Format     string          `json:"encoding_format"`
		Dimensions *int            `json:"dimensions"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	raw := in.Input
	if len(raw) == 0 {
		raw = in.Inputs
	}
	lists, err := inputs(raw)
	if err != nil {
		return nil, err
	}
	w := &wish{embeds: true, dims: vectorSize, base64: in.Format == "base64"}
	if in.Dimensions != nil {
		if w.dims = *in.Dimensions; w.dims < 1 || w.dims > maxVectorSize {
			return nil, invalid("dimensions must be between 1 and " + strconv.Itoa(maxVectorSize))
		}
	}
	return w, s.take(w, lists)
}

// readRanks reads a request for scores in the form of Cohere, which vLLM and llama.cpp share, or of TEI.
func readRanks(s *Server, req *request) (*wish, *apiError) {
	var in struct {
		Model     string            `json:"model"`
		Query     *string           `json:"query"`
		Documents []json.RawMessage `json:"documents"`
		Texts     []string          `json:"texts"` // TEI
		Top       *int              `json:"top_n"`
		Return    *bool             `json:"return_text"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	if in.Query == nil {
		return nil, missingField("query")
	}
	w := &wish{embeds: true, texts: in.Texts, echo: in.Return != nil && *in.Return}
	for _, raw := range in.Documents {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			var doc struct{ Text string }
			if err := json.Unmarshal(raw, &doc); err != nil {
				return nil, badJSON(err)
			}
			text = doc.Text
		}
		w.texts = append(w.texts, text)
	}
	if len(w.texts) == 0 {
		return nil, missingField("documents")
	}
	if w.top = len(w.texts); in.Top != nil && *in.Top > 0 {
		w.top = min(*in.Top, w.top)
	}
	query := tokenize(nil, *in.Query)
	var lists [][]int32
	for _, t := range w.texts {
		lists = append(lists, tokenize(query[:len(query):len(query)], t))
	}
	return w, s.take(w, lists)
}

// take puts the tokens of several inputs into a wish. Each must fit into the context by itself; the work is that of all of them.
func (s *Server) take(w *wish, lists [][]int32) *apiError {
	if len(lists) > maxInputs {
		return invalid("the simulated engine takes " + strconv.Itoa(maxInputs) + " inputs at most in a request")
	}
	for _, ids := range lists {
		if len(ids) == 0 {
			return invalid("the input must not be empty")
		}
		if n := s.cfg.MaxModelLen; len(ids) > n {
			e := invalid("This model's maximum context length is " + strconv.Itoa(n) + " tokens. However, your input contains " +
				strconv.Itoa(len(ids)) + " tokens.")
			e.cause, e.prompt, e.window = tooLong, len(ids), n
			return e
		}
		w.prompt = append(w.prompt, ids...)
		w.lists = append(w.lists, ids)
	}
	return nil
}

// inputs reads a string, a list of strings, a list of token ids or a list of such lists.
func inputs(raw json.RawMessage) (out [][]int32, _ *apiError) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, missingField("input")
	}
	items := []json.RawMessage{raw}
	if raw[0] == '[' {
		inner := bytes.TrimSpace(raw[1:])
		if inner[0] == '"' || inner[0] == '[' {
			items = nil
			if err := json.Unmarshal(raw, &items); err != nil {
				return nil, badJSON(err)
			}
		}
	}
	for _, item := range items {
		ids, _, err := textPrompt(item)
		if err != nil {
			return nil, err
		}
		out = append(out, ids)
	}
	return out, nil
}

// component is the k-th number of the vector of an input: between -1 and 1, the same for the same tokens.
func component(of writer, k int) float32 {
	return float32(int64(mix(uint64(of)+uint64(k))>>40)-1<<23) / (1 << 23)
}

func appendVector(b []byte, ids []int32, n int) []byte {
	of := newWriter(ids, 0)
	b = append(b, '[')
	for k := range n {
		if k > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(component(of, k)), 'g', -1, 32)
	}
	return append(b, ']')
}

// appendPacked writes a vector as little-endian float32 in base64.
func appendPacked(b []byte, ids []int32, n int) []byte {
	of, raw := newWriter(ids, 0), make([]byte, 0, 4*n)
	for k := range n {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(component(of, k)))
	}
	b = append(b, '"')
	return append(base64.StdEncoding.AppendEncode(b, raw), '"')
}

// appendUsage is the count of what embeds and ranks.
func appendUsage(b []byte, g *generation) []byte {
	b = number(append(b, `"usage":{"prompt_tokens":`...), len(g.prompt))
	return append(number(append(b, `,"total_tokens":`...), len(g.prompt)), '}')
}

func openAIVectors(b []byte, g *generation, w *wish) []byte {
	b = append(b, `{"object":"list","data":[`...)
	for i, ids := range w.lists {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(number(append(b, `{"object":"embedding","index":`...), i), `,"embedding":`...)
		if w.base64 {
			b = appendPacked(b, ids, w.dims)
		} else {
			b = appendVector(b, ids, w.dims)
		}
		b = append(b, '}')
	}
	b = append(appendQuoted(append(b, `],"model":`...), g.model), ',')
	return append(appendUsage(b, g), '}')
}

// rank is the place of one document.
type rank struct {
	index int
	score float64
}

// ranks are the best documents, the best first. Scores lie between 0 and 1.
func (w *wish) ranks() []rank {
	out := make([]rank, len(w.lists))
	for i, ids := range w.lists {
		out[i] = rank{i, float64(uint64(newWriter(ids, 1))>>11) / (1 << 53)}
	}
	sort.SliceStable(out, func(i, k int) bool { return out[i].score > out[k].score })
	if w.top > 0 {
		out = out[:w.top]
	}
	return out
}

// appendRanks writes a list of ranks, each by a function.
func appendRanks(b []byte, w *wish, one func(b []byte, r rank) []byte) []byte {
	b = append(b, '[')
	for i, r := range w.ranks() {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, r)
	}
	return append(b, ']')
}

func scored(b []byte, r rank, between, key string, scale func(float64) float64) []byte {
	b = number(append(b, `{"index":`...), r.index)
	b = append(append(b, between...), `,"`+key+`":`...)
	return append(decimal(b, scale(r.score)), '}')
}

func asIs(v float64) float64 { return v }

// logit is a score as models give it, before it is brought between 0 and 1.
func logit(v float64) float64 { return math.Log((v + 1e-9) / (1 - v + 1e-9)) }

func vllmRanks(b []byte, g *generation, w *wish) []byte {
	b = append(b, `{"id":"rerank-`+g.hex+`","model":`...)
	b = appendUsage(append(appendQuoted(b, g.model), ','), g)
	b = append(b, `,"results":`...)
	b = appendRanks(b, w, func(b []byte, r rank) []byte {
		document := `,"document":{"text":` + string(appendQuoted(nil, w.texts[r.index])) + `,"multi_modal":null}`
		return scored(b, r, document, "relevance_score", asIs)
	})
	return append(b, '}')
}

func llamaRanks(b []byte, g *generation, w *wish) []byte {
	b = append(appendQuoted(append(b, `{"model":`...), g.model), `,"object":"list",`...)
	b = append(appendUsage(b, g), `,"results":`...)
	b = appendRanks(b, w, func(b []byte, r rank) []byte { return scored(b, r, "", "relevance_score", logit) })
	return append(b, '}')
}

func cohereRanks(b []byte, g *generation, w *wish) []byte {
	b = append(b, `{"id":"`+g.hex+`","results":`...)
	b = appendRanks(b, w, func(b []byte, r rank) []byte { return scored(b, r, "", "relevance_score", asIs) })
	return append(b, `,"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}`...)
}

func teiVectors(b []byte, _ *generation, w *wish) []byte {
	b = append(b, '[')
	for i, ids := range w.lists {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendVector(b, ids, w.dims)
	}
	return append(b, ']')
}

func teiRanks(b []byte, _ *generation, w *wish) []byte {
	return appendRanks(b, w, func(b []byte, r rank) []byte {
		text := ""
		if w.echo {
			text = `,"text":` + string(appendQuoted(nil, w.texts[r.index]))
		}
		return scored(b, r, text, "score", asIs)
	})
}

func ollamaVectors(b []byte, g *generation, w *wish) []byte {
	b = append(appendQuoted(append(b, `{"model":`...), g.model), `,"embeddings":`...)
	b = teiVectors(b, g, w)
	b = number(append(b, `,"total_duration":`...), int(g.last-g.arrival))
	b = number(append(b, `,"load_duration":`...), int(loadTime(g)))
	return append(number(append(b, `,"prompt_eval_count":`...), len(g.prompt)), '}')
}
