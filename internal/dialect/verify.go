package dialect

import (
	"fmt"
	"slices"

	"github.com/prony-bench/prony/internal/wire"
)

// checkEvery is how often a quick reading is held against the strict one: the first of each stream, and 1 in 64 after it.
const checkEvery = 64

// Tally tells how the events of a stream were decoded.
type Tally struct {
	Quick   int // read quickly
	Checked int // of them, also read strictly
	Strict  int // read strictly alone: of a form that is not common, or after a misreading
	Misread int // of the checked, those that differed: 0 or 1, since after one everything is read strictly
}

// Tally returns the tally of the events so far. A misreading is a defect of prony, which has read some events of this stream
// without a check before it: its record is in doubt.
func (f *Fold) Tally() Tally { return f.tally }

// decode reads an event into f.delta.
func (f *Fold) decode(ev *wire.Event) error {
	texts := f.o.KeepText || f.Watch != nil
	f.delta.reset(texts)
	if f.quick != nil {
		if f.quick.Quick(ev.Data, &f.delta) {
			f.tally.Quick++
			if f.o.Verify || f.tally.Quick%checkEvery == 1 {
				return f.check(ev)
			}
			return nil
		}
		f.delta.reset(texts)
	}
	f.tally.Strict++
	return f.dec.Event(*ev, &f.delta)
}

// check reads an event strictly too. Where the readings differ the strict one holds, and the quick way is not used again.
func (f *Fold) check(ev *wire.Event) error {
	f.tally.Checked++
	f.strict.reset(f.delta.Texts)
	err := f.dec.Event(*ev, &f.strict)
	if err == nil && f.delta.same(&f.strict) {
		return nil
	}
	if f.o.Verify {
		panic(fmt.Sprintf("dialect: an event was misread: %s\nquickly  %+v\nstrictly %+v, error %v", wire.Excerpt(ev.Data), f.delta, f.strict, err))
	}
	f.tally.Misread++
	f.quick = nil
	f.delta, f.strict = f.strict, f.delta
	return err
}

// same tells whether two readings of an event say the same, in the texts only as far as they were asked for.
func (d *Delta) same(e *Delta) bool {
	text := func(a, b string) bool { return a == b || !d.Texts && a != "" && b != "" }
	tool := func(a, b ToolPiece) bool {
		return a.Index == b.Index && text(a.ID, b.ID) && text(a.Name, b.Name) && text(a.Arguments, b.Arguments)
	}
	output := func(a, b Output) bool {
		return a.Choice == b.Choice && a.IDs == b.IDs && a.Finish == b.Finish && text(a.Text, b.Text) && text(a.Reasoning, b.Reasoning) &&
			slices.EqualFunc(a.Tools, b.Tools, tool)
	}
	return slices.EqualFunc(d.Outputs, e.Outputs, output) && slices.Equal(d.Server, e.Server) && d.Prompt == e.Prompt && d.Completion == e.Completion &&
		d.Cached == e.Cached && d.Reasoning == e.Reasoning && d.Native == e.Native && d.Error == e.Error && d.Done == e.Done
}
