package run

import (
	"bytes"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// concealed stands in place of a secret.
const concealed = "[key]"

// leastSecret is the length from which a value is looked for: shorter ones are ordinary words, and no key is so short.
const leastSecret = 6

// secretsOf are the values of headers that grant access, as a server may echo them in its words.
func secretsOf(header []wire.Field) (out []string) {
	for _, f := range header {
		name := strings.ToLower(f.Name)
		if !strings.Contains(name, "auth") && !strings.Contains(name, "key") && !strings.Contains(name, "token") && !strings.Contains(name, "cookie") && !strings.Contains(name, "secret") {
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

// blank overwrites the secrets in raw bytes, whose length must stay.
func blank(b []byte, secrets []string) {
	for _, secret := range secrets {
		for at := bytes.Index(b, []byte(secret)); at >= 0; at = bytes.Index(b, []byte(secret)) {
			copy(b[at:], strings.Repeat("*", len(secret)))
		}
	}
}
