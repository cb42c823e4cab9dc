package run

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/wire"
)

func TestConceal(t *testing.T) {
	p := &Plan{secrets: secretsOf([]wire.Field{{Name: "Authorization", Value: "Bearer sk-sekret77"}, {Name: "X-API-Key", Value: "sekret88"},
		{Name: "X-Team", Value: "search-team"}, {Name: "X-Auth", Value: "no"}})}
	if got := p.conceal("bad key sk-sekret77 or sekret88 of search-team, no"); got != "bad key [key] or [key] of search-team, no" {
		t.Error(got)
	}
	r := bench.Record{Error: "sekret88", Text: "a sk-sekret77", Thinking: "sekret88", ToolCalls: []byte(`[{"name":"sekret88"}]`)}
	p.concealRecord(&r)
	if r.Error != "[key]" || r.Text != "a [key]" || r.Thinking != "[key]" || string(r.ToolCalls) != `[{"name":"[key]"}]` {
		t.Errorf("%+v", r)
	}
	err := p.concealError(fault.New(fault.Target, "the server says sekret88", "a hint"))
	if err.Error() != "the server says [key]" || fault.CodeOf(err) != fault.Target || fault.HintOf(err) != "a hint" {
		t.Errorf("%v", err)
	}
	if plain := errors.New("x"); p.concealError(plain) != plain || p.concealError(nil) != nil {
		t.Error("an error without secrets is changed")
	}
	b := []byte("x sekret88 sk-sekret77 sekret88")
	blank(b, p.secrets)
	if string(b) != "x ******** *********** ********" {
		t.Errorf("%s", b)
	}
}

// A secret that came in several reads is overwritten in each of them, and one in a header is replaced.
func TestConcealTranscript(t *testing.T) {
	secrets := []string{"sekret88"}
	reads := []store.Read{{Data: []byte("data: sek")}, {Data: []byte("")}, {Data: []byte("ret8")}, {Data: []byte("8 sekret88")}}
	blankReads(reads, secrets)
	var all string
	for _, r := range reads {
		all += string(r.Data) + "|"
	}
	if all != "data: ***||****|* ********|" {
		t.Error(all)
	}
	h := http.Header{"X-Echo": {"a sekret88", "b"}}
	if got := concealHeader(h, secrets); got.Get("X-Echo") != "a [key]" || h.Get("X-Echo") != "a sekret88" || concealHeader(nil, secrets) != nil {
		t.Errorf("%v, of %v", got, h)
	}
	p := &Plan{secrets: secrets}
	out := &Probed{Body: []byte("sekret88"), Header: h, Events: []ProbedEvent{{Text: "sekret88", Error: "sekret88", Reasoning: "sekret88", Raw: "sekret88"}}}
	out.Call.Body, out.Record.Error = []byte("sekret88"), "sekret88"
	p.concealProbed(out)
	if text := fmt.Sprintf("%s %s %v", out.Body, out.Call.Body, *out); strings.Contains(text, "sekret88") {
		t.Error(text)
	}
}
