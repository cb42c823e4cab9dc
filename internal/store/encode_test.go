package store

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
)

// check holds the line of a record against that of encoding/json.
func check(t rapid.TB, r *bench.Record) {
	t.Helper()
	want, err := json.Marshal(r)
	got, gerr := appendRecord([]byte("before\n"), r)
	switch {
	case (err == nil) != (gerr == nil):
		t.Fatalf("%v, want %v", gerr, err)
	case err == nil && !bytes.Equal(got, append([]byte("before\n"), want...)):
		t.Fatalf("%s\nwant %s", got, want)
	}
}

// The line of any record is that of encoding/json, byte for byte: each field alone, all of them, and any mixture.
func TestAppendRecord(t *testing.T) {
	whole := full(1 << 40)
	check(t, &whole)
	check(t, &bench.Record{})
	all := reflect.ValueOf(&whole).Elem()
	for i := range all.NumField() {
		var one, others bench.Record
		others = whole
		reflect.ValueOf(&one).Elem().Field(i).Set(all.Field(i))
		reflect.ValueOf(&others).Elem().Field(i).SetZero()
		check(t, &one)
		check(t, &others)
	}
	rapid.Check(t, func(t *rapid.T) {
		r := whole
		v := reflect.ValueOf(&r).Elem()
		for i := range v.NumField() {
			switch rapid.IntRange(0, 3).Draw(t, "field") {
			case 0:
				v.Field(i).SetZero()
			case 1:
				switch f := v.Field(i); f.Kind() {
				case reflect.String:
					f.SetString(rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~\x00-\x1f\x7f-\xff\x{2028}]*`)).Draw(t, "text"))
				case reflect.Int:
					f.SetInt(rapid.Int64().Draw(t, "number"))
				case reflect.Float64:
					f.SetFloat(rapid.Float64Range(-1e300, 1e300).Draw(t, "float"))
				}
			}
		}
		r.Events = rapid.SliceOf(rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })).Draw(t, "events")
		r.EventTokens = rapid.SliceOf(rapid.Int()).Draw(t, "tokens")
		r.Flags = rapid.SliceOf(rapid.Map(rapid.String(), func(s string) bench.Flag { return bench.Flag(s) })).Draw(t, "flags")
		r.Server = rapid.MapOf(rapid.String(), rapid.Float64Range(-1e30, 1e30)).Draw(t, "server")
		r.ToolCalls = json.RawMessage(rapid.SampledFrom([]string{"", "null", `[ {"a":"<"} ]`, "{", `"\u2028"`}).Draw(t, "tools"))
		check(t, &r)
	})
}

func BenchmarkAppendRecord(b *testing.B) {
	r := record(5)
	r.Events = nil
	for k := range 128 {
		r.Events = append(r.Events, time.Duration(k)*10*time.Millisecond+12345)
	}
	b.Run("ours", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			buf, _ = appendRecord(buf[:0], &r)
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(&r); err != nil {
				b.Fatal(err)
			}
		}
	})
}
