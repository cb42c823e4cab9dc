package plot

// Percentiles compares distributions: a row each, with a bar between two percentiles, a thin line beyond it and a tick in the middle.
type Percentiles struct {
	Title string // the finding
	Alt   string
	X     Axis
	Key   string // what bar, line and tick are
	Rows  []Spread
}

// Spread is one distribution. Values that are not known are NaN and left out.
type Spread struct {
	Name     string
	Tip      string
	Line     [2]float64 // e.g. smallest value and p99
	Bar      [2]float64 // e.g. p50 and p90
	Tick     float64    // e.g. p50
	TickName string     // written beside it, e.g. "81 ms"
}

// Sizes of the rows: the name stands above its bar, so that long names (addresses) have room.
const (
	spreadHeight = 40.0
	spreadBar    = 12.0
	spreadsMost  = 64
)

func (f *Percentiles) heading() (string, string) { return f.Title, f.Alt }

func (f *Percentiles) draw(c *canvas) float64 {
	top := 4.0
	if f.Key != "" {
		c.text("", 0, 12, start, cutText(f.Key, textSize, c.width))
		top = lineSize + 8
	}
	rows := f.Rows[:min(len(f.Rows), spreadsMost)]
	lo, hi, some := 0.0, 0.0, false
	for _, r := range rows {
		for _, v := range []float64{r.Line[0], r.Line[1], r.Bar[0], r.Bar[1], r.Tick} {
			if finite(v) {
				if !some {
					lo, hi, some = v, v, true
				}
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if !some {
		c.rect("span", left, top, c.width-left-right, spreadHeight, "")
		c.text("", c.width/2, top+spreadHeight/2+4, middle, "nothing to show")
		return top + spreadHeight + 8
	}
	bottom := top + float64(len(rows))*spreadHeight
	x := newScale(f.X, lo, hi, tickCount(c.width), true).place(pad, c.width-right)
	var grid []byte
	for _, t := range x.ticks {
		grid = to(to(grid, 'M', x.at(t), top), 'L', x.at(t), bottom)
	}
	c.path("grid", grid)
	(&Chart{X: f.X}).axes(c, x, scale{a: bottom, b: top})
	for i, r := range rows {
		y := top + float64(i)*spreadHeight
		c.text("strong halo", pad, y+12, start, cutText(r.Name, textSize, c.width-2*pad))
		mid := y + 24
		c.raw("<g>")
		if r.Tip != "" {
			c.raw("<title>")
			c.escape(r.Tip)
			c.raw("</title>")
		}
		if finite(r.Line[0]) && finite(r.Line[1]) {
			c.line("thin accent", x.at(r.Line[0]), mid, x.at(r.Line[1]), mid)
		}
		if finite(r.Bar[0]) && finite(r.Bar[1]) {
			c.rect("bar tint", x.at(r.Bar[0]), mid-spreadBar/2, x.at(r.Bar[1])-x.at(r.Bar[0]), spreadBar, "")
		}
		if finite(r.Tick) {
			c.rect("bar accent", x.at(r.Tick)-1.5, mid-spreadBar/2-2, 3, spreadBar+4, r.TickName)
		}
		c.raw("</g>")
	}
	return bottom + lineSize + 6
}
