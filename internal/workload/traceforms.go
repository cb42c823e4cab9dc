package workload

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mooncake is the data set `mooncake`: JSON lines with timestamp (ms), input_length, output_length and hash_ids, blocks of 512 tokens.
func Mooncake() Trace {
	return Trace{traceForm{name: "mooncake", unit: time.Millisecond, block: 512, header: jsonTrace,
		hint: `a line is {"timestamp":..., "input_length":..., "output_length":..., "hash_ids":[...]}, times in ms`}}
}

// Bailian is the data set `bailian`: as Mooncake's, with timestamps in seconds, blocks of 16 tokens, and a kind for each request.
func Bailian() Trace {
	return Trace{traceForm{name: "bailian", unit: time.Second, block: 16, header: jsonTrace,
		hint: `a line is {"chat_id":..., "parent_chat_id":..., "timestamp":..., "input_length":..., "output_length":..., "type":..., "turn":..., "hash_ids":[...]}, times in s`}}
}

// Azure is the data set `azure`: CSV with TIMESTAMP, ContextTokens, GeneratedTokens.
func Azure() Trace {
	return Trace{traceForm{name: "azure", hint: "the first line is TIMESTAMP,ContextTokens,GeneratedTokens, the others such as 2023-11-16 18:15:46.6805900,374,44",
		header: csvTrace(dateField, "TIMESTAMP", "ContextTokens", "GeneratedTokens", "", "")}}
}

// BurstGPT is the data set `burstgpt`: CSV with Timestamp (s), Model, Request tokens, Response tokens, Total tokens, Log Type, and in newer
// files Session ID and Elapsed time. A request that failed has no response tokens and is left out.
func BurstGPT() Trace {
	return Trace{traceForm{name: "burstgpt", unit: time.Second, hint: "the first line is Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type, times in s",
		header: csvTrace(numberField, "Timestamp", "Request tokens", "Response tokens", "Model", "a request that failed (no response tokens)")}}
}

// jsonTrace reads the rows of Mooncake's and Bailian's traces.
func jsonTrace([]byte) (func([]byte, *traceRow) error, bool, error) {
	return readJSONTrace, false, nil
}

func readJSONTrace(line []byte, x *traceRow) error {
	return eachField(line, func(key, v []byte) (err error) {
		switch string(key) {
		case "timestamp":
			return numberField("timestamp", v, x)
		case "input_length":
			x.in, err = whole("input_length", v)
		case "output_length":
			x.out, err = whole("output_length", v)
		case "hash_ids":
			x.blocks, err = wholes("hash_ids", v, x.blocks)
		case "type":
			x.class = strings.Trim(string(v), `"`)
		}
		return err
	})
}

func numberField(name string, v []byte, x *traceRow) error {
	s, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsNaN(s) || math.IsInf(s, 0) {
		return fmt.Errorf("%s is %s, not a number", name, Kind(v))
	}
	x.stamp = s
	return nil
}

// dateField reads a date such as 2023-11-16 18:15:46.6805900, in newer files with a zone behind it.
func dateField(name string, v []byte, x *traceRow) error {
	const form = "2006-01-02 15:04:05"
	t, err := time.Parse(form, string(v))
	if err != nil {
		if t, err = time.Parse(form+"Z07:00", string(v)); err != nil {
			return fmt.Errorf("%s is %s, not a date such as 2023-11-16 18:15:46.6805900", name, excerpt(v))
		}
	}
	if t.Year() < 1970 || t.Year() > 2200 {
		return fmt.Errorf("%s is of the year %d", name, t.Year())
	}
	x.at = time.Duration(t.UnixNano())
	x.stamp = float64(x.at)
	return nil
}

// csvTrace reads rows whose columns are named in the first line. Failed is why a row without output is left out, where that has a meaning.
func csvTrace(date func(string, []byte, *traceRow) error, at, in, out, class, failed string) func([]byte) (func([]byte, *traceRow) error, bool, error) {
	return func(first []byte) (func([]byte, *traceRow) error, bool, error) {
		names, err := fieldsOf(first, nil)
		if err != nil {
			return nil, true, err
		}
		column := func(name string) int {
			return slices.IndexFunc(names, func(f []byte) bool { return strings.EqualFold(string(bytes.TrimSpace(f)), name) })
		}
		ats, ins, outs, classes := column(at), column(in), column(out), column(class)
		for _, c := range []struct {
			i    int
			name string
		}{{ats, at}, {ins, in}, {outs, out}} {
			if c.i < 0 {
				return nil, true, fmt.Errorf("the heading has no column %s (%s)", c.name, excerpt(first))
			}
		}
		var fields [][]byte
		return func(line []byte, x *traceRow) (err error) {
			if fields, err = fieldsOf(line, fields[:0]); err != nil {
				return err
			}
			if len(fields) != len(names) {
				return fmt.Errorf("there are %d columns, not %d", len(fields), len(names))
			}
			if err := date(at, fields[ats], x); err != nil {
				return err
			}
			if x.in, err = whole(in, fields[ins]); err != nil {
				return err
			}
			if x.out, err = whole(out, fields[outs]); err != nil {
				return err
			}
			if x.out == 0 && failed != "" {
				return errors.New(failed)
			}
			if classes >= 0 {
				x.class = string(fields[classes])
			}
			return nil
		}, true, nil
	}
}

// fieldsOf splits a line of CSV.
func fieldsOf(line []byte, into [][]byte) ([][]byte, error) {
	if bytes.IndexByte(line, '"') < 0 {
		for {
			i := bytes.IndexByte(line, ',')
			if i < 0 {
				return append(into, bytes.TrimSpace(line)), nil
			}
			into, line = append(into, bytes.TrimSpace(line[:i])), line[i+1:]
		}
	}
	record, err := csv.NewReader(bytes.NewReader(line)).Read()
	if err != nil {
		return into, errors.New("the line is no CSV")
	}
	for _, f := range record {
		into = append(into, []byte(f))
	}
	return into, nil
}
