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
	if s.cfg.APIKey != "" && strings.HasPrefix(path, "/v1") && req.Method != http.MethodOptions && !s.authorized(req) {
		return nil, c.answerJSON(http.StatusUnauthorized, []byte(`{"error":"Unauthorized"}`))
	}
	switch path {
	case "/v1/chat/completions", "/v1/completions":
		if req.Method == http.MethodPost {
			return s.generate(c, req, path == "/v1/chat/completions")
		}
		return nil, methodNotAllowed(c)
	case "/tokenize", "/detokenize":
		if req.Method != http.MethodPost {
			return nil, methodNotAllowed(c)
		}
		answer := s.tokenizeEndpoint
		if path == "/detokenize" {
			answer = s.detokenizeEndpoint
		}
		body, err := answer(req)
		if err != nil {
			return nil, c.answerJSON(err.status, err.body())
		}
		return nil, c.answerJSON(http.StatusOK, body)
	}
	var body []byte
	kind := "application/json"
	switch path {
	case "/health", "/ping":
		kind = ""
	case "/version":
		body = []byte(`{"version":"0.32.0"}`)
	case "/v1/models":
		body = s.modelList()
	case "/load":
		body = append(strconv.AppendInt([]byte(`{"server_load":`), s.loaded.Load(), 10), '}')
	case "/metrics":
		kind, body = "text/plain; version=1.0.0; charset=utf-8", s.metricsPage()
	default:
		return nil, notFound(c)
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return nil, methodNotAllowed(c)
	}
	if req.Method == http.MethodHead {
		return nil, c.answerHead(http.StatusOK, kind, len(body))
	}
	return nil, c.answer(http.StatusOK, kind, body)
}

func notFound(c *conn) bool {
	return c.answerJSON(http.StatusNotFound, []byte(`{"detail":"Not Found"}`))
}

func methodNotAllowed(c *conn) bool {
	return c.answerJSON(http.StatusMethodNotAllowed, []byte(`{"detail":"Method Not Allowed"}`))
}

func (s *Server) authorized(req *request) bool {
	scheme, key, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "bearer") && key == s.cfg.APIKey
}

// modelList is the body of GET /v1/models.
func (s *Server) modelList() []byte {
	created := strconv.FormatInt(s.start.Unix(), 10)
	name := string(appendQuoted(nil, s.cfg.Model))
	return []byte(`{"object":"list","data":[{"id":` + name + `,"object":"model","created":` + created +
		`,"owned_by":"prony-sim","root":` + name + `,"parent":null,"max_model_len":` + strconv.Itoa(s.cfg.MaxModelLen) +
		`,"permission":[{"id":"modelperm-prony-sim","object":"model_permission","created":` + created +
		`,"allow_create_engine":false,"allow_sampling":true,"allow_logprobs":true,"allow_search_indices":false,"allow_view":true,` +
		`"allow_fine_tuning":false,"organization":"*","group":null,"is_blocking":false}]}]}`)
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

const page429 = `{"error":{"message":"Rate limit reached","type":"TooManyRequestsError","param":null,"code":429}}`

const htmlPage = "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body><h1>Sign in</h1></body></html>\n"

// newReply makes the reply to a request, with its truth begun.
func (s *Server) newReply(c *conn, req *request) *reply {
	r := &reply{s: s, c: c, done: make(chan struct{}), wake: make(chan struct{}, 1), out: c.out[:0], ev: c.ev, keep: !c.close, turn: c.begun,
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

// generate answers a chat or a completion.
func (s *Server) generate(c *conn, req *request, chat bool) (*reply, bool) {
	r := s.newReply(c, req)
	r.faults = s.cfg.strike(r.rec.ID)
	r.rec.Fault = r.faults.words
	if r.faults.close {
		r.keep, c.close = false, true
	}
	if f := r.faults.instead; f != nil {
		return r.instead(f)
	}
	bad := jsonOnly(req)
	var g *generation
	if bad == nil {
		g, bad = s.parseGeneration(chat, req.body)
	}
	if bad != nil {
		return r.whole(bad.status, "application/json", bad.body())
	}
	if f := r.faults.middle; f != nil && f.Kind == FaultError && !g.stream {
		return r.instead(&Fault{Kind: FaultFail, Status: http.StatusInternalServerError})
	}
	r.rec.Status, r.rec.Stream, r.rec.Prompt = http.StatusOK, g.stream, len(g.prompt)
	g.name(r.rec.Client, s.cfg.Seed, r.rec.ID, req.wall)
	g.noUsage = r.faults.noUsage
	if r.faults.empty {
		g.output, g.finish = 1, "stop"
	}
	r.gen = g
	src := &generated{emitter: newEmitter(g)}
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
	return r, r.begin(g.stream)
}

// begin sends the head where that goes ahead of the body, and the reply on its way; false when the connection has gone.
func (r *reply) begin(stream bool) bool {
	c, kind, writes := r.c, "application/json", 1
	if stream {
		kind, writes = "text/event-stream; charset=utf-8", min(r.gen.output/r.s.cfg.TokensPerChunk+2, maxWritesPerRequest)
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
		return r.whole(http.StatusTooManyRequests, "application/json", []byte(page429), field{"retry-after", seconds})
	case FaultHTML:
		return r.whole(http.StatusOK, "text/html; charset=utf-8", []byte(htmlPage))
	}
	if f.Text {
		return r.whole(f.Status, "text/plain; charset=utf-8", []byte(http.StatusText(f.Status)))
	}
	e := apiError{f.Status, strings.ReplaceAll(http.StatusText(f.Status), " ", "") + "Error", "", http.StatusText(f.Status)}
	if f.Status == http.StatusInternalServerError {
		e.kind = "InternalServerError"
	}
	return r.whole(f.Status, "application/json", e.body())
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
			bad := invalid("since must be a sequence number")
			return c.answerJSON(bad.status, bad.body())
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
