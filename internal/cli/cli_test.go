package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prony-bench/prony/internal/sim"
)

func TestTwoDigits(t *testing.T) {
	for v, want := range map[float64]string{658.1: "660", 0.0437: "0.044", 12.34: "12", 1.0: "1.0", 99.9: "100", 9.96: "10.0"} {
		if got := twoDigits(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// No secret of a command line is stored.
func TestRedact(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"run --api-key k --url u", "run --api-key REDACTED --url u"},
		{"run --api-key=k", "run --api-key=REDACTED"},
		{"run --header X-A:b --header=X-B=c", "run --header X-A:REDACTED --header=X-B=REDACTED"},
		{"run --header nonsense", "run --header REDACTED"},
		{"run --url u --label api-key", "run --url u --label api-key"},
	} {
		if got := strings.Join(redact(strings.Fields(c.in)), " "); got != c.want {
			t.Errorf("%s: %s", c.in, got)
		}
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine(" a\nb\x1b[31mc\td\u009bx "); got != "a b[31mc dx" {
		t.Errorf("%q", got)
	}
}

func TestGoodput(t *testing.T) {
	got, err := parseGoodput([]string{"ttft:200 tpot:50", "e2el:5000.5"})
	if want := "[{ttft 200ms} {tpot 50ms} {e2el 5.0005s}]"; err != nil || fmt.Sprint(got) != want {
		t.Error(got, err)
	}
	for _, bad := range []string{"ttft", "ttft:", "ttft:0", "ttft:-1", "ttft:inf", "x:5", "ttft:1 ttft:2"} {
		if _, err := parseGoodput([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Numbers for a person have no exponents.
func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00001: "0", 0.01234: "0.0123", 1.5: "1.5", 99.94: "99.9", 99.96: "100", 999.7: "1000", 123456: "123456"} {
		if got := sig(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1 kB", 999_600: "1 MB", 1_230_000: "1.23 MB", 5e15: "5000 TB"} {
		if got := byteWords(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

// A line of the progress never reaches the last column, so that no terminal breaks it.
func TestFit(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{{"abcdef", 4, "abcd"}, {"abc", 4, "abc"}, {"", 4, ""}, {"a·█▂e", 4, "a·█▂"}, {"模型模型", 5, "模型"}, {"abc", 0, ""}} {
		if got := fit(c.in, c.n); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.in, c.n, got, c.want)
		}
	}
}

// What is said in a line has a bound.
func TestMessage(t *testing.T) {
	got := message(strings.Repeat("é", 5000))
	if len(got) > longestMessage+30 || !strings.HasSuffix(got, "... (10000 bytes)") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// Every fault that completion offers is one, and help tells of each.
func TestFaultWords(t *testing.T) {
	for _, kind := range sim.FaultKinds {
		if _, err := sim.ParseFaults(kind + "0.5"); err != nil {
			t.Error(err)
		}
		if name := strings.TrimSuffix(kind, ":"); name != "503" && !strings.Contains(sim.FaultWords, name) {
			t.Errorf("%s is not explained", name)
		}
	}
}

func TestSpanWords(t *testing.T) {
	for s, want := range map[float64]string{0: "0s", 90.04: "1m30s", 86400: "24h0m0s", 86400 * 3: "3 days", 1e10: "317 years"} {
		if got := spanWords(s); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
}
