package metrics

import (
	"encoding/json"

	"github.com/prony-bench/prony/internal/bench"
)

// formReport counts the answers by their form; nil = none was asked for, or any text has it.
func (x *Context) formReport() *bench.FormReport {
	var f struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(x.Spec.Target.ResponseFormat, &f) != nil || f.Type == "text" {
		return nil
	}
	out := &bench.FormReport{}
	for _, r := range x.Records {
		switch {
		case !r.Formed():
		case r.Has(bench.InvalidJSON):
			out.Invalid++
		case r.Has(bench.CutOffJSON):
			out.CutOff++
		default:
			out.Valid++
		}
	}
	return out
}

func findInvalidJSON(_ *Context, s *bench.Summary, say func(string, string, ...any)) {
	if f := s.Form; f != nil && f.Invalid > 0 {
		say("", "%d of %d answers are not the JSON that was asked for", f.Invalid, f.Valid+f.Invalid+f.CutOff)
	}
}

func findCutOffJSON(_ *Context, s *bench.Summary, say func(string, string, ...any)) {
	if f := s.Form; f != nil && f.CutOff > 0 {
		say("", "%d of %d answers are no whole JSON, since the output limit cut them off", f.CutOff, f.Valid+f.Invalid+f.CutOff)
	}
}
