package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/report"
	"github.com/prony-bench/prony/internal/run"
	"github.com/prony-bench/prony/internal/tty"
)

// progressView shows how far a run has come: a few lines redrawn in place on a terminal, one line every 10 s elsewhere.
type progressView struct {
	a     *app
	plan  *run.Plan
	quiet bool
	block *tty.Block // nil without a terminal
	last  time.Time
	begun time.Time
}

const lineEvery = 10 * time.Second

func (a *app) newProgressView(p *run.Plan, quiet bool) *progressView {
	v := &progressView{a: a, plan: p, quiet: quiet, last: time.Now(), begun: time.Now()}
	if tty.Is(a.Stderr) && a.Getenv("TERM") != "dumb" {
		v.block = tty.NewBlock(a.Stderr)
	}
	return v
}

func (v *progressView) show(p run.Progress) {
	switch {
	case v.quiet:
	case v.block != nil:
		v.block.Draw(v.screen(p))
	case time.Since(v.last) >= lineEvery:
		v.last = time.Now()
		v.a.say(progressLine(p, v.plan.Spec.Target.Task))
	}
}

func (v *progressView) done() {
	if v.block != nil && !v.quiet {
		v.block.Clear()
	}
}

// screen is the live view, at most as wide as the terminal.
func (v *progressView) screen(p run.Progress) []string {
	width := columns(v.a.Stderr)
	share, left := 0.0, ""
	switch {
	case p.Planned > 0:
		share = float64(p.Done) / float64(p.Planned)
		if p.Done > 0 {
			left = clockLeft(time.Duration(float64(p.Elapsed) * float64(p.Planned-p.Done) / float64(p.Done)))
		}
	case p.Duration > 0:
		share = float64(p.Elapsed) / float64(p.Duration)
		left = clockLeft(p.Duration - p.Elapsed)
	}
	count := fmt.Sprintf("%d", p.Done)
	if p.Planned > 0 {
		count = fmt.Sprintf("%d/%d", p.Done, p.Planned)
	}
	head := headLine(v.plan)
	if p.Phase == bench.Warmup {
		head = "warm-up · " + head
	}
	lines := []string{
		head,
		fmt.Sprintf("%s  %s   in flight %d   %s", tty.Bar(share, min(36, max(0, width-44))), count, p.InFlight, left),
		fmt.Sprintf("%s req/s   out %s tok/s   TTFT %s ms p50 · %s p99  %s   TPOT %s ms  %s", sig(p.RequestRate), sig(p.TokenRate),
			sig(p.TTFT50), sig(p.TTFT99), tty.Spark(p.TTFT), sig(p.TPOT50), tty.Spark(p.TPOT)),
	}
	if v.plan.Spec.Target.Task != bench.Generate {
		lines[2] = fmt.Sprintf("%s req/s   in %s tok/s   E2E %s ms p50 · %s p99  %s", sig(p.RequestRate), sig(p.InputRate), sig(p.E2E50), sig(p.E2E99), tty.Spark(p.E2E))
	}
	last := fmt.Sprintf("errors %d", p.Errors)
	if p.LastErr != "" {
		last += " (" + oneLine(p.LastErr) + ")"
	}
	if !math.IsNaN(p.Lag99) {
		last += fmt.Sprintf("   client lag p99 %s ms", sig(p.Lag99))
	}
	lines = append(lines, last)
	for i, l := range lines {
		lines[i] = fit(l, width-1)
	}
	return lines
}

// fit cuts a line to so many columns: a line that the terminal breaks could not be redrawn. Wide characters, such as of a model's name,
// take two.
func fit(line string, columns int) string {
	for i, r := range line {
		if columns--; r >= firstWide {
			columns--
		}
		if columns < 0 {
			return line[:i]
		}
	}
	return line
}

const firstWide = 0x2e80 // CJK and beyond

// columns is the width of a terminal, however narrow it is; 80 when it tells none.
func columns(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return min(n, tty.Wide)
		}
	}
	return tty.Narrow
}

// progressLine is the state in one line.
func progressLine(p run.Progress, task bench.Task) string {
	count := fmt.Sprintf("%d", p.Done)
	if p.Planned > 0 {
		count = fmt.Sprintf("%d/%d", p.Done, p.Planned)
	}
	figures := fmt.Sprintf("out %s tok/s, TTFT %s ms p50 %s p99", sig(p.TokenRate), sig(p.TTFT50), sig(p.TTFT99))
	if task != bench.Generate {
		figures = fmt.Sprintf("in %s tok/s, E2E %s ms p50 %s p99", sig(p.InputRate), sig(p.E2E50), sig(p.E2E99))
	}
	s := fmt.Sprintf("%s %s done after %s, in flight %d, %s req/s, %s, errors %d",
		p.Phase, count, p.Elapsed.Round(time.Second), p.InFlight, sig(p.RequestRate), figures, p.Errors)
	if p.LastErr != "" {
		s += " (last: " + p.LastErr + ")"
	}
	return s
}

// headLine names server, model and load.
func headLine(p *run.Plan) string {
	s := p.Spec
	parts := []string{s.Target.Engine}
	if len(p.Sheet.Engines) > 0 && p.Sheet.Engines[0].Version != "" {
		parts[0] += " " + p.Sheet.Engines[0].Version
	}
	mode := ", streaming"
	switch {
	case s.Target.Task != bench.Generate:
		mode = ""
	case !s.Target.Stream:
		mode = ", not streaming"
	}
	parts = append(parts, s.Target.Model, s.Target.Endpoint+mode, phaseLoads(&s))
	switch {
	case s.Workload.ISL != "" && s.Workload.Batch > 0:
		parts = append(parts, fmt.Sprintf("%s tokens x %d", s.Workload.ISL, s.Workload.Batch))
	case s.Workload.ISL != "":
		parts = append(parts, s.Workload.ISL+" -> "+s.Workload.OSL+" tokens")
	}
	return oneLine(strings.Join(parts, " · "))
}

// phaseLoads says what is measured.
func phaseLoads(s *bench.Spec) string {
	if n := len(s.Measured()); n > 1 {
		return fmt.Sprintf("%d phases", n)
	}
	return loadWords(s.Phases[len(s.Phases)-1].Load)
}

// plainShapes are those that one line has words for.
var plainShapes = []bench.Shape{bench.Closed, bench.Inf, bench.Constant, bench.Poisson, bench.Gamma}

func loadWords(l bench.Load) string {
	if l.Profile != "" || l.Think != "" || l.CancelRate > 0 || !slices.Contains(plainShapes, l.Shape) {
		return report.LoadWords(l)
	}
	under := ""
	if l.Cap > 0 {
		under = fmt.Sprintf(", at most %d in flight", l.Cap)
	}
	switch l.Shape {
	case bench.Closed:
		return fmt.Sprintf("closed loop of %d", l.Concurrency)
	case bench.Inf:
		return "all at once" + under
	case bench.Gamma:
		return fmt.Sprintf("gamma(%s) %s req/s%s", plain(l.Burstiness), plain(l.Rate), under)
	}
	return fmt.Sprintf("%s %s req/s%s", l.Shape, plain(l.Rate), under)
}

func clockLeft(d time.Duration) string {
	s := int(max(0, d).Seconds() + 0.5)
	return fmt.Sprintf("%02d:%02d left", s/60, s%60)
}

// sig writes a number with three significant digits; a dash for none.
func sig(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	a := math.Abs(v)
	switch {
	case a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a < 1e-4:
		return "0"
	}
	return fmt.Sprintf("%.3g", v) // without an exponent between these bounds
}

// plain writes a number as a person gives it.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// sayPlan tells before a run what is about to be sent.
func (a *app) sayPlan(p *run.Plan) {
	a.say(headLine(p))
	s := p.Spec
	if s.Workload.PromptSource != "" {
		seed := fmt.Sprintf("seed %d", s.Seed)
		if !s.SeedGiven {
			seed = fmt.Sprintf("prompts are new in this run (--seed %d repeats them)", s.Seed)
		}
		a.say("prompts by " + s.Workload.PromptSource + "; " + seed)
	}
	for _, e := range p.Sheet.Engines {
		if e.Name != "" && e.Name != p.Sheet.Engines[0].Name {
			a.say(fmt.Sprintf("%s is %s, while %s is %s: one dialect is spoken with all", e.URL, e.Name, p.Sheet.Engines[0].URL, p.Sheet.Engines[0].Name))
		}
	}
}
