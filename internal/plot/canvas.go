package plot

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// canvas collects the elements of a figure.
type canvas struct {
	b     []byte
	width float64
}

// Anchors of a text.
const (
	start  = ""
	middle = "middle"
	end    = "end"
)

func (c *canvas) raw(s string) { c.b = append(c.b, s...) }

// num writes a number rounded to 0.1.
func (c *canvas) num(v float64) { c.b = appendNum(c.b, v) }

func appendNum(b []byte, v float64) []byte {
	tenths := math.Round(v * 10)
	if tenths == 0 || !finite(tenths) {
		return append(b, '0') // never -0
	}
	return strconv.AppendFloat(b, tenths/10, 'f', -1, 64)
}

func (c *canvas) attr(name, value string) {
	c.raw(" " + name + `="`)
	c.escape(value)
	c.raw(`"`)
}

func (c *canvas) at(name string, v float64) {
	c.raw(" " + name + `="`)
	c.num(v)
	c.raw(`"`)
}

// escape writes text of any origin: markup is escaped, and what XML does not allow is dropped.
func (c *canvas) escape(s string) {
	for _, r := range s {
		switch r {
		case '&':
			c.raw("&amp;")
		case '<':
			c.raw("&lt;")
		case '>':
			c.raw("&gt;")
		case '"':
			c.raw("&#34;")
		case '\'':
			c.raw("&#39;")
		case '\n', '\r', '\t':
			c.raw(" ")
		default:
			if r >= ' ' && (r < 0x7f || r > 0x9f) && r != 0xfffe && r != 0xffff {
				c.b = utf8.AppendRune(c.b, r)
			}
		}
	}
}

func (c *canvas) shift(y float64) {
	c.raw(`<g transform="translate(0 `)
	c.num(y)
	c.raw(`)">`)
}

func (c *canvas) text(class string, x, y float64, anchor, s string) {
	c.raw("<text")
	if class != "" {
		c.attr("class", class)
	}
	c.at("x", x)
	c.at("y", y)
	if anchor != start {
		c.attr("text-anchor", anchor)
	}
	c.raw(">")
	c.escape(s)
	c.raw("</text>")
}

// tipped ends an element, with a tooltip when there is one.
func (c *canvas) tipped(element, tip string) {
	if tip == "" {
		c.raw("/>")
		return
	}
	c.raw("><title>")
	c.escape(tip)
	c.raw("</title></" + element + ">")
}

func (c *canvas) rect(class string, x, y, w, h float64, tip string) {
	c.raw("<rect")
	c.attr("class", class)
	c.at("x", x)
	c.at("y", y)
	c.at("width", max(0, w))
	c.at("height", max(0, h))
	c.tipped("rect", tip)
}

func (c *canvas) circle(class string, x, y, r float64, tip string) {
	c.raw("<circle")
	c.attr("class", class)
	c.at("cx", x)
	c.at("cy", y)
	c.at("r", r)
	c.tipped("circle", tip)
}

func (c *canvas) path(class string, d []byte) {
	if len(d) == 0 {
		return
	}
	c.raw("<path")
	c.attr("class", class)
	c.raw(` d="`)
	c.b = append(c.b, d...)
	c.raw(`"/>`)
}

// line draws a straight line.
func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.path(class, to(to(nil, 'M', x1, y1), 'L', x2, y2))
}

// to appends a path command with a point.
func to(d []byte, command byte, x, y float64) []byte {
	d = append(d, command)
	d = appendNum(d, x)
	d = append(d, ' ')
	return appendNum(d, y)
}

// textWidth estimates the width of a text: fonts differ, so it errs on the wide side.
func textWidth(s string, size float64) float64 {
	w := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune(" .,:;'|!ijl", r):
			w += 0.31
		case strings.ContainsRune("ftrI()[]-/", r):
			w += 0.41
		case r == 'm' || r == 'w' || r == 'M' || r == 'W' || r == '%':
			w += 0.92
		case r >= 'A' && r <= 'Z':
			w += 0.7
		case r >= 0x1100:
			w += 1.1
		default:
			w += 0.6
		}
	}
	return w * size
}

// wrapText breaks a text at spaces into lines of at most so much width; a word that is longer stays whole.
func wrapText(s string, size, width float64) []string {
	var lines []string
	for _, word := range strings.Fields(s) {
		if n := len(lines); n > 0 && textWidth(lines[n-1]+" "+word, size) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// cutText shortens a text to a width, with an ellipsis.
func cutText(s string, size, width float64) string {
	s = clip(s, labelMost)
	if textWidth(s, size) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && textWidth(string(runes)+"…", size) > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// Bounds of texts, in runes: what is longer cannot be read in a figure.
const (
	labelMost = 100
	titleMost = 300
)

// clip bounds a text.
func clip(s string, most int) string {
	n := 0
	for i := range s {
		if n++; n > most {
			return s[:i] + "…"
		}
	}
	return s
}
