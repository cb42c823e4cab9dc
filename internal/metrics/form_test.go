package metrics

import (
	"encoding/json"
	"testing"

	"github.com/prony-bench/prony/internal/bench"
)

// Answers are counted by their form where one was asked for; calls of tools, several answers and failures are not among them.
func TestFormReport(t *testing.T) {
	one := func(o bench.Outcome, finish bench.Finish, choices int, flags ...bench.Flag) bench.Record {
		return bench.Record{Phase: bench.Measure, Outcome: o, Finish: finish, Choices: choices, Flags: flags}
	}
	records := []bench.Record{
		one(bench.OK, bench.FinishStop, 0), one(bench.OK, bench.FinishLength, 0), one(bench.OK, bench.FinishStop, 0, bench.InvalidJSON),
		one(bench.OK, bench.FinishLength, 0, bench.LengthLimited, bench.CutOffJSON), one(bench.OK, bench.FinishTool, 0), one(bench.OK, bench.FinishStop, 2),
		one(bench.Rejected, "", 0),
	}
	for format, want := range map[string]*bench.FormReport{"": nil, `{"type":"text"}`: nil, `{"type":"json_object"}`: {Valid: 2, Invalid: 1, CutOff: 1}} {
		m := &bench.Manifest{State: bench.Complete, Spec: bench.Spec{Target: bench.Target{ResponseFormat: json.RawMessage(format)}}}
		s := Summarize(m, records)
		if (s.Form == nil) != (want == nil) || want != nil && *s.Form != *want {
			t.Errorf("%q: %+v", format, s.Form)
		}
		for _, code := range []string{"invalid_json", "json_cut_off"} {
			if got := caveatsOf(s, code); (len(got) == 1) != (want != nil) {
				t.Errorf("%q: %s %v", format, code, got)
			}
		}
	}
}
