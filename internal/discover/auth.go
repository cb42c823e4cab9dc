package discover

import (
	"cmp"
	"fmt"

	"github.com/prony-bench/prony/internal/wire"
)

// Auths are the words for where a key goes: into Authorization, X-Api-Key or Api-Key.
var Auths = []string{"bearer", "x-api-key", "api-key"}

// anthropicVersion is the version of Anthropic's API, without which it answers nothing.
const anthropicVersion = "2023-06-01"

// AuthOf is where the key of an engine goes when nobody says it.
func AuthOf(engine string) string {
	if engine == "anthropic" {
		return "x-api-key"
	}
	return "bearer"
}

// KeyFields are the header fields of a key: none without one.
func KeyFields(engine, auth, key string) []wire.Field {
	if key == "" {
		return nil
	}
	switch cmp.Or(auth, AuthOf(engine)) {
	case "x-api-key":
		return []wire.Field{{Name: "X-Api-Key", Value: key}}
	case "api-key":
		return []wire.Field{{Name: "Api-Key", Value: key}}
	}
	return []wire.Field{{Name: "Authorization", Value: "Bearer " + key}}
}

// AccessHint says what to look at when a server refuses access.
func (p *Prober) AccessHint() string { return AccessHint(p.Engine, p.Auth, p.Key) }

// AccessHint says what to look at when a server refuses access.
func AccessHint(engine, auth, key string) string {
	if key == "" {
		return "give a key with --api-key, or in PRONY_API_KEY"
	}
	return fmt.Sprintf("is the key of --api-key right? it was sent as %s; --auth %s sends it otherwise", cmp.Or(auth, AuthOf(engine)), others(cmp.Or(auth, AuthOf(engine))))
}

// others are the other words of --auth.
func others(than string) (out string) {
	for _, a := range Auths {
		if a != than {
			out += map[bool]string{true: "", false: " or "}[out == ""] + a
		}
	}
	return out
}
