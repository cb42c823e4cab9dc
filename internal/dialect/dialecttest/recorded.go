package dialecttest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/dialect"
	"github.com/prony-bench/prony/internal/wire"
)

// Recorded folds what a real engine answered, the recording NAME.response.http of a directory, and returns its record. Event i came at
// (i+1) ms. The same bytes in any other reads must say the same.
func Recorded(t *testing.T, dir, name string, ep dialect.Endpoint) bench.Record {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, name+".response.http"))
	if err != nil {
		t.Fatal(err)
	}
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	first, rest, _ := strings.Cut(string(head), "\r\n")
	fields := strings.Fields(first)
	if !ok || len(fields) < 2 {
		t.Fatalf("%s is no answer of HTTP", name)
	}
	status, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	kind := ""
	for line := range strings.SplitSeq(rest, "\r\n") {
		if field, value, _ := strings.Cut(line, ":"); strings.EqualFold(field, "content-type") {
			kind = strings.TrimSpace(value)
		}
	}
	p := Protocol{Endpoint: ep}
	tr := Transcript(kind, body) // the recorder took the chunked coding off
	tr.Status = status
	stream := status != 200 || !strings.HasPrefix(kind, "application/json")
	r := p.fold(stream, tr)
	t.Run(name, func(t *testing.T) { p.anySplit(t, stream, tr, &r) })
	return r
}

// anySplit holds the record of a transcript against those of the same bytes in other reads.
func (p *Protocol) anySplit(t *testing.T, stream bool, tr *wire.Transcript, want *bench.Record) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		got := p.fold(stream, split(t, tr))
		if a, b := said(want), said(&got); a != b {
			t.Fatalf("in other reads: %s\nwant %s", b, a)
		}
	})
}

// said is what a record says that does not depend on times.
func said(r *bench.Record) string {
	return fmt.Sprintf("%s %q, finish %q, text %q, reasoning %q, calls %s, %d events of %v with %v tokens, isl %v from %q, osl %v from %q, cached %v, reasoning %v, times %v",
		r.Outcome, r.Error, r.Finish, r.Text, r.Thinking, r.ToolCalls, r.OutEvents, r.EventChoice, r.EventTokens, r.ISL, r.ISLSource, r.OSL, r.OSLSource, r.Cached, r.Reasoning, r.Server)
}
