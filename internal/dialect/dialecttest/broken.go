package dialecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// cut ends an answer after each of its bytes, by a broken connection and by a clean end.
func (p *Protocol) cut(t *testing.T) {
	s := p.stream(answer(p.Stop, "The", " sky", " über 🌞")...)
	tr := transcript(p.contentType(), s.pieces)
	_, end := s.place(p.Terminator)
	finishFrom, finishTo := s.place(Finish)
	full := p.fold(true, tr).Text
	for k := range len(tr.Raw) + 1 {
		part := transcript(p.contentType(), []string{string(tr.Raw[:k])})
		clean := p.fold(true, part)
		part.Fail, part.Cause = wire.FailReset, wire.ErrCut.Error()
		broken := p.fold(true, part)
		want := bench.Reset
		if end >= 0 && k >= end {
			want = bench.OK
		}
		if k == len(tr.Raw) && clean.Outcome != bench.OK {
			t.Fatalf("not cut: %s (%s)", clean.Outcome, clean.Error)
		}
		if broken.Outcome != want || want != bench.OK && broken.Error != part.Cause {
			t.Fatalf("broken after byte %d (%q): %s (%s), want %s", k, tr.Raw[:k], broken.Outcome, broken.Error, want)
		}
		if !strings.HasPrefix(full, broken.Text) {
			t.Fatalf("broken after byte %d: text %q of %q", k, broken.Text, full)
		}
		may := []bench.Outcome{bench.TruncatedStream}
		switch {
		case p.Endpoint.Can.NoFinish:
			may = []bench.Outcome{bench.TruncatedStream, bench.OK, bench.Empty}
		case k >= finishTo:
			may = []bench.Outcome{bench.OK}
		case k >= finishFrom:
			may = append(may, bench.OK)
		}
		if !strings.Contains(fmt.Sprint(may), string(clean.Outcome)) {
			t.Fatalf("ended after byte %d (%q): %s (%s), want one of %v", k, tr.Raw[:k], clean.Outcome, clean.Error, may)
		}
	}
}

// plain is an answer that is no stream, asked so and not.
func (p *Protocol) plain(t *testing.T) {
	if !p.has(Body) {
		return
	}
	parts := p.fill(Part{Kind: Text, Text: strings.Join(anyWords, ""), N: 3})
	body := parts[0]
	body.Kind, body.Reason = Body, p.Stop
	if p.EndToken {
		parts = p.fill(Part{Kind: Text, Text: body.Text, N: 3}, Part{Kind: Finish, Reason: p.Stop})
		body.Tokens, body.AllIDs = parts[1].Tokens, parts[1].AllIDs
	}
	for _, spelling := range []func(string) string{func(s string) string { return s }, strangeFields} {
		tr := transcript("application/json", []string{spelling(p.Write(body))})
		r := p.fold(false, tr)
		if r.Outcome != bench.OK || !p.IDsOnly && r.Text != body.Text || r.First.Defined() || r.Last != tr.Ended || p.has(Finish) && r.Finish != bench.FinishStop {
			t.Errorf("%s (%s), text %q, first %v, last %v, finish %q of %q", r.Outcome, r.Error, r.Text, r.First, r.Last, r.Finish, tr.Raw)
		}
		if err := p.counts(&r, body.Tokens, p.PlainTokens); err != nil {
			t.Error(err)
		}
		if r := p.fold(true, tr); r.Outcome != bench.NotStreamed || r.First.Defined() {
			t.Errorf("a stream was asked: %s (%s), first %v", r.Outcome, r.Error, r.First)
		}
	}
	for _, text := range []string{"", " \n"} {
		if r := p.fold(false, transcript("application/json", []string{text})); r.Outcome != bench.Malformed {
			t.Errorf("an empty body: %s", r.Outcome)
		}
	}
}

// refusals are answers with an error status, and an error without one.
func (p *Protocol) refusals(t *testing.T) {
	for status, want := range map[int]bench.Outcome{
		http.StatusBadRequest: bench.Rejected, http.StatusUnauthorized: bench.Rejected, http.StatusNotFound: bench.Rejected,
		http.StatusTooManyRequests: bench.Throttled, http.StatusInternalServerError: bench.ServerError, http.StatusServiceUnavailable: bench.ServerError,
		http.StatusOK: bench.StreamError,
	} {
		words := "the prompt has 9000 tokens, the context 8192"
		for _, stream := range []bool{true, false} {
			if !stream && !p.has(Body) {
				continue
			}
			tr := transcript("application/json", []string{p.Write(Part{Kind: Refusal, Status: status, Text: words})})
			tr.Status = status
			r := p.fold(stream, tr)
			if r.Outcome != want || !strings.Contains(r.Error, words) || strings.HasPrefix(r.Error, "{") || r.Status != status || r.First.Defined() || r.OSL.Defined() {
				t.Errorf("status %d, stream %v: %s (%s), osl %v", status, stream, r.Outcome, r.Error, r.OSL)
			}
		}
	}
	tr := transcript("text/plain", []string{"upstream connect error"})
	tr.Status = http.StatusBadGateway
	if r := p.fold(true, tr); r.Outcome != bench.ServerError || r.Error != "upstream connect error" {
		t.Errorf("plain words: %s (%s)", r.Outcome, r.Error)
	}
}

// broken are events that are not what the protocol says.
func (p *Protocol) broken(t *testing.T) {
	for field, event := range p.Missing {
		pieces, stream, kind := []string{event}, strings.HasSuffix(event, p.lineEnd()), "application/json"
		if stream {
			kind = p.contentType()
			s := p.stream(answer(p.Stop, "a")...)
			pieces = append([]string{event}, s.pieces...)
		}
		start, _, _ := strings.Cut(event[strings.Index(event, "{"):], "\n")
		r := p.fold(stream, transcript(kind, pieces))
		if r.Outcome != bench.Malformed || !strings.Contains(r.Error, strconv.Quote(field)) || !shows(r.Error, start) {
			t.Errorf("without %q: %s (%s)", field, r.Outcome, r.Error)
		}
	}
	s := p.stream(answer(p.Stop, "a", "b")...)
	for i, part := range s.parts {
		if part.Kind != Text {
			continue
		}
		pieces := append([]string(nil), s.pieces...)
		half := strings.TrimSuffix(pieces[i], p.lineEnd())
		half = half[:strings.LastIndexByte(half, '}')]
		pieces[i] = half + p.lineEnd()
		if r := p.fold(true, transcript(p.contentType(), pieces)); r.Outcome != bench.Malformed || !shows(r.Error, half[strings.LastIndex(half, "\n")+1:]) {
			t.Errorf("half an event: %s (%s)", r.Outcome, r.Error)
		}
		break
	}
}

// shows tells whether an error shows the first bytes of a line of an event.
func shows(words, line string) bool {
	line = strings.TrimPrefix(line, "data: ")
	quoted := strconv.Quote(line[:min(len(line), 20)])
	return strings.Contains(words, quoted[1:len(quoted)-1])
}

// request holds what is sent against the request.
func (p *Protocol) request(t *testing.T) {
	const osl = 4321
	req := p.Request
	req.OSL = osl
	for _, stream := range []bool{true, false} {
		if !stream && !p.has(Body) {
			continue
		}
		o := &dialect.Options{Model: "demo", Stream: stream, Usage: true, ForceLength: true, Extra: json.RawMessage(`{"zz_extra":{"b":1,"a":2}}`),
			Header: []wire.Field{{Name: "content-type", Value: "application/json; x=1"}, {Name: "X-Team", Value: "a"}}}
		call, err := p.Endpoint.Codec.Encode(p.Endpoint, &req, o)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := p.Endpoint.Codec.Encode(p.Endpoint, &req, o)
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(call.Body, &fields); err != nil || !bytes.Equal(call.Body, again.Body) {
			t.Errorf("body %s, then %s: %v", call.Body, again.Body, err)
		}
		path := p.Endpoint.At(o.Model)
		if !stream {
			path = strings.TrimSuffix(path, "_stream") // where the path says what is asked
		}
		if call.Method != "POST" || call.Path != path {
			t.Errorf("%s %s", call.Method, call.Path)
		}
		kinds := 0
		for _, f := range call.Header {
			if strings.EqualFold(f.Name, "content-type") {
				kinds++
			}
		}
		if kinds != 1 || !wire.HasField(call.Header, "x-team") {
			t.Errorf("headers %v", call.Header)
		}
		holds := []string{fmt.Sprint(osl), `"zz_extra":{"b":1,"a":2}`}
		if len(req.Tokens) > 0 {
			holds = append(holds, JSON(req.Tokens))
		} else {
			holds = append(holds, JSON(req.Prompt))
		}
		if p.Endpoint.Can.IgnoreEOS {
			holds = append(holds, `"ignore_eos":true`)
		}
		for _, h := range holds {
			if !bytes.Contains(call.Body, []byte(h)) {
				t.Errorf("%s is not in %s", h, call.Body)
			}
		}
		o.Extra = json.RawMessage(`[1]`)
		if _, err := p.Endpoint.Codec.Encode(p.Endpoint, &req, o); err == nil {
			t.Error("extra fields that are no object are taken")
		}
		if !stream && len(call.Until) > 0 {
			t.Errorf("a plain body ends at %q", call.Until)
		}
		if stream {
			p.until(t, call.Until)
		}
	}
}

// until holds the marks of the end against a stream: one of them is in its terminator, and none before.
func (p *Protocol) until(t *testing.T, marks []string) {
	if len(marks) == 0 {
		return
	}
	s := p.stream(answer(p.Stop, anyWords...)...)
	from, to := s.place(p.Terminator)
	first := -1
	all := strings.Join(s.pieces, "")
	for _, m := range marks {
		if i := strings.Index(all, m); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first < from-1 || first >= to {
		t.Errorf("the marks %q are at %d of %q, the terminator from %d to %d", marks, first, all, from, to)
	}
}
