package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/plot"
	"github.com/prony-bench/prony/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func render(t rapid.TB, r Renderer, m *Model) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Render(&out, m); err != nil {
		t.Fatalf("%s: %v", r.Name(), err)
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-update rewrites it):\n%.3000s", name, d)
	}
}

const nextCommand = "prony sweep --url http://127.0.0.1:8000 --concurrency 1..64x2"

func TestGolden(t *testing.T) {
	for _, name := range []string{"open", "overload", "closed", "failing", "none-ok", "no-stream", "embeddings", "targets", "hostile", "nothing", "one", "inf"} {
		m := scenes()[name].model()
		golden(t, name+".txt", render(t, Text{Width: 100, Next: nextCommand}, m))
		if name == "open" || name == "hostile" {
			golden(t, name+".80.txt", render(t, Text{Width: 80, Definitions: true, Next: nextCommand}, m))
			golden(t, name+".md", render(t, Markdown{}, m))
			golden(t, name+".csv", render(t, CSV{}, m))
		}
		if name == "embeddings" {
			golden(t, name+".md", render(t, Markdown{}, m))
		}
		if name == "failing" {
			golden(t, name+".color.txt", render(t, Text{Color: true}, m))
			golden(t, name+".md", render(t, Markdown{}, m))
		}
	}
	golden(t, "twenty.html", render(t, HTML{}, scenes()["twenty"].model()))
}

// renderers are all of them, in all their forms.
func renderers() []Renderer {
	return []Renderer{Text{Width: 80, Definitions: true, Next: "x"}, Text{Width: 100, Color: true}, HTML{}, Markdown{}, CSV{}, JSON{}}
}

func TestNames(t *testing.T) {
	var got []string
	for _, r := range renderers()[1:] {
		got = append(got, r.Name())
	}
	if d := cmp.Diff([]string{"text", "html", "md", "csv", "json"}, got); d != "" {
		t.Error(d)
	}
}

func TestJSONIsTheSummary(t *testing.T) {
	m := usual(50).model()
	var back bench.Summary
	if err := json.Unmarshal([]byte(render(t, JSON{}, m)), &back); err != nil {
		t.Fatal(err)
	}
	want, _ := json.Marshal(m.Summary)
	got, _ := json.Marshal(&back)
	if !bytes.Equal(want, got) {
		t.Error("the summary is not what was given")
	}
	m.Summary.Window = opt.Some(0.0)
	m.Summary.Metrics[0].Dist.Mean = 1 / m.Summary.Window.Or(1)
	if err := (JSON{}).Render(io.Discard, m); err == nil {
		t.Error("infinity is written as JSON")
	}
}

// The table has a row a metric of the summary, in its order, all as wide as the head, and gives back the exact numbers.
func TestCSV(t *testing.T) {
	m := scenes()["open"].model()
	rows, err := csv.NewReader(strings.NewReader(render(t, CSV{}, m))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"key", "unit", "n", "mean", "sd", "min", "p50", "p75", "p90", "p95", "p99", "p99_9", "max", "ci95_low", "ci95_high"}, rows[0]); d != "" {
		t.Error(d)
	}
	for i, x := range m.Summary.Metrics {
		row := rows[i+1]
		value, err := strconv.ParseFloat(row[3], 64)
		switch {
		case row[0] != x.Key:
			t.Errorf("row %d is %s, want %s", i, row[0], x.Key)
		case x.Dist != nil && (err != nil || value != x.Dist.Mean || row[2] != strconv.Itoa(x.Dist.N)):
			t.Errorf("%v", row)
		case x.Scalar != nil && x.Scalar.Value.Defined() && value != x.Scalar.Value.Or(-1):
			t.Errorf("%v", row)
		}
	}
	if len(rows) != len(m.Summary.Metrics)+1 {
		t.Errorf("%d rows", len(rows))
	}
}

type failingWriter struct{}

var errFull = errors.New("disk full")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrorsAreReturned(t *testing.T) {
	m := usual(5).model()
	for _, r := range renderers() {
		if err := r.Render(failingWriter{}, m); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", r.Name(), err)
		}
	}
}

// checkText holds what is true of every screen.
func checkText(t rapid.TB, out string, width int) {
	t.Helper()
	for _, l := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if columns(l) > width {
			t.Errorf("%d columns in %d: %q", columns(l), width, l)
		}
		if strings.TrimRight(l, " ") != l {
			t.Errorf("blanks at the end of %q", l)
		}
		for _, r := range l {
			if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e' {
				t.Errorf("control character in %q", l)
			}
		}
	}
	if strings.Contains(out, "\n\n\n") || strings.HasPrefix(out, "\n") {
		t.Errorf("empty lines:\n%s", out)
	}
}

func TestText(t *testing.T) {
	for _, name := range sceneNames() {
		if name == "many" {
			continue
		}
		m := scenes()[name].model()
		checkText(t, render(t, Text{Width: 80, Definitions: true, Next: nextCommand}, m), 80)
		checkText(t, render(t, Text{Width: 100, Next: nextCommand}, m), 100)
		if render(t, Text{}, m) != render(t, Text{Width: 80}, m) || render(t, Text{Width: 500}, m) != render(t, Text{Width: 100}, m) {
			t.Errorf("%s: the width is not kept between 80 and 100", name)
		}
		plainText, colored := render(t, Text{}, m), render(t, Text{Color: true}, m)
		if strings.Contains(plainText, "\x1b") {
			t.Errorf("%s: colour where none is asked for", name)
		}
		if got := regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(colored, ""); got != plainText {
			t.Errorf("%s: colour changes more than colour:\n%s", name, cmp.Diff(plainText, got))
		}
		if first, _, _ := strings.Cut(plainText, " "); first != m.Verdict {
			t.Errorf("%s begins with %q", name, first)
		}
	}
}

// Columns stay aligned for numbers of any size: all cells of a column have one width, and their decimal points one place.
func TestColumnsStayAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cells := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			if rapid.IntRange(0, 5).Draw(t, "dash") == 0 {
				return dash
			}
			s := number(rapid.Float64Range(1, 10).Draw(t, "m") * pow10(rapid.IntRange(-6, 9).Draw(t, "e")))
			if rapid.Bool().Draw(t, "mark") {
				s += "*"
			}
			return s
		}), 1, 8).Draw(t, "cells")
		c := decimals("p99", cells)
		point := -1
		for i, s := range c.cells {
			if len(s) != c.width || len(c.head) != c.width {
				t.Fatalf("%q is not %d wide", s, c.width)
			}
			if strings.TrimSpace(s) != cells[i] {
				t.Fatalf("%q became %q", cells[i], s)
			}
			if at := strings.IndexByte(s, '.'); at >= 0 {
				if point >= 0 && at != point {
					t.Fatalf("decimal points at %d and %d: %q", point, at, c.cells)
				}
				point = at
			}
		}
	})
}

func pow10(e int) float64 {
	v := 1.0
	for ; e > 0; e-- {
		v *= 10
	}
	for ; e < 0; e++ {
		v /= 10
	}
	return v
}

func TestGhostsAlign(t *testing.T) {
	got := ghosts([]string{"83.1", "101", "12.2*", "-", "0.0213"})
	if d := cmp.Diff([]string{"213", ".0213", "13", ".0213", ""}, got); d != "" {
		t.Error(d)
	}
}

// checkHTML holds what is true of every page: no script, nothing from elsewhere, and all elements closed in order. It reads markup
// only: `<` in a text would be an unknown element.
func checkHTML(t rapid.TB, out string) {
	t.Helper()
	if strings.Contains(out, "ZgotmplZ") {
		t.Error("the template refused a value")
	}
	_, body, _ := strings.Cut(out, "</style>")
	open := []string{"html", "head"}
	ids, targets := map[string]bool{}, []string{}
	for rest := body; ; {
		_, after, ok := strings.Cut(rest, "<")
		if !ok {
			break
		}
		element, after, _ := strings.Cut(after, ">")
		rest = after
		name, attributes, _ := strings.Cut(element, " ")
		if closing, ok := strings.CutPrefix(name, "/"); ok {
			if len(open) == 0 || open[len(open)-1] != closing {
				t.Fatalf("</%s> closes %v", closing, open)
			}
			open = open[:len(open)-1]
			continue
		}
		if !elements[name] {
			t.Fatalf("an element <%.40s", element)
		}
		if !strings.HasSuffix(element, "/") {
			open = append(open, name)
		}
		for _, a := range strings.Split(attributes, `" `) {
			key, value, _ := strings.Cut(a, `="`)
			value = strings.TrimRight(value, `"/`)
			switch {
			case key == "id":
				ids[value] = true
			case key == "href" && strings.HasPrefix(value, "#"):
				targets = append(targets, value[1:])
			case key == "href" || key == "src" || strings.HasPrefix(key, "on") || key == "style":
				t.Errorf("an attribute %s", a)
			}
		}
	}
	if len(open) != 0 {
		t.Errorf("open at the end: %v", open)
	}
	for _, id := range targets {
		if !ids[id] {
			t.Errorf("nothing has the id %s", id)
		}
	}
}

// elements are all that a page may have after its head.
var elements = func() map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields("body header main footer section figure figcaption div p h1 h2 h3 span a ul li dl dt dd table caption thead tbody tr th td code pre b details summary " +
		"svg g path rect circle text title") {
		m[n] = true
	}
	return m
}()

// Figures inside of a page are XML of their own.
func TestFiguresAreXML(t *testing.T) {
	for _, name := range sceneNames() {
		if name == "many" {
			continue
		}
		m := scenes()[name].model()
		for _, f := range slices.Concat(m.OverTime, m.Shapes, m.Limited, m.Waterfalls, m.Comparison) {
			d := xml.NewDecoder(strings.NewReader(plot.File(f.Plot, figureNarrow)))
			for {
				if _, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s of %s: %v", f.Name, name, err)
				}
			}
		}
	}
}

func TestHTML(t *testing.T) {
	for _, name := range sceneNames() {
		if name == "many" {
			continue
		}
		checkHTML(t, render(t, HTML{}, scenes()[name].model()))
	}
}

// Words of others are shown as they are and do nothing.
func TestHostileWords(t *testing.T) {
	m := scenes()["hostile"].model()
	words := func(out string) string { // what is in a block of code is not read as Markdown
		return regexp.MustCompile("(?s)\n```+sh\n.*?\n```+\n").ReplaceAllString(out, "\n")
	}
	page := render(t, HTML{}, m)
	for _, bad := range []string{"<script", "\x1b", "\u202e", "\x07", "\u0085"} {
		for _, r := range []Renderer{HTML{}, Markdown{}, Text{}} {
			if out := words(render(t, r, m)); strings.Contains(out, bad) && !(r.Name() == "text" && bad == "<script") {
				t.Errorf("%s holds %q", r.Name(), bad)
			}
		}
	}
	if !strings.Contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;") || !strings.Contains(page, "日本語") {
		t.Error("the words are gone")
	}
	md := words(render(t, Markdown{}, m))
	if strings.Contains(md, "[x](") || strings.Contains(md, " |`") {
		t.Error("Markdown of others is live")
	}
	for _, l := range strings.Split(md, "\n") {
		if strings.HasPrefix(l, "|") && len(regexp.MustCompile(`(^|[^\\])\|`).FindAllString(l, -1)) > 12 {
			t.Errorf("a cell broke its row: %s", l)
		}
	}
}

// The page of 10,000 requests, with 1.27 million gaps, stays below 1 MB.
func TestSizeOfManyRequests(t *testing.T) {
	m := scenes()["many"].model()
	out := render(t, HTML{}, m)
	if len(out) > 1<<20 {
		t.Errorf("%d bytes", len(out))
	}
	t.Logf("%d bytes", len(out))
	checkHTML(t, out)
}

func TestEscapeMarkdown(t *testing.T) {
	for in, want := range map[string]string{"a|b": `a\|b`, "> quote": `\> quote`, "a -> b": "a -> b", "<b>": "&lt;b>", "*x* _y_ `z`": "\\*x\\* \\_y\\_ \\`z\\`", "&amp;": "&amp;amp;"} {
		if got := escapeMarkdown(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// anyRun draws a run of any shape with records of any outcome, some of them odd.
func anyRun(t *rapid.T) (*bench.Manifest, []bench.Record) {
	g := usual(rapid.IntRange(0, 30).Draw(t, "n"))
	g.seed = rapid.Uint64Range(0, 1000).Draw(t, "seed")
	g.load = rapid.SampledFrom([]bench.Load{{Shape: bench.Poisson, Rate: 20}, {Shape: bench.Constant, Rate: 2000}, {Shape: bench.Gamma, Rate: 0.01, Burstiness: 0.2, Cap: 3},
		{Shape: bench.Closed, Concurrency: 4}, {Shape: bench.Inf}, {Shape: bench.Inf, Cap: 2}}).Draw(t, "load")
	g.slots, g.tokens = rapid.IntRange(1, 8).Draw(t, "slots"), rapid.IntRange(1, 12).Draw(t, "tokens")
	g.stream, g.events, g.hostile = rapid.Bool().Draw(t, "stream"), rapid.Bool().Draw(t, "events"), rapid.Bool().Draw(t, "hostile")
	g.targets = rapid.IntRange(1, 4).Draw(t, "targets")
	g.asked = rapid.SampledFrom([][]float64{nil, {50}, {99.9, 1}, {1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99}}).Draw(t, "percentiles")
	g.slo = rapid.SampledFrom([][]bench.Limit{nil, {{Metric: "ttft", Max: ms(100)}}, {{Metric: "tpot", Max: ms(12)}, {Metric: "itl", Max: ms(15)}, {Metric: "e2el", Max: ms(500)}}}).Draw(t, "limits")
	g.state = rapid.SampledFrom([]bench.State{bench.Complete, bench.Interrupted, bench.Stopped, bench.Running}).Draw(t, "state")
	g.warmup = rapid.IntRange(0, 3).Draw(t, "warmup")
	man, records := g.build()
	moment := func(name string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int64{0, 1, 999, 1e6, 1e9, 20e9, 4000e9}).Draw(t, name))
	}
	for i := range records {
		r := &records[i]
		switch rapid.IntRange(0, 9).Draw(t, "odd") {
		case 0:
			r.Outcome, r.Error = rapid.SampledFrom(bench.Outcomes).Draw(t, "outcome"), hostileWords
		case 1:
			r.Outcome = bench.Dropped
			r.Sent, r.First, r.Last, r.End, r.Events = opt.Of[time.Duration]{}, opt.Of[time.Duration]{}, opt.Of[time.Duration]{}, opt.Of[time.Duration]{}, nil
		case 2:
			r.Raise(bench.AllAtOnce)
		case 3:
			sent := r.Sent.Or(0)
			r.Last, r.End = opt.Some(sent+moment("last")), opt.Some(sent+moment("end"))
		case 4:
			r.OSL, r.OSLSource, r.ISL = opt.Of[int]{}, "", opt.Of[int]{}
		case 5:
			r.EventChoice, r.EventTokens = make([]int, len(r.Events)), make([]int, len(r.Events))
			for k := range r.Events {
				r.EventChoice[k], r.EventTokens[k] = k%2, k%3
			}
		case 6:
			r.Due = opt.Some(moment("due"))
		}
	}
	man.Client.Stamp = string(rapid.SampledFrom([]wire.Stamp{"", "user", "wire"}).Draw(t, "stamp"))
	return man, records
}

// Every renderer takes whatever Summarize gives, the same way twice, and keeps its own promises.
func TestAnyRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		man, records := anyRun(t)
		sum := metrics.Summarize(man, records)
		m := New(man, sum, records, "runs/"+man.Spec.Label)
		again := New(man, sum, slices.Clone(records), "runs/"+man.Spec.Label)
		for _, r := range renderers() {
			out := render(t, r, m)
			if out != render(t, r, again) {
				t.Errorf("%s differs from itself", r.Name())
			}
			switch x := r.(type) {
			case HTML:
				checkHTML(t, out)
			case Text:
				if !x.Color {
					checkText(t, out, x.Width)
				}
			}
		}
		for _, f := range slices.Concat(m.OverTime, m.Shapes, m.Limited, m.Waterfalls, m.Comparison) {
			if f.Title == "" || f.Name == "" {
				t.Errorf("a figure without a title or a name: %+v", f)
			}
			if n := len(plot.Inline(f.Plot, figureNarrow)); n > 200<<10 {
				t.Errorf("%s has %d bytes", f.Name, n)
			}
		}
	})
}
