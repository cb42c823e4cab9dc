package workload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// eachField calls f for each field of a JSON object with the bytes of its key and of its value, both as they are written. It looks no
// deeper than it must to find their ends: traces have millions of rows.
func eachField(line []byte, f func(key, value []byte) error) error {
	s := scan{b: line}
	if s.blank() != '{' {
		return errors.New("the line is no JSON object")
	}
	s.i++
	for n := 0; ; n++ {
		if s.blank() == '}' && n == 0 {
			s.i++
			break
		}
		key, ok := s.text()
		if !ok || s.blank() != ':' {
			return fmt.Errorf("the line is no JSON (byte %d)", s.i+1)
		}
		s.i++
		s.blank()
		value, ok := s.value()
		if !ok {
			return fmt.Errorf("the line is no JSON (byte %d)", s.i+1)
		}
		if err := f(key, value); err != nil {
			return err
		}
		end := s.blank()
		s.i++
		if end == '}' {
			break
		}
		if end != ',' {
			return fmt.Errorf("the line is no JSON (byte %d)", s.i)
		}
	}
	if s.blank(); s.i < len(line) {
		return errors.New("there is more than one JSON value")
	}
	return nil
}

// scan is a place in a JSON text.
type scan struct {
	b []byte
	i int
}

// blank goes to the next byte that is not blank and returns it, or 0 at the end.
func (s *scan) blank() byte {
	for ; s.i < len(s.b); s.i++ {
		if c := s.b[s.i]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// text reads a string and returns what is between its quotes.
func (s *scan) text() ([]byte, bool) {
	if s.blank() != '"' {
		return nil, false
	}
	s.i++
	for begin := s.i; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return s.b[begin : s.i-1], true
		}
	}
	return nil, false
}

// value reads a value of any kind.
func (s *scan) value() ([]byte, bool) {
	begin, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if _, ok := s.text(); !ok {
				return nil, false
			}
			if depth == 0 {
				return s.b[begin:s.i], true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.b[begin:s.i], s.i > begin
			}
			if depth--; depth == 0 {
				s.i++
				return s.b[begin:s.i], true
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.b[begin:s.i], s.i > begin
			}
		}
		s.i++
	}
	return nil, false
}

// whole reads a number of tokens or the like: a whole number of at least 0.
func whole(name string, v []byte) (int, error) {
	n, err := strconv.Atoi(string(v))
	if err != nil {
		x, ferr := strconv.ParseFloat(string(v), 64) // 12.0, as data frames write it
		if ferr != nil || x != math.Trunc(x) || math.Abs(x) > maxLength {
			return 0, fmt.Errorf("%s is %s, not a whole number", name, Kind(v))
		}
		n = int(x)
	}
	if n < 0 || n > maxLength {
		return 0, fmt.Errorf("%s is %d, must be between 0 and %d", name, n, maxLength)
	}
	return n, nil
}

// wholes reads a list of whole numbers behind those of a list.
func wholes(name string, v []byte, into []int64) ([]int64, error) {
	bad := func() ([]int64, error) { return into, fmt.Errorf("%s is no list of whole numbers", name) }
	if len(v) < 2 || v[0] != '[' {
		return bad()
	}
	s := scan{b: v[1 : len(v)-1]}
	if s.blank() == 0 {
		return into, nil
	}
	for {
		s.blank()
		begin, n := s.i, int64(0)
		for ; s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9'; s.i++ {
			if n = n*10 + int64(s.b[s.i]-'0'); n < 0 || s.i-begin > 18 {
				return bad()
			}
		}
		if s.i == begin {
			return bad()
		}
		into = append(into, n)
		switch s.blank() {
		case 0:
			return into, nil
		case ',':
			s.i++
		default:
			return bad()
		}
	}
}
