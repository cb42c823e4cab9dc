package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prony-bench/prony/internal/fault"
	"github.com/prony-bench/prony/internal/rng"
)

// library is the scripts of a server, by name, with how many requests each has had.
type library struct {
	byName map[string]*Script
	names  []string

	mu    sync.Mutex
	count map[string]int
}

func newLibrary(scripts []Script) (*library, error) {
	lib := &library{byName: map[string]*Script{}, count: map[string]int{}}
	for i := range scripts {
		s := &scripts[i]
		if lib.byName[s.Name] != nil {
			return nil, fault.Usagef("rename one of the files", "two scripts are called %q", s.Name)
		}
		lib.byName[s.Name] = s
		lib.names = append(lib.names, s.Name)
	}
	sort.Strings(lib.names)
	return lib, nil
}

// restart lets every script begin anew.
func (l *library) restart() {
	l.mu.Lock()
	clear(l.count)
	l.mu.Unlock()
}

// find returns the script of a path, and the path below its name. A single script answers at the root too.
func (l *library) find(path string) (s *Script, rest string) {
	name, below, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if s := l.byName[name]; s != nil {
		return s, "/" + below
	}
	if len(l.names) == 1 {
		return l.byName[l.names[0]], path
	}
	return nil, ""
}

// take counts a request and returns its answer; nil when the script has none for it.
func (l *library) take(s *Script, body []byte) (a *scriptAnswer, number int) {
	l.mu.Lock()
	l.count[s.Name]++
	number = l.count[s.Name]
	l.mu.Unlock()
	if !s.scenario {
		if number > 1 {
			for i := range s.answers[1:] {
				if later := &s.answers[i+1]; !has(body, later.lacks) {
					return later, number
				}
			}
		}
		return &s.answers[0], number
	}
	for i := range s.answers {
		if a := &s.answers[i]; a.from <= number && number <= a.to {
			return a, number
		}
	}
	return nil, number
}

// has tells whether a JSON body has a field.
func has(body []byte, name string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return false
	}
	_, ok := fields[name]
	return ok
}

// answers tells whether the script is what a request asks for. What clients ask about a server beforehand it does not count.
func (s *Script) takes(method, path string) bool {
	switch {
	case method != s.Method:
		return false
	case s.Endpoint != "":
		_, ok := match(s.Endpoint, path)
		return ok
	}
	return path != "/tokenize" && path != "/detokenize"
}

// play answers a request in script mode.
func (s *Server) play(c *conn, req *request) (*reply, bool) {
	script, path := s.plays.find(req.URL.Path)
	if script == nil || !script.takes(req.Method, path) {
		return nil, s.aroundScripts(c, req, script, path)
	}
	r := s.newReply(c, req, s.lang.refuse)
	r.rec.Script = script.Name
	answer, number := s.plays.take(script, req.body)
	if answer == nil {
		return r.refused(&apiError{status: http.StatusNotFound, kind: "NotFoundError", message: fmt.Sprintf("the script has no answer to request %d", number)})
	}
	return r, r.beginScript(answer)
}

// aroundScripts answers what belongs to no script: below the name of one, what the engine tells of itself.
func (s *Server) aroundScripts(c *conn, req *request, script *Script, path string) bool {
	switch {
	case req.Method != http.MethodGet:
	case req.URL.Path == "/":
		var list strings.Builder
		for _, name := range s.plays.names {
			list.WriteString(name + "\n")
		}
		return c.answer(http.StatusOK, "text/plain; charset=utf-8", []byte(list.String()))
	case script != nil && script.Dialect != "":
		return s.lookup(dialectOf(script.Dialect), c, req, path)
	case script != nil:
		return s.lookup(s.lang, c, req, path)
	}
	return notFound(c)
}

// beginScript sends a script's head at once, and the reply on its way.
func (r *reply) beginScript(a *scriptAnswer) bool {
	c := r.c
	r.rec.Status = a.status
	r.rec.grow(len(a.events) + 1)
	b := append([]byte(nil), "HTTP/1."+strconv.Itoa(c.minor)+" "+statusLine(a.status)+"\r\n"...)
	for _, f := range append(a.header[:len(a.header):len(a.header)], r.idField()) {
		b = append(b, f.name+": "+f.value+"\r\n"...)
		if strings.EqualFold(f.name, "content-type") {
			r.rec.Stream = strings.Contains(f.value, "event-stream") || strings.Contains(f.value, "ndjson")
		}
	}
	switch {
	case a.length:
		b = append(b, "Content-Length: "+strconv.Itoa(len(a.events[0].data))+"\r\n"...)
	case c.minor == 0:
		r.keep = false
	default:
		r.frame.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	}
	if !r.keep && c.minor > 0 {
		b = append(b, "Connection: close\r\n"...)
	}
	src := &scripted{answer: a, at: r.rec.Arrival}
	if !a.timed {
		src.ttft, src.itl = r.s.cfg.TTFT, r.s.cfg.ITL
		src.draws = rng.New(r.s.cfg.Seed, "sim/latency/"+strconv.FormatUint(r.rec.ID, 10))
	}
	r.src = src
	if _, err := c.nc.Write(append(b, "\r\n"...)); err != nil {
		r.abort()
		return false
	}
	r.start()
	return true
}

// scripted is the source of a script: one event, one chunk, one write. What follows the last event goes with it.
type scripted struct {
	answer *scriptAnswer
	i      int
	at     time.Duration // of the latest event, before the first: arrival
	ttft   Law           // of a script without times
	itl    Law
	draws  *rng.Stream
}

func (s *scripted) next(e *event) bool {
	events := s.answer.events
	if s.i < len(events) {
		ev := &events[s.i]
		switch {
		case s.answer.timed:
			s.at += ev.after
		case s.i == 0:
			s.at += s.ttft.duration(s.draws)
		default:
			s.at += s.itl.duration(s.draws)
		}
		e.body = append(e.body, ev.data...)
		e.cut()
	}
	s.i++
	e.due = s.at
	if s.i >= len(events) {
		e.then = s.answer.end
	}
	return true
}
