package isolate

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/prony-bench/prony/internal/client"
	"github.com/prony-bench/prony/internal/opt"
	"github.com/prony-bench/prony/internal/wire"
)

// The test binary is also the child. That the engine behaves as the others do is shown by the suite of package client.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "engine":
			if err := Serve(os.Stdin, os.Stdout); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		case "mute":
			fmt.Fprintln(os.Stderr, "panic: no engine today\n\ngoroutine 1 [running]:")
			os.Exit(2)
		}
	}
	goleak.VerifyTestMain(m)
}

// sink keeps the ends of jobs.
type sink struct {
	mu   sync.Mutex
	done map[int]*wire.Transcript
	wait chan struct{}
}

func newSink() *sink { return &sink{done: map[int]*wire.Transcript{}, wait: make(chan struct{}, 1000)} }

func (s *sink) Part(*client.Job, wire.Part) {}

func (s *sink) Done(j *client.Job, t *wire.Transcript) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done[j.ID] != nil {
		panic("Done twice")
	}
	s.done[j.ID] = t
	s.wait <- struct{}{}
}

func (s *sink) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-s.wait:
		case <-time.After(20 * time.Second):
			t.Fatal("a job does not end")
		}
	}
}

func (s *sink) of(id int) *wire.Transcript {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done[id]
}

// world is an engine and a server; the server answers at once, and hangs below /hang.
func world(t *testing.T, o client.Options) (*Engine, *sink) {
	t.Helper()
	if !Possible {
		t.Skip("no engine process on this system")
	}
	ended := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		}
		io.WriteString(w, "fine")
	}))
	t.Cleanup(func() { close(ended); srv.Close() })
	target, err := client.ParseTarget(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := newSink()
	o.Epoch, o.Sink, o.Targets = time.Now(), s, []client.Target{target}
	e, err := Start(o, exec.Command(os.Args[0], "engine"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, s
}

func job(id int, path string, due ...time.Duration) *client.Job {
	j := &client.Job{ID: id, Call: wire.Call{Method: "POST", Path: path, Body: []byte("{}")}}
	if len(due) > 0 {
		j.Due = opt.Some(due[0])
	}
	return j
}

// Times of the child are those of the parent's clock, and its report is the engine's.
func TestTimesAndReport(t *testing.T) {
	e, s := world(t, client.Options{})
	before := e.Now()
	e.Submit(job(0, "/"))
	s.await(t, 1)
	after := e.Now()
	tr := s.of(0)
	if sent, ended := tr.Sent.Or(-1), tr.Ended.Or(-1); tr.Fail != "" || sent < before || ended < sent || ended > after {
		t.Errorf("%v: sent %v, ended %v; %+v", before, sent, ended, tr)
	}
	r := e.Close()
	if !strings.HasSuffix(r.Engine, ", isolated") || r.Connections != 1 || r.Toll.PeakMemory == 0 || e.Err() != nil {
		t.Errorf("%+v %v", r, e.Err())
	}
	select {
	case <-e.Failed():
		t.Error("it has failed")
	default:
	}
}

// A child that dies leaves what it had sent incomplete and what it had not as never sent; later jobs are not sent either.
func TestDeath(t *testing.T) {
	e, s := world(t, client.Options{Cap: 2})
	e.Submit(job(0, "/"))
	s.await(t, 1)
	for i := 1; i <= 4; i++ {
		e.Submit(job(i, "/hang"))
	}
	e.Submit(job(5, "/hang", time.Hour))
	time.Sleep(100 * time.Millisecond)
	e.cmd.Process.Kill()
	s.await(t, 5)
	<-e.Failed()
	e.Submit(job(6, "/"))
	s.await(t, 1)
	const words = "the engine process ended: signal: killed"
	for i, want := range []struct {
		fail  wire.Fail
		cause string
	}{{"", ""}, {wire.FailIncomplete, words}, {wire.FailIncomplete, words}, {wire.FailDropped, client.NeverSent}, {wire.FailDropped, client.NeverSent},
		{wire.FailDropped, client.NeverSent}, {wire.FailDropped, client.NeverSent}} {
		if tr := s.of(i); tr.Fail != want.fail || tr.Cause != want.cause {
			t.Errorf("%d: %q %q, want %q %q", i, tr.Fail, tr.Cause, want.fail, want.cause)
		}
	}
	if r := e.Close(); r.Engine != "isolated" || e.Err() == nil || e.Err().Error() != words {
		t.Errorf("%+v %v", r, e.Err())
	}
	e.Submit(job(7, "/"))
	if tr := s.of(7); tr == nil || tr.Fail != wire.FailDropped {
		t.Errorf("after the close: %+v", tr)
	}
}

// A child whose parent is gone ends, whatever is in flight.
func TestParentGone(t *testing.T) {
	e, s := world(t, client.Options{})
	e.Submit(job(0, "/hang"))
	time.Sleep(50 * time.Millisecond)
	e.in.Close()
	select {
	case <-e.gone:
	case <-time.After(10 * time.Second):
		t.Error("the child goes on")
		e.cmd.Process.Kill()
	}
	s.await(t, 1)
	if tr := s.of(0); tr.Fail != wire.FailIncomplete {
		t.Errorf("%+v", tr)
	}
}

func TestNoStart(t *testing.T) {
	for name, cmd := range map[string]*exec.Cmd{"no engine today": exec.Command(os.Args[0], "mute"), "no such file": exec.Command("./not-there"),
		"exit status 1": exec.Command("false")} {
		if _, err := Start(client.Options{Epoch: time.Now()}, cmd); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dial := (&net.Dialer{}).DialContext
	if _, err := Start(client.Options{Dial: dial}, exec.Command(os.Args[0], "engine")); err == nil {
		t.Error("a Dial travelled")
	}
}

// The child refuses what is no parent, and another version's.
func TestServeRefuses(t *testing.T) {
	for in, want := range map[string]string{"": "no parent", "hello, engine": "no parent", string(whole(kindCut, nil)): "no parent",
		string(whole(kindOptions, []byte(`{"Protocol":99}`))): "another version"} {
		if err := Serve(strings.NewReader(in), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// Every option travels, or is refused: a new one that is forgotten fails here.
func TestOptionsTravel(t *testing.T) {
	if !Possible {
		t.Skip("no engine process on this system")
	}
	proxy, err := client.ParseProxy("http://u:p%40ss@proxy:3128")
	if err != nil {
		t.Fatal(err)
	}
	target, err := client.ParseTarget("https://h:8443/a b/v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Via(proxy); err != nil {
		t.Fatal(err)
	}
	socket, err := client.ParseTarget("unix:/run/x.sock")
	if err != nil {
		t.Fatal(err)
	}
	want := client.Options{Epoch: time.Now().Add(-time.Minute), Targets: []client.Target{target, socket}, Cap: 1, Timeout: 2, ConnectTimeout: 3, FreshEach: true, HTTP2: true,
		Spin: 4, Spare: 5, UserAgent: "u", Threads: 6, Stamps: wire.StampUser, NoWire: "why", MaxBody: 7, PartSize: 8, Eager: true, Trust: &client.Trust{Insecure: true}}
	b, err := pack(&want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := unpack(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := got.Epoch.Sub(want.Epoch).Abs(); d > time.Millisecond { // typically below 100 ns; a busy machine may tear all readings
		t.Errorf("the epochs are %v apart", d)
	}
	if got.TLS == nil || !got.TLS.InsecureSkipVerify {
		t.Errorf("TLS %+v", got.TLS)
	}
	got.Epoch, got.TLS = want.Epoch, nil
	for i := range got.Targets {
		if got.Targets[i].URL.String() != want.Targets[i].URL.String() || got.Targets[i].Join("/v1/x") != want.Targets[i].Join("/v1/x") {
			t.Errorf("%+v", got.Targets[i])
		}
		got.Targets[i].URL = want.Targets[i].URL
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	noZero(t, want, "Sink", "TLS", "Dial")
}

// noZero fails for exported fields that have no value, which shows that a test covers all of them.
func noZero(t *testing.T, v any, but ...string) {
	t.Helper()
	r := reflect.ValueOf(v)
	for i := range r.NumField() {
		f := r.Type().Field(i)
		if f.IsExported() && r.Field(i).IsZero() && !strings.Contains(" "+strings.Join(but, " ")+" ", " "+f.Name+" ") {
			t.Errorf("%s is not covered", f.Name)
		}
	}
}

func some(n int) opt.Of[time.Duration] { return opt.Some(time.Duration(n)) }

var (
	aJob = client.Job{ID: -3, Target: 2, Due: some(-7), Tag: uint64(9), CancelAfter: 11,
		Call: wire.Call{Method: "POST", Path: "/x", Header: []wire.Field{{Name: "A", Value: "b"}, {Name: "A", Value: ""}}, Body: []byte("body"), Until: []string{"\n", "x"}}}
	aPart = wire.Part{Raw: []byte("raw"), Marks: []wire.Mark{{End: 5, At: 1e9}, {End: 7, At: 9e8}}, Framed: true, Status: 200, Header: http.Header{"A": {"b", "c"}, "D": {"e"}}}
	aDone = wire.Transcript{Target: 1, Slot: some(1), Sent: some(2), Handed: some(3), HeadAt: some(4), Ended: some(5), Connect: some(6), TLS: some(7), Reused: true, Retried: true,
		Framed: true, Status: 200, Header: http.Header{"A": {"b"}}, Raw: []byte("raw"), Marks: []wire.Mark{{End: 1, At: -2}}, Bytes: 10, Stamp: wire.StampWire, Fail: wire.FailReset, Cause: "why"}
)

// What goes through a frame comes out as it was.
func TestFrames(t *testing.T) {
	noZero(t, aJob)
	noZero(t, aJob.Call)
	noZero(t, aPart, "Release")
	noZero(t, aDone, "Release")
	same := cmp.Comparer(func(a, b opt.Of[time.Duration]) bool { return a == b })
	large := aPart
	large.Raw = bytes.Repeat([]byte("x"), 3*readBuffer)
	var b []byte
	b = putSubmit(b, 9, &aJob)
	b = putPart(b, 10, &aPart)
	b = putPart(b, 11, &large)
	b = putDone(b, 12, &aDone)
	b = append(b, whole(kindCut, nil)...)
	f := newFrames(smallReads{bytes.NewReader(b)})
	next := func(want kind) *parser {
		t.Helper()
		k, b, err := f.next()
		if k != want || err != nil {
			t.Fatalf("kind %d, %v", k, err)
		}
		return &parser{b: b}
	}
	if got := next(kindSubmit).submit(); !cmp.Equal(*got, aJob, same) {
		t.Error(cmp.Diff(*got, aJob, same))
	}
	for n, want := range map[uint64]wire.Part{10: aPart} {
		p := next(kindPart)
		number, got := p.unsigned(), p.part()
		got.Release()
		got.Release = nil
		if number != n || !cmp.Equal(got, want) {
			t.Error(number, cmp.Diff(got, want))
		}
	}
	p := next(kindPart)
	if n, got := p.unsigned(), p.part(); n != 11 || !bytes.Equal(got.Raw, large.Raw) {
		t.Error("the large part")
	}
	p = next(kindDone)
	n, got := p.unsigned(), p.done()
	got.Release = nil
	if n != 12 || p.err != nil || len(p.b) > 0 || !cmp.Equal(*got, aDone, same) {
		t.Error(n, p.err, cmp.Diff(*got, aDone, same))
	}
	next(kindCut)
	if _, _, err := f.next(); err != io.EOF {
		t.Error(err)
	}
}

// smallReads gives at most 1,000 bytes at a time.
type smallReads struct{ r io.Reader }

func (r smallReads) Read(b []byte) (int, error) { return r.r.Read(b[:min(len(b), 1000)]) }

// No bytes make the parser fail otherwise than by its error, or take much memory.
func FuzzFrames(f *testing.F) {
	f.Add(putSubmit(nil, 9, &aJob))
	f.Add(putPart(nil, 9, &aPart))
	f.Add(putDone(nil, 9, &aDone))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newFrames(bytes.NewReader(b))
		if len(b) >= headSize && b[4] > 0 {
			return // so large a frame is asked for
		}
		for {
			_, b, err := in.next()
			if err != nil {
				return
			}
			for _, read := range []func(p *parser){func(p *parser) { p.submit() }, func(p *parser) { p.part() }, func(p *parser) { p.done() }} {
				read(&parser{b: b})
			}
		}
	})
}

// An outbox holds so many bytes that nobody reads, and no more; whoever may wait goes on when they are read.
func TestOutbox(t *testing.T) {
	r, w := io.Pipe()
	o := newOutbox(w, 10)
	add := func(s string) func([]byte) []byte { return func(b []byte) []byte { return append(b, s...) } }
	put := func(s string, wait bool) bool { return o.put(wait, len(s), add(s)) }
	if !put("a frame above the limit", false) {
		t.Error("an empty outbox takes it")
	}
	for { // until that is being written
		o.mu.Lock()
		n := len(o.filling)
		o.mu.Unlock()
		if n == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if !put("0123456789", false) || put("x", false) {
		t.Error("the limit")
	}
	o.force([]byte("!"))
	waited := make(chan bool)
	go func() { waited <- put("y", true) }()
	var got bytes.Buffer
	read := make(chan struct{})
	go func() { io.Copy(&got, r); close(read) }()
	if !<-waited {
		t.Error("it does not wait")
	}
	o.end()
	w.Close()
	<-read
	if got.String() != "a frame above the limit0123456789!y" {
		t.Error(got.String())
	}
	// nobody reads any more: nothing waits
	r2, w2 := io.Pipe()
	r2.Close()
	o = newOutbox(w2, 1)
	for range 10 {
		put("zz", true)
	}
	o.end()
}

// What a part costs: of the child to write it, of the parent to read it. 100,000 events/s come as some 10,000 of them.
func BenchmarkPart(b *testing.B) {
	for _, size := range []int{2 << 10, 16 << 10} {
		part := wire.Part{Raw: bytes.Repeat([]byte("x"), size), Framed: true}
		for i := range size / 220 { // bytes of an event
			part.Marks = append(part.Marks, wire.Mark{End: (i + 1) * 220, At: time.Duration(i) * 10 * time.Millisecond})
		}
		events := float64(len(part.Marks))
		b.Run(fmt.Sprintf("write-%dK", size>>10), func(b *testing.B) {
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				buf = putPart(buf[:0], 1, &part)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
		})
		frame := putPart(nil, 1, &part)
		b.Run(fmt.Sprintf("read-%dK", size>>10), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := &parser{b: frame[headSize:]}
				p.unsigned()
				got := p.part()
				got.Release()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
		})
		b.Run(fmt.Sprintf("pipe-%dK", size>>10), func(b *testing.B) {
			r, w, err := os.Pipe()
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan int)
			go func() {
				f, n := newFrames(r), 0
				for ; ; n++ {
					_, fb, err := f.next()
					if err != nil {
						done <- n
						return
					}
					p := &parser{b: fb}
					p.unsigned()
					got := p.part()
					got.Release()
				}
			}()
			o := newOutbox(w, mostBehind)
			n := 0
			for b.Loop() {
				o.put(true, size, func(to []byte) []byte { return putPart(to, 1, &part) })
				n++
			}
			o.end()
			w.Close()
			if got := <-done; got != n {
				b.Errorf("%d of %d", got, n)
			}
			r.Close()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
		})
	}
}
