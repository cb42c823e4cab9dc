package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/fault"
)

// Script is what a file says is to be answered.
type Script struct {
	Name     string // of the file, without extension: the first element of the path under which it answers
	Title    string
	Endpoint string // path below the name that it answers, {model} in it standing for a name; "" = any
	Method   string
	Dialect  string // whose protocol it is; "" = that of the server

	scenario bool
	answers  []scriptAnswer
}

// scriptAnswer is one answer of a script.
type scriptAnswer struct {
	from, to int    // requests that it answers in a scenario, from 1
	lacks    string // of a later answer: the body field that the request must not have
	status   int
	header   []field
	events   []scriptEvent
	end      then
	timed    bool // events have times of their own; else Config.TTFT and ITL hold
	length   bool // one body with a length in place of chunks
}

type scriptEvent struct {
	after time.Duration // since the event before, the first: since arrival
	data  []byte
}

const scriptHint = "a case file (kind http or scenario), a .sse, .ndjson or .json body, a recorded .http, or a directory of them"

// LoadScripts reads a file, or the files of a directory that can be played; it does not go into subdirectories. Case files have the
// form of cases/README.md, others are bodies: an event stream is played event by event, NDJSON line by line.
func LoadScripts(path string) ([]Script, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "read script", scriptHint)
	}
	if !info.IsDir() {
		s, err := loadScript(path)
		if err == nil && s == nil {
			err = errNotPlayable
		}
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "read script "+path, scriptHint)
		}
		return []Script{*s}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fault.Wrap(fault.Usage, err, "read scripts", scriptHint)
	}
	var out []Script
	for _, e := range entries {
		if e.IsDir() || e.Name() == "manifest.json" {
			continue
		}
		s, err := loadScript(filepath.Join(path, e.Name()))
		switch {
		case err != nil:
			return nil, fault.Wrap(fault.Usage, err, "read script "+filepath.Join(path, e.Name()), scriptHint)
		case s != nil:
			out = append(out, *s)
		}
	}
	if len(out) == 0 {
		return nil, fault.Usagef(scriptHint, "%s holds no script", path)
	}
	return out, nil
}

var errNotPlayable = errors.New("nothing to be played")

// loadScript reads one file; nil when it is none to be played.
func loadScript(path string) (*Script, error) {
	base := filepath.Base(path)
	ext := filepath.Ext(base)
	switch {
	case ext == ".sse", ext == ".ndjson", ext == ".http", ext == ".json" && !strings.HasSuffix(base, ".request.json"):
	default:
		return nil, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Script{Name: strings.TrimSuffix(base, ext), Method: http.MethodPost}
	s.place(filepath.Dir(path), base)
	switch ext {
	case ".sse":
		s.answers = []scriptAnswer{body(http.StatusOK, []field{{"Content-Type", "text/event-stream; charset=utf-8"}}, splitEvents(raw))}
	case ".ndjson":
		s.answers = []scriptAnswer{body(http.StatusOK, []field{{"Content-Type", "application/x-ndjson"}}, splitLines(raw))}
	case ".json":
		return loadJSON(s, raw)
	default:
		// NAME.response.http; without a NAME.request.json it was a GET
		s.Name = strings.TrimSuffix(s.Name, ".response")
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), s.Name+".request.json")); errors.Is(err, fs.ErrNotExist) {
			s.Method = http.MethodGet
		}
		a, err := parseRecorded(raw)
		if err != nil {
			return nil, err
		}
		s.answers = []scriptAnswer{a}
	}
	return s, nil
}

// protocolPaths are the endpoints of the protocols that a manifest.json beside the files names.
var protocolPaths = map[string]string{
	"openai-chat": "/v1/chat/completions", "openai-completions": "/v1/completions", "openai-responses": "/v1/responses",
	"anthropic": "/v1/messages", "vllm-generate": "/inference/v1/generate", "sglang-generate-cumulative": "/generate",
	"sglang-generate-incremental": "/generate", "lmdeploy-generate": "/generate", "tgi-generate": "/generate_stream",
	"triton-generate": "/v2/models/{model}/generate_stream", "llamacpp-completion": "/completion", "ollama-generate": "/api/generate",
	"ollama-chat": "/api/chat",
}

// place finds the endpoint and the dialect of a file of which a manifest.json in its directory knows the protocol.
func (s *Script) place(dir, base string) {
	var manifest []struct{ File, Protocol string }
	raw, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || json.Unmarshal(raw, &manifest) != nil {
		return
	}
	for _, m := range manifest {
		if m.File == base {
			s.Endpoint = protocolPaths[m.Protocol]
		}
	}
	if name, _, _ := strings.Cut(base, "-"); slices.Contains(Dialects(), name) {
		s.Dialect = name
	}
}

// body is the answer of a file without times.
func body(status int, header []field, parts [][]byte) scriptAnswer {
	a := scriptAnswer{from: 1, to: math.MaxInt, status: status, header: header, end: clean}
	for _, p := range parts {
		a.events = append(a.events, scriptEvent{data: p})
	}
	return a
}

// splitEvents cuts an event stream behind each blank line.
func splitEvents(raw []byte) (out [][]byte) {
	for len(raw) > 0 {
		end := len(raw)
		for _, blank := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
			if k := bytes.Index(raw, []byte(blank)); k >= 0 {
				end = min(end, k+len(blank))
			}
		}
		out, raw = append(out, raw[:end]), raw[end:]
	}
	return out
}

// splitLines cuts behind each line feed.
func splitLines(raw []byte) (out [][]byte) {
	for _, line := range bytes.SplitAfter(raw, []byte("\n")) {
		if len(line) > 0 {
			out = append(out, line)
		}
	}
	return out
}

// parseRecorded reads a recorded response: status line, header, body without transfer coding.
func parseRecorded(raw []byte) (a scriptAnswer, err error) {
	head, rest, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if plain, after, found := bytes.Cut(raw, []byte("\n\n")); found && (!ok || len(plain) < len(head)) {
		head, rest, ok = plain, after, true
	}
	if !ok {
		return a, errors.New("no head")
	}
	lines := strings.Split(strings.ReplaceAll(string(head), "\r\n", "\n"), "\n")
	parts := strings.SplitN(lines[0], " ", 3)
	if len(parts) < 2 || !strings.HasPrefix(parts[0], "HTTP/1.") {
		return a, fmt.Errorf("%q is no status line", lines[0])
	}
	status, err := strconv.Atoi(parts[1])
	if err != nil || status < 100 || status > 999 {
		return a, fmt.Errorf("%q is no status line", lines[0])
	}
	var header []field
	kind, chunked := "", false
	for _, l := range lines[1:] {
		name, value, ok := strings.Cut(l, ":")
		if !ok {
			return a, fmt.Errorf("%q is no header field", l)
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "transfer-encoding":
			chunked = true
			continue
		case "content-length", "connection":
			continue
		case "content-type":
			kind = value
		}
		header = append(header, field{name, value})
	}
	pieces := [][]byte{rest}
	switch {
	case strings.Contains(kind, "event-stream"):
		pieces = splitEvents(rest)
	case strings.Contains(kind, "ndjson"):
		pieces = splitLines(rest)
	}
	a = body(status, header, pieces)
	a.length = !chunked && len(pieces) == 1
	return a, nil
}

// caseFile is the form of the files in cases, as far as they are played.
type caseFile struct {
	Kind     string     `json:"kind"`
	Title    string     `json:"title"`
	Endpoint string     `json:"endpoint"`
	Scripts  []caseStep `json:"scripts"`
	Then     []caseStep `json:"then"`
	caseStep
}

type caseStep struct {
	Endpoint string     `json:"endpoint"`
	Status   int        `json:"status"`
	Headers  headerList `json:"headers"`
	Events   []struct {
		AfterMS float64 `json:"after_ms"`
		Data    []byte  `json:"data_b64"`
	} `json:"events"`
	End                string `json:"end"`
	When               string `json:"when"`
	ForRequest         int    `json:"for_request"`
	ForRequestAtServer string `json:"for_request_at_server"`
}

// headerList is a JSON object in its order.
type headerList []field

func (h *headerList) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return errors.New("headers must be an object")
	}
	for dec.More() {
		var f field
		name, err := dec.Token()
		if err != nil {
			return err
		}
		f.name = name.(string) // a key is always a string
		if err := dec.Decode(&f.value); err != nil {
			return err
		}
		*h = append(*h, f)
	}
	return nil
}

// loadJSON reads a case file, or a body in JSON.
func loadJSON(s *Script, raw []byte) (*Script, error) {
	var f caseFile
	kindless := json.Unmarshal(raw, &f) != nil || f.Kind == ""
	switch {
	case kindless && json.Valid(raw):
		var probe struct{ Kind, Name string }
		if json.Unmarshal(raw, &probe) == nil && probe.Kind != "" {
			return nil, json.Unmarshal(raw, &f) // a case file that is none
		}
		s.answers = []scriptAnswer{body(http.StatusOK, []field{{"Content-Type", "application/json"}}, [][]byte{raw})}
		s.answers[0].length = true
		return s, nil
	case kindless:
		return nil, json.Unmarshal(raw, &f)
	case f.Kind == "http":
		s.Title, s.Endpoint = f.Title, f.Endpoint
		return s, s.takeCase(f)
	case f.Kind == "scenario":
		s.Title, s.scenario = f.Title, true
		return s, s.takeScenario(f)
	}
	return nil, nil // data for another purpose
}

func (s *Script) takeCase(f caseFile) error {
	first, err := f.caseStep.answer()
	if err != nil {
		return err
	}
	s.answers = append(s.answers, first)
	for _, step := range f.Then {
		a, err := step.answer()
		if err != nil {
			return err
		}
		m := whenLacks.FindStringSubmatch(step.When)
		if m == nil {
			return fmt.Errorf("condition %q is not understood", step.When)
		}
		a.lacks = m[1]
		s.answers = append(s.answers, a)
	}
	return nil
}

// whenLacks is the one condition of `then` that there is.
var whenLacks = regexp.MustCompile(`^the next request carries no (\w+)$`)

func (s *Script) takeScenario(f caseFile) error {
	for _, step := range f.Scripts {
		a, err := step.answer()
		if err != nil {
			return err
		}
		if a.from, a.to, err = step.requests(); err != nil {
			return err
		}
		if s.Endpoint != "" && s.Endpoint != step.Endpoint {
			return errors.New("a scenario answers one endpoint")
		}
		s.Endpoint = step.Endpoint
		s.answers = append(s.answers, a)
	}
	if len(s.answers) == 0 {
		return errNotPlayable
	}
	return nil
}

// requests is the range that a step answers: for_request, or for_request_at_server as "3", "1..5" or "6..".
func (c caseStep) requests() (from, to int, err error) {
	if c.ForRequest > 0 {
		return c.ForRequest, c.ForRequest, nil
	}
	low, high, ranged := strings.Cut(c.ForRequestAtServer, "..")
	from, err = strconv.Atoi(low)
	to = from
	if ranged {
		if to = math.MaxInt; high != "" && err == nil {
			to, err = strconv.Atoi(high)
		}
	}
	if err != nil || from < 1 || to < from {
		return 0, 0, fmt.Errorf("requests %q are not understood", c.ForRequestAtServer)
	}
	return from, to, nil
}

func (c caseStep) answer() (a scriptAnswer, err error) {
	a = scriptAnswer{from: 1, to: math.MaxInt, status: c.Status, header: c.Headers, timed: true}
	if c.Status < 100 || c.Status > 999 {
		return a, fmt.Errorf("status %d is not possible", c.Status)
	}
	for _, e := range c.Events {
		if e.AfterMS < 0 {
			return a, errors.New("after_ms is negative")
		}
		a.events = append(a.events, scriptEvent{time.Duration(math.Round(e.AfterMS * float64(time.Millisecond))), e.Data})
	}
	switch c.End {
	case "clean":
		a.end = clean
	case "cut":
		a.end = cut
	case "hang":
		a.end = hang
	default:
		return a, fmt.Errorf("end %q is not understood", c.End)
	}
	return a, nil
}
