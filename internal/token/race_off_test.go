//go:build !race

package token

const raceEnabled = false

const realCount = 3 // of the real tokenizers that are read
