package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/wire"
)

// planReport is what --dry-run tells.
type planReport struct {
	Spec     bench.Spec `json:"spec"`
	Requests *int       `json:"requests"` // null: as many as fit into the duration
	Seconds  *float64   `json:"seconds"`  // null: the server decides
	Journal  *int64     `json:"journal_bytes"`
	First    []planCall `json:"first_requests"`
}

type planCall struct {
	Due    string          `json:"due"`
	URL    string          `json:"url"`
	Header []wire.Field    `json:"header"`
	Body   json.RawMessage `json:"body"`
}

const shownRequests = 2

// showPlan prints what a run would send.
func (a *app) showPlan(p *run.Plan, j *runJob) error {
	est, err := p.Preview(shownRequests)
	if err != nil {
		return err
	}
	rep := planReport{Spec: p.Spec, Requests: est.Requests, Seconds: est.Seconds, Journal: est.JournalBytes}
	for _, c := range est.First {
		rep.First = append(rep.First, planCall{Due: c.Due.String(), URL: c.URL, Header: c.Header, Body: c.Body})
	}
	if j.json {
		enc := json.NewEncoder(a.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(rep)
	}
	w := a.Stdout
	fmt.Fprintf(w, "would send   %s\n", headLine(p))
	fmt.Fprintf(w, "requests     %s\n", orWords(est.Requests, "as many as fit into the duration"))
	if est.Seconds != nil {
		fmt.Fprintf(w, "takes        about %s\n", time.Duration(*est.Seconds*1e9).Round(100*time.Millisecond))
	} else {
		fmt.Fprintln(w, "takes        as long as the server needs")
	}
	if est.JournalBytes != nil {
		fmt.Fprintf(w, "journal      about %s\n", byteWords(*est.JournalBytes))
	}
	fmt.Fprintf(w, "tokens       in %.0f, out %.0f a request on the average\n", est.ISLMean, est.OSLMean)
	fmt.Fprintf(w, "prompts      %s\n", p.Spec.Workload.PromptSource)
	fmt.Fprintf(w, "seed         %d\n", p.Spec.Seed)
	for i, c := range est.First {
		fmt.Fprintf(w, "\nrequest %d, due %s\nPOST %s\n", i, c.Due, c.URL)
		for _, h := range c.Header {
			fmt.Fprintf(w, "%s: %s\n", h.Name, h.Value)
		}
		fmt.Fprintf(w, "\n%s\n", shorten(string(c.Body), 1000))
	}
	return nil
}

func orWords(n *int, words string) string {
	if n == nil {
		return words
	}
	return fmt.Sprint(*n)
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + fmt.Sprintf("... (%d bytes)", len(s))
}

func byteWords(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	return sig(v) + " " + units[i]
}
