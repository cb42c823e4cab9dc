package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestFault(t *testing.T) {
	f := Wrap(Target, io.EOF, "read it", "do that")
	deep := fmt.Errorf("outer: %w", f)
	if CodeOf(deep) != Target || HintOf(deep) != "do that" || !errors.Is(deep, io.EOF) || f.Error() != "read it: EOF" {
		t.Error(CodeOf(deep), HintOf(deep), f)
	}
	if CodeOf(nil) != OK || CodeOf(io.EOF) != Internal || HintOf(io.EOF) != "" {
		t.Error("errors that are no faults")
	}
	if u := Usagef("hint", "%d is no good", 5); u.Code != Usage || u.Error() != "5 is no good" || u.Hint != "hint" {
		t.Error(u)
	}
}
