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
	m.TimeLimits = joined(", ", "request "+boundWords(spec.Client.Timeout), "connection "+boundWords(spec.Client.ConnectTimeout),
		"grace at the end "+boundWords(b.measure.Stop.Grace))
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
	f.add("asked for", map[bench.Task]string{bench.Embed: "embeddings", bench.Rerank: "a ranking"}[t.Task])
	f.addIf(b.generates(), "streaming", yesNo(t.Stream))
	f.addIf(t.Stream, "token counts asked for", yesNo(t.Usage))
	f.addIf(t.EventUsage, "counts in each event", "asked for")
	f.addIf(t.TokenIDs, "ids of the output tokens", "asked for")
	if t.Priority != nil {
		f.add("priority", strconv.Itoa(*t.Priority))
	}
	f.add("field of the output limit", t.MaxTokensField)
	f.add("tools", string(t.Tools))
	f.add("choice of a tool", string(t.ToolChoice))
	f.add("form of the answers", string(t.ResponseFormat))
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
	f.addIf(w.Batch > 0, "texts a request", count(w.Batch))
	f.add("prompts", w.PromptSource)
	f.addIf(b.generates(), "output length forced", yesNo(w.ForceLength))
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
	if b.generates() {
		section("Sampling", f)
	}

	f = nil
	c := spec.Client
	f.add("time limit of a request", boundWords(c.Timeout))
	f.add("time limit of a connection", boundWords(c.ConnectTimeout))
	f.add("grace for what is in flight at the end", boundWords(b.measure.Stop.Grace))
	f.add("connections", map[string]string{"reuse": "reused", "new": "a new one a request"}[c.Connection])
	f.add("HTTP", c.HTTP)
	f.add("kept", joined(", ", "numbers of each request", worded(spec.Keep.Events && b.generates(), "times of events"), worded(spec.Keep.Text, "answers"), worded(spec.Keep.Transcripts, "raw bytes")))
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
