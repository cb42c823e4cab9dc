package sim

import (
	"bufio"
	"encoding/json"
	"hash/fnv"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// handle answers a request. When the answer goes on after the return it is given back; else keep tells whether the connection may
// be used again.
func (s *Server) handle(c *conn, req *request) (under *reply, keep bool) {
	path := req.URL.Path
	if path == "/truth" {
		return nil, s.truthEndpoint(c, req)
	}
	if s.plays != nil {
		return s.play(c, req)
	}
	d, known := s.lang, false
	if s.cfg.APIKey != "" && d.guards(path) && req.Method != http.MethodOptions && !s.authorized(req) {
		return nil, c.refused(d.refusalOf(path), &apiError{status: http.StatusUnauthorized, kind: "AuthenticationError", cause: unauthorized,
			message: "Unauthorized"})
	}
	for i := range d.routes {
		r := &d.routes[i]
		if model, ok := r.matches(path); ok {
			if req.Method == http.MethodPost {
				req.model = model
				return s.generate(c, req, r)
			}
			known = true
		}
	}
	if known {
		return nil, methodNotAllowed(c)
	}
	return nil, s.lookup(d, c, req, path)
}

// lookup answers what needs no generation.
func (s *Server) lookup(d *dialect, c *conn, req *request, path string) bool {
	known := false
	for i := range d.pages {
		p := &d.pages[i]
		_, ok := match(p.path, path)
		head := req.Method == http.MethodHead && p.method == http.MethodGet
		if known = known || ok; !ok || req.Method != p.method && !head {
			continue
		}
		body, err := p.body(s, req)
		switch {
		case err != nil:
			return c.refused(d.refuse, err)
		case head:
			return c.answerHead(http.StatusOK, p.kind, len(body))
		}
		return c.answer(http.StatusOK, p.kind, body)
	}
	if known {
		return methodNotAllowed(c)
	}
	return notFound(c)
}

// refused answers with a refusal, ahead of any reply.
func (c *conn) refused(form refusal, e *apiError) bool {
	status, body := form(e)
	return c.answerJSON(status, body)
}

func notFound(c *conn) bool {
	return c.answerJSON(http.StatusNotFound, []byte(`{"detail":"Not Found"}`))
}

func methodNotAllowed(c *conn) bool {
	return c.answerJSON(http.StatusMethodNotAllowed, []byte(`{"detail":"Method Not Allowed"}`))
}

func (s *Server) authorized(req *request) bool {
	scheme, key, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && key == s.cfg.APIKey || s.lang.keyHeader != "" && req.Header.Get(s.lang.keyHeader) == s.cfg.APIKey
}

func (s *Server) tokenizeEndpoint(req *request) ([]byte, *apiError) {
	var in struct {
		Model               string         `json:"model"`
		Prompt              *string        `json:"prompt"`
		Messages            *[]messageBody `json:"messages"`
		AddGenerationPrompt *bool          `json:"add_generation_prompt"`
		ReturnTokenStrs     bool           `json:"return_token_strs"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	var ids []int32
	switch {
	case in.Prompt != nil:
		ids = tokenize(nil, *in.Prompt)
	case in.Messages != nil:
		chat, err := chatMessages(*in.Messages)
		if err != nil {
			return nil, err
		}
		ids = tokenizeChat(chat, in.AddGenerationPrompt == nil || *in.AddGenerationPrompt)
	default:
		return nil, missingField("prompt")
	}
	b := append([]byte(nil), `{"count":`...)
	b = strconv.AppendInt(b, int64(len(ids)), 10)
	b = append(b, `,"max_model_len":`...)
	b = strconv.AppendInt(b, int64(s.cfg.MaxModelLen), 10)
	b = append(b, `,"tokens":`...)
	b = appendIDs(b, ids)
	b = append(b, `,"token_strs":`...)
	if !in.ReturnTokenStrs {
		return append(b, "null}"...), nil
	}
	b = append(b, '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, string(appendToken(nil, id)))
	}
	return append(b, "]}"...), nil
}

func (s *Server) detokenizeEndpoint(req *request) ([]byte, *apiError) {
	var in struct {
		Model  string          `json:"model"`
		Tokens json.RawMessage `json:"tokens"`
	}
	if err := s.readJSON(req, &in); err != nil {
		return nil, err
	}
	if err := s.checkModel(in.Model); err != nil {
		return nil, err
	}
	if len(in.Tokens) == 0 || in.Tokens[0] != '[' {
		return nil, missingField("tokens")
	}
	ids, err := tokenList(in.Tokens)
	if err != nil {
		return nil, err
	}
	return append(appendQuoted([]byte(`{"prompt":`), detokenize(ids)), '}'), nil
}

// readJSON decodes a body, which must say that it is JSON.
func (s *Server) readJSON(req *request, into any) *apiError {
	if err := jsonOnly(req); err != nil {
		return err
	}
	if err := json.Unmarshal(req.body, into); err != nil {
		return badJSON(err)
	}
	return nil
}

func jsonOnly(req *request) *apiError {
	kind, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return unprocessable("", "Unsupported Media Type: Only 'application/json' is allowed")
	}
	return nil
}

const htmlPage = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"

// newReply makes the reply to a request, with its truth begun.
func (s *Server) newReply(c *conn, req *request, refuse refusal) *reply {
	r := &reply{s: s, c: c, refuse: refuse, done: make(chan struct{}), wake: make(chan struct{}, 1), out: c.out[:0], ev: c.ev, keep: !c.close, turn: c.begun,
		rec: TruthRecord{ID: s.ids.Add(1), Client: req.Header.Get("X-Request-Id"), Path: req.URL.Path, Arrival: req.arrival,
			ArrivalWall: req.wall.UnixNano(), ArrivalStamp: "user"}}
	if req.stamped {
		r.rec.ArrivalStamp = "socket"
	}
	c.out, c.ev = nil, event{}
	s.loaded.Add(1)
	return r
}

func (r *reply) idField() field { return field{"x-prony-request", strconv.FormatUint(r.rec.ID, 10)} }

// generate answers a request to generate, or to embed or rank.
func (s *Server) generate(c *conn, req *request, by *route) (*reply, bool) {
	r := s.newReply(c, req, by.refusal(s.lang))
	r.faults = s.cfg.strike(r.rec.ID)
	r.rec.Fault = r.faults.words
	if r.faults.close {
		r.keep, c.close = false, true
	}
	if f := r.faults.instead; f != nil {
		return r.instead(f)
	}
	var g *generation
	w, bad := by.read(s, req)
	if bad == nil {
		if w.prompt == nil && w.loads != nil {
			return r.whole(http.StatusOK, "application/json", w.loads(s, r.rec.ID))
		}
		g, bad = s.generation(w)
	}
	if bad != nil {
		return r.refused(bad)
	}
	if f := r.faults.middle; f != nil && f.Kind == FaultError && !g.stream {
		return r.instead(&Fault{Kind: FaultFail, Status: http.StatusInternalServerError})
	}
	r.rec.Status, r.rec.Stream, r.rec.Prompt = http.StatusOK, g.stream, len(g.prompt)
	g.name(by.prefix, r.rec.Client, s.cfg.Seed, r.rec.ID, req.wall)
	g.epoch, g.arrival, g.last = s.start, req.arrival, req.arrival
	g.noUsage = r.faults.noUsage
	if r.faults.empty {
		g.output, g.finish, g.think, g.call = 1, finishStop, 0, ""
	}
	r.gen = g
	src := &generated{generation: g, speaker: by.speak(g, w), begun: s.now()}
	r.src = src
	if s.drive == nil {
		src.line = s.exactTimes(r.rec.ID, req.arrival, g.output)
	} else {
		times := &engineTimes{gen: g}
		src.line = times
		r.seq = &sequence{arrival: req.arrival, prompt: g.prompt, answer: g.token, output: g.output, reply: r, times: times}
		if g.salt != "" {
			h := fnv.New64a()
			h.Write([]byte(g.salt)) // a hash never fails to write
			r.seq.salt = h.Sum64()
		}
	}
	s.met.running.Add(1)
	return r, r.begin(g.stream, by.stream)
}

// begin sends the head where that goes ahead of the body, and the reply on its way; false when the connection has gone.
func (r *reply) begin(stream bool, streams string) bool {
	c, kind, writes := r.c, "application/json", 1
	if stream {
		kind, writes = streams, min(r.gen.output/r.s.cfg.TokensPerChunk+3, maxWritesPerRequest)
	}
	r.rec.grow(writes)
	fields := []field{{"content-type", kind}, r.idField()}
	if r.faults.gzip {
		r.frame.compress()
		fields = append(fields, field{"content-encoding", "gzip"})
	}
	switch {
	case r.faults.http10:
		r.keep, c.minor = false, 0
	case !stream:
		r.frame.length = true
	case c.minor == 0:
		r.keep = false
	default:
		r.frame.chunked = true
		fields = append(fields, field{"transfer-encoding", "chunked"})
	}
	r.frame.head = c.head(http.StatusOK, r.keep, fields...)
	if stream {
		head := append(r.frame.head, "\r\n"...)
		r.frame.head = nil
		if _, err := c.nc.Write(head); err != nil {
			r.abort()
			return false
		}
	}
	// known to the scheduler only now: its outputs need a reply that is under way
	r.start()
	if r.seq != nil {
		r.s.drive.add(r.seq)
	}
	return true
}

// grow makes room for n writes.
func (t *TruthRecord) grow(n int) {
	t.Due, t.Write = make([]time.Duration, 0, n), make([]time.Duration, 0, n)
	t.Wall, t.Tokens = make([]int64, 0, n), make([]int32, 0, n)
}

// instead answers with a fault in place of the generation.
func (r *reply) instead(f *Fault) (*reply, bool) {
	switch f.Kind {
	case FaultThrottle:
		seconds := strconv.Itoa(int((f.Delay + time.Second - 1) / time.Second))
		_, body := r.refuse(&apiError{status: http.StatusTooManyRequests, kind: "TooManyRequestsError", message: "Rate limit reached"})
		return r.whole(http.StatusTooManyRequests, "application/json", body, field{"retry-after", seconds})
	case FaultHTML:
		return r.whole(http.StatusOK, "text/html; charset=utf-8", []byte(htmlPage))
	}
	if f.Text {
		return r.whole(f.Status, "text/plain; charset=utf-8", []byte(http.StatusText(f.Status)))
	}
	e := apiError{status: f.Status, kind: strings.ReplaceAll(http.StatusText(f.Status), " ", "") + "Error", message: http.StatusText(f.Status)}
	if f.Status == http.StatusInternalServerError {
		e.kind = "InternalServerError"
	}
	_, body := r.refuse(&e)
	return r.whole(f.Status, "application/json", body)
}

// refused answers with a refusal.
func (r *reply) refused(e *apiError) (*reply, bool) {
	status, body := r.refuse(e)
	return r.whole(status, "application/json", body)
}

// whole answers at once, and ends the reply.
func (r *reply) whole(status int, kind string, body []byte, fields ...field) (*reply, bool) {
	r.rec.Status = status
	r.rec.grow(0)
	ok := r.c.answer(status, kind, body, append(fields, r.idField())...)
	r.mu.Lock()
	how := Complete
	if !ok && r.keep {
		how = Aborted
	}
	r.end(how)
	r.mu.Unlock()
	r.settle()
	return r, r.keep
}

// truthEndpoint shows or clears the truth.
func (s *Server) truthEndpoint(c *conn, req *request) bool {
	switch req.Method {
	case http.MethodDelete:
		s.truth.clear()
		if s.plays != nil {
			s.plays.restart()
		}
		return c.answerJSON(http.StatusOK, []byte(`{"cleared":true}`))
	case http.MethodGet:
	default:
		return methodNotAllowed(c)
	}
	since := uint64(0)
	if v := req.URL.Query().Get("since"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return c.refused(vllmRefusal, invalid("since must be a sequence number"))
		}
		since = n
	}
	// it can be large: in chunks, to a client of HTTP/1.0 until the end of the connection
	fields := []field{{"content-type", "application/jsonl"}}
	keep := !c.close && c.minor > 0
	if c.minor > 0 {
		fields = append(fields, field{"transfer-encoding", "chunked"})
	}
	if _, err := c.nc.Write(append(c.head(http.StatusOK, keep, fields...), "\r\n"...)); err != nil {
		return false
	}
	if c.minor == 0 {
		w := bufio.NewWriterSize(c.nc, 64<<10)
		return s.writeTruth(w, since) == nil && w.Flush() == nil && keep
	}
	chunks := httputil.NewChunkedWriter(c.nc)
	w := bufio.NewWriterSize(chunks, 64<<10)
	if s.writeTruth(w, since) != nil || w.Flush() != nil || chunks.Close() != nil {
		return false
	}
	_, err := c.nc.Write([]byte("\r\n")) // the end of the empty trailer, which Close leaves out
	return err == nil && keep
}

// answerHead answers HEAD.
func (c *conn) answerHead(status int, contentType string, length int) bool {
	fields := []field{{"content-length", strconv.Itoa(length)}}
	if contentType != "" {
		fields = append(fields, field{"content-type", contentType})
	}
	_, err := c.nc.Write(append(c.head(status, !c.close, fields...), "\r\n"...))
	return err == nil && !c.close
}
