package report

import (
	"encoding/json"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/prony-bench/prony/internal/bench"
)

// facts collects what is known: empty texts are left out.
type facts []Fact

func (f *facts) add(name, text string) {
	if text = clean(text); text != "" {
		*f = append(*f, Fact{name, text})
	}
}

func (f *facts) addIf(ok bool, name, text string) {
	if ok {
		f.add(name, text)
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// conditions fills in every condition of the run.
func (b *builder) conditions(m *Model) {
	spec := &b.man.Spec
	section := func(name string, f facts) {
		if len(f) > 0 {
			m.Conditions = append(m.Conditions, Section{name, f})
		}
	}

	var f facts
	t := spec.Target
	f.add("URL", strings.Join(t.URLs, ", "))
	f.add("engine", t.Engine)
	f.add("endpoint", joined(" at ", t.Endpoint, t.Path))
	f.add("model", t.Model)
	f.add("streaming", yesNo(t.Stream))
	f.addIf(t.Stream, "token counts asked for", yesNo(t.Usage))
	f.add("field of the output limit", t.MaxTokensField)
	f.add("extra body", string(t.ExtraBody))
	f.add("extra headers (values not kept)", strings.Join(t.Headers, ", "))
	f.addIf(t.HasKey, "API key", "sent, not kept")
	section("Target", f)

	f = nil
	w := spec.Workload
	f.add("data set", joined(", ", w.Dataset, w.Path))
	f.add("prompt", w.Prompt)
	f.add("input tokens", w.ISL)
	f.add("output tokens", w.OSL)
	f.addIf(w.RangeRatio != 0, "spread of the lengths", plain(w.RangeRatio))
	f.add("prompts made by", w.PromptSource)
	f.add("output length forced", yesNo(w.ForceLength))
	f.add("seed", b.seedWords())
	section("Workload", f)

	f = nil
	for _, p := range spec.Phases {
		f.add(phaseName(p.Name), joined(", ", loadWords(p.Load), stopWords(p.Stop)))
	}
	for _, l := range spec.SLO {
		f.add("limit of "+clean(l.Metric), limitWords(l.Max))
	}
	f.addIf(spec.MaxErrorRate > 0 && spec.MaxErrorRate < 1, "stops above this share of failures", percent(spec.MaxErrorRate))
	section("Load", f)

	f = nil
	s := spec.Sampling
	f.add("temperature", given(s.Temperature, plain))
	f.add("top p", given(s.TopP, plain))
	f.add("top k", given(s.TopK, strconv.Itoa))
	f.add("seed of the server", given(s.Seed, func(n int64) string { return strconv.FormatInt(n, 10) }))
	f.addIf(len(s.Stop) > 0, "stop", quotedList(s.Stop))
	f.add("goes on after the end token", yesNo(s.IgnoreEOS))
	f.addIf(s.MinTokens > 0, "least output tokens", count(s.MinTokens))
	f.addIf(s.Logprobs != nil, "log probabilities", given(s.Logprobs, strconv.Itoa))
	section("Sampling", f)

	f = nil
	c := spec.Client
	f.add("time limit of a request", boundWords(c.Timeout))
	f.add("time limit of a connection", boundWords(c.ConnectTimeout))
	f.add("connections", map[string]string{"reuse": "reused", "new": "a new one a request"}[c.Connection])
	f.add("HTTP", c.HTTP)
	f.add("kept", joined(", ", "numbers of each request", worded(spec.Keep.Events, "times of events"), worded(spec.Keep.Text, "answers"), worded(spec.Keep.Transcripts, "raw bytes")))
	section("Client", f)

	f = nil
	for _, k := range sortedKeys(spec.Metadata) {
		f.add(clean(k), spec.Metadata[k])
	}
	section("Metadata", f)
}

func worded(yes bool, word string) string {
	if yes {
		return word
	}
	return ""
}

// given writes a setting, or that it was left to the server.
func given[T any](v *T, write func(T) string) string {
	if v == nil {
		return "not sent: the server's default"
	}
	return write(*v)
}

func boundWords(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return span(d)
}

func quotedList(words []string) string {
	b, err := json.Marshal(words)
	if err != nil {
		return "" // strings always have a form
	}
	return string(b)
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func phaseName(name string) string {
	switch name {
	case bench.Warmup:
		return "warm-up"
	case bench.Measure:
		return "measurement"
	}
	return clean(name)
}

// stopWords says when a phase ends.
func stopWords(s bench.Stop) string {
	switch {
	case s.Requests > 0:
		return plural(s.Requests, "request", "requests")
	case s.Duration > 0:
		return joined(", ", span(s.Duration), prefix("then up to ", worded(s.Grace > 0, span(s.Grace)+" for what is in flight")))
	}
	return ""
}

func (b *builder) seedWords() string {
	s := strconv.FormatUint(b.man.Spec.Seed, 10)
	if b.man.Spec.SeedGiven {
		return s + " (given)"
	}
	return s + " (drawn anew for this run)"
}

// environment fills in where the run was made.
func (b *builder) environment(m *Model) {
	section := func(name string, f facts) {
		if len(f) > 0 {
			m.Environment = append(m.Environment, Section{name, f})
		}
	}
	sheet := &b.man.Sheet
	for _, e := range sheet.Engines {
		var f facts
		f.add("URL", e.URL)
		f.add("engine", joined(" ", e.Name, e.Version))
		f.add("model", e.Model)
		f.addIf(e.MaxLen > 0, "context length", count(e.MaxLen)+" tokens")
		f.addIf(e.Slots > 0, "slots", count(e.Slots))
		f.add("quantisation", e.Quant)
		f.addIf(e.Vocab > 0, "vocabulary", count(e.Vocab))
		f.add("addresses", strings.Join(e.Addresses, ", "))
		section("Server", f)
	}

	var f facts
	for _, g := range sheet.GPUs {
		f.add("GPU", joined(", ", g.Name, worded(g.MemoryMiB > 0, gibibytes(g.MemoryMiB*(1<<20))), prefix("driver ", g.Driver), worded(g.PowerLimitW > 0, "limit "+number(g.PowerLimitW)+" W")))
	}
	f.addIf(len(sheet.GPUs) == 0 && sheet.GPUNote != "", "GPU", "none found: "+sheet.GPUNote)
	section("GPUs of the client's machine", f)

	f = nil
	h := sheet.Host
	f.add("CPU", h.CPU)
	f.addIf(h.Cores > 0, "cores", joined(", ", count(h.Cores), worded(h.CPULimit > 0, "limited to "+number(h.CPULimit)), prefix("governor ", h.Governor)))
	f.addIf(h.MemoryBytes > 0, "memory", joined(", ", gibibytes(float64(h.MemoryBytes)), worded(h.MemoryLimit > 0, "limited to "+gibibytes(float64(h.MemoryLimit)))))
	f.add("system", joined(" ", h.OS, h.Kernel, h.Arch))
	f.add("virtual machine", h.Virtual)
	section("Client's machine", f)

	f = nil
	f.add("prony", joined(", ", b.man.Prony, b.man.Go))
	c := b.man.Client
	f.add("client", joined(", ", c.Engine, prefix("stamps: ", c.Stamp)))
	f.addIf(c.Connections > 0, "connections", count(c.Connections))
	f.addIf(c.Reads > 0, "reads", joined(", ", count(c.Reads), worded(c.Unstamped > 0, count(c.Unstamped)+" without a kernel stamp"), "delay p99 "+millis(float64(c.ReadDelayP99)/1e6)))
	f.add("state", joined(": ", string(b.man.State), b.man.Stopped))
	section("Client", f)
}

// command fills in how to repeat the run.
func (b *builder) command(m *Model) {
	var words []string
	seeded := b.man.Spec.SeedGiven
	for _, a := range b.man.Command {
		words = append(words, shellQuote(clean(a)))
	}
	m.Command = strings.Join(words, " ")
	if m.Command != "" && !seeded {
		m.Same = "--seed " + strconv.FormatUint(b.man.Spec.Seed, 10)
	}
}

// shellQuote quotes an argument for a POSIX shell, when it has to be.
func shellQuote(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// tokens fills in how the token counts fit what was asked, and where they come from.
func (b *builder) tokens(m *Model) {
	s, w := b.sum, b.man.Spec.Workload
	var f facts
	t := s.Tokens
	delivered := func(key string) string {
		if d := s.Metrics.Dist(key); d != nil {
			return number(d.Mean) + " delivered"
		}
		return "delivered: not known"
	}
	if s.Requests.OK > 0 {
		f.add("input tokens", joined(", ", prefixed(number, t.ISLAskedMean, " asked"), delivered("isl"), deviationWords(t), prefix("counted by ", sourceWords(t.ISLSource))))
		f.add("output tokens", joined(", ", prefixed(number, t.OSLAskedMean, " asked"), delivered("osl"), worded(w.ForceLength, "length forced"),
			worded(t.LengthLimited.Or(0) > 0 && !w.ForceLength, prefixed(percent, t.LengthLimited, " cut off by the limit")), prefix("counted by ", sourceWords(t.OSLSource))))
		f.add("prefix cache", prefixed(percent, t.CachedShare, " of the prompt tokens came from it"))
	}
	f.add("prompts", joined(", ", w.Dataset, prefix("made by ", w.PromptSource), "seed "+b.seedWords()))
	m.Tokens = f
}

// deviationWords says how far prompt lengths are off.
func deviationWords(t bench.TokenReport) string {
	mean, worst := prefixed(percent, t.ISLDeviation, ""), prefixed(percent, t.ISLWorst, "")
	switch {
	case mean == "":
		return ""
	case mean == worst:
		return "off by " + mean
	}
	return "off by " + mean + " on average and " + worst + " at most"
}

// sourceWords lists the sources of counts, the most trusted first; the number of requests only where there are several.
func sourceWords(from map[bench.Source]int) string {
	var parts []string
	for _, src := range []bench.Source{bench.FromIDs, bench.FromCount, bench.FromUsage, bench.FromTokenizer, bench.FromEstimate} {
		switch n := from[src]; {
		case n > 0 && len(from) == 1:
			parts = append(parts, string(src))
		case n > 0:
			parts = append(parts, string(src)+" ("+count(n)+")")
		}
	}
	return strings.Join(parts, ", ")
}

// targets fills in the share of each of several targets.
func (b *builder) targets(m *Model) {
	if len(b.sum.Targets) == 0 {
		return
	}
	g := Grid{Heads: []string{"target", "sent", "ok", "failed"}}
	type column struct {
		name string
		of   func(*bench.TargetResult) *bench.Dist
		p    float64
	}
	var columns []column
	if b.stream() {
		columns = append(columns, column{"TTFT p50", func(t *bench.TargetResult) *bench.Dist { return t.TTFT }, 50},
			column{"TTFT p99", func(t *bench.TargetResult) *bench.Dist { return t.TTFT }, 99},
			column{"TPOT p50", func(t *bench.TargetResult) *bench.Dist { return t.TPOT }, 50})
	}
	columns = append(columns, column{"E2E p50", func(t *bench.TargetResult) *bench.Dist { return t.E2EL }, 50},
		column{"E2E p99", func(t *bench.TargetResult) *bench.Dist { return t.E2EL }, 99})
	rows := make([][]string, len(b.sum.Targets))
	for i := range b.sum.Targets {
		t := &b.sum.Targets[i]
		rows[i] = []string{clean(t.URL), count(t.Sent), count(t.OK), count(t.Failed)}
	}
	for _, c := range columns {
		var shown []float64
		for i := range b.sum.Targets {
			v, _ := c.of(&b.sum.Targets[i]).P(c.p)
			shown = append(shown, v)
		}
		unit, size := timeUnit(shown...)
		g.Heads = append(g.Heads, c.name+" "+unit)
		for i := range b.sum.Targets {
			cell := dash
			if v, ok := c.of(&b.sum.Targets[i]).P(c.p); ok {
				cell = number(v / size)
			}
			rows[i] = append(rows[i], cell)
		}
	}
	g.Heads = append(g.Heads, "req/s", "tok/s")
	for i := range b.sum.Targets {
		rows[i] = append(rows[i], optional(b.sum.Targets[i].RequestThroughput), optional(b.sum.Targets[i].OutputThroughput))
	}
	g.Rows = rows
	m.Targets = g
}
