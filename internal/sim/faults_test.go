package sim

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/memnet"
	"github.com/prony-bench/prony/internal/wire"
)

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults("429@2500ms:0.1, cut:0.05,503@text:every20,stall@0:1,drip@5ms:0,gzip:every1")
	want := []Fault{
		{Kind: FaultThrottle, Share: 0.1, Delay: 2500 * time.Millisecond}, {Kind: FaultCut, Share: 0.05, After: 2},
		{Kind: FaultFail, Every: 20, Status: 503, Text: true}, {Kind: FaultStall, Share: 1}, {Kind: FaultDrip, Delay: 5 * time.Millisecond},
		{Kind: FaultGzip, Every: 1},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"cut", "cut:2", "cut:-1", "cut:x", "cut:every0", "cut@x:1", "cut@-1:1", "404:1", "600:1", "503@json:1",
		"flood:1", "html@3:1", "drip@0s:1", "429@x:1", "refuse:NaN", "idle-close@-1s:1", ":1"} {
		if f, err := ParseFaults(bad); fault.CodeOf(err) != fault.Usage {
			t.Errorf("%q is %+v, %v", bad, f, err)
		}
	}
	if f, err := ParseFaults(""); f != nil || err != nil {
		t.Errorf("nothing: %v, %v", f, err)
	}
}

// A share strikes its share of the requests, the same ones for the same seed, and independently of other kinds.
func TestShares(t *testing.T) {
	a, b := Fault{Kind: FaultCut, Share: 0.3}, Fault{Kind: FaultStall, Share: 0.3}
	na, nb, both := 0, 0, 0
	for n := range uint64(20_000) {
		sa, sb := a.strikes(1, n), b.strikes(1, n)
		if sa != a.strikes(1, n) {
			t.Fatal("not the same twice")
		}
		if sa {
			na++
		}
		if sb {
			nb++
		}
		if sa && sb {
			both++
		}
	}
	// five standard deviations
	if na < 5676 || na > 6324 || nb < 5676 || nb > 6324 || both < 1597 || both > 2003 {
		t.Errorf("struck %d and %d of 20,000, both %d", na, nb, both)
	}
	every := Fault{Kind: FaultCut, Every: 3}
	if every.strikes(9, 1) || every.strikes(9, 2) || !every.strikes(9, 3) || every.strikes(9, 4) || !every.strikes(9, 6) {
		t.Error("every 3")
	}
	if (Fault{Kind: FaultCut}).strikes(1, 1) || !(Fault{Kind: FaultCut, Share: 1}).strikes(1, 1) {
		t.Error("shares 0 and 1")
	}
}

const (
	faultTTFT = 100 * time.Millisecond
	faultITL  = 10 * time.Millisecond
)

// withFaults sends one streamed chat of five tokens (six writes: five chunks, then usage and [DONE]) to a server with faults.
func withFaults(t *testing.T, faults string, stream bool, check func(r *rig, c *client, a answer)) {
	t.Helper()
	list, err := ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, Faults: list, TTFT: Fixed(faultTTFT), ITL: Fixed(faultITL)})
		c := r.dial()
		rest := `,"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}`
		if !stream {
			rest = `,"max_tokens":5`
		}
		check(r, c, c.call(post("/v1/chat/completions", chat("", "hi there", rest))))
		c.nc.Close()
		r.stop()
	})
}

// outcome is the truth's last word; the record is there once the connection's next answer is, or the server has stopped.
func (r *rig) outcome() TruthRecord {
	synctest.Wait()
	truth := r.s.Truth()
	if len(truth) == 0 {
		return TruthRecord{}
	}
	return truth[len(truth)-1]
}

func TestFaultsInsteadOfAnswer(t *testing.T) {
	for _, c := range []struct {
		faults        string
		status        int
		kind, inside  string
		header, value string
		body          string
	}{
		{"429@2500ms:1", 429, "application/json", `"code":429`, "Retry-After", "3", ""},
		{"503:1", 503, "application/json", `"type":"ServiceUnavailableError"`, "", "", ""},
		{"500:1", 500, "application/json", `"type":"InternalServerError"`, "", "", ""},
		{"502@text:1", 502, "text/plain; charset=utf-8", "", "", "", "Bad Gateway"},
		{"html:1", 200, "text/html; charset=utf-8", "<html>", "", "", ""},
	} {
		withFaults(t, c.faults, true, func(r *rig, cl *client, a answer) {
			if a.status != c.status || a.header.Get("Content-Type") != c.kind || !strings.Contains(a.body, c.inside) || a.end != 0 || !a.keep {
				t.Errorf("%s: %d %v at %v: %s", c.faults, a.status, a.header, a.end, a.body)
			}
			if c.header != "" && a.header.Get(c.header) != c.value || c.body != "" && a.body != c.body {
				t.Errorf("%s: %v %q", c.faults, a.header, a.body)
			}
			if rec := r.outcome(); rec.Status != c.status || rec.Outcome != Complete || rec.Fault == "" || rec.Output != 0 || len(rec.Write) != 0 {
				t.Errorf("%s: %+v", c.faults, rec)
			}
			if strings.HasPrefix(c.kind, "application/json") && !json.Valid([]byte(a.body)) {
				t.Errorf("%s: %s", c.faults, a.body)
			}
		})
	}
}

func TestFaultRefuse(t *testing.T) {
	withFaults(t, "refuse:every2", true, func(r *rig, c *client, a answer) {
		if a.err != nil || a.status != 200 {
			t.Errorf("first connection: %v", a.err)
		}
		second := r.dial()
		time.Sleep(time.Millisecond)
		if a := second.call(get("/health")); a.status != 0 || a.readErr == nil {
			t.Errorf("second connection: %+v", a)
		}
		if a := r.dial().call(get("/health")); a.status != 200 {
			t.Errorf("third connection: %+v", a)
		}
	})
}

// A stall sends so many writes and then nothing, until the client gives up.
func TestFaultStall(t *testing.T) {
	for _, stream := range []bool{true, false} {
		list, err := ParseFaults("stall@3:1")
		if err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Faults: list, TTFT: Fixed(faultTTFT), ITL: Fixed(faultITL)})
			c := r.dial()
			time.AfterFunc(time.Hour, func() { c.nc.Close() })
			rest, events := `,"max_tokens":5`, 0
			if stream {
				rest, events = rest+`,"stream":true`, 4
			}
			a := c.call(post("/v1/chat/completions", chat("", "hi there", rest)))
			if a.end != time.Hour || len(a.events()) != events || a.err == nil {
				t.Errorf("stream %v: ended at %v with %v after %d events", stream, a.end, a.err, len(a.events()))
			}
			if rec := r.outcome(); rec.Outcome != Hung {
				t.Errorf("%+v", rec)
			}
			r.stop()
		})
	}
}

func TestFaultsInTheMiddle(t *testing.T) {
	cut := func(reset bool) func(r *rig, c *client, a answer) {
		return func(r *rig, c *client, a answer) {
			ends := io.EOF
			if reset {
				ends = memnet.ErrReset
			}
			if !errors.Is(a.err, wire.ErrCut) || !errors.Is(a.readErr, ends) || a.end != faultTTFT+2*faultITL {
				t.Errorf("reset %v: ended at %v with %v, %v", reset, a.end, a.err, a.readErr)
			}
			if ev := a.events(); len(ev) != 3 { // role and two tokens; half of the third
				t.Errorf("%d events", len(ev))
			}
			if rec := r.outcome(); rec.Outcome != WasCut || rec.Output != 2 || len(rec.Write) != 3 {
				t.Errorf("%+v", rec)
			}
		}
	}
	withFaults(t, "cut:1", true, cut(false))
	withFaults(t, "reset:1", true, cut(true))
	withFaults(t, "malformed@1:1", true, func(r *rig, c *client, a answer) {
		broken := 0
		for _, e := range a.events() {
			if e.data != "[DONE]" && !json.Valid([]byte(e.data)) {
				broken++
				if e.at != faultTTFT+faultITL {
					t.Errorf("broken at %v", e.at)
				}
			}
		}
		if broken != 1 || a.err != nil || a.end != faultTTFT+4*faultITL {
			t.Errorf("%d broken events, %v: %s", broken, a.err, a.body)
		}
		if rec := r.outcome(); rec.Outcome != Complete || rec.Output != 4 {
			t.Errorf("%+v", rec)
		}
	})
	withFaults(t, "error@2:1", true, func(r *rig, c *client, a answer) {
		ev := a.events()
		if len(ev) != 5 || a.err != nil || !strings.Contains(ev[3].data, `"error": {`) || ev[4].data != "[DONE]" ||
			ev[3].at != faultTTFT+2*faultITL {
			t.Errorf("%v: %s", a.err, a.body)
		}
	})
	// an answer that is not streamed has one write: the faults strike that
	withFaults(t, "cut@5:1", false, func(r *rig, c *client, a answer) {
		if !errors.Is(a.err, wire.ErrCut) || a.status != 200 || a.end != faultTTFT+4*faultITL {
			t.Errorf("%+v", a)
		}
	})
	withFaults(t, "malformed:1", false, func(r *rig, c *client, a answer) {
		if a.err != nil || a.status != 200 || json.Valid([]byte(a.body)) || !a.keep {
			t.Errorf("%+v", a)
		}
	})
	withFaults(t, "error:1", false, func(r *rig, c *client, a answer) {
		if a.err != nil || a.status != 500 || !json.Valid([]byte(a.body)) {
			t.Errorf("%+v", a)
		}
	})
}

// Faults beside the answer's content.
func TestFaultsOfTransport(t *testing.T) {
	clean := func(a answer) bool {
		ev := a.events()
		return a.status == 200 && a.err == nil && len(ev) == 8 && ev[7].data == "[DONE]"
	}
	withFaults(t, "drip@1ms:1", true, func(r *rig, c *client, a answer) {
		at := faultTTFT
		for _, p := range a.pieces {
			if len(p.data) != 1 {
				t.Fatalf("%q in one read", p.data)
			}
			if p.at < at || p.at-faultTTFT > time.Duration(4000)*time.Millisecond {
				t.Fatalf("byte at %v after %v", p.at, at)
			}
			at = p.at + time.Millisecond
		}
		if !clean(a) || r.outcome().Output != 5 {
			t.Errorf("%d bytes, %v", len(a.body), a.err)
		}
	})
	withFaults(t, "at-once:1", true, func(r *rig, c *client, a answer) {
		if !clean(a) || len(a.pieces) != 1 || a.end != faultTTFT+4*faultITL {
			t.Errorf("%d reads, end %v, %v", len(a.pieces), a.end, a.err)
		}
		if rec := r.outcome(); len(rec.Write) != 1 || rec.Tokens[0] != 5 {
			t.Errorf("%+v", rec)
		}
	})
	withFaults(t, "no-usage:1", true, func(r *rig, c *client, a answer) {
		if strings.Contains(a.body, "usage") || len(a.events()) != 7 {
			t.Error(a.body)
		}
	})
	withFaults(t, "no-usage:1", false, func(r *rig, c *client, a answer) {
		if strings.Contains(a.body, "usage") || !json.Valid([]byte(a.body)) {
			t.Error(a.body)
		}
	})
	withFaults(t, "empty:1", true, func(r *rig, c *client, a answer) {
		ev := a.events()
		if len(ev) != 4 || !strings.Contains(ev[1].data, `"content":""`) || !strings.Contains(ev[1].data, `"finish_reason":"stop"`) ||
			!strings.Contains(ev[2].data, `"completion_tokens":1`) {
			t.Error(a.body)
		}
	})
	for _, stream := range []bool{true, false} {
		withFaults(t, "gzip:1", stream, func(r *rig, c *client, a answer) {
			if a.header.Get("Content-Encoding") != "gzip" || a.err != nil || !a.keep {
				t.Fatalf("%+v", a)
			}
			z, err := gzip.NewReader(strings.NewReader(a.body))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil || !bytes.Contains(plain, []byte(`"prompt_tokens":9`)) {
				t.Errorf("%v: %s", err, plain)
			}
			if stream && !(len(a.pieces) == 5 && flushed(t, a.pieces[0].data+a.pieces[1].data, 3)) {
				t.Errorf("%d reads", len(a.pieces))
			}
		})
		withFaults(t, "close:1", stream, func(r *rig, c *client, a answer) {
			if a.err != nil || a.keep || a.header.Get("Connection") != "close" || !strings.Contains(a.body, "completion_tokens") {
				t.Errorf("%+v", a)
			}
			if n, err := c.nc.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("read %d, %v", n, err)
			}
		})
		withFaults(t, "http1.0:1", stream, func(r *rig, c *client, a answer) {
			if a.err != nil || a.keep || a.readErr != io.EOF || a.header.Get("Content-Length")+a.header.Get("Transfer-Encoding") != "" ||
				a.status != 200 || a.end != faultTTFT+4*faultITL || !strings.Contains(a.body, "completion_tokens") {
				t.Errorf("%+v", a)
			}
		})
		withFaults(t, "idle-close@50ms:1", stream, func(r *rig, c *client, a answer) {
			if a.err != nil || !a.keep {
				t.Errorf("%+v", a)
			}
			time.Sleep(49 * time.Millisecond)
			if b := c.call(get("/health")); b.status != 200 {
				t.Errorf("within the idle time: %+v", b)
			}
			time.Sleep(time.Hour) // GET /health is not struck: the connection stays
			if b := c.call(post("/v1/completions", `{"prompt":"x","max_tokens":1}`)); b.status != 200 || !b.keep {
				t.Errorf("%+v", b)
			}
			before := r.now()
			if n, err := c.nc.Read(make([]byte, 1)); n != 0 || err != io.EOF || r.now()-before != 50*time.Millisecond {
				t.Errorf("read %d, %v after %v", n, err, r.now()-before)
			}
		})
	}
	// together
	withFaults(t, "gzip:1,at-once:1,close:1,no-usage:1", true, func(r *rig, c *client, a answer) {
		if a.err != nil || a.keep || len(a.pieces) != 1 || !flushed(t, a.body, 7) {
			t.Errorf("%+v", a)
		}
		if rec := r.outcome(); rec.Fault != "gzip,at-once,close,no-usage" {
			t.Errorf("%+v", rec)
		}
	})
}

// flushed tells whether so many events can be read from the beginning of a compressed stream.
func flushed(t *testing.T, packed string, events int) bool {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Error(err)
		return false
	}
	plain, err := io.ReadAll(z)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	return bytes.Count(plain, []byte("\n\n")) == events
}

// A client that goes away ends its request; one that stays while the server stops is told of by the truth too.
func TestGoingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, TTFT: Fixed(faultTTFT), ITL: Fixed(faultITL)})
		c := r.dial()
		time.AfterFunc(faultTTFT+faultITL+1, func() { c.nc.Close() })
		c.call(post("/v1/completions", `{"prompt":"x","max_tokens":50,"stream":true}`))
		synctest.Wait()
		if rec := r.outcome(); rec.Outcome != Aborted || rec.Output != 2 || rec.End != faultTTFT+faultITL+1 {
			t.Errorf("%+v", rec)
		}
		second := r.dial()
		time.AfterFunc(time.Second, r.cancel)
		a := second.call(post("/v1/completions", `{"prompt":"x","max_tokens":5000,"stream":true}`))
		if a.err == nil {
			t.Error("the stream was whole")
		}
		r.stop()
		if rec := r.outcome(); rec.Outcome != Stopped {
			t.Errorf("%+v", rec)
		}
		got := pageSeries(t, string(r.s.meterPage(vllmMetrics)))
		aborts := got[`vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"}`]
		if running := got[`vllm:num_requests_running{engine="0",model_name="m"}`]; aborts != "2.0" || running != "0.0" {
			t.Errorf("aborts are counted as %s, running %s", aborts, running)
		}
	})
}

// slowReturn is a connection whose writes return later than their bytes arrive, as those of a busy machine do.
type slowReturn struct{ net.Conn }

func (c slowReturn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	time.Sleep(time.Millisecond)
	return n, err
}

type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowReturn{nc}, nil
}

// A client that closes with the last byte in hand has had a complete answer, although the server's write has not returned yet.
func TestCloseAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveOn(t, Config{Mode: ModeExact, ITL: Fixed(faultITL)}, func(l net.Listener) net.Listener { return slowListener{l} })
		for _, rest := range []string{`,"stream":true`, ""} {
			c := r.dial()
			a := c.call(post("/v1/completions", `{"prompt":"x","max_tokens":3`+rest+`}`))
			c.nc.Close()
			time.Sleep(time.Second)
			if rec := r.outcome(); a.err != nil || rec.Outcome != Complete || rec.Output != 3 {
				t.Errorf("%v, %+v", a.err, rec)
			}
		}
		r.stop()
	})
}

// fullOnce is a connection whose socket is full for a second at its third write.
type fullOnce struct {
	net.Conn
	writes int
}

func (c *fullOnce) Write(p []byte) (int, error) {
	if c.writes++; c.writes == 3 {
		time.Sleep(time.Second)
	}
	return c.Conn.Write(p)
}

type fullListener struct{ net.Listener }

func (l fullListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &fullOnce{Conn: nc}, nil
}

// Writes that are late since the socket was full are told of, but not as the server's lateness; then the answer is on time again.
func TestHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveOn(t, Config{Mode: ModeExact, ITL: Fixed(100 * time.Millisecond)}, func(l net.Listener) net.Listener { return fullListener{l} })
		c := r.dial()
		a := c.call(post("/v1/completions", `{"prompt":"x","max_tokens":30,"stream":true}`))
		c.nc.Close()
		r.stop()
		// head at 0, tokens at 0 and 100 ms; that one comes at 1.1 s, and with it those up to 1.1 s
		ev := a.events()
		if ev[1].at != 1100*time.Millisecond || ev[11].at != 1100*time.Millisecond || ev[12].at != 1200*time.Millisecond {
			t.Errorf("%v", ev)
		}
		if p := r.s.Pace(); p.Late != 0 || p.MaxLate != 0 || p.HeldUp != 1 || p.Writes != 31-10 || r.s.Truth()[0].Held != 1 {
			t.Errorf("%+v", p)
		}
	})
}

// Serve ends when the listener is closed, with all connections.
func TestListenerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{Mode: ModeExact, TTFT: Fixed(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		var n memnet.Network
		l, err := n.Listen("a:1")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- s.Serve(context.Background(), l) }()
		nc, err := n.Dial(context.Background(), "tcp", "a:1")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(nc, post("/v1/completions", `{"prompt":"x","stream":true}`))
		time.Sleep(time.Second)
		l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Serve(context.Background(), l); err == nil {
			t.Error("served twice")
		}
	})
}

// A request that is there before the answer to the one before is over finds a connection that is not idle.
func TestIdleCloseSparesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list, err := ParseFaults("idle-close@50ms:1")
		if err != nil {
			t.Fatal(err)
		}
		r := serveMem(t, Config{Mode: ModeExact, Faults: list, TTFT: Fixed(20 * time.Millisecond), ITL: Fixed(200 * time.Millisecond)})
		c := r.dial()
		requests := post("/v1/completions", `{"prompt":"x","max_tokens":1}`) + post("/v1/completions", `{"prompt":"x","max_tokens":3,"stream":true}`)
		if _, err := io.WriteString(c.nc, requests); err != nil {
			t.Fatal(err)
		}
		both, err := io.ReadAll(c.nc)
		if n := strings.Count(string(both), "HTTP/1.1 200 OK"); err != nil || n != 2 || !bytes.Contains(both, []byte("[DONE]")) {
			t.Errorf("%d answers, %v: %s", n, err, both)
		}
		if end := r.now(); end != 470*time.Millisecond { // 20 ms to the first token, 400 ms to the third, 50 ms idle
			t.Errorf("closed after %v", end)
		}
		r.stop()
	})
}
