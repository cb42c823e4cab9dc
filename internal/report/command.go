package report

import (
	"strconv"
	"strings"
)

// command fills in how to repeat the run.
func (b *builder) command(m *Model) {
	var words []string
	seeded := b.man.Spec.SeedGiven
	for _, a := range b.man.Command {
		words = append(words, ShellQuote(clean(a)))
	}
	m.Command = strings.Join(words, " ")
	if m.Command != "" && !seeded {
		m.Same = "--seed " + strconv.FormatUint(b.man.Spec.Seed, 10)
	}
}

// ShellQuote quotes an argument for a POSIX shell, when it has to be.
func ShellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
