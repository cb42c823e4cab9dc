package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/wire"
)

// Object builds the JSON object of a request body. Fields keep the order in which they were set: the same request gives the same bytes.
type Object struct {
	keys   []string
	values map[string]json.RawMessage
}

// Raw sets a field to a JSON value.
func (b *Object) Raw(key string, v json.RawMessage) {
	if b.values == nil {
		b.values = map[string]json.RawMessage{}
	}
	if !slices.Contains(b.keys, key) {
		b.keys = append(b.keys, key)
	}
	b.values[key] = v
}

// Set sets a field to a value that can be marshalled.
func (b *Object) Set(key string, v any) {
	j, err := json.Marshal(v)
	if err != nil {
		panic("dialect: " + key + " does not marshal: " + err.Error())
	}
	b.Raw(key, j)
}

// Merge adds the fields of an object in its order. A field that is there already is replaced, but an object is merged into an object;
// null removes a field.
func (b *Object) Merge(object json.RawMessage) error {
	if len(object) == 0 {
		return nil
	}
	fields, err := orderedFields(object)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if string(f.value) == "null" {
			delete(b.values, f.key)
			continue
		}
		if old := b.values[f.key]; len(old) > 0 && old[0] == '{' && f.value[0] == '{' {
			both := &Object{}
			for _, part := range []json.RawMessage{old, f.value} {
				if err := both.Merge(part); err != nil {
					return err
				}
			}
			f.value = both.Bytes()
		}
		b.Raw(f.key, f.value)
	}
	return nil
}

// Bytes returns the object.
func (b *Object) Bytes() []byte {
	out := []byte{'{'}
	for _, k := range b.keys {
		v, ok := b.values[k]
		if !ok {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		key, _ := json.Marshal(k) // a string always marshals
		out = append(append(out, key...), ':')
		out = append(out, v...)
	}
	return append(out, '}')
}

// Call makes the call of a body, once the request's and the user's own fields are in it. Accept is the kind of the answer; Until are
// the bytes that end it (wire.Call).
func (b *Object) Call(path, accept string, until []string, r *bench.Request, o *Options) (wire.Call, error) {
	if err := b.Merge(r.Extra); err != nil {
		return wire.Call{}, fault.Wrap(fault.Usage, err, fmt.Sprintf("extra fields of request %d", r.ID), "extra fields are a JSON object")
	}
	if err := b.Merge(o.Extra); err != nil {
		return wire.Call{}, fault.Wrap(fault.Usage, err, "--extra-body", "give a JSON object")
	}
	call := wire.Call{Method: "POST", Path: path, Body: b.Bytes(), Until: until}
	call.Header = append(call.Header, wire.Field{Name: "Content-Type", Value: "application/json"})
	if accept != "" {
		call.Header = append(call.Header, wire.Field{Name: "Accept", Value: accept})
	}
	call.Header = append(call.Header, wire.Field{Name: "Accept-Encoding", Value: "identity"})
	call.Header = wire.Override(call.Header, o.Header)
	return call, nil
}

type field struct {
	key   string
	value json.RawMessage
}

// orderedFields returns the fields of a JSON object in their order.
func orderedFields(object json.RawMessage) ([]field, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var out []field
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		var tight bytes.Buffer
		if err := json.Compact(&tight, v); err != nil {
			return nil, err
		}
		out = append(out, field{key.(string), tight.Bytes()})
	}
	_, err = dec.Token()
	return out, err
}
