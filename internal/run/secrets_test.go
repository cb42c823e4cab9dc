package run

import (
	"errors"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
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
