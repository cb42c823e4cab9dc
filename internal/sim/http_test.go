package sim

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Requests in every form that HTTP/1 allows, on one connection, answered in order.
func TestRequests(t *testing.T) {
	const body = `{"prompt":"a b","max_tokens":2}`
	chunks := ""
	for _, c := range []byte(body) {
		chunks += fmt.Sprintf("1\r\n%c\r\n", c)
	}
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, TTFT: Fixed(time.Second)})
		c := r.dial()
		for _, req := range []string{
			post("/v1/completions", body),
			"POST /v1/completions HTTP/1.1\r\nHost: s\r\ncontent-type: application/json; charset=utf-8\r\n" +
				"Transfer-Encoding: chunked\r\n\r\n" + chunks + "0\r\n\r\n",
			"POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Type: application/json\r\n" +
				"Content-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body,
		} {
			if a := c.call(req); a.status != 200 || a.err != nil || !a.keep || a.end-a.sent != time.Second || !json.Valid([]byte(a.body)) {
				t.Errorf("%q: %+v", req[:40], a)
			}
		}
		// a request that comes in pieces has arrived with its last
		whole := post("/v1/completions", body)
		go func() {
			for _, b := range []byte(whole[:len(whole)-1]) {
				time.Sleep(time.Millisecond)
				fmt.Fprintf(c.nc, "%c", b)
			}
			time.Sleep(time.Hour)
			c.nc.Write([]byte(whole[len(whole)-1:]))
		}()
		if a := c.call(""); a.end-a.sent != time.Hour+time.Duration(len(whole)-1)*time.Millisecond+time.Second {
			t.Errorf("ended after %v", a.end-a.sent)
		}
		// expect: the body comes only when it is asked for
		fmt.Fprintf(c.nc, "POST /v1/completions HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"+
			"Content-Length: %d\r\n\r\n", len(body))
		in := bufio.NewReader(c.nc)
		if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Errorf("%q, %v", line, err)
		}
		if line, err := in.ReadString('\n'); err != nil || line != "\r\n" {
			t.Errorf("%q, %v", line, err)
		}
		if a := c.call(body); a.status != 200 || a.err != nil {
			t.Errorf("%+v", a)
		}
		// two requests at once are answered one after the other
		fmt.Fprint(c.nc, whole+get("/version"))
		for _, want := range []string{"text_completion", "0.32.0"} {
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%s, %v", b, err)
			}
		}
		// HTTP/1.0 without keep-alive: a stream ends with the connection
		old := r.dial()
		streamBody := `{"prompt":"a b","max_tokens":2,"stream":true}`
		a := old.call(strings.Replace(post("/v1/completions", streamBody), "HTTP/1.1", "HTTP/1.0", 1))
		if a.status != 200 || a.err != nil || a.keep || len(a.events()) != 3 || a.header.Get("Transfer-Encoding") != "" {
			t.Errorf("%+v", a)
		}
		// the client's wish to close
		last := r.dial()
		a = last.call("GET /health HTTP/1.1\r\nHost: s\r\nConnection: close\r\n\r\n")
		if a.status != 200 || a.keep || a.header.Get("Connection") != "close" {
			t.Errorf("%+v", a)
		}
		if _, err := last.nc.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		c.nc.Close()
		r.stop()
	})
}

// Requests that are none end their connection with a 400, or without a word when they break off.
func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serveMem(t, Config{Mode: ModeExact, MaxBody: 1000})
		for _, c := range []struct {
			request string
			status  int
		}{
			{"hello\r\n\r\n", 400}, {"GET / HTTP/1.1\r\nHost: s\r\nbroken\r\n\r\n", 400},
			{"GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", 400},
			{"POST /v1/completions HTTP/1.1\r\nHost: s\r\nContent-Length: 1001\r\n\r\n", 413},
			{"POST /v1/completions HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + strings.Repeat("x", 1001) +
				"\r\n0\r\n\r\n", 413},
		} {
			cl := r.dial()
			if a := cl.call(c.request); a.status != c.status || a.keep {
				t.Errorf("%.60q: %+v", c.request, a)
			}
			cl.nc.Close()
		}
		cl := r.dial()
		fmt.Fprint(cl.nc, "POST /v1/completions HTTP/1.1\r\nHost: s\r\nContent-Length: 10\r\n\r\nabc")
		cl.nc.Close()
		r.stop()
		if len(r.s.Truth()) != 0 {
			t.Errorf("%+v", r.s.Truth())
		}
	})
}
