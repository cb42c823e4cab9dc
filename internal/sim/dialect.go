package sim

import (
	"net/http"
	"strings"
)

// dialects are the engines whose protocols are spoken, one file each. A dialect is a value without state, made anew for a server.
var dialects = []struct {
	name string
	make func() *dialect
}{
	{DefaultDialect, pronySim},
	{"openai", openAI},
	{"vllm", vLLM},
	{"sglang", sgLang},
	{"trtllm", trtLLM},
	{"nim", nim},
	{"dynamo", dynamo},
	{"anthropic", anthropic},
	{"tgi", tgi},
	{"triton", triton},
	{"llamacpp", llamaCpp},
	{"ollama", ollama},
	{"lmdeploy", lmDeploy},
	{"tei", tei},
}

// Dialects are the words for Config.Dialect, the default first.
func Dialects() (names []string) {
	for _, d := range dialects {
		names = append(names, d.name)
	}
	return names
}

func dialectOf(name string) *dialect {
	for _, d := range dialects {
		if d.name == name {
			return d.make()
		}
	}
	panic("sim: no dialect " + name) // Config.Validate has looked
}

// dialect is how an engine speaks: what it generates and what it tells of itself.
type dialect struct {
	fingerprint string // system_fingerprint
	routes      []route
	pages       []page
	refuse      refusal
	guards      func(path string) bool // asks for the key, where one is set
	keyHeader   string                 // that may bring it, beside a bearer token
}

// route is an endpoint that takes time: it generates, embeds or ranks.
type route struct {
	path   string // {model} in it stands for a name
	prefix string // of the ids
	stream string // content type of a stream
	read   func(s *Server, req *request) (*wish, *apiError)
	speak  func(g *generation, w *wish) speaker
	refuse refusal // nil = the dialect's
}

// page is an endpoint that is answered at once.
type page struct {
	method, path string
	kind         string // content type; "" = no body
	body         func(s *Server, req *request) ([]byte, *apiError)
}

func (r *route) matches(path string) (model string, ok bool) { return match(r.path, path) }

// match compares a path with a pattern, in which {model} stands for a name.
func match(pattern, path string) (model string, ok bool) {
	before, after, wild := strings.Cut(pattern, "{model}")
	if !wild {
		return "", pattern == path
	}
	rest, begins := strings.CutPrefix(path, before)
	model, ends := strings.CutSuffix(rest, after)
	return model, begins && ends && model != "" && !strings.Contains(model, "/")
}

func (r *route) refusal(d *dialect) refusal {
	if r.refuse != nil {
		return r.refuse
	}
	return d.refuse
}

// refusalOf is how what a path asks for is refused.
func (d *dialect) refusalOf(path string) refusal {
	for i := range d.routes {
		if _, ok := d.routes[i].matches(path); ok {
			return d.routes[i].refusal(d)
		}
	}
	return d.refuse
}

const (
	eventStream     = "text/event-stream"
	eventStreamUTF8 = "text/event-stream; charset=utf-8"
	jsonKind        = "application/json"
)

// at is the route of a form.
func (f *form) at(path string, read func(s *Server, req *request) (*wish, *apiError)) route {
	kind := f.stream
	if kind == "" {
		kind = eventStream
	}
	return route{path: path, prefix: f.prefix, stream: kind, read: read, speak: func(g *generation, _ *wish) speaker { return f.speak(g) }}
}

// tells is a page of JSON in which the words of a form may stand: $model, $created and $limit, the length of the context.
func tells(path, format string) page {
	t := parse(format)
	return page{http.MethodGet, path, jsonKind, func(s *Server, _ *request) ([]byte, *apiError) { return s.about(t), nil }}
}

// about fills in what is known of the server.
func (s *Server) about(t text) []byte {
	g := &generation{model: s.cfg.Model, created: s.start.Unix(), limit: s.cfg.MaxModelLen, epoch: s.start, print: s.lang.fingerprint}
	return (&speech{f: &form{}, g: g}).expand(nil, t)
}

// alive is a page without a body.
func alive(path string) page {
	return page{http.MethodGet, path, "", func(*Server, *request) ([]byte, *apiError) { return nil, nil }}
}

// plain is a page of text.
func plain(path, text string) page {
	return page{http.MethodGet, path, "text/plain; charset=utf-8", func(*Server, *request) ([]byte, *apiError) { return []byte(text), nil }}
}

// asks is a POST that is answered at once.
func asks(path string, body func(s *Server, req *request) ([]byte, *apiError)) page {
	return page{http.MethodPost, path, jsonKind, body}
}

// meters is a page of Prometheus.
func meters(path, kind string, write func(p *meterPage, r *readings)) page {
	return page{http.MethodGet, path, kind, func(s *Server, _ *request) ([]byte, *apiError) { return s.meterPage(write), nil }}
}

// below tells whether a path begins with one of several.
func below(path string, roots ...string) bool {
	for _, r := range roots {
		if strings.HasPrefix(path, r) {
			return true
		}
	}
	return false
}
