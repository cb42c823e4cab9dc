//go:build race

package token

const raceEnabled = true

const realCount = 1 // of the real tokenizers that are read
