// Package tty knows about terminals: is there one, how wide is it, and how to redraw a few lines in place.
package tty

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Widths between which a screen is laid out.
const (
	Narrow = 80
	Wide   = 100
)

// Is tells whether a stream is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width returns how many columns to use on a stream: those of a terminal, between Narrow and Wide; Wide elsewhere.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return Wide
	}
	n, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return Wide
	}
	return min(Wide, max(Narrow, n))
}

// Color tells whether colours may be used on a stream: on a terminal, unless NO_COLOR or a dumb terminal says otherwise.
func Color(w io.Writer, getenv func(string) string) bool {
	return Is(w) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// Block is a few lines that are redrawn in place.
type Block struct {
	w     io.Writer
	lines int
}

// NewBlock returns a block at the cursor.
func NewBlock(w io.Writer) *Block { return &Block{w: w} }

// Draw replaces the lines that were drawn before.
func (b *Block) Draw(lines []string) {
	var out strings.Builder
	if b.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", b.lines)
	}
	for _, l := range lines {
		out.WriteString("\r\x1b[2K" + l + "\n")
	}
	out.WriteString("\x1b[0J")
	b.lines = len(lines)
	io.WriteString(b.w, out.String())
}

// Clear removes the lines.
func (b *Block) Clear() {
	if b.lines > 0 {
		fmt.Fprintf(b.w, "\x1b[%dA\r\x1b[0J", b.lines)
		b.lines = 0
	}
}

var bars = []rune("▁▂▃▄▅▆▇█")

// Spark draws values as a row of bars between the smallest and the largest. Gaps are NaN.
func Spark(values []float64) string {
	lo, hi := 0.0, 0.0
	first := true
	for _, v := range values {
		if v != v {
			continue
		}
		if first || v < lo {
			lo = v
		}
		if first || v > hi {
			hi = v
		}
		first = false
	}
	var out strings.Builder
	for _, v := range values {
		switch {
		case v != v:
			out.WriteByte(' ')
		case hi == lo:
			out.WriteRune(bars[1])
		default:
			out.WriteRune(bars[int((v-lo)/(hi-lo)*float64(len(bars)-1)+0.5)])
		}
	}
	return out.String()
}

// Bar draws how far something is, in so many columns.
func Bar(share float64, width int) string {
	full := int(min(1, max(0, share))*float64(width) + 0.5)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
