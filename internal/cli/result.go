package cli

import (
	"encoding/json"
	"fmt"

	"github.com/prony-bench/prony/internal/run"
	"github.com/spf13/cobra"
)

func (a *app) writeReports(res *run.Result) error { return nil }
func (a *app) printResult(res *run.Result, j *runJob) error {
	s := res.Summary
	if j.json {
		return json.NewEncoder(a.Stdout).Encode(s)
	}
	fmt.Fprintf(a.Stdout, "%s %+v window %v load %+v\n", s.Verdict, s.Requests, s.Window, s.Load)
	for _, m := range s.Metrics {
		b, _ := json.Marshal(m.Dist)
		if m.Scalar != nil {
			b, _ = json.Marshal(m.Scalar)
		}
		fmt.Fprintf(a.Stdout, "%-22s %.150s\n", m.Key, b)
	}
	for _, c := range s.Caveats {
		fmt.Fprintf(a.Stdout, "%s %s %s: %s (%s)\n", c.Severity, c.Code, c.Metric, c.Text, c.Remedy)
	}
	fmt.Fprintf(a.Stdout, "%+v %+v %v\n", s.Client, s.Tokens, s.Tail)
	return nil
}
func (a *app) reportCommand() *cobra.Command { return &cobra.Command{Use: "report"} }
func (a *app) schemaCommand() *cobra.Command { return &cobra.Command{Use: "schema"} }
