package dialect

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// endOfResults judges the answer of an endpoint that embeds or ranks: it is right when it has one result for each input, or for as
// many as were asked for.
func (f *Fold) endOfResults(end func(bench.Outcome, string)) {
	inputs, d := len(f.req.Inputs), &f.delta
	result, want := "vector", inputs
	if f.ep.Task == bench.Rerank {
		result = "score"
		if n := TopN(f.req, f.o); n > 0 {
			want = min(want, n)
		}
	}
	if len(d.Results) != want {
		end(bench.Malformed, fmt.Sprintf("%d %ss came for %d inputs, not %d: %s", len(d.Results), result, inputs, want, wire.Excerpt(f.whole)))
		return
	}
	seen := make([]bool, inputs)
	for i, k := range d.Results {
		switch {
		case k < 0 || k >= inputs:
			end(bench.Malformed, fmt.Sprintf("%s %d is of input %d, of %d", result, i, k, inputs))
			return
		case seen[k]:
			end(bench.Malformed, fmt.Sprintf("%s %d is of input %d, which has one already", result, i, k))
			return
		}
		seen[k] = true
	}
	f.rec.Dimensions = d.Dimensions
	end(bench.OK, "")
}

// CheckInputs refuses a request that holds nothing to embed or to rank.
func CheckInputs(ep Endpoint, r *bench.Request) error {
	switch {
	case ep.Task == bench.Embed && len(r.Inputs) == 0:
		return fault.New(fault.Usage, fmt.Sprintf("request %d holds no text to embed", r.ID), "use --dataset random, text, or jsonl with rows of input")
	case ep.Task == bench.Rerank && (len(r.Inputs) == 0 || r.Query == ""):
		return fault.New(fault.Usage, fmt.Sprintf("request %d holds no query with documents", r.ID),
			"use --dataset random, or jsonl with rows of query and documents")
	}
	return nil
}

// TopN is how many results of a ranking the fields of the user's own ask for; 0 = all.
func TopN(r *bench.Request, o *Options) int {
	var x struct {
		N int `json:"top_n"`
	}
	for _, fields := range []json.RawMessage{r.Extra, o.Extra} {
		if len(fields) > 0 {
			json.Unmarshal(fields, &x) // what cannot be read, the server will refuse
		}
	}
	return x.N
}

// Vector counts the numbers of an embedding: a list of numbers, or the base64 of little-endian 32-bit floats. An error says what is no
// finite number there.
func Vector(raw json.RawMessage) (n int, err error) {
	switch {
	case len(raw) > 0 && raw[0] == '"':
		return packed(raw)
	case len(raw) < 2 || raw[0] != '[':
		return 0, fmt.Errorf("is no list of numbers: %s", wire.Excerpt(raw))
	}
	// raw is valid JSON, so that what has only the signs of numbers and of a list is one
	from, risky := 1, false
	for i := 1; i < len(raw); i++ {
		switch c := raw[i]; {
		case c >= '0' && c <= '9', c == '-', c == '.', c == ' ', c == '\n', c == '\r', c == '\t':
		case c == 'e', c == 'E', c == '+':
			risky = true
		case c == ',' || c == ']' && i == len(raw)-1:
			if risky || i-from > longNumber {
				if err := finite(raw[from:i]); err != nil {
					return 0, fmt.Errorf("has no finite number at place %d: %w", n, err)
				}
			}
			if n++; c == ']' && n == 1 && len(trim(raw[from:i])) == 0 {
				return 0, errors.New("is an empty list")
			}
			from, risky = i+1, false
		default:
			return 0, fmt.Errorf("has no number at place %d: %s", n, wire.Excerpt(raw[from:]))
		}
	}
	return n, nil
}

// longNumber is the length from which a number without an exponent is looked at: what is below is finite.
const longNumber = 30

func finite(text []byte) error {
	_, err := strconv.ParseFloat(string(trim(text)), 32)
	return err
}

func trim(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// packed counts the numbers of a vector in base64.
func packed(raw json.RawMessage) (int, error) {
	b, err := base64.StdEncoding.AppendDecode(nil, raw[1:len(raw)-1])
	if err != nil {
		var text string // with escapes, such as of a slash
		if json.Unmarshal(raw, &text) == nil {
			b, err = base64.StdEncoding.DecodeString(text)
		}
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("is no base64: %w", err)
	case len(b) == 0:
		return 0, errors.New("is empty")
	case len(b)%4 != 0:
		return 0, fmt.Errorf("has %d bytes, which are no 32-bit floats", len(b))
	}
	for i := 0; i < len(b); i += 4 {
		if x := math.Float32frombits(binary.LittleEndian.Uint32(b[i:])); math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return 0, fmt.Errorf("has no finite number at place %d: %v", i/4, x)
		}
	}
	return len(b) / 4, nil
}

// AddVector adds the vector of an input to a delta. All vectors of an answer have one length.
func (d *Delta) AddVector(input int, raw json.RawMessage) error {
	n, err := Vector(raw)
	if err != nil {
		return fmt.Errorf("vector %d %w", len(d.Results), err)
	}
	if d.Dimensions != 0 && d.Dimensions != n {
		return fmt.Errorf("vector %d has %d numbers, the others %d", len(d.Results), n, d.Dimensions)
	}
	d.Results, d.Dimensions = append(d.Results, input), n
	return nil
}

// NoResults reads a body that lacks the field of its results: an error, or something that the protocol does not know.
func (d *Delta) NoResults(body []byte, field string) error {
	var e Failure
	if json.Unmarshal(body, &e) == nil {
		if d.Error = e.Words(false); d.Error != "" {
			return nil
		}
	}
	return fmt.Errorf("no field %q in %s", field, wire.Excerpt(body))
}
