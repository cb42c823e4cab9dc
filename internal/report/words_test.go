package report

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/prony-bench/prony/internal/bench"
	"github.com/prony-bench/prony/internal/metrics"
)

// No number for a person has an exponent.
func TestNoExponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		for _, s := range []string{number(v), millis(v), percent(v), seconds(v), interval(v, 2*v), significant(v, 6)} {
			if regexp.MustCompile("[0-9]e").MatchString(s) {
				t.Fatalf("%v is written as %s", v, s)
			}
		}
	})
	for v, want := range map[float64]string{2770: "2,770 ms", 9_999: "10,000 ms", 27_700: "27.7 s"} {
		if got := millis(v); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Every format tells the limits of time, also those that never struck.
func TestTimeLimits(t *testing.T) {
	m := usual(5).model()
	for _, c := range []struct {
		r    Renderer
		want []string
	}{
		{Text{}, []string{"time limits    request 10m, connection 10s, grace at the end 30s"}},
		{Markdown{}, []string{"- time limit of a request: 10m\n", "- time limit of a connection: 10s\n", "- grace for what is in flight at the end: 30s\n"}},
		{HTML{}, []string{"<dt>time limit of a request</dt><dd>10m</dd>", "<dt>time limit of a connection</dt><dd>10s</dd>", "<dt>grace for what is in flight at the end</dt><dd>30s</dd>"}},
		{JSON{}, []string{`"request_timeout_s": 600,`, `"connect_timeout_s": 10,`, `"grace_s": 30`}},
	} {
		out := render(t, c.r, m)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s has no %q", c.r.Name(), want)
			}
		}
	}
	man, records := usual(5).build()
	man.Spec.Client.Timeout, man.Spec.Client.ConnectTimeout = 0, 0
	if out := render(t, Text{}, New(man, metrics.Summarize(man, records), records, "x")); !strings.Contains(out, "request none, connection none") {
		t.Errorf("no limit is not told:\n%s", out)
	}
}

// The digits that line numbers up are no text of the page: whoever copies or hears it gets the numbers alone.
func TestGhostsAreNoText(t *testing.T) {
	page := render(t, HTML{}, scenes()["twenty"].model())
	text := regexp.MustCompile("<[^>]*>").ReplaceAllString(page, "")
	if !strings.Contains(page, `>1,560<span class="ghost" aria-hidden="true" data-digits=".1"></span></td>`) {
		t.Error("no number is lined up")
	}
	if regexp.MustCompile(`class="ghost"[^>]*>[^<]`).MatchString(page) || strings.Contains(text, "1,560.1") {
		t.Error("hidden digits are in the text of the page")
	}
	if !strings.Contains(page, "figure path{vector-effect:non-scaling-stroke}") {
		t.Error("lines of figures grow with the figure")
	}
}

// Failures that are not listed are counted, in all formats.
func TestFailuresLeft(t *testing.T) {
	man, records := usual(20).build()
	sum := metrics.Summarize(man, records)
	sum.Others = 1000
	for i := range 12 {
		sum.Errors = append(sum.Errors, bench.ErrorCount{Outcome: bench.ServerError, Text: fmt.Sprintf("kind %c", 'a'+i), N: 20 - i})
	}
	m := New(man, sum, records, "x")
	if len(m.Errors) != failuresMost || m.ErrorsLeft != 1000+10+9 {
		t.Errorf("%d kinds, %d left", len(m.Errors), m.ErrorsLeft)
	}
	for _, c := range []struct {
		r    Renderer
		want string
	}{{Text{}, "  and 1,019 requests with other words: see summary.json"}, {Markdown{}, "and 1,019 requests with other words"}, {HTML{}, "and 1,019 with other words, in summary.json"}} {
		if out := render(t, c.r, m); !strings.Contains(out, c.want) {
			t.Errorf("%s has no %q", c.r.Name(), c.want)
		}
	}
}

// One request has neither an interval nor words of many.
func TestOneRequest(t *testing.T) {
	m := scenes()["one"].model()
	out := render(t, Text{}, m)
	for _, bad := range []string{"on average", "1 requests", "tell whether neighbours"} {
		if strings.Contains(out, bad) {
			t.Errorf("one request, and yet %q:\n%s", bad, out)
		}
	}
	for _, l := range m.Metrics.Lines {
		if l.N == "1" && (l.Interval != dash || l.Method != "none: there is one sample") {
			t.Errorf("%s has the interval %s: %s", l.Short, l.Interval, l.Method)
		}
	}
}
