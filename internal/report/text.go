package report

import (
	"io"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
)

// Text is the screen at the end of a run.
type Text struct {
	Color       bool   // for the verdict and what bears on it, never for anything else
	Width       int    // columns; taken between narrow and wide
	Definitions bool   // print what each metric means
	Next        string // the command to try next, or empty
}

// Widths between which the screen is laid out.
const (
	narrow = 80
	wide   = 100
)

// Name is text.
func (Text) Name() string { return "text" }

// Render writes the screen.
func (t Text) Render(w io.Writer, m *Model) error {
	p := &page{color: t.Color, width: min(wide, max(narrow, t.Width))}
	p.verdict(m)
	p.parts(m)
	p.table(m.Metrics)
	p.rates(m)
	p.phases(m)
	p.grid(m.Classes)
	p.targets(m)
	p.failures(m)
	p.notices(m)
	for _, s := range m.Tail {
		p.hanging("Tail: ", s)
	}
	p.gap()
	p.tokens(m)
	if t.Definitions {
		p.definitions(m)
	}
	p.gap()
	p.files(m)
	if t.Next != "" {
		p.line("next: " + clean(t.Next))
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

// page collects lines.
type page struct {
	out   strings.Builder
	color bool
	width int
	empty bool // the last line is
}

func (p *page) line(s string) {
	s = strings.TrimRight(s, " ")
	p.out.WriteString(s + "\n")
	p.empty = s == ""
}

// gap leaves one empty line, never two.
func (p *page) gap() {
	if !p.empty {
		p.line("")
	}
}

// hanging writes a text behind a head; further lines stand below the text.
func (p *page) hanging(head, s string) {
	indent := columns(head)
	for i, l := range wrap(s, p.width-indent) {
		if i == 0 {
			p.line(head + l)
		} else {
			p.line(strings.Repeat(" ", indent) + l)
		}
	}
}

// Colours of a terminal. They only repeat what words and signs say.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	reset  = "\x1b[0m"
)

func (p *page) paint(color, s string) string {
	if !p.color {
		return s
	}
	return color + s + reset
}

// verdict writes the verdict, why, and what it rests on.
func (p *page) verdict(m *Model) {
	color := red
	switch bench.Verdict(strings.ToLower(m.Verdict)) {
	case bench.Valid:
		color = green
	case bench.Doubtful:
		color = yellow
	}
	parts := m.Facts
	if m.Reason != "" {
		parts = append([]string{m.Reason}, parts...)
	}
	indent := len(m.Verdict) + 3
	for i, l := range wrapParts(parts, " · ", p.width-indent) {
		head := strings.Repeat(" ", indent)
		if i == 0 {
			head = p.paint(color, m.Verdict) + "   "
		}
		p.line(head + l)
	}
	p.gap()
}

// wrapParts joins parts into lines, and breaks between parts where it can.
func wrapParts(parts []string, with string, most int) []string {
	var lines []string
	line := ""
	for _, part := range parts {
		switch {
		case line == "":
			line = part
		case columns(line+with+part) <= most:
			line += with + part
		default:
			lines = append(lines, line)
			line = part
		}
		if columns(line) > most {
			broken := wrap(line, most)
			lines = append(lines, broken[:len(broken)-1]...)
			line = broken[len(broken)-1]
		}
	}
	return append(lines, line)
}

// Space between the columns of a table: the first where it fits.
const (
	roomy = 3
	tight = 2
)

// table writes distributions.
func (p *page) table(t Table) {
	if len(t.Lines) == 0 {
		return
	}
	var names, intervals, ns []string
	for _, l := range t.Lines {
		names = append(names, l.Short+" "+l.Unit)
		intervals, ns = append(intervals, l.Interval), append(ns, l.N)
	}
	var all []column
	for i, head := range t.Heads {
		var cells []string
		for _, l := range t.Lines {
			mark := ""
			if l.Cells[i].Doubtful {
				mark = "*"
			}
			cells = append(cells, l.Cells[i].Text+mark)
		}
		all = append(all, decimals(head, cells))
	}
	p.columns("", names, append(all, decimals("95 % of the mean", intervals), decimals("n", ns)))
}

// columns writes a table of names and columns. Columns that do not fit go into a second table below, with the names again.
func (p *page) columns(head string, names []string, all []column) {
	width := columns(head)
	for _, n := range names {
		width = max(width, columns(n))
	}
	total := width
	for _, c := range all {
		total += c.width
	}
	between := tight
	if total+roomy*len(all) <= p.width {
		between = roomy
	}
	for len(all) > 0 {
		fit, used := 0, width
		for fit < len(all) && used+between+all[fit].width <= p.width {
			used += between + all[fit].width
			fit++
		}
		fit = max(1, fit)
		p.rows(head, names, all[:fit], width, strings.Repeat(" ", between))
		all = all[fit:]
		p.gap()
	}
}

func (p *page) rows(head string, names []string, cs []column, width int, between string) {
	line := head + strings.Repeat(" ", width-columns(head))
	for _, c := range cs {
		line += between + c.head
	}
	p.line(line)
	for i, name := range names {
		line := name + strings.Repeat(" ", width-columns(name))
		for _, c := range cs {
			line += between + c.cells[i]
		}
		p.line(line)
	}
}

// column is a column of a table, its cells padded to one width.
type column struct {
	head  string
	cells []string
	width int
}

// decimals lines numbers up at their decimal points; what is no number stands at the right end of the whole part. The head ends
// where the longest cell ends.
func decimals(head string, cells []string) column {
	before, after := 0, 0
	for _, c := range cells {
		w, f := parts(c)
		before, after = max(before, columns(w)), max(after, columns(f))
	}
	width := max(before+after, columns(head))
	before = width - after
	out := column{width: width, head: strings.Repeat(" ", width-columns(head)) + head}
	for _, c := range cells {
		w, f := parts(c)
		out.cells = append(out.cells, strings.Repeat(" ", before-columns(w))+w+f+strings.Repeat(" ", after-columns(f)))
	}
	return out
}

// parts cuts a number before its decimal point, or before a mark behind it. An interval is one part.
func parts(s string) (whole, rest string) {
	if strings.Contains(s, " ") {
		return s, ""
	}
	if i := strings.IndexAny(s, ".*"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

// screenRates are the keys of the rates on the screen.
func screenRates(m *Model) []string {
	keys := []string{"request_throughput", "output_throughput", "total_throughput", "per_user_throughput"}
	if slices.ContainsFunc(m.Rates, func(r Rate) bool { return r.Key == "inputs_throughput" }) {
		keys = []string{"request_throughput", "inputs_throughput", "input_throughput"}
	}
	return keys
}

// rates writes throughput and goodput.
func (p *page) rates(m *Model) {
	var line []string
	for _, key := range screenRates(m) {
		for _, r := range m.Rates {
			if r.Key == key && r.Value != dash {
				line = append(line, r.Name+" "+r.Value+glued(r.Unit))
			}
		}
	}
	if len(line) > 0 {
		for _, l := range wrapParts(line, "    ", p.width) {
			p.line(l)
		}
	}
	if len(m.Goodput) >= 2 && m.Goodput[0].Value != dash {
		p.hanging("", "goodput "+m.Goodput[0].Value+glued(m.Goodput[0].Unit)+"  ("+m.Goodput[1].Value+" % of the sent)  at "+m.Limits)
	}
	p.gap()
}

// glued puts a unit behind a number: /s without a blank.
func glued(unit string) string {
	if unit == "req/s" || unit == "texts/s" {
		return "/s"
	}
	return " " + unit
}

// targets writes a line a target: its address, then its numbers.
func (p *page) targets(m *Model) { p.grid(m.Targets) }

// phases writes a line a phase.
func (p *page) phases(m *Model) { p.grid(m.Phases) }

// parts writes the sections of an experiment: what each says, then its table.
func (p *page) parts(m *Model) {
	if len(m.Parts) == 0 {
		return
	}
	p.hanging("", m.Result)
	for _, part := range m.Parts {
		p.gap()
		p.facts(part.Facts)
		p.gap()
		p.grid(part.Grid)
		for _, s := range part.Texts {
			p.hanging("", s)
		}
	}
	p.gap()
}

// grid writes a table whose columns beyond the first are numbers.
func (p *page) grid(g Grid) {
	if len(g.Rows) == 0 {
		return
	}
	var names []string
	for _, r := range g.Rows {
		names = append(names, cut(r[0], p.width/3))
	}
	var all []column
	for i := 1; i < len(g.Heads); i++ {
		var cells []string
		for _, r := range g.Rows {
			cells = append(cells, r[i])
		}
		all = append(all, decimals(g.Heads[i], cells))
	}
	p.columns(g.Heads[0], names, all)
}

// notices writes what makes numbers doubtful and what to do about it: on the same line where there is room.
func (p *page) notices(m *Model) {
	for _, n := range m.Notices {
		sign := n.Sign()
		text := n.Text
		if n.Code == "few_samples" {
			text = "* " + text
		}
		indent := "  "
		head := sign + " "
		if n.Grave() && p.color {
			color := yellow
			if n.Severity == bench.SeverityVoid {
				color = red
			}
			head = p.paint(color, sign) + " "
		}
		room := p.width - len(indent)
		if n.Remedy != "" && columns(text)+4+columns(n.Remedy) <= room {
			p.line(head + text + strings.Repeat(" ", room-columns(text)-columns(n.Remedy)) + n.Remedy)
			continue
		}
		for i, l := range wrap(text, room) {
			if i == 0 {
				p.line(head + l)
			} else {
				p.line(indent + l)
			}
		}
		if n.Remedy != "" {
			for _, l := range wrap(n.Remedy, room-4) {
				p.line(strings.Repeat(" ", len(indent)+4) + l)
			}
		}
	}
}

// failures writes what went wrong, in the server's words.
func (p *page) failures(m *Model) {
	if len(m.Errors) == 0 {
		return
	}
	p.gap()
	p.line("errors")
	widest := 0
	for _, e := range m.Errors {
		widest = max(widest, len(count(e.N)))
	}
	for _, e := range m.Errors {
		n := count(e.N)
		head := "  " + strings.Repeat(" ", widest-len(n)) + n + " x " + joined(" ", e.Outcome, e.Status)
		p.line(cut(joined(": ", head, e.Text), p.width))
	}
	if m.ErrorsLeft > 0 {
		p.line("  and " + plural(m.ErrorsLeft, "request", "requests") + " with other words: see summary.json")
	}
	p.gap()
}

// tokens writes how lengths fit, where the prompts come from, and how long requests may take.
func (p *page) tokens(m *Model) {
	facts := slices.Clone(m.Tokens)
	if m.TimeLimits != "" {
		facts = append(facts, Fact{"time limits", m.TimeLimits})
	}
	p.facts(facts)
}

// facts writes named texts below each other.
func (p *page) facts(facts []Fact) {
	widest := 0
	for _, f := range facts {
		widest = max(widest, len(f.Name))
	}
	for _, f := range facts {
		p.hanging(f.Name+strings.Repeat(" ", widest-len(f.Name)+2), f.Text)
	}
}

// definitions writes what the shown metrics mean.
func (p *page) definitions(m *Model) {
	p.gap()
	shown := map[string]bool{}
	for _, l := range m.Metrics.Lines {
		shown[l.Key] = true
	}
	for _, key := range screenRates(m) {
		shown[key] = true
	}
	for _, r := range m.Goodput[:min(2, len(m.Goodput))] {
		shown[r.Key] = true
	}
	widest := 0
	for _, d := range m.Definitions {
		if shown[d.Key] {
			widest = max(widest, columns(d.Short))
		}
	}
	for _, d := range m.Definitions {
		if shown[d.Key] {
			p.hanging(d.Short+strings.Repeat(" ", widest-columns(d.Short)+2), d.Text)
		}
	}
}

// files names the run directory and what is in it.
func (p *page) files(m *Model) {
	if m.Dir == "" {
		return
	}
	for _, l := range wrapParts([]string{m.Dir, strings.Join(m.Files, " · ")}, "   ", p.width) {
		p.line(l)
	}
}
