package dialect

import (
	"reflect"
	"testing"

	"github.com/prony-bench/prony/internal/opt"
)

// What was in a delta before is not seen again, though its memory is used again.
func TestDeltaIsEmpty(t *testing.T) {
	d := Delta{Texts: true, Prompt: opt.Some(1), Completion: opt.Some(1), Cached: opt.Some(1), Reasoning: opt.Some(1), Native: true, Error: "e", Done: true}
	for range 3 {
		o := d.Output(7)
		*o = Output{Choice: 7, Text: "t", Reasoning: "r", Tools: []ToolPiece{{Index: 1, Name: "n"}}, IDs: 3, Finish: "stop"}
	}
	d.Server = append(d.Server, ServerTime{"k", 1})
	d.reset(false)
	if want := (Delta{Outputs: d.Outputs, Server: d.Server}); len(d.Outputs)+len(d.Server) > 0 || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v", d)
	}
	for i := range 5 { // more than there were
		o := d.Output(i)
		if len(o.Tools) > 0 {
			t.Errorf("output %d has tools %v", i, o.Tools)
		}
		if o.Tools = nil; !reflect.DeepEqual(*o, Output{Choice: i}) {
			t.Errorf("output %d is %+v", i, *o)
		}
	}
	if len(d.Outputs) != 5 {
		t.Errorf("%d outputs", len(d.Outputs))
	}
}
