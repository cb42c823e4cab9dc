package tty

import (
	"bytes"
	"math"
	"os"
	"testing"
)

func TestBlock(t *testing.T) {
	var b bytes.Buffer
	bl := NewBlock(&b)
	bl.Draw([]string{"one", "two"})
	bl.Draw([]string{"three"})
	bl.Clear()
	bl.Clear()
	want := "\r\x1b[2Kone\n\r\x1b[2Ktwo\n\x1b[0J\x1b[2A\r\x1b[2Kthree\n\x1b[0J\x1b[1A\r\x1b[0J"
	if b.String() != want {
		t.Errorf("%q", b.String())
	}
}

func TestSparkAndBar(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want string
	}{{nil, ""}, {[]float64{1, 1}, "▂▂"}, {[]float64{0, 1, math.NaN(), 0.5}, "▁█ ▅"}, {[]float64{math.NaN()}, " "}} {
		if got := Spark(c.v); got != c.want {
			t.Errorf("%v: %q, want %q", c.v, got, c.want)
		}
	}
	for share, want := range map[float64]string{-1: "░░░░", 0: "░░░░", 0.5: "██░░", 1: "████", 7: "████"} {
		if got := Bar(share, 4); got != want {
			t.Errorf("%v: %q", share, got)
		}
	}
}

func TestNoTerminal(t *testing.T) {
	var b bytes.Buffer
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Is(&b) || Is(f) || Width(&b) != Wide || Width(f) != Wide || Color(f, os.Getenv) {
		t.Error("a file is taken for a terminal")
	}
}
