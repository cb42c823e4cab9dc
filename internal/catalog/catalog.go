// Package catalog finds things by name in a list that is passed down: no registry, no magic.
package catalog

import (
	"fmt"
	"strings"
)

// Named is anything with a name.
type Named interface{ Name() string }

// Catalog is a list of things with different names.
type Catalog[T Named] struct{ items []T }

// New returns a catalogue. Two things of one name are a mistake in the list, and panic.
func New[T Named](items ...T) Catalog[T] {
	seen := map[string]bool{}
	for _, it := range items {
		if seen[it.Name()] {
			panic("catalog: two entries are called " + it.Name())
		}
		seen[it.Name()] = true
	}
	return Catalog[T]{items}
}

// All returns the things in the order of the list.
func (c Catalog[T]) All() []T { return c.items }

// Names returns their names.
func (c Catalog[T]) Names() []string {
	out := make([]string, len(c.items))
	for i, it := range c.items {
		out[i] = it.Name()
	}
	return out
}

// Get returns the thing of a name. Without one the error says which names there are, and which may have been meant.
func (c Catalog[T]) Get(name string) (T, error) {
	for _, it := range c.items {
		if it.Name() == name {
			return it, nil
		}
	}
	var none T
	return none, fmt.Errorf("%q is not known%s (there are: %s)", name, DidYouMean(name, c.Names()), strings.Join(c.Names(), ", "))
}

// DidYouMean returns ", did you mean X?" for the nearest of several words, when one is near.
func DidYouMean(word string, words []string) string {
	best, least := "", len(word)/2+1
	for _, w := range words {
		if d := distance(strings.ToLower(word), w); d < least {
			best, least = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %s?", best)
}

// distance is Levenshtein's: the number of letters to add, drop or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
