package discover

import (
	"math"
	"strconv"
	"strings"

	"github.com/prony-bench/prony/internal/opt"
)

// doc is a JSON object, or the labels of a metric, as a server tells it. Its getters give nothing where there is no such field, or one
// of another kind: no server promises these.
type doc map[string]any

// at returns what stands at the end of a path of names.
func (d doc) at(path ...string) any {
	var v any = map[string]any(d)
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// text returns a text. What servers write for nothing is none.
func (d doc) text(path ...string) string {
	s, _ := d.at(path...).(string)
	switch s = strings.TrimSpace(s); strings.ToLower(s) {
	case "none", "null", "auto", "unknown", "n/a":
		return ""
	}
	return s
}

// number returns a whole number above 0, also one that is written as a text. Servers write 0 or -1 where there is no limit.
func (d doc) number(path ...string) (out opt.Of[int]) {
	var f float64
	switch v := d.at(path...).(type) {
	case float64:
		f = v
	case string:
		f, _ = strconv.ParseFloat(v, 64)
	}
	if f >= 1 && f < 1<<53 && f == math.Trunc(f) {
		return opt.Some(int(f))
	}
	return out
}

// yes returns whether something is on.
func (d doc) yes(path ...string) (out opt.Of[bool]) {
	switch v := d.at(path...).(type) {
	case bool:
		return opt.Some(v)
	case string:
		switch strings.ToLower(v) {
		case "true", "1":
			return opt.Some(true)
		case "false", "0":
			return opt.Some(false)
		}
	}
	return out
}

// list returns the objects of a list.
func (d doc) list(path ...string) []doc { return docs(d.at(path...)) }

func docs(v any) (out []doc) {
	list, _ := v.([]any)
	for _, x := range list {
		if m, ok := x.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// fill sets a figure that is not known yet.
func fill[T any](to *opt.Of[T], values ...opt.Of[T]) {
	for _, v := range values {
		if !to.Defined() {
			*to = v
		}
	}
}

// product multiplies two figures, of which both must be known.
func product(a, b opt.Of[int]) (out opt.Of[int]) {
	x, ok := a.Get()
	y, ok2 := b.Get()
	if ok && ok2 && x <= math.MaxInt/y {
		return opt.Some(x * y)
	}
	return out
}
