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
	best, least := "", len(word)/3+2
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

// distance is the number of letters to add, drop, change or swap with their neighbour (optimal string alignment).
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := d[i-1][j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			d[i][j] = min(change, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
