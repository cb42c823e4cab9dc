package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func record(i int) bench.Record {
	return bench.Record{ID: i, Phase: bench.Measure, Outcome: bench.OK, Sent: opt.Some(time.Duration(i) * time.Millisecond), First: opt.Some(time.Duration(0)),
		Events: []time.Duration{5, 7}, ISL: opt.Some(0), Flags: []bench.Flag{bench.AllAtOnce}, Stamp: wire.StampUser}
}

func create(t *testing.T) *Dir {
	t.Helper()
	d, err := Create(filepath.Join(t.TempDir(), "a", "run"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func readAll(t *testing.T, d *Dir) (out []bench.Record, failed error) {
	t.Helper()
	for r, err := range d.Records() {
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

func TestJournalRoundTrip(t *testing.T) {
	d := create(t)
	j, err := d.NewJournal()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		j.Append(record(i))
	}
	if lost, err := j.Close(); err != nil || len(lost) > 0 {
		t.Fatal(err)
	}
	got, err := readAll(t, d)
	if err != nil || len(got) != 1000 {
		t.Fatal(len(got), err)
	}
	for i, r := range got {
		a, _ := json.Marshal(r)
		b, _ := json.Marshal(record(i))
		if !bytes.Equal(a, b) {
			t.Fatalf("%s\n%s", a, b)
		}
	}
	b, _ := os.ReadFile(filepath.Join(d.Path, JournalFile))
	first, _, _ := bytes.Cut(b, []byte("\n"))
	want := `{"id":0,"phase":"measure","target":0,"conversation":0,"turn":0,"outcome":"ok","flags":["all_at_once"],"sent_ns":0,"first_ns":0,"event_ns":[5,7],"isl":0,"connection_reused":false,"bytes":0,"stamp":"user"}`
	if string(first) != want {
		t.Errorf("line %s\nwant %s", first, want)
	}
}

// A killed process tears the last line: it alone is lost. A damaged line inside is an error that names it.
func TestTornJournal(t *testing.T) {
	d := create(t)
	path := filepath.Join(d.Path, JournalFile)
	line, _ := json.Marshal(record(1))
	other, _ := json.Marshal(record(2))
	for _, c := range []struct {
		body string
		n    int
		err  string
	}{
		{"", 0, ""},
		{string(line) + "\n" + string(line[:20]), 1, ""},
		{string(line) + "\n" + string(line), 1, ""}, // whole, but its line end never came: perhaps torn inside a number
		{string(line) + "\n" + string(line[:20]) + "\n", 1, ""},
		{string(line) + "\n{\"id\":\n" + string(line) + "\n", 1, "line 2"},
		{string(line) + "\n\n" + string(other) + "\n", 2, ""},
		{string(line) + "\n" + string(other) + "\n" + string(line) + "\n", 2, "line 3: request 1 is told of in line 1 already"},
	} {
		os.WriteFile(path, []byte(c.body), 0o600)
		got, err := readAll(t, d)
		if len(got) != c.n || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %d records, %v", c.body, len(got), err)
		}
	}
	os.Remove(path)
	if got, err := readAll(t, d); len(got) != 0 || fault.CodeOf(err) != fault.Usage || !strings.Contains(fault.HintOf(err), "summary.json") {
		t.Error("no journal:", got, err)
	}
}

// fakeFile takes so many bytes and is full then.
type fakeFile struct {
	bytes.Buffer
	room   int
	syncs  []time.Time
	writes []time.Time
}

func (f *fakeFile) Write(p []byte) (int, error) {
	f.writes = append(f.writes, time.Now())
	if f.room >= 0 && f.Len()+len(p) > f.room {
		n := f.room - f.Len()
		f.Buffer.Write(p[:n])
		return n, fmt.Errorf("write: %w", syscall.ENOSPC)
	}
	return f.Buffer.Write(p)
}
func (f *fakeFile) Sync() error  { f.syncs = append(f.syncs, time.Now()); return nil }
func (f *fakeFile) Close() error { return nil }

// A full disk loses nothing: what is not on disk is handed back.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{room: 1000}
		j := newJournal(f)
		for i := range 50 {
			j.Append(record(i))
			time.Sleep(30 * time.Millisecond)
		}
		<-j.Failed()
		lost, err := j.Close()
		if fault.CodeOf(err) != fault.Internal || !errors.Is(err, syscall.ENOSPC) || fault.HintOf(err) == "" {
			t.Error(err)
		}
		n := 0
		for r, err := range readRecords(&f.Buffer) {
			if err != nil || r.ID != n {
				t.Fatal(r.ID, err)
			}
			n++
		}
		for _, r := range lost {
			if r.ID != n {
				t.Fatalf("record %d is missing", n)
			}
			n++
		}
		if n != 50 || len(lost) == 0 {
			t.Errorf("%d records in all", n)
		}
	})
}

// A record is written at once, and synced within a second.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeFile{room: -1}
		j := newJournal(f)
		start := time.Now()
		time.Sleep(250 * time.Millisecond)
		j.Append(record(1))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(f.writes) != 1 || f.writes[0].Sub(start) != 250*time.Millisecond {
			t.Errorf("written at %v", f.writes)
		}
		if len(f.syncs) != 1 || f.syncs[0].Sub(start) > 1250*time.Millisecond {
			t.Errorf("synced at %v", f.syncs)
		}
		j.Close()
	})
}

func TestCreateRefusesExisting(t *testing.T) {
	d := create(t)
	if _, err := Create(d.Path); err != nil {
		t.Error("an empty directory is refused:", err)
	}
	os.WriteFile(filepath.Join(d.Path, "x"), nil, 0o600)
	if _, err := Create(d.Path); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "exists already") {
		t.Error(err)
	}
	if _, err := Create(filepath.Join(d.Path, "x", "y")); fault.CodeOf(err) != fault.Usage {
		t.Error(err)
	}
	if _, err := Open(d.Path); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "no run directory") {
		t.Error(err)
	}
}

// What Create would refuse is refused before, by the same words; nothing is left behind.
func TestFree(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	full, empty, locked := filepath.Join(dir, "full"), filepath.Join(dir, "empty"), filepath.Join(dir, "locked")
	for path, mode := range map[string]os.FileMode{full: 0o700, empty: 0o700, locked: 0o500} {
		if err := os.Mkdir(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, ok := range map[string]bool{filepath.Join(dir, "new"): true, filepath.Join(dir, "a", "new", "one"): true, empty: true, full: false, file: false,
		filepath.Join(file, "x"): false, filepath.Join(file, "x", "y"): false, filepath.Join(locked, "x"): os.Geteuid() == 0} {
		err := Free(path)
		if (err == nil) != ok || err != nil && (fault.CodeOf(err) != fault.Usage || fault.HintOf(err) == "") {
			t.Errorf("%s: %v", path, err)
		}
		if _, cerr := Create(path); (cerr == nil) != ok {
			t.Errorf("%s: Create says %v, Free %v", path, cerr, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".prony-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestManifestAndSchemas(t *testing.T) {
	d := create(t)
	m := manifest()
	m.Spec.Seed = 1 << 63
	if err := d.WriteManifest(m); err != nil {
		t.Fatal(err)
	}
	got, err := d.Manifest()
	if err != nil || got.Spec.Seed != 1<<63 {
		t.Fatal(got, err)
	}
	for schema, ok := range map[string]bool{"prony.manifest/1": true, "prony.manifest/2": false, "prony.manifest/10": false, "other/1": false, "": false} {
		m.Schema = schema
		d.WriteManifest(m)
		if _, err := d.Manifest(); (err == nil) != ok {
			t.Errorf("schema %q: %v", schema, err)
		}
	}
	os.WriteFile(filepath.Join(d.Path, ManifestFile), []byte("{"), 0o600)
	if _, err := d.Manifest(); fault.CodeOf(err) != fault.Usage || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	if files, _ := filepath.Glob(filepath.Join(d.Path, ".*")); len(files) > 0 {
		t.Error("left over:", files)
	}
}

func TestSummaryRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := func(name string) float64 { return rapid.Float64Range(-1e6, 1e6).Draw(t, name) }
		s := &bench.Summary{Schema: bench.SummarySchema, Window: opt.Some(f("w")), Verdict: bench.Valid, Metrics: bench.Metrics{
			{Key: "ttft_ms", Dist: &bench.Dist{N: 3, Mean: f("m"), SD: opt.Some(1.5), Min: 1, Max: 9, Quantiles: []bench.Quantile{{P: 50, Value: f("q")}, {P: 99.9, Value: 3}},
				CI: map[string][2]float64{"p50": {1, 2}}, NEff: opt.Some(2.5), CIMethod: "binomial"}},
			{Key: "itl_ms"},
			{Key: "goodput", Scalar: &bench.Scalar{Value: opt.Some(f("g")), Unit: "req/s"}},
			{Key: "nothing", Scalar: &bench.Scalar{Unit: "x"}},
		}}
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back bench.Summary
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		b2, _ := json.Marshal(back)
		if !bytes.Equal(b, b2) {
			t.Fatalf("%s\n%s", b, b2)
		}
	})
}

// full is a record in which every field is set.
func full(i int) bench.Record {
	d := func(n int) opt.Of[time.Duration] { return opt.Some(time.Duration(i + n)) }
	return bench.Record{ID: i, Phase: bench.Measure, Target: 1, Conversation: 2, Turn: 3, Class: "short", Outcome: bench.OK, Status: 200, Error: "none <&>", RetryAfter: 1.5,
		Flags: []bench.Flag{bench.Clumped}, Due: d(1), Slot: d(2), Sent: d(3), Handed: d(4), Headers: d(5), First: d(6), Second: d(7), FirstAnswer: d(8), Last: d(9), End: d(10),
		Events: []time.Duration{1, 2}, EventTokens: []int{3, 4}, EventChoice: []int{0, 1}, ISL: opt.Some(5), ISLAsked: 6, ISLSource: bench.FromIDs, OSL: opt.Some(7), OSLAsked: 8,
		OSLSource: bench.FromUsage, Cached: opt.Some(9), Reasoning: opt.Some(10), Finish: bench.FinishStop, Choices: 2, OutEvents: 11, Merged: 12, Inputs: 18, Dimensions: 19, Reused: true, Connect: d(13), TLS: d(14),
		Bytes: 15, Stamp: wire.StampWire, Server: map[string]float64{"server_prefill_ms": 1.25, "a": 2}, Text: "text", Thinking: "thought", ToolCalls: json.RawMessage(`[{"name":"f"}]`)}
}

// The Parquet file has a column for each field of a record, under the name that the journal gives it, and no field is left out of it.
func TestParquetHasAllFields(t *testing.T) {
	columns := map[string]bool{}
	row := reflect.TypeFor[parquetRow]()
	for i := range row.NumField() {
		name, _, _ := strings.Cut(row.Field(i).Tag.Get("parquet"), ",")
		columns[name] = true
	}
	r := full(1)
	kind, have, value := reflect.TypeFor[bench.Record](), reflect.ValueOf(r), reflect.ValueOf(rowOf(&r))
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		if !columns[name] {
			t.Errorf("no column %s", name)
		}
		if have.Field(i).IsZero() {
			t.Errorf("the record of this test does not set %s", name)
		}
	}
	for i := range row.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("%s is not filled in", row.Field(i).Name)
		}
	}
}

func TestParquet(t *testing.T) {
	d := create(t)
	seq := func(yield func(bench.Record, error) bool) {
		for i := range 2500 {
			if !yield(full(i), nil) {
				return
			}
		}
	}
	if err := d.WriteParquet(seq); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.ReadFile[parquetRow](filepath.Join(d.Path, ParquetFile))
	if err != nil || len(rows) != 2500 {
		t.Fatal(len(rows), err)
	}
	want := full(1234)
	if diff := cmp.Diff(rowOf(&want), rows[1234], cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestTranscripts(t *testing.T) {
	d := create(t)
	w, err := d.NewTranscripts()
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte("HTTP/1.1 200 OK\r\n\r\nabc")
	marks := []wire.Mark{{End: 19, At: 5}, {End: 22, At: 7}}
	for i := range 3 {
		w.Append(&Kept{ID: i, Framed: true, Sent: opt.Some(time.Duration(3)), Reads: ReadsOf(raw, marks, 0)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for k, err := range d.Kept() {
		if err != nil {
			t.Fatal(err)
		}
		tr := k.Transcript()
		if k.ID != n || !bytes.Equal(tr.Raw, raw) || fmt.Sprint(tr.Marks) != fmt.Sprint(marks) || tr.Sent.Or(0) != 3 {
			t.Errorf("%+v", tr)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d transcripts", n)
	}
	if _, err := d.NewTranscripts(); err == nil {
		t.Error("an existing file is overwritten")
	}
}

func TestDefaultPath(t *testing.T) {
	at := time.Date(2026, 11, 29, 15, 20, 1, 0, time.UTC)
	for label, want := range map[string]string{"": "runs/2026-11-29T15-20-01Z", "qwen3": "runs/2026-11-29T15-20-01Z-qwen3", "a/b c..": "runs/2026-11-29T15-20-01Z-a-b-c", "../x": "runs/2026-11-29T15-20-01Z-x"} {
		if got := filepath.ToSlash(DefaultPath(at, label)); got != want {
			t.Errorf("%q: %s", label, got)
		}
	}
}

func FuzzReadRecords(f *testing.F) {
	line, _ := json.Marshal(record(1))
	f.Add(append(append([]byte{}, line...), '\n'))
	f.Add([]byte("{}\n{\"id\":3"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for _, err := range readRecords(bytes.NewReader(b)) {
			if err != nil {
				break
			}
			n++
		}
		if lines := bytes.Count(b, []byte("\n")); n > lines {
			t.Fatalf("%d records from %d lines", n, lines)
		}
	})
}
