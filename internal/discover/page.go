package discover

import (
	"strconv"
	"strings"
)

// page is the text of a Prometheus page.
type page string

// has tells whether there is a series whose name begins so.
func (p page) has(prefix string) bool {
	return strings.HasPrefix(string(p), prefix) || strings.Contains(string(p), "\n"+prefix)
}

// series returns the labels of the first series of a name, with its value under the empty name; nil without one.
func (p page) series(name string) doc {
	for line := range strings.Lines(string(p)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		d := doc{}
		if rest[0] == '{' {
			if rest, ok = labels(rest[1:], d); !ok {
				return nil
			}
		}
		if f := strings.Fields(rest); len(f) > 0 {
			if v, err := strconv.ParseFloat(f[0], 64); err == nil {
				d[""] = v
			}
		}
		return d
	}
	return nil
}

// labels reads name="value" pairs up to the closing brace, and returns what is behind it.
func labels(s string, into doc) (rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, ", ")
		if rest, ok := strings.CutPrefix(s, "}"); ok {
			return rest, true
		}
		name, after, ok := strings.Cut(s, `="`)
		if !ok {
			return "", false
		}
		var value strings.Builder
		end := -1
		for i := 0; i < len(after) && end < 0; i++ {
			switch c := after[i]; {
			case c == '"':
				end = i
			case c == '\\' && i+1 < len(after):
				if i++; after[i] == 'n' {
					value.WriteByte('\n')
				} else {
					value.WriteByte(after[i])
				}
			default:
				value.WriteByte(c)
			}
		}
		if end < 0 {
			return "", false
		}
		into[name] = value.String()
		s = after[end+1:]
	}
}
