package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/plot"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var pageStyle string

// HTML is report.html: one file that needs no script and nothing from elsewhere, and may be opened from a disk.
type HTML struct{}

// Name is html.
func (HTML) Name() string { return "html" }

// Widths of the view boxes of figures: across the page, on a small screen, and one of several beside each other. The page shows them
// at 0.8 to 1.2 times their size, so that their letters stay near those of the text.
const (
	figureWide   = 1000
	figureNarrow = 440
	figureSmall  = 360
)

// Render writes the page.
func (HTML) Render(w io.Writer, m *Model) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"wide":   func(f Figure) template.HTML { return drawn(f, figureWide) },
		"narrow": func(f Figure) template.HTML { return drawn(f, figureNarrow) },
		"small":  func(f Figure) template.HTML { return drawn(f, figureSmall) },
		"count":  count,
		"sign":   severityWord,
	}).Parse(pageSource)
	if err != nil {
		return fmt.Errorf("report page: %w", err) // the page is part of the program
	}
	return t.Execute(w, newHTMLPage(m))
}

// drawn is a figure as an element. plot escapes all texts.
func drawn(f Figure, width float64) template.HTML { return template.HTML(plot.Inline(f.Plot, width)) }

// htmlPage is the model with what only this layout needs.
type htmlPage struct {
	Model   *Model
	Style   template.CSS
	Class   string // of the verdict
	Mark    string
	Metrics htmlTable
	More    htmlTable
	Rates   []htmlRate
}

type htmlTable struct {
	Heads []string
	Rows  []htmlRow
}

type htmlRow struct {
	Key, Name, Unit, Definition string
	Cells                       []htmlCell
}

// htmlCell is a number with the invisible digits behind it that line it up with the others of its column.
type htmlCell struct{ Text, Ghost, Title string }

type htmlRate struct {
	Rate
	Ghost string
}

func newHTMLPage(m *Model) htmlPage {
	p := htmlPage{Model: m, Style: template.CSS(pageStyle + plot.Style), Class: strings.ToLower(m.Verdict), Mark: "✗",
		Metrics: newHTMLTable(m.Metrics), More: newHTMLTable(m.More)}
	switch bench.Verdict(p.Class) {
	case bench.Valid:
		p.Mark = "✓"
	case bench.Doubtful:
		p.Mark = "?"
	}
	rates := slices.Clone(m.Rates)
	for i, r := range m.Goodput {
		if i == 0 {
			r.Note = "at " + m.Limits
		}
		rates = append(rates, r)
	}
	var values []string
	for _, r := range rates {
		values = append(values, r.Value)
	}
	for i, g := range ghosts(values) {
		p.Rates = append(p.Rates, htmlRate{rates[i], g})
	}
	return p
}

func newHTMLTable(t Table) htmlTable {
	out := htmlTable{Heads: append(append([]string{}, t.Heads...), "95 % of the mean", "min", "max", "n")}
	for _, l := range t.Lines {
		row := htmlRow{Key: l.Key, Name: l.Short, Unit: l.Unit, Definition: l.Definition}
		for _, c := range l.Cells {
			cell := htmlCell{Text: c.Text}
			if c.Doubtful {
				cell.Text += "*"
				cell.Title = "too few independent samples"
			}
			row.Cells = append(row.Cells, cell)
		}
		row.Cells = append(row.Cells, htmlCell{Text: l.Interval, Title: l.Method}, htmlCell{Text: l.Min}, htmlCell{Text: l.Max}, htmlCell{Text: l.N})
		out.Rows = append(out.Rows, row)
	}
	for i := range out.Heads {
		var cells []string
		for _, r := range out.Rows {
			cells = append(cells, r.Cells[i].Text)
		}
		for k, g := range ghosts(cells) {
			out.Rows[k].Cells[i].Ghost = g
		}
	}
	return out
}

// ghosts returns for each number of a column what has to stand behind it for the decimal points to line up.
func ghosts(cells []string) []string {
	longest := ""
	for _, c := range cells {
		if _, rest := parts(c); len(rest) > len(longest) {
			longest = rest
		}
	}
	out := make([]string, len(cells))
	for i, c := range cells {
		_, rest := parts(c)
		out[i] = longest[len(rest):]
	}
	return out
}

// severityWord is the word before a notice.
func severityWord(n Notice) string {
	switch n.Severity {
	case bench.SeverityVoid:
		return "! void"
	case bench.SeverityWarn:
		return "! doubt"
	case bench.SeverityCell:
		return "*"
	}
	return "note"
}
