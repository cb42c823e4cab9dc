// Package opt holds a value that may be undefined, such as the TTFT of a request that gave no output.
package opt

import "encoding/json"

// Of is a T or nothing. The zero Of is nothing, so that a forgotten field is "undefined" and never a false 0.
// In JSON a field with `omitzero` is left out when undefined; elsewhere it is null.
type Of[T any] struct {
	v  T
	ok bool
}

// Some is a defined value.
func Some[T any](v T) Of[T] { return Of[T]{v, true} }

// Get returns the value, and whether there is one.
func (o Of[T]) Get() (T, bool) { return o.v, o.ok }

// Or returns the value, or def when there is none.
func (o Of[T]) Or(def T) T {
	if o.ok {
		return o.v
	}
	return def
}

// Defined tells whether there is a value.
func (o Of[T]) Defined() bool { return o.ok }

// IsZero makes encoding/json leave an undefined field with `omitzero` out.
func (o Of[T]) IsZero() bool { return !o.ok }

// MarshalJSON writes the value, or null.
func (o Of[T]) MarshalJSON() ([]byte, error) {
	if !o.ok {
		return []byte("null"), nil
	}
	return json.Marshal(o.v)
}

// UnmarshalJSON reads a value; null leaves it undefined.
func (o *Of[T]) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*o = Of[T]{}
		return nil
	}
	if err := json.Unmarshal(b, &o.v); err != nil {
		return err
	}
	o.ok = true
	return nil
}
