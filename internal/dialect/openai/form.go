package openai

import "bytes"

// Bounds of a form. Real chunks have up to 30 values, and are below 1 kB unless they echo a prompt.
const (
	maxCells = 48
	maxForm  = 4 << 10
)

// form is an event that has been scanned whole, with the places of its values. The next event is mostly the same but for its texts
// and the few values that were seen to change: the others are taken for constant until they are not.
//
// It is safe to read such an event without scanning the rest: up to the first value that changes it is byte for byte what was
// scanned, so the value begins at the same point of the grammar; it is scanned as any value; behind it the same holds for the next.
type form struct {
	bytes []byte
	cells [maxCells]cell
	n     int // number of values, which may be above maxCells
	old   int // number of cells that are still those of the form before, while an event is scanned
	known bool
}

// forget makes the form fit no event. What was seen to change is remembered for the next form, as far as it has the same values.
func (f *form) forget() {
	f.old = 0
	if f.known {
		f.old = f.n
	}
	f.n, f.known = 0, false
}

// add remembers a value of the event b that is being scanned.
func (f *form) add(c cell, b []byte, from, to int) {
	if f.n < maxCells && to <= maxForm {
		c.from, c.to = uint16(from), uint16(to)
		c.changes = c.kind == choiceText || c.kind == toolText
		if f.n < f.old && !c.changes {
			if o := &f.cells[f.n]; o.kind == c.kind && o.what == c.what && o.of == c.of {
				c.changes = o.changes || !bytes.Equal(f.bytes[o.from:o.to], b[from:to])
			}
		}
		f.cells[f.n] = c
	}
	f.n++
}

// learn makes the scanned event the form of those to come, where that is within bounds.
func (f *form) learn(b []byte) {
	if f.known = f.n <= maxCells && len(b) <= maxForm; f.known {
		f.bytes = append(f.bytes[:0], b...)
	}
}

// read reads an event of this form into the chunk that the form's own event was scanned into. It reports false when the event has
// another form; then the chunk is spoilt.
func (f *form) read(b []byte, to *chunk) bool {
	if !f.known {
		return false
	}
	i, from := 0, 0
	for k := range f.cells[:f.n] {
		c := &f.cells[k]
		if !c.changes {
			continue
		}
		same := f.bytes[from:c.from]
		if len(b)-i < len(same) || string(b[i:i+len(same)]) != string(same) {
			return false
		}
		i += len(same)
		var ok bool
		if i, ok = to.take(c, b, i); !ok {
			return false
		}
		from = int(c.to)
	}
	return string(b[i:]) == string(f.bytes[from:])
}
