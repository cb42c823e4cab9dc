package plot

import (
	"math"
	"strconv"
)

// Chart is a figure with two axes.
type Chart struct {
	Title string // the finding
	Alt   string // what is shown, for those who cannot see it
	X, Y  Axis
	// Height of the plot area, in units of the view box; 0 = defaultHeight.
	Height float64
	Spans  []Span
	Series []Series // drawn in order, the last one on top
	Rules  []Rule
}

// Heights of a plot area.
const (
	defaultHeight = 140
	mostHeight    = 1000
)

// Series is one set of points or bins. Those with a name are in the legend.
type Series struct {
	Name   string
	Form   Form
	Color  Color
	Points []Point // ascending in X, but for Dots
	Low    []Point // lower edge of a Band
	Bins   []Bin   // of Bars
}

// Form is how a series is drawn.
type Form uint8

// The forms.
const (
	Line     Form = iota // straight lines between points
	Dots                 // one dot a point
	Step                 // the value holds until the next point
	StepArea             // the same, filled down to the axis
	Band                 // filled between Points and Low
	Bars                 // Bins as bars from the axis
	Marks                // a short stroke at the bottom for each point, whatever its Y
)

// Rule is a labelled line across the plot area.
type Rule struct {
	Label string
	At    float64
	Flat  bool // at a value of Y, not of X
}

// Span is a shaded stretch of the X axis.
type Span struct {
	From, To float64
	Label    string
}

// Bounds of what is drawn. Lines have at most four points a pixel column and dots two (see Thin), so that a chart of the greatest
// width has less than 10,000 points; single dots with tooltips are drawn while they are few.
const (
	tipsMost = 240 // tooltips of a series
	markSize = 7.0
)

func (f *Chart) heading() (string, string) { return f.Title, f.Alt }

func (f *Chart) draw(c *canvas) float64 {
	height := f.Height
	if !(height > 0) {
		height = defaultHeight
	}
	height = min(height, mostHeight)
	top := f.legend(c)
	for _, r := range f.Rules {
		if !r.Flat && r.Label != "" {
			top += lineSize // labels of upright rules stand above the plot area
			break
		}
	}
	bottom := top + height

	lo, hi, some := f.extent()
	if !some {
		c.rect("span", left, top, c.width-left-right, height, "")
		c.text("", (left+c.width-right)/2, (top+bottom)/2+4, middle, "nothing to show")
		return bottom + 8
	}
	x := newScale(f.X, lo.X, hi.X, tickCount(c.width-left-right), f.hasBars() && f.X.From == f.X.To).place(left, c.width-right)
	y := newScale(f.Y, lo.Y, hi.Y, max(2, int(height/32)), true).place(bottom, top)

	for _, s := range f.Spans {
		if from, to := x.at(s.From), x.at(s.To); to > from {
			c.rect("span", from, top, to-from, height, s.Label)
		}
	}
	f.axes(c, x, y)
	for i := range f.Series {
		f.Series[i].draw(c, f, x, y)
	}
	f.rules(c, x, y)
	below := lineSize + 4
	if f.X.Label != "" {
		c.text("", c.width-right, bottom+below+14, end, cutText(f.X.words(), textSize, c.width-2*pad))
		below += lineSize + 3
	}
	return bottom + below + 2
}

// tickCount is how many ticks an X axis of a width may have: few on a wide one, which keeps it calm, and enough on a narrow one.
func tickCount(width float64) int { return max(2, min(12, int(width/46))) }

// legend writes the name of the Y axis and the series' names, and returns the height that they take.
func (f *Chart) legend(c *canvas) float64 {
	words := cutText(f.Y.words(), textSize, c.width/2)
	c.text("", 0, 12, start, words)
	at, row := textWidth(words, textSize)+18, 0.0
	for _, s := range f.Series {
		if s.Name == "" {
			continue
		}
		name := cutText(s.Name, textSize, c.width-2*pad-20)
		w := 16 + textWidth(name, textSize) + 14
		if at+w > c.width-pad {
			at, row = 0, row+lineSize
		}
		s.swatch(c, at, row+8)
		c.text("strong", at+16, row+12, start, name)
		at += w
	}
	return row + lineSize + 8
}

// swatch shows how a series looks.
func (s *Series) swatch(c *canvas, x, y float64) {
	k := s.Color.class()
	switch s.Form {
	case Dots:
		c.circle("dot "+k, x+6, y, 3, "")
	case Band, StepArea:
		c.rect("area "+k, x, y-5, 12, 10, "")
		if s.Form == StepArea {
			c.line("line "+k, x, y-5, x+12, y-5)
		}
	case Bars:
		c.rect("bar "+k, x+1, y-5, 10, 10, "")
	case Marks:
		c.line("line "+k, x+6, y-4, x+6, y+4)
	default:
		c.line("line "+k, x, y, x+12, y)
	}
}

// extent returns the corners of the data and of the flat rules.
func (f *Chart) extent() (lo, hi Point, some bool) {
	lo, hi = Point{math.Inf(1), math.Inf(1)}, Point{math.Inf(-1), math.Inf(-1)}
	add := func(x, y float64) {
		if finite(x) && finite(y) {
			lo, hi = Point{min(lo.X, x), min(lo.Y, y)}, Point{max(hi.X, x), max(hi.Y, y)}
			some = true
		}
	}
	marks := false
	for i := range f.Series {
		s := &f.Series[i]
		switch s.Form {
		case Bars:
			for _, b := range s.Bins {
				add(b.From, b.Y)
				add(b.To, 0)
			}
		case Marks:
			marks = marks || len(s.Points) > 0
		default:
			for _, ps := range [][]Point{s.Points, s.Low} {
				for _, p := range ps {
					add(p.X, p.Y)
				}
			}
		}
	}
	if marks && !some && f.X.From < f.X.To { // marks have a place on a given axis alone
		add(f.X.From, 0)
		add(f.X.To, 0)
	}
	for _, r := range f.Rules {
		if some && finite(r.At) {
			if r.Flat {
				add(lo.X, r.At)
			} else {
				add(r.At, lo.Y)
			}
		}
	}
	return lo, hi, some
}

func (f *Chart) hasBars() bool {
	for i := range f.Series {
		if f.Series[i].Form == Bars {
			return true
		}
	}
	return false
}

// axes draws the grid and the ticks.
func (f *Chart) axes(c *canvas, x, y scale) {
	var grid []byte
	for _, t := range y.ticks {
		at := y.at(t)
		if at < y.a-0.5 {
			grid = to(to(grid, 'M', x.a, at), 'L', x.b, at)
		}
		c.text("", left-8, at+4, end, y.label(t))
	}
	c.path("grid", grid)
	c.line("base", x.a, y.a, x.b, y.a)
	var stubs []byte
	reach := math.Inf(-1)
	for i, t := range x.ticks {
		at := x.at(t)
		stubs = to(to(stubs, 'M', at, y.a), 'L', at, y.a+4)
		label := x.label(t)
		if f.X.Label == "" && f.X.Unit != "" && i == len(x.ticks)-1 {
			label += " " + f.X.Unit
		}
		w := textWidth(label, textSize)
		mid := min(at, c.width-w/2) // the last label stays inside of the figure
		if mid-w/2 < reach+6 {
			continue
		}
		reach = mid + w/2
		c.text("", mid, y.a+lineSize+2, middle, label)
	}
	c.path("base", stubs)
}

// rules draws the rules with their labels.
func (f *Chart) rules(c *canvas, x, y scale) {
	reach := math.Inf(-1)
	for _, r := range f.Rules {
		switch {
		case !finite(r.At):
		case r.Flat && y.within(r.At):
			at := y.at(r.At)
			c.line("rule", x.a, at, x.b, at)
			above := at - 5
			if above < y.b+8 {
				above = at + 14 // no room above
			}
			c.text("strong halo", x.b-4, above, end, cutText(r.Label, textSize, x.b-x.a))
		case !r.Flat && x.within(r.At):
			at := x.at(r.At)
			c.line("rule", at, y.b, at, y.a)
			label := cutText(r.Label, textSize, x.b-x.a)
			w := textWidth(label, textSize)
			mid := min(max(at, x.a+w/2), c.width-w/2)
			if mid-w/2 < reach+4 {
				continue // the rule is there; its label would cover another
			}
			reach = mid + w/2
			c.text("strong", mid, y.b-5, middle, label)
		}
	}
}

// draw draws a series into the plot area.
func (s *Series) draw(c *canvas, f *Chart, x, y scale) {
	k := s.Color.class()
	columns := max(1, int(x.b-x.a))
	switch s.Form {
	case Bars:
		for _, b := range s.Bins {
			if b.Y > 0 && finite(b.Y) && finite(b.From) && finite(b.To) {
				from, to, top := x.at(b.From), x.at(b.To), y.at(b.Y)
				gap := min(1, (to-from)/4)
				tip := x.value(b.From) + " .. " + x.value(b.To) + spaced(f.X.Unit) + ": " + y.value(b.Y) + spaced(f.Y.Unit)
				c.rect("bar "+k, from+gap/2, min(top, y.a-1), to-from-gap, max(1, y.a-top), tip)
			}
		}
		return
	case Band:
		s.band(c, x, y, columns)
		return
	}
	thin := NewThin(x.from, x.to, columns)
	for _, p := range s.Points {
		thin.Add(p.X, p.Y)
	}
	points := thin.Points()
	var d, area []byte
	switch s.Form {
	case Dots:
		if thin.Added() <= tipsMost {
			for _, p := range points {
				c.circle("dot "+k, x.at(p.X), y.at(p.Y), 2.5, f.tip(s, p, x, y))
			}
			return
		}
		for _, p := range thin.Extremes() {
			d = append(to(d, 'M', x.at(p.X), y.at(p.Y)), "h0"...)
		}
		c.path("dots "+k, d)
		return
	case Marks:
		last := math.Inf(-1)
		for _, p := range points {
			if at := x.at(p.X); at-last >= 1 {
				d = append(to(d, 'M', at, y.a), "v-"...)
				d = appendNum(d, markSize)
				last = at
			}
		}
		c.path("line "+k, d)
		return
	case Step, StepArea:
		for i, p := range points {
			if i == 0 {
				d = to(d, 'M', x.at(p.X), y.at(p.Y))
				continue
			}
			d = append(d, 'H')
			d = appendNum(d, x.at(p.X))
			d = append(d, 'V')
			d = appendNum(d, y.at(p.Y))
		}
		if n := len(points); s.Form == StepArea && n > 0 {
			area = to(area, 'M', x.at(points[0].X), y.a)
			area = append(append(area, 'L'), d[1:]...)
			area = append(to(area, 'L', x.at(points[n-1].X), y.a), 'Z')
		}
	default:
		for i, p := range points {
			command := byte('L')
			if i == 0 {
				command = 'M'
			}
			d = to(d, command, x.at(p.X), y.at(p.Y))
		}
		if len(points) == 1 {
			c.circle("dot "+k, x.at(points[0].X), y.at(points[0].Y), 3, "")
		}
	}
	c.path("area "+k, area)
	c.path("line "+k, d)
	if len(points) <= tipsMost {
		for _, p := range points {
			c.circle("hit", x.at(p.X), y.at(p.Y), 7, f.tip(s, p, x, y))
		}
	}
}

// band fills the space between two edges.
func (s *Series) band(c *canvas, x, y scale, columns int) {
	var d []byte
	edge := func(ps []Point, backward bool) {
		thin := NewThin(x.from, x.to, columns)
		for _, p := range ps {
			thin.Add(p.X, p.Y)
		}
		points := thin.Points()
		for i := range points {
			p := points[i]
			if backward {
				p = points[len(points)-1-i]
			}
			command := byte('L')
			if len(d) == 0 {
				command = 'M'
			}
			d = to(d, command, x.at(p.X), y.at(p.Y))
		}
	}
	edge(s.Points, false)
	edge(s.Low, true)
	if len(d) > 0 {
		c.path("area "+s.Color.class(), append(d, 'Z'))
	}
}

// tip is the tooltip of a point.
func (f *Chart) tip(s *Series, p Point, x, y scale) string {
	words := x.value(p.X) + spaced(f.X.Unit) + ": " + y.value(p.Y) + spaced(f.Y.Unit)
	if s.Name != "" {
		words = s.Name + ", " + words
	}
	return words
}

// value writes a value of an axis with three significant digits, or as many as its integer part has.
func (s scale) value(v float64) string {
	a := math.Abs(v)
	if a == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(a)+grain))
	return Thousands(strconv.FormatFloat(v, 'f', min(9, max(0, digits)), 64))
}

func spaced(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}
