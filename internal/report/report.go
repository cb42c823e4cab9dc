// Package report is what a person sees of a finished run: the screen at its end, report.html, report.md, a table and the summary.
//
// New makes one Model from manifest, summary and records; renderers lay it out and never compute, so that no two of them can differ.
// It is pure: the same run gives the same bytes.
package report

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/plot"
)

// Renderer writes a model in one format.
type Renderer interface {
	// Name is the word for the format, e.g. html.
	Name() string
	Render(w io.Writer, m *Model) error
}

// Model is a run, ready to be shown. Its texts are clean: no control characters, one line each, bounded.
type Model struct {
	Summary *bench.Summary // as it was given
	Dir     string         // the run directory
	Files   []string       // those of the directory that are worth a look

	Title   string // the label, or the model
	Target  string // engine, model, endpoint
	Load    string // the law of the measured arrivals
	Lengths string // of the workload
	When    string // begin of the run, UTC
	Verdict string // VALID, DOUBTFUL or VOID
	Reason  string // the gravest caveat, when not valid
	Result  string // one sentence with the result and its uncertainty
	Facts   []string

	Row         Row
	Metrics     Table // those that one asks for first
	More        Table // the others
	Rates       []Rate
	Goodput     []Rate // with the limits; empty without any
	Limits      string
	Notices     []Notice
	Errors      []Failure
	ErrorsLeft  int // failures that are not listed
	Tail        []string
	Tokens      []Fact
	TimeLimits  string // of the requests
	Targets     Grid
	Phases      Grid
	Classes     Grid
	Conditions  []Section
	Environment []Section
	Command     string // to repeat the run, quoted for a shell
	Same        string // what to add for the same prompts; empty when the command has a seed

	OverTime    []Figure
	Shapes      []Figure // distributions
	Limited     []Figure // distributions against their limits
	Waterfalls  []Figure
	Comparison  []Figure // of several targets
	Parts       []Part   // of an experiment of several runs; what is of one run is then empty
	Definitions []Definition
}

// Fact is a named text.
type Fact struct{ Name, Text string }

// Section is a group of facts.
type Section struct {
	Name  string
	Facts []Fact
}

// Rate is a single value of the run.
type Rate struct {
	Key, Name   string
	Value, Unit string // the value is a dash when not defined
	Note        string
	Definition  string
}

// Grid is a plain table. Columns beyond the first are numbers.
type Grid struct {
	Heads []string
	Rows  [][]string
}

// Part is a section of the report of an experiment.
type Part struct {
	ID, Name string
	Texts    []string
	Facts    []Fact
	Figures  []Figure
	Grid     Grid
}

// Failure is one kind of failed request with the words of the server.
type Failure struct {
	N       int
	Outcome string
	Status  string // of HTTP, or empty
	Text    string
}

// Definition says what a metric means.
type Definition struct {
	Key, Short, Name, Unit string
	Text                   string
	NotDefined             string
	Beware                 string
}

// Figure is a drawn result. Its title is a finding by the rules of finding.go.
type Figure struct {
	Name  string // of its file
	Title string
	Note  string // how to read it
	Plot  plot.Figure
}

// Files of a run directory that the screen at the end names.
var shownFiles = []string{"report.html", "summary.json", "requests.parquet"}

// New makes the model of a run. Records may be nil: the figures that need them are then left out.
func New(man *bench.Manifest, sum *bench.Summary, records []bench.Record, dir string) *Model {
	b := &builder{man: man, sum: sum, dir: dir, table: metrics.Table()}
	b.measure = measured(&man.Spec)
	b.columns = shownPercentiles(man.Spec.Percentiles)
	if len(records) > 0 {
		b.ctx = metrics.NewContext(man, records)
	}
	m := &Model{Summary: sum, Dir: clean(dir), Files: shownFiles}
	b.head(m)
	b.tables(m)
	b.notices(m)
	b.failures(m)
	b.tokens(m)
	b.targets(m)
	b.phases(m)
	b.classes(m)
	b.conditions(m)
	b.environment(m)
	b.command(m)
	b.figures(m)
	b.definitions(m)
	m.Result = b.result()
	m.Row = b.row(m)
	for _, t := range sum.Tail {
		m.Tail = append(m.Tail, clean(t))
	}
	return m
}

// builder holds what the parts of a model are made from.
type builder struct {
	man     *bench.Manifest
	sum     *bench.Summary
	ctx     *metrics.Context // nil without records
	dir     string
	measure bench.Phase
	columns []float64 // percentiles that tables show
	table   []metrics.Def
}

// measured is the measured phase of a spec.
func measured(s *bench.Spec) bench.Phase {
	switch all := s.Measured(); len(all) {
	case 0:
		return bench.Phase{}
	case 1:
		return all[0]
	default:
		return bench.Phase{Name: bench.Measure, Load: bench.Load{Shape: bench.Phases}, Stop: all[0].Stop}
	}
}

func (b *builder) def(key string) metrics.Def {
	for _, d := range b.table {
		if d.Key == key {
			return d
		}
	}
	return metrics.Def{Key: key, Short: key, Name: key}
}

// stream tells whether answers were asked as streams: only then there are TTFT, ITL and TPOT.
func (b *builder) stream() bool { return b.man.Spec.Target.Stream }

// generates tells whether text is generated: else there are inputs, embedded or ranked, and no output tokens.
func (b *builder) generates() bool { return b.man.Spec.Target.Task == bench.Generate }

// engine is what is known of the first target.
func (b *builder) engine() bench.Engine {
	if e := b.man.Sheet.Engines; len(e) > 0 {
		return e[0]
	}
	return bench.Engine{}
}

// head fills in who was measured, how, and the verdict.
func (b *builder) head(m *Model) {
	spec, e := &b.man.Spec, b.engine()
	name := e.Name
	if name == "" {
		name = spec.Target.Engine
	}
	model := spec.Target.Model
	if model == "" {
		model = e.Model
	}
	mode := "not streaming"
	switch {
	case spec.Target.Stream:
		mode = "streaming"
	case !b.generates():
		mode = ""
	}
	m.Title = clean(spec.Label)
	if m.Title == "" {
		m.Title = clean(model)
	}
	m.Target = clean(joined(" · ", strings.TrimSpace(name+" "+e.Version), model, joined(", ", spec.Target.Endpoint, mode)))
	m.Load = loadWords(b.measure.Load)
	m.Lengths = b.lengthWords()
	if !b.man.Epoch.IsZero() {
		m.When = b.man.Epoch.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	m.Verdict = strings.ToUpper(string(b.sum.Verdict))
	if m.Verdict == "" {
		m.Verdict = strings.ToUpper(string(bench.Void))
	}
	m.Reason = b.reason()
	m.Facts = b.facts()
}

// reason is the text of the gravest caveat that makes the run less than valid.
func (b *builder) reason() string {
	for _, severity := range []bench.Severity{bench.SeverityVoid, bench.SeverityWarn} {
		for _, c := range b.sum.Caveats {
			if c.Severity == severity {
				return clean(c.Text)
			}
		}
	}
	return ""
}

// facts say how much of the run there is and how well its load was kept.
func (b *builder) facts() []string {
	s := b.sum
	facts := []string{countWords(s.Requests)}
	if w, ok := s.Window.Get(); ok {
		facts[0] += " in " + seconds(w)
	}
	l := s.Load
	switch {
	case l.Shape == bench.Closed:
		facts = append(facts, joined(", ", "closed loop of "+count(l.Concurrency), prefixed(number, l.InFlight.Mean, " in flight")))
	case l.Shape == bench.Users || l.Shape == bench.Prefill || l.Shape == bench.Phases:
		facts = append(facts, joined(", ", loadWords(b.measure.Load), prefixed(number, l.InFlight.Mean, " in flight")))
	case l.Shape == bench.Inf:
		facts = append(facts, joined(", ", "all at once", prefixed(number, l.InFlight.Mean, " in flight")))
	default:
		attained, ok := l.Attained.Get()
		offered, ok2 := l.Offered.Get()
		if ok && ok2 {
			facts = append(facts, "attained "+percent(attained)+" of the offered "+number(offered)+" req/s")
		}
	}
	if d := s.Metrics.Dist("lag_ms"); d != nil {
		if p99, ok := d.P(99); ok {
			facts = append(facts, "client lag p99 "+millis(p99))
		} else {
			facts = append(facts, "client lag at most "+millis(d.Max))
		}
	}
	if s.Client.Stamp != "" {
		facts = append(facts, "stamps: "+clean(s.Client.Stamp))
	}
	return facts
}

// countWords says what became of the requests.
func countWords(c bench.Counts) string {
	all := max(c.Planned, c.Sent+c.Dropped)
	out := count(c.OK) + " of " + count(all) + " ok"
	for _, x := range []struct {
		n    int
		word string
	}{{c.Failed, "failed"}, {c.Excluded, "without a sample"}, {c.Incomplete, "incomplete"}, {c.Cancelled, "cancelled"}, {all - c.Sent, "not sent"}} {
		if x.n > 0 {
			out += ", " + count(x.n) + " " + x.word
		}
	}
	return out
}

// result is the sentence that answers the question of the run.
func (b *builder) result() string {
	s := b.sum
	if s.Requests.OK == 0 {
		return "No request succeeded."
	}
	mean := func(key string) string {
		d := s.Metrics.Dist(key)
		if d == nil {
			return ""
		}
		unit, size := timeUnit(d.Mean)
		out := number(d.Mean/size) + " " + unit
		if ci, ok := d.CI["mean"]; ok {
			out += " (95 % interval " + interval(ci[0]/size, ci[1]/size) + ")"
		}
		return out
	}
	average := " on average"
	if s.Requests.OK == 1 {
		average = ""
	}
	rate := func(key string) string {
		v, ok := s.Metrics.Value(key)
		if !ok {
			return ""
		}
		return number(v) + " " + b.def(key).Unit
	}
	var parts []string
	if first := mean("ttft_ms"); first != "" {
		parts = append(parts, "the first token comes after "+first+average)
		if each := mean("tpot_ms"); each != "" {
			parts = append(parts, "each further one takes "+each)
		}
	} else if whole := mean("e2el_ms"); whole != "" {
		parts = append(parts, "an answer takes "+whole+average)
	}
	if in := rate("inputs_throughput"); in != "" {
		parts = append(parts, joined(" and ", "the server "+b.doing()+" "+in, strings.Replace(rate("input_throughput"), "tok/s", "input tokens/s", 1))+
			" at "+rate("request_throughput"))
	} else if out := rate("output_throughput"); out != "" {
		parts = append(parts, "the server gives "+strings.Replace(out, "tok/s", "output tokens/s", 1)+" at "+rate("request_throughput"))
	} else if r := rate("request_throughput"); r != "" {
		parts = append(parts, "the server ends "+r)
	}
	if len(parts) == 0 {
		return plural(s.Requests.OK, "request", "requests") + " succeeded."
	}
	out := strings.Join(parts, "; ")
	return strings.ToUpper(out[:1]) + out[1:] + "."
}

// doing says what the server does with inputs.
func (b *builder) doing() string {
	if b.man.Spec.Target.Task == bench.Rerank {
		return "ranks"
	}
	return "embeds"
}

// lengthWords names the lengths that were asked for.
func (b *builder) lengthWords() string {
	w := b.man.Spec.Workload
	switch {
	case w.ISL != "" && w.Batch > 0:
		return clean(w.ISL + " tokens x " + plural(w.Batch, "text", "texts"))
	case w.ISL != "" && w.OSL != "":
		return clean(w.ISL + " -> " + w.OSL + " tokens")
	case w.OSL != "":
		return clean(joined(" -> ", w.Dataset, w.OSL+" tokens"))
	}
	return clean(w.Dataset)
}

// joined joins what is not empty.
func joined(with string, parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, with)
}

// prefix puts a text before another, unless that is empty.
func prefix(before, s string) string {
	if s == "" {
		return ""
	}
	return before + s
}

// prefixed writes an optional value with what follows it, or nothing.
func prefixed(write func(float64) string, v opt.Of[float64], after string) string {
	if x, ok := v.Get(); ok {
		return write(x) + after
	}
	return ""
}

// testID is the name of the run directory.
func (b *builder) testID() string { return clean(filepath.Base(b.dir)) }
