package plot

// Timeline shows requests, or anything else with a begin and an end, as rows of stretches below each other.
type Timeline struct {
	Title string // the finding
	Alt   string
	X     Axis
	Keys  []Key // what the colours mean
	Rows  []Row
}

// Key explains a colour.
type Key struct {
	Name  string
	Color Color
}

// Row is one line of a timeline.
type Row struct {
	Name      string
	Tip       string
	Note      string // a word behind the last stretch
	Stretches []Stretch
}

// Stretch is one coloured part of a row.
type Stretch struct {
	From, To float64
	Color    Color
}

// Bounds and sizes of a timeline.
const (
	rowsMost  = 200 // more cannot be read, and make the page heavy
	rowHeight = 12.0
	barHeight = 8.0
)

func (f *Timeline) heading() (string, string) { return f.Title, f.Alt }

func (f *Timeline) draw(c *canvas) float64 {
	top := keys(c, f.Keys)
	rows := f.Rows[:min(len(f.Rows), rowsMost)]
	lo, hi, some := 0.0, 0.0, false
	for _, r := range rows {
		for _, s := range r.Stretches {
			for _, v := range []float64{s.From, s.To} {
				if !finite(v) {
					continue
				}
				if !some {
					lo, hi, some = v, v, true
				}
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	bottom := top + float64(len(rows))*rowHeight + 4
	if !some {
		c.rect("span", left, top, c.width-left-right, rowHeight*3, "")
		c.text("", (left+c.width-right)/2, top+rowHeight*1.5+4, middle, "nothing to show")
		return top + rowHeight*3 + 8
	}
	x := newScale(f.X, lo, hi, tickCount(c.width-left-right), false).place(left, c.width-right)
	chart := Chart{X: f.X}
	var grid []byte
	for _, t := range x.ticks {
		grid = to(to(grid, 'M', x.at(t), top), 'L', x.at(t), bottom)
	}
	c.path("grid", grid)
	chart.axes(c, x, scale{a: bottom, b: top})
	every := 1
	for len(rows)/every > 12 && every < 5 {
		every = 5 // a name every five rows keeps the figure calm
	}
	for i, r := range rows {
		y := top + float64(i)*rowHeight
		if i%every == 0 {
			c.text("", left-8, y+barHeight+2, end, cutText(r.Name, textSize, left-10))
		}
		c.raw("<g>")
		if r.Tip != "" {
			c.raw("<title>")
			c.escape(r.Tip)
			c.raw("</title>")
		}
		reach := x.a
		for _, s := range r.Stretches {
			if !finite(s.From) || !finite(s.To) || s.To < s.From {
				continue
			}
			from, to := x.at(s.From), x.at(s.To)
			c.rect("bar "+s.Color.class(), from, y+2, max(0.5, to-from), barHeight, "")
			reach = max(reach, to)
		}
		if r.Note != "" {
			note := cutText(r.Note, textSize, c.width/3)
			if w := textWidth(note, textSize); reach+6+w <= c.width {
				c.text("strong halo", reach+6, y+barHeight+2, start, note)
			} else {
				c.text("strong halo", c.width-2, y+barHeight+2, end, note)
			}
		}
		c.raw("</g>")
	}
	below := lineSize + 4
	if f.X.Label != "" {
		c.text("", c.width-right, bottom+below+14, end, cutText(f.X.words(), textSize, c.width-2*pad))
		below += lineSize + 3
	}
	return bottom + below + 2
}

// keys writes what colours mean, and returns the height that it takes.
func keys(c *canvas, ks []Key) float64 {
	if len(ks) == 0 {
		return 4
	}
	at, row := 0.0, 0.0
	for _, k := range ks {
		name := cutText(k.Name, textSize, c.width-2*pad-20)
		w := 16 + textWidth(name, textSize) + 14
		if at > 0 && at+w > c.width-pad {
			at, row = 0, row+lineSize
		}
		c.rect("bar "+k.Color.class(), at+1, row+3, 10, 10, "")
		c.text("strong", at+16, row+12, start, name)
		at += w
	}
	return row + lineSize + 8
}
