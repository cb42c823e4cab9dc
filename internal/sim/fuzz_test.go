package sim

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prony-bench/prony/internal/memnet"
)

// Whatever comes over a connection, the server answers or closes, and stops when it is told to.
func FuzzConnection(f *testing.F) {
	f.Add(post("/v1/completions", `{"prompt":"x","max_tokens":2,"stream":true}`) + get("/truth"))
	f.Add(post("/v1/chat/completions", chat("", "hi", `,"max_tokens":2,"stream":true,"stream_options":{"include_usage":true}`)))
	f.Add(post("/tokenize", `{"prompt":"a b"}`) + post("/detokenize", `{"tokens":[1,2,600]}`) + get("/metrics"))
	f.Add("POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
	f.Add("GET / HTTP/1.0\r\n\r\n")
	f.Add("HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		for _, cfg := range []Config{
			{Mode: ModeExact, MaxModelLen: 200, MaxBody: 4 << 10, Faults: []Fault{{Kind: FaultGzip, Every: 2}, {Kind: FaultMalformed, Every: 3}}},
			{Mode: ModeEngine, MaxModelLen: 200, MaxBody: 4 << 10, Engine: EngineConfig{Cost: &Cost{}, Draft: 2, Acceptance: 0.5}},
		} {
			s, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			var n memnet.Network
			l, err := n.Listen("s:1")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(context.Background(), l) }()
			nc, err := n.Dial(context.Background(), "tcp", "s:1")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(nc, in); err != nil {
				t.Fatal(err)
			}
			nc.(*memnet.Conn).CloseWrite() // it never fails
			if _, err := io.Copy(io.Discard, nc); err != nil {
				t.Log(err)
			}
			nc.Close()
			l.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}

// Whatever body comes to whatever endpoint, the dialect answers: with success as its protocol has it, or with a refusal.
func FuzzDialect(f *testing.F) {
	for i, name := range Dialects() {
		for k, r := range dialectOf(name).routes {
			f.Add(byte(i), byte(k), bodyFor(r.path, 3, true))
			f.Add(byte(i), byte(k), bodyFor(r.path, 3, false))
		}
	}
	f.Fuzz(func(t *testing.T, i, k byte, body string) {
		name := Dialects()[int(i)%len(dialects)]
		routes := dialectOf(name).routes
		path := strings.ReplaceAll(routes[int(k)%len(routes)].path, "{model}", "m")
		synctest.Test(t, func(t *testing.T) {
			r := serveMem(t, Config{Mode: ModeExact, Dialect: name, Model: "m", MaxModelLen: 200, Reasoning: 2, MaxBody: 64 << 10})
			c := r.dial()
			a := c.call(post(path, body))
			c.nc.Close()
			r.stop()
			if a.err != nil || !a.keep {
				t.Errorf("%s %s: %d, %v", name, path, a.status, a.err)
			}
			if a.status == 200 {
				outline(t, a.header.Get("Content-Type"), a.body)
			}
		})
	})
}

// Whatever a case file holds, it loads or is refused, and what loads can be played.
func FuzzLoadScript(f *testing.F) {
	files, err := filepath.Glob("../../testdata/cases/*.json")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := loadJSON(&Script{Name: "x"}, raw)
		if err != nil || s == nil {
			return
		}
		lib, err := newLibrary([]Script{*s})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			a, _ := lib.take(s, []byte(`{}`))
			if a == nil {
				continue
			}
			src := scripted{answer: a}
			for range len(a.events) + 1 {
				var e event
				if !src.next(&e) {
					t.Fatal("a script knows its events")
				}
				if e.then != goOn {
					break
				}
			}
		}
	})
}
