package client

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name        string
		busy, reads int
		want        time.Duration
	}{
		{"1,000 streams of 100 events/s", 1000, 1000, 200 * time.Microsecond},
		{"400 streams of 200 events/s", 400, 800, 100 * time.Microsecond},
		{"300 streams of 1,000 events/s", 300, 3000, 0}, // the next event of a stream is too near
		{"100 streams of 100 events/s", 100, 100, 0},    // a rest would bring nothing together
		{"idle", 0, 0, 0},
	} {
		p := pace{from: ms, rest: 1}
		if p.look(10*ms, c.busy); c.reads > 0 {
			p = pace{from: ms, reads: c.reads, rest: 1}
			p.look(11*ms, c.busy)
		}
		if p.rest != c.want || p.reads != 0 {
			t.Errorf("%s: %v", c.name, p.rest)
		}
	}
	p := pace{reads: 9, rest: 7}
	if p.look(paceWindow-1, 1); p.rest != 7 || p.reads != 9 {
		t.Errorf("%+v", p)
	}
}
