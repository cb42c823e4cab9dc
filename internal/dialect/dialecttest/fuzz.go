package dialecttest

import (
	"encoding/json"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
)

// Fuzz folds any bytes as the answer of an endpoint, beginning with those of a protocol: whatever a server sends, folding ends in a known
// outcome and never panics, and what is ok has a first and a last output event.
func Fuzz(f *testing.F, p Protocol) {
	parts := answer(p.Stop, anyWords...)
	parts = append([]Part{{Kind: Reasoning, Text: "hm"}, {Kind: Call, ID: "i", Name: "f", Args: "{}"}, {Kind: Arguments, Text: "{}"}}, parts...)
	all := ""
	for _, piece := range p.stream(parts...).pieces {
		all += piece
	}
	f.Add([]byte(all), true, uint16(200))
	if p.has(Body) {
		f.Add([]byte(p.Write(Part{Kind: Body, Text: "a", All: "a", Reason: p.Stop, Tokens: 1})), false, uint16(200))
	}
	f.Add([]byte(p.Write(Part{Kind: Refusal, Text: "no", Status: 404})), true, uint16(404))
	known := map[bench.Outcome]bool{}
	for _, o := range bench.Outcomes {
		known[o] = true
	}
	f.Fuzz(func(t *testing.T, body []byte, stream bool, status uint16) {
		kind := "application/json"
		if stream {
			kind = p.contentType()
		}
		tr := Transcript(kind, body)
		tr.Status = int(status%400) + 200
		o := &dialect.Options{Stream: stream, KeepText: true, Verify: true}
		r := dialect.NewFold(p.Endpoint, &bench.Request{OSL: 4}, o).End(tr)
		if !known[r.Outcome] {
			t.Fatalf("outcome %q", r.Outcome)
		}
		if r.Outcome == bench.OK && stream && (!r.First.Defined() || !r.Last.Defined() || r.Last.Or(0) < r.First.Or(0)) {
			t.Fatalf("%+v", r)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}
