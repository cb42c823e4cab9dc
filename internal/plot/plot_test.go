package plot

import (
	"encoding/xml"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// wave is a series that goes up and down.
func wave(n int) (out []Point) {
	for i := range n {
		out = append(out, Point{float64(i) / 10, 50 + 30*math.Sin(float64(i)/5)})
	}
	return out
}

func figures() map[string]Figure {
	return map[string]Figure{
		"chart": &Chart{Title: "Everything at once", Alt: "all forms of a series", X: Axis{Label: "time", Unit: "s", From: 0, To: 6}, Y: Axis{Label: "TTFT", Unit: "ms"},
			Spans: []Span{{5, 6, "after the plateau"}},
			Series: []Series{{Name: "p10 to p90", Form: Band, Points: []Point{{0, 80}, {3, 90}, {6, 85}}, Low: []Point{{0, 20}, {3, 25}, {6, 20}}},
				{Name: "each request", Form: Dots, Color: Tint, Points: wave(60)}, {Name: "median", Form: Line, Points: wave(60)},
				{Name: "level", Form: Step, Color: Warm, Points: []Point{{0, 10}, {2, 30}, {4, 10}}}, {Name: "area", Form: StepArea, Color: Quiet, Points: []Point{{0, 10}, {5, 15}, {6, 15}}},
				{Name: "failed", Form: Marks, Color: Bad, Points: []Point{{1, 0}, {1.5, 0}}}},
			Rules: []Rule{{"limit 95 ms", 95, true}, {"p50", 3, false}}},
		"histogram": &Chart{Title: "Half within 3 ms", X: Axis{Unit: "ms"}, Y: Axis{Label: "requests", Whole: true}, Series: []Series{{Form: Bars, Bins: []Bin{{1, 2, 3}, {2, 3, 1}, {3, 4, 0}, {4, 5, 1}}}}},
		"log":       &Chart{Title: "Four decades", X: Axis{Unit: "s"}, Y: Axis{Unit: "ms", Log: true}, Series: []Series{{Form: Line, Points: []Point{{0, 1}, {1, 200}, {2, 9000}}}}},
		"timeline": &Timeline{Title: "Decoding takes 80 % of the time", X: Axis{Label: "time", Unit: "s"}, Keys: []Key{{"first", Accent}, {"decode", Tint}},
			Rows: []Row{{Name: "#1", Tip: "#1 ok", Stretches: []Stretch{{0, 0.2, Accent}, {0.2, 1.7, Tint}}}, {Name: "#2", Note: "timeout", Stretches: []Stretch{{0.1, 3, Bad}}}}},
		"percentiles": &Percentiles{Title: "b is 1.8 x a", X: Axis{Unit: "ms"}, Key: "tick: p50", Rows: []Spread{{Name: "a", Tip: "a: 70 ms", Line: [2]float64{60, 160}, Bar: [2]float64{70, 100}, Tick: 70},
			{Name: "b", Line: [2]float64{90, math.NaN()}, Bar: [2]float64{126, 150}, Tick: 126}}},
		"empty":          &Chart{Title: "Nothing"},
		"empty timeline": &Timeline{},
		"empty rows":     &Percentiles{},
	}
}

func TestGolden(t *testing.T) {
	for name, f := range figures() {
		path := filepath.Join("testdata", strings.ReplaceAll(name, " ", "-")+".svg")
		got := File(f, 640)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s differs (-update rewrites it): %.2000s", name, d)
		}
	}
}

// check holds what is true of every figure: well-formed, without scripts, ids or references, all numbers finite, rounded and within.
func check(t rapid.TB, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in %.300s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 && e.Name.Local != "svg" {
				t.Errorf("the root is %s", e.Name.Local)
			}
			switch e.Name.Local {
			case "svg", "style", "g", "rect", "circle", "path", "text", "title":
			default:
				t.Errorf("an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				switch n := a.Name.Local; {
				case n == "id" || n == "href" || n == "style" || strings.HasPrefix(n, "on"):
					t.Errorf("an attribute %s", n)
				case n == "x" || n == "y" || n == "width" || n == "height" || n == "cx" || n == "cy" || n == "r":
					v, err := strconv.ParseFloat(a.Value, 64)
					if err != nil || !(math.Abs(v) <= 2*mostWidth) || strings.TrimLeft(a.Value, "-") == "0" && a.Value != "0" {
						t.Errorf("%s=%q", n, a.Value)
					}
					if _, decimals, _ := strings.Cut(a.Value, "."); len(decimals) > 1 {
						t.Errorf("%s=%q is not rounded", n, a.Value)
					}
				}
			}
		case xml.EndElement:
			depth--
		}
	}
	if s := regexp.MustCompile(`NaN|Inf|e\+|<script|url\(|@import|https?://[^w]`).FindString(svg); s != "" {
		t.Errorf("%q in %.300s", s, svg)
	}
}

func TestFiguresAreSound(t *testing.T) {
	for name, f := range figures() {
		for _, width := range []float64{-1, 0, 200, 360, 1000, 5000, math.NaN(), math.Inf(1)} {
			inline, file := Inline(f, width), File(f, width)
			check(t, inline)
			check(t, file)
			if inline != Inline(figures()[name], width) {
				t.Errorf("%s differs from itself", name)
			}
			if strings.Contains(inline, "<style") || !strings.Contains(file, Style) {
				t.Errorf("%s: the style is in the wrong one", name)
			}
		}
	}
}

func TestHead(t *testing.T) {
	svg := Inline(&Chart{Title: `a "finding"`, Alt: "what <is> shown"}, 480)
	if want := `<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 480 `; !strings.HasPrefix(svg, want) {
		t.Errorf("%.200s", svg)
	}
	if want := `aria-label="a &#34;finding&#34;. what &lt;is&gt; shown"`; !strings.Contains(svg, want) {
		t.Errorf("%.300s", svg)
	}
}

const hostile = "</text><script>alert(1)</script>\x00\x1b[31m\u0085\ufffe\xff\"' onload=\"x\" &amp;"

// Texts of any origin are shown and do nothing.
func TestHostileTexts(t *testing.T) {
	for _, f := range []Figure{
		&Chart{Title: hostile, Alt: hostile, X: Axis{Label: hostile, Unit: hostile}, Y: Axis{Label: hostile, Unit: hostile}, Spans: []Span{{0, 1, hostile}},
			Series: []Series{{Name: hostile, Form: Line, Points: wave(3)}, {Name: hostile, Form: Bars, Bins: []Bin{{0, 1, 1}}}}, Rules: []Rule{{hostile, 0.1, false}, {hostile, 50, true}}},
		&Timeline{Title: hostile, X: Axis{Unit: hostile}, Keys: []Key{{hostile, Bad}}, Rows: []Row{{hostile, hostile, hostile, []Stretch{{0, 1, Bad}}}}},
		&Percentiles{Title: hostile, Key: hostile, Rows: []Spread{{Name: hostile, Tip: hostile, Tick: 1, TickName: hostile}}},
	} {
		for _, svg := range []string{Inline(f, 900), File(f, 300)} {
			check(t, svg)
			if strings.Contains(svg, "onload=\"") || strings.ContainsAny(svg, "\x00\x1b\u0085\ufffe") {
				t.Errorf("%.400s", svg)
			}
		}
	}
}

// A million points give a figure that is bounded by its width, and keep their extremes.
func TestBound(t *testing.T) {
	points := make([]Point, 1_000_000)
	for i := range points {
		points[i] = Point{float64(i), 10 + float64(i%97)/97}
	}
	points[123_456].Y = 99
	for _, form := range []Form{Line, Dots, Step, StepArea, Marks} {
		svg := Inline(&Chart{Series: []Series{{Form: form, Points: points}}, X: Axis{From: 0, To: 1e6}}, 1000)
		check(t, svg)
		if len(svg) > 100_000 {
			t.Errorf("form %d: %d bytes", form, len(svg))
		}
		if form != Marks && !strings.Contains(svg, ">100</text>") {
			t.Errorf("form %d: the axis does not reach the extreme", form)
		}
	}
	rows := make([]Row, 100_000)
	for i := range rows {
		rows[i] = Row{Name: "x", Stretches: []Stretch{{0, 1, Accent}}}
	}
	if svg := Inline(&Timeline{Rows: rows}, 1000); len(svg) > 50_000 {
		t.Errorf("timeline: %d bytes", len(svg))
	}
	if svg := Inline(&Chart{Title: strings.Repeat("long ", 1_000_000)}, 1000); len(svg) > 5_000 {
		t.Errorf("title: %d bytes", len(svg))
	}
}

// A figure of any numbers is sound.
func TestAnyChart(t *testing.T) {
	number := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 1000), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e15, 1e16, -1e15, 1e-300}))
	point := rapid.Custom(func(t *rapid.T) Point { return Point{number.Draw(t, "x"), number.Draw(t, "y")} })
	axis := rapid.Custom(func(t *rapid.T) Axis {
		a := Axis{Unit: "ms", Log: rapid.Bool().Draw(t, "log"), Whole: rapid.Bool().Draw(t, "whole")}
		if rapid.Bool().Draw(t, "ends") {
			a.From, a.To = number.Draw(t, "from"), number.Draw(t, "to")
		}
		return a
	})
	rapid.Check(t, func(t *rapid.T) {
		c := &Chart{X: axis.Draw(t, "x"), Y: axis.Draw(t, "y"), Height: number.Draw(t, "height") / 1e10}
		for range rapid.IntRange(0, 3).Draw(t, "series") {
			s := Series{Name: "s", Form: Form(rapid.IntRange(0, int(Marks)).Draw(t, "form")), Points: rapid.SliceOfN(point, 0, 20).Draw(t, "points"), Low: rapid.SliceOfN(point, 0, 5).Draw(t, "low")}
			for range rapid.IntRange(0, 4).Draw(t, "bins") {
				s.Bins = append(s.Bins, Bin{number.Draw(t, "from"), number.Draw(t, "to"), number.Draw(t, "n")})
			}
			c.Series = append(c.Series, s)
		}
		c.Rules = append(c.Rules, Rule{"r", number.Draw(t, "rule"), rapid.Bool().Draw(t, "flat")})
		c.Spans = append(c.Spans, Span{number.Draw(t, "from"), number.Draw(t, "to"), "s"})
		check(t, Inline(c, 500))
		tl := &Timeline{X: c.X, Rows: []Row{{Name: "a", Stretches: []Stretch{{number.Draw(t, "a"), number.Draw(t, "b"), Tint}, {number.Draw(t, "c"), number.Draw(t, "d"), Bad}}}}}
		check(t, Inline(tl, 500))
		p := &Percentiles{X: c.X, Rows: []Spread{{Name: "a", Line: [2]float64{number.Draw(t, "e"), number.Draw(t, "f")}, Bar: [2]float64{number.Draw(t, "g"), number.Draw(t, "h")}, Tick: number.Draw(t, "i")}}}
		check(t, Inline(p, 500))
	})
}

func TestWrapText(t *testing.T) {
	lines := wrapText("one two three four", 10, 50)
	for _, l := range lines {
		if textWidth(l, 10) > 50 && strings.Contains(l, " ") {
			t.Errorf("%q is wider than asked", l)
		}
	}
	if got := strings.Join(lines, " "); got != "one two three four" || len(lines) < 2 {
		t.Errorf("%q", lines)
	}
	if got := cutText("a rather long name", 10, 50); textWidth(got, 10) > 50 || !strings.HasSuffix(got, "…") || !strings.HasPrefix("a rather long name", strings.TrimSuffix(got, "…")) {
		t.Errorf("%q", got)
	}
}
