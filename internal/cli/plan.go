package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/wire"
	"github.com/prony-bench/prony/internal/workload"
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

// Bounds of what a dry run looks at.
const (
	shownRequests   = 2
	previewTokens   = 4_000_000 // of random prompts
	previewRequests = 100_000   // beyond which time and number follow from the rate alone
)

// preview looks at the first requests of a plan, however many it has and however long they are.
func preview(p *run.Plan) (*run.Preview, error) {
	look, last := *p, len(p.Spec.Phases)-1
	look.Spec.Phases = slices.Clone(p.Spec.Phases)
	load, stop := look.Spec.Phases[last].Load, &look.Spec.Phases[last].Stop
	most := previewRequests
	if law, err := workload.ParseLaw(p.Spec.Workload.ISL); err == nil {
		most = max(shownRequests, min(most, int(previewTokens/law.Mean())))
	}
	n := float64(stop.Requests) // 0: as many as fit
	if load.Paced() && n == 0 {
		n = load.Rate * stop.Duration.Seconds()
	}
	if n > float64(most) || n == 0 {
		*stop = bench.Stop{Requests: most}
	}
	est, err := look.Preview(shownRequests)
	if err != nil {
		return nil, err
	}
	switch whole := p.Spec.Phases[last].Stop; {
	case n == 0:
		s := whole.Duration.Seconds()
		est.Requests, est.Seconds, est.JournalBytes = nil, &s, nil
		return est, nil
	case n > float64(most):
		k := int(n)
		est.Requests = &k
		if load.Paced() {
			s := cmp.Or(whole.Duration.Seconds(), n/load.Rate)
			est.Seconds = &s
		}
	}
	size := journalBytes(&p.Spec, float64(*est.Requests), est.OSLMean)
	est.JournalBytes = &size
	return est, nil
}

// What a line of the journal takes, in bytes, measured on runs of 16 to 400 tokens that lasted up to some seconds each.
const (
	wholeBytes  = 410 // of an answer that was not streamed
	streamBytes = 500
	eventBytes  = 10 // the time of one event
)

// journalBytes estimates the size of the journal.
func journalBytes(s *bench.Spec, requests, osl float64) int64 {
	line := float64(wholeBytes)
	if s.Target.Stream {
		line = streamBytes
		if s.Keep.Events {
			line += osl * eventBytes
		}
	}
	return int64(min(requests*line, 1<<62))
}

// showPlan prints what a run would send.
func (a *app) showPlan(p *run.Plan, j *runJob) error {
	est, err := preview(p)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if j.json {
		rep := planReport{Spec: p.Spec, Requests: est.Requests, Seconds: est.Seconds, Journal: est.JournalBytes}
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
	fmt.Fprintf(w, "tokens       in %s, out %.0f a request on the average\n", in, est.OSLMean)
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
