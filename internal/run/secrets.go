package run

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/store"
	"github.com/prony-bench/prony/internal/wire"
)

// concealed stands in place of a secret.
const concealed = "[key]"

// leastSecret is the length from which a value is looked for: shorter ones are ordinary words, and no key is so short.
const leastSecret = 6

// secretWords are what the names of fields that grant access have in them.
var secretWords = []string{"auth", "key", "token", "cookie", "secret", "pass", "credential", "session", "signature"}

func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(secretWords, func(w string) bool { return strings.Contains(name, w) })
}

// secretsOf are the values of headers that grant access, as a server may echo them in its words.
func secretsOf(header []wire.Field) (out []string) {
	for _, f := range header {
		if !secretName(f.Name) {
			continue
		}
		value := f.Value
		if _, after, ok := strings.Cut(value, " "); ok { // the scheme is none
			value = strings.TrimSpace(after)
		}
		if len(value) >= leastSecret {
			out = append(out, value)
		}
	}
	return out
}

// proxySecrets are the password of a proxy, and its credentials as they are sent.
func proxySecrets(p *client.Proxy) []string {
	if p == nil {
		return nil
	}
	out := secretsOf([]wire.Field{{Name: "Proxy-Authorization", Value: p.Authorization()}})
	if password, _ := p.URL().User.Password(); len(password) >= leastSecret {
		out = append(out, password)
	}
	return out
}

// ConcealBody returns a JSON object without the values of those of its fields that grant access, and the values. What is no object is
// returned as it is.
func ConcealBody(text []byte) (shown []byte, secrets []string) {
	var fields map[string]any
	if json.Unmarshal(text, &fields) != nil {
		return text, nil
	}
	concealFields(fields, &secrets)
	if len(secrets) == 0 {
		return text, nil
	}
	shown, err := json.Marshal(fields)
	if err != nil {
		panic("run: what was read does not marshal: " + err.Error())
	}
	return shown, secrets
}

// Shown returns the conditions of the run as they may be stored and printed.
func (p *Plan) Shown() bench.Spec {
	s := p.Spec
	if body, secrets := ConcealBody(s.Target.ExtraBody); len(secrets) > 0 {
		s.Target.ExtraBody = body
	}
	return s
}

func concealFields(fields map[string]any, secrets *[]string) {
	for name, v := range fields {
		switch v := v.(type) {
		case map[string]any:
			concealFields(v, secrets)
		case string:
			if secretName(name) && len(v) >= leastSecret {
				*secrets = append(*secrets, v)
				fields[name] = concealed
			}
		}
	}
}

// conceal takes the secrets of the run out of a server's words.
func (p *Plan) conceal(s string) string {
	for _, secret := range p.secrets {
		s = strings.ReplaceAll(s, secret, concealed)
	}
	return s
}

// concealError does so with the message of a fault.
func (p *Plan) concealError(err error) error {
	if err == nil || p.conceal(err.Error()) == err.Error() {
		return err
	}
	return fault.New(fault.CodeOf(err), p.conceal(err.Error()), fault.HintOf(err))
}

// concealRecord does so with a record.
func (p *Plan) concealRecord(r *bench.Record) {
	if len(p.secrets) == 0 {
		return
	}
	r.Error, r.Text, r.Thinking = p.conceal(r.Error), p.conceal(r.Text), p.conceal(r.Thinking)
	if len(r.ToolCalls) > 0 {
		r.ToolCalls = []byte(p.conceal(string(r.ToolCalls)))
	}
}

// concealProbed does so with what a probe shows.
func (p *Plan) concealProbed(out *Probed) {
	if len(p.secrets) == 0 {
		return
	}
	p.concealRecord(&out.Record)
	out.Call.Body, out.Body = []byte(p.conceal(string(out.Call.Body))), []byte(p.conceal(string(out.Body)))
	for i := range out.Events {
		e := &out.Events[i]
		e.Text, e.Reasoning, e.Error, e.Raw = p.conceal(e.Text), p.conceal(e.Reasoning), p.conceal(e.Error), p.conceal(e.Raw)
	}
	out.Header = concealHeader(out.Header, p.secrets)
}

// concealHeader returns a header without the secrets in its values.
func concealHeader(h http.Header, secrets []string) http.Header {
	out := h.Clone()
	for _, values := range out {
		for i := range values {
			for _, secret := range secrets {
				values[i] = strings.ReplaceAll(values[i], secret, concealed)
			}
		}
	}
	return out
}

// blankReads overwrites the secrets in the bytes of an answer, also where one is in several reads. The lengths stay.
func blankReads(reads []store.Read, secrets []string) {
	if len(secrets) == 0 {
		return
	}
	var all []byte
	for _, r := range reads {
		all = append(all, r.Data...)
	}
	blank(all, secrets)
	for _, r := range reads {
		all = all[copy(r.Data, all):]
	}
}

// blank overwrites the secrets in raw bytes, whose length must stay.
func blank(b []byte, secrets []string) {
	for _, secret := range secrets {
		for at := bytes.Index(b, []byte(secret)); at >= 0; at = bytes.Index(b, []byte(secret)) {
			copy(b[at:], strings.Repeat("*", len(secret)))
		}
	}
}
