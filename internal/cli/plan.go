package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
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

// shownRequests is how many requests a dry run shows.
const shownRequests = 2

// showPlan prints what a run would send.
func (a *app) showPlan(p *run.Plan, j *runJob) error {
	est, err := p.Preview(shownRequests)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if j.json {
		rep := planReport{Spec: p.Shown(), Requests: est.Requests, Seconds: est.Seconds, Journal: est.JournalBytes}
		for _, c := range est.First {
			rep.First = append(rep.First, planCall{Due: c.Due.String(), URL: c.URL, Header: c.Header, Body: c.Body})
		}
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		err = enc.Encode(rep)
	} else {
		writePlan(&b, p, est)
	}
	if err == nil {
		_, err = a.Stdout.Write(b.Bytes())
	}
	return err
}

func writePlan(w io.Writer, p *run.Plan, est *run.Preview) {
	fmt.Fprintf(w, "would send   %s\n", headLine(p))
	if len(p.Spec.Measured()) > 1 {
		for _, ph := range p.Spec.Phases {
			end := fmt.Sprintf("%d requests", ph.Stop.Requests)
			switch {
			case ph.Stop.Duration > 0:
				end = ph.Stop.Duration.String()
			case ph.Stop.Requests == 0:
				end = "all of the trace"
			}
			fmt.Fprintf(w, "%-12s %s, %s\n", ph.Name, loadWords(ph.Load), end)
		}
		fmt.Fprintln(w, "of the last phase:")
	}
	fmt.Fprintf(w, "requests     %s\n", orWords(est.Requests, "as many as fit into the duration"))
	if est.Seconds != nil {
		fmt.Fprintf(w, "takes        about %s\n", spanWords(*est.Seconds))
	} else {
		fmt.Fprintln(w, "takes        as long as the server needs")
	}
	if est.JournalBytes != nil {
		fmt.Fprintf(w, "journal      about %s\n", byteWords(*est.JournalBytes))
	}
	in := "as the server counts them"
	if est.ISLMean > 0 {
		in = fmt.Sprintf("%.0f", est.ISLMean)
	}
	if p.Spec.Target.Task == bench.Generate {
		fmt.Fprintf(w, "tokens       in %s, out %.0f a request on the average\n", in, est.OSLMean)
	} else {
		fmt.Fprintf(w, "tokens       %s a request on the average\n", in)
	}
	work := p.Spec.Workload
	fmt.Fprintf(w, "prompts      %s\n", oneLine(cmp.Or(work.PromptSource, work.Path, "the given one")))
	fmt.Fprintf(w, "seed         %d\n", p.Spec.Seed)
	for i, c := range est.First {
		fmt.Fprintf(w, "\nrequest %d, due %s\nPOST %s\n", i, c.Due, c.URL)
		for _, h := range c.Header {
			fmt.Fprintf(w, "%s: %s\n", h.Name, h.Value)
		}
		fmt.Fprintf(w, "\n%s\n", oneLine(shorten(string(c.Body), 1000)))
	}
}

// spanWords says how long something takes that may take years.
func spanWords(seconds float64) string {
	const day, year = 86400, 365.25 * 86400
	switch {
	case seconds < 2*day:
		return time.Duration(seconds * 1e9).Round(100 * time.Millisecond).String()
	case seconds < 2*year:
		return fmt.Sprintf("%.0f days", seconds/day)
	}
	return fmt.Sprintf("%.0f years", seconds/year)
}

func orWords(n *int, words string) string {
	if n == nil {
		return words
	}
	return fmt.Sprint(*n)
}

// shorten keeps the first n bytes of a text, and says how many there were.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf("... (%d bytes)", len(s))
}

func byteWords(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for ; v >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	return sig(v) + " " + units[i]
}
