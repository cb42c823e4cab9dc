package plot

import "slices"

// Point is one point of a series.
type Point struct{ X, Y float64 }

// Thin bounds a stream of points: of each of its columns it keeps the first, the lowest, the highest and the last point, so that
// extremes survive. At most four points a column are held, however many are added.
type Thin struct {
	from, to float64
	columns  []column
	added    int
}

type column struct {
	n                      int
	first, low, high, last kept
}

type kept struct {
	Point
	at int // the how many-th point
}

// NewThin thins points with x between from and to into so many columns; points beyond are put into the outermost ones.
func NewThin(from, to float64, columns int) *Thin {
	return &Thin{from: from, to: to, columns: make([]column, max(1, columns))}
}

// Add adds a point.
func (t *Thin) Add(x, y float64) {
	if !finite(x) || !finite(y) {
		return
	}
	i := 0
	if t.to > t.from {
		i = int(min(1, max(0, (x-t.from)/(t.to-t.from))) * float64(len(t.columns)))
	}
	c := &t.columns[min(i, len(t.columns)-1)]
	p := kept{Point{x, y}, t.added}
	t.added++
	if c.n == 0 {
		c.first, c.low, c.high = p, p, p
	}
	c.last = p
	if y < c.low.Y {
		c.low = p
	}
	if y > c.high.Y {
		c.high = p
	}
	c.n++
}

// Added is the number of points that were added.
func (t *Thin) Added() int { return t.added }

// Points returns what was kept, column by column and within one in the order in which the points were added.
func (t *Thin) Points() []Point {
	return t.collect(func(c *column) []kept { return []kept{c.first, c.low, c.high, c.last} })
}

// Extremes returns only the lowest and the highest point of each column.
func (t *Thin) Extremes() []Point {
	return t.collect(func(c *column) []kept { return []kept{c.low, c.high} })
}

func (t *Thin) collect(of func(*column) []kept) []Point {
	var out []Point
	for i := range t.columns {
		c := &t.columns[i]
		if c.n == 0 {
			continue
		}
		some := of(c)
		slices.SortFunc(some, func(a, b kept) int { return a.at - b.at })
		for k, p := range some {
			if k == 0 || p.at != some[k-1].at {
				out = append(out, p.Point)
			}
		}
	}
	return out
}
