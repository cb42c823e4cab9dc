// Package plot draws the figures of reports as SVG: charts with two axes, percentile bars and timelines.
//
// A figure is a value. The same figure gives the same bytes, without scripts, outside resources or ids; colours are CSS variables
// that follow the reader's light or dark scheme. Titles state a finding and come from the caller: plot draws and never judges.
// Numbers that are NaN, infinite or beyond 10^15 are left out.
package plot

import (
	_ "embed"
	"math"
)

// Style is the stylesheet of all figures. A page carries it once; a file of its own carries it itself.
//
//go:embed style.css
var Style string

// Figure is a Chart, a Timeline or Bars.
type Figure interface {
	// heading returns the finding, and what the figure shows in words.
	heading() (title, alt string)
	// draw draws the figure from the canvas' top; it returns the height it took.
	draw(c *canvas) float64
}

// Bounds of the width of a figure, in units of its view box (a CSS pixel at its natural size).
const (
	leastWidth = 200
	mostWidth  = 2000
)

// Inline returns a figure as an element of a page that carries Style. The page shows the title, which may wrap there.
// Width is that of the view box: the element scales to the width it is given.
func Inline(f Figure, width float64) string { return render(f, width, false) }

// File returns a figure as an SVG file of its own, with its title and its style.
func File(f Figure, width float64) string { return render(f, width, true) }

func render(f Figure, width float64, alone bool) string {
	if !(width >= leastWidth) {
		width = leastWidth
	}
	c := &canvas{width: math.Round(min(width, mostWidth))}
	title, alt := f.heading()
	title, alt = clip(title, titleMost), clip(alt, titleMost)
	top := 0.0
	if alone {
		for _, line := range wrapText(title, titleSize, c.width-2*pad) {
			top += titleSize * 1.3
			c.text("title", 0, top, start, line)
		}
		top += 10
		c.shift(top)
	}
	height := f.draw(c)
	if alone {
		c.raw("</g>")
	}

	var out canvas
	out.raw(`<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" viewBox="0 0 `)
	out.num(c.width)
	out.raw(" ")
	out.num(math.Ceil(top + height))
	out.raw(`"`)
	if alone {
		out.raw(` width="`)
		out.num(c.width)
		out.raw(`"`)
	}
	label := title
	if alt != "" {
		label += ". " + alt
	}
	out.attr("aria-label", label)
	out.raw(">")
	if alone {
		out.raw("<style>")
		out.raw(Style)
		out.raw("</style>")
	}
	out.b = append(out.b, c.b...)
	out.raw("</svg>")
	if alone {
		out.raw("\n")
	}
	return string(out.b)
}

// Color is one of the colours of the stylesheet.
type Color uint8

// The colours.
const (
	Accent Color = iota // the subject of the figure
	Tint                // a weaker accent
	Warm                // a second subject
	Quiet               // context
	Bad                 // failures; never alone, always with a word
)

func (k Color) class() string {
	switch k {
	case Tint:
		return "tint"
	case Warm:
		return "warm"
	case Quiet:
		return "quiet"
	case Bad:
		return "bad"
	}
	return "accent"
}

// Sizes of the layout, in units of the view box.
const (
	pad       = 4.0  // at the edges
	left      = 52.0 // of all charts, so that figures below each other share their axis
	right     = 14.0
	lineSize  = 16.0 // of one line of labels
	textSize  = 12.0
	titleSize = 16.0
)

// largest bounds values: 10^15 s are 30 million years.
const largest = 1e15

// finite tells whether a value can be drawn.
func finite(v float64) bool { return math.Abs(v) <= largest } // false for NaN
