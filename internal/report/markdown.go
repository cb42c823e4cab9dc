package report

import (
	"io"
	"strings"
)

// Markdown is report.md: the report without figures, fit for a pull request.
type Markdown struct{}

// Name is md.
func (Markdown) Name() string { return "md" }

// Render writes the document.
func (Markdown) Render(w io.Writer, m *Model) error {
	d := &document{}
	d.line("# " + escapeMarkdown(m.Title))
	d.gap()
	d.line("**" + m.Verdict + "** " + escapeMarkdown(m.Result))
	d.gap()
	if m.Reason != "" {
		d.line("Because: " + escapeMarkdown(m.Reason) + ".")
		d.gap()
	}
	for _, s := range []string{strings.Join(m.Facts, " · "), m.Target, joined(" · ", m.Load, m.Lengths), m.When} {
		if s != "" {
			d.line("- " + escapeMarkdown(s))
		}
	}
	d.gap()
	if len(m.Row) > 0 {
		d.grid(Grid{m.Row.Heads(), [][]string{m.Row.Values()}}, false)
	}
	d.parts(m.Parts)

	if len(m.Metrics.Lines) > 0 {
		d.head("Metrics")
		d.metrics(m.Metrics)
		d.rates(m)
	}
	if len(m.Errors) > 0 {
		d.head("Errors")
		g := Grid{Heads: []string{"outcome", "n", "status", "words of the server"}}
		for _, e := range m.Errors {
			g.Rows = append(g.Rows, []string{e.Outcome, count(e.N), e.Status, e.Text})
		}
		d.grid(g, false)
		if m.ErrorsLeft > 0 {
			d.gap()
			d.line("and " + plural(m.ErrorsLeft, "request", "requests") + " with other words")
		}
	}
	if len(m.Notices) > 0 {
		d.head("Caveats")
		for _, n := range m.Notices {
			text := escapeMarkdown(n.Text)
			if n.Grave() {
				text = "**" + string(n.Severity) + "** " + text
			}
			if n.Remedy != "" {
				text += " — " + escapeMarkdown(n.Remedy)
			}
			d.line("- " + text + " (`" + n.Code + "`)")
		}
	}
	if len(m.Tail) > 0 {
		d.head("What the tail says")
		for _, s := range m.Tail {
			d.line("- " + escapeMarkdown(s))
		}
	}
	if len(m.Tokens) > 0 {
		d.head("Tokens")
		d.facts(m.Tokens)
	}
	if len(m.Phases.Rows) > 0 {
		d.head("Phases")
		d.grid(m.Phases, true)
	}
	if len(m.Classes.Rows) > 0 {
		d.head("Classes")
		d.grid(m.Classes, true)
	}
	if len(m.Targets.Rows) > 0 {
		d.head("Targets")
		d.grid(m.Targets, true)
	}
	d.head("Conditions")
	d.sections(m.Conditions)
	d.head("Environment")
	d.sections(m.Environment)
	if m.Command != "" {
		d.head("To repeat")
		d.code(m.Command)
		if m.Same != "" {
			d.gap()
			d.line("With the same prompts: add `" + m.Same + "`. Without it a run draws new ones.")
		}
	}
	if len(m.More.Lines) > 0 {
		d.head("More metrics")
		d.metrics(m.More)
	}
	d.head("Definitions")
	for _, x := range m.Definitions {
		d.line("- **" + escapeMarkdown(x.Short) + "** (" + escapeMarkdown(x.Unit) + "): " + escapeMarkdown(x.Text))
	}
	_, err := io.WriteString(w, d.out.String())
	return err
}

// parts writes the sections of an experiment. Figures are files beside the document.
func (d *document) parts(parts []Part) {
	for _, p := range parts {
		d.head(escapeMarkdown(p.Name))
		d.facts(p.Facts)
		for _, f := range p.Figures {
			d.gap()
			d.line("![" + escapeMarkdown(f.Title) + "](" + FigureFile(f) + ")")
		}
		if len(p.Grid.Rows) > 0 {
			d.gap()
			d.grid(p.Grid, true)
		}
		for _, s := range p.Texts {
			d.gap()
			d.line(escapeMarkdown(s))
		}
	}
}

// FigureFile is the path of a figure beside report.md.
func FigureFile(f Figure) string { return "figures/" + f.Name + ".svg" }

// document collects lines of Markdown.
type document struct{ out strings.Builder }

func (d *document) line(s string) { d.out.WriteString(s + "\n") }

func (d *document) gap() { d.line("") }

func (d *document) head(s string) {
	d.gap()
	d.line("## " + s)
	d.gap()
}

// code writes a block of code behind a fence that is longer than any in it.
func (d *document) code(s string) {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	d.line(fence + "sh")
	d.line(s)
	d.line(fence)
}

// grid writes a table; numbers stand at the right.
func (d *document) grid(g Grid, numbers bool) {
	rule := make([]string, len(g.Heads))
	for i := range rule {
		if rule[i] = "---"; numbers && i > 0 {
			rule[i] = "---:"
		}
	}
	d.cells(g.Heads, true)
	d.cells(rule, false)
	for _, r := range g.Rows {
		d.cells(r, true)
	}
}

func (d *document) cells(cells []string, escape bool) {
	var out []string
	for _, c := range cells {
		if escape {
			c = escapeMarkdown(c)
		}
		out = append(out, c)
	}
	d.line("| " + strings.Join(out, " | ") + " |")
}

func (d *document) metrics(t Table) {
	g := Grid{Heads: []string{"metric"}}
	g.Heads = append(append(g.Heads, t.Heads...), "min", "max", "95 % of the mean", "n")
	for _, l := range t.Lines {
		row := []string{joined(", ", l.Short, l.Unit)}
		for _, c := range l.Cells {
			if c.Doubtful {
				c.Text += "*"
			}
			row = append(row, c.Text)
		}
		g.Rows = append(g.Rows, append(row, l.Min, l.Max, l.Interval, l.N))
	}
	d.grid(g, true)
}

func (d *document) rates(m *Model) {
	d.gap()
	for _, r := range m.Rates {
		d.line("- " + escapeMarkdown(joined(", ", r.Name+" "+r.Value+" "+r.Unit, r.Note)))
	}
	if m.Limits != "" {
		for i, r := range m.Goodput {
			text := r.Name + " " + r.Value + " " + r.Unit
			if i == 0 {
				text += ", at " + m.Limits
			}
			d.line("- " + escapeMarkdown(text))
		}
	}
}

func (d *document) facts(fs []Fact) {
	for _, f := range fs {
		d.line("- " + escapeMarkdown(f.Name) + ": " + escapeMarkdown(f.Text))
	}
}

func (d *document) sections(ss []Section) {
	for i, s := range ss {
		if i > 0 {
			d.gap()
		}
		d.line("**" + escapeMarkdown(s.Name) + "**")
		d.gap()
		d.facts(s.Facts)
	}
}

// escapeMarkdown makes a text show as it is: marks of Markdown and of HTML lose their meaning.
func escapeMarkdown(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case strings.ContainsRune("\\`*_[]#|~", r), r == '!', r == '>' && i == 0: // a quotation begins a line
			b.WriteByte('\\')
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
